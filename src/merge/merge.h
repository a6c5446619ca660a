/* Merging: methods as rows, recipes as values, the view as a model.
 *
 * A method is one function over one tile of every input. The view_*.c do the
 * reading, tiling, absent tensors and rounding, once for all methods. Adding a
 * method is a file, a row in methods.c and a test against numbers that are not
 * ours. What is not a method: concat*.c, the exact form that a linear merge of
 * adapters takes in product space. */
#ifndef MERGE_MERGE_H
#define MERGE_MERGE_H

#include <jansson.h>

#include "merge/arith.h"
#include "merge/torch_stream.h"
#include "model/model.h"

/* ---- methods ------------------------------------------------------------ */

/* What an input that lacks a tensor counts as (unless the recipe is strict),
 * where inputs are differences. Of whole models it is always left out. */
typedef enum bal_absent {
    BAL_ABSENT_ZERO, /* a difference of nothing */
    BAL_ABSENT_SKIP, /* left out of the tile's inputs */
} bal_absent;

typedef struct bal_values bal_values; /* parameters, resolved for one tensor */
typedef struct bal_walk bal_walk;     /* a tensor of a view, to be walked */

/* What the recipe's base is to a method. */
typedef enum bal_role {
    BAL_ROLE_NONE,    /* nothing: where it is named it is one more input */
    BAL_ROLE_ORIGIN,  /* inputs are differences to it, and so is the result */
    BAL_ROLE_OPERAND, /* it is computed with, beside the inputs, all whole */
} bal_role;

/* What becomes of a tensor that fewer inputs have than the method takes. Where
 * the base alone has it, it is passed on whatever the method. */
typedef enum bal_few {
    BAL_FEW_RUN,  /* merged from what is left; EINVAL if the base lacks it */
    BAL_FEW_COPY, /* passed on where one has it, base or not; else EINVAL */
    BAL_FEW_DROP, /* mergekit: left out of the result; precise: the base's */
} bal_few;

/* The whole tensor that a tile is of. */
typedef struct bal_extent {
    uint32_t rank;
    const uint64_t *shape;
    uint64_t total; /* elements */
    uint64_t row;   /* elements of the last axis; total where rank is 1 */
} bal_extent;

typedef struct bal_method bal_method;

/* The same range of one tensor of every input. */
typedef struct bal_tile {
    const bal_method *method;    /* whose tile it is; of a walk too */
    const double *const *inputs; /* count of them, n elements each; with ORIGIN
                                    r(X - base) */
    const double *base;          /* with OPERAND; of differences, zeros; with
                                    ORIGIN what was taken off, or NULL */
    const double *weights;       /* count of them */
    const size_t *which;         /* count: which of the recipe's inputs it is */
    size_t count;                /* without the base */
    size_t n;
    uint64_t start; /* index in the tensor of the first element */
    const char *tensor;
    const bal_extent *extent;
    const bal_arith *arith;
    uint64_t seed;            /* of a SEEDED method */
    bal_torch_stream *stream; /* mergekit's random numbers, drawn instead of
                                 those of the seed; NULL: not asked for */
    const uint64_t *drawn;    /* count: where in it an input's begin */
    double *scratch;      /* what the method's row asks for, n doubles each */
    const void *prepared; /* what prepare left, for this tensor */
} bal_tile;

/* info.min_inputs and max_inputs do not count the base of an ORIGIN or OPERAND
 * method: slerp takes 1 and 1, model_stock 2 and more. Where an OPERAND method
 * takes one and two are given, without a base, the first is the base. */
struct bal_method {
    bal_method_info info;
    bal_absent absent;
    bal_few few;
    bal_role role;
    bool needs_base; /* in weights space */
    bool f32;        /* the result is F32 in mergekit's arithmetic, unless a
                        dtype is told */
    bool consensus;  /* of the task-vector family: signs are elected */
    /* Rows of scratch that merge needs: these, and these for each input. */
    size_t scratch, scratch_each;
    /* Tiles begin and end at multiples of so many elements. NULL: of 1. */
    uint64_t (*align)(const bal_extent *extent);
    /* Refuse weights that nothing can be computed of (EINVAL), before anything
     * is read: of all inputs, and of those that have a tensor. NULL: all are
     * fine. */
    int (*check)(const double *weights, size_t count, const bal_values *values,
                 bal_error *err);
    /* True if a single input of this weight comes out as it went in, in the
     * arithmetic of the values: then its bytes are passed on, residuals and
     * all, and no base is taken off and added. NULL: never. */
    bool (*same)(double weight, const bal_values *values);
    /* What input i of all is multiplied by, where the merge is a sum of such
     * products: then adapters can be merged as the maps they are. NULL: it is
     * not, and product space is refused. */
    double (*share)(const double *weights, size_t count, size_t i,
                    const bal_values *values);
    /* How many numbers of its stream mergekit draws for an input of a tensor.
     * NULL: none ever, and that stream is refused. */
    uint64_t (*draws)(const bal_extent *extent, size_t input,
                      const bal_values *values);
    /* Whole-tensor numbers first (norms, thresholds), NULL: none needed. Called
     * once a tensor, before its first tile; may walk the tensor as often as it
     * likes through bal_view_tiles, whose tiles have no prepared. tile: the
     * whole tensor without elements (inputs NULL, n 0). *out is freed with
     * free(). */
    int (*prepare)(void **out, bal_walk *walk, const bal_tile *tile,
                   const bal_values *values, bal_error *err);
    /* out[k] for each of tile->n elements, from the elements of that index and
     * what was prepared alone (with align: of its rows): how a tensor is cut
     * into tiles must not show. */
    int (*merge)(double *out, const bal_tile *tile, const bal_values *values,
                 bal_error *err);
    /* Of the task-vector family (merge/family.c). NULL: none. */
    const struct bal_sparsify *sparsify;
};

extern const bal_method bal_methods[];
extern const size_t bal_methods_count;
const bal_method *bal_method_row(const char *name); /* NULL: none */

/* A parameter of the recipe, by a name that the method has; an integer or the
 * index of a choice too. */
double bal_value_float(const bal_values *self, const char *name);
bool bal_value_bool(const bal_values *self, const char *name);
/* The arithmetic, for checks that mergekit does not make. */
bool bal_value_mergekit(const bal_values *self);
/* A per-input parameter, of the recipe's input that tile->which tells. */
double bal_value_input(const bal_values *self, size_t input, const char *name);

/* ---- recipes ------------------------------------------------------------ */

typedef enum bal_space {
    BAL_SPACE_AUTO,
    BAL_SPACE_DELTA,   /* inputs as differences */
    BAL_SPACE_WEIGHTS, /* inputs as whole models */
    BAL_SPACE_PRODUCT, /* adapters as the maps they are */
    BAL_SPACE_FACTORS, /* adapters' tensors as they are */
} bal_space;

/* An input as recorded: who it is, and what the recipe says about it. */
typedef struct bal_input {
    char tenant[65];
    bal_id commit;
    bal_id manifest;
    /* Told, if it is not 1 and the parameters tell none. Recorded: what it
     * weighs, NaN where that differs from tensor to tensor. */
    double weight;
    json_t *parameters;  /* object of its own parameters, name to text; NULL:
                            none. "weight" in it is the weight, told */
    size_t slice;        /* that it is a source of; 0 where there are none */
    uint64_t first, end; /* its layers, of a source */
    bool adapter;        /* an adapter, put onto input `onto` and merged as the
                            model that comes of it */
    size_t onto;
    bool carrier; /* there to be put onto, not merged: behind all others */
} bal_input;

/* Inputs that are merged with one another: all of a recipe, or the sources of
 * some of the result's layers. */
typedef struct bal_slice {
    size_t base;        /* which input is the base, BAL_NONE: none is */
    json_t *parameters; /* as a recipe's, and before them; NULL: none */
    bool added; /* the base is there as that alone; while it is settled */
} bal_slice;

struct bal_recipe {
    const bal_method *method;
    bal_space space;
    bool strict;
    int dtype;          /* bal_dtype of the result, -1: the inputs' own */
    int out_dtype;      /* the same after a merge in dtype: of mergekit's
                           arithmetic, where dtype is the inputs', too */
    json_t *parameters; /* object, name to text (shortest round trip) */
    json_t *vocabulary; /* bal_vocab_want's, NULL: the inputs' own */
    /* Of adapters as maps: what their sum is cut to, and what energy came to, a
     * module's name to its rank. 0, 0, NULL: it is not cut. */
    uint64_t rank;
    double energy;
    json_t *ranks;
    json_t *digests;   /* of differences to an origin: what they change of it,
                          name to digest; NULL: nothing is known of it */
    bool mergekit;     /* the arithmetic */
    uint64_t seed;     /* of a SEEDED method */
    bool seeded;       /* the seed was told; settling draws one */
    uint64_t stream;   /* the seed of mergekit's stream */
    bool streamed;     /* it is drawn from, in place of the seed */
    bal_slice *slices; /* one where there are none, else sliced is set */
    size_t slice_count, slice_room;
    bool sliced;
    bal_input *inputs;
    size_t count, room;
};

/* More are refused: memory is counted by it. */
#define BAL_INPUTS_MAX 4096u

/* What opening a view reaches at most. Deeper than anybody nests views, and no
 * danger to the stack. */
#define BAL_VIEW_DEPTH_MAX 32
/* A view of a view is read through both, so an input counts as often as it is
 * reached: views that name each other twice would double with each level. */
#define BAL_VIEW_INPUTS_MAX 4096

BAL_OWNABLE(bal_recipe)

/* "[tenant:]spec[@weight][,name=value]…" taken apart: texts in the arena,
 * tenant NULL if not named. A weight that is told is among the parameters,
 * under that name; values are not looked into, and may be gradients. The "@{1}"
 * of a spec is no weight. EINVAL. */
typedef struct bal_input_text {
    const char *tenant, *spec;
    json_t *parameters; /* owned by the caller */
} bal_input_text;
BAL_CHECK int bal_input_parse(bal_input_text *out, bal_arena *arena,
                              const char *text, bal_error *err);
/* Takes input->parameters, also when it fails. EINVAL: a parameter the method
 * has not or has but once for all inputs, a weight that is not finite. */
BAL_CHECK int bal_recipe_add(bal_recipe *self, const bal_input *input,
                             bal_error *err);
/* One more slice, whose sources are the inputs that say so: layers [first, end)
 * of each, as many of all, which become the result's next ones. What comes
 * before the layers is merged of the first slice's sources, what comes behind
 * of the last one's. Before any input. parameters is taken, also on failure. */
BAL_CHECK int bal_recipe_add_slice(bal_recipe *self, json_t *parameters,
                                   bal_error *err);
const bal_slice *bal_recipe_slice(const bal_recipe *self, size_t i);
/* The inputs that are not carriers. */
size_t bal_recipe_merged(const bal_recipe *self);
/* In delta space: the carrier that adapters and whole models are made
 * differences to, BAL_NONE: there is none, all inputs are differences. */
size_t bal_recipe_origin(const bal_recipe *self);
/* An input that is the base: one that is there already if it is the same commit
 * and tells nothing of its own, else the last. EINVAL: there is a base, or it
 * has a weight or parameters and the method does not take it as one more
 * input. */
BAL_CHECK int bal_recipe_add_base(bal_recipe *self, const bal_input *input,
                                  bal_error *err);
/* As recorded: {"method", "arithmetic", "space", "strict", "dtype",
 * "out_dtype"?, "parameters", "tokenizer"?, "rank"?, "energy"?, "ranks"?,
 * "digests"?, "base"?, "seed"?, "mergekit_stream"?, "slices"?: [{"base",
 * "parameters"?}], "inputs":
 * [{"tenant", "commit", "manifest", "weight", "parameters"?, "slice"?,
 * "layers"?, "onto"?, "carrier"?}]}; floats and seeds as strings, the weight of
 * an input complete. "base" is there if one is named or the method has a role
 * for it, but not beside "slices", which have their own; "mergekit_stream" if
 * it is drawn from, "seed" if it is not and the method is SEEDED. And back:
 * ECORRUPT; EUNSUPPORTED for a method or arithmetic that a newer version wrote.
 */
BAL_CHECK int bal_recipe_json(json_t **out, const bal_recipe *self,
                              bal_error *err);
BAL_CHECK int bal_recipe_parse(bal_recipe **out, const json_t *json,
                               bal_error *err);

/* ---- the view ----------------------------------------------------------- */

/* Make a recipe complete before it is recorded: decide the space where it is
 * AUTO and the base where it goes without saying, draw a seed, write down every
 * parameter's default. EINVAL, EUNSUPPORTED refuse what the recipe and the
 * kinds of its inputs tell: too few or many inputs, kinds that do not mix, a
 * base that is missing, required parameters that are, weights that sum to zero
 * under normalize, mergekit's stream beside a seed or without its arithmetic.
 * What the inputs' entries tell, bal_view_open refuses. A base that others are
 * made differences to becomes a carrier: it comes last then, among the recipe's
 * inputs and in `inputs`. */
BAL_CHECK int bal_recipe_settle(bal_recipe *self, bal_model **inputs,
                                bal_error *err);
/* The merge as a model, of a settled recipe: nothing is computed but what is
 * read. Keeps references on the inputs, copies what it needs of the recipe.
 * EINVAL: deltas of different bases, shapes that differ, a tensor that strict
 * misses or that the recipe's base lacks; EUNSUPPORTED: what only floats can be
 * merged for, rows too long for the method, BAL_TORCH_STREAM_MOST. They name
 * the tensor and the input. work is used before it returns alone, where an
 * adapter is put onto a model or inputs are made differences; NULL: one thread,
 * and no such differences.
 */
BAL_CHECK int bal_view_open(bal_model **out, const bal_recipe *recipe,
                            bal_model *const *inputs, bal_work *work,
                            bal_error *err);
/* What bal_view_open does in product space. A weighted sum of LoRA adapters
 * (method->share), exactly: A = rows of A_i, B = columns of w_i s_i B_i, rank
 * the sum, alpha = r (scale 1). B is rounded once, to F32, or to the dtype that
 * all factors have. Where the recipe has a rank or an energy: the nearest
 * adapter of those ranks to the sum in double, rounded once. Of any other
 * method: the nearest adapter to what it makes of the maps s_i B_i A_i, element
 * by element, in F32. ECORRUPT if the recipe does not tell the ranks.
 */
BAL_CHECK int bal_product_open(bal_model **out, const bal_recipe *recipe,
                               bal_model *const *inputs, bal_error *err);

/* Before a view with an energy is opened for the first time: what that comes to
 * is found out and written into the recipe. Of another recipe: nothing. */
BAL_CHECK int bal_view_ranks(bal_recipe *recipe, bal_model *const *inputs,
                             bal_work *work, bal_error *err);
/* The same of differences to an origin: digests of the tensors of it that an
 * input changes, so that a delta of another base, and applying the view to
 * another one, are refused. Reads those through. */
BAL_CHECK int bal_view_digests(bal_recipe *recipe, bal_model *const *inputs,
                               bal_work *work, bal_error *err);
/* How far the view is from what its method makes of the maps, where the recipe
 * has a rank or an energy; *lossy tells. */
BAL_CHECK int bal_view_residual(bal_residual *out, bool *lossy,
                                const bal_recipe *recipe, bal_model *view,
                                bal_model *const *inputs, bal_work *work,
                                bal_error *err);

typedef int bal_tile_fn(void *ctx, const bal_tile *tile, bal_error *err);
/* For methods' prepare: every tile of the tensor, first to last. */
BAL_CHECK int bal_view_tiles(bal_walk *walk, bal_tile_fn *fn, void *ctx,
                             bal_error *err);

#endif
