/* "tenant:id", as statements and journals name views. */
#ifndef STORE_NAMED_ID_H
#define STORE_NAMED_ID_H

#include "ballast.h"

typedef struct bal_named_id {
    char tenant[65];
    bal_id id;
} bal_named_id;

/* ECORRUPT unless text (NULL: none) is a tenant's name, a colon and 64
 * lower-case hex digits. */
BAL_CHECK int bal_named_id_parse(bal_named_id *out, const char *text,
                                 bal_error *err);

#endif
