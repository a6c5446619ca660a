/* One run of the program: what was asked for, and what it works with. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "core/own.h"
#include "core/pool.h"

BAL_OWNABLE(bal_store)
BAL_OWNABLE(bal_tenant)
BAL_OWNABLE(bal_model)
BAL_OWNABLE(bal_commit)
BAL_OWNABLE(bal_recipe)

typedef struct bal_globals {
    const char *root;
    const char *tenant;
    const char *backend;
    const char *db;
    const char *cache;
    bal_opt_u64 cache_size;
    bool json;
    bal_opt_u64 jobs;
    bal_opt_f64 wait;
    bool no_cache;
    bool quiet;
    bool verbose;
    const char *progress;
    const char *color;
    bool help;
    bool version;
    bool generate; /* the build asks for man pages: see generate.c */
} bal_globals;

extern const bal_opt bal_global_opts[];
/* What the rows cannot say. EINVAL. */
BAL_CHECK int bal_globals_check(const bal_globals *self, bal_error *err);

typedef struct bal_cli bal_cli;

enum bal_needs {
    BAL_NEEDS_NOTHING,
    BAL_NEEDS_STORE,  /* one that is there */
    BAL_NEEDS_TENANT, /* the same, and a tenant of it */
};

#define BAL_ANY_ARGS SIZE_MAX

/* A command. opts points to opts_size zeroed bytes that its rows have filled.
 * A negative answer is cli->status = 1, not a failure. */
typedef struct bal_command {
    const char *name;
    const char *synopsis;
    const char *summary;
    const char *about;    /* paragraphs, for help and man page */
    const char *examples; /* lines, NULL: none */
    const char *words;    /* "a|b": what the first argument is, NULL: an arg */
    const char *arg;      /* what arguments are, for completion: as a value */
    enum bal_needs needs;
    bool hidden;
    bool logs; /* runs for long: warnings are told whatever is asked for */
    size_t min_args, max_args;
    const bal_opt *opts;
    size_t opts_size;
    bal_opt_more_fn *more;
    bal_unknown_fn *unknown;
    int (*run)(bal_cli *cli, const void *opts, bal_error *err);
} bal_command;

struct bal_cli {
    bal_globals globals;
    const bal_command *command; /* NULL: none was named */
    const void *opts;
    const char **args;
    size_t arg_count;
    bal_arena arena;
    bal_out out;
    bal_progress progress;
    bal_work *work;
    bal_store *store;
    bal_tenant *tenant;
    int status; /* exit status where nothing failed */
};

/* ---- the store ---------------------------------------------------------- */

/* The root by flag, environment, or the nearest .ballast upwards; borrowed. */
BAL_CHECK int bal_cli_root(const char **out, bal_cli *cli, bal_error *err);
/* What the globals say of a store; root, work and more flags are the caller's.
 */
bal_store_options bal_cli_store_options(const bal_globals *globals);
/* Threads to work with, before a store says how many. */
BAL_CHECK int bal_cli_work(bal_cli *cli, bal_error *err);
/* Open the store with bal_open_flags, unless it is open. */
BAL_CHECK int bal_cli_store(bal_cli *cli, unsigned flags, bal_error *err);
/* The store and the tenant. With BAL_OPEN_CREATE nothing is made while no
 * tenant is named. */
BAL_CHECK int bal_cli_tenant(bal_cli *cli, unsigned flags, bal_error *err);
void bal_cli_close(bal_cli *cli);

/* ---- what arguments name ------------------------------------------------ */

/* [tenant:]spec. Of another tenant nothing is to be seen: ENOTFOUND, in the
 * words of a spec that is not there. */
BAL_CHECK int bal_cli_spec(bal_id *out, bal_cli *cli, const char *spec,
                           bal_error *err);

/* A model that an argument names. */
typedef struct bal_named {
    bal_model *model;
    bool is_commit;
    bal_id commit;
    const char *text; /* as it was written */
} bal_named;

void bal_named_done(bal_named *self);
/* True for what is read as a path: it holds a '/', or there is such a file. */
bool bal_cli_is_path(const char *text);
/* A folder, a safetensors file, or a commit by spec (then the store must be
 * there). ENOTFOUND. */
BAL_CHECK int bal_cli_model(bal_named *out, bal_cli *cli, const char *text,
                            bal_error *err);
/* The same, where a commit is meant rather than a folder of its name: a folder
 * that a checkout made is often named as its ref. A path with a '/' is one. */
BAL_CHECK int bal_cli_compared(bal_named *out, bal_cli *cli, const char *text,
                               bal_error *err);

/* ---- folders that are written ------------------------------------------- */

/* EEXISTS if dir is there and not empty, before much work is done in vain. */
BAL_CHECK int bal_cli_vacant(const char *dir, bal_error *err);
/* True for an index of shards: how a folder is laid out, not what is in it. */
bool bal_cli_layout(const bal_tensor *entry);
/* ECORRUPT names the first tensor or file of want that got lacks or has
 * otherwise: dtype, shape, bytes. */
BAL_CHECK int bal_cli_same(bal_model *want, bal_model *got, bal_error *err);
/* True if dir was written from this commit, by its ballast.json and by its
 * tensors. */
bool bal_cli_holds(const char *dir, const bal_id *commit, bal_model *model);

/* ---- what several commands do ------------------------------------------- */

/* EINVAL unless text (NULL is fine) is a JSON object. */
BAL_CHECK int bal_cli_metadata(const char *text, bal_error *err);
/* {"schema", the commit object's members, "ref"}: left open. */
/* "anchor": the commit that blocks are stored by their distance from, if there
 * is one; and the same as a line of stderr, beside a text result. */
void bal_cli_anchor(bal_json *json, const bal_commit_report *report);
void bal_cli_tell_anchor(bal_cli *cli, const bal_commit_report *report);
void bal_cli_commit_open(bal_json *json, bal_cli *cli, const bal_commit *commit,
                         const char *ref);
/* Entries of part TENSOR that have bytes of their own, residuals left out. */
bool bal_cli_listed(const bal_tensor *tensor);
/* {"name", "dtype", "shape", "bytes"} of one, into the open object. */
void bal_cli_tensor_json(bal_json *json, const bal_tensor *tensor);
/* "[2, 3]". */
void bal_cli_shape(bal_out *out, const bal_tensor *tensor);
/* A grant's members, into the open object. */
void bal_cli_grant_json(bal_json *json, const bal_grant_info *grant);
/* "acme:1f3a…@0.6" of an input in a recipe's JSON. */
void bal_cli_input(bal_out *out, const json_t *input);
/* How many tensors are listed, and their bytes. */
size_t bal_cli_tensors(const bal_model *model, uint64_t *bytes);
/* An unknown merge method: EINVAL, with the nearest as hint. */
BAL_CHECK int bal_cli_method(const bal_method_info **out, const char *name,
                             bal_error *err);
/* What a command that lists one kind of thing hands to its walk. */
typedef struct bal_listing {
    bal_out *out;
    bal_json json; /* the open array or object, with --json */
} bal_listing;
/* Calls a library's _each with the listing as its context. */
typedef int bal_walk_fn(bal_cli *cli, bal_listing *listing, bal_error *err);
/* With --json {"schema", member: [ … ]}, or an object where bracket is '{';
 * else what walk prints. */
BAL_CHECK int bal_cli_list(bal_cli *cli, const char *member, char bracket,
                           bal_walk_fn *walk, bal_error *err);
/* -v: what was done, and how long it took, on stderr. */
void bal_cli_took(bal_cli *cli, double seconds);

#endif
