/* What serves adapters, a row an engine: what was seen of it, as columns that
 * the rules of model/preflight.h look at. */
#ifndef MODEL_ENGINES_H
#define MODEL_ENGINES_H

#include "ballast.h"

/* Columns of the rules. */
typedef enum bal_engine_id {
    BAL_ENGINE_VLLM,
    BAL_ENGINE_SGLANG,
    BAL_ENGINE_LLAMA,
    BAL_ENGINE_PEFT,
    BAL_ENGINES,
} bal_engine_id;

typedef struct bal_engine {
    bal_engine_info info;
    bool patterns; /* a module's rank and scale are by pattern, and by rslora;
                      else alpha / r is everyone's */
    bool grouped;  /* wants q, k and v together, and gate with up */
    bool listed;   /* embeddings and heads only where target_modules has them */
    bool all_ranks;             /* rank_pattern counts for its highest rank */
    const char *const *modules; /* last names of all that it knows, ended by
                                   NULL; NULL: what the base has */
} bal_engine;

/* NULL: no such engine. */
const bal_engine *bal_engine_row(const char *name);
/* Which column of the rules is its own. */
bal_engine_id bal_engine_id_of(const bal_engine *self);

#endif
