/* YAML of any bytes: what is read is bounded, and is a value that JSON can say.
 * A configuration of mergekit that is read is one whose parameters are texts.
 */
#include <stdlib.h>
#include <string.h>

#include "core/yaml.h"
#include "merge/mergekit.h"
#include "support/fuzz.h"

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_json(const bal_yaml_node *node)
{
    BAL_OWN(json_t) value = NULL;
    BAL_OWN(json_t) back = NULL;

    must(node->nodes <= BAL_YAML_NODES && node->levels <= BAL_YAML_DEPTH);
    must(!bal_yaml_json(&value, node, NULL));
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    must(text != NULL);
    back = json_loads(text, JSON_DECODE_ANY, NULL);
    must(json_equal(value, back));
    free(text);
}

static void check_texts(const json_t *object)
{
    const char *name;
    json_t *text;

    json_object_foreach((json_t *)object, name, text)
        must(json_is_string(text));
}

static void check_configuration(const bal_yaml_node *node)
{
    BAL_LOCAL(bal_mergekit) plan = { 0 };
    bal_error err = { 0 };
    int rc = bal_mergekit_read(&plan, node, &err);

    must(!rc || rc == BAL_EINVAL || rc == BAL_EUNSUPPORTED);
    must(!rc || err.text[0]);
    if (rc)
        return;
    must(plan.method && plan.count);
    for (size_t i = 0; i < plan.slice_count; i++)
        must(plan.slices[i].base == BAL_NONE ||
             plan.slices[i].base < plan.count);
    check_texts(plan.parameters);
    for (size_t i = 0; i < plan.count; i++)
        check_texts(plan.models[i].parameters);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BAL_LOCAL(bal_yaml) yaml = { 0 };
    bal_error err = { 0 };
    int rc = bal_yaml_parse(&yaml, (const char *)data, size, "input", &err);

    must(!rc || (rc == BAL_EINVAL && err.text[0]));
    for (size_t i = 0; i < yaml.count; i++) {
        check_json(yaml.documents[i]);
        check_configuration(yaml.documents[i]);
    }
    return 0;
}
