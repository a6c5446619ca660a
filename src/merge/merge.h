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

#include "kernel/kernels.h"
#include "model/model.h"

/* ---- methods ------------------------------------------------------------ */

/* What an input that lacks a tensor counts as (unless the recipe is strict),
 * where inputs are differences. Of whole models it is always left out. */
typedef enum bal_absent {
    BAL_ABSENT_ZERO, /* a difference of nothing */
    BAL_ABSENT_SKIP, /* left out of the tile's inputs */
} bal_absent;

typedef struct bal_values bal_values; /* parameters, resolved for one tensor */

/* The same range of one tensor of every input. */
typedef struct bal_tile {
    const double *const *inputs; /* count of them, n elements each */
    const double *base;          /* NULL in delta space */
    const double *weights;       /* count of them */
    const size_t *which;         /* count: which of the recipe's inputs it is */
    size_t count;
    size_t n;
    uint64_t start; /* index in the tensor of the first element */
    const char *tensor;
    const void *prepared; /* what prepare left, for this tensor */
} bal_tile;

typedef struct bal_method {
    bal_method_info info;
    bal_absent absent;
    /* Refuse weights that nothing can be computed of (EINVAL), before anything
     * is read: of all inputs, and of those that have a tensor. NULL: all are
     * fine. */
    int (*check)(const double *weights, size_t count, const bal_values *values,
                 bal_error *err);
    /* True if a single input of this weight comes out as it went in: then its
     * bytes are passed on, residuals and all. NULL: never. */
    bool (*same)(double weight, const bal_values *values);
    /* What input i of all is multiplied by, where the merge is a sum of such
     * products: then adapters can be merged as the maps they are. NULL: it is
     * not, and product space is refused. */
    double (*share)(const double *weights, size_t count, size_t i,
                    const bal_values *values);
    /* Whole-tensor numbers first (norms, thresholds), NULL: none needed. Called
     * once a tensor, before its first tile; may walk the tensor as often as it
     * likes through bal_view_tiles. *out is freed with free(). */
    int (*prepare)(void **out, bal_model *view, size_t i,
                   const bal_values *values, bal_error *err);
    /* out[k] for each of tile->n elements, from the elements of that index and
     * what was prepared alone: how a tensor is cut into tiles must not show. */
    int (*merge)(double *out, const bal_tile *tile, const bal_values *values,
                 bal_error *err);
} bal_method;

extern const bal_method bal_methods[];
extern const size_t bal_methods_count;
const bal_method *bal_method_row(const char *name); /* NULL: none */

/* A parameter of the recipe, by a name that the method has; an integer or the
 * index of a choice too. */
double bal_value_float(const bal_values *self, const char *name);
bool bal_value_bool(const bal_values *self, const char *name);
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
    double weight;
    json_t *parameters; /* object of its own parameters, name to text; NULL:
                           none. "weight" in it is the weight, told */
    bool weighted;      /* the weight was told: bal_recipe_add sets it */
} bal_input;

struct bal_recipe {
    const bal_method *method;
    bal_space space;
    bool strict;
    int dtype;          /* bal_dtype of the result, -1: the inputs' own */
    json_t *parameters; /* object, name to text (shortest round trip) */
    double weight;      /* of inputs that tell none */
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
 * tenant NULL if not named. A weight that is told is in parameters too, under
 * that name; one that is not is 1. The "@{1}" of a spec is no weight. EINVAL.
 */
typedef struct bal_input_text {
    const char *tenant, *spec;
    double weight;
    json_t *parameters; /* owned by the caller */
} bal_input_text;
BAL_CHECK int bal_input_parse(bal_input_text *out, bal_arena *arena,
                              const char *text, bal_error *err);
/* Takes input->parameters, also when it fails. EINVAL: a parameter the method
 * has not or has but once for all inputs, a weight that is not finite. */
BAL_CHECK int bal_recipe_add(bal_recipe *self, const bal_input *input,
                             bal_error *err);
/* As recorded: {"method", "arithmetic", "space", "strict", "dtype",
 * "parameters", "inputs": [{"tenant", "commit", "manifest", "weight",
 * "parameters"?}]}; floats as strings. And back: ECORRUPT; EUNSUPPORTED for a
 * method or arithmetic that a newer version wrote. */
BAL_CHECK int bal_recipe_json(json_t **out, const bal_recipe *self,
                              bal_error *err);
BAL_CHECK int bal_recipe_parse(bal_recipe **out, const json_t *json,
                               bal_error *err);

/* ---- the view ----------------------------------------------------------- */

/* Make a recipe complete before it is recorded: decide the space where it is
 * AUTO, write down every parameter's default. EINVAL, EUNSUPPORTED refuse what
 * the recipe and the kinds of its inputs tell: too few or many inputs, kinds
 * that do not mix, required parameters that are missing, weights that sum to
 * zero under normalize. What the inputs' entries tell, bal_view_open refuses.
 */
BAL_CHECK int bal_recipe_settle(bal_recipe *self, bal_model *const *inputs,
                                bal_error *err);
/* The merge as a model, of a settled recipe: nothing is computed but what is
 * read. Keeps references on the inputs, copies what it needs of the recipe.
 * EINVAL: deltas of different bases, shapes that differ, a tensor that strict
 * misses; EUNSUPPORTED: what only floats can be merged for. They name the
 * tensor and the input. */
BAL_CHECK int bal_view_open(bal_model **out, const bal_recipe *recipe,
                            bal_model *const *inputs, bal_error *err);
/* What bal_view_open does in product space: a weighted sum of LoRA adapters
 * (method->share), exactly: A = rows of A_i, B = columns of w_i s_i B_i, rank
 * the sum, alpha = r (scale 1). B is rounded once, to F32, or to the dtype that
 * all factors have.
 */
BAL_CHECK int bal_concat_open(bal_model **out, const bal_recipe *recipe,
                              bal_model *const *inputs, bal_error *err);

typedef int bal_tile_fn(void *ctx, const bal_tile *tile, bal_error *err);
/* For methods' prepare: every tile of entry i of a view, first to last. */
BAL_CHECK int bal_view_tiles(bal_model *view, size_t i, bal_tile_fn *fn,
                             void *ctx, bal_error *err);

#endif
