/* Lines that a runner wrote, of any bytes: each is an answer that can be kept,
 * or an error with a text, and no probe is answered twice. */
#include <stdlib.h>
#include <string.h>

#include "probe/exchange.h"
#include "support/fuzz.h"
#include "support/probes.h"

static void must(bool holds)
{
    if (!holds)
        abort();
}

typedef struct taken {
    size_t times[2];
} taken;

static int take(void *ctx, size_t probe, const bal_answer *answer,
                bal_error *err)
{
    taken *self = ctx;
    size_t bytes = strlen(answer->output);

    (void)err;
    for (size_t i = 0; i < answer->token_count; i++) {
        const bal_said *said = &answer->tokens[i];
        bytes += strlen(said->token);
        for (size_t k = 0; k < said->top_count; k++)
            bytes += strlen(said->top[k].token);
    }
    must(probe < 2 && bytes < SIZE_MAX);
    must(++self->times[probe] == 1);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BAL_OWN(bal_probes)
    probes = probes_of("[{\"id\":\"p0\",\"prompt\":\"0\"},"
                       "{\"id\":\"p1\",\"prompt\":\"1\"}]");
    BAL_OWN(json_t) about = json_object();
    BAL_LOCAL(bal_exchange) talk = { .seen = NULL };
    const bal_ask_options options = { .max_tokens = 8 };
    const bal_question question = { .probes = probes, .options = &options };
    taken got = { { 0 } };
    const bal_exchange_to to = { take, &got, about };
    BAL_LOCAL(bal_buf) text = { 0 };

    must(!bal_exchange_begin(&talk, &question, &to, NULL));
    must(!bal_buf_append(&text, data, size, NULL));
    char *line = text.data;
    for (char *end = line + size; line < end;) {
        char *stop = memchr(line, '\n', (size_t)(end - line));
        bal_error err = { 0 };

        stop = stop ? stop : end;
        *stop = '\0';
        int rc = bal_exchange_line(&talk, line, (size_t)(stop - line), &err);
        must(!rc || err.text[0]);
        line = stop + 1;
    }
    must((bal_exchange_end(&talk, NULL) == 0) ==
         (got.times[0] && got.times[1]));
    return 0;
}
