/* Reading many entries at once. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/pool.h"
#include "model/model.h"
#include "support/check.h"

enum { ENTRIES = 60, SHARING = 6, SMALL = 4096, LARGE = 1 << 20 };

/* Entries of `size` bytes, SHARING of them in a block, that note who read. */
typedef struct noting_model {
    bal_model base;
    uint64_t size;
    size_t bad; /* the entry that cannot be read; ENTRIES: none */
    pthread_mutex_t lock;
    pthread_t reader[ENTRIES]; /* by block */
    bool read[ENTRIES], twice; /* a block by two threads */
    bool shares;
} noting_model;

static uint8_t byte_at(size_t tag, uint64_t offset)
{
    return (uint8_t)(tag * 31 + offset % 251);
}

static int noting_read(bal_model *model, size_t i, uint64_t offset, void *to,
                       size_t len, bal_error *err)
{
    noting_model *self = (noting_model *)model;
    size_t tag = bal_model_tag(model, i);
    size_t block = tag / SHARING;

    if (tag >= self->bad)
        return bal_fail(err, BAL_ECORRUPT, "entry %zu", tag);
    pthread_mutex_lock(&self->lock);
    if (self->read[block] &&
        !pthread_equal(self->reader[block], pthread_self()))
        self->twice = true;
    self->read[block] = true;
    self->reader[block] = pthread_self();
    pthread_mutex_unlock(&self->lock);
    for (size_t n = 0; n < len; n++)
        ((uint8_t *)to)[n] = byte_at(tag, offset + n);
    return 0;
}

static bool noting_ident(bal_model *model, size_t i, uint64_t offset,
                         uint64_t len, bal_ident *out)
{
    const noting_model *self = (const noting_model *)model;
    size_t tag = bal_model_tag(model, i);

    if (!self->shares || !len)
        return false;
    *out = (bal_ident){ .offset = offset + (tag % SHARING) * self->size };
    out->id.bytes[0] = (uint8_t)(tag / SHARING + 1);
    return true;
}

static void noting_free(bal_model *model)
{
    pthread_mutex_destroy(&((noting_model *)model)->lock);
}

static const bal_model_ops noting_ops = {
    .read = noting_read,
    .ident = noting_ident,
    .free = noting_free,
};

static bal_model *make(uint64_t size, bool shares, size_t bad)
{
    noting_model *made = bal_model_alloc(sizeof(*made), &noting_ops);
    const bal_facts facts = { .kind = BAL_KIND_WEIGHTS, .name = "noting" };

    made->size = size;
    made->shares = shares;
    made->bad = bad;
    pthread_mutex_init(&made->lock, NULL);
    CHECK_OK(bal_model_tell(&made->base, &facts, &check_err));
    for (size_t i = 0; i < ENTRIES; i++) {
        char name[16];
        snprintf(name, sizeof(name), "t%02zu", i);
        const bal_tensor tensor = {
            .name = name,
            .part = BAL_PART_TENSOR,
            .form = BAL_FORM_WHOLE,
            .dtype = BAL_U8,
            .of = BAL_U8,
            .rank = 1,
            .shape = &made->size,
        };
        CHECK_OK(bal_model_add(&made->base, &tensor, i, &check_err));
    }
    CHECK_OK(bal_model_ready(&made->base, &check_err));
    return &made->base;
}

static int read_rows(bal_model *model, uint8_t **places, size_t count,
                     bal_work *work)
{
    bal_entry_to rows[ENTRIES];

    for (size_t i = 0; i < count; i++)
        rows[i] = (bal_entry_to){ i, places[i] };
    return bal_model_read_all(model, rows, count, work, &check_err);
}

static void make_places(uint8_t **places, size_t count, uint64_t size)
{
    for (size_t i = 0; i < count; i++)
        places[i] = calloc(1, size + 1);
}

static size_t wrong_bytes(uint8_t **places, size_t count, uint64_t size)
{
    size_t wrong = 0;

    for (size_t i = 0; i < count; i++) {
        for (uint64_t n = 0; n < size; n++)
            wrong += places[i][n] != byte_at(i, n);
        wrong += places[i][size] != 0;
        free(places[i]);
    }
    return wrong;
}

static const struct {
    const char *what;
    uint64_t size;
    size_t count;
    bool shares;
    unsigned jobs;
} rows[] = {
    { "nothing", SMALL, 0, true, 4 },
    { "one", SMALL, 1, true, 4 },
    { "empty entries", 0, ENTRIES, true, 4 },
    { "small ones in blocks", SMALL, ENTRIES, true, 4 },
    { "small ones, nothing known of blocks", SMALL, ENTRIES, false, 4 },
    { "on one thread", SMALL, ENTRIES, true, 1 },
    { "of several tiles", 2 * BAL_TILE + 7, 3, true, 4 },
};

static void every_entry_is_read_whole(void)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        BAL_OWN(bal_work) work = NULL;
        BAL_OWN(bal_model) model = make(rows[i].size, rows[i].shares, ENTRIES);
        uint8_t *places[ENTRIES];

        check_row(rows[i].what);
        CHECK_OK(bal_work_new(&work, rows[i].jobs, &check_err));
        make_places(places, rows[i].count, rows[i].size);
        CHECK_OK(read_rows(model, places, rows[i].count, work));
        CHECK(!wrong_bytes(places, rows[i].count, rows[i].size));
    }
}

static void a_block_is_read_by_one_thread(void)
{
    BAL_OWN(bal_work) work = NULL;
    BAL_OWN(bal_model) model = make(SMALL, true, ENTRIES);
    uint8_t *places[ENTRIES];

    CHECK_OK(bal_work_new(&work, 4, &check_err));
    make_places(places, ENTRIES, SMALL);
    for (size_t round = 0; round < 50; round++) {
        memset(((noting_model *)model)->read, 0, ENTRIES * sizeof(bool));
        CHECK_OK(read_rows(model, places, ENTRIES, work));
    }
    CHECK(!((noting_model *)model)->twice);
    CHECK(!wrong_bytes(places, ENTRIES, SMALL));
}

static void the_first_that_fails_is_told_of(void)
{
    BAL_OWN(bal_work) work = NULL;
    BAL_OWN(bal_model) model = make(SMALL, true, 13);
    uint8_t *places[ENTRIES];

    CHECK_OK(bal_work_new(&work, 4, &check_err));
    make_places(places, ENTRIES, SMALL);
    CHECK_RC(BAL_ECORRUPT, read_rows(model, places, ENTRIES, work));
    CHECK(!strcmp(check_err.text, "entry 13"));
    for (size_t i = 0; i < ENTRIES; i++)
        free(places[i]);
}

static int stop(void *ctx, uint64_t done, uint64_t total)
{
    (void)done;
    *(uint64_t *)ctx = total;
    return 1;
}

static void who_watches_may_end_it(void)
{
    BAL_OWN(bal_work) work = NULL;
    BAL_OWN(bal_model) model = make(LARGE, true, ENTRIES);
    uint8_t *place = malloc(LARGE);
    uint8_t *places[ENTRIES];
    uint64_t total = 0;

    CHECK_OK(bal_work_new(&work, 1, &check_err));
    check_pass_a_tenth();
    bal_work_watch(work, stop, &total);
    for (size_t i = 0; i < ENTRIES; i++)
        places[i] = place;
    CHECK_RC(BAL_ECANCELLED, read_rows(model, places, ENTRIES, work));
    CHECK(total == (uint64_t)ENTRIES * LARGE);
    free(place);
}

static const check_test tests[] = {
    { TEST(every_entry_is_read_whole) },
    { TEST(a_block_is_read_by_one_thread) },
    { TEST(the_first_that_fails_is_told_of) },
    { TEST(who_watches_may_end_it) },
};

CHECK_MAIN(tests)
