/* The schema, as a table of statements by version: what a database lacks is run
 * in one transaction, so it has a version whole or not at all. A row is never
 * changed once released; a change is a row with the next version.
 *
 * Rows point at each other by number and not by id: an index over 8 bytes that
 * rise is a quarter of one over 32 that are random, and a manifest of 25,000
 * blocks has 25,000 rows in `uses`. Ids are what people and files see. */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "graph/inside.h"

typedef struct migration {
    int version;
    const char *scheme; /* NULL: of every database */
    const char *sql;    /* one statement */
} migration;

static const migration migrations[] = {
    { 1, "sqlite",
      "CREATE TABLE settings (\n"
      "  key TEXT PRIMARY KEY,\n"
      "  value TEXT NOT NULL\n"
      ") STRICT, WITHOUT ROWID" },
    { 1, "sqlite",
      "CREATE TABLE tenants (\n"
      "  tenant INTEGER PRIMARY KEY,\n"
      "  name TEXT NOT NULL UNIQUE\n"
      ") STRICT" },
    { 1, "sqlite",
      "CREATE TABLE blocks (\n"
      "  number INTEGER PRIMARY KEY,\n"
      "  tenant INTEGER NOT NULL REFERENCES tenants (tenant),\n"
      "  id BLOB NOT NULL CHECK (length(id) = 32),\n"
      "  size INTEGER NOT NULL CHECK (size >= 0),\n"
      "  stored INTEGER NOT NULL CHECK (stored >= 0),\n"
      "  codec INTEGER NOT NULL CHECK (codec >= 0),\n"
      "  UNIQUE (tenant, id)\n"
      ") STRICT" },
    { 1, "sqlite",
      "CREATE TABLE manifests (\n"
      "  number INTEGER PRIMARY KEY,\n"
      "  tenant INTEGER NOT NULL REFERENCES tenants (tenant),\n"
      "  id BLOB NOT NULL CHECK (length(id) = 32),\n"
      "  kind TEXT NOT NULL,\n"
      "  logical INTEGER NOT NULL CHECK (logical >= 0),\n"
      "  body BLOB NOT NULL,\n"
      "  UNIQUE (tenant, id)\n"
      ") STRICT" },
    { 1, "sqlite",
      "CREATE TABLE uses (\n"
      "  manifest INTEGER NOT NULL REFERENCES manifests (number)\n"
      "    ON DELETE CASCADE,\n"
      "  block INTEGER NOT NULL REFERENCES blocks (number),\n"
      "  PRIMARY KEY (manifest, block)\n"
      ") STRICT, WITHOUT ROWID" },
    { 1, NULL, "CREATE INDEX uses_of_block ON uses (block)" },
    /* A parent was there before its child, so a walk back always ends. */
    { 1, "sqlite",
      "CREATE TABLE commits (\n"
      "  number INTEGER PRIMARY KEY,\n"
      "  tenant INTEGER NOT NULL REFERENCES tenants (tenant),\n"
      "  id BLOB NOT NULL CHECK (length(id) = 32),\n"
      "  manifest INTEGER NOT NULL REFERENCES manifests (number),\n"
      "  parent INTEGER REFERENCES commits (number)\n"
      "    CHECK (parent < number),\n"
      "  made_on BLOB CHECK (length(made_on) = 32),\n"
      "  created_at INTEGER NOT NULL,\n"
      "  author TEXT NOT NULL,\n"
      "  base_model TEXT,\n"
      "  message TEXT NOT NULL,\n"
      "  metadata TEXT NOT NULL,\n"
      "  UNIQUE (tenant, id)\n"
      ") STRICT" },
    { 1, NULL, "CREATE INDEX commits_in_order ON commits (tenant, number)" },
    { 1, NULL, "CREATE INDEX commits_of_manifest ON commits (manifest)" },
    { 1, NULL, "CREATE INDEX commits_of_parent ON commits (parent)" },
    { 1, "sqlite",
      "CREATE TABLE refs (\n"
      "  tenant INTEGER NOT NULL REFERENCES tenants (tenant),\n"
      "  name TEXT NOT NULL,\n"
      "  commit_number INTEGER NOT NULL REFERENCES commits (number),\n"
      "  PRIMARY KEY (tenant, name)\n"
      ") STRICT, WITHOUT ROWID" },
    { 1, NULL, "CREATE INDEX refs_of_commit ON refs (commit_number)" },
    /* The reflog: number orders all moves, position those of one ref. Ids and
     * not numbers, since it may name what is forgotten. */
    { 1, "sqlite",
      "CREATE TABLE moves (\n"
      "  number INTEGER PRIMARY KEY,\n"
      "  tenant INTEGER NOT NULL REFERENCES tenants (tenant),\n"
      "  ref TEXT NOT NULL,\n"
      "  position INTEGER NOT NULL,\n"
      "  op TEXT NOT NULL,\n"
      "  old_id BLOB CHECK (length(old_id) = 32),\n"
      "  new_id BLOB CHECK (length(new_id) = 32),\n"
      "  moved_at INTEGER NOT NULL,\n"
      "  message TEXT NOT NULL,\n"
      "  UNIQUE (tenant, ref, position)\n"
      ") STRICT" },
    { 1, NULL, "CREATE INDEX moves_in_order ON moves (tenant, number)" },
    { 1, "sqlite",
      "CREATE TABLE intended (\n"
      "  session TEXT NOT NULL,\n"
      "  tenant INTEGER NOT NULL REFERENCES tenants (tenant),\n"
      "  id BLOB NOT NULL CHECK (length(id) = 32),\n"
      "  PRIMARY KEY (session, tenant, id)\n"
      ") STRICT, WITHOUT ROWID" },
};

/* How many tables there are, and how many are called settings. */
static const migration probes[] = {
    { 0, "sqlite",
      "SELECT COUNT(*), COUNT(CASE WHEN name = 'settings' THEN 1 END) "
      "FROM sqlite_master WHERE type = 'table'" },
};

static bool concerns(const migration *row, const bal_db *db)
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
    const bal_value args[] = { bal_text(text) };
    return bal_db_run(db,
                      "INSERT INTO settings (key, value) "
                      "VALUES ('schema', $1) "
                      "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                      args, 1, NULL, err);
}

static int migrate(bal_db *db, int64_t version, bal_error *err)
{
    for (size_t i = 0; i < sizeof(migrations) / sizeof(migrations[0]); i++) {
        const migration *row = &migrations[i];
        if (row->version <= version || !concerns(row, db))
            continue;
        int rc = bal_db_run(db, row->sql, NULL, 0, NULL, err);
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
