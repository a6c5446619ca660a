/* ballast: version control for what a model has learned.
 *
 * Five sentences hold for every function below. Failure is a negative
 * bal_code plus a text in err, which comes last and may be NULL. What is
 * created comes out first, is set only on success and is yours to _free, which
 * takes NULL. What a getter returns is borrowed from its object. A store may be
 * shared by threads; anything else belongs to one thread at a time, except that
 * bal_model_read may be called by many at once. A function that is called for
 * each of something is given what it may look at until it returns, ends the
 * walk with success by returning anything but 0, and must not itself commit,
 * merge, reset, check or collect in the store it is called from.
 *
 * Sizes are bytes, times are nanoseconds since 1970 in UTC, text is UTF-8.
 * examples/embed.c is a whole program. */
#ifndef BALLAST_H
#define BALLAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BAL_API   __attribute__((visibility("default")))
#define BAL_CHECK __attribute__((warn_unused_result))

/* ---- errors ------------------------------------------------------------ */

typedef enum bal_code {
    BAL_OK = 0,
    BAL_EINVAL = -1,        /* arguments, names, parameters, a bad recipe */
    BAL_ENOTFOUND = -2,     /* no such store, spec, tensor, file */
    BAL_EDENIED = -3,       /* no grant; told to the user as not found */
    BAL_EEXISTS = -4,       /* the target is there already */
    BAL_ECONFLICT = -5,     /* a ref moved, settings differ */
    BAL_EBROKEN = -6,       /* a view lost an input */
    BAL_ECORRUPT = -7,      /* bytes do not match their hash, malformed file */
    BAL_EIO = -8,           /* disk, network, permission, database */
    BAL_EBUSY = -9,         /* a lock was not free in time */
    BAL_EUNSUPPORTED = -10, /* understood, but cannot be done */
    BAL_ENOMEM = -11,
    BAL_ECANCELLED = -12, /* the caller's watch function said stop */
} bal_code;

typedef struct bal_error {
    int code;
    char text[508]; /* one line, lower case, names in quotes, no full stop */
    char hint[252]; /* what to do about it, or empty */
} bal_error;

/* The row of one code: its word in JSON, exit status, HTTP status, Python
 * exception. */
typedef struct bal_code_row {
    int code;
    const char *word;
    int exit;
    int http;
    const char *python;
} bal_code_row;

/* Never NULL: an unknown code has the row of BAL_EIO. */
BAL_API const bal_code_row *bal_code_find(int code);

/* "0.1.0". */
BAL_API const char *bal_version(void);
/* The libraries' versions and the instruction set in use, one a line. */
BAL_API const char *bal_version_details(void);

typedef enum bal_level { BAL_DEBUG, BAL_WARNING } bal_level;
typedef void bal_log_fn(void *ctx, bal_level level, const char *area,
                        const char *line);
/* Where the library reports what succeeded oddly (a retry, a file passed
 * over). NULL (the default) drops it. Not while other calls run. */
BAL_API void bal_log_to(bal_log_fn *fn, void *ctx);

/* ---- ids --------------------------------------------------------------- */

#define BAL_ID_HEX 64

typedef struct bal_id {
    uint8_t bytes[32];
} bal_id;

/* EINVAL unless hex is exactly 64 lower-case hex digits. */
BAL_API BAL_CHECK int bal_id_parse(bal_id *out, const char *hex,
                                   bal_error *err);
BAL_API void bal_id_hex(char out[BAL_ID_HEX + 1], const bal_id *id);
/* The id under which an engine knows a commit: the first 15 hex digits, modulo
 * 2^31-1, plus 1. */
BAL_API uint32_t bal_id_serving(const bal_id *commit);

/* ---- work: threads, progress, cancelling ------------------------------- */

typedef struct bal_work bal_work;

/* Called by the thread that called into the library, at most ten times a
 * second, while work runs. total is 0 where it is not known. Anything but 0
 * cancels: the call fails with ECANCELLED and leaves the store as before. */
typedef int bal_watch_fn(void *ctx, uint64_t done, uint64_t total);

/* jobs threads in all (0: the usable cores, cgroup quota and affinity
 * respected). */
BAL_API BAL_CHECK int bal_work_new(bal_work **out, unsigned jobs,
                                   bal_error *err);
BAL_API void bal_work_watch(bal_work *self, bal_watch_fn *fn, void *ctx);
BAL_API unsigned bal_work_jobs(const bal_work *self);
BAL_API void bal_work_free(bal_work *self);

/* ---- store ------------------------------------------------------------- */

typedef struct bal_store bal_store;
typedef struct bal_tenant bal_tenant;

enum bal_open_flags {
    BAL_OPEN_CREATE = 1, /* make the store if it is not there */
    BAL_OPEN_INIT = 2, /* as `init`: make it, or be the same: else ECONFLICT */
};

typedef struct bal_store_options {
    const char *root;        /* a directory; required */
    const char *backend;     /* URL, NULL: what the store records */
    const char *db;          /* URL, NULL: what the store records */
    const char *tenant;      /* recorded as the default by a new store */
    uint64_t block_size;     /* bytes; 0: recorded, or 4 MiB in a new store */
    const char *compression; /* auto none fast best; NULL: recorded */
    unsigned default_jobs;   /* recorded by a new store; 0: none */
    double wait;             /* seconds to wait for a lock; 0: 30 */
    unsigned flags;
    bal_work *work; /* borrowed for the store's life; required */
} bal_store_options;

/* ENOTFOUND: no store there (without CREATE). ECONFLICT: made with other
 * settings. EUNSUPPORTED: a newer format. */
BAL_API BAL_CHECK int bal_store_open(bal_store **out,
                                     const bal_store_options *options,
                                     bal_error *err);
BAL_API void bal_store_free(bal_store *self);
BAL_API const char *bal_store_root(const bal_store *self);

/* Settings, by their names in `ballast config`: block_size compression backend
 * db tenant default_jobs format. */
typedef int bal_setting_fn(void *ctx, const char *key, const char *value);
BAL_API BAL_CHECK int bal_setting_each(bal_store *self, bal_setting_fn *fn,
                                       void *ctx, bal_error *err);
/* Borrowed until the store is freed or the setting changes; NULL: not set. */
BAL_API const char *bal_setting_get(bal_store *self, const char *key);
/* EINVAL: unknown, bad or fixed at creation (backend block_size db format). */
BAL_API BAL_CHECK int bal_setting_set(bal_store *self, const char *key,
                                      const char *value, bal_error *err);

/* The one place where scope begins: checks the name (NULL: the store's own
 * tenant). A tenant exists from its first commit on; opening one that does not
 * exist succeeds, and finds nothing. */
BAL_API BAL_CHECK int bal_tenant_open(bal_tenant **out, bal_store *store,
                                      const char *name, bal_error *err);
BAL_API const char *bal_tenant_name(const bal_tenant *self);
BAL_API void bal_tenant_free(bal_tenant *self);
typedef int bal_name_fn(void *ctx, const char *name);
BAL_API BAL_CHECK int bal_tenant_each(bal_store *store, bal_name_fn *fn,
                                      void *ctx, bal_error *err);

/* ---- models ------------------------------------------------------------ */

typedef struct bal_model bal_model;

/* The dtypes of safetensors, in its order (ascending alignment). */
typedef enum bal_dtype {
    BAL_BOOL,
    BAL_F4,
    BAL_F6_E2M3,
    BAL_F6_E3M2,
    BAL_U8,
    BAL_I8,
    BAL_F8_E5M2,
    BAL_F8_E4M3,
    BAL_F8_E8M0,
    BAL_F8_E4M3FNUZ,
    BAL_F8_E5M2FNUZ,
    BAL_I16,
    BAL_U16,
    BAL_F16,
    BAL_BF16,
    BAL_I32,
    BAL_U32,
    BAL_F32,
    BAL_C64,
    BAL_F64,
    BAL_I64,
    BAL_U64,
    BAL_DTYPES, /* how many */
} bal_dtype;

/* The name in a safetensors header, "BF16". */
BAL_API const char *bal_dtype_name(bal_dtype dtype);
BAL_API unsigned bal_dtype_bits(bal_dtype dtype);

/* What an entry of a model is. Side files (config.json) and the headers of
 * safetensors files are entries too, of dtype U8, so that they are stored,
 * read and written by the code that does tensors. */
typedef enum bal_part {
    BAL_PART_TENSOR,
    BAL_PART_FILE,   /* name: path below the model's folder, '/' between */
    BAL_PART_HEADER, /* name: the file whose JSON header this is */
} bal_part;

/* How an entry stands to a base. A model that stands alone has WHOLE only. */
typedef enum bal_form {
    BAL_FORM_WHOLE,      /* the bytes are the thing itself */
    BAL_FORM_DIFFERENCE, /* tuned - base, F32 or F64 */
    BAL_FORM_RESIDUAL,   /* what base + difference lacks of tuned, bit by bit:
                            comes right after its DIFFERENCE, same name */
    BAL_FORM_SAME,       /* as in the base; no bytes */
    BAL_FORM_REMOVED,    /* in the base only; no bytes */
} bal_form;

#define BAL_MAX_RANK 64

typedef struct bal_tensor {
    const char *name;
    bal_part part;
    bal_form form;
    bal_dtype dtype; /* of the bytes that bal_model_read gives */
    bal_dtype of;    /* of the model itself: differs for a DIFFERENCE */
    uint32_t rank;
    const uint64_t *shape; /* elements, rank of them */
    uint64_t size;         /* bytes to be read */
    const bal_id *base;    /* digest in the base, NULL: not there */
    const bal_id *tuned;   /* digest in the tuned model, NULL: not known */
} bal_tensor;

typedef enum bal_kind {
    BAL_KIND_WEIGHTS,
    BAL_KIND_ADAPTER,
    BAL_KIND_DELTA,
    BAL_KIND_VIEW,
} bal_kind;

BAL_API const char *bal_kind_name(bal_kind kind);

typedef struct bal_facts {
    bal_kind kind;          /* a view has the kind of what it resolves to */
    const char *name;       /* what to call it in messages */
    const char *base_model; /* NULL: not told */
    const char *revision;   /* of the base model, NULL: not told */
    const char *report;     /* JSON object of what resolving found, or NULL */
} bal_facts;

/* A folder of safetensors (by its index where there is one), a PEFT adapter
 * folder, or one safetensors file. ECORRUPT names the file, the tensor and the
 * rule; a git-lfs pointer, pickle, zip, HTML or GGUF is called what it is. */
BAL_API BAL_CHECK int bal_model_from_path(bal_model **out, const char *path,
                                          bal_error *err);
/* What a commit holds; a view resolves while it is read. ENOTFOUND; EBROKEN: a
 * view lost an input. The store must outlive the model. */
BAL_API BAL_CHECK int bal_model_from_commit(bal_model **out, bal_tenant *tenant,
                                            const bal_id *commit,
                                            bal_error *err);
/* tuned - base, exact: reads both through once to learn which tensors changed,
 * to take digests and to prove that base + result gives tuned bit for bit. */
BAL_API BAL_CHECK int bal_model_minus(bal_model **out, bal_model *tuned,
                                      bal_model *base, bal_work *work,
                                      bal_error *err);

enum bal_plus_flags {
    BAL_PLUS_ANY_BASE = 1, /* do not compare the base with the digests */
};

/* base + change, where change is a delta (minus, a delta commit, a view of
 * deltas), an adapter to fold, or a view of whole models. ECORRUPT names the
 * first tensor of base whose digest is not the recorded one. */
BAL_API BAL_CHECK int bal_model_plus(bal_model **out, bal_model *base,
                                     bal_model *change, unsigned flags,
                                     bal_work *work, bal_error *err);
/* The same model with its float tensors rounded to dtype as they are read. */
BAL_API BAL_CHECK int bal_model_cast(bal_model **out, bal_model *model,
                                     bal_dtype dtype, bal_error *err);

BAL_API size_t bal_model_count(const bal_model *self);
/* Entry i: tensors by name (bytewise), then files, then headers. */
BAL_API const bal_tensor *bal_model_at(const bal_model *self, size_t i);
#define BAL_NONE SIZE_MAX
/* The index of an entry (never of a RESIDUAL), BAL_NONE if there is none. */
BAL_API size_t bal_model_find(const bal_model *self, bal_part part,
                              const char *name);
BAL_API const bal_facts *bal_model_facts(const bal_model *self);
/* Bytes [offset, offset + len) of entry i; offset and len are multiples of 8
 * elements unless the range ends the entry. Any number of threads. */
BAL_API BAL_CHECK int bal_model_read(bal_model *self, size_t i, uint64_t offset,
                                     void *to, size_t len, bal_error *err);
BAL_API bal_model *bal_model_ref(bal_model *self);
BAL_API void bal_model_free(bal_model *self);

enum bal_write_flags {
    BAL_WRITE_FORCE = 1,     /* replace a folder that is there */
    BAL_WRITE_CANONICAL = 2, /* headers of our own making, not the recorded */
};

typedef struct bal_write_options {
    const char *provenance;   /* text of ballast.json, NULL: none */
    const char *const *avoid; /* paths that out may not equal, hold or lie in */
    size_t avoid_count;
    unsigned flags;
} bal_write_options;

typedef struct bal_written {
    uint64_t tensors;
    uint64_t bytes; /* of tensors */
} bal_written;

/* Writes a folder under its final name, complete or not at all. options and
 * written may be NULL. EEXISTS: it is there and not empty. */
BAL_API BAL_CHECK int bal_model_write(bal_model *self, const char *out,
                                      const bal_write_options *options,
                                      bal_written *written, bal_work *work,
                                      bal_error *err);

/* ---- commits ----------------------------------------------------------- */

typedef struct bal_commit bal_commit;

typedef struct bal_commit_info {
    bal_id id;
    bal_id manifest;
    bal_id parent;
    bool has_parent;
    const char *tenant;
    const char *kind; /* adapter delta weights view */
    const char *message;
    const char *author;
    const char *base_model; /* NULL: not told */
    const char *metadata;   /* JSON object */
    const char *recipe;     /* JSON object, NULL: not a view */
    int64_t created_at;
} bal_commit_info;

enum bal_draft_flags {
    BAL_DRAFT_ALLOW_EMPTY = 1, /* commit although nothing changed */
};

typedef struct bal_draft {
    const char *ref;        /* NULL: main */
    const char *message;    /* required */
    const char *author;     /* NULL: the user's name */
    const char *base_model; /* NULL: what the model tells */
    const char *metadata;   /* JSON object, NULL: {} */
    const bal_id *parent;   /* NULL: the ref's head; else ECONFLICT if that is
                               not the head */
    const bal_id *expect;   /* the head the ref must have, NULL: any */
    unsigned flags;
} bal_draft;

typedef struct bal_commit_report {
    bool nothing_changed; /* the commit is the ref's head, none was made */
    uint64_t tensors;
    uint64_t bytes;        /* logical, of all entries */
    uint64_t stored_bytes; /* written for it, as stored */
    uint64_t new_blocks;
    uint64_t reused_blocks;
    uint64_t changed, unchanged, added, removed, reshaped; /* of a delta */
} bal_commit_report;

/* Durable when it returns. ECONFLICT: a parent or head was named and the ref
 * has moved. */
BAL_API BAL_CHECK int bal_commit_model(bal_commit **out, bal_tenant *tenant,
                                       bal_model *model, const bal_draft *draft,
                                       bal_commit_report *report,
                                       bal_error *err);
BAL_API BAL_CHECK int bal_commit_open(bal_commit **out, bal_tenant *tenant,
                                      const bal_id *id, bal_error *err);
BAL_API const bal_commit_info *bal_commit_info_of(const bal_commit *self);
/* A commit as `--json` shows it: a JSON object, compact. */
BAL_API const char *bal_commit_json(const bal_commit *self);
/* The text of ballast.json for it: a JSON object. */
BAL_API const char *bal_commit_provenance(const bal_commit *self);
BAL_API void bal_commit_free(bal_commit *self);

/* ---- refs and history -------------------------------------------------- */

/* Full id, ref, or a unique prefix of 4 hex digits or more, then any of ~N ^
 * @{N}. EINVAL: not a spec, or an ambiguous prefix (candidates named). */
BAL_API BAL_CHECK int bal_resolve(bal_id *out, bal_tenant *tenant,
                                  const char *spec, bal_error *err);

typedef int bal_ref_fn(void *ctx, const char *name, const bal_id *commit);
BAL_API BAL_CHECK int bal_ref_each(bal_tenant *tenant, bal_ref_fn *fn,
                                   void *ctx, bal_error *err);
/* Moves a ref by compare-and-swap, or makes it, and notes it in the reflog with
 * message (NULL: none). expect NULL: from wherever it is. ECONFLICT: it is
 * elsewhere. ENOTFOUND: no commit to. */
BAL_API BAL_CHECK int bal_ref_reset(bal_tenant *tenant, const char *ref,
                                    const bal_id *to, const bal_id *expect,
                                    const char *message, bal_error *err);

typedef int bal_commit_fn(void *ctx, const bal_commit *commit);
/* From a commit back along its parents, at most limit (0: all). */
BAL_API BAL_CHECK int bal_log(bal_tenant *tenant, const bal_id *from,
                              size_t limit, bal_commit_fn *fn, void *ctx,
                              bal_error *err);

typedef struct bal_move {
    const char *ref;
    uint64_t n;              /* 0 is the newest */
    const char *op;          /* commit merge reset */
    const bal_id *old, *now; /* NULL: none */
    int64_t at;
    const char *message;
} bal_move;
typedef int bal_move_fn(void *ctx, const bal_move *move);
/* ref NULL: of every ref. Newest first. */
BAL_API BAL_CHECK int bal_reflog(bal_tenant *tenant, const char *ref,
                                 bal_move_fn *fn, void *ctx, bal_error *err);

/* ---- recipes and views ------------------------------------------------- */

typedef struct bal_recipe bal_recipe;

typedef enum bal_param_type {
    BAL_PARAM_FLOAT,
    BAL_PARAM_INT,
    BAL_PARAM_BOOL,
    BAL_PARAM_NAME, /* one of choices */
} bal_param_type;

typedef struct bal_param {
    const char *name;
    bal_param_type type;
    const char *fallback; /* as text, NULL: required */
    double low, high;     /* inclusive */
    const char *choices;  /* "sum|count", NULL: any */
    bool per_input;
    const char *mergekit; /* its name there, NULL: none */
    const char *help;
} bal_param;

enum bal_method_flags {
    BAL_METHOD_SEEDED = 1, /* draws random numbers */
};

typedef struct bal_method_info {
    const char *name;
    const char *summary;
    const char *paper; /* NULL: none */
    size_t min_inputs;
    size_t max_inputs; /* 0: no limit */
    unsigned flags;
    const bal_param *params; /* ends with a row without a name */
} bal_method_info;

BAL_API size_t bal_method_count(void);
BAL_API const bal_method_info *bal_method_at(size_t i);
/* NULL: no such method. */
BAL_API const bal_method_info *bal_method_find(const char *name);

/* ENOTFOUND: no such method. */
BAL_API BAL_CHECK int bal_recipe_new(bal_recipe **out, const char *method,
                                     bal_error *err);
/* text: [tenant:]spec[@weight][,name=value]... Resolved now, once. */
BAL_API BAL_CHECK int bal_recipe_input(bal_recipe *self, bal_tenant *tenant,
                                       const char *text, bal_error *err);
/* A parameter of the method, or space strict union dtype seed base arithmetic.
 * EINVAL names the parameters that there are, or the bounds. */
BAL_API BAL_CHECK int bal_recipe_set(bal_recipe *self, const char *name,
                                     const char *value, bal_error *err);
BAL_API size_t bal_recipe_inputs(const bal_recipe *self);
BAL_API void bal_recipe_free(bal_recipe *self);
/* Records the view; computes nothing but what it needs to refuse: kinds that do
 * not mix, different bases, parameters that are missing. Defaults that
 * were not set are written into recipe. */
BAL_API BAL_CHECK int bal_commit_view(bal_commit **out, bal_tenant *tenant,
                                      bal_recipe *recipe,
                                      const bal_draft *draft,
                                      bal_commit_report *report,
                                      bal_error *err);

/* ---- comparing --------------------------------------------------------- */

typedef enum bal_change {
    BAL_CHANGED,
    BAL_UNCHANGED,
    BAL_ADDED,   /* in b only */
    BAL_REMOVED, /* in a only */
    BAL_RESHAPED,
    BAL_DTYPE_CHANGED, /* the same values in another dtype */
} bal_change;

typedef struct bal_diff_row {
    const char *name;
    bal_change change;
    bool dtype_changed; /* beside CHANGED */
    bool finite;        /* every difference is a finite number */
    double relative;    /* |b-a| / |a|, 2-norms in double; inf if |a| is 0 */
    double max_abs;
    double diff2, norm2; /* the sums of squares behind relative */
} bal_diff_row;
typedef int bal_diff_fn(void *ctx, const bal_diff_row *row);

/* One row for each tensor of either model, by name. A tensor absent on one side
 * of two deltas counts as zero there. EINVAL: a delta and something else. */
BAL_API BAL_CHECK int bal_diff(bal_model *a, bal_model *b, bal_work *work,
                               bal_diff_fn *fn, void *ctx, bal_error *err);

/* ---- upkeep ------------------------------------------------------------ */

typedef struct bal_problem {
    const char *kind; /* missing-block corrupt-block orphan-block … */
    const char *what; /* "tenant:id", a path, a ref */
    const char *detail;
    bool expected; /* a view that lost an input, not a damage */
} bal_problem;
typedef int bal_problem_fn(void *ctx, const bal_problem *problem);

enum bal_fsck_flags {
    BAL_FSCK_FAST = 1,   /* names, sizes and headers; no payloads */
    BAL_FSCK_REPAIR = 2, /* what can be without loss: orphans, temporaries */
};

typedef struct bal_fsck_report {
    uint64_t commits, blocks, bytes; /* checked */
    uint64_t problems;
} bal_fsck_report;

typedef struct bal_fsck_options {
    unsigned flags;
    const char *from; /* a model folder to heal blocks from: EUNSUPPORTED so
                         far. NULL: none */
} bal_fsck_options;

/* tenant NULL: every tenant. options NULL: every byte, nothing mended but what
 * every writer takes away (what killed ones left). Success says that the check
 * went through, report->problems what it found. fn that stops it: ECANCELLED,
 * for then nothing is known. */
BAL_API BAL_CHECK int bal_fsck(bal_store *store, bal_tenant *tenant,
                               const bal_fsck_options *options,
                               bal_problem_fn *fn, void *ctx,
                               bal_fsck_report *report, bal_error *err);

typedef struct bal_gc_report {
    uint64_t bytes_freed, blocks;
} bal_gc_report;
enum bal_gc_flags {
    BAL_GC_DRY_RUN = 1, /* only count */
};
/* Removes blocks that no commit uses, alone in the store while it works
 * (EBUSY). tenant NULL: of every tenant. */
BAL_API BAL_CHECK int bal_gc(bal_store *store, bal_tenant *tenant,
                             unsigned flags, bal_gc_report *report,
                             bal_error *err);

typedef struct bal_stats {
    uint64_t commits, manifests, blocks;
    uint64_t logical_bytes; /* of every commit, as if stored whole */
    uint64_t unique_bytes;  /* of every block, decoded */
    uint64_t stored_bytes;  /* of every block, as stored */
} bal_stats;
/* tenant NULL: the whole store. */
BAL_API BAL_CHECK int bal_stats_get(bal_stats *out, bal_store *store,
                                    bal_tenant *tenant, bal_error *err);

#ifdef __cplusplus
}
#endif
#endif
