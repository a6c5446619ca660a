/* Libraries that are loaded when they are first needed: what most commands
 * never use would otherwise be half of the time that they take to start. */
#ifndef CORE_LIBRARY_H
#define CORE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "ballast.h"

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
    void *table;
    bool (*begin)(void); /* called once, when the table is filled; NULL */
    const char *lack; /* what to say where it is not there: "there is no x" */
    const char *packages; /* that have it */
    int state;            /* library.c's; 0 at first */
} bal_library;

/* Fills the table, the first time; it stays for the life of the process.
 * EUNSUPPORTED: there is no such library, it lacks a function, or it would not
 * begin. Any thread. */
BAL_CHECK int bal_library_need(bal_library *self, bal_error *err);

#endif
