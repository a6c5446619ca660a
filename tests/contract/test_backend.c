/* What every backend promises (blocks/backend.h), asked of each row. */
#include <stdlib.h>
#include <string.h>

#include "support/backends.h"
#include "support/check.h"

enum { MANY = 24 };

static void what_is_settled_is_there(void)
{
    for (size_t row = 0; row < contract_rows(); row++) {
        contract self;
        BAL_LOCAL(bal_buf) out = { 0 };
        uint64_t size = 0;
        if (!contract_begin(&self, row))
            continue;
        contract_put(&self, "acme/3/3f", "hello");
        CHECK_OK(contract_get(&self, &out, "acme/3/3f", 0, 0));
        CHECK(out.len == 5 && !memcmp(out.data, "hello", 5));
        CHECK_OK(contract_get(&self, &out, "acme/3/3f", 1, 3));
        CHECK(out.len == 3 && !memcmp(out.data, "ell", 3));
        CHECK_OK(contract_get(&self, &out, "acme/3/3f", 5, 0));
        CHECK(out.len == 0);
        CHECK_OK(
            bal_backend_size(self.backend, "acme/3/3f", &size, &check_err));
        CHECK(size == 5);
        contract_done(&self);
    }
}

static void getting_appends(void)
{
    for (size_t row = 0; row < contract_rows(); row++) {
        contract self;
        BAL_LOCAL(bal_buf) out = { 0 };
        if (!contract_begin(&self, row))
            continue;
        contract_put(&self, "a/b", "two");
        CHECK_OK(bal_buf_text(&out, "one", &check_err));
        CHECK_OK(bal_backend_get(self.backend, "a/b", 0, 0, &out, &check_err));
        CHECK(out.len == 6 && !memcmp(out.data, "onetwo", 6));
        contract_done(&self);
    }
}

static void bytes_that_are_not_there_are_refused(void)
{
    for (size_t row = 0; row < contract_rows(); row++) {
        contract self;
        BAL_LOCAL(bal_buf) out = { .ceiling = 3 };
        if (!contract_begin(&self, row))
            continue;
        contract_put(&self, "a/b", "hello");
        CHECK_RC(BAL_ECORRUPT, contract_get(&self, &out, "a/b", 0, 6));
        CHECK_RC(BAL_ECORRUPT, contract_get(&self, &out, "a/b", 6, 0));
        CHECK_RC(BAL_ECORRUPT, contract_get(&self, &out, "a/b", UINT64_MAX, 2));
        CHECK_RC(BAL_ECORRUPT, contract_get(&self, &out, "a/b", 2, UINT64_MAX));
        CHECK_RC(BAL_EINVAL, contract_get(&self, &out, "a/b", 0, 0));
        CHECK(out.len == 0);
        contract_done(&self);
    }
}

static void parts_are_written_one_behind_the_other(void)
{
    bal_bytes parts[] = {
        { NULL, 0 }, { "ab", 2 }, { "", 0 }, { "c", 1 }, { "de", 2 }
    };

    for (size_t row = 0; row < contract_rows(); row++) {
        contract self;
        BAL_LOCAL(bal_buf) out = { 0 };
        bal_staged staged[2] = { 0 };
        if (!contract_begin(&self, row))
            continue;
        CHECK_OK(bal_backend_stage(self.backend, &staged[0], "a/full", parts, 5,
                                   &check_err));
        CHECK_OK(bal_backend_stage(self.backend, &staged[1], "a/empty", parts,
                                   1, &check_err));
        CHECK_OK(
            bal_backend_settle(self.backend, staged, 2, self.work, &check_err));
        CHECK_OK(contract_get(&self, &out, "a/full", 0, 0));
        CHECK(out.len == 5 && !memcmp(out.data, "abcde", 5));
        CHECK_OK(contract_get(&self, &out, "a/empty", 0, 0));
        CHECK(out.len == 0);
        contract_done(&self);
    }
}

static void what_is_staged_is_not_seen(void)
{
    for (size_t row = 0; row < contract_rows(); row++) {
        contract self;
        BAL_LOCAL(bal_buf) out = { 0 };
        bal_staged staged = { 0 };
        if (!contract_begin(&self, row))
            continue;
        contract_stage(&self, &staged, "a/b", "a/b");
        CHECK_RC(BAL_ENOTFOUND, contract_get(&self, &out, "a/b", 0, 0));
        CHECK(contract_count(&self, "") == 0);
        bal_backend_discard(self.backend, &staged);
        CHECK(staged.name == NULL && staged.temp == NULL);
        bal_backend_discard(self.backend, &staged);
        CHECK_RC(BAL_ENOTFOUND, contract_get(&self, &out, "a/b", 0, 0));
        contract_done(&self);
    }
}

static void the_same_name_is_replaced(void)
{
    for (size_t row = 0; row < contract_rows(); row++) {
        contract self;
        BAL_LOCAL(bal_buf) out = { 0 };
        if (!contract_begin(&self, row))
            continue;
        contract_put(&self, "a/b", "one");
        contract_put(&self, "a/b", "three");
        CHECK_OK(contract_get(&self, &out, "a/b", 0, 0));
        CHECK(out.len == 5 && !memcmp(out.data, "three", 5));
        contract_done(&self);
    }
}

static void what_keeps_leaves_what_has_its_name(void)
{
    for (size_t row = 0; row < contract_rows(); row++) {
        contract self;
        BAL_LOCAL(bal_buf) out = { 0 };
        bal_staged staged[2] = { { 0 } };
        if (!contract_begin(&self, row))
            continue;
        contract_put(&self, "a/b", "one");
        contract_stage(&self, &staged[0], "a/b", "three");
        contract_stage(&self, &staged[1], "a/c", "four");
        staged[0].keeps = staged[1].keeps = true;
        CHECK_OK(
            bal_backend_settle(self.backend, staged, 2, self.work, &check_err));
        CHECK(staged[0].kept && !staged[1].kept && !staged[1].name);
        CHECK_OK(contract_get(&self, &out, "a/b", 0, 0));
        CHECK(out.len == 3 && !memcmp(out.data, "one", 3));
        CHECK_OK(contract_get(&self, &out, "a/c", 0, 0));
        CHECK(out.len == 4 && !memcmp(out.data, "four", 4));

        staged[0].keeps = false;
        CHECK_OK(
            bal_backend_settle(self.backend, staged, 1, self.work, &check_err));
        CHECK_OK(contract_get(&self, &out, "a/b", 0, 0));
        CHECK(out.len == 5 && !memcmp(out.data, "three", 5));
        contract_done(&self);
    }
}

static void the_list_is_what_there_is(void)
{
    static const struct {
        const char *prefix;
        size_t count;
    } lists[] = { { "", 4 },    { "a/", 3 }, { "a/1/", 2 },
                  { "ab/", 1 }, { "b/", 0 }, { "tmp/", 0 } };

    for (size_t row = 0; row < contract_rows(); row++) {
        contract self;
        bal_staged staged = { 0 };
        if (!contract_begin(&self, row))
            continue;
        CHECK(contract_count(&self, "") == 0);
        contract_put(&self, "a/1/11", "a/1/11");
        contract_put(&self, "a/1/12", "a/1/12");
        contract_put(&self, "a/2/21", "a/2/21");
        contract_put(&self, "ab/2/21", "ab/2/21");
        contract_stage(&self, &staged, "a/3/31", "a/3/31");
        for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
            CHECK(contract_count(&self, lists[i].prefix) == lists[i].count);
        CHECK_RC(BAL_EINVAL,
                 bal_backend_list(self.backend, "a/3/4", contract_count_one,
                                  NULL, &check_err));
        bal_backend_discard(self.backend, &staged);
        contract_done(&self);
    }
}

static int stop(void *ctx, const char *name, uint64_t size, bal_error *err)
{
    (void)name;
    (void)size;
    (void)err;
    (*(int *)ctx)++;
    return BAL_ECANCELLED;
}

static void a_list_stops_when_told(void)
{
    for (size_t row = 0; row < contract_rows(); row++) {
        contract self;
        int calls = 0;
        if (!contract_begin(&self, row))
            continue;
        contract_put(&self, "a/1", "a/1");
        contract_put(&self, "a/2", "a/2");
        CHECK_RC(BAL_ECANCELLED,
                 bal_backend_list(self.backend, "", stop, &calls, &check_err));
        CHECK(calls == 1);
        contract_done(&self);
    }
}

static void what_never_was_is_not_found(void)
{
    for (size_t row = 0; row < contract_rows(); row++) {
        contract self;
        BAL_LOCAL(bal_buf) out = { 0 };
        uint64_t size = 0;
        if (!contract_begin(&self, row))
            continue;
        CHECK_RC(BAL_ENOTFOUND, contract_get(&self, &out, "a/b", 0, 0));
        CHECK_RC(BAL_ENOTFOUND,
                 bal_backend_size(self.backend, "a/b", &size, &check_err));
        CHECK_OK(bal_backend_sweep(self.backend, &size, 0, &check_err));
        CHECK(size == 0);
        contract_done(&self);
    }
}

static void names_that_could_climb_are_refused(void)
{
    static const char *const names[] = {
        "",     "/a",     "a/", "a//b",  "..", "a/../b", "./a",
        ".tmp", "a/.b/c", ".",  "a/b/.", "/",  "../x",
    };

    for (size_t row = 0; row < contract_rows(); row++) {
        contract self;
        BAL_LOCAL(bal_buf) out = { 0 };
        uint64_t size = 0;
        bal_staged staged = { 0 };
        bal_bytes part = { "x", 1 };
        if (!contract_begin(&self, row))
            continue;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            check_row(names[i]);
            CHECK_RC(BAL_EINVAL, contract_get(&self, &out, names[i], 0, 0));
            CHECK_RC(BAL_EINVAL, bal_backend_size(self.backend, names[i], &size,
                                                  &check_err));
            CHECK_RC(BAL_EINVAL,
                     contract_remove(&self, (const char *[]){ "a", names[i] },
                                     2, &size));
            CHECK_RC(BAL_EINVAL,
                     bal_backend_stage(self.backend, &staged, names[i], &part,
                                       1, &check_err));
        }
        CHECK_RC(BAL_EINVAL,
                 bal_backend_list(self.backend, "../", contract_count_one, NULL,
                                  &check_err));
        contract_done(&self);
    }
}

typedef struct staging {
    contract *self;
    bal_staged staged[MANY];
} staging;

static int stage_one(size_t i, void *ctx, bal_error *err)
{
    staging *all = ctx;
    char name[32];
    bal_bytes parts[] = { { "head", 4 }, { "tail", 4 } };

    snprintf(name, sizeof(name), "a/%zu/%zu", i % 5, i);
    return bal_backend_stage(all->self->backend, &all->staged[i], name, parts,
                             2, err);
}

static int get_one(size_t i, void *ctx, bal_error *err)
{
    staging *all = ctx;
    BAL_LOCAL(bal_buf) out = { 0 };
    char name[32];

    snprintf(name, sizeof(name), "a/%zu/%zu", i % 5, i);
    int rc = bal_backend_get(all->self->backend, name, 0, 0, &out, err);
    if (rc)
        return rc;
    return out.len == 8 && !memcmp(out.data, "headtail", 8) ? 0 : BAL_ECORRUPT;
}

static void many_threads_stage_and_get(void)
{
    for (size_t row = 0; row < contract_rows(); row++) {
        contract self;
        staging all = { .self = &self };
        if (!contract_begin(&self, row))
            continue;
        CHECK_OK(bal_pool_run(self.work, MANY, stage_one, &all, &check_err));
        CHECK_OK(bal_backend_settle(self.backend, all.staged, MANY, self.work,
                                    &check_err));
        CHECK_OK(bal_pool_run(self.work, MANY, get_one, &all, &check_err));
        contract_done(&self);
    }
}

/* One name cannot be made where a part of it is a run: all or some of the
 * others are there, whole, and nothing else is left. */
static void a_settling_that_fails_leaves_whole_runs_only(void)
{
    for (size_t row = 0; row < contract_rows(); row++) {
        contract self;
        bal_staged staged[3] = { 0 };
        if (!contract_begin(&self, row))
            continue;
        contract_put(&self, "a", "a");
        contract_stage(&self, &staged[0], "b/1", "b/1");
        contract_stage(&self, &staged[1], "a/2", "a/2");
        contract_stage(&self, &staged[2], "c/3", "c/3");
        CHECK((bal_backend_settle(self.backend, staged, 3, self.work,
                                  &check_err) != 0) == self.nested);
        for (size_t i = 0; i < 3; i++)
            bal_backend_discard(self.backend, &staged[i]);
        size_t left = contract_count(&self, "");
        CHECK(self.nested ? left <= 3 : left == 4);
        contract_done(&self);
    }
}

static void other_schemes_are_refused_by_name(void)
{
    static const char *const urls[] = { "",      "file", "nope:x", "files:x",
                                        "fil:x", ":",    "file:",  "s3:",
                                        "s3:x",  "s3://" };
    bal_backend *backend = NULL;

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        check_row(urls[i]);
        CHECK_RC(BAL_EINVAL,
                 bal_backend_open(&backend, urls[i], check_dir(), &check_err));
        CHECK(strstr(check_err.text, "file:") || strstr(check_err.hint, "s3:"));
        CHECK(backend == NULL);
    }
}

static const check_test tests[] = {
    { TEST(what_is_settled_is_there) },
    { TEST(getting_appends) },
    { TEST(bytes_that_are_not_there_are_refused) },
    { TEST(parts_are_written_one_behind_the_other) },
    { TEST(what_is_staged_is_not_seen) },
    { TEST(the_same_name_is_replaced) },
    { TEST(what_keeps_leaves_what_has_its_name) },
    { TEST(the_list_is_what_there_is) },
    { TEST(a_list_stops_when_told) },
    { TEST(what_never_was_is_not_found) },
    { TEST(names_that_could_climb_are_refused) },
    { TEST(many_threads_stage_and_get) },
    { TEST(a_settling_that_fails_leaves_whole_runs_only) },
    { TEST(other_schemes_are_refused_by_name) },
};

CHECK_MAIN(tests)
