/* Answers. Everything in them is looked at before it is used: a fingerprint
 * that holds what a server made up is worse than none.
 *
 * Log-probabilities come in two shapes, whichever interface was asked: lists
 * side by side, {"tokens", "token_logprobs", "top_logprobs": [{token:
 * number}]}, and one list, {"content": [{"token", "logprob", "top_logprobs":
 * [{"token", "logprob"}]}]}. llama.cpp has the second for completions too. */
#include "probe/http_answer.h"

#include <math.h>
#include <string.h>

#include "core/error.h"

/* Rounding may leave the logarithm of 1 a little above 0. */
static const double above_zero = 1e-4;

/* What is being read, and for messages from where. */
typedef struct reading {
    bal_http_reply *reply;
    const bal_http_ask *ask;
    const char *path;
} reading;

static int wrong(const reading *self, const char *what, bal_error *err)
{
    return bal_fail(err, BAL_EIO, "'%s%s': %s", self->ask->server->url,
                    self->path, what);
}

static void *room(const reading *self, size_t count, size_t size)
{
    return bal_arena_alloc(&self->reply->arena, count * size);
}

/* ---- numbers and tokens ------------------------------------------------ */

static int get_number(double *out, const reading *self, const json_t *value,
                      bal_error *err)
{
    double number =
        json_is_number(value) ? json_number_value(value) : (double)NAN;

    if (!isfinite(number) || number > above_zero)
        return wrong(self, "a log-probability is not a finite number up to 0",
                     err);
    *out = number > 0 ? 0 : number;
    return 0;
}

/* Is the token's text more than a part of a character, which other tokens may
 * share? */
static bool is_whole(const char *token)
{
    return !strstr(token, "\xef\xbf\xbd");
}

/* Take out what is there twice, both of it: no one can say which is which. */
static void drop_twins(bal_likely *top, size_t *count)
{
    bool twin[BAL_TOP_MAX] = { false };
    size_t kept = 0;

    for (size_t i = 0; i < *count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(top[i].token, top[j].token))
                continue;
            twin[i] = true;
            twin[j] = true;
        }
    }
    for (size_t i = 0; i < *count; i++) {
        if (!twin[i])
            top[kept++] = top[i];
    }
    *count = kept;
}

static int check_top(const reading *self, size_t count, bal_error *err)
{
    if (count <= BAL_TOP_MAX)
        return 0;
    return wrong(self, "more likely tokens are listed than were asked for",
                 err);
}

/* Room for the likely tokens of one that was said. */
static int start_top(bal_likely **out, const reading *self, size_t count,
                     bal_error *err)
{
    int rc = check_top(self, count, err);

    if (rc)
        return rc;
    *out = room(self, count ? count : 1, sizeof(**out));
    return *out ? 0 : bal_fail_memory(err, "an answer");
}

static int add_likely(bal_said *said, bal_likely *top, const reading *self,
                      const char *token, const json_t *logprob, bal_error *err)
{
    double number;
    int rc = get_number(&number, self, logprob, err);

    if (rc || !is_whole(token))
        return rc;
    top[said->top_count++] = (bal_likely){ token, number };
    return 0;
}

/* {token: number}. Of tokens with the same text it holds one, and where that
 * is not the one that was said, nothing is known of either. null: none. */
static int read_top_object(bal_said *said, const reading *self, json_t *value,
                           bal_error *err)
{
    bal_likely *top;
    const char *token;
    json_t *logprob;

    if (!value || json_is_null(value))
        return 0;
    if (!json_is_object(value))
        return wrong(self, "\"top_logprobs\" holds no objects", err);
    int rc = start_top(&top, self, json_object_size(value), err);
    if (rc)
        return rc;
    json_object_foreach(value, token, logprob)
    {
        size_t at = said->top_count;
        rc = add_likely(said, top, self, token, logprob, err);
        if (rc)
            return rc;
        if (said->top_count > at && !strcmp(token, said->token) &&
            top[at].logprob != said->logprob)
            said->top_count = at;
    }
    said->top = top;
    return 0;
}

/* [{"token", "logprob"}], absent: none. */
static int read_top_array(bal_said *said, const reading *self, json_t *value,
                          bal_error *err)
{
    bal_likely *top;
    json_t *row;
    size_t i;

    if (!value || json_is_null(value))
        return 0;
    if (!json_is_array(value))
        return wrong(self, "\"top_logprobs\" is no array", err);
    int rc = start_top(&top, self, json_array_size(value), err);
    if (rc)
        return rc;
    json_array_foreach(value, i, row)
    {
        const char *token = json_string_value(json_object_get(row, "token"));
        if (!token)
            return wrong(self, "a likely token has no text", err);
        rc = add_likely(said, top, self, token, json_object_get(row, "logprob"),
                        err);
        if (rc)
            return rc;
    }
    drop_twins(top, &said->top_count);
    said->top = top;
    return 0;
}

/* ---- the two shapes ---------------------------------------------------- */

/* Room for the tokens; *out stays NULL where there are none. */
static int start_tokens(bal_said **out, const reading *self, size_t count,
                        bal_error *err)
{
    if (count > BAL_SAID_MAX)
        return bal_fail(err, BAL_EIO,
                        "'%s%s': an answer of more than %zu tokens",
                        self->ask->server->url, self->path, BAL_SAID_MAX);
    if (!count)
        return 0;
    *out = room(self, count, sizeof(**out));
    if (!*out)
        return bal_fail_memory(err, "an answer");
    self->reply->answer.tokens = *out;
    self->reply->answer.token_count = count;
    return 0;
}

/* Side by side. */
static int read_lists(const reading *self, const json_t *value, bal_error *err)
{
    const json_t *tokens = json_object_get(value, "tokens");
    const json_t *numbers = json_object_get(value, "token_logprobs");
    const json_t *tops = json_object_get(value, "top_logprobs");
    size_t count = json_array_size(tokens);
    size_t listed = json_array_size(tops);
    bal_said *said = NULL;

    if (!json_is_array(tokens) || !json_is_array(numbers) ||
        json_array_size(numbers) != count ||
        (tops && !json_is_null(tops) && listed != count))
        return wrong(self, "log-probabilities and tokens differ in number",
                     err);
    int rc = start_tokens(&said, self, count, err);
    for (size_t i = 0; !rc && i < count; i++) {
        said[i].token = json_string_value(json_array_get(tokens, i));
        if (!said[i].token)
            return wrong(self, "a token has no text", err);
        rc =
            get_number(&said[i].logprob, self, json_array_get(numbers, i), err);
        if (!rc)
            rc = read_top_object(&said[i], self, json_array_get(tops, i), err);
    }
    return rc;
}

/* One by one. */
static int read_content(const reading *self, const json_t *content,
                        bal_error *err)
{
    size_t count = json_array_size(content);
    bal_said *said = NULL;

    int rc = start_tokens(&said, self, count, err);
    for (size_t i = 0; !rc && i < count; i++) {
        const json_t *row = json_array_get(content, i);
        said[i].token = json_string_value(json_object_get(row, "token"));
        if (!said[i].token)
            return wrong(self, "a token has no text", err);
        rc = get_number(&said[i].logprob, self, json_object_get(row, "logprob"),
                        err);
        if (!rc)
            rc = read_top_array(&said[i], self,
                                json_object_get(row, "top_logprobs"), err);
    }
    return rc;
}

static int read_logprobs(const reading *self, const json_t *value,
                         bal_error *err)
{
    const bal_answer *answer = &self->reply->answer;
    const json_t *content = json_object_get(value, "content");
    int rc = 0;

    if (json_is_array(content))
        rc = read_content(self, content, err);
    else if (json_object_get(value, "tokens"))
        rc = read_lists(self, value, err);
    if (rc || answer->token_count || !answer->output[0])
        return rc;
    if (!self->ask->server->engine->known)
        return 0;
    return wrong(self, "an answer without the log-probabilities asked for",
                 err);
}

/* ---- answers ----------------------------------------------------------- */

/* vLLM has called a base model by its first name, whichever was asked. */
static bool is_alias(const bal_http_ask *ask, const char *model)
{
    const bal_server *server = ask->server;

    for (size_t i = 0; !ask->served->parent && i < server->count; i++) {
        if (!server->served[i].parent && !strcmp(server->served[i].id, model))
            return true;
    }
    return false;
}

static int check_model(const reading *self, const json_t *value, bal_error *err)
{
    const bal_http_ask *ask = self->ask;
    const char *model = json_string_value(json_object_get(value, "model"));

    if (!model && !ask->server->engine->known)
        return 0;
    if (!model)
        return wrong(self, "the answer does not say of which model it is", err);
    if (!strcmp(model, ask->served->model) || is_alias(ask, model))
        return 0;
    return bal_fail(err, BAL_EIO, "'%s%s': '%s' was asked, '%s' has answered",
                    ask->server->url, self->path, ask->served->model, model);
}

/* A chat's message may have no content: its model has only thought, or called
 * tools. */
static int read_message(const reading *self, const json_t *message,
                        bal_error *err)
{
    static const char *const thoughts[] = { "reasoning_content", "reasoning" };
    const json_t *content = json_object_get(message, "content");

    if (!json_is_object(message) ||
        (content && !json_is_null(content) && !json_is_string(content)))
        return wrong(self, "a choice has no message of text", err);
    for (size_t i = 0; i < sizeof(thoughts) / sizeof(thoughts[0]); i++) {
        const json_t *thought = json_object_get(message, thoughts[i]);
        if (json_string_length(thought))
            self->reply->thought = true;
    }
    if (json_is_string(content))
        self->reply->answer.output = json_string_value(content);
    return 0;
}

static int read_text(const reading *self, const json_t *choice, bal_api api,
                     bal_error *err)
{
    bal_answer *answer = &self->reply->answer;

    answer->output = "";
    if (api == BAL_API_CHAT) {
        int rc = read_message(self, json_object_get(choice, "message"), err);
        if (rc)
            return rc;
    } else {
        answer->output = json_string_value(json_object_get(choice, "text"));
    }
    if (!answer->output)
        return wrong(self, "a choice has no text", err);
    if (strlen(answer->output) > BAL_ANSWER_MAX)
        return bal_fail(err, BAL_EIO, "'%s%s': a text of more than %zu bytes",
                        self->ask->server->url, self->path, BAL_ANSWER_MAX);
    return 0;
}

int bal_http_reply_init(bal_http_reply *self, const bal_http_ask *ask,
                        bal_api api, bal_buf *body, bal_error *err)
{
    const reading from = { self, ask, bal_api_path(api) };
    int rc = bal_server_parse(&self->value, ask->server, from.path, body, err);

    if (rc)
        return rc;
    const json_t *choices = json_object_get(self->value, "choices");
    if (json_array_size(choices) != 1)
        return wrong(&from, "the answer does not have one choice", err);
    rc = check_model(&from, self->value, err);
    if (rc)
        return rc;
    const json_t *choice = json_array_get(choices, 0);
    rc = read_text(&from, choice, api, err);
    if (!rc && ask->top[api])
        rc = read_logprobs(&from, json_object_get(choice, "logprobs"), err);
    self->build =
        json_string_value(json_object_get(self->value, "system_fingerprint"));
    return rc;
}

void bal_http_reply_done(bal_http_reply *self)
{
    json_decref(self->value);
    bal_arena_done(&self->arena);
    *self = (bal_http_reply){ 0 };
}

static bool same_top(const bal_said *a, const bal_said *b)
{
    if (a->top_count != b->top_count)
        return false;
    for (size_t i = 0; i < a->top_count; i++) {
        if (a->top[i].logprob != b->top[i].logprob ||
            strcmp(a->top[i].token, b->top[i].token))
            return false;
    }
    return true;
}

bool bal_http_reply_same(const bal_http_reply *a, const bal_http_reply *b)
{
    const bal_answer *x = &a->answer;
    const bal_answer *y = &b->answer;

    if (strcmp(x->output, y->output) || x->token_count != y->token_count)
        return false;
    for (size_t i = 0; i < x->token_count; i++) {
        if (x->tokens[i].logprob != y->tokens[i].logprob ||
            strcmp(x->tokens[i].token, y->tokens[i].token) ||
            !same_top(&x->tokens[i], &y->tokens[i]))
            return false;
    }
    return true;
}
