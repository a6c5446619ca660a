/* Our own JSON Lines: a row for each key that a probe can have. */
#include <string.h>

#include "core/error.h"
#include "probe/probes_inside.h"

/* ---- the keys ----------------------------------------------------------- */

static int take_id(bal_maker *self, bal_probe *probe, const char *key,
                   const json_t *value, bal_error *err)
{
    if (!json_is_string(value) && !json_is_integer(value))
        return bal_fail(err, BAL_EINVAL, "'%s' is no text", key);
    return bal_maker_scalar(self, &probe->id, value, err);
}

static int take_prompt(bal_maker *self, bal_probe *probe, const char *key,
                       const json_t *value, bal_error *err)
{
    if (!json_is_string(value))
        return bal_fail(err, BAL_EINVAL, "'%s' is no text", key);
    return bal_maker_copy(self, &probe->prompt, json_string_value(value),
                          json_string_length(value), err);
}

/* Keys of a message that are not asked with. */
static int note_keys(bal_maker *self, const json_t *message, bal_error *err)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)message, key, value)
    {
        if (!strcmp(key, "role") || !strcmp(key, "content"))
            continue;
        int rc = bal_maker_unused(self, "messages", key, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int take_message(bal_maker *self, bal_json *json, const json_t *message,
                        bal_error *err)
{
    const json_t *role = json_object_get(message, "role");
    const json_t *content = json_object_get(message, "content");

    if (!json_is_string(role) || !json_is_string(content))
        return bal_fail(err, BAL_EINVAL,
                        "a message without texts 'role' and 'content'");
    if (!json_string_length(role))
        return bal_fail(err, BAL_EINVAL, "a message with an empty 'role'");
    bal_json_object(json);
    bal_json_key(json, "content");
    bal_json_string(json, json_string_value(content));
    bal_json_key(json, "role");
    bal_json_string(json, json_string_value(role));
    bal_json_close(json);
    return note_keys(self, message, err);
}

static int take_messages(bal_maker *self, bal_probe *probe, const char *key,
                         const json_t *value, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    bal_json json;

    if (!json_is_array(value) || !json_array_size(value))
        return bal_fail(err, BAL_EINVAL, "'%s' is no list of messages", key);
    bal_json_begin(&json, &text, 0);
    bal_json_array(&json);
    for (size_t i = 0; i < json_array_size(value); i++) {
        int rc = take_message(self, &json, json_array_get(value, i), err);
        if (rc)
            return rc;
    }
    int rc = bal_json_end(&json, err);
    if (rc)
        return rc;
    return bal_maker_copy(self, &probe->messages, text.data, text.len, err);
}

static int take_references(bal_maker *self, bal_probe *probe, const char *key,
                           const json_t *value, bal_error *err)
{
    if (probe->references)
        return bal_fail(err, BAL_EINVAL, "both 'reference' and 'references'");
    return bal_maker_texts(self, &probe->references, &probe->reference_count,
                           value, key, err);
}

static int take_choices(bal_maker *self, bal_probe *probe, const char *key,
                        const json_t *value, bal_error *err)
{
    if (!json_is_array(value))
        return bal_fail(err, BAL_EINVAL, "'%s' is no list of texts", key);
    return bal_maker_texts(self, &probe->choices, &probe->choice_count, value,
                           key, err);
}

static int take_max_tokens(bal_maker *self, bal_probe *probe, const char *key,
                           const json_t *value, bal_error *err)
{
    json_int_t tokens = json_integer_value(value);

    (void)self;
    if (!json_is_integer(value) || tokens < 1 ||
        (uint64_t)tokens > BAL_PROBE_TOKENS)
        return bal_fail(err, BAL_EINVAL, "'%s' is no number from 1 to %zu", key,
                        (size_t)BAL_PROBE_TOKENS);
    probe->max_tokens = (uint64_t)tokens;
    return 0;
}

static int take_stop(bal_maker *self, bal_probe *probe, const char *key,
                     const json_t *value, bal_error *err)
{
    return bal_maker_texts(self, &probe->stop, &probe->stop_count, value, key,
                           err);
}

/* For people to sort by; it changes nothing. */
static int take_tags(bal_maker *self, bal_probe *probe, const char *key,
                     const json_t *value, bal_error *err)
{
    (void)self;
    (void)probe;
    (void)key;
    (void)value;
    (void)err;
    return 0;
}

static const struct {
    const char *key;
    int (*take)(bal_maker *self, bal_probe *probe, const char *key,
                const json_t *value, bal_error *err);
} keys[] = {
    { "id", take_id },
    { "prompt", take_prompt },
    { "messages", take_messages },
    { "reference", take_references },
    { "references", take_references },
    { "choices", take_choices },
    { "max_tokens", take_max_tokens },
    { "stop", take_stop },
    { "tags", take_tags },
};

static int take(bal_maker *self, bal_probe *probe, const char *key,
                const json_t *value, bal_error *err)
{
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (strcmp(keys[i].key, key) != 0)
            continue;
        if (json_is_null(value))
            return 0;
        return keys[i].take(self, probe, key, value, err);
    }
    return bal_maker_unused(self, NULL, key, err);
}

static int native_line(bal_maker *self, json_t *object, bal_error *err)
{
    bal_probe probe = { 0 };
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        int rc = take(self, &probe, key, value, err);
        if (rc)
            return rc;
    }
    if (!probe.prompt == !probe.messages)
        return bal_fail(err, BAL_EINVAL, "%s 'prompt' %s 'messages'",
                        probe.prompt ? "both" : "neither",
                        probe.prompt ? "and" : "nor");
    return bal_maker_add(self, &probe, err);
}

static bool is_native(const json_t *first)
{
    return json_object_get(first, "prompt") ||
           json_object_get(first, "messages");
}

const bal_probes_shape bal_probes_native = {
    .is = is_native,
    .line = native_line,
};
