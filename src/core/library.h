/* Libraries that are loaded when they are first needed: what most commands
 * never use would otherwise be half of the time that they take to start. */
#ifndef CORE_LIBRARY_H
#define CORE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* A function, and where its address goes in the table. */
typedef struct bal_library_row {
    const char *name;
    size_t offset;
} bal_library_row;

typedef struct bal_library {
    const char *const *names; /* of its file, by preference */
    size_t name_count;
    const bal_library_row *rows;
    size_t row_count;
} bal_library;

/* Fills the table; it stays for the life of the process. False: there is no
 * such library, or it lacks a function. */
bool bal_library_load(void *table, const bal_library *library);

#endif
