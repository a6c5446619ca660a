/* ballast: version control for what a model has learned.
 *
 * Six sentences hold for every function below. Failure is a negative
 * bal_code plus a text in err, which comes last and may be NULL. What is
 * created comes out first, is set only on success and is yours to _free, which
 * takes NULL. What a getter returns is borrowed from its object. A store may be
 * shared by threads; anything else belongs to one thread at a time, except that
 * bal_model_read may be called by many at once. A function that is called for
 * each of something is given what it may look at until it returns, ends the
 * walk with success by returning anything but 0, and must not itself commit,
 * merge, reset, check or collect in the store it is called from. What is listed
 * (by bal_log, bal_reflog and the functions that end in _each) is read before
 * it is told, so that whoever looks at it may take their time and hold up
 * nobody.
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
    BAL_OPEN_NO_CACHE = 4, /* neither read nor fill the view cache */
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
    /* A folder of this machine for copies of blocks that are read of a backend
     * that is far away, and the bytes of them at most (0: 10 GiB); NULL: none
     * are kept. They are of this store alone, in a folder of its id there, and
     * go when something is deleted or taken back anywhere, before the next
     * read. */
    const char *cache;
    uint64_t cache_size;
} bal_store_options;

/* ENOTFOUND: no store there (without CREATE). ECONFLICT: made with other
 * settings. EUNSUPPORTED: a newer format. */
BAL_API BAL_CHECK int bal_store_open(bal_store **out,
                                     const bal_store_options *options,
                                     bal_error *err);
BAL_API void bal_store_free(bal_store *self);
BAL_API const char *bal_store_root(const bal_store *self);

/* Settings, by their names in `ballast config`: block_size compression backend
 * db tenant default_jobs format view_cache. */
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
/* An array in memory, or a side file. */
typedef struct bal_array {
    const char *name;
    bal_part part;   /* TENSOR or FILE */
    bal_dtype dtype; /* of a TENSOR; a FILE is bytes */
    uint32_t rank;
    const uint64_t *shape; /* of a TENSOR, elements */
    const void *data;      /* little-endian, in C's order; borrowed */
    uint64_t size;         /* bytes; what the shape takes */
} bal_array;

typedef struct bal_arrays {
    const char *name;       /* what to call it in messages */
    bal_kind kind;          /* WEIGHTS, ADAPTER */
    const char *base_model; /* NULL: not told */
    const bal_array *rows;
    size_t count;
    /* Called once, with ctx, when nobody reads the arrays any more; NULL. Not
     * called where bal_model_from_arrays fails. */
    void (*release)(void *ctx);
    void *ctx;
} bal_arrays;

/* Arrays that the caller has in memory. Names and shapes are copied, bytes are
 * not. EINVAL: a name that is none or there twice, a size that is not the
 * shape's, a side file of a name that no file may have. */
BAL_API BAL_CHECK int bal_model_from_arrays(bal_model **out,
                                            const bal_arrays *arrays,
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
 * elements unless the range ends the entry. Any number of threads. len 0 reads
 * nothing and fails as reading a commit would that was taken back meanwhile. */
BAL_API BAL_CHECK int bal_model_read(bal_model *self, size_t i, uint64_t offset,
                                     void *to, size_t len, bal_error *err);
/* An entry that is to be read whole, and where to: as many bytes as it has. */
typedef struct bal_entry_to {
    size_t entry;
    void *to;
} bal_entry_to;
/* All of them, by the threads of work, which tells of progress in bytes.
 * Neighbours that share a block are best neighbours here too: one thread reads
 * them, and the block is decoded once. After a failure (of the first row that
 * failed) what is at the places is not said. ECANCELLED. */
BAL_API BAL_CHECK int bal_model_read_all(bal_model *self,
                                         const bal_entry_to *rows, size_t count,
                                         bal_work *work, bal_error *err);
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
    /* What self reads from, where it is made of other models (NULL: self
     * alone): each is read a little of right before the folder appears, so that
     * none does of what may not be read any more. */
    bal_model *const *sources;
    size_t source_count;
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

/* ---- adapters ---------------------------------------------------------- */

/* Of LoRA adapters, whose modules are maps s B A. EINVAL: another kind of
 * model; EUNSUPPORTED names what is more than that, and a factor that is not
 * finite. */

typedef struct bal_lora_options {
    uint64_t rank; /* that every module gets; 0: as energy says */
    double energy; /* 0 to 1: the least rank, of each module, that keeps this
                      share of the sum of squares of its map */
    const char *dtype; /* of the factors, "F32"; NULL: what they have */
} bal_lora_options;
/* The highest rank of an adapter's modules; 0: no module has one. */
BAL_API uint64_t bal_model_lora_rank(const bal_model *adapter);
/* The nearest adapter of another rank. A module whose map has a lower one is
 * filled up with zeros. EINVAL: neither rank nor energy, or both. */
BAL_API BAL_CHECK int bal_lora_resize(bal_model **out, bal_model *adapter,
                                      const bal_lora_options *options,
                                      bal_work *work, bal_error *err);
/* The same adapter times a number: its scales and the number in B, so that
 * rounding is all that is lost, and nothing where the number is a power of 2 or
 * its negative. dtype as above. EUNSUPPORTED: whole tensors, too. */
BAL_API BAL_CHECK int bal_lora_scale(bal_model **out, bal_model *adapter,
                                     double factor, const char *dtype,
                                     bal_error *err);

typedef struct bal_extract_options {
    bal_lora_options lora;      /* dtype NULL: F32 */
    uint64_t seed;              /* of the numbers that the search begins with */
    const char *const *targets; /* names of modules, "q_proj" or a longer end of
                                   a path; none: all linear ones */
    size_t target_count;
    const char *base_model; /* that the config names, NULL: what delta tells */
} bal_extract_options;
/* The adapter that is nearest to a delta: for each matrix that changed, of a
 * linear module, the nearest map of that rank (to about 1e-6 of what is left
 * out), by a randomised search. Factors are computed when they are read, ranks
 * of an energy at once. EINVAL: no delta, or nothing to be had of it, or
 * nothing that a target names; EUNSUPPORTED: weights stored transposed. */
BAL_API BAL_CHECK int bal_lora_extract(bal_model **out, bal_model *delta,
                                       const bal_extract_options *options,
                                       bal_work *work, bal_error *err);

/* A LoRA file under the names of kohya's sd-scripts, diffusers, ai-toolkit or
 * ComfyUI as a PEFT adapter of the base whose modules those names mean.
 * base_model as above. Factors keep their dtype, or the one that they have in
 * common. EINVAL: a name that means no module of the base, or several;
 * EUNSUPPORTED: a tensor of no such dialect, DoRA, LoHa, LoKr, convolutions;
 * ECORRUPT: a factor alone, shapes that do not fit. Keeps a reference on the
 * file. */
BAL_API BAL_CHECK int bal_lora_import(bal_model **out, bal_model *file,
                                      bal_model *base, const char *base_model,
                                      bal_error *err);

/* Two adapters' maps for one module, 0 where one of them has none, in
 * Frobenius' norm. */
typedef struct bal_lora_row {
    const char *module;
    uint64_t rank_a, rank_b; /* as stored; 0: there is no such module */
    double norm_a, norm_b;
    double difference; /* |b - a| */
    /* By bal_lora_spaces: how the maps' column spaces (what they put out) lie
     * to each other, and their row spaces (what they look at). The mean of the
     * squares of the principal angles' cosines, 1 where one space lies in the
     * other; and the largest of these angles, in degrees. NaN: a map is 0, or
     * not there. */
    double columns, rows;
    double column_angle, row_angle;
} bal_lora_row;
typedef int bal_lora_fn(void *ctx, const bal_lora_row *row);

/* How far an adapter is from what it stands for: |b - a| / |a|, of all modules
 * together and of the one that is worst. Infinite where |a| is 0 and |b| is
 * not. */
typedef struct bal_residual {
    double total;
    double worst;
    char
        module[256]; /* the worst one, cut if it is longer; "": there is none */
} bal_residual;
/* One row for each module of either, by name, and what they come to; fn and
 * residual may be NULL. EINVAL: shapes that differ. */
BAL_API BAL_CHECK int bal_lora_compare(bal_residual *residual, bal_model *a,
                                       bal_model *b, bal_work *work,
                                       bal_lora_fn *fn, void *ctx,
                                       bal_error *err);
/* The same with how their spaces lie to each other. */
BAL_API BAL_CHECK int bal_lora_spaces(bal_residual *residual, bal_model *a,
                                      bal_model *b, bal_work *work,
                                      bal_lora_fn *fn, void *ctx,
                                      bal_error *err);

/* The same of an adapter and the delta that it was extracted from, by the names
 * of the delta's tensors. Those that the adapter does not have have rank 0 and
 * norms of 0, and are not in the residual. */
BAL_API BAL_CHECK int bal_lora_distance(bal_residual *residual,
                                        bal_model *delta, bal_model *adapter,
                                        bal_work *work, bal_lora_fn *fn,
                                        void *ctx, bal_error *err);

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
    const bal_id *anchor;   /* a commit that it is likely near to in bits, NULL:
                               not known; what it is stored by is looked for */
    const bal_residual *residual; /* goes into metadata as "residual"; NULL: it
                                     is not known, or nothing is lost */
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
    bool anchored; /* new blocks are stored by their distance from those of: */
    bal_id anchor; /* this commit */
    bool lossy;    /* of a view: a rank or an energy took something off */
    bal_residual residual; /* that is so much, and in the metadata */
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

/* ---- from one store into another ---------------------------------------- */

enum bal_push_flags {
    BAL_PUSH_FORCE = 1, /* move refs that do not lead on, too */
};

typedef struct bal_push_options {
    const char *const *specs; /* resolved in from */
    size_t count;
    const char *op; /* for the reflog: push pull; NULL: push */
    unsigned flags;
    bal_move_fn *moved; /* told of each ref that has moved; NULL: nobody */
    void *ctx;
} bal_push_options;

typedef struct bal_push_report {
    uint64_t commits;       /* that were transferred */
    uint64_t blocks;        /* with them */
    uint64_t reused_blocks; /* that they use and that were there */
    uint64_t bytes;         /* of blocks, decoded */
    uint64_t stored_bytes;  /* the same, as stored where they went */
    uint64_t refs;          /* that were moved or made */
} bal_push_report;

/* Commits of a tenant into the tenant of the same name of another store, by the
 * threads of that one: what specs name, its ancestors and the inputs of its
 * views, as far as they are not there; ids stay. Each commit is there with all
 * that it needs or not at all, so that what was cut short goes on when it is
 * called again. A spec that is a ref moves the ref of that name last: ECONFLICT
 * unless it leads on from where it is (see FORCE), before anything is written.
 * Everything read is held against its id: ECORRUPT. ENOTFOUND: no such spec; or
 * a view has an input of another tenant that is not there. ECONFLICT: a commit
 * that is named was forgotten there; one in a history is passed over. EINVAL:
 * one store twice, tenants of two names, no spec. Fingerprints, grants and
 * proofs stay where they are. report is filled as far as it went, and may be
 * NULL. */
BAL_API BAL_CHECK int bal_push(bal_tenant *from, bal_tenant *to,
                               const bal_push_options *what,
                               bal_push_report *report, bal_error *err);

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
    bool per_input;
    const char *fallback; /* as text, NULL: required */
    double low, high;     /* inclusive */
    const char *choices;  /* "sum|count", NULL: any */
    const char *mergekit; /* its name there, NULL: none */
    const char *help;
} bal_param;

enum bal_method_flags {
    BAL_METHOD_SEEDED = 1, /* draws random numbers */
    BAL_METHOD_PEFT = 2,   /* a combination type of PEFT's, not of mergekit */
};

typedef struct bal_method_info {
    const char *name;
    const char *summary;
    const char *paper;   /* NULL: none */
    const char *formula; /* b the base, x the inputs, d their differences */
    const char *guard;   /* where 'precise' differs from it or from mergekit,
                            and why; NULL: nowhere */
    size_t min_inputs;   /* beside a base that is no input */
    size_t max_inputs;   /* 0: no limit */
    unsigned flags;
    const bal_param *params; /* ends with a row without a name */
} bal_method_info;

BAL_API size_t bal_method_count(void);
BAL_API const bal_method_info *bal_method_at(size_t i);
/* NULL: no such method. */
BAL_API const bal_method_info *bal_method_find(const char *name);

/* What a method does with a base, when inputs are whole models. */
typedef enum bal_base_use {
    BAL_BASE_NONE, /* it is one more input */
    BAL_BASE_POSSIBLE,
    BAL_BASE_NEEDED,
} bal_base_use;
BAL_API bal_base_use bal_method_base(const bal_method_info *method);

/* ENOTFOUND: no such method. */
BAL_API BAL_CHECK int bal_recipe_new(bal_recipe **out, const char *method,
                                     bal_error *err);
/* text: [tenant:]spec[@weight][,name=value]... Resolved now, once. */
BAL_API BAL_CHECK int bal_recipe_input(bal_recipe *self, bal_tenant *tenant,
                                       const char *text, bal_error *err);
/* The same of the base: what methods take differences to, or go from. Where the
 * method has no use for one it is one more input. To be called after
 * bal_recipe_input: an input that is the same commit is the base then. EINVAL:
 * a second base, a weight or parameters of a base that is no input. */
BAL_API BAL_CHECK int bal_recipe_base(bal_recipe *self, bal_tenant *tenant,
                                      const char *text, bal_error *err);
/* A parameter of the method, or space strict union dtype seed arithmetic; rank
 * or energy: what a sum of adapters is cut to, as by bal_lora_resize; or
 * mergekit_stream: the seed of mergekit's own random numbers, in its order, for
 * methods that draw some and its arithmetic; there is no other seed then.
 * EINVAL names the parameters that there are, or the bounds. */
BAL_API BAL_CHECK int bal_recipe_set(bal_recipe *self, const char *name,
                                     const char *value, bal_error *err);
/* The base is one of them. */
BAL_API size_t bal_recipe_inputs(const bal_recipe *self);
BAL_API void bal_recipe_free(bal_recipe *self);
/* Records the view; computes nothing but what a rank or an energy takes off,
 * and what it needs to refuse: kinds that do not mix, different bases, a base
 * or parameters that are missing. Defaults that were not set and a seed that
 * was not are written into recipe. */
BAL_API BAL_CHECK int bal_commit_view(bal_commit **out, bal_tenant *tenant,
                                      bal_recipe *recipe,
                                      const bal_draft *draft,
                                      bal_commit_report *report,
                                      bal_error *err);

/* ---- mergekit ---------------------------------------------------------- */

typedef int bal_imported_fn(void *ctx, const bal_commit *commit,
                            const char *ref);

typedef struct bal_import {
    const char *text; /* YAML, one document or several */
    size_t size;      /* bytes, 1 MiB at most */
    const char *what; /* what messages call it: a file's name */
    /* "MODEL=SPEC": the commit that a model's name stands for, MODEL as it is
     * written in the configuration. A name that is [tenant:] and a full id
     * stands for that. */
    const char *const *map;
    size_t map_count;
    const char *arithmetic; /* precise mergekit; NULL: mergekit */
    const char *stream;     /* the seed of mergekit's own random stream, NULL:
                               ours */
    bal_imported_fn *each;  /* every view that was recorded; NULL: none */
    bal_name_fn *not_used;  /* what is said without effect; NULL: none */
    void *ctx;
} bal_import;

/* Records what a configuration of mergekit 0.1.5 says as a view of whole
 * models. Of several documents each with a name is a view on the ref of that
 * name, which the others may name as a model; the one without goes where draft
 * says, and is *out; where all have one, *out is the last. Nothing is recorded
 * if a document is refused; a view that cannot be leaves those before it.
 * EINVAL, EUNSUPPORTED name the line. */
BAL_API BAL_CHECK int bal_import_mergekit(bal_commit **out, bal_tenant *tenant,
                                          const bal_import *import,
                                          const bal_draft *draft,
                                          bal_error *err);
/* The recipe of a view as a configuration that mergekit 0.1.5 runs, to be freed
 * with bal_text_free. Models are named as map ("MODEL=SPEC") says, else
 * tenant:id. EINVAL: not a view; EUNSUPPORTED names what mergekit has nothing
 * for. */
BAL_API BAL_CHECK int bal_export_mergekit(char **out, bal_tenant *tenant,
                                          const bal_id *commit,
                                          const char *const *map,
                                          size_t map_count, bal_error *err);

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
    bool same_bits;  /* bit for bit the same: CHANGED only where not finite */
    double relative; /* |b-a| / |a|, 2-norms in double; inf if |a| is 0 */
    double max_abs;
    double diff2, norm2; /* the sums of squares behind relative */
} bal_diff_row;
typedef int bal_diff_fn(void *ctx, const bal_diff_row *row);

/* One row for each tensor of either model, by name. A tensor absent on one side
 * of two deltas counts as zero there. EINVAL: a delta and something else. */
BAL_API BAL_CHECK int bal_diff(bal_model *a, bal_model *b, bal_work *work,
                               bal_diff_fn *fn, void *ctx, bal_error *err);

typedef enum bal_diff_flags {
    BAL_DIFF_PROBES = 1, /* "probes": each, before and after */
    BAL_DIFF_CELLS = 2,  /* "cells": each kind of module in each layer */
} bal_diff_flags;

typedef struct bal_diff_options {
    const char *names[2];     /* what models that are no commits are called */
    const bal_id *commits[2]; /* NULL: the model is none */
    bal_tenant *tenant;       /* of the commits; NULL: answers are not asked */
    const char *probe_set;    /* by a prefix of its id; NULL: one is found */
    const double *threshold;  /* NULL: 0.01 */
    unsigned flags;           /* bal_diff_flags */
    bal_work *work;           /* as for bal_diff */
    bal_diff_fn *fn;          /* each row, too; NULL: none */
    void *ctx;
} bal_diff_options;

/* The document of `ballast diff --json`, compact, to be freed with
 * bal_text_free: weights by tensor, layer and kind of module, adapters as maps,
 * and what two commits answered. If fn stops it is of the rows until then.
 * EINVAL: a delta and something else; a probe set where not both are commits.
 * ENOTFOUND: no probes of that id. */
BAL_API BAL_CHECK int bal_diff_json(char **out, bal_model *a, bal_model *b,
                                    const bal_diff_options *options,
                                    bal_error *err);

/* ---- behaviour: probes ------------------------------------------------- */

/* What a model is asked: probes in an order, known by what they are. The id is
 * the BLAKE3 of the set's canonical JSON. */
typedef struct bal_probes bal_probes;

typedef struct bal_probe {
    const char *id;
    const char *prompt;            /* NULL: a chat */
    const char *messages;          /* JSON array of {"role", "content"}; NULL */
    const char *const *references; /* right answers, any of which will do */
    size_t reference_count;
    const char *const *choices; /* "A", "B", …: what an answer may be */
    size_t choice_count;
    const char *const *stop; /* texts where an answer ends */
    size_t stop_count;
    uint64_t max_tokens; /* 0: as many as all others */
} bal_probe;

enum bal_probes_flags {
    BAL_PROBES_ESCAPES = 1, /* "\n", "\t" and "\\" in lines of plain text */
};

typedef struct bal_probes_options {
    const char *pattern; /* "{{question}} Answer:", for files that hold
                            variables and no prompts; NULL: "{{prompt}}" */
    unsigned flags;
} bal_probes_options;

/* From a file, by what is in it: one probe a line; JSON Lines of {"id"?,
 * "prompt" | "messages", "reference"?, "choices"?, "max_tokens"?, "stop"?};
 * promptfoo's tests as JSON Lines ({"vars", "assert"}) or CSV (__expected …);
 * lm-eval's samples_*.jsonl. A probe without an id has the first 12 hex digits
 * of the SHA-256 of its prompt (of its messages, canonical) for one; none may
 * be there twice. options may be NULL. EINVAL names the file, the line and what
 * is wrong; a set that would hold nothing is EINVAL, too. */
BAL_API BAL_CHECK int bal_probes_open(bal_probes **out, const char *path,
                                      const bal_probes_options *options,
                                      bal_error *err);
/* Of prompts alone. */
BAL_API BAL_CHECK int bal_probes_of(bal_probes **out,
                                    const char *const *prompts, size_t count,
                                    bal_error *err);
/* Of the canonical JSON that bal_probes_json gives. ECORRUPT. */
BAL_API BAL_CHECK int bal_probes_read(bal_probes **out, const char *json,
                                      size_t len, bal_error *err);
BAL_API const bal_id *bal_probes_id(const bal_probes *self);
BAL_API size_t bal_probes_count(const bal_probes *self);
BAL_API const bal_probe *bal_probes_at(const bal_probes *self, size_t i);
/* The index of a probe by its id; BAL_NONE. */
BAL_API size_t bal_probes_find(const bal_probes *self, const char *id);
/* Canonical JSON (RFC 8785): {"probes": [{"id", "prompt" | "messages",
 * "references"?, "choices"?, "max_tokens"?, "stop"?}], "schema":
 * "ballast/probes/1"}. */
BAL_API const char *bal_probes_json(const bal_probes *self);
/* What the file held that was not used, one name a line ("assert:contains"),
 * each once, fit for a terminal, 64 KiB at most; "" where all was. */
BAL_API const char *bal_probes_unused(const bal_probes *self);
/* One more owner; the last bal_probes_free ends it. By any thread. */
BAL_API bal_probes *bal_probes_ref(bal_probes *self);
BAL_API void bal_probes_free(bal_probes *self);

/* ---- behaviour: fingerprints ------------------------------------------- */

/* One token that may come next, and ln of its probability. */
typedef struct bal_likely {
    const char *token;
    double logprob;
} bal_likely;

/* One token that came. */
typedef struct bal_said {
    const char *token;
    double logprob;
    const bal_likely *top; /* the most likely ones, each once, in any order */
    size_t top_count;
} bal_said;

typedef struct bal_answer {
    const char *output;     /* without the prompt */
    const bal_said *tokens; /* where log-probabilities are known */
    size_t token_count;     /* 0: they are not */
} bal_answer;

/* What a model answered to a set of probes. */
typedef struct bal_fingerprint bal_fingerprint;

/* terms: JSON object of what two fingerprints must have in common to be
 * compared: {"runner", "max_tokens", …}. The set is referred to, not copied. */
BAL_API BAL_CHECK int bal_fingerprint_new(bal_fingerprint **out,
                                          bal_probes *probes, const char *terms,
                                          bal_error *err);
/* The answer to probe i; copied. Again for the same probe: it was asked again,
 * and what differs is kept as noise. EINVAL: no probe i, an answer of more than
 * BAL_ANSWER_MAX bytes, a log-probability that is not a number or above 0. */
#define BAL_ANSWER_MAX ((size_t)256 << 10)
#define BAL_SAID_MAX   ((size_t)64 << 10) /* tokens of an answer */
#define BAL_TOP_MAX    ((size_t)64)       /* likely tokens kept of each */
BAL_API BAL_CHECK int bal_fingerprint_add(bal_fingerprint *self, size_t i,
                                          const bal_answer *answer,
                                          bal_error *err);
/* JSON object of what is worth knowing beside: version, model name, times. */
BAL_API BAL_CHECK int bal_fingerprint_about(bal_fingerprint *self,
                                            const char *json, bal_error *err);
BAL_API const bal_probes *bal_fingerprint_probes(const bal_fingerprint *self);
BAL_API const char *bal_fingerprint_terms(const bal_fingerprint *self);
BAL_API const char *bal_fingerprint_facts(const bal_fingerprint *self);
/* The answer that probe i had first; NULL: none. */
BAL_API const bal_answer *bal_fingerprint_at(const bal_fingerprint *self,
                                             size_t i);
/* Answers to probe i that are different texts; 0: none. */
BAL_API size_t bal_fingerprint_distinct(const bal_fingerprint *self, size_t i);
/* Number of answered probes. */
BAL_API size_t bal_fingerprint_count(const bal_fingerprint *self);
BAL_API void bal_fingerprint_free(bal_fingerprint *self);

/* Record it of a commit, in the place of an earlier one of the same probes on
 * the same terms. Each probe must have an answer (EINVAL names one), but with
 * PARTIAL. */
enum bal_fingerprint_flags {
    BAL_FINGERPRINT_PARTIAL = 1,
};
BAL_API BAL_CHECK int bal_fingerprint_put(bal_fingerprint *self,
                                          bal_tenant *tenant,
                                          const bal_id *commit, unsigned flags,
                                          bal_error *err);

/* A fingerprint in a list. */
typedef struct bal_fingerprint_info {
    bal_id commit;
    bal_id probes;
    const char *terms;
    uint64_t answers;
    int64_t created_at;
} bal_fingerprint_info;
typedef int bal_fingerprint_fn(void *ctx, const bal_fingerprint_info *info);
/* Of a commit (NULL: of each), the latest first. */
BAL_API BAL_CHECK int bal_fingerprint_each(bal_tenant *tenant,
                                           const bal_id *commit,
                                           bal_fingerprint_fn *fn, void *ctx,
                                           bal_error *err);
/* ENOTFOUND. terms NULL: the latest on any. */
BAL_API BAL_CHECK int bal_fingerprint_open(bal_fingerprint **out,
                                           bal_tenant *tenant,
                                           const bal_id *commit,
                                           const bal_id *probes,
                                           const char *terms, bal_error *err);

/* A recorded set of probes. */
typedef struct bal_probes_info {
    bal_id id;
    uint64_t probes;
    uint64_t fingerprints;
    int64_t created_at;
} bal_probes_info;
typedef int bal_probes_fn(void *ctx, const bal_probes_info *info);
BAL_API BAL_CHECK int bal_probes_each(bal_tenant *tenant, bal_probes_fn *fn,
                                      void *ctx, bal_error *err);
/* A set by a prefix of at least 4 hex digits of its id: the whole id; the set
 * itself. ENOTFOUND; EINVAL: there are several. */
BAL_API BAL_CHECK int bal_probes_resolve(bal_id *out, bal_tenant *tenant,
                                         const char *prefix, bal_error *err);
BAL_API BAL_CHECK int bal_probes_load(bal_probes **out, bal_tenant *tenant,
                                      const char *prefix, bal_error *err);
/* Take a set away with every fingerprint of it, and scrub the database.
 * *fingerprints: how many went. ENOTFOUND. */
BAL_API BAL_CHECK int bal_probes_forget(bal_tenant *tenant, const bal_id *id,
                                        uint64_t *fingerprints, bal_error *err);

/* ---- behaviour: asking ------------------------------------------------- */

enum bal_ask_flags {
    BAL_ASK_PARTIAL = 1, /* record what came, if some did not */
    BAL_ASK_REUSE = 2,   /* take what is recorded on the same terms */
    BAL_ASK_STREAM = 4,  /* process: tensors as a safetensors stream on the
                            descriptor BALLAST_MODEL_FD, no file of them */
};

typedef struct bal_ask_options {
    const char *runner;    /* process http peft fake; required */
    const char *command;   /* process: for sh -c */
    const char *url;       /* http: with or without /v1 */
    const char *model;     /* http: the name it is served by; NULL: the one
                              that ends with the commit's first 8 hex digits.
                              fake: a glob of the tensors that count */
    const char *base;      /* folder of the base model, NULL: none */
    bal_model *base_model; /* the same where it is no folder; borrowed */
    double timeout;        /* seconds for all of it; 0: 600 */
    uint64_t max_tokens;   /* of an answer, 0: 32 */
    unsigned repeat;       /* times that each probe is asked, 0: 1 */
    unsigned top;          /* likely tokens to ask for, 0: 20 */
    unsigned parallel;     /* http: requests at once, 0: 8 */
    unsigned flags;
} bal_ask_options;

/* Ask a commit's model, and record the answers. *asked (may be NULL): false if
 * a recorded fingerprint was taken. EIO: no answers, or not as they should be,
 * or not of this model; nothing is recorded. */
BAL_API BAL_CHECK int bal_ask(bal_fingerprint **out, bool *asked,
                              bal_tenant *tenant, const bal_id *commit,
                              bal_probes *probes,
                              const bal_ask_options *options, bal_error *err);

/* Which commit changed an answer: by binary search over what lies between two
 * commits. */

/* Told of each verdict, and how many commits are still in question. */
typedef int bal_bisect_fn(void *ctx, const bal_id *commit, bool good,
                          uint64_t left);

typedef struct bal_bisect_options {
    /* Either the answers to all probes must be found to match a regular
     * expression (as re.search of Python, with limits on steps), */
    bal_probes *probes;
    const char *expect;
    /* or a command for sh -c, given the model in the folder BALLAST_MODEL, must
     * end with 0; with 125 it cannot tell, which ends the search (EIO). */
    const char *command;
    bal_ask_options ask; /* who answers; the base also for command */
    bal_bisect_fn *fn;   /* NULL: nobody is told */
    void *ctx;
} bal_bisect_options;

typedef struct bal_bisected {
    bal_id commit;    /* the first that is bad */
    uint64_t asked;   /* models that were asked */
    uint64_t between; /* commits that were in question */
} bal_bisected;

/* range: good, then bad. good must be an ancestor of bad, its answers must
 * match and those of bad must not: else EINVAL. What is recorded on the same
 * terms is not asked again, what is asked is recorded. */
BAL_API BAL_CHECK int bal_bisect(bal_bisected *out, bal_tenant *tenant,
                                 const bal_id *range,
                                 const bal_bisect_options *options,
                                 bal_error *err);

/* ---- behaviour: comparing ---------------------------------------------- */

/* What is known of a change of answers from a to b. Numbers that are not known
 * are NAN.
 *
 * Log-probabilities are compared where a's and b's answers have the same tokens
 * in front, the first that differs included: further on the two are not asked
 * the same. At each of these tokens the likely ones that both list are taken
 * one by one, everything else of either is one rest (b's 2^-20 at least: what
 * float32 can tell of it); the Kullback-Leibler divergence of a from b, sum p
 * ln(p / q) in nats, is that of these classes, and so a lower bound of that
 * over the vocabulary (data processing inequality). */
typedef struct bal_behaviour {
    uint64_t total;    /* probes that both answered */
    uint64_t moved;    /* where no answer of b is one of a */
    uint64_t unsure;   /* where a or b answered in several ways when asked
                          again */
    double similarity; /* mean over those moved: 1 - edit distance in code
                          points / the longer's length */
    uint64_t tokens;   /* compared by log-probability */
    double kld;        /* mean over tokens */
    double kld_low, kld_high; /* its 95 % interval, probes as clusters */
    double kld_p99, kld_most;
    double kld_noise; /* mean between a model and itself, NAN: asked once */
    double same_top;  /* share of tokens where the same one is likeliest */
    double perplexity_ratio;   /* of a's answers, b's over a's; a token that b
                                  does not list counts as likely as the least
                                  that it lists, so that this is a lower bound */
    uint64_t graded;           /* probes with right answers */
    uint64_t right_a, right_b; /* answered rightly */
    uint64_t only_a, only_b;   /* by one of the two alone */
    double p_value;            /* exact two-sided McNemar test */
} bal_behaviour;

typedef struct bal_probe_row {
    const bal_probe *probe;
    const char *before, *after;
    bool moved, unsure;
    double similarity;    /* 1 where not moved */
    double kld, kld_most; /* mean and largest over its tokens, NAN: unknown */
    uint64_t tokens;
    uint64_t parted;      /* tokens in front that are the same */
    int right_a, right_b; /* 1, 0; -1: there is no right answer */
    const double *klds;   /* each token's */
} bal_probe_row;
typedef int bal_probe_row_fn(void *ctx, const bal_probe_row *row);

/* fn (may be NULL) is called for each probe that both answered, in the order of
 * the set; if it stops, out is of those it was called for. EINVAL: of other
 * probes, or on other terms. */
BAL_API BAL_CHECK int bal_behaviour_compare(bal_behaviour *out,
                                            const bal_fingerprint *a,
                                            const bal_fingerprint *b,
                                            bal_probe_row_fn *fn, void *ctx,
                                            bal_error *err);
/* The fingerprints that two commits have of the same probes on the same terms,
 * those made last; of probes with an id of that prefix, if it is not NULL. Both
 * NULL where there are none. ENOTFOUND: none of that prefix. */
BAL_API BAL_CHECK int
bal_behaviour_find(bal_fingerprint **a, bal_fingerprint **b, bal_tenant *tenant,
                   const bal_id *commits, const char *prefix, bal_error *err);

/* ---- .wdelta files ----------------------------------------------------- */

/* A file of deltatensors that is open: of format version 1 (0.1, 0.2) or 2
 * (0.3, and ours). docs/format.md says what is in one. */
typedef struct bal_wdelta bal_wdelta;

typedef struct bal_wdelta_info {
    const char *path;
    uint64_t size; /* of the file */
    uint32_t version;
    const char *strategy;    /* what it was saved with as a whole */
    const char *parent_hash; /* 64 hex digits: SHA-256 of what it is based on */
    size_t tensors;
} bal_wdelta_info;

typedef struct bal_wdelta_row {
    const char *name;
    const char *strategy; /* of this tensor */
    const char *dtype;    /* the base's where it is told, else float32 */
    uint32_t rank;
    const uint64_t *shape;
    uint64_t bytes; /* of its arrays */
} bal_wdelta_row;

/* Reads what tells of the arrays, not the arrays. ECORRUPT; EUNSUPPORTED: a
 * newer version, or a strategy that is not known. */
BAL_API BAL_CHECK int bal_wdelta_open(bal_wdelta **out, const char *path,
                                      bal_error *err);
BAL_API void bal_wdelta_info_get(bal_wdelta_info *out, const bal_wdelta *self);
/* Tensor i, in the order of the file's header. */
BAL_API void bal_wdelta_at(bal_wdelta_row *out, const bal_wdelta *self,
                           size_t i);
BAL_API void bal_wdelta_free(bal_wdelta *self);

/* Reads the files, the oldest first, and the base through: each file's bytes
 * are those that were written, the first was made against base, each other one
 * against what base and the files before it give. ECORRUPT names the file. how
 * (NULL, or room for count): what the parent's hash turned out to be over. */
BAL_API BAL_CHECK int bal_wdelta_verify(bal_wdelta *const *files, size_t count,
                                        bal_model *base, bal_work *work,
                                        const char **how, bal_error *err);
/* base + files, the oldest first, as a model of the base's dtypes, each value
 * rounded once; checks nothing of the above. The files must outlive it. */
BAL_API BAL_CHECK int bal_model_from_wdelta(bal_model **out, bal_model *base,
                                            bal_wdelta *const *files,
                                            size_t count, bal_error *err);

typedef struct bal_wdelta_options {
    const char *strategy;    /* int4 sparse quantized lossless; NULL: int4 */
    double outlier_fraction; /* of int4; less than 0: 0.01 */
    double sparsity;         /* of sparse, below 1; less than 0: 0.9 */
    double max_error;        /* for every tensor |got - tuned| is at most this
                                times |tuned - base|; less than 0: no limit */
    bal_wdelta *const *parents; /* that it is to be the next link of */
    size_t parent_count;
    const char *const *avoid; /* paths that out may not lie in or be */
    size_t avoid_count;
} bal_wdelta_options;

typedef struct bal_wdelta_saved {
    uint64_t tensors;
    uint64_t size; /* of the file */
    uint32_t version;
    char parent_hash[65];
} bal_wdelta_saved;

/* Writes tuned's difference to base (to base and the parents on it) as a file
 * under its final name, complete or not at all. EINVAL: other tensors or shapes
 * than base has, or a parameter; EUNSUPPORTED: a dtype that the strategy has no
 * differences of, or a limit that it cannot keep. saved may be NULL. */
BAL_API BAL_CHECK int bal_wdelta_save(const char *out, bal_model *tuned,
                                      bal_model *base,
                                      const bal_wdelta_options *options,
                                      bal_wdelta_saved *saved, bal_work *work,
                                      bal_error *err);

typedef struct bal_wdelta_quality {
    const char *name;
    double error2; /* |got - tuned|^2, in double */
    double delta2; /* |tuned - base|^2 */
    double max_abs;
    uint64_t wrong; /* elements whose difference is not finite */
} bal_wdelta_quality;
typedef int bal_wdelta_quality_fn(void *ctx, const bal_wdelta_quality *row);
/* How near got comes to tuned, tensor by tensor, against how far base is. */
BAL_API BAL_CHECK int bal_wdelta_compare(bal_model *got, bal_model *tuned,
                                         bal_model *base, bal_work *work,
                                         bal_wdelta_quality_fn *fn, void *ctx,
                                         bal_error *err);

/* ---- sharing ----------------------------------------------------------- */

/* One manifest of one tenant, that another tenant may build views over. */
typedef struct bal_grant_info {
    const char *owner;
    const char *grantee;
    bal_id manifest;
    bal_id commit; /* by which it was granted */
    int64_t created_at;
    int64_t revoked_at; /* 0: live */
} bal_grant_info;
typedef int bal_grant_fn(void *ctx, const bal_grant_info *grant);

/* Grants the manifest of one of the tenant's commits; one that was revoked is
 * live again. The grantee need not exist. fn (NULL: not asked for) is called
 * with it once. EINVAL: a name, or the tenant itself. ENOTFOUND: no commit. */
BAL_API BAL_CHECK int bal_grant(bal_tenant *tenant, const bal_id *commit,
                                const char *grantee, bal_grant_fn *fn,
                                void *ctx, bal_error *err);
typedef int bal_view_fn(void *ctx, const char *tenant, const bal_id *commit);
/* Takes back what was granted to grantee: the manifest of commit, also if the
 * commit's ref has moved since or it is granted under another commit; all with
 * commit NULL. *revoked tells how many. fn is called for each view that can no
 * longer resolve, of this tenant and of the grantee only, however many hops
 * downstream. ENOTFOUND: nothing live. */
BAL_API BAL_CHECK int bal_revoke(bal_tenant *tenant, const bal_id *commit,
                                 const char *grantee, uint64_t *revoked,
                                 bal_view_fn *fn, void *ctx, bal_error *err);
/* Given and received, live ones first, then by time. */
BAL_API BAL_CHECK int bal_grant_each(bal_tenant *tenant, bal_grant_fn *fn,
                                     void *ctx, bal_error *err);

/* ---- keys -------------------------------------------------------------- */

/* An Ed25519 pair, its public half, or a shared secret. */
typedef struct bal_key bal_key;

/* A new pair. */
BAL_API BAL_CHECK int bal_key_generate(bal_key **out, bal_error *err);
/* A PEM file (PKCS#8 pair or SPKI public half). A pair that others may read is
 * loaded, and the log sink told. EINVAL: not an Ed25519 key. */
BAL_API BAL_CHECK int bal_key_load(bal_key **out, const char *path,
                                   bal_error *err);
/* What BALLAST_SIGNING_KEY holds: the path of a PEM file (it has a '/' or ends
 * in ".pem", or there is such a file), else a shared secret of 16 bytes or
 * more. NULL in *out: it is not set. */
BAL_API BAL_CHECK int bal_key_environment(bal_key **out, bal_error *err);
/* The hex SHA-256 of the public half's SPKI DER; of a secret, "hmac:" and 16
 * hex digits of a tag of it. */
BAL_API const char *bal_key_id(const bal_key *self);
/* PEM of the public half; NULL: a shared secret has none. */
BAL_API const char *bal_key_public(const bal_key *self);
/* The pair as PEM, mode 0600, durable. EEXISTS: never over a file. */
BAL_API BAL_CHECK int bal_key_write(const bal_key *self, const char *path,
                                    bal_error *err);
BAL_API void bal_key_free(bal_key *self);
/* Makes the key's public half one by which the store's proofs are trusted. The
 * first key that deletes in a store is trusted by it. */
BAL_API BAL_CHECK int bal_key_trust(bal_store *store, const bal_key *key,
                                    bal_error *err);

/* ---- forgetting and proofs --------------------------------------------- */

typedef struct bal_proof bal_proof;

enum bal_forget_flags {
    BAL_FORGET_DRY_RUN = 1, /* the plan: nothing is changed, no proof */
};

typedef struct bal_forget_options {
    const bal_id *commit; /* NULL: the whole tenant */
    const char *reason;   /* required */
    const bal_key *key;   /* NULL: unsigned, if the store trusts no key yet */
    const char *key_path; /* of key: where a later command finds it if this one
                             is killed. NULL: the environment */
    unsigned flags;
} bal_forget_options;

/* Removes a commit, or all that a tenant has, so that no byte of it is left in
 * the store, and makes a proof of that. Whatever is killed is finished by the
 * next command that opens the store. Commits on it keep their ids; refs go to
 * its parent. EINVAL: a reason that is empty, longer than 64 KiB or not UTF-8;
 * a key that cannot sign; none, in a store whose proofs are signed. ENOTFOUND:
 * nothing matched. ECONFLICT: a key that the store does not trust.
 * ECORRUPT: the rows that it would go by are not what the manifests say, or the
 * journal has a plan that its key has not signed. EBUSY: others are at work;
 * where the deletion had begun, it will be finished by the next command. */
BAL_API BAL_CHECK int bal_forget(bal_proof **out, bal_tenant *tenant,
                                 const bal_forget_options *options,
                                 bal_error *err);

typedef int bal_pending_fn(void *ctx, const char *tenant, const char *reason,
                           const char *key_id);
/* Deletions whose bytes are gone and which wait for their signature, because
 * the process was killed and its key is not at hand: those that key (NULL:
 * none) was to sign are signed, then fn (NULL: not asked for) is called for
 * each that still waits. */
BAL_API BAL_CHECK int bal_forget_finish(bal_store *store, const bal_key *key,
                                        bal_pending_fn *fn, void *ctx,
                                        bal_error *err);

typedef struct bal_proof_info {
    char attestation[65]; /* hex SHA-256 of the statement */
    const char *tenant;
    const char *reason;
    const char *algorithm; /* ed25519 hmac-sha256 none */
    const char *key_id;    /* NULL: unsigned */
    uint64_t log_index;
    uint64_t commits, manifests, blocks, bytes_freed;
    uint64_t revoked_grants;
    int64_t completed_at;
    const char *statement; /* canonical JSON (RFC 8785) of an in-toto
                              statement; of a dry run the plan. NULL: it cannot
                              be read, which bal_proof_verify explains */
    const char *envelope;  /* DSSE, JSON; NULL: as before, or a dry run */
} bal_proof_info;

/* One of the store's proofs, by the 64 hex digits of its attestation.
 * ENOTFOUND. */
BAL_API BAL_CHECK int bal_proof_open(bal_proof **out, bal_store *store,
                                     const char *attestation, bal_error *err);
/* A bundle that bal_proof_bundle made, or a bare DSSE envelope. 256 MiB at
 * most. ECORRUPT. */
BAL_API BAL_CHECK int bal_proof_load(bal_proof **out, const char *path,
                                     bal_error *err);
BAL_API const bal_proof_info *bal_proof_info_of(const bal_proof *self);
/* Each view that the deletion broke, of its tenant and direct grantees. */
BAL_API BAL_CHECK int bal_proof_views(const bal_proof *self, bal_view_fn *fn,
                                      void *ctx, bal_error *err);
/* What is retained although it was asked for, and why. */
typedef int bal_retained_fn(void *ctx, const char *kind, const bal_id *id,
                            const char *why);
BAL_API BAL_CHECK int bal_proof_retained(const bal_proof *self,
                                         bal_retained_fn *fn, void *ctx,
                                         bal_error *err);
BAL_API void bal_proof_free(bal_proof *self);
typedef int bal_proof_fn(void *ctx, const bal_proof *proof);
/* In the order of the log. tenant NULL: of every tenant. */
BAL_API BAL_CHECK int bal_proof_each(bal_store *store, bal_tenant *tenant,
                                     bal_proof_fn *fn, void *ctx,
                                     bal_error *err);

typedef enum bal_finding {
    BAL_FINDING_PROBLEM, /* the proof does not hold */
    BAL_FINDING_NOTE,    /* it does: "present again since …", unsigned */
} bal_finding;
typedef int bal_finding_fn(void *ctx, bal_finding finding, const char *text);
typedef struct bal_verdict {
    uint64_t problems;
    bool signed_by_trusted; /* else it is consistent at most */
} bal_verdict;
/* Checks it anew: that the statement is canonical and says what its attestation
 * covers; that a trusted key signed it (key, or with NULL those that the store
 * trusts; never one that the proof brings); that the log holds it, under a
 * checkpoint; and unless store is NULL (offline: key is then needed, and the
 * proof a bundle) that neither database, backend listing, view cache nor a
 * journal has anything of what it names. Success says that the check went
 * through, verdict what it found. */
BAL_API BAL_CHECK int bal_proof_verify(const bal_proof *self, bal_store *store,
                                       const bal_key *key, bal_finding_fn *fn,
                                       void *ctx, bal_verdict *verdict,
                                       bal_error *err);

/* Texts that end with a newline, to be freed with bal_text_free. */
/* The envelope, its place in the log and the log's head, as one JSON document
 * that verifies without the store. */
BAL_API BAL_CHECK int bal_proof_bundle(char **out, bal_store *store,
                                       const bal_proof *proof, bal_error *err);
/* The log's head, signed by key (NULL: the one signed last). ENOTFOUND: none
 * was ever signed. */
BAL_API BAL_CHECK int bal_proof_checkpoint(char **out, bal_store *store,
                                           const bal_key *key, bal_error *err);
/* JSON: that the log's first `from` entries are the beginning of its first
 * `to` (0: all); with proof, that proof's place among the first `to`. */
BAL_API BAL_CHECK int bal_proof_prove(char **out, bal_store *store,
                                      const bal_proof *proof, uint64_t from,
                                      uint64_t to, bal_error *err);
BAL_API void bal_text_free(char *text);

/* Notes that a commit was written to a folder, so that its deletion can name
 * the copy. */
BAL_API BAL_CHECK int bal_exported(bal_tenant *tenant, const bal_id *commit,
                                   const char *path, bal_error *err);

/* ---- serving: streams, engines, exports --------------------------------- */

/* A model's tensors as the bytes of one safetensors file: the file that they
 * were committed from, where it was one and still fits; else the one that
 * bal_model_write would make if it made one. Keeps a reference on the model. */
typedef struct bal_stream bal_stream;
/* EINVAL: a model without tensors. */
BAL_API BAL_CHECK int bal_stream_open(bal_stream **out, bal_model *model,
                                      bal_error *err);
BAL_API uint64_t bal_stream_size(const bal_stream *self); /* bytes */
/* Bytes [offset, offset + len), wherever they begin. Any number of threads. */
BAL_API BAL_CHECK int bal_stream_read(bal_stream *self, uint64_t offset,
                                      void *to, size_t len, bal_error *err);
BAL_API void bal_stream_free(bal_stream *self);

/* What serves adapters, and what is known of it. */
typedef struct bal_engine_info {
    const char *name;    /* vllm sglang llama.cpp peft */
    const char *version; /* "vLLM 0.32.0": where its rules were learned */
    uint64_t max_rank;   /* that it takes unless it is started with another;
                            0: any */
} bal_engine_info;
BAL_API size_t bal_engine_count(void);
BAL_API const bal_engine_info *bal_engine_at(size_t i);
/* NULL: no such engine. */
BAL_API const bal_engine_info *bal_engine_find(const char *name);

/* What an engine makes of something that an adapter has. */
typedef enum bal_outcome {
    BAL_OUTCOME_REFUSED, /* it does not load the adapter */
    BAL_OUTCOME_WRONG,   /* it loads it, and answers as another model would */
    BAL_OUTCOME_FATAL,   /* it loads it, and a later request ends the server */
    BAL_OUTCOME_ADAPTED, /* one of these, before bal_lora_adapt rewrote it */
    BAL_OUTCOME_NOTED,   /* no harm: something that it passes over */
} bal_outcome;

typedef struct bal_preflight_row {
    const char *rule; /* "rank-pattern": docs/preflight.md has the list */
    bal_outcome outcome;
    const char *engine; /* "vLLM 0.32.0" */
    const char *where;  /* the tensor, module or key of the config; "": all */
    const char *text;   /* one line: what is so, and what comes of it */
} bal_preflight_row;
typedef int bal_preflight_fn(void *ctx, const bal_preflight_row *row);

typedef struct bal_serving_options {
    const char *engine; /* a bal_engine_info's name */
    bal_model *base;    /* whose modules and shapes are compared; NULL: none */
    uint64_t max_rank;  /* that the server was started with; 0: the engine's */
} bal_serving_options;

/* Calls fn for each rule that an adapter meets, by rule, then by place; reads
 * its tensors through once. None with an outcome of REFUSED, WRONG or FATAL:
 * the engine answers as PEFT would. EINVAL: no PEFT adapter, no such engine. */
BAL_API BAL_CHECK int bal_preflight(bal_model *adapter,
                                    const bal_serving_options *options,
                                    bal_preflight_fn *fn, void *ctx,
                                    bal_error *err);
/* The same maps in a form that the engine takes: scales, rslora and patterns
 * folded into B, ranks filled up with zeros to one, modules that it wants
 * beside others added as zeros (base is needed for their shapes), names and
 * config as it expects them. Each rule that this answers is told to fn as
 * ADAPTED, with the rounding that it took where it is not exact; what it cannot
 * answer is left, for bal_preflight to find. The adapter itself (a reference)
 * where nothing is to be done. Keeps a reference on the adapter. EINVAL as
 * above. */
BAL_API BAL_CHECK int bal_lora_adapt(bal_model **out, bal_model *adapter,
                                     const bal_serving_options *options,
                                     bal_preflight_fn *fn, void *ctx,
                                     bal_error *err);
/* Writes a LoRA adapter as a GGUF file for llama.cpp, complete or not at all,
 * with the names and the order of rows that its own converter gives that base
 * (its config.json says which architecture); scales that one alpha does not
 * give are folded into B. Tensors keep their dtype where GGUF has it, else they
 * are F32. EEXISTS; EINVAL: no base; EUNSUPPORTED names the architecture,
 * module or tensor that it has no name for. */
BAL_API BAL_CHECK int bal_gguf_write(const char *out, bal_model *adapter,
                                     bal_model *base, bal_error *err);

enum bal_export_flags {
    BAL_EXPORT_ADAPT = 1, /* bal_lora_adapt for the engine */
};

typedef struct bal_export_options {
    const char *dir;           /* made if need be */
    bal_serving_options serve; /* engine NULL: as it is, no pre-flight */
    bal_preflight_fn *told;    /* each rule that was met; NULL: none */
    void *ctx;
    unsigned flags;
} bal_export_options;

typedef struct bal_exported_info {
    const char *name; /* that a server is to know it by: tenant-ref-<8 hex>, or
                         tenant-<12 hex>; never the same for two contents */
    const char *path; /* of the folder, absolute: <dir>/<tenant>/<commit> */
    const char *tenant;
    const char *ref; /* NULL: the spec was no ref */
    bal_id commit, manifest;
    uint32_t int_id;
    const char *base_model; /* NULL: not told */
    uint64_t rank;          /* the highest of its modules */
    bool reused;            /* it was there, and was verified */
} bal_exported_info;
typedef int bal_exported_fn(void *ctx, const bal_exported_info *info);

/* Writes an adapter commit (or a view of adapters) as a folder that an engine
 * loads, complete or not at all, with a ballast.json that has the digest of
 * each file; files that another export of the tenant in that place has
 * already are hard links to it. One that is there is verified by these digests:
 * not read as whole if it is right, an error (ECONFLICT) if it is not what is
 * asked for, since a server may have it loaded; ECORRUPT if it was changed.
 * Resolves spec once. fn is called once. EUNSUPPORTED: not an adapter, or a
 * rule of the engine's that it meets (the first; all are told). EBROKEN: a view
 * that lost an input, even though the folder may be there. The folder is noted
 * as by bal_exported. */
BAL_API BAL_CHECK int bal_export(bal_tenant *tenant, const char *spec,
                                 const bal_export_options *options,
                                 bal_exported_fn *fn, void *ctx,
                                 bal_error *err);
/* A folder that was (why NULL) or was not removed, and why not. */
typedef int bal_pruned_fn(void *ctx, const char *path, const char *why);
/* Removes the tenant's exports below dir but those of the commits kept: only
 * folders that bal_export wrote and nobody changed, and none that a server is
 * known to have loaded (bal_loaded_each). */
BAL_API BAL_CHECK int bal_export_prune(bal_tenant *tenant, const char *dir,
                                       const bal_id *keep, size_t count,
                                       bal_pruned_fn *fn, void *ctx,
                                       bal_error *err);

/* What a server was told to load. */
typedef struct bal_loaded {
    const char *server; /* URL, without user and password */
    const char *name;   /* that it has there */
    const char *path;   /* of the folder */
    bal_id commit;
    int64_t loaded_at;
    int64_t unloaded_at; /* 0: not unloaded. An engine may keep the weights in
                            memory after that until it is restarted */
} bal_loaded;
/* Notes it, durably; server and name again: replaced. ENOTFOUND: the commit is
 * not there (any more). */
BAL_API BAL_CHECK int bal_loaded_put(bal_tenant *tenant, const bal_loaded *row,
                                     bal_error *err);
typedef int bal_loaded_fn(void *ctx, const bal_loaded *row);
/* Of a commit, or of all (NULL), by server and name. */
BAL_API BAL_CHECK int bal_loaded_each(bal_tenant *tenant, const bal_id *commit,
                                      bal_loaded_fn *fn, void *ctx,
                                      bal_error *err);
/* Takes back the note of a server, as after its restart. */
BAL_API BAL_CHECK int bal_loaded_drop(bal_tenant *tenant, const char *server,
                                      const char *name, bal_error *err);

/* A number that differs from an earlier one if anything that the store's
 * database knows has changed between; it may differ without that. Costs no
 * query, for who asks at every request. ECONFLICT: the store has moved, and is
 * to be opened again. */
BAL_API BAL_CHECK int bal_store_changes(uint64_t *out, bal_store *self,
                                        bal_error *err);

enum { BAL_STORE_ID_ROOM = 65 };
/* The id of the tenant's store, which every root on one database has. */
BAL_API BAL_CHECK int bal_tenant_store_id(char out[BAL_STORE_ID_ROOM],
                                          bal_tenant *tenant, bal_error *err);

/* ---- upkeep ------------------------------------------------------------ */

typedef struct bal_problem {
    const char *kind; /* missing-block corrupt-block orphan-block … */
    const char *what; /* "tenant:id", a path, a ref */
    const char *detail;
    bool expected; /* a view that lost an input, not a damage */
} bal_problem;
typedef int bal_problem_fn(void *ctx, const bal_problem *problem);

enum bal_fsck_flags {
    BAL_FSCK_FAST = 1,   /* names and sizes; no bytes are read */
    BAL_FSCK_REPAIR = 2, /* what can be without loss: orphans, temporaries */
};

typedef struct bal_fsck_report {
    uint64_t commits, blocks, bytes; /* checked */
    uint64_t problems;
    uint64_t healed; /* blocks that were put again; told as expected */
} bal_fsck_report;

typedef struct bal_fsck_options {
    unsigned flags;
    const char *from; /* with REPAIR: a model folder to heal blocks from whose
                         bytes are damaged or missing. NULL: none */
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
    uint64_t recompressed;              /* blocks */
    uint64_t bytes_before, bytes_after; /* of these, at rest */
} bal_gc_report;
enum bal_gc_flags {
    BAL_GC_DRY_RUN = 1,    /* only count */
    BAL_GC_RECOMPRESS = 2, /* and store what stays anew */
};
/* Removes blocks that no commit uses, alone in the store while it works
 * (EBUSY). tenant NULL: of every tenant. RECOMPRESS: then every block by the
 * store's present compression, each commit by the distance from the earlier one
 * that is nearest; no id changes by it. */
BAL_API BAL_CHECK int bal_gc(bal_store *store, bal_tenant *tenant,
                             unsigned flags, bal_gc_report *report,
                             bal_error *err);

typedef struct bal_copy_report {
    uint64_t blocks, bytes; /* that were copied, at rest */
    uint64_t present;       /* blocks that were there from an earlier try */
    uint64_t rows;          /* of the database; 0: it stays where it is */
} bal_copy_report;
/* Copies the store's blocks to another backend, its database to another one, or
 * both (NULL: that stays), verifies what arrived, and then is the store at the
 * new place: ids, history, proofs and settings are the same. What is at the old
 * place is left there, and is no store any more. Alone in the store while it
 * works (EBUSY). Cut short, the store is where it was, and the next try copies
 * what is missing. self is to be freed afterwards, and opened again. EINVAL:
 * neither is named. ECONFLICT: another store is there; a deletion is not done.
 * ECORRUPT names a block that did not arrive as it should. */
BAL_API BAL_CHECK int bal_store_copy(bal_store *self, const char *backend,
                                     const char *db, bal_copy_report *report,
                                     bal_error *err);

typedef struct bal_stats {
    uint64_t commits, manifests, blocks;
    uint64_t logical_bytes; /* of every commit, as if stored whole */
    uint64_t unique_bytes;  /* of every block, decoded */
    uint64_t stored_bytes;  /* of every block, as stored */
} bal_stats;
/* Blocks by how they are coded. */
typedef struct bal_codec_stats {
    const char *codec;
    uint64_t blocks;
    uint64_t bytes;  /* decoded */
    uint64_t stored; /* at rest */
} bal_codec_stats;
typedef int bal_codec_stats_fn(void *ctx, const bal_codec_stats *row);
/* Each codec that there are blocks of. tenant NULL: the whole store. */
BAL_API BAL_CHECK int bal_stats_codecs(bal_store *store, bal_tenant *tenant,
                                       bal_codec_stats_fn *fn, void *ctx,
                                       bal_error *err);
/* tenant NULL: the whole store. */
BAL_API BAL_CHECK int bal_stats_get(bal_stats *out, bal_store *store,
                                    bal_tenant *tenant, bal_error *err);

#ifdef __cplusplus
}
#endif
#endif
