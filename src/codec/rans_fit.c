/* Tables for what was counted: which contexts share one, and how they are
 * written, by what is smallest. */
#include <string.h>

#include "codec/rans.h"

enum {
    TABLES = BAL_RANS_TABLES,
    TOKENS = BAL_RANS_TOKENS,
    ROUGH_MOST = 1 << 17, /* bytes of a stream whose tables may weigh */
};

/* A run of contexts that share a table. */
typedef struct group {
    uint32_t count[TOKENS];
    uint64_t total; /* of the counts */
    uint64_t cost;  /* with the table, in 65536ths of a bit */
    size_t first;
} group;

typedef struct group_list {
    bal_rans_form form;
    size_t many;
    uint64_t cost;
    group of[TABLES];
} group_list;

/* Bits of counts under other frequencies than their own, in 65536ths. */
static uint64_t cost_under(const bal_rans *self, const uint32_t *count,
                           const uint16_t *freq)
{
    uint64_t cost = 0;

    for (size_t i = 0; i < TOKENS; i++) {
        uint32_t each = freq[i] ? self->log[freq[i]] : 0;
        cost += (uint64_t)count[i] * ((BAL_RANS_BITS << 16) - each);
    }
    return cost;
}

static void set_cost(const bal_rans *self, bal_rans_form form, group *one)
{
    uint16_t freq[TOKENS];
    bal_rans_shape shape;

    if (form == BAL_RANS_ROUGH) {
        bal_rans_set_heights(self, &shape, one->count);
        bal_rans_from_shape(freq, &shape);
        one->cost = cost_under(self, one->count, freq) +
                    (bal_rans_shape_bits(&shape) << 16);
        return;
    }
    bal_rans_scale(self, freq, one->count);
    one->cost =
        bal_rans_cost(self, one->count) + (bal_rans_table_bits(freq) << 16);
}

/* Contexts that do not occur have no say. */
static void join_two(const bal_rans *self, bal_rans_form form, group *out,
                     const group *a, const group *b)
{
    for (size_t i = 0; i < TOKENS; i++)
        out->count[i] = a->count[i] + b->count[i];
    out->total = a->total + b->total;
    out->first = a->first;
    if (a->total && b->total)
        set_cost(self, form, out);
    else
        out->cost = a->total ? a->cost : b->cost;
}

/* Join neighbours from the left on while that is cheaper. */
static size_t join_groups(const bal_rans *self, group_list *list)
{
    group *groups = list->of;
    size_t kept = 1;
    group both;

    for (size_t i = 1; i < list->many; i++) {
        join_two(self, list->form, &both, &groups[kept - 1], &groups[i]);
        if (both.cost <= groups[kept - 1].cost + groups[i].cost)
            groups[kept - 1] = both;
        else
            groups[kept++] = groups[i];
    }
    return kept;
}

static void find_groups(const bal_rans *self, group_list *out,
                        bal_rans_form form)
{
    size_t before;

    out->form = form;
    out->many = TABLES;
    for (size_t i = 0; i < TABLES; i++) {
        memcpy(out->of[i].count, self->count[0] + i * TOKENS,
               sizeof(out->of[i].count));
        out->of[i].first = i;
        out->of[i].total = 0;
        for (size_t k = 0; k < TOKENS; k++)
            out->of[i].total += out->of[i].count[k];
        set_cost(self, form, &out->of[i]);
    }
    do {
        before = out->many;
        out->many = join_groups(self, out);
    } while (out->many < before);

    out->cost = 0;
    for (size_t i = 0; i < out->many; i++)
        out->cost += out->of[i].cost;
}

static void sum_counts(bal_rans *self)
{
    for (size_t i = 0; i < (size_t)TABLES * TOKENS; i++)
        self->count[0][i] +=
            self->count[1][i] + self->count[2][i] + self->count[3][i];
}

static void set_codes(bal_rans *self, size_t table)
{
    uint32_t start = 0;

    for (size_t i = 0; i < TOKENS; i++) {
        uint32_t freq = self->freq[table][i];
        size_t at = table * TOKENS + i;
        uint32_t shift = freq > 1 ? 32 - (uint32_t)__builtin_clz(freq - 1) : 0;
        uint64_t one = (uint64_t)1 << (shift + 31);
        uint32_t bias = start + (freq > 1 ? 0 : BAL_RANS_SLOTS - 1);
        if (!freq)
            continue;
        uint32_t reciprocal =
            freq > 1 ? (uint32_t)((one + freq - 1) / freq) : UINT32_MAX;
        self->codes.code[at] = (uint64_t)reciprocal << 32 | freq | bias << 13 |
                               (shift ? shift - 1 : 0) << 26;
        start += freq;
    }
}

/* Bits of the block under frequencies as they are. */
static uint64_t bits_of(const bal_rans *self, size_t table)
{
    const uint32_t *count = self->count[0] + table * TOKENS;
    uint64_t bits = cost_under(self, count, self->freq[table]) >> 16;

    for (size_t i = 0; i < TOKENS; i++)
        bits += (uint64_t)count[i] * self->raw[i];
    return bits;
}

/* Has any context a token 1? */
static bool has_minus_nothing(const bal_rans *self)
{
    for (size_t i = 0; i < TABLES; i++) {
        if (self->count[0][i * TOKENS + 1])
            return true;
    }
    return false;
}

static void set_table(bal_rans *self, const group *one)
{
    size_t i = one->first;

    if (self->form == BAL_RANS_EXACT) {
        bal_rans_scale(self, self->freq[i], one->count);
        return;
    }
    bal_rans_set_heights(self, &self->shape[i], one->count);
    bal_rans_from_shape(self->freq[i], &self->shape[i]);
}

static void use_groups(bal_rans *self, const group_list *list)
{
    self->starts = 0;
    self->form = list->form;
    for (size_t g = 0; g < list->many; g++) {
        size_t first = list->of[g].first;
        size_t end = g + 1 < list->many ? list->of[g + 1].first : TABLES;
        self->starts |= (uint16_t)(1u << first);
        set_table(self, &list->of[g]);
        for (size_t i = first; i < end; i++) {
            memmove(self->freq[i], self->freq[first], sizeof(self->freq[i]));
            self->shape[i] = self->shape[first];
            set_codes(self, i);
            self->bits += bits_of(self, i);
        }
        self->bits += list->form == BAL_RANS_ROUGH
                          ? bal_rans_shape_bits(&self->shape[first])
                          : bal_rans_table_bits(self->freq[first]);
    }
    if (list->form == BAL_RANS_ROUGH)
        self->starts &= (uint16_t)~1u;
}

void bal_rans_fit(bal_rans *self)
{
    group_list exact;
    group_list rough = { .cost = UINT64_MAX };

    sum_counts(self);
    find_groups(self, &exact, BAL_RANS_EXACT);
    if (exact.cost >> 19 < ROUGH_MOST && !has_minus_nothing(self))
        find_groups(self, &rough, BAL_RANS_ROUGH);
    use_groups(self, rough.cost < exact.cost ? &rough : &exact);
}
