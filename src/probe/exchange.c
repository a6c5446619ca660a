/* One line a probe, one line an answer. */
#include "probe/exchange.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/str.h"

enum { LINE_MAX_BYTES = 16 << 20, SOME = 64 << 10 };

int bal_exchange_begin(bal_exchange *out, const bal_question *question,
                       const bal_exchange_to *to, bal_error *err)
{
    size_t count = bal_probes_count(question->probes);

    *out = (bal_exchange){
        .question = question,
        .to = to,
        .what = "the runner",
    };
    out->seen = calloc(count + 1, sizeof(*out->seen));
    return out->seen ? 0 : bal_fail_memory(err, "a runner");
}

void bal_exchange_done(bal_exchange *self)
{
    free(self->seen);
    *self = (bal_exchange){ .seen = NULL };
}

/* ---- out ---------------------------------------------------------------- */

static int write_probe(bal_buf *to, const bal_probe *probe, uint64_t max_tokens,
                       bal_error *err)
{
    bal_json json;

    bal_json_begin(&json, to, 0);
    bal_json_object(&json);
    bal_json_key(&json, "id");
    bal_json_string(&json, probe->id);
    bal_json_key(&json, probe->prompt ? "prompt" : "messages");
    if (probe->prompt)
        bal_json_string(&json, probe->prompt);
    else
        bal_json_raw(&json, probe->messages);
    bal_json_key(&json, "max_tokens");
    bal_json_u64(&json, probe->max_tokens ? probe->max_tokens : max_tokens);
    if (probe->stop_count) {
        bal_json_key(&json, "stop");
        bal_json_array(&json);
        for (size_t i = 0; i < probe->stop_count; i++)
            bal_json_string(&json, probe->stop[i]);
        bal_json_close(&json);
    }
    bal_json_close(&json);
    int rc = bal_json_end(&json, err);
    return rc ? rc : bal_buf_text(to, "\n", err);
}

int bal_exchange_fill(void *ctx, bal_buf *to, bal_error *err)
{
    bal_exchange *self = ctx;
    const bal_probes *probes = self->question->probes;
    int rc = 0;

    while (self->next < bal_probes_count(probes) && to->len < SOME && !rc)
        rc = write_probe(to, bal_probes_at(probes, self->next++),
                         self->question->options->max_tokens, err);
    return rc;
}

/* ---- in ----------------------------------------------------------------- */

/* What an answer is read into. */
typedef struct reading {
    const bal_exchange *exchange;
    const char *id;
    bal_said *said;
    bal_likely *likely;
    size_t count;
} reading;

static void reading_done(reading *self)
{
    free(self->said);
    free(self->likely);
}

static int rubbish(const reading *self, const char *why, bal_error *err)
{
    return bal_fail(err, BAL_EIO, "%s: the answer to '%.200s' %s",
                    self->exchange->what, self->id, why);
}

static int read_number(double *out, const json_t *value, const reading *self,
                       bal_error *err)
{
    if (!json_is_number(value))
        return rubbish(self, "has a logprob that is no number", err);
    *out = json_number_value(value);
    return 0;
}

static int read_top(reading *self, bal_said *to, json_t *top, bal_likely *room,
                    bal_error *err)
{
    const char *token = NULL;
    json_t *value = NULL;
    size_t count = 0;

    if (top && !json_is_object(top) && !json_is_null(top))
        return rubbish(self, "has a 'top' that is no object", err);
    to->top = room;
    json_object_foreach(top, token, value)
    {
        room[count].token = token;
        int rc = read_number(&room[count].logprob, value, self, err);
        if (rc)
            return rc;
        count++;
    }
    to->top_count = count;
    return 0;
}

static int read_said(reading *self, json_t *list, bal_error *err)
{
    size_t count = json_array_size(list);
    size_t likely = 0;

    for (size_t i = 0; i < count; i++)
        likely +=
            json_object_size(json_object_get(json_array_get(list, i), "top"));
    self->said = calloc(count + 1, sizeof(*self->said));
    self->likely = calloc(likely + 1, sizeof(*self->likely));
    if (!self->said || !self->likely)
        return bal_fail_memory(err, "an answer");
    likely = 0;
    for (size_t i = 0; i < count; i++) {
        json_t *one = json_array_get(list, i);
        const char *token = json_string_value(json_object_get(one, "token"));
        if (!token)
            return rubbish(self, "has logprobs without 'token'", err);
        self->said[i].token = token;
        int rc = read_number(&self->said[i].logprob,
                             json_object_get(one, "logprob"), self, err);
        if (!rc)
            rc = read_top(self, &self->said[i], json_object_get(one, "top"),
                          self->likely + likely, err);
        if (rc)
            return rc;
        likely += self->said[i].top_count;
    }
    self->count = count;
    return 0;
}

static int take_answer(bal_exchange *self, size_t i, const json_t *line,
                       bal_error *err)
{
    const char *output = json_string_value(json_object_get(line, "output"));
    json_t *logprobs = json_object_get(line, "logprobs");
    BAL_LOCAL(reading)
    to = {
        .exchange = self,
        .id = bal_probes_at(self->question->probes, i)->id,
    };

    if (self->seen[i])
        return rubbish(&to, "comes twice", err);
    if (!output)
        return rubbish(&to, "has no 'output' that is a text", err);
    if (logprobs && !json_is_array(logprobs) && !json_is_null(logprobs))
        return rubbish(&to, "has 'logprobs' that are no array", err);
    int rc = read_said(&to, logprobs, err);
    if (rc)
        return rc;
    const bal_answer answer = { output, to.said, to.count };
    rc = self->to->fn(self->to->ctx, i, &answer, err);
    if (rc)
        return rc;
    self->seen[i] = true;
    self->answered++;
    return 0;
}

/* How a line begins, for a message. */
static int quote_line(bal_buf *to, const char *text, size_t len, bal_error *err)
{
    return bal_printable(to, text, bal_min(len, 60), false, err);
}

/* What is worth knowing of who answers: texts and numbers alone. */
static int take_about(const bal_exchange *self, json_t *about, bal_error *err)
{
    const char *key = NULL;
    json_t *value = NULL;

    if (!json_is_object(about))
        return bal_fail(err, BAL_EIO, "%s: 'about' is no object", self->what);
    json_object_foreach(about, key, value)
    {
        if (!json_is_string(value) && !json_is_number(value))
            return bal_fail(err, BAL_EIO,
                            "%s: '%.80s' in 'about' is no text or number",
                            self->what, key);
        if (json_object_set(self->to->about, key, value))
            return bal_fail_memory(err, "a runner");
    }
    return 0;
}

int bal_exchange_line(void *ctx, const char *text, size_t len, bal_error *err)
{
    bal_exchange *self = ctx;
    BAL_OWN(json_t) line = NULL;
    BAL_LOCAL(bal_buf) shown = { 0 };
    bal_error why;

    if (!len || (len == 1 && text[0] == '\r'))
        return 0;
    int rc_parse = bal_json_parse(&line, text, len, "it", &why);
    if (rc_parse == BAL_ENOMEM)
        return bal_fail_memory(err, "an answer");
    if (rc_parse || !json_is_object(line)) {
        int rc = quote_line(&shown, text, len, err);
        return rc ? rc
                  : bal_fail(err, BAL_EIO,
                             "%s wrote a line that is no JSON object: %s%s%s",
                             self->what, bal_buf_string(&shown),
                             rc_parse ? ": " : "", rc_parse ? why.text : "");
    }
    const char *id = json_string_value(json_object_get(line, "id"));
    json_t *about = json_object_get(line, "about");
    if (!id && about)
        return take_about(self, about, err);
    size_t i = id ? bal_probes_find(self->question->probes, id) : BAL_NONE;
    if (!id)
        return bal_fail(err, BAL_EIO, "%s wrote an answer without an id",
                        self->what);
    if (i == BAL_NONE)
        return bal_fail(err, BAL_EIO,
                        "%s answered '%.80s', which was not asked", self->what,
                        id);
    return take_answer(self, i, line, err);
}

int bal_exchange_end(const bal_exchange *self, bal_error *err)
{
    const bal_probes *probes = self->question->probes;
    size_t count = bal_probes_count(probes);
    size_t i = 0;

    while (i < count && self->seen[i])
        i++;
    if (i == count)
        return 0;
    return bal_fail(err, BAL_EIO, "%s answered %zu of %zu probes, not '%.200s'",
                    self->what, self->answered, count,
                    bal_probes_at(probes, i)->id);
}

/* ---- both --------------------------------------------------------------- */

static int run_once(const bal_exchange_child *child,
                    const bal_question *question, double timeout,
                    const bal_exchange_to *to, bal_error *err)
{
    BAL_LOCAL(bal_exchange) talk = { .seen = NULL };
    int rc = bal_exchange_begin(&talk, question, to, err);
    if (rc)
        return rc;

    talk.what = child->what;
    bal_child_feed feeds[2] = { { 0, bal_exchange_fill, &talk } };
    if (child->stream) {
        bal_feed_rewind(child->stream);
        feeds[1] =
            (bal_child_feed){ BAL_FEED_FD, bal_feed_fill, child->stream };
    }
    const bal_child_job job = {
        .argv = child->argv,
        .env = child->env,
        .feeds = feeds,
        .feed_count = child->stream ? 2 : 1,
        .line = bal_exchange_line,
        .ctx = &talk,
        .timeout = timeout,
        .line_max = LINE_MAX_BYTES,
        .what = child->what,
    };
    rc = bal_child_run(&job, question->work, err);
    return rc ? rc : bal_exchange_end(&talk, err);
}

int bal_exchange_run(const bal_exchange_child *child,
                     const bal_question *question, const bal_exchange_to *to,
                     bal_error *err)
{
    double end = bal_clock_ticks() + question->options->timeout;
    int rc = 0;

    for (unsigned i = 0; i < question->options->repeat && !rc; i++) {
        double left = end - bal_clock_ticks();
        rc = left > 0 ? run_once(child, question, left, to, err)
                      : bal_fail(err, BAL_EIO, "%s took more than %g seconds",
                                 child->what, question->options->timeout);
    }
    return rc;
}
