/* One row an engine. All are asked for greedy text: temperature 0, and nothing
 * that moves probabilities, whatever the server's or the model's own defaults
 * are. -1 for top_k is "all" to every version of vLLM and SGLang. */
#include "probe/http_engines.h"

#include <string.h>

#include "core/error.h"

static const bal_engine engines[] = {
    {
        .name = "vllm",
        .owner = "vllm",
        .extra = "{\"top_k\":-1,\"min_p\":0,\"repetition_penalty\":1,"
                 "\"skip_special_tokens\":true}",
        .between = "",
        .salt = true,
        .known = true,
        .top = { 20, 20 },
    },
    {
        .name = "sglang",
        .owner = "sglang",
        .extra = "{\"top_k\":-1,\"min_p\":0,\"repetition_penalty\":1,"
                 "\"skip_special_tokens\":true}",
        .between = ":",
        .known = true,
        .top = { 20, 20 },
    },
    {
        /* What it keeps of a prompt changes the last bits of an answer. */
        .name = "llama.cpp",
        .owner = "llamacpp",
        .extra = "{\"top_k\":0,\"min_p\":0,\"typical_p\":1,"
                 "\"repeat_penalty\":1,\"cache_prompt\":false}",
        .between = NULL,
        .known = true,
        .top = { 20, 20 },
    },
    {
        /* Nothing but what OpenAI's own interface takes. */
        .name = "openai",
        .owner = "",
        .extra = "{}",
        .between = "",
        .top = { 5, 20 },
    },
};

enum { ENGINES = sizeof(engines) / sizeof(engines[0]), OTHER = ENGINES - 1 };

/* What an engine tells, and where. The first row of each is what no other
 * answers. */
typedef struct fact {
    const char *engine;
    const char *path;
    const char *member;
    bool root; /* else its version */
} fact;

static const fact facts[] = {
    { "vllm", "/version", "version", false },
    { "sglang", "/get_model_info", "model_path", true },
    { "sglang", "/get_server_info", "version", false },
    { "sglang", "/server_info", "version", false },
    { "llama.cpp", "/props", "build_info", false },
    { "llama.cpp", "/props", "model_path", true },
};

enum { FACTS = sizeof(facts) / sizeof(facts[0]) };

/* The fact, *out NULL: it is not told. */
static int get_fact(const char **out, bal_server *self, const fact *row,
                    bal_error *err)
{
    BAL_OWN(json_t) value = NULL;
    int status;

    *out = NULL;
    int rc = bal_server_get(&value, &status, self, row->path, err);
    /* A page, say, of a server that has one for everything. */
    if (rc == BAL_EIO && status == 200)
        return 0;
    if (rc)
        return rc;
    const char *text = json_string_value(json_object_get(value, row->member));
    if (!text)
        return 0;
    *out = bal_arena_copy(&self->arena, text, strlen(text));
    return *out ? 0 : bal_fail_memory(err, "a server");
}

static const bal_engine *engine_of(const char *name)
{
    for (size_t i = 0; i < ENGINES; i++) {
        if (!strcmp(engines[i].name, name))
            return &engines[i];
    }
    return NULL;
}

static const bal_engine *by_owner(const json_t *models)
{
    const json_t *data = json_object_get(models, "data");
    const char *owner =
        json_string_value(json_object_get(json_array_get(data, 0), "owned_by"));

    for (size_t i = 0; owner && i < OTHER; i++) {
        if (!strcmp(engines[i].owner, owner))
            return &engines[i];
    }
    return NULL;
}

static int by_facts(bal_server *self, bal_error *err)
{
    const char *last = "";

    for (size_t i = 0; i < FACTS && !self->engine; i++) {
        const char *told;
        if (!strcmp(facts[i].engine, last))
            continue;
        last = facts[i].engine;
        int rc = get_fact(&told, self, &facts[i], err);
        if (rc)
            return rc;
        if (told)
            self->engine = engine_of(last);
    }
    if (!self->engine)
        self->engine = &engines[OTHER];
    return 0;
}

int bal_server_engine(bal_server *self, const char **root, const json_t *models,
                      bal_error *err)
{
    *root = NULL;
    self->version = "";
    self->engine = by_owner(models);
    if (!self->engine) {
        int rc = by_facts(self, err);
        if (rc)
            return rc;
    }
    for (size_t i = 0; i < FACTS; i++) {
        const char *told;
        bool known = facts[i].root ? *root != NULL : self->version[0] != '\0';
        if (known || strcmp(facts[i].engine, self->engine->name))
            continue;
        int rc = get_fact(&told, self, &facts[i], err);
        if (rc)
            return rc;
        if (told && facts[i].root)
            *root = told;
        else if (told)
            self->version = told;
    }
    return 0;
}
