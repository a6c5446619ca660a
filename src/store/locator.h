/* <root>/store.json: where the database is, without a password. */
#ifndef STORE_LOCATOR_H
#define STORE_LOCATOR_H

#include "core/error.h"

/* Allocated with bal_str_copy's allocator. ENOTFOUND: there is none. */
BAL_CHECK int bal_locator_read(char **db, const char *path, bal_error *err);
/* Replaces it, durably. */
BAL_CHECK int bal_locator_write(const char *root, const char *db,
                                bal_error *err);

/* Settings of a database while and after a store moves (copy.c): the address of
 * the one where it is now; and that it is not to be used yet. */
#define BAL_MOVED_TO "moved_to"
#define BAL_ARRIVING "arriving"

#endif
