/* Answers as they come, checked and put in order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/str.h"
#include "probe/fingerprint_inside.h"

/* A softmax that is rounded may give this much more than certainty. */
static const double above_one = 1e-6;

static int check_likely(const char *token, double logprob, bal_error *err)
{
    if (!token || !bal_utf8_valid(token, strlen(token)))
        return bal_fail(err, BAL_EINVAL, "a token is not utf-8");
    if (isnan(logprob) || logprob > above_one)
        return bal_fail(err, BAL_EINVAL,
                        "token '%s' has the log-probability %g", token,
                        logprob);
    return 0;
}

static int check_said(const bal_said *said, bal_error *err)
{
    int rc = check_likely(said->token, said->logprob, err);

    for (size_t i = 0; i < said->top_count && !rc; i++)
        rc = check_likely(said->top[i].token, said->top[i].logprob, err);
    return rc;
}

int bal_answer_check(const bal_answer *answer, bal_error *err)
{
    size_t len = answer->output ? strlen(answer->output) : 0;
    int rc = 0;

    if (!answer->output || !bal_utf8_valid(answer->output, len))
        return bal_fail(err, BAL_EINVAL, "the answer is not utf-8");
    if (len > BAL_ANSWER_MAX)
        return bal_fail(err, BAL_EINVAL, "the answer has more than %zu bytes",
                        BAL_ANSWER_MAX);
    if (answer->token_count > BAL_SAID_MAX)
        return bal_fail(err, BAL_EINVAL, "the answer has more than %zu tokens",
                        BAL_SAID_MAX);
    for (size_t i = 0; i < answer->token_count && !rc; i++)
        rc = check_said(&answer->tokens[i], err);
    return rc;
}

int bal_likely_compare(const void *a, const void *b)
{
    const bal_likely *one = a;
    const bal_likely *two = b;

    if (one->logprob > two->logprob)
        return -1;
    if (one->logprob < two->logprob)
        return 1;
    return strcmp(one->token, two->token);
}

/* By text, of one text the likelier in front. */
static int compare_text(const void *a, const void *b)
{
    const bal_likely *one = a;
    const bal_likely *two = b;
    int order = strcmp(one->token, two->token);

    return order ? order : bal_likely_compare(a, b);
}

/* Each text once, the likeliest in front; how many are left. */
static size_t put_in_order(bal_likely *list, size_t count)
{
    size_t left = 0;

    qsort(list, count, sizeof(*list), compare_text);
    for (size_t i = 0; i < count; i++) {
        if (!left || strcmp(list[left - 1].token, list[i].token) != 0)
            list[left++] = list[i];
    }
    qsort(list, left, sizeof(*list), bal_likely_compare);
    return left;
}

/* Also takes a zero's sign. */
static double clamped(double logprob)
{
    return logprob < 0 ? logprob : 0;
}

/* The list with the token that came, in work, which grows as needed. */
static int gather(bal_buf *work, const bal_said *said, bal_error *err)
{
    bal_likely own = { said->token, clamped(said->logprob) };
    uint64_t bytes;

    bal_buf_clear(work);
    if (!bal_mul(&bytes, said->top_count, sizeof(own)))
        return bal_fail_memory(err, "a list of tokens");
    int rc = bal_buf_reserve(work, (size_t)bytes + sizeof(own), err);
    if (!rc)
        rc = bal_buf_append(work, &own, sizeof(own), err);
    for (size_t i = 0; i < said->top_count && !rc; i++) {
        bal_likely likely = { said->top[i].token,
                              clamped(said->top[i].logprob) };
        rc = bal_buf_append(work, &likely, sizeof(likely), err);
    }
    return rc;
}

static size_t place_of(const bal_likely *list, const char *token)
{
    size_t at = 0;

    while (strcmp(list[at].token, token) != 0)
        at++;
    return at;
}

static int keep_list(bal_said *out, bal_arena *arena, bal_token_words *words,
                     const bal_likely *list, bal_error *err)
{
    bal_likely *top = bal_arena_alloc(arena, out->top_count * sizeof(*top));
    int rc = 0;

    if (!top)
        return bal_fail_memory(err, "an answer");
    for (size_t i = 0; i < out->top_count && !rc; i++) {
        top[i].logprob = list[i].logprob;
        rc = bal_token_words_keep(words, arena, list[i].token, &top[i].token,
                                  err);
    }
    out->top = top;
    return rc;
}

static int keep_said(bal_said *out, bal_arena *arena, bal_token_words *words,
                     const bal_said *said, bal_buf *work, bal_error *err)
{
    int rc = gather(work, said, err);
    if (rc)
        return rc;

    bal_likely *list = (bal_likely *)(void *)work->data;
    size_t count = put_in_order(list, said->top_count + 1);
    size_t own = place_of(list, said->token);
    if (own > BAL_TOP_MAX) {
        list[BAL_TOP_MAX] = list[own];
        own = BAL_TOP_MAX;
    }
    size_t most = own < BAL_TOP_MAX ? BAL_TOP_MAX : BAL_TOP_MAX + 1;
    out->top_count = (size_t)bal_min(count, most);
    rc = keep_list(out, arena, words, list, err);
    if (rc)
        return rc;
    out->token = out->top[own].token;
    out->logprob = out->top[own].logprob;
    return 0;
}

int bal_answer_keep(bal_answer *out, bal_arena *arena, bal_token_words *words,
                    const bal_answer *answer, bal_error *err)
{
    BAL_LOCAL(bal_buf) work = { 0 };
    bal_said *tokens =
        bal_arena_alloc(arena, answer->token_count * sizeof(*tokens));
    int rc = 0;

    if (!tokens)
        return bal_fail_memory(err, "an answer");
    for (size_t i = 0; i < answer->token_count && !rc; i++)
        rc =
            keep_said(&tokens[i], arena, words, &answer->tokens[i], &work, err);
    if (rc)
        return rc;
    out->tokens = tokens;
    out->token_count = answer->token_count;
    return 0;
}

size_t bal_answer_common(const bal_answer *a, const bal_answer *b,
                         size_t *compared)
{
    size_t shorter = (size_t)bal_min(a->token_count, b->token_count);
    size_t same = 0;

    while (same < shorter &&
           !strcmp(a->tokens[same].token, b->tokens[same].token))
        same++;
    *compared = (size_t)bal_min(same + 1, shorter);
    return same;
}
