/* Probes out and answers in, as JSON Lines over pipes: what a process runner
 * and transformers speak. docs/behaviour.md has it for people who write one. */
#ifndef PROBE_EXCHANGE_H
#define PROBE_EXCHANGE_H

#include "core/child.h"
#include "probe/feed.h"
#include "probe/runner.h"

/* Where answers go. */
typedef struct bal_exchange_to {
    bal_answer_fn *fn;
    void *ctx;
    json_t *about; /* texts and numbers of a line {"about": {…}} */
} bal_exchange_to;

typedef struct bal_exchange {
    const bal_question *question;
    const bal_exchange_to *to;
    const char *what; /* named in messages */
    size_t next;      /* the probe to be written */
    size_t answered;
    bool *seen; /* by probe */
} bal_exchange;

BAL_CHECK int bal_exchange_begin(bal_exchange *out,
                                 const bal_question *question,
                                 const bal_exchange_to *to, bal_error *err);
/* As fill and line of core/child.h, with a bal_exchange as ctx. */
BAL_CHECK int bal_exchange_fill(void *ctx, bal_buf *to, bal_error *err);
BAL_CHECK int bal_exchange_line(void *ctx, const char *text, size_t len,
                                bal_error *err);
/* EIO: a probe has no answer; names the first. */
BAL_CHECK int bal_exchange_end(const bal_exchange *self, bal_error *err);
void bal_exchange_done(bal_exchange *self);

/* Run a child with it, question->options->repeat times. */
typedef struct bal_exchange_child {
    const char *const *argv;
    const char *const *env;
    bal_feed *stream; /* goes in beside the probes; NULL: nothing does */
    const char *what;
} bal_exchange_child;
BAL_CHECK int bal_exchange_run(const bal_exchange_child *child,
                               const bal_question *question,
                               const bal_exchange_to *to, bal_error *err);

#endif
