#include "support/made_model.h"

#include <stdlib.h>
#include <string.h>

#include "support/check.h"

typedef struct made {
    bal_model model;
    const void **bytes; /* by tag */
} made;

static int made_read(bal_model *model, size_t i, uint64_t offset, void *to,
                     size_t len, bal_error *err)
{
    made *self = (made *)model;
    const uint8_t *bytes = self->bytes[bal_model_tag(model, i)];
    (void)err;

    memcpy(to, bytes + offset, len);
    return 0;
}

static void made_free(bal_model *model)
{
    free(((made *)model)->bytes);
}

static const bal_model_ops made_ops = {
    .read = made_read,
    .free = made_free,
};

bal_model *made_model(bal_kind kind, const char *base_model,
                      const made_row *rows, size_t count)
{
    made *self = bal_model_alloc(sizeof(*self), &made_ops);
    bal_facts facts = { .kind = kind,
                        .name = "made",
                        .base_model = base_model };

    CHECK(self != NULL);
    self->bytes = calloc(count + 1, sizeof(*self->bytes));
    CHECK(self->bytes != NULL);
    for (size_t i = 0; i < count; i++) {
        const made_row *row = &rows[i];
        uint64_t length = 0;
        bal_tensor entry = {
            .name = row->name,
            .part = row->part,
            .form = row->form,
            .dtype = row->dtype,
            .of = row->form == BAL_FORM_DIFFERENCE ? row->of : row->dtype,
            .rank = row->rank,
            .shape = row->shape,
            .base = row->base,
            .tuned = row->tuned,
        };
        if (row->part != BAL_PART_TENSOR) {
            length = row->bytes ? strlen(row->bytes) : 0;
            entry.dtype = BAL_U8;
            entry.of = BAL_U8;
            entry.rank = 1;
            entry.shape = &length;
        }
        self->bytes[i] = row->bytes;
        CHECK_OK(bal_model_add(&self->model, &entry, i, &check_err));
    }
    CHECK_OK(bal_model_tell(&self->model, &facts, &check_err));
    CHECK_OK(bal_model_ready(&self->model, &check_err));
    return &self->model;
}

bal_id made_id(unsigned seed)
{
    bal_id id = { { 0 } };

    for (size_t i = 0; i < 4; i++)
        id.bytes[i] = (uint8_t)(seed >> (8 * i));
    return id;
}

void made_floats(float *out, size_t n, unsigned seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;

    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        out[i] = (float)((double)(int64_t)state / 9223372036854775808.0);
    }
}

void made_bf16(uint16_t *out, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++) {
        float value;
        made_floats(&value, 1, seed + (unsigned)i);
        out[i] = bf16_round((double)value);
    }
}

float bf16_value(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;

    memcpy(&value, &wide, sizeof(value));
    return value;
}

/* The nearer of the two neighbours, found by trying. */
uint16_t bf16_round(double value)
{
    float near = (float)value;
    uint32_t wide;

    memcpy(&wide, &near, sizeof(wide));
    uint16_t best = (uint16_t)(wide >> 16);
    for (int step = -1; step <= 1; step += 2) {
        uint16_t other = (uint16_t)(best + step);
        double was = (double)bf16_value(best) - value;
        double is = (double)bf16_value(other) - value;
        was = was < 0 ? -was : was;
        is = is < 0 ? -is : is;
        if (is < was || (is == was && !(other & 1)))
            best = other;
    }
    return best;
}
