/* Asking a commit's model: the answers become a fingerprint. */
#include <math.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/str.h"
#include "store/subject.h"

enum {
    TOKENS_MAX = 65536,
    REPEAT_MAX = 100,
    PARALLEL_MAX = 1024,
};

static const double timeout_max = 1e7;

/* What asking works with. */
typedef struct asking {
    bal_tenant *tenant;
    const bal_id *commit;
    bal_probes *probes;
    bal_ask_options options; /* defaults filled in */
    const bal_runner_row *runner;
    bal_buf terms;
    bal_subject subject;
} asking;

static void asking_done(asking *self)
{
    bal_buf_done(&self->terms);
    bal_subject_done(&self->subject);
}

/* ---- what is asked for -------------------------------------------------- */

static int check(const bal_ask_options *options, bal_error *err)
{
    const struct {
        const char *name;
        double value, most;
    } rows[] = {
        { "timeout", options->timeout, timeout_max },
        { "max-tokens", (double)options->max_tokens, TOKENS_MAX },
        { "repeat", options->repeat, REPEAT_MAX },
        { "top", options->top, (double)BAL_TOP_MAX },
        { "concurrency", options->parallel, PARALLEL_MAX },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!(rows[i].value > 0) || rows[i].value > rows[i].most)
            return bal_fail(err, BAL_EINVAL, "%s must be above 0, at most %.0f",
                            rows[i].name, rows[i].most);
    }
    return 0;
}

static void fill(bal_ask_options *options)
{
    if (options->timeout == 0)
        options->timeout = 600;
    if (!options->max_tokens)
        options->max_tokens = 32;
    if (!options->repeat)
        options->repeat = 1;
    if (!options->top)
        options->top = 20;
    if (!options->parallel)
        options->parallel = 8;
}

static int write_terms(asking *self, bal_error *err)
{
    BAL_OWN(json_t)
    terms = json_pack("{s:s,s:I}", "runner", self->options.runner, "max_tokens",
                      (json_int_t)self->options.max_tokens);

    if (!terms)
        return bal_fail_memory(err, "asking");
    int rc = self->runner->terms(terms, &self->options, err);
    return rc ? rc : bal_json_canonical(&self->terms, terms, err);
}

static int begin(asking *self, bal_error *err)
{
    if (!self->options.runner)
        return bal_fail(err, BAL_EINVAL, "no runner is named");
    int rc = bal_runner_find(&self->runner, self->options.runner, err);
    if (rc)
        return rc;
    fill(&self->options);
    rc = check(&self->options, err);
    if (!rc)
        rc = self->runner->check(&self->options, err);
    return rc ? rc : write_terms(self, err);
}

/* ---- answers ------------------------------------------------------------ */

/* An answer that cannot be is the runner's fault, not the caller's. */
static int take(void *ctx, size_t probe, const bal_answer *answer,
                bal_error *err)
{
    bal_error why = { 0 };
    int rc = bal_fingerprint_add(ctx, probe, answer, &why);

    if (!rc)
        return 0;
    return bal_fail(err, rc == BAL_EINVAL ? BAL_EIO : rc, "%s", why.text);
}

static int tell(bal_fingerprint *fingerprint, json_t *about, const asking *self,
                double seconds, bal_error *err)
{
    json_int_t repeat = self->options.repeat;
    char text[32];

    bal_f64_text(text, seconds);
    bool failed = json_object_set_new(about, "seconds", json_string(text));
    if (!json_object_get(about, "partial"))
        failed |= json_object_set_new(about, "repeat", json_integer(repeat));
    char *json = failed ? NULL : json_dumps(about, JSON_COMPACT);
    if (!json)
        return bal_fail_memory(err, "asking");
    int rc = bal_fingerprint_about(fingerprint, json, err);
    bal_str_free(json);
    return rc;
}

/* Some answers came, or not as often as was asked: "partial" in what is worth
 * knowing says why. */
static int make_do(json_t *about, const bal_fingerprint *fingerprint,
                   const char *why, bal_error *err)
{
    bal_warn("ask", "answers=%zu of=%zu why=\"%s\"",
             bal_fingerprint_count(fingerprint),
             bal_probes_count(bal_fingerprint_probes(fingerprint)), why);
    return json_object_set_new(about, "partial", json_string(why))
               ? bal_fail_memory(err, "asking")
               : 0;
}

/* The base's name is worth knowing; where it lies is nobody's business. */
static int name_base(json_t *about, const char *folder, bal_error *err)
{
    const char *slash = folder ? strrchr(folder, '/') : NULL;

    if (!folder)
        return 0;
    return json_object_set_new(about, "base",
                               json_string(slash ? slash + 1 : folder))
               ? bal_fail_memory(err, "asking")
               : 0;
}

static int ask(bal_fingerprint **out, asking *self, bal_error *err)
{
    BAL_OWN(bal_fingerprint) fingerprint = NULL;
    BAL_OWN(json_t) about = json_object();
    double start = bal_clock_ticks();
    unsigned flags = 0;
    int rc = bal_fingerprint_new(&fingerprint, self->probes,
                                 bal_buf_string(&self->terms), err);
    if (rc)
        return rc;
    rc = name_base(about, self->subject.base_folder, err);
    if (rc)
        return rc;
    const bal_question question = {
        .probes = self->probes,
        .options = &self->options,
        .model = self->subject.model,
        .commit = self->commit,
        .tenant = self->tenant->name,
        .base = self->subject.base_folder,
        .scratch = self->subject.stage.dir,
        .work = self->tenant->store->work,
    };
    rc = self->runner->ask(&question, take, fingerprint, about, err);
    bal_subject_done(&self->subject);
    if (rc == BAL_EIO && self->options.flags & BAL_ASK_PARTIAL &&
        bal_fingerprint_count(fingerprint)) {
        rc = make_do(about, fingerprint, err ? err->text : "", err);
        flags = BAL_FINGERPRINT_PARTIAL;
    }
    if (!rc)
        rc = tell(fingerprint, about, self, bal_clock_ticks() - start, err);
    if (!rc)
        rc = bal_fingerprint_put(fingerprint, self->tenant, self->commit, flags,
                                 err);
    if (!rc)
        *out = BAL_TAKE(fingerprint);
    return rc;
}

/* What is recorded, if it is whole. */
static int recall(bal_fingerprint **out, bool *found, const asking *self,
                  bal_error *err)
{
    BAL_OWN(bal_fingerprint) fingerprint = NULL;
    bal_error why = { 0 };
    int rc = bal_fingerprint_open(&fingerprint, self->tenant, self->commit,
                                  bal_probes_id(self->probes),
                                  bal_buf_string(&self->terms), &why);

    *found = false;
    if (rc == BAL_ENOTFOUND)
        return 0;
    if (rc)
        return bal_fail(err, rc, "%s", why.text);
    if (bal_fingerprint_count(fingerprint) < bal_probes_count(self->probes))
        return 0;
    *found = true;
    *out = BAL_TAKE(fingerprint);
    return 0;
}

int bal_ask(bal_fingerprint **out, bool *asked, bal_tenant *tenant,
            const bal_id *commit, bal_probes *probes,
            const bal_ask_options *options, bal_error *err)
{
    BAL_OWN(bal_lock) lock = NULL; /* until the scratch folder is gone */
    BAL_LOCAL(asking)
    self = {
        .tenant = tenant,
        .commit = commit,
        .probes = probes,
        .options = *options,
        .subject = { .stage = { .lock = -1 } },
    };
    bool found = false;
    int rc = begin(&self, err);

    if (!rc && options->flags & BAL_ASK_REUSE)
        rc = recall(out, &found, &self, err);
    if (asked)
        *asked = !found;
    if (rc || found)
        return rc;
    rc = bal_asking_lock(&lock, tenant->store, BAL_LOCK_SHARED, err);
    if (!rc)
        rc = bal_subject_open(&self.subject, tenant, commit, &self.options,
                              self.runner->wants, err);
    return rc ? rc : ask(out, &self, err);
}
