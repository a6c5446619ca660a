/* Who answers probes: a command, a server, transformers with PEFT, a stand-in.
 * One vtable; the rows are found by name. */
#ifndef PROBE_RUNNER_H
#define PROBE_RUNNER_H

#include "core/buf.h"
#include "core/json.h"
#include "core/own.h"
#include "core/pool.h"
#include "model/model.h"
#include "probe/fingerprint.h"

/* What is asked, and of what. */
typedef struct bal_question {
    const bal_probes *probes;
    const bal_ask_options *options; /* defaults filled in, texts as given */
    /* The model: an adapter, or one that stands alone (a delta is given with
     * its base under it). */
    bal_model *model;
    const bal_id *commit;
    const char *tenant;
    const char *base;    /* a folder with the base model, NULL: none is given */
    const char *scratch; /* a directory for what must be a file; made and
                            removed by whoever asks */
    bal_work *work;      /* polled while waiting */
} bal_question;

/* Answers come in any order, each probe options->repeat times. */
typedef int bal_answer_fn(void *ctx, size_t probe, const bal_answer *answer,
                          bal_error *err);

enum bal_runner_wants {
    BAL_WANTS_MODEL = 1,  /* a model that stands alone, or an adapter: of a
                             delta, its base with it */
    BAL_WANTS_FOLDER = 2, /* what lies in scratch, base that is no folder too */
};

typedef struct bal_runner_row {
    const char *name;
    unsigned wants;
    /* EINVAL: an option that it needs is not given. Before anything is done. */
    int (*check)(const bal_ask_options *options, bal_error *err);
    /* Members of the terms that are its own, and of what is worth knowing
     * (engine, version, model) into two JSON objects; terms before asking,
     * about after. */
    int (*terms)(json_t *terms, const bal_ask_options *options, bal_error *err);
    /* Call fn for each answer; what it fails with is what ask fails with. EIO:
     * it hangs, crashes, prints rubbish, drops probes, answers for another
     * model, cannot be reached: one line that names the thing. fn may have been
     * called by then. */
    int (*ask)(const bal_question *question, bal_answer_fn *fn, void *ctx,
               json_t *about, bal_error *err);
} bal_runner_row;

/* EINVAL names those there are. */
BAL_CHECK int bal_runner_find(const bal_runner_row **out, const char *name,
                              bal_error *err);

extern const bal_runner_row bal_runner_process;
extern const bal_runner_row bal_runner_http;
extern const bal_runner_row bal_runner_peft;
extern const bal_runner_row bal_runner_fake;

#endif
