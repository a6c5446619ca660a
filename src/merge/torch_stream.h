/* The random numbers that mergekit draws: those of torch's CPU generator, which
 * is MT19937 (Matsumoto, Nishimura, "Mersenne twister", ACM TOMACS 8/1) started
 * by its 32-bit initialisation. A generator has one stream, from which tensor
 * after tensor is served; here any part of it can be had, in any order, from
 * any thread.
 *
 * Getting to a place costs a step for each number on the way from the last
 * state that is kept: one of every million numbers from the start to the
 * furthest place that was asked for (2.5 KiB each, fewer of longer streams, so
 * that it is 164 MiB at most), and one for each of those who go on from where
 * they were. */
#ifndef MERGE_TORCH_STREAM_H
#define MERGE_TORCH_STREAM_H

#include "ballast.h"

#include "core/own.h"

typedef struct bal_torch_stream bal_torch_stream;

/* More numbers are refused: they take too long to be counted through. */
#define BAL_TORCH_STREAM_MOST ((uint64_t)1 << 40)

/* seed is taken modulo 2^32, as torch does; length is how many numbers will be
 * asked for at most. EUNSUPPORTED: more than BAL_TORCH_STREAM_MOST. */
BAL_CHECK int bal_torch_stream_new(bal_torch_stream **out, uint64_t seed,
                                   uint64_t length, bal_error *err);
void bal_torch_stream_free(bal_torch_stream *self);
BAL_OWNABLE(bal_torch_stream)
/* Numbers at, at + 1 … at + n - 1, counted from 0. */
void bal_torch_stream_take(bal_torch_stream *self, uint64_t at, uint32_t *out,
                           size_t n);
/* How many numbers torch.randint draws for one below `bound`, and the one that
 * it makes of them. */
size_t bal_torch_randint_draws(uint64_t bound);
uint64_t bal_torch_randint(const uint32_t *drawn, uint64_t bound);
/* torch.bernoulli keeps where this, of one number, is less than the chance. */
double bal_torch_uniform(uint32_t drawn);

#endif
