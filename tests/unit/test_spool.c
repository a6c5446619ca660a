/* Files of the spool: read while they grow, told of failures, kept up to a
 * size. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/hash.h"
#include "serve/spool.h"
#include "support/check.h"

#define MIB ((uint64_t)1 << 20)

enum { READERS = 8, PIECE = 50000 };

static bal_id id_of(const char *text)
{
    bal_id id;

    bal_hash_of(&id, text, strlen(text));
    return id;
}

static uint8_t byte_at(uint64_t offset)
{
    return (uint8_t)(offset * 2654435761U >> 11);
}

static int read_bytes(void *ctx, uint64_t offset, void *to, size_t len,
                      bal_error *err)
{
    const uint64_t *fails_at = ctx;
    uint8_t *bytes = to;

    if (fails_at && offset >= *fails_at)
        return bal_fail(err, BAL_ECORRUPT, "a block is damaged");
    for (size_t i = 0; i < len; i++)
        bytes[i] = byte_at(offset + i);
    return 0;
}

static bal_spooled *made(bal_spool *spool, const char *name, uint64_t size)
{
    bal_id id = id_of(name);
    bal_spooled *one = NULL;
    bool mine = false;

    CHECK_OK(bal_spool_make(&one, &mine, spool, "acme", &id, size, &check_err));
    CHECK(mine);
    return one;
}

static bal_spooled *found(bal_spool *spool, const char *tenant,
                          const char *name)
{
    bal_id id = id_of(name);

    return bal_spool_find(spool, tenant, &id);
}

static bool is_there(bal_spool *spool, const char *name)
{
    BAL_OWN(bal_spooled) one = found(spool, "acme", name);

    return one != NULL;
}

static void fill(bal_spooled *one)
{
    CHECK_OK(bal_spooled_feed(one, read_bytes, NULL, NULL, &check_err));
}

/* ---- readers ------------------------------------------------------------ */

typedef struct reader {
    bal_spooled *from;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool awake;
    uint64_t got;
    bool differs;
    int rc;
} reader;

static void wake(void *ctx)
{
    reader *self = ctx;

    pthread_mutex_lock(&self->lock);
    self->awake = true;
    pthread_cond_signal(&self->woken);
    pthread_mutex_unlock(&self->lock);
}

static void sleep_until_woken(reader *self)
{
    pthread_mutex_lock(&self->lock);
    while (!self->awake)
        pthread_cond_wait(&self->woken, &self->lock);
    self->awake = false;
    pthread_mutex_unlock(&self->lock);
}

static void *read_all(void *ctx)
{
    reader *self = ctx;
    bal_waker waker = { wake, self };
    uint8_t *bytes = malloc(PIECE);
    size_t got = 0;

    while (bytes && self->got < bal_spooled_size(self->from)) {
        self->rc = bal_spooled_read(self->from, self->got, bytes, PIECE, &got,
                                    &waker, NULL);
        if (self->rc)
            break;
        if (!got)
            sleep_until_woken(self);
        for (size_t i = 0; i < got; i++)
            self->differs |= bytes[i] != byte_at(self->got + i);
        self->got += got;
    }
    free(bytes);
    return NULL;
}

static void read_while_it_grows(uint64_t *fails_at, reader *readers)
{
    bal_spool *spool = NULL;
    pthread_t threads[READERS];

    CHECK_OK(bal_spool_new(&spool, check_dir(), 100 * MIB, &check_err));
    BAL_OWN(bal_spooled) one = made(spool, "grows", 6 * MIB + 12345);
    for (size_t i = 0; i < READERS; i++) {
        readers[i] = (reader){ .from = one };
        pthread_mutex_init(&readers[i].lock, NULL);
        pthread_cond_init(&readers[i].woken, NULL);
        CHECK(!pthread_create(&threads[i], NULL, read_all, &readers[i]));
    }
    CHECK(bal_spooled_feed(one, read_bytes, fails_at, NULL, &check_err) ==
          (fails_at ? BAL_ECORRUPT : 0));
    for (size_t i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    CHECK((bal_spooled_fd(one) >= 0) == !fails_at);
    CHECK(is_there(spool, "grows") == !fails_at);
    bal_spool_free(spool);
}

static void everybody_reads_it_while_it_grows(void)
{
    static reader readers[READERS];

    read_while_it_grows(NULL, readers);
    for (size_t i = 0; i < READERS; i++) {
        CHECK(!readers[i].rc && !readers[i].differs);
        CHECK(readers[i].got == 6 * MIB + 12345);
    }
}

static void everybody_hears_of_a_failure(void)
{
    static reader readers[READERS];
    uint64_t at = 3 * MIB;

    read_while_it_grows(&at, readers);
    for (size_t i = 0; i < READERS; i++) {
        CHECK(readers[i].rc == BAL_ECORRUPT && !readers[i].differs);
        CHECK(readers[i].got <= at);
    }
}

static void a_server_that_stops_ends_the_filling(void)
{
    volatile bool stop = true;
    bal_spool *spool = NULL;
    uint8_t byte;
    size_t got;

    CHECK_OK(bal_spool_new(&spool, check_dir(), 100 * MIB, &check_err));
    BAL_OWN(bal_spooled) one = made(spool, "stops", MIB);
    CHECK_RC(BAL_ECANCELLED,
             bal_spooled_feed(one, read_bytes, NULL, &stop, &check_err));
    CHECK_RC(BAL_ECANCELLED,
             bal_spooled_read(one, 0, &byte, 1, &got, NULL, &check_err));
    CHECK(!is_there(spool, "stops"));
    bal_spool_free(spool);
}

/* ---- the list ----------------------------------------------------------- */

static void it_is_made_once_and_found_by_tenant(void)
{
    bal_spool *spool = NULL;
    bal_id id = id_of("one");
    bool mine = true;

    CHECK_OK(bal_spool_new(&spool, check_dir(), 100 * MIB, &check_err));
    BAL_OWN(bal_spooled) one = made(spool, "one", 10);
    BAL_OWN(bal_spooled) again = NULL;
    CHECK_OK(bal_spool_make(&again, &mine, spool, "acme", &id, 10, &check_err));
    CHECK(!mine && again == one);
    CHECK(!found(spool, "acme-eu", "one"));
    CHECK(bal_spool_bytes(spool) == 10);
    bal_spool_free(spool);
}

static void the_least_recently_used_goes_first(void)
{
    bal_spool *spool = NULL;

    CHECK_OK(bal_spool_new(&spool, check_dir(), 3 * MIB, &check_err));
    BAL_OWN(bal_spooled) a = made(spool, "a", MIB);
    BAL_OWN(bal_spooled) b = made(spool, "b", MIB);
    BAL_OWN(bal_spooled) c = made(spool, "c", MIB);
    fill(a);
    fill(b);
    fill(c);
    CHECK(is_there(spool, "a"));
    BAL_OWN(bal_spooled) d = made(spool, "d", MIB);
    CHECK(bal_spooled_size(d) == MIB);
    CHECK(!is_there(spool, "b"));
    CHECK(is_there(spool, "a") && is_there(spool, "c") && is_there(spool, "d"));
    /* Larger than all: it is served, and nothing else is kept. What is being
     * filled stays. */
    BAL_OWN(bal_spooled) e = made(spool, "e", 5 * MIB);
    CHECK(bal_spooled_size(e) == 5 * MIB);
    CHECK(!is_there(spool, "a") && !is_there(spool, "c"));
    CHECK(is_there(spool, "d") && is_there(spool, "e"));
    /* Who holds what has gone reads on. */
    CHECK(bal_spooled_fd(b) >= 0);
    bal_spool_free(spool);
}

static void what_was_dropped_is_read_no_more(void)
{
    bal_spool *spool = NULL;
    uint8_t byte;
    size_t got;

    CHECK_OK(bal_spool_new(&spool, check_dir(), 100 * MIB, &check_err));
    BAL_OWN(bal_spooled) one = made(spool, "one", 1000);
    fill(one);
    int fd = bal_spooled_fd(one);
    CHECK(pread(fd, &byte, 1, 0) == 1 && byte == byte_at(0));
    bal_spool_drop(spool, one);
    CHECK(!is_there(spool, "one"));
    CHECK(pread(fd, &byte, 1, 0) == 0);
    CHECK(bal_spooled_fd(one) < 0);
    CHECK_RC(BAL_ENOTFOUND,
             bal_spooled_read(one, 0, &byte, 1, &got, NULL, &check_err));
    CHECK(bal_spool_bytes(spool) == 0);
    bal_spool_free(spool);
}

static const check_test tests[] = {
    { TEST(everybody_reads_it_while_it_grows) },
    { TEST(everybody_hears_of_a_failure) },
    { TEST(a_server_that_stops_ends_the_filling) },
    { TEST(it_is_made_once_and_found_by_tenant) },
    { TEST(the_least_recently_used_goes_first) },
    { TEST(what_was_dropped_is_read_no_more) },
};

CHECK_MAIN(tests)
