/* The records: arrays back to back, each behind a head that says whose it is,
 * with no index before and no padding between. Only the heads are read. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "wdelta/file.h"

/* A head is a name of 4096 bytes, short texts and a few dimensions at most. */
enum { WINDOW = 8192, TEXT_MAX = 4096, RANK_MAX = 8 };

typedef struct head {
    uint8_t bytes[WINDOW];
    size_t len, at;
    uint64_t start; /* in the file */
} head;

typedef struct record {
    const char *name, *field, *dtype;
    size_t name_len, field_len, dtype_len;
    uint64_t elements; /* by the shape */
    uint64_t data, size;
} record;

static int bad(const bal_wdelta *self, uint64_t at, const char *why,
               bal_error *err)
{
    return bal_fail(err, BAL_ECORRUPT,
                    "'%s': the record at byte %" PRIu64 " %s", self->file->path,
                    at, why);
}

static bool take32(head *self, uint32_t *out)
{
    if (self->len - self->at < 4)
        return false;
    *out = bal_get32(self->bytes + self->at);
    self->at += 4;
    return true;
}

static bool take64(head *self, uint64_t *out)
{
    if (self->len - self->at < 8)
        return false;
    *out = bal_get64(self->bytes + self->at);
    self->at += 8;
    return true;
}

static bool take_text(head *self, const char **out, size_t *len)
{
    uint32_t size = 0;

    if (!take32(self, &size) || size > TEXT_MAX || size > self->len - self->at)
        return false;
    *out = (const char *)self->bytes + self->at;
    *len = size;
    self->at += size;
    return true;
}

static bool take_shape(head *self, uint64_t *elements)
{
    uint64_t shape[RANK_MAX];
    uint32_t rank = 0;

    if (!take32(self, &rank) || rank > RANK_MAX)
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        if (!take64(self, &shape[i]))
            return false;
    }
    return bal_wd_elements(elements, shape, rank);
}

static bool take_record(head *self, record *out)
{
    return take_text(self, &out->name, &out->name_len) &&
           take_text(self, &out->field, &out->field_len) &&
           take_text(self, &out->dtype, &out->dtype_len) &&
           take_shape(self, &out->elements) && take64(self, &out->size);
}

static bool is(const char *text, size_t len, const char *want)
{
    return strlen(want) == len && !memcmp(text, want, len);
}

static bool find_number(bal_wd_number *out, const record *from)
{
    for (size_t i = 0; i < BAL_WD_NUMBERS; i++) {
        if (is(from->dtype, from->dtype_len, bal_wd_name((bal_wd_number)i))) {
            *out = (bal_wd_number)i;
            return true;
        }
    }
    return false;
}

/* The place of a field among the strategy's arrays; BAL_NONE. */
static size_t find_field(const bal_wd_strategy *strategy, const record *from)
{
    for (size_t i = 0; i < BAL_WD_FIELDS && strategy->fields[i].name; i++) {
        if (is(from->field, from->field_len, strategy->fields[i].name))
            return i;
    }
    return BAL_NONE;
}

static int place(bal_wdelta *self, uint64_t at, const record *from,
                 bal_error *err)
{
    size_t i = bal_map_find(&self->names, from->name, from->name_len);
    if (i == BAL_NONE)
        return bad(self, at, "is of a tensor that the header lacks", err);
    bal_wd_tensor *tensor = &self->tensors[i];
    const bal_wd_strategy *strategy = bal_wd_strategy_of(tensor->kind);
    size_t field = find_field(strategy, from);
    bal_wd_number number = BAL_WD_NUMBERS;
    uint64_t size = 0;

    if (field == BAL_NONE)
        return bad(self, at, "is an array that its strategy has not", err);
    if (tensor->arrays[field].there)
        return bad(self, at, "is there twice", err);
    if (!find_number(&number, from) ||
        !(strategy->fields[field].numbers & 1u << number))
        return bad(self, at, "has a dtype that it may not have", err);
    if (!bal_mul(&size, from->elements, bal_wd_width(number)) ||
        size != from->size)
        return bad(self, at, "has another length than its shape", err);
    tensor->arrays[field] =
        (bal_wd_array){ true, number, from->data, from->elements };
    tensor->bytes += size;
    if (!tensor->listed)
        self->order[self->order_count++] = i;
    tensor->listed = true;
    return 0;
}

static int read_head(bal_wdelta *self, head *window, uint64_t at, uint64_t end,
                     bal_error *err)
{
    window->start = at;
    window->at = 0;
    window->len = (size_t)bal_min(WINDOW, end - at);
    return bal_file_read(self->file, at, window->bytes, window->len, err);
}

/* All arrays that the header asks for, each as long as it must be. */
static int check_tensors(const bal_wdelta *self, bal_error *err)
{
    for (size_t i = 0; i < self->count; i++) {
        const bal_wd_tensor *tensor = &self->tensors[i];
        const bal_wd_strategy *strategy = bal_wd_strategy_of(tensor->kind);
        const char *wrong = NULL;
        for (size_t k = 0; k < BAL_WD_FIELDS && strategy->fields[k].name; k++) {
            if (!tensor->arrays[k].there)
                wrong = "an array is missing";
        }
        if (!wrong)
            wrong = strategy->wrong(tensor);
        if (!wrong && (tensor->kind == BAL_WD_LOSSLESS) != bal_wd_exact(self))
            wrong = "lossless beside others";
        if (wrong)
            return bal_fail(err, BAL_ECORRUPT, "'%s': tensor '%.200s': %s",
                            self->file->path, tensor->name, wrong);
    }
    return 0;
}

int bal_wd_records_walk(bal_wdelta *self, bal_error *err)
{
    uint64_t end = self->file->size - BAL_WD_TRAILER;
    head window;

    self->order = calloc(self->count + 1, sizeof(*self->order));
    if (!self->order)
        return bal_fail_memory(err, "reading a .wdelta file");
    for (uint64_t at = self->records; at < end;) {
        record next = { 0 };
        int rc = read_head(self, &window, at, end, err);
        if (rc)
            return rc;
        if (!take_record(&window, &next))
            return bad(self, at, "has no head that can be read", err);
        next.data = at + window.at;
        if (next.size > end - next.data)
            return bad(self, at, "ends behind the file's end", err);
        rc = place(self, at, &next, err);
        if (rc)
            return rc;
        at = next.data + next.size;
    }
    return check_tensors(self, err);
}
