/* Ranges are computed in steps that fit a cache, with buffers of the call: a
 * model may be read by threads that belong to no pool. */
#include "model/wide.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "kernel/kernels.h"

bal_dtype bal_wide_of(bal_dtype a, bal_dtype b)
{
    return a == BAL_F64 || b == BAL_F64 ? BAL_F64 : BAL_F32;
}

void bal_widen(bal_dtype wide, void *out, bal_dtype from, const void *in,
               size_t n)
{
    const bal_kernels *kernels = bal_kernels_use();

    if (wide == BAL_F64)
        kernels->to_f64[from](out, in, n);
    else
        kernels->to_f32[from](out, in, n);
}

void bal_narrow(bal_dtype to, void *out, bal_dtype wide, const void *in,
                size_t n)
{
    const bal_kernels *kernels = bal_kernels_use();

    if (wide == BAL_F64)
        kernels->from_f64[to](out, in, n);
    else
        kernels->from_f32[to](out, in, n);
}

void bal_wide_sub(bal_dtype wide, void *out, const void *a, const void *b,
                  size_t n)
{
    const bal_kernels *kernels = bal_kernels_use();

    if (wide == BAL_F64)
        kernels->sub_f64(out, a, b, n);
    else
        kernels->sub_f32(out, a, b, n);
}

void bal_wide_add(bal_dtype wide, void *out, const void *a, const void *b,
                  size_t n)
{
    const bal_kernels *kernels = bal_kernels_use();

    if (wide == BAL_F64)
        kernels->add_f64(out, a, b, n);
    else
        kernels->add_f32(out, a, b, n);
}

/* log2 of the bytes of a float dtype. */
static size_t width_index(bal_dtype of)
{
    return (size_t)__builtin_ctz(bal_dtype_bits(of) / 8);
}

void bal_residual_sub(bal_dtype of, void *out, const void *a, const void *b,
                      size_t n)
{
    bal_kernels_use()->sub_bits[width_index(of)](out, a, b, n);
}

void bal_residual_add(bal_dtype of, void *out, const void *a, const void *b,
                      size_t n)
{
    bal_kernels_use()->add_bits[width_index(of)](out, a, b, n);
}

const void *bal_widened(bal_dtype wide, void *room, bal_dtype from,
                        const void *in, size_t n)
{
    if (from == wide)
        return in;
    bal_widen(wide, room, from, in, n);
    return room;
}

/* ---- a range of several entries at once ---------------------------------- */

/* Reads are long, for what is below may have a block to decode or a system call
 * to make; computing is done in pieces that stay in the nearest cache. */
enum { STEP = 128 * 1024, ALIGN = 64, WIDEST = 8 };

typedef struct wide_room {
    uint8_t *raw[BAL_SOURCES_MAX]; /* a step each */
    uint8_t *room[BAL_SOURCES_MAX];
    uint8_t *out; /* a chunk, for results whose place is not aligned */
    void *memory;
} wide_room;

static void wide_room_done(wide_room *self)
{
    free(self->memory);
}

static size_t step_of(const bal_wide_job *job)
{
    return job->step ? job->step : STEP;
}

static int wide_room_make(wide_room *out, const bal_wide_job *job, uint64_t n,
                          bal_error *err)
{
    size_t step =
        (size_t)bal_min((n + ALIGN - 1) / ALIGN * ALIGN, step_of(job));
    size_t chunk = bal_min(step, BAL_CHUNK) * WIDEST;
    size_t size = (BAL_SOURCES_MAX + 1) * chunk;

    for (size_t i = 0; i < job->count; i++)
        size += step * job->sources[i].width;
    out->memory = malloc(size + BAL_PAGE);
    if (!out->memory)
        return bal_fail_memory(err, "computing with a tensor");
    uint8_t *at = bal_page_start(out->memory);
    for (size_t i = 0; i < BAL_SOURCES_MAX; i++, at += chunk)
        out->room[i] = at;
    out->out = at;
    at += chunk;
    for (size_t i = 0; i < job->count; i++) {
        out->raw[i] = at;
        at += step * job->sources[i].width;
    }
    return 0;
}

static int read_step(const wide_room *room, const bal_wide_job *job,
                     uint64_t at, size_t n, bal_error *err)
{
    for (size_t i = 0; i < job->count; i++) {
        const bal_operand *from = &job->sources[i];
        size_t len = n * from->width;
        uint8_t *raw = room->raw[i];
        int rc = 0;

        if (from->model)
            rc = bal_model_read(from->model, from->entry, at * from->width, raw,
                                len, err);
        else if (raw)
            memset(raw, 0, len);
        if (rc)
            return rc;
    }
    return 0;
}

static void compute_step(const wide_room *room, const bal_wide_job *job,
                         uint8_t *to, size_t n)
{
    bool direct = !job->width || (uintptr_t)to % job->width == 0;

    assert(to || !job->width);
    for (size_t at = 0; at < n; at += BAL_CHUNK) {
        bal_chunk chunk = { .n = (size_t)bal_min(n - at, BAL_CHUNK) };
        for (size_t i = 0; i < job->count; i++)
            chunk.raw[i] = room->raw[i] + at * job->sources[i].width;
        for (size_t i = 0; i < BAL_SOURCES_MAX; i++)
            chunk.room[i] = room->room[i];
        chunk.to = direct ? to : room->out;
        job->fn(&chunk, job->ctx);
        if (!direct)
            memcpy(to, room->out, chunk.n * job->width);
        if (to)
            to += chunk.n * job->width;
    }
}

int bal_wide_run(const bal_wide_job *job, uint64_t at, uint64_t n, void *to,
                 bal_error *err)
{
    BAL_LOCAL(wide_room) room = { 0 };
    uint8_t *out = to;

    int rc = wide_room_make(&room, job, n, err);
    if (rc)
        return rc;
    while (n) {
        size_t some = (size_t)bal_min(n, step_of(job));
        rc = read_step(&room, job, at, some, err);
        if (rc)
            return rc;
        compute_step(&room, job, out, some);
        at += some;
        n -= some;
        if (out)
            out += some * job->width;
    }
    return 0;
}
