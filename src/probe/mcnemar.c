/* The exact McNemar test: a binomial tail at 1/2, good to 1e-12 of itself.
 *
 * Of its terms the largest is the last. For many pairs it comes from Loader's
 * saddle point ("Fast and accurate computation of binomial probabilities",
 * 2000), since differences of lgamma lose all that matters; the others follow
 * by their ratios until they no longer count, some ten standard deviations
 * on. */
#include <math.h>
#include <stdint.h>

#include "probe/compare.h"

/* Below these a coefficient is a product that a double holds. */
static const double few_pairs = 1000;
static const double few_one_sided = 16;
/* From here on the tail has too many terms to add up, and is normal to all
 * digits that anybody reads. */
static const double countless = 0x1p46;
/* Terms of this part of the sum are as good as none. */
static const double vanishing = 1e-22;

static const double two_pi = 6.283185307179586;

/* ln(n!) less Stirling's formula, n of 16 or more. */
static double stirling_error(double n)
{
    double nn = n * n;

    return (1.0 / 12 -
            (1.0 / 360 -
             (1.0 / 1260 - (1.0 / 1680 - 1.0 / 1188 / nn) / nn) / nn) /
                nn) /
           n;
}

/* x ln(x / m) + m - x. */
static double deviance(double x, double m)
{
    double v = (x - m) / (x + m);
    double sum = (x - m) * v;
    double term = 2 * x * v;

    if (fabs(v) >= 0.1)
        return x * log(x / m) + m - x;
    for (int j = 1; j < 100; j++) {
        term *= v * v;
        double next = sum + term / (2 * j + 1);
        if (next == sum) /* NOLINT: until nothing changes */
            break;
        sum = next;
    }
    return sum;
}

/* The probability of exactly k of n at 1/2; k <= n / 2. */
static double exactly(double k, double n)
{
    if (n <= few_pairs || k < few_one_sided) {
        double coefficient = 1;
        for (int i = 1; i <= (int)k; i++)
            coefficient *= (n - k + i) / i;
        return n < 1e6 ? ldexp(coefficient, -(int)n) : 0;
    }
    double log_size = stirling_error(n) - stirling_error(k) -
                      stirling_error(n - k) - deviance(k, n / 2) -
                      deviance(n - k, n / 2);
    return exp(log_size) * sqrt(n / (two_pi * k * (n - k)));
}

double bal_mcnemar(uint64_t only_a, uint64_t only_b)
{
    double n = (double)only_a + (double)only_b;
    double k = (double)(only_a < only_b ? only_a : only_b);
    double term = 1;
    double sum = 1;

    if (only_a == only_b)
        return 1;
    if (n > countless)
        return erfc((n / 2 - k - 0.5) / sqrt(n / 2));
    for (double i = k; term > vanishing * sum; i--) {
        term *= i / (n - i + 1);
        sum += term;
    }
    return fmin(1, 2 * exactly(k, n) * sum);
}
