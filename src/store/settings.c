/* Settings: what a store was made with and what it prefers, as rows. They are
 * in the database, so that a fresh root with the same database opens the same
 * store. */
#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/str.h"
#include "store/store.h"

#define DEFAULT_BLOCK_SIZE ((uint64_t)4 << 20)
#define LEAST_BLOCK_SIZE   ((uint64_t)4 << 10)
#define MOST_BLOCK_SIZE    ((uint64_t)64 << 20)

typedef struct setting_row {
    const char *name;
    bool fixed; /* cannot change once the store is made */
    int (*check)(const char *value, bal_error *err);
    const char *fallback; /* where none is recorded; NULL: it is not set */
} setting_row;

/* A compression word and what it stands for. */
typedef struct effort_row {
    const char *word;
    const char *recorded;
    bal_effort effort;
} effort_row;

static const effort_row efforts[] = {
    { "auto", "auto", BAL_EFFORT_AUTO }, { "none", "none", BAL_EFFORT_NONE },
    { "fast", "fast", BAL_EFFORT_FAST }, { "best", "best", BAL_EFFORT_BEST },
    { "zstd", "auto", BAL_EFFORT_AUTO }, { "raw", "none", BAL_EFFORT_NONE },
};

static const effort_row *effort_find(const char *word)
{
    for (size_t i = 0; i < sizeof(efforts) / sizeof(efforts[0]); i++) {
        if (!strcmp(efforts[i].word, word))
            return &efforts[i];
    }
    return NULL;
}

static int check_compression(const char *value, bal_error *err)
{
    if (effort_find(value))
        return 0;
    return bal_fail(err, BAL_EINVAL,
                    "compression is auto, none, fast or best, not '%s'", value);
}

static int check_block_size(const char *value, bal_error *err)
{
    uint64_t size;
    int rc = bal_parse_size(&size, value, err);
    if (rc)
        return rc;

    if (size < LEAST_BLOCK_SIZE || size > MOST_BLOCK_SIZE || size % 4096)
        return bal_fail(err, BAL_EINVAL,
                        "a block size is a multiple of 4K from 4K to 64M, "
                        "not '%s'",
                        value);
    return 0;
}

static int check_jobs(const char *value, bal_error *err)
{
    uint64_t jobs;
    int rc = bal_parse_u64(&jobs, value, err);
    if (rc)
        return rc;

    if (jobs < 1 || jobs > 256)
        return bal_fail(err, BAL_EINVAL, "jobs are 1 … 256, not '%s'", value);
    return 0;
}

static int check_cache(const char *value, bal_error *err)
{
    uint64_t size;

    return bal_parse_size(&size, value, err);
}

static int check_any(const char *value, bal_error *err)
{
    (void)value;
    (void)err;
    return 0;
}

static int check_switch(const char *value, bal_error *err)
{
    if (!strcmp(value, "on") || !strcmp(value, "off"))
        return 0;
    return bal_fail(err, BAL_EINVAL, "on or off, not '%s'", value);
}

static const setting_row rows[BAL_SETTINGS] = {
    [BAL_SETTING_ANCHORING] = { "anchoring", false, check_switch, "on" },
    [BAL_SETTING_BACKEND] = { "backend", true, check_any },
    [BAL_SETTING_BLOCK_SIZE] = { "block_size", true, check_block_size },
    [BAL_SETTING_COMPRESSION] = { "compression", false, check_compression },
    [BAL_SETTING_DB] = { "db", true, check_any },
    [BAL_SETTING_DEFAULT_JOBS] = { "default_jobs", false, check_jobs },
    [BAL_SETTING_FORMAT] = { "format", true, check_any },
    [BAL_SETTING_TENANT] = { "tenant", false, bal_tenant_check },
    [BAL_SETTING_VIEW_CACHE] = { "view_cache", false, check_cache, "4G" },
};

const char *bal_setting_name(bal_setting setting)
{
    return rows[setting].name;
}

int bal_setting_check(bal_setting setting, const char *value, bal_error *err)
{
    int rc = rows[setting].check(value, err);

    return bal_within(err, rc, "%s", rows[setting].name);
}

static int setting_find(bal_setting *out, const char *key, bal_error *err)
{
    for (size_t i = 0; i < BAL_SETTINGS; i++) {
        if (strcmp(rows[i].name, key))
            continue;
        *out = (bal_setting)i;
        return 0;
    }
    return bal_hint(
        err, bal_fail(err, BAL_EINVAL, "no setting '%s'", key),
        "settings are anchoring, backend, block_size, compression, db, "
        "default_jobs, format, tenant, view_cache");
}

static int load_one(void *ctx, const char *key, const char *value,
                    bal_error *err)
{
    bal_store *self = ctx;

    for (size_t i = 0; i < BAL_SETTINGS; i++) {
        if (strcmp(rows[i].name, key) != 0)
            continue;
        bal_str_free(self->settings[i]);
        self->settings[i] = bal_str_copy(value);
        return self->settings[i] ? 0 : bal_fail_memory(err, "settings");
    }
    return 0;
}

static int load_fallbacks(bal_store *self, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < BAL_SETTINGS && !rc; i++)
        rc = rows[i].fallback && !self->settings[i]
                 ? load_one(self, rows[i].name, rows[i].fallback, err)
                 : 0;
    return rc;
}

/* What the store works with follows from the texts. */
static int apply(bal_store *self, bal_error *err)
{
    const char *format = self->settings[BAL_SETTING_FORMAT];
    const char *compression = self->settings[BAL_SETTING_COMPRESSION];
    const char *size = self->settings[BAL_SETTING_BLOCK_SIZE];
    uint64_t version = 0;

    if (!format || bal_parse_u64(&version, format, NULL) || !size ||
        !compression || !self->settings[BAL_SETTING_BACKEND] ||
        !self->settings[BAL_SETTING_DB])
        return bal_fail(err, BAL_ECORRUPT, "store '%s' lacks settings",
                        self->root);
    if (version != BAL_STORE_FORMAT)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "store '%s' is of format %s, this program reads %d",
                        self->root, format, BAL_STORE_FORMAT);
    const effort_row *effort = effort_find(compression);
    if (!effort || check_block_size(size, NULL) ||
        bal_parse_size(&self->block_size, size, NULL) ||
        bal_parse_size(&self->view_cap, self->settings[BAL_SETTING_VIEW_CACHE],
                       NULL))
        return bal_fail(err, BAL_ECORRUPT,
                        "store '%s' has settings that make no sense",
                        self->root);
    self->effort = effort->effort;
    return 0;
}

int bal_settings_load(bal_store *self, bal_error *err)
{
    for (size_t i = 0; i < BAL_SETTINGS; i++) {
        bal_str_free(self->settings[i]);
        self->settings[i] = NULL;
    }
    int rc = bal_graph_settings(self->graph, load_one, self, err);
    if (!rc)
        rc = load_fallbacks(self, err);
    return rc ? rc : apply(self, err);
}

/* The texts that a new store records. */
static int texts_of(const char *texts[BAL_SETTINGS], char size[32],
                    char jobs[32], const bal_store_options *options,
                    bal_error *err)
{
    uint64_t block =
        options->block_size ? options->block_size : DEFAULT_BLOCK_SIZE;
    const char *word = options->compression ? options->compression : "auto";
    int rc = bal_setting_check(BAL_SETTING_COMPRESSION, word, err);
    if (rc)
        return rc;

    snprintf(size, 32, "%llu", (unsigned long long)block);
    snprintf(jobs, 32, "%u", options->default_jobs);
    texts[BAL_SETTING_BLOCK_SIZE] = size;
    texts[BAL_SETTING_COMPRESSION] = effort_find(word)->recorded;
    texts[BAL_SETTING_DEFAULT_JOBS] = options->default_jobs ? jobs : NULL;
    texts[BAL_SETTING_TENANT] = options->tenant;
    for (size_t i = 0; i < BAL_SETTINGS; i++) {
        rc = texts[i] ? bal_setting_check((bal_setting)i, texts[i], err) : 0;
        if (rc)
            return rc;
    }
    return 0;
}

int bal_settings_make(bal_graph *graph, const bal_store_options *options,
                      const char *backend, const char *db, bal_error *err)
{
    const char *texts[BAL_SETTINGS] = { 0 };
    char size[32], jobs[32], format[32];

    snprintf(format, sizeof(format), "%d", BAL_STORE_FORMAT);
    texts[BAL_SETTING_FORMAT] = format;
    texts[BAL_SETTING_BACKEND] = backend;
    texts[BAL_SETTING_DB] = db;
    int rc = texts_of(texts, size, jobs, options, err);
    if (rc)
        return rc;

    BAL_LOCAL(bal_tx) tx = { 0 };
    rc = bal_graph_begin(&tx, graph, BAL_TX_WRITE, err);
    if (rc)
        return rc;
    BAL_LOCAL(bal_buf) there = { 0 };
    rc = bal_graph_setting(graph, rows[BAL_SETTING_FORMAT].name, &there, err);
    if (rc != BAL_ENOTFOUND)
        return rc;
    for (size_t i = 0; i < BAL_SETTINGS; i++) {
        rc = texts[i] ? bal_graph_set(graph, rows[i].name, texts[i], err) : 0;
        if (rc)
            return rc;
    }
    return bal_tx_commit(&tx, err);
}

static int differs(const bal_store *self, bal_setting setting,
                   const char *asked, bal_error *err)
{
    const char *name = rows[setting].name;
    const char *there = self->settings[setting];

    if (!there)
        return bal_fail(err, BAL_ECONFLICT,
                        "store '%s' has no %s, asked for '%s'", self->root,
                        name, asked);
    /* A URL that was given may hold a password; a recorded one does not. */
    if (setting == BAL_SETTING_BACKEND || setting == BAL_SETTING_DB)
        return bal_fail(err, BAL_ECONFLICT,
                        "store '%s' has %s '%s', asked for another", self->root,
                        name, there);
    return bal_fail(err, BAL_ECONFLICT,
                    "store '%s' has %s '%s', asked for '%s'", self->root, name,
                    there, asked);
}

/* One setting that was asked for against the one that is there. */
static int match(const bal_store *self, bal_setting setting, const char *asked,
                 bal_error *err)
{
    const char *there = self->settings[setting];

    if (!asked || (there && !strcmp(asked, there)))
        return 0;
    int rc = differs(self, setting, asked, err);
    if (rows[setting].fixed)
        return bal_hint(err, rc,
                        "that stays as the store was made; --root makes "
                        "another store elsewhere");
    return bal_hint(err, rc, "'ballast config %s %s' changes it",
                    rows[setting].name, asked);
}

/* The database is compared by what is recorded of its address. */
static int match_db(const bal_store *self, const char *asked, bal_error *err)
{
    char *plain = NULL;
    int rc = asked ? bal_db_plain(&plain, asked, err) : 0;

    if (!rc)
        rc = match(self, BAL_SETTING_DB, plain, err);
    bal_str_free(plain);
    return rc;
}

int bal_settings_match(const bal_store *self, const bal_store_options *options,
                       bal_error *err)
{
    char size[32], jobs[32];
    const char *asked[BAL_SETTINGS] = { 0 };
    bool init = options->flags & BAL_OPEN_INIT;

    snprintf(size, sizeof(size), "%llu",
             (unsigned long long)options->block_size);
    snprintf(jobs, sizeof(jobs), "%u", options->default_jobs);
    asked[BAL_SETTING_BACKEND] = options->backend;
    if (init) {
        const effort_row *effort =
            options->compression ? effort_find(options->compression) : NULL;
        if (options->compression && !effort)
            return check_compression(options->compression, err);
        asked[BAL_SETTING_BLOCK_SIZE] = options->block_size ? size : NULL;
        asked[BAL_SETTING_COMPRESSION] = effort ? effort->recorded : NULL;
        asked[BAL_SETTING_DEFAULT_JOBS] = options->default_jobs ? jobs : NULL;
        asked[BAL_SETTING_TENANT] = options->tenant;
    }
    for (size_t i = 0; i < BAL_SETTINGS; i++) {
        int rc = match(self, (bal_setting)i, asked[i], err);
        if (rc)
            return rc;
    }
    return match_db(self, options->db, err);
}

int bal_setting_each(bal_store *self, bal_setting_fn *fn, void *ctx,
                     bal_error *err)
{
    (void)err;
    for (size_t i = 0; i < BAL_SETTINGS; i++) {
        if (self->settings[i] && fn(ctx, rows[i].name, self->settings[i]))
            return 0;
    }
    return 0;
}

const char *bal_setting_get(bal_store *self, const char *key)
{
    bal_setting setting = BAL_SETTINGS;

    if (setting_find(&setting, key, NULL))
        return NULL;
    return self->settings[setting];
}

int bal_setting_set(bal_store *self, const char *key, const char *value,
                    bal_error *err)
{
    bal_setting setting = BAL_SETTINGS;
    int rc = setting_find(&setting, key, err);
    if (rc)
        return rc;
    if (rows[setting].fixed)
        return bal_fail(err, BAL_EINVAL, "%s is fixed when a store is made",
                        key);

    rc = bal_setting_check(setting, value, err);
    if (rc)
        return rc;
    if (setting == BAL_SETTING_COMPRESSION)
        value = effort_find(value)->recorded;
    rc = bal_graph_set(self->graph, key, value, err);
    if (rc)
        return rc;
    return bal_settings_load(self, err);
}
