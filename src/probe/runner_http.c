/* Probes asked of a server that runs already: vLLM, SGLang, llama.cpp, or
 * another with OpenAI's interface.
 *
 * The first probes are asked one by one: whether log-probabilities can be had
 * shows there, and an adapter's answers are compared with those of its base.
 * The rest goes side by side. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/clock.h"
#include "core/error.h"
#include "probe/http_answer.h"

enum {
    EARLY_TRIES = 3, /* probes that the base is asked, too */
    EARLY_MAX = EARLY_TRIES + 2,
    SALT_BYTES = 64,
};

/* Of one run. */
typedef struct asking {
    const bal_question *question;
    bal_server *server;
    bal_http_ask ask;
    bal_answer_fn *fn;
    void *ctx;
    bal_buf urls[2];         /* by bal_api */
    size_t early[EARLY_MAX]; /* probes that were asked one by one */
    size_t early_count;
    size_t *items; /* probes to ask side by side */
    size_t item_count;
    bal_buf *bodies; /* of items on their way */
    bool asked[2];   /* by bal_api: top is known to be taken */
    bool thought;
    bool without;      /* an answer had no log-probabilities */
    unsigned compared; /* with the base */
    bool differs;
    bal_buf build;
} asking;

static void asking_done(asking *self)
{
    for (size_t i = 0; self->bodies && i < self->item_count; i++)
        bal_buf_done(&self->bodies[i]);
    free(self->bodies);
    free(self->items);
    bal_buf_done(&self->urls[BAL_API_PROMPT]);
    bal_buf_done(&self->urls[BAL_API_CHAT]);
    bal_buf_done(&self->build);
}

static const bal_probe *probe_at(const asking *self, size_t i)
{
    return bal_probes_at(self->question->probes, i);
}

/* Note what an answer tells beside, and hand it on. */
static int hand_on(asking *self, size_t probe, const bal_http_reply *reply,
                   bal_error *err)
{
    self->thought = self->thought || reply->thought;
    if (reply->answer.output[0] && !reply->answer.token_count)
        self->without = true;
    if (reply->build && !self->build.len) {
        int rc = bal_buf_text(&self->build, reply->build, err);
        if (rc)
            return rc;
    }
    return self->fn(self->ctx, probe, &reply->answer, err);
}

/* ---- one by one -------------------------------------------------------- */

/* One request; *status other than 200: body says why. */
static int send(asking *self, int *status, bal_buf *body,
                const bal_http_ask *ask, const bal_probe *probe, bal_error *err)
{
    BAL_LOCAL(bal_buf) wanted = { 0 };
    int rc = bal_http_write(&wanted, ask, probe, err);

    if (rc)
        return rc;
    const bal_http_request request = {
        .url = self->urls[bal_probe_api(probe)].data,
        .body = { wanted.data, wanted.len },
    };
    return bal_http_send(self->server->http, status, body, &request,
                         self->server->work, err);
}

static int refused(const asking *self, const bal_probe *probe, int status,
                   const bal_buf *body, bal_error *err)
{
    int rc = bal_server_refused(
        self->server, bal_api_path(bal_probe_api(probe)), status,
        (bal_bytes){ bal_buf_string(body), body->len }, err);

    return bal_within(err, rc, "probe '%s'", probe->id);
}

/* The first of an interface's probes: with log-probabilities; where that is a
 * bad request, with as many as OpenAI gives; then without. What is a bad
 * request even so is told as it was at first. */
static int send_first(asking *self, int *status, bal_buf *body,
                      const bal_probe *probe, bal_error *err)
{
    BAL_LOCAL(bal_buf) other = { 0 };
    bal_api api = bal_probe_api(probe);
    const unsigned fewer[] = { 5, 0 };
    unsigned top = self->ask.top[api];
    int now = 0;
    int rc = send(self, status, body, &self->ask, probe, err);

    for (size_t i = 0; !rc && *status == 400 && i < 2; i++) {
        if (fewer[i] >= top)
            continue;
        self->ask.top[api] = fewer[i];
        rc = send(self, &now, &other, &self->ask, probe, err);
        if (rc || now != 200)
            continue;
        *status = now;
        bal_buf_clear(body);
        rc = bal_buf_append(body, bal_buf_string(&other), other.len, err);
    }
    self->asked[api] = true;
    return rc;
}

/* Ask a probe ahead of the others. */
static int ask_early(asking *self, bal_http_reply *reply, size_t i,
                     bal_error *err)
{
    BAL_LOCAL(bal_buf) body = { 0 };
    const bal_probe *probe = probe_at(self, i);
    bal_api api = bal_probe_api(probe);
    int status = 0;
    int rc;

    if (self->asked[api])
        rc = send(self, &status, &body, &self->ask, probe, err);
    else
        rc = send_first(self, &status, &body, probe, err);
    if (rc)
        return rc;
    if (status != 200)
        return refused(self, probe, status, &body, err);
    rc = bal_http_reply_init(reply, &self->ask, api, &body, err);
    if (rc)
        return bal_within(err, rc, "probe '%s'", probe->id);
    self->early[self->early_count++] = i;
    return hand_on(self, i, reply, err);
}

/* Does the base answer the same? One that refuses says nothing of that. */
static int ask_base(asking *self, const bal_served *base, size_t i,
                    const bal_http_reply *reply, bal_error *err)
{
    BAL_LOCAL(bal_buf) body = { 0 };
    BAL_LOCAL(bal_http_reply) other = { 0 };
    const bal_probe *probe = probe_at(self, i);
    bal_http_ask ask = self->ask;
    int status = 0;

    if (!reply->answer.token_count)
        return 0;
    ask.served = base;
    int rc = send(self, &status, &body, &ask, probe, err);
    if (rc || status != 200)
        return rc;
    rc = bal_http_reply_init(&other, &ask, bal_probe_api(probe), &body, err);
    if (rc)
        return bal_within(err, rc, "base '%s'", base->id);
    self->compared++;
    self->differs = !bal_http_reply_same(reply, &other);
    return 0;
}

/* The first probe of each interface, and as many more as it takes to see an
 * adapter differ from its base. */
static int ask_first(asking *self, bal_error *err)
{
    const bal_served *base = bal_server_base(self->server, self->ask.served);
    size_t count = bal_probes_count(self->question->probes);

    for (size_t i = 0; i < count; i++) {
        BAL_LOCAL(bal_http_reply) reply = { 0 };
        bool look = base && !self->differs && i < EARLY_TRIES;
        if (!look && self->asked[bal_probe_api(probe_at(self, i))])
            continue;
        int rc = ask_early(self, &reply, i, err);
        if (!rc && look)
            rc = ask_base(self, base, i, &reply, err);
        if (rc)
            return rc;
    }
    if (self->compared && !self->differs)
        bal_warn("probe", "model=%s answers=as-base probes=%u",
                 self->ask.served->id, self->compared);
    return 0;
}

/* ---- side by side ------------------------------------------------------ */

static bool is_early(const asking *self, size_t probe)
{
    for (size_t i = 0; i < self->early_count; i++) {
        if (self->early[i] == probe)
            return true;
    }
    return false;
}

/* All probes once, then again: what else a server is asked moves least between
 * two of the same. */
static int list_items(asking *self, bal_error *err)
{
    size_t count = bal_probes_count(self->question->probes);
    uint64_t total;
    uint64_t bytes;

    if (!bal_mul(&total, count, self->question->options->repeat) ||
        !bal_mul(&bytes, total, sizeof(bal_buf)) || bytes > SIZE_MAX / 2)
        return bal_fail(err, BAL_EINVAL, "too many questions");
    self->items = calloc((size_t)total + 1, sizeof(*self->items));
    self->bodies = calloc((size_t)total + 1, sizeof(*self->bodies));
    if (!self->items || !self->bodies)
        return bal_fail_memory(err, "questions");
    for (uint64_t i = 0; i < total; i++) {
        size_t probe = (size_t)(i % count);
        if (i >= count || !is_early(self, probe))
            self->items[self->item_count++] = probe;
    }
    return 0;
}

static int make(void *ctx, size_t i, bal_http_request *request, bal_error *err)
{
    asking *self = ctx;
    const bal_probe *probe = probe_at(self, self->items[i]);
    int rc = bal_http_write(&self->bodies[i], &self->ask, probe, err);

    if (rc)
        return rc;
    request->url = self->urls[bal_probe_api(probe)].data;
    request->body = (bal_bytes){ self->bodies[i].data, self->bodies[i].len };
    return 0;
}

static int take(void *ctx, size_t i, const bal_http_answer *answer,
                bal_error *err)
{
    BAL_LOCAL(bal_buf) body = { 0 };
    BAL_LOCAL(bal_http_reply) reply = { 0 };
    asking *self = ctx;
    const bal_probe *probe = probe_at(self, self->items[i]);

    bal_buf_done(&self->bodies[i]);
    int rc = bal_buf_append(&body, answer->body.data, answer->body.len, err);
    if (rc)
        return rc;
    if (answer->status != 200)
        return refused(self, probe, answer->status, &body, err);
    rc = bal_http_reply_init(&reply, &self->ask, bal_probe_api(probe), &body,
                             err);
    if (rc)
        return bal_within(err, rc, "probe '%s'", probe->id);
    return hand_on(self, self->items[i], &reply, err);
}

/* ---- what is told ------------------------------------------------------ */

/* Takes over value. */
static int put(json_t *about, const char *name, json_t *value, bal_error *err)
{
    if (json_object_set_new(about, name, value))
        return bal_fail_memory(err, "what is known of a server");
    return 0;
}

static int put_text(json_t *about, const char *name, const char *text,
                    bal_error *err)
{
    if (!text || !text[0])
        return 0;
    return put(about, name, json_string(text), err);
}

/* Of a path the last part: where it lies on the server's machine is nobody's
 * business. */
static const char *last_part(const char *root)
{
    const char *slash = root ? strrchr(root, '/') : NULL;

    return slash && slash[1] ? slash + 1 : root;
}

static int tell_logprobs(const asking *self, json_t *about, bal_error *err)
{
    static const char *const names[] = { "top", "top_chat" };
    unsigned wanted = self->question->options->top;
    int rc = 0;

    for (size_t i = 0; !rc && i < 2; i++) {
        if (self->asked[i] && self->ask.top[i] != wanted)
            rc = put(about, names[i], json_integer(self->ask.top[i]), err);
    }
    if (!rc && self->without)
        rc = put(about, "logprobs", json_false(), err);
    if (!rc && self->thought)
        rc = put(about, "reasoning", json_true(), err);
    return rc;
}

static int tell(const asking *self, json_t *about, bal_error *err)
{
    const bal_served *served = self->ask.served;
    unsigned parallel = self->question->options->parallel;
    const struct {
        const char *name;
        const char *text;
    } rows[] = {
        { "engine", self->server->engine->name },
        { "version", self->server->version },
        { "model", served->id },
        { "parent", served->parent },
        { "root", last_part(served->root) },
        { "system_fingerprint", bal_buf_string(&self->build) },
    };
    int rc = 0;

    for (size_t i = 0; !rc && i < sizeof(rows) / sizeof(rows[0]); i++)
        rc = put_text(about, rows[i].name, rows[i].text, err);
    if (!rc)
        rc = put(about, "parallel", json_integer(parallel), err);
    if (!rc && self->compared)
        rc = put(about, "answers_as_base", json_boolean(!self->differs), err);
    return rc ? rc : tell_logprobs(self, about, err);
}

/* ---- the row ----------------------------------------------------------- */

static int http_check(const bal_ask_options *options, bal_error *err)
{
    return bal_server_check(options->url, err);
}

static int http_terms(json_t *terms, const bal_ask_options *options,
                      bal_error *err)
{
    (void)options;
    return put_text(terms, "api", "openai", err);
}

static int prepare(asking *self, bal_error *err)
{
    const bal_ask_options *options = self->question->options;
    int rc =
        bal_server_pick(&self->ask.served, self->server, self->question, err);

    for (size_t api = 0; !rc && api < 2; api++) {
        self->ask.top[api] =
            (unsigned)bal_min(options->top, self->server->engine->top[api]);
        rc = bal_buf_format(&self->urls[api], err, "%s%s", self->server->url,
                            bal_api_path((bal_api)api));
    }
    return rc;
}

/* The salt keeps this run apart from all that the server remembers of earlier
 * ones: under the same name there may have been another adapter. */
static int http_ask(const bal_question *question, bal_answer_fn *fn, void *ctx,
                    json_t *about, bal_error *err)
{
    BAL_LOCAL(bal_server) server = { 0 };
    char salt[SALT_BYTES];
    BAL_LOCAL(asking)
    self = {
        .question = question,
        .server = &server,
        .ask = { &server, .options = question->options, .salt = salt },
        .fn = fn,
        .ctx = ctx,
    };

    bal_clock_rfc3339(salt, bal_clock_now());
    int rc = bal_server_open(&server, question, err);
    if (!rc)
        rc = prepare(&self, err);
    if (!rc)
        rc = ask_first(&self, err);
    if (!rc)
        rc = list_items(&self, err);
    if (!rc)
        rc = bal_http_all(server.http, self.item_count, make, take, &self,
                          server.work, err);
    return rc ? rc : tell(&self, about, err);
}

const bal_runner_row bal_runner_http = {
    .name = "http",
    .check = http_check,
    .terms = http_terms,
    .ask = http_ask,
};
