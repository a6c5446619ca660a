/* Bringing a database to this version of the schema: what it lacks is run in
 * one transaction, so it has a version whole or not at all. */
#include "graph/schema.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "graph/inside.h"

/* How many tables there are, and how many are called settings. */
static const bal_migration probes[] = {
    { 0, "sqlite",
      "SELECT COUNT(*), COUNT(CASE WHEN name = 'settings' THEN 1 END) "
      "FROM sqlite_master WHERE type = 'table'" },
    { 0, "postgresql",
      "SELECT COUNT(*), COUNT(CASE WHEN c.relname = 'settings' THEN 1 END) "
      "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
      "WHERE n.nspname = current_schema() AND c.relkind = 'r' "
      "AND c.relname <> 'changes'" },
};

static bool concerns(const bal_migration *row, const bal_db *db)
{
    return !row->scheme || !strcmp(row->scheme, db->ops->scheme);
}

static int take_counts(void *ctx, const bal_value *columns, size_t count,
                       bal_error *err)
{
    int64_t *counts = ctx;

    (void)err;
    for (size_t i = 0; i < count && i < 2; i++)
        counts[i] = columns[i].number;
    return BAL_ROW_STOP;
}

static int take_version(void *ctx, const bal_value *columns, size_t count,
                        bal_error *err)
{
    int64_t *version = ctx;
    const char *text = NULL;

    (void)count;
    int rc = bal_column_text(&text, &columns[0], err);
    if (rc)
        return rc;
    rc = bal_parse_i64(version, text, err);
    if (rc || *version < 1)
        return bal_fail(err, BAL_ECORRUPT,
                        "the database has a schema of version '%s'", text);
    return BAL_ROW_STOP;
}

/* 0: there is nothing in the database. */
static int version_of(bal_db *db, int64_t *version, bal_error *err)
{
    int64_t counts[2] = { 0, 0 };
    const char *sql = NULL;

    for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
        if (concerns(&probes[i], db))
            sql = probes[i].sql;
    }
    if (!sql)
        return bal_fail(err, BAL_EUNSUPPORTED, "no schema for '%s:'",
                        db->ops->scheme);
    int rc = bal_db_query(db, sql, NULL, 0, take_counts, counts, err);
    if (rc)
        return rc;
    *version = 0;
    if (!counts[0])
        return 0;

    if (counts[1]) {
        rc = bal_db_query(db, "SELECT value FROM settings WHERE key = 'schema'",
                          NULL, 0, take_version, version, err);
        if (rc)
            return rc;
    }
    if (!*version)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "the database holds the tables of something else");
    return 0;
}

static int check_version(int64_t version, unsigned flags, bal_error *err)
{
    if (version > BAL_SCHEMA_VERSION) {
        bal_fail(err, BAL_EUNSUPPORTED,
                 "the database has schema version %lld, this program knows "
                 "version %d",
                 (long long)version, BAL_SCHEMA_VERSION);
        return bal_hint(err, BAL_EUNSUPPORTED, "use a newer ballast");
    }
    if (!version && !(flags & BAL_DB_CREATE))
        return bal_fail(err, BAL_ENOTFOUND, "the database is empty");
    return 0;
}

static int set_version(bal_db *db, bal_error *err)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", BAL_SCHEMA_VERSION);
    return bal_setting_put(db, "schema", text, err);
}

static const bal_db_word *word_at(const bal_db *db, const char *text)
{
    for (const bal_db_word *word = db->ops->words; word->sqlite; word++) {
        if (!strncmp(text, word->sqlite, strlen(word->sqlite)))
            return word;
    }
    return NULL;
}

/* A statement for every database is put in the words of this one. */
static int run_statement(bal_db *db, const bal_migration *row, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    int rc = 0;

    if (row->scheme)
        return bal_db_run(db, row->sql, NULL, 0, NULL, err);
    for (const char *at = row->sql; *at && !rc;) {
        const bal_db_word *word = word_at(db, at);
        rc = word ? bal_buf_text(&text, word->here, err)
                  : bal_buf_append(&text, at, 1, err);
        at += word ? strlen(word->sqlite) : 1;
    }
    return rc ? rc : bal_db_run(db, bal_buf_string(&text), NULL, 0, NULL, err);
}

static int migrate(bal_db *db, int64_t version, bal_error *err)
{
    for (size_t i = 0; i < bal_migration_count; i++) {
        const bal_migration *row = &bal_migrations[i];
        if (row->version <= version || !concerns(row, db))
            continue;
        int rc = row->run ? row->run(db, err) : run_statement(db, row, err);
        if (rc)
            return rc;
    }
    return set_version(db, err);
}

/* The version is read once without a lock, which is the usual case, and again
 * under it, since another process may have been faster. */
int bal_schema_prepare(bal_db *db, unsigned flags, bal_error *err)
{
    BAL_LOCAL(bal_tx) tx = { 0 };
    int64_t version = 0;

    int rc = version_of(db, &version, err);
    if (rc)
        return rc;
    rc = check_version(version, flags, err);
    if (rc || version == BAL_SCHEMA_VERSION)
        return rc;

    rc = bal_tx_begin(&tx, db, BAL_TX_WRITE, err);
    if (rc)
        return rc;
    rc = version_of(db, &version, err);
    if (rc)
        return rc;
    rc = check_version(version, flags, err);
    if (rc || version == BAL_SCHEMA_VERSION)
        return rc;
    rc = migrate(db, version, err);
    if (rc)
        return rc;
    return bal_tx_commit(&tx, err);
}
