/* The view cache as deletion and fsck see it. */
#include <string.h>

#include "core/str.h"
#include "store/view_cache.h"
#include "store/view_files.h"
#include "support/files.h"
#include "support/memory_model.h"
#include "support/shared.h"

/* A view of acme's, read once: its header is in one block, w in three. */
enum { ELEMENTS = 3000, BLOCKS = 3 };

typedef struct scene {
    bal_store *store;
    bal_id manifest;
    uint64_t epoch;
} scene;

static void scene_done(scene *self)
{
    bal_store_free(self->store);
}

static void read_through(bal_store *store, const bal_id *view)
{
    BAL_OWN(bal_model) model = shared_model(store, "acme", view);
    static float values[ELEMENTS];

    CHECK_OK(bal_model_read(model, 0, 0, values, sizeof(values), &check_err));
}

static void scene_init(scene *self, unsigned flags)
{
    BAL_OWN(bal_tenant) tenant = NULL;
    BAL_OWN(bal_commit) commit = NULL;
    bal_view_epoch now;

    self->store = shared_store(shared_root(), flags);
    shared_commit(self->store, "acme", 1, ELEMENTS, "a");
    shared_commit(self->store, "acme", 7, ELEMENTS, "b");
    bal_id view = shared_view(self->store, "acme", "a@0.5", "b@0.5", "v");
    read_through(self->store, &view);
    CHECK_OK(bal_tenant_open(&tenant, self->store, "acme", &check_err));
    CHECK_OK(bal_commit_open(&commit, tenant, &view, &check_err));
    self->manifest = bal_commit_info_of(commit)->manifest;
    CHECK_OK(bal_view_epoch_read(&now, self->store, &check_err));
    self->epoch = now.epoch;
}

static bool has(const scene *self, const char *tenant, const bal_id *manifest)
{
    bool there = false;

    CHECK_OK(
        bal_view_cache_has(self->store, tenant, manifest, &there, &check_err));
    return there;
}

typedef struct tally {
    unsigned whole, broken, strange;
    uint64_t bytes;
} tally;

static int count_entry(void *ctx, const bal_cache_entry *entry, bal_error *err)
{
    tally *self = ctx;

    (void)err;
    CHECK(!strncmp(entry->path, "cache/", 6));
    self->bytes += entry->bytes;
    self->whole += entry->manifest && entry->whole;
    self->broken += entry->manifest && !entry->whole;
    self->strange += !entry->manifest;
    return 0;
}

static tally count(const scene *self)
{
    tally all = { 0 };

    CHECK_OK(bal_view_cache_each(self->store, count_entry, &all, &check_err));
    return all;
}

static const char *block(const scene *self, unsigned n)
{
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, &self->manifest);
    static char path[512];
    snprintf(path, sizeof(path), "%s/cache/acme/%s/%u",
             bal_store_root(self->store), hex, n);
    return path;
}

static void a_view_that_was_read_is_there_and_whole(void)
{
    BAL_LOCAL(scene) self = { 0 };

    scene_init(&self, 0);
    CHECK(has(&self, "acme", &self.manifest) && has(&self, "acme", NULL));
    CHECK(!has(&self, "other", &self.manifest) && !has(&self, "acm", NULL));
    tally all = count(&self);
    CHECK(all.whole == BLOCKS && !all.broken && !all.strange);
    CHECK(all.bytes == ELEMENTS * sizeof(float) + BLOCKS * 96);
}

static void without_the_cache_nothing_is_there(void)
{
    BAL_LOCAL(scene) self = { 0 };

    scene_init(&self, BAL_OPEN_NO_CACHE);
    CHECK(!has(&self, "acme", NULL) && !count(&self).whole);
    CHECK_OK(bal_view_cache_settle(self.store, 99, &check_err));
    uint64_t bytes = 0;
    CHECK_OK(
        bal_view_cache_forget(self.store, "acme", NULL, &bytes, &check_err));
    CHECK(!bytes);
}

static void what_is_damaged_or_strange_is_told(void)
{
    BAL_LOCAL(scene) self = { 0 };
    BAL_LOCAL(bal_buf) name = { 0 };

    scene_init(&self, 0);
    file_text(block(&self, 0), "x");
    CHECK_OK(bal_buf_format(&name, &check_err, "%s/cache/acme/x",
                            bal_store_root(self.store)));
    file_text(name.data, "x");
    tally all = count(&self);
    CHECK(all.whole == BLOCKS - 1 && all.broken == 1 && all.strange == 1);
}

static void what_is_being_written_counts_as_there(void)
{
    BAL_LOCAL(scene) self = { 0 };
    BAL_LOCAL(bal_buf) name = { 0 };
    char hex[BAL_ID_HEX + 1];
    uint64_t bytes = 0;

    scene_init(&self, 0);
    CHECK_OK(
        bal_view_cache_forget(self.store, "acme", NULL, &bytes, &check_err));
    CHECK(!has(&self, "acme", NULL));
    bal_id_hex(hex, &self.manifest);
    CHECK_OK(bal_view_path(&name, self.store, ".tmp", NULL, &check_err));
    CHECK_OK(bal_make_dirs(name.data, &check_err));
    CHECK_OK(bal_buf_format(&name, &check_err, "/acme:%s:1", hex));
    file_text(name.data, "x");
    CHECK(has(&self, "acme", NULL) && has(&self, "acme", &self.manifest));
    CHECK(!has(&self, "ac", NULL));
    CHECK_OK(bal_view_cache_forget(self.store, "acme", &self.manifest, &bytes,
                                   &check_err));
    CHECK(!has(&self, "acme", NULL));
}

static void forgetting_takes_one_view_or_all_and_adds_its_bytes(void)
{
    for (unsigned whole = 0; whole < 2; whole++) {
        BAL_LOCAL(scene) self = { 0 };
        uint64_t bytes = 5;
        check_row(whole ? "a tenant" : "a view");
        scene_init(&self, 0);
        uint64_t held = count(&self).bytes;
        CHECK_OK(bal_view_cache_forget(self.store, "other",
                                       whole ? NULL : &self.manifest, &bytes,
                                       &check_err));
        CHECK(bytes == 5);
        CHECK_OK(bal_view_cache_forget(self.store, "acme",
                                       whole ? NULL : &self.manifest, &bytes,
                                       &check_err));
        CHECK(bytes == 5 + held);
        CHECK(!has(&self, "acme", &self.manifest) && !count(&self).bytes);
    }
}

/* A tenant's name may come out of a database that somebody has written to. */
static void what_is_no_tenants_name_leads_nowhere(void)
{
    static const char *const names[] = { "..",   "../../x", "a/b",
                                         "/etc", "",        ".epoch" };
    BAL_LOCAL(scene) self = { 0 };
    uint64_t bytes = 0;

    scene_init(&self, 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        check_row(names[i]);
        CHECK_RC(BAL_ECORRUPT,
                 bal_view_cache_forget(self.store, names[i], &self.manifest,
                                       &bytes, &check_err));
        CHECK_RC(BAL_ECORRUPT, bal_view_cache_forget(self.store, names[i], NULL,
                                                     &bytes, &check_err));
    }
    CHECK(!bytes);
}

static void settling_keeps_the_last_epoch_and_empties_older_ones(void)
{
    static const struct {
        const char *name;
        uint64_t ahead;
        bool kept;
    } rows[] = {
        { "the same", 0, true },
        { "the next", 1, true },
        { "one that was missed", 2, false },
        { "many", 100, false },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        BAL_LOCAL(scene) self = { 0 };
        bal_view_epoch now;
        check_row(rows[i].name);
        scene_init(&self, 0);
        uint64_t epoch = self.epoch + rows[i].ahead;
        CHECK_OK(bal_view_cache_settle(self.store, epoch, &check_err));
        CHECK(has(&self, "acme", NULL) == rows[i].kept);
        CHECK_OK(bal_view_epoch_read(&now, self.store, &check_err));
        CHECK(now.any == rows[i].kept);
        CHECK(!now.any || now.epoch == epoch);
    }
}

static void nothing_is_put_in_while_another_has_the_store_alone(void)
{
    BAL_LOCAL(scene) self = { 0 };
    BAL_OWN(bal_db_lock) alone = NULL;

    scene_init(&self, 0);
    bal_id other = shared_view(self.store, "acme", "a@0.25", "b@0.75", "x");
    CHECK_OK(bal_view_lock(&alone, self.store, BAL_LOCK_EXCLUSIVE, &check_err));
    read_through(self.store, &other);
    CHECK(count(&self).whole == BLOCKS);
    bal_db_lock_free(BAL_TAKE(alone));
    read_through(self.store, &other);
    CHECK(count(&self).whole == 2 * BLOCKS);
}

static const check_test tests[] = {
    { TEST(a_view_that_was_read_is_there_and_whole) },
    { TEST(without_the_cache_nothing_is_there) },
    { TEST(what_is_damaged_or_strange_is_told) },
    { TEST(what_is_being_written_counts_as_there) },
    { TEST(forgetting_takes_one_view_or_all_and_adds_its_bytes) },
    { TEST(what_is_no_tenants_name_leads_nowhere) },
    { TEST(settling_keeps_the_last_epoch_and_empties_older_ones) },
    { TEST(nothing_is_put_in_while_another_has_the_store_alone) },
};

CHECK_MAIN(tests)
