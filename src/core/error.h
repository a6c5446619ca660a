/* Failure by value: a negative code, a text that names the thing, a hint. */
#ifndef CORE_ERROR_H
#define CORE_ERROR_H

#include "ballast.h"

/* Fill err (which may be NULL) and return code. */
int bal_fail(bal_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same from errno: "opening 'x': no such file or directory". ENOENT is
 * ENOTFOUND, EEXIST is EEXISTS, ENOMEM is ENOMEM, EINTR is ECANCELLED, all else
 * is EIO. */
int bal_fail_errno(bal_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int bal_fail_memory(bal_error *err, const char *what);
/* Say where: "tensor 'w': <text so far>". Returns rc. */
int bal_within(bal_error *err, int rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Add what to do. Returns rc. */
int bal_hint(bal_error *err, int rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The one sink of bal_log_to, as area + level + "key=value …". */
void bal_warn(const char *area, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void bal_trace(const char *area, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
