/* The bodies, one row each. A schema says what is promised, and lets more be
 * there. */
#include "serve/schemas.h"

#include <assert.h>
#include <string.h>

#define ID      "{\"type\":\"string\",\"pattern\":\"^[0-9a-f]{64}$\"}"
#define TEXT    "{\"type\":\"string\"}"
#define MAYBE   "{\"type\":[\"string\",\"null\"]}"
#define COUNT   "{\"type\":\"integer\",\"minimum\":0}"
#define OBJECT  "{\"type\":\"object\"}"
#define INT_ID  "{\"type\":\"integer\",\"minimum\":1,\"maximum\":2147483647}"
#define IDS     "{\"type\":\"object\",\"additionalProperties\":" ID "}"
#define TEXTS   "{\"type\":\"object\",\"additionalProperties\":" TEXT "}"
#define LIST(X) "{\"type\":\"array\",\"items\":" X "}"
#define REF                                                                    \
    "{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$\"}"

/* The members of a commit object. */
#define COMMIT                                                                 \
    "\"id\":" ID ",\"tenant\":" TEXT ",\"manifest\":" ID                       \
    ",\"parent\":{\"type\":[\"string\",\"null\"]},\"kind\":{\"enum\":["        \
    "\"adapter\",\"delta\",\"weights\",\"view\"]},\"message\":" TEXT           \
    ",\"author\":" TEXT ",\"created_at\":{\"type\":\"string\",\"format\":"     \
    "\"date-time\"},\"base_model\":" MAYBE ",\"metadata\":" OBJECT             \
    ",\"int_id\":" INT_ID ",\"recipe\":" OBJECT
#define COMMIT_NAMES                                                           \
    "\"id\",\"tenant\",\"manifest\",\"parent\",\"kind\",\"message\","          \
    "\"author\",\"created_at\",\"base_model\",\"metadata\",\"int_id\""
#define COMMIT_SHAPE                                                           \
    "id, tenant, manifest, parent, kind, message, author, created_at, "        \
    "base_model, metadata, int_id, recipe?"

const bal_schema bal_schemas[] = {
    {
        "error",
        "application/json",
        "{\"error\": {\"code\", \"message\"}}",
        "{\"type\":\"object\",\"required\":[\"error\"],\"properties\":{"
        "\"error\":{\"type\":\"object\",\"required\":[\"code\",\"message\"],"
        "\"properties\":{\"code\":" TEXT ",\"message\":" TEXT "}}}}",
    },
    {
        "health",
        "application/json",
        "{\"status\": \"ok\"}",
        "{\"type\":\"object\",\"required\":[\"status\"],\"properties\":{"
        "\"status\":{\"const\":\"ok\"}}}",
    },
    {
        "metrics",
        "text/plain",
        "Prometheus' text format",
        TEXT,
    },
    {
        "openapi",
        "application/json",
        "an OpenAPI 3.1 document",
        OBJECT,
    },
    {
        "refs",
        "application/json",
        "{\"tenant\", \"refs\": {name: commit}}",
        "{\"type\":\"object\",\"required\":[\"tenant\",\"refs\"],"
        "\"properties\":{\"tenant\":" TEXT ",\"refs\":" IDS "}}",
    },
    {
        "loras",
        "application/json",
        "{\"tenant\", \"loras\": [{\"ref\", \"name\", \"int_id\", "
        "\"commit\", \"base_model\", \"rank\", \"url\"}], \"skipped\": {ref: "
        "why}}",
        "{\"type\":\"object\",\"required\":[\"tenant\",\"loras\",\"skipped\"],"
        "\"properties\":{\"tenant\":" TEXT ",\"loras\":{\"type\":\"array\","
        "\"items\":{\"type\":\"object\",\"required\":[\"ref\",\"name\","
        "\"int_id\",\"commit\",\"base_model\",\"rank\",\"url\"],"
        "\"properties\":{\"ref\":" REF ",\"name\":" TEXT ",\"int_id\":" INT_ID
        ",\"commit\":" ID ",\"base_model\":" MAYBE ",\"rank\":" COUNT
        ",\"url\":" TEXT "}}},\"skipped\":" TEXTS "}}",
    },
    {
        "commits",
        "application/json",
        "{\"commits\": [a commit object: " COMMIT_SHAPE "], \"next\": what to "
        "pass as after, or null}",
        "{\"type\":\"object\",\"required\":[\"commits\",\"next\"],"
        "\"properties\":{\"commits\":{\"type\":\"array\",\"items\":{\"type\":"
        "\"object\",\"required\":[" COMMIT_NAMES "],\"properties\":{" COMMIT
        "}}},\"next\":" MAYBE "}}",
    },
    {
        "commit",
        "application/json",
        "a commit object, and \"tensors\": {name: {\"dtype\", \"shape\"}}",
        "{\"type\":\"object\",\"required\":[" COMMIT_NAMES ",\"tensors\"],"
        "\"properties\":{" COMMIT ",\"tensors\":{\"type\":[\"object\","
        "\"null\"],\"additionalProperties\":{\"type\":\"object\","
        "\"required\":[\"dtype\",\"shape\"],\"properties\":{\"dtype\":" TEXT
        ",\"shape\":" LIST(COUNT) "}}}}}",
    },
    {
        "made",
        "application/json",
        "a commit object, and \"ref\"",
        "{\"type\":\"object\",\"required\":[" COMMIT_NAMES ",\"ref\"],"
        "\"properties\":{" COMMIT ",\"ref\":" REF "}}",
    },
    {
        "adapter",
        "application/octet-stream",
        "a safetensors file",
        "{\"type\":\"string\",\"contentMediaType\":"
        "\"application/octet-stream\"}",
    },
    {
        "config",
        "application/json",
        "adapter_config.json, as PEFT reads it",
        OBJECT,
    },
    {
        "diff",
        "application/json",
        "what 'ballast diff --json' gives",
        "{\"type\":\"object\",\"required\":[\"schema\"],\"properties\":{"
        "\"schema\":{\"const\":\"ballast/diff/1\"}}}",
    },
    {
        "proof",
        "application/json",
        "what 'ballast forget --json' gives",
        "{\"type\":\"object\",\"required\":[\"schema\",\"attestation\","
        "\"verified\"],\"properties\":{\"schema\":{\"const\":"
        "\"ballast/forget/1\"},\"attestation\":" ID
        ",\"verified\":{\"type\":\"boolean\"}}}",
    },
    {
        "merge",
        "application/json",
        "{\"inputs\": [{\"spec\", \"weight\", and what else the method has for "
        "one input}], \"message\", \"method\": \"linear\", \"ref\": \"main\", "
        "\"base\", \"parameters\": {name: value}, \"seed\", \"strict\": false}",
        "{\"type\":\"object\",\"required\":[\"inputs\",\"message\"],"
        "\"additionalProperties\":false,\"properties\":{\"inputs\":{\"type\":"
        "\"array\",\"minItems\":1,\"items\":{\"type\":\"object\",\"required\":"
        "[\"spec\"],\"properties\":{\"spec\":" TEXT
        "},\"additionalProperties\":{\"type\":[\"number\",\"string\","
        "\"boolean\"]}}},\"message\":{\"type\":\"string\",\"minLength\":1},"
        "\"method\":" TEXT ",\"ref\":" REF ",\"base\":" TEXT
        ",\"parameters\":{\"type\":\"object\",\"additionalProperties\":{"
        "\"type\":[\"number\",\"string\",\"boolean\"]}},\"seed\":" COUNT
        ",\"strict\":{\"type\":\"boolean\"}}}",
    },
};

const size_t bal_schema_count = sizeof(bal_schemas) / sizeof(bal_schemas[0]);

const bal_schema *bal_schema_find(const char *name)
{
    size_t i = 0;

    while (i + 1 < bal_schema_count && strcmp(bal_schemas[i].name, name) != 0)
        i++;
    assert(!strcmp(bal_schemas[i].name, name));
    return &bal_schemas[i];
}

/* Parameters that are more than text. */
static const struct {
    const char *name, *schema;
} queries[] = {
    { "limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,"
               "\"default\":100}" },
    { "ref", REF },
    { "after", ID },
    { "message", "{\"type\":\"string\",\"minLength\":1}" },
    { "reason", "{\"type\":\"string\",\"minLength\":1}" },
};

const char *bal_query_schema(const bal_route_query *query)
{
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        if (!strcmp(queries[i].name, query->name))
            return queries[i].schema;
    }
    return TEXT;
}
