/* Which commit changed an answer. The history between two commits is taken for
 * good up to some commit and bad from the next on, as git bisect takes it; the
 * ends are asked first, for a search between two that agree finds nothing. */
#include <string.h>

#include "core/child.h"
#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/str.h"
#include "model/pattern.h"
#include "store/subject.h"

enum { CANNOT_TELL = 125, BY_SIGNAL = 128, LINE_MAX_BYTES = 1 << 20 };

static const double default_timeout = 600;

typedef struct bisecting {
    bal_tenant *tenant;
    const bal_bisect_options *options;
    bal_pattern *pattern;
    const bal_id *good;
    bal_buf ids; /* from bad back to good */
    bool reached;
    uint64_t asked;
} bisecting;

static void bisecting_done(bisecting *self)
{
    bal_pattern_free(self->pattern);
    bal_buf_done(&self->ids);
}

/* ---- one verdict -------------------------------------------------------- */

static int matches(const bisecting *self, const bal_fingerprint *answers,
                   bool *good, bal_error *err)
{
    const bal_probes *probes = self->options->probes;
    int rc = 0;

    *good = true;
    for (size_t i = 0; i < bal_probes_count(probes) && *good && !rc; i++)
        rc = bal_pattern_find(
            self->pattern, bal_fingerprint_at(answers, i)->output, good, err);
    return rc;
}

static int ask(bisecting *self, const bal_id *commit, bool *good,
               bal_error *err)
{
    BAL_OWN(bal_fingerprint) answers = NULL;
    bal_ask_options options = self->options->ask;
    bool asked = false;

    options.flags |= BAL_ASK_REUSE;
    int rc = bal_ask(&answers, &asked, self->tenant, commit,
                     self->options->probes, &options, err);
    self->asked += asked;
    return rc ? rc : matches(self, answers, good, err);
}

static int pass_over(void *ctx, const char *text, size_t len, bal_error *err)
{
    (void)ctx;
    (void)text;
    (void)len;
    (void)err;
    return 0;
}

static int nothing(void *ctx, bal_buf *to, bal_error *err)
{
    (void)ctx;
    (void)to;
    (void)err;
    return 0;
}

static int run_in(const bisecting *self, const char *folder, const char *base,
                  int *status, bal_error *err)
{
    BAL_LOCAL(bal_buf) model = { 0 };
    BAL_LOCAL(bal_buf) under = { 0 };
    int rc = bal_buf_format(&model, err, "BALLAST_MODEL=%s", folder);

    if (!rc)
        rc = bal_buf_format(&under, err, "BALLAST_BASE=%s", base ? base : "");
    if (rc)
        return rc;
    const char *const argv[] = { "/bin/sh", "-c", self->options->command,
                                 NULL };
    const char *const env[] = { bal_buf_string(&model),
                                base ? bal_buf_string(&under) : NULL, NULL };
    const bal_child_feed feed = { 0, nothing, NULL };
    double timeout = self->options->ask.timeout;
    const bal_child_job job = {
        .argv = argv,
        .env = env,
        .feeds = &feed,
        .feed_count = 1,
        .line = pass_over,
        .timeout = timeout > 0 ? timeout : default_timeout,
        .line_max = LINE_MAX_BYTES,
        .what = "the command",
        .status = status,
    };
    return bal_child_run(&job, self->tenant->store->work, err);
}

static int run(bisecting *self, const bal_id *commit, bool *good,
               bal_error *err)
{
    BAL_OWN(bal_lock) lock = NULL;
    BAL_LOCAL(bal_subject) subject = { .stage = { .lock = -1 } };
    int status = 0;
    int rc = bal_asking_lock(&lock, self->tenant->store, BAL_LOCK_SHARED, err);
    if (rc)
        return rc;
    rc = bal_subject_open(&subject, self->tenant, commit, &self->options->ask,
                          BAL_WANTS_MODEL | BAL_WANTS_FOLDER, err);
    if (rc)
        return rc;
    char *folder = bal_path_join(subject.stage.dir, "model");
    rc = folder ? bal_model_write(subject.model, folder, NULL, NULL,
                                  self->tenant->store->work, err)
                : bal_fail_memory(err, "bisect");
    if (!rc)
        rc = run_in(self, folder, subject.base_folder, &status, err);
    bal_str_free(folder);
    self->asked++;
    *good = !status;
    if (rc || (status != CANNOT_TELL && status < BY_SIGNAL))
        return rc;
    return bal_fail(err, BAL_EIO, "the command cannot tell: status %d", status);
}

static int judge(bisecting *self, size_t i, bool *good, bal_error *err)
{
    const bal_id *commit = bal_ids_at(&self->ids, i);
    char hex[BAL_ID_HEX + 1];
    int rc = self->pattern ? ask(self, commit, good, err)
                           : run(self, commit, good, err);

    bal_id_hex(hex, commit);
    return rc ? bal_within(err, rc, "commit %.12s", hex) : 0;
}

/* ---- the search --------------------------------------------------------- */

static int keep(void *ctx, const bal_commit_row *row, bal_error *err)
{
    bisecting *self = ctx;
    int rc = bal_buf_append(&self->ids, &row->id, sizeof(row->id), err);

    self->reached = bal_id_equal(&row->id, self->good);
    return !rc && self->reached ? BAL_ROW_STOP : rc;
}

static int list(bisecting *self, const bal_id *bad, bal_error *err)
{
    char hex[2][BAL_ID_HEX + 1];
    int rc = bal_graph_history(self->tenant->store->graph, self->tenant->number,
                               bad, 0, keep, self, err);

    bal_id_hex(hex[0], self->good);
    bal_id_hex(hex[1], bad);
    if (!rc && !self->reached)
        rc = bal_fail(err, BAL_EINVAL, "%.12s is no ancestor of %.12s", hex[0],
                      hex[1]);
    if (!rc && bal_ids_count(&self->ids) < 2)
        rc = bal_fail(err, BAL_EINVAL,
                      "there is nothing between a commit and itself");
    return rc;
}

/* An end must be what it is called. */
static int check_end(bisecting *self, size_t i, bool want, bal_error *err)
{
    char hex[BAL_ID_HEX + 1];
    bool good = false;
    int rc = judge(self, i, &good, err);

    bal_id_hex(hex, bal_ids_at(&self->ids, i));
    if (rc || good == want)
        return rc;
    return bal_fail(err, BAL_EINVAL, "%.12s is %s, though it is called %s", hex,
                    good ? "good" : "bad", want ? "good" : "bad");
}

static int tell(const bisecting *self, size_t i, bool good, uint64_t left)
{
    const bal_bisect_options *options = self->options;

    return options->fn ? options->fn(options->ctx, bal_ids_at(&self->ids, i),
                                     good, left)
                       : 0;
}

static int search(bisecting *self, size_t *first_bad, bal_error *err)
{
    size_t bad = 0;
    size_t good = bal_ids_count(&self->ids) - 1;

    while (good - bad > 1) {
        size_t middle = bad + (good - bad) / 2;
        bool is_good = false;
        int rc = judge(self, middle, &is_good, err);
        if (rc)
            return rc;
        *(is_good ? &good : &bad) = middle;
        if (tell(self, middle, is_good, good - bad - 1))
            return bal_fail(err, BAL_ECANCELLED, "bisect was stopped");
    }
    *first_bad = bad;
    return 0;
}

static int check(const bal_bisect_options *options, bal_error *err)
{
    bool asks = options->probes && options->expect;

    if (asks == (options->command != NULL))
        return bal_fail(err, BAL_EINVAL,
                        "bisect needs either probes and what to expect, or a "
                        "command");
    return 0;
}

int bal_bisect(bal_bisected *out, bal_tenant *tenant, const bal_id *range,
               const bal_bisect_options *options, bal_error *err)
{
    BAL_LOCAL(bisecting)
    self = {
        .tenant = tenant,
        .options = options,
        .good = &range[0],
    };
    size_t first_bad = 0;
    int rc = check(options, err);

    if (!rc && options->expect)
        rc = bal_pattern_new(&self.pattern, options->expect, err);
    if (!rc)
        rc = list(&self, &range[1], err);
    if (!rc)
        rc = check_end(&self, bal_ids_count(&self.ids) - 1, true, err);
    if (!rc)
        rc = check_end(&self, 0, false, err);
    if (!rc)
        rc = search(&self, &first_bad, err);
    if (rc)
        return rc;
    out->commit = *bal_ids_at(&self.ids, first_bad);
    out->asked = self.asked;
    out->between = bal_ids_count(&self.ids) - 1;
    return 0;
}
