/* What the readers of probe files share: the set while it is made. */
#ifndef PROBE_PROBES_INSIDE_H
#define PROBE_PROBES_INSIDE_H

#include <stdatomic.h>

#include "core/buf.h"
#include "core/json.h"
#include "core/map.h"
#include "probe/template.h"

#define BAL_PROBES_FILE    ((size_t)64 << 20)  /* bytes of a file */
#define BAL_PROBES_TEXT    ((size_t)256 << 20) /* of a set's canonical JSON */
#define BAL_PROBES_MAX     ((size_t)1000000)
#define BAL_PROBE_TEXT     ((size_t)8 << 20) /* of a line, of a probe's JSON */
#define BAL_PROBE_PROMPT   ((size_t)1 << 20)
#define BAL_PROBE_ID       ((size_t)256)
#define BAL_PROBE_LIST     ((size_t)1024) /* references, choices, stops */
#define BAL_PROBE_TOKENS   ((uint64_t)65536)
#define BAL_PROBES_UNUSED  ((size_t)64 << 10)
#define BAL_PROBES_COLUMNS ((size_t)1024)

struct bal_probes {
    atomic_uint refs;
    bal_arena arena; /* all texts */
    bal_probe *items;
    size_t count, room;
    bal_map ids; /* to the index */
    bal_buf json;
    bal_buf unused;
    bal_id id;
};

/* Where a probe came from. */
typedef struct bal_probe_origin {
    size_t place;
    bool named; /* it came with its id */
} bal_probe_origin;

typedef struct bal_maker {
    bal_probes *to;
    const char *unit; /* what places are: "line", "probe" */
    size_t place;     /* of what is being read, from 1 */
    bal_probe_origin *origins;
    size_t origin_room;
    bal_map unused;               /* names that were noted */
    const bal_template *template; /* for files of variables */
} bal_maker;

BAL_CHECK int bal_maker_init(bal_maker *self, const char *unit, bal_error *err);
void bal_maker_done(bal_maker *self);
/* A probe, complete but for an id perhaps, whose texts are in the set's arena.
 * EINVAL: too long, too many, nothing to ask, there already. */
BAL_CHECK int bal_maker_add(bal_maker *self, const bal_probe *probe,
                            bal_error *err);
/* A copy in the set's arena, of text as it is or without the white space around
 * it. */
BAL_CHECK int bal_maker_copy(bal_maker *self, const char **out,
                             const char *text, size_t len, bal_error *err);
BAL_CHECK int bal_maker_trim(bal_maker *self, const char **out,
                             const char *text, bal_error *err);
/* A scalar as text: a text as it is, a number's shortest, true, false; NULL: it
 * is none. */
BAL_CHECK int bal_maker_scalar(bal_maker *self, const char **out,
                               const json_t *value, bal_error *err);
/* Room for count texts. EINVAL: more than BAL_PROBE_LIST; key is named. */
BAL_CHECK int bal_maker_list(bal_maker *self, const char ***out, size_t count,
                             const char *key, bal_error *err);
/* The member `key`, a text or a list of texts, none of them empty; null is
 * none. */
BAL_CHECK int bal_maker_texts(bal_maker *self, const char *const **out,
                              size_t *count, const json_t *value,
                              const char *key, bal_error *err);
/* Note that "within:name" was not used; "name" with within NULL. */
BAL_CHECK int bal_maker_unused(bal_maker *self, const char *within,
                               const char *name, bal_error *err);
/* The set as it is now, with its id; EINVAL: it holds nothing. */
BAL_CHECK int bal_maker_end(bal_maker *self, bal_probes **out, bal_error *err);

/* How a file says what to ask. */
typedef struct bal_probes_shape {
    bool templated; /* holds variables, not prompts */
    bool (*is)(const json_t *first);
    int (*line)(bal_maker *self, json_t *object, bal_error *err);
} bal_probes_shape;

extern const bal_probes_shape bal_probes_native;
extern const bal_probes_shape bal_probes_promptfoo;
extern const bal_probes_shape bal_probes_lm_eval;

/* bal_probes_open of text that is in memory. path tells a CSV file, and is
 * named in messages. */
BAL_CHECK int bal_probes_parse(bal_probes **out, const char *path,
                               bal_bytes text,
                               const bal_probes_options *options,
                               bal_error *err);
/* promptfoo's CSV, all of it. */
BAL_CHECK int bal_probes_csv(bal_maker *self, bal_bytes text, bal_error *err);

/* A test of promptfoo: what is asked is what the maker's template gives with
 * the variables, between prefix and suffix. */
typedef struct bal_foo {
    bal_vars vars;
    const char *prefix, *suffix;          /* NULL: none */
    const char *expected[BAL_PROBE_LIST]; /* right answers */
    size_t expected_count;
} bal_foo;

/* One more right answer; what it says of the variables is filled in. */
BAL_CHECK int bal_foo_expect(bal_maker *self, bal_foo *foo, const char *text,
                             bal_error *err);
BAL_CHECK int bal_foo_add(bal_maker *self, bal_foo *foo, bal_error *err);

#endif
