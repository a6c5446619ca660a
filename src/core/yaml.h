/* YAML in: documents, as PyYAML's safe loader reads them, which goes by YAML
 * 1.1: yes is true, 1_000 a thousand, 012 ten, 1:30 ninety, and 1e-5 a text.
 * https://yaml.org/type/ has the types; the grammar is libyaml's. */
#ifndef CORE_YAML_H
#define CORE_YAML_H

#include "core/buf.h"
#include "core/json.h"

#define BAL_YAML_BYTES ((size_t)1 << 20)
#define BAL_YAML_NODES                                                         \
    ((size_t)100000) /* aliases counted as what they name                      \
                      */
#define BAL_YAML_DEPTH 64

typedef enum bal_yaml_type {
    BAL_YAML_NULL,
    BAL_YAML_BOOL,
    BAL_YAML_INT,
    BAL_YAML_FLOAT, /* finite; an integer of more than 63 bits too */
    BAL_YAML_TEXT,  /* all that is none of the others: dates, .inf, .nan */
    BAL_YAML_LIST,
    BAL_YAML_MAP,
} bal_yaml_type;

/* A value, at its place in the text. */
typedef struct bal_yaml_node {
    bal_yaml_type type;
    unsigned line, column; /* from 1 */
    const char *text;      /* a scalar as it is written, "007"; else NULL */
    int64_t integer;       /* of INT and BOOL */
    double number;         /* of INT, BOOL and FLOAT */
    size_t count;          /* items of a LIST, members of a MAP */
    const struct bal_yaml_node *const *items;
    const struct bal_yaml_node *const *keys; /* of a MAP: scalars, each text
                                                once */
    size_t nodes;                            /* in it, itself counted */
    size_t levels; /* of lists and maps, itself counted */
} bal_yaml_node;

typedef struct bal_yaml {
    bal_arena arena;
    const bal_yaml_node **documents;
    size_t count, room;
} bal_yaml;

/* Aliases and merge keys ("<<") are resolved. EINVAL, with line and column:
 * what is no YAML, a tag that is none of the types above, a key that is there
 * twice or is no scalar, an alias of what it stands in, more than the limits.
 * `what` is named in messages. */
BAL_CHECK int bal_yaml_parse(bal_yaml *out, const char *text, size_t len,
                             const char *what, bal_error *err);
void bal_yaml_done(bal_yaml *self);
/* A member's value, NULL: no such member, or not a MAP. */
const bal_yaml_node *bal_yaml_get(const bal_yaml_node *self, const char *key);
/* Fill err with a text behind "line 3, column 5: ", return code. */
int bal_yaml_fail(bal_error *err, int code, const bal_yaml_node *at,
                  const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same value; names of members as they are written. */
BAL_CHECK int bal_yaml_json(json_t **out, const bal_yaml_node *self,
                            bal_error *err);

/* What a scalar's text is: type, integer and number of node are set. `as`: the
 * type that a tag says it has, BAL_YAML_MAP: it goes by the text. EINVAL: it is
 * none of that. */
BAL_CHECK int bal_yaml_resolve(bal_yaml_node *node, bal_yaml_type as,
                               bal_error *err);

#endif
