/* Change values in a JSON text that somebody else wrote, and leave every other
 * byte as it is: the order of keys, how numbers are spelled, indentation. */
#ifndef CORE_JSON_EDIT_H
#define CORE_JSON_EDIT_H

#include "core/buf.h"

/* One member, by the keys that lead to it from the outermost object, a dot
 * between them: "text_config.vocab_size". A key that has a dot in it cannot be
 * named; nothing in an array can. */
typedef struct bal_json_change {
    const char *path;
    const char *value; /* valid JSON text, put in as it is */
    bool add;          /* where its object is there but lacks it, add it */
} bal_json_change;

/* Append text with the changes made, one after the other, to out. Of keys that
 * an object has twice the last counts, as for nearly every reader, and is what
 * is changed. A member that is added goes last, laid out like the one before
 * it. What is lacking and not to be added, or has no parent, is passed over.
 * ECORRUPT, naming `what`: text or a value is not JSON (RFC 8259). out is left
 * alone on failure. */
BAL_CHECK int bal_json_edit(bal_buf *out, bal_bytes text,
                            const bal_json_change *changes, size_t count,
                            const char *what, bal_error *err);

/* The value that a path leads to, by the same rules, as a part of text; data
 * NULL: there is none. One pass over what the path leads through, which need
 * not have been checked: ECORRUPT where that is not JSON. */
BAL_CHECK int bal_json_find(bal_bytes *out, bal_bytes text, const char *path,
                            const char *what, bal_error *err);

#endif
