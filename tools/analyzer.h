/* For clang-tidy only: what the functions that make errors return, which it
 * cannot see across files. Without it every path goes on after a failure. */
#include "core/error.h"

#define bal_fail(err, code, ...)                                               \
    ((void)(bal_fail)((err), (code), __VA_ARGS__), (int)(code))
#define bal_fail_errno(...) ((void)(bal_fail_errno)(__VA_ARGS__), -8)
#define bal_fail_memory(...) ((void)(bal_fail_memory)(__VA_ARGS__), -11)
