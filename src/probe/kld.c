/* Kullback-Leibler divergence of two short lists of likely tokens. */
#include <math.h>
#include <string.h>

#include "probe/compare.h"

/* Engines take log-probabilities in float32, so what is left of 1 is known to
 * some 1e-7 for each token that is listed. A rest of b that is smaller than
 * this is taken for it: the divergence told is then less than the true one, and
 * never more. */
static const double least_rest = 0x1p-20;

/* What is not listed has no probability of its own. */
static double logprob_in(const bal_said *in, const char *token)
{
    for (size_t i = 0; i < in->top_count; i++) {
        if (!strcmp(in->top[i].token, token))
            return in->top[i].logprob;
    }
    return -(double)INFINITY;
}

static double positive(double value)
{
    return value > 0 ? value : 0;
}

double bal_kld(const bal_said *a, const bal_said *b)
{
    double sum = 0;
    double rest_a = 1;
    double rest_b = 1;

    if (!a->top_count || !b->top_count)
        return (double)NAN;
    for (size_t i = 0; i < a->top_count; i++) {
        const bal_likely *of_a = &a->top[i];
        double of_b = logprob_in(b, of_a->token);
        double p = exp(of_a->logprob);
        double q = exp(of_b);

        /* Listed, but with no probability: part of the rest, as are those that
         * are not listed. */
        if (!(q > 0))
            continue;
        rest_a -= p;
        rest_b -= q;
        if (p > 0)
            sum += p * (of_a->logprob - of_b);
    }
    if (rest_a > 0)
        sum += rest_a * log(rest_a / fmax(rest_b, least_rest));
    return positive(sum);
}
