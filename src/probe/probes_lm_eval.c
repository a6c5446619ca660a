/* lm-eval's samples: what a task asked, and of how it went nothing. The
 * arguments of its requests are lists of lists in older files, {"gen_args_0":
 * {"arg_0": …}} in newer ones (lm_eval/loggers/evaluation_tracker.py). */
#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "probe/probes_inside.h"

/* Argument j of request i, either way; NULL: there is none. */
static const json_t *argument(const json_t *requests, size_t i, size_t j)
{
    char key[40];

    snprintf(key, sizeof(key), "gen_args_%zu", i);
    const json_t *request = json_is_array(requests)
                                ? json_array_get(requests, i)
                                : json_object_get(requests, key);
    snprintf(key, sizeof(key), "arg_%zu", j);
    return json_is_array(request) ? json_array_get(request, j)
                                  : json_object_get(request, key);
}

static size_t request_count(const json_t *requests)
{
    return json_is_array(requests) ? json_array_size(requests)
                                   : json_object_size(requests);
}

/* ---- generation --------------------------------------------------------- */

static int take_until(bal_maker *self, bal_probe *probe, const json_t *value,
                      bal_error *err)
{
    return bal_maker_texts(self, &probe->stop, &probe->stop_count, value,
                           "until", err);
}

static int take_max_gen_toks(bal_maker *self, bal_probe *probe,
                             const json_t *value, bal_error *err)
{
    json_int_t tokens = json_integer_value(value);

    (void)self;
    if (!json_is_integer(value) || tokens < 1 ||
        (uint64_t)tokens > BAL_PROBE_TOKENS)
        return bal_fail(err, BAL_EINVAL,
                        "'max_gen_toks' is no number from 1 to %zu",
                        (size_t)BAL_PROBE_TOKENS);
    probe->max_tokens = (uint64_t)tokens;
    return 0;
}

static const struct {
    const char *key;
    int (*take)(bal_maker *self, bal_probe *probe, const json_t *value,
                bal_error *err);
} generation[] = {
    { "until", take_until },
    { "max_gen_toks", take_max_gen_toks },
};

static int take_setting(bal_maker *self, bal_probe *probe, const char *key,
                        const json_t *value, bal_error *err)
{
    for (size_t i = 0; i < sizeof(generation) / sizeof(generation[0]); i++) {
        if (!strcmp(generation[i].key, key))
            return generation[i].take(self, probe, value, err);
    }
    return bal_maker_unused(self, "arguments", key, err);
}

/* Answers of a text: one, or a list. What str() of Python made of a list can
 * not be told from a text, but an answer that looks like that is none. */
static int take_answer(bal_maker *self, bal_probe *probe, const json_t *target,
                       bal_error *err)
{
    const char **list = NULL;
    const char *text = NULL;
    int rc = 0;

    if (json_is_array(target))
        return bal_maker_texts(self, &probe->references,
                               &probe->reference_count, target, "target", err);
    if (target && !json_is_boolean(target))
        rc = bal_maker_scalar(self, &text, target, err);
    if (!rc && text)
        rc = bal_maker_trim(self, &text, text, err);
    if (rc)
        return rc;
    if (!text || !text[0] || (text[0] == '[' && text[strlen(text) - 1] == ']'))
        return target ? bal_maker_unused(self, NULL, "target", err) : 0;
    rc = bal_maker_list(self, &list, 1, "target", err);
    if (rc)
        return rc;
    list[0] = text;
    probe->references = list;
    probe->reference_count = 1;
    return 0;
}

/* Ask for a text: settings are those beside the prompt. */
static int take_generation(bal_maker *self, bal_probe *probe,
                           const json_t *settings, const json_t *target,
                           bal_error *err)
{
    const char *key;
    json_t *value;

    if (json_is_object(settings)) {
        json_object_foreach((json_t *)settings, key, value)
        {
            int rc = take_setting(self, probe, key, value, err);
            if (rc)
                return rc;
        }
    }
    return take_answer(self, probe, target, err);
}

/* ---- multiple choice ---------------------------------------------------- */

/* The continuations that are asked for behind the same context. Requests with
 * an empty context measure how likely an answer is by itself: no choices. */
static int take_choices(bal_maker *self, bal_probe *probe,
                        const json_t *requests, bal_error *err)
{
    size_t count = request_count(requests);
    const char **list = NULL;
    int rc = bal_maker_list(self, &list, count, "arguments", err);

    for (size_t i = 0; i < count && !rc; i++) {
        const char *context = json_string_value(argument(requests, i, 0));
        const char *choice = json_string_value(argument(requests, i, 1));
        if (context && !context[0])
            continue;
        if (!context || !choice)
            return bal_fail(err, BAL_EINVAL,
                            "request %zu of 'arguments' has no two texts", i);
        if (strcmp(context, probe->prompt) != 0)
            return bal_fail(err, BAL_EINVAL,
                            "a choice between contexts, not answers");
        rc = bal_maker_trim(self, &list[probe->choice_count++], choice, err);
        if (!rc && !list[probe->choice_count - 1][0])
            return bal_fail(err, BAL_EINVAL, "an empty choice");
    }
    probe->choices = list;
    return rc;
}

/* The choice that target is the number or the text of; BAL_NONE: it does not
 * say, or says two things (newer files write the number as a text). */
static size_t choice_of(const bal_probe *probe, const char *target, bool number)
{
    size_t named = BAL_NONE;
    uint64_t index = 0;

    for (size_t i = 0; i < probe->choice_count && !number; i++) {
        if (named == BAL_NONE && !strcmp(probe->choices[i], target))
            named = i;
    }
    if (bal_parse_u64(&index, target, NULL) || index >= probe->choice_count)
        return named;
    return named == BAL_NONE || named == index ? (size_t)index : BAL_NONE;
}

static int take_choice(bal_maker *self, bal_probe *probe,
                       const json_t *requests, const json_t *target,
                       bal_error *err)
{
    const char **list = NULL;
    const char *text = NULL;
    size_t which = BAL_NONE;
    int rc = take_choices(self, probe, requests, err);

    if (!rc && target)
        rc = bal_maker_scalar(self, &text, target, err);
    if (!rc && text)
        rc = bal_maker_trim(self, &text, text, err);
    if (rc)
        return rc;
    if (text)
        which = choice_of(probe, text, json_is_integer(target));
    if (which == BAL_NONE)
        return target ? bal_maker_unused(self, NULL, "target", err) : 0;
    rc = bal_maker_list(self, &list, 1, "target", err);
    if (rc)
        return rc;
    list[0] = probe->choices[which];
    probe->references = list;
    probe->reference_count = 1;
    return 0;
}

/* ---- a line ------------------------------------------------------------- */

static int take_id(bal_maker *self, bal_probe *probe, const json_t *value,
                   bal_error *err)
{
    if (!json_is_string(value) && !json_is_integer(value))
        return bal_fail(err, BAL_EINVAL, "'doc_id' is no number and no text");
    return bal_maker_scalar(self, &probe->id, value, err);
}

/* A document has a line for each filter of the answers. */
static bool is_there(const bal_maker *self, const bal_probe *probe)
{
    size_t at = bal_probes_find(self->to, probe->id);

    return at != BAL_NONE && !strcmp(self->to->items[at].prompt, probe->prompt);
}

static int lm_eval_line(bal_maker *self, json_t *object, bal_error *err)
{
    const json_t *requests = json_object_get(object, "arguments");
    const json_t *target = json_object_get(object, "target");
    const json_t *prompt = argument(requests, 0, 0);
    const json_t *beside = argument(requests, 0, 1);
    bal_probe probe = { 0 };

    if (json_is_null(target))
        target = NULL;
    if (!json_is_string(prompt))
        return bal_fail(err, BAL_EINVAL, "no prompt in 'arguments'");
    int rc = take_id(self, &probe, json_object_get(object, "doc_id"), err);
    if (!rc)
        rc = bal_maker_copy(self, &probe.prompt, json_string_value(prompt),
                            json_string_length(prompt), err);
    if (rc || is_there(self, &probe))
        return rc;
    if (json_is_string(beside) && request_count(requests) > 1)
        rc = take_choice(self, &probe, requests, target, err);
    else
        rc = take_generation(self, &probe, beside, target, err);
    return rc ? rc : bal_maker_add(self, &probe, err);
}

static bool is_lm_eval(const json_t *first)
{
    return json_object_get(first, "arguments") &&
           json_object_get(first, "doc_id");
}

const bal_probes_shape bal_probes_lm_eval = {
    .is = is_lm_eval,
    .line = lm_eval_line,
};
