/* The queue before the workers. */
#include "serve/turn.h"
#include "serve/workers.h"
#include "support/check.h"

static void queues_nothing_once_they_have_ended(void)
{
    const bal_store_options store = { .root = "/nonexistent" };
    const volatile bool stop = false;
    bal_workers *workers = NULL;
    bal_turn turn = { .next = NULL };

    CHECK_OK(bal_workers_new(&workers, 2, &store, &stop, &check_err));
    bal_workers_end(workers);
    CHECK(!bal_workers_queue(workers, &turn));
    CHECK(bal_workers_waiting(workers) == 0);
    bal_workers_end(workers);
    bal_workers_free(workers);
}

static const check_test tests[] = {
    { TEST(queues_nothing_once_they_have_ended) },
};

CHECK_MAIN(tests)
