/* Functions that are not used in this tree, made to fail the build. Included
 * last by every source file's own header chain through the compiler's -include.
 */
#ifndef CORE_BANNED_H
#define CORE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Has a macro of one of them, which is no use of it. */
#if __has_include(<postgres_ext.h>)
#include <postgres_ext.h>
#endif

/* Macros in some builds, which poison would warn of. */
#undef alloca
#undef sprintf
#undef vsprintf

#pragma GCC poison strcpy strcat sprintf vsprintf strtok gets atoi atol atof
#pragma GCC poison strtol strtoul strtoll strtoull srand localtime gmtime
#pragma GCC poison setjmp longjmp alloca

/* Not poison: libcrypto's headers have parameters of this name. */
#define rand() rand_is_banned_by_core_banned_h

#endif
