/* Text: names, numbers, sizes, UTF-8, what may go to a terminal. */
#ifndef CORE_STR_H
#define CORE_STR_H

#include "core/buf.h"

/* A copy to be freed with bal_str_free; NULL: no memory. */
char *bal_str_copy(const char *text);
void bal_str_free(char *text);
/* True if text is exactly one of [A-Za-z0-9][A-Za-z0-9._-]{0,63}. */
bool bal_name_valid(const char *text);
/* EINVAL, with the rule as hint, unless text is a tenant's name: a valid name
 * that has no "..", for it becomes part of paths. */
BAL_CHECK int bal_tenant_check(const char *text, bal_error *err);
/* True if text is `length` lower-case hex digits (any number for 0). */
bool bal_hex_valid(const char *text, size_t length);
void bal_hex_write(char *out, const uint8_t *bytes, size_t count);
bool bal_hex_read(uint8_t *out, size_t count, const char *text);
/* Whole text as a number, nothing before or behind it. EINVAL says what. */
BAL_CHECK int bal_parse_u64(uint64_t *out, const char *text, bal_error *err);
BAL_CHECK int bal_parse_i64(int64_t *out, const char *text, bal_error *err);
/* Finite numbers only; '.' is the point in every locale. */
BAL_CHECK int bal_parse_f64(double *out, const char *text, bal_error *err);
/* "4M", "512 KiB", "5GB" (decimal), "12": bytes. */
BAL_CHECK int bal_parse_size(uint64_t *out, const char *text, bal_error *err);
/* The shortest text that reads back as value: "0.6", "1e-05", "3.0" becomes
 * "3". out has room for 32. */
void bal_f64_text(char out[32], double value);
/* True if the bytes are UTF-8 without surrogates, overlongs, or more than
 * U+10FFFF. */
bool bal_utf8_valid(const char *text, size_t len);
/* Append text fit for a terminal: control characters, DEL, C1, bidi controls,
 * line and paragraph separators and bytes that are not UTF-8 as \xNN or \u{N};
 * "\n" stays when lines is true. */
BAL_CHECK int bal_printable(bal_buf *to, const char *text, size_t len,
                            bool lines, bal_error *err);
/* "200,893". */
void bal_thousands(char out[32], uint64_t value);
/* Glob with * and ?, no sets; the whole text. Linear, no recursion. */
bool bal_glob(const char *pattern, const char *text);

#endif
