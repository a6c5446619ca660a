/* Options by table: the parser fills a zeroed struct from rows; help, man
 * pages, completions and docs/cli.md are made of the same rows. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "core/buf.h"

/* What stands at a row's offset. */
typedef enum bal_opt_type {
    BAL_OPT_STRING,       /* const char * */
    BAL_OPT_FLAG,         /* bool */
    BAL_OPT_SWITCH,       /* bal_opt_switch: --x and --no-x */
    BAL_OPT_U64,          /* bal_opt_u64 */
    BAL_OPT_SIZE,         /* bal_opt_u64, in bytes, "4M" */
    BAL_OPT_DOUBLE,       /* bal_opt_f64 */
    BAL_OPT_LIST,         /* bal_opt_list: may be given again */
    BAL_OPT_ENUM,         /* const char *, one of the row's value "a|b|c" */
    BAL_OPT_PARAM,        /* bal_opt_list: appends the row's name, the value */
    BAL_OPT_PARAM_SWITCH, /* the same with "true", and "false" for --no-x */
    BAL_OPT_TYPES,
} bal_opt_type;

typedef enum bal_opt_switch {
    BAL_SWITCH_UNSET,
    BAL_SWITCH_ON,
    BAL_SWITCH_OFF,
} bal_opt_switch;

typedef struct bal_opt_u64 {
    bool given;
    uint64_t value;
} bal_opt_u64;

typedef struct bal_opt_f64 {
    bool given;
    double value;
} bal_opt_f64;

typedef struct bal_opt_list {
    const char **items;
    size_t count;
} bal_opt_list;

enum bal_opt_flags {
    BAL_OPT_REQUIRED = 1,
    BAL_OPT_HIDDEN = 2,
};

/* A '_' in name is spelt '-' by the user. */
typedef struct bal_opt {
    char letter; /* 0: none */
    const char *name;
    bal_opt_type type;
    uint32_t offset;
    const char *value; /* what stands for the value in help; choices of ENUM */
    const char *help;
    uint64_t flags;
    const char *env; /* variable that stands in when it is not given */
} bal_opt;

/* Row i of those that another table gives; false behind the last. */
typedef bool bal_opt_more_fn(bal_opt *out, size_t i);

typedef struct bal_opt_set {
    const bal_opt *rows; /* ends with a row without a name; NULL: none */
    bal_opt_more_fn *more;
    void *values;
} bal_opt_set;

/* Row i of a set: its rows, then more; false behind the last. */
bool bal_opt_at(bal_opt *out, const bal_opt_set *set, size_t i);
/* "message" for "--message", '_' made '-'. */
void bal_opt_spell(char out[64], const char *name);
/* True if the row takes a value; if it also has a --no- form. */
bool bal_opt_valued(const bal_opt *row);
bool bal_opt_negatable(const bal_opt *row);

typedef struct bal_parser bal_parser;
/* Tells what to say of an option that no row has: fills err, returns EINVAL. */
typedef int bal_unknown_fn(const bal_parser *parser, const char *option,
                           bal_error *err);

enum bal_parse_flags {
    BAL_PARSE_HEAD = 1, /* stop in front of the first argument */
};

struct bal_parser {
    bal_opt_set sets[2];
    bal_arena *arena; /* for lists */
    char *const *words;
    size_t count;
    size_t at; /* the word that is next */
    const char **args;
    size_t arg_count;
    bal_unknown_fn *unknown;
    unsigned flags;
};

/* Options and arguments in any order; "--" ends options. EINVAL. */
BAL_CHECK int bal_opt_parse(bal_parser *self, bal_error *err);
/* Fill from the environment what was not given. EINVAL names the variable. */
BAL_CHECK int bal_opt_environment(const bal_opt_set *set, bal_arena *arena,
                                  bal_error *err);
/* EINVAL unless every required option was given. */
BAL_CHECK int bal_opt_required(const bal_opt_set *set, bal_error *err);
/* "unknown option '--x'", with the nearest one that there is as hint. */
int bal_opt_unknown(const bal_parser *parser, const char *option,
                    bal_error *err);

/* ---- the nearest word --------------------------------------------------- */

typedef struct bal_nearest {
    const char *word;
    char best[64]; /* "": none is near enough */
    size_t distance;
} bal_nearest;

void bal_nearest_begin(bal_nearest *self, const char *word);
/* A word that may be meant. */
void bal_nearest_offer(bal_nearest *self, const char *candidate);

#endif
