/* The schema, as a table of statements by version, in SQLite's words; what
 * another database calls them is in its driver's row. A row is never changed
 * once released; a change is a row with the next version.
 *
 * Rows point at each other by number and not by id: an index over 8 bytes that
 * rise is a quarter of one over 32 that are random, and a manifest of 25,000
 * blocks has 25,000 rows in `uses`. Ids are what people and files see. */
#include "graph/inputs.h"
#include "graph/schema.h"
#include "graph/seal.h"

const bal_migration bal_migrations[] = {
    { 1, NULL,
      "CREATE TABLE settings (\n"
      "  key TEXT PRIMARY KEY,\n"
      "  value TEXT NOT NULL\n"
      ") STRICT, WITHOUT ROWID" },
    { 1, NULL,
      "CREATE TABLE tenants (\n"
      "  tenant INTEGER PRIMARY KEY,\n"
      "  name TEXT NOT NULL UNIQUE\n"
      ") STRICT" },
    { 1, NULL,
      "CREATE TABLE blocks (\n"
      "  number INTEGER PRIMARY KEY,\n"
      "  tenant INTEGER NOT NULL REFERENCES tenants (tenant),\n"
      "  id BLOB NOT NULL CHECK (length(id) = 32),\n"
      "  size INTEGER NOT NULL CHECK (size >= 0),\n"
      "  stored INTEGER NOT NULL CHECK (stored >= 0),\n"
      "  codec INTEGER NOT NULL CHECK (codec >= 0),\n"
      "  UNIQUE (tenant, id)\n"
      ") STRICT" },
    { 1, NULL,
      "CREATE TABLE manifests (\n"
      "  number INTEGER PRIMARY KEY,\n"
      "  tenant INTEGER NOT NULL REFERENCES tenants (tenant),\n"
      "  id BLOB NOT NULL CHECK (length(id) = 32),\n"
      "  kind TEXT NOT NULL,\n"
      "  logical INTEGER NOT NULL CHECK (logical >= 0),\n"
      "  body BLOB NOT NULL,\n"
      "  UNIQUE (tenant, id)\n"
      ") STRICT" },
    { 1, NULL,
      "CREATE TABLE uses (\n"
      "  manifest INTEGER NOT NULL REFERENCES manifests (number)\n"
      "    ON DELETE CASCADE,\n"
      "  block INTEGER NOT NULL REFERENCES blocks (number),\n"
      "  PRIMARY KEY (manifest, block)\n"
      ") STRICT, WITHOUT ROWID" },
    { 1, NULL, "CREATE INDEX uses_of_block ON uses (block)" },
    /* A parent was there before its child, so a walk back always ends. */
    { 1, NULL,
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
    { 1, NULL,
      "CREATE TABLE refs (\n"
      "  tenant INTEGER NOT NULL REFERENCES tenants (tenant),\n"
      "  name TEXT NOT NULL,\n"
      "  commit_number INTEGER NOT NULL REFERENCES commits (number),\n"
      "  PRIMARY KEY (tenant, name)\n"
      ") STRICT, WITHOUT ROWID" },
    { 1, NULL, "CREATE INDEX refs_of_commit ON refs (commit_number)" },
    /* The reflog: number orders all moves, position those of one ref. Ids and
     * not numbers, since it may name what is forgotten. */
    { 1, NULL,
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
    { 1, NULL,
      "CREATE TABLE intended (\n"
      "  session TEXT NOT NULL,\n"
      "  tenant INTEGER NOT NULL REFERENCES tenants (tenant),\n"
      "  id BLOB NOT NULL CHECK (length(id) = 32),\n"
      "  PRIMARY KEY (session, tenant, id)\n"
      ") STRICT, WITHOUT ROWID" },
    /* What was forgotten, shared, and what seals cover. A seal is NULL only
     * until the last row of this version. */
    { 2, NULL, "ALTER TABLE settings ADD COLUMN seal BLOB" },
    { 2, NULL, "ALTER TABLE tenants ADD COLUMN seal BLOB" },
    { 2, NULL,
      "ALTER TABLE blocks ADD COLUMN check_hash BLOB "
      "CHECK (length(check_hash) = 32)" },
    { 2, NULL, "ALTER TABLE blocks ADD COLUMN seal BLOB" },
    { 2, NULL, "ALTER TABLE manifests ADD COLUMN seal BLOB" },
    { 2, NULL,
      "ALTER TABLE commits ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0" },
    { 2, NULL, "ALTER TABLE commits ADD COLUMN seal BLOB" },
    { 2, NULL, "ALTER TABLE moves ADD COLUMN seal BLOB" },
    { 2, "sqlite",
      "INSERT INTO settings (key, value) "
      "VALUES ('store_id', lower(hex(randomblob(16))))" },
    { 2, "postgresql",
      "INSERT INTO settings (key, value) "
      "VALUES ('store_id', replace(CAST(gen_random_uuid() AS TEXT), '-', ''))" },
    { 2, NULL,
      "CREATE TABLE epoch (\n"
      "  one INTEGER PRIMARY KEY CHECK (one = 1),\n"
      "  number INTEGER NOT NULL CHECK (number >= 0),\n"
      "  entries INTEGER NOT NULL DEFAULT 0 CHECK (entries >= 0),\n"
      "  seal BLOB\n"
      ") STRICT" },
    { 2, NULL, "INSERT INTO epoch (one, number) VALUES (1, 0)" },
    /* Names and ids, not numbers: an input may be of a tenant that is not here
     * yet, or no more. */
    { 2, NULL,
      "CREATE TABLE inputs (\n"
      "  manifest INTEGER NOT NULL REFERENCES manifests (number)\n"
      "    ON DELETE CASCADE,\n"
      "  position INTEGER NOT NULL CHECK (position >= 0),\n"
      "  tenant TEXT NOT NULL,\n"
      "  input_commit BLOB NOT NULL CHECK (length(input_commit) = 32),\n"
      "  input_manifest BLOB NOT NULL CHECK (length(input_manifest) = 32),\n"
      "  PRIMARY KEY (manifest, position)\n"
      ") STRICT, WITHOUT ROWID" },
    { 2, NULL,
      "CREATE INDEX inputs_of_commit ON inputs (tenant, input_commit)" },
    { 2, NULL,
      "CREATE INDEX inputs_of_manifest ON inputs (tenant, input_manifest)" },
    { 2, NULL, .run = bal_inputs_backfill },
    { 2, NULL,
      "CREATE TABLE grants (\n"
      "  owner INTEGER NOT NULL REFERENCES tenants (tenant),\n"
      "  manifest BLOB NOT NULL CHECK (length(manifest) = 32),\n"
      "  grantee TEXT NOT NULL,\n"
      "  commit_id BLOB NOT NULL CHECK (length(commit_id) = 32),\n"
      "  created_at INTEGER NOT NULL,\n"
      "  revoked_at INTEGER,\n"
      "  seal BLOB,\n"
      "  PRIMARY KEY (owner, manifest, grantee)\n"
      ") STRICT, WITHOUT ROWID" },
    { 2, NULL, "CREATE INDEX grants_of_grantee ON grants (grantee)" },
    { 2, NULL,
      "CREATE TABLE journal (\n"
      "  number INTEGER PRIMARY KEY,\n"
      "  tenant TEXT NOT NULL,\n"
      "  state INTEGER NOT NULL CHECK (state >= 0),\n"
      "  plan TEXT NOT NULL,\n"
      "  seal BLOB\n"
      ") STRICT" },
    { 2, NULL,
      "CREATE TABLE proofs (\n"
      "  position INTEGER PRIMARY KEY CHECK (position >= 0),\n"
      "  attestation BLOB NOT NULL UNIQUE CHECK (length(attestation) = 32),\n"
      "  leaf BLOB NOT NULL CHECK (length(leaf) = 32),\n"
      "  tenant TEXT NOT NULL,\n"
      "  envelope BLOB NOT NULL,\n"
      "  checkpoint TEXT,\n"
      "  epoch INTEGER NOT NULL CHECK (epoch >= 0),\n"
      "  completed_at INTEGER NOT NULL,\n"
      "  seal BLOB\n"
      ") STRICT" },
    { 2, NULL, "CREATE INDEX proofs_of_tenant ON proofs (tenant, position)" },
    { 2, NULL,
      "CREATE TABLE tombstones (\n"
      "  tenant TEXT NOT NULL,\n"
      "  kind INTEGER NOT NULL,\n"
      "  id BLOB NOT NULL CHECK (length(id) = 32),\n"
      "  attestation BLOB NOT NULL CHECK (length(attestation) = 32),\n"
      "  seal BLOB,\n"
      "  PRIMARY KEY (tenant, kind, id, attestation)\n"
      ") STRICT, WITHOUT ROWID" },
    { 2, NULL,
      "CREATE TABLE exports (\n"
      "  tenant INTEGER NOT NULL REFERENCES tenants (tenant),\n"
      "  commit_id BLOB NOT NULL CHECK (length(commit_id) = 32),\n"
      "  path TEXT NOT NULL,\n"
      "  exported_at INTEGER NOT NULL,\n"
      "  seal BLOB,\n"
      "  PRIMARY KEY (tenant, commit_id, path)\n"
      ") STRICT, WITHOUT ROWID" },
    { 2, NULL, .run = bal_seal_all },
    /* Which blocks a block is coded by. What headers say a second time, so that
     * nothing is taken away that something else is read by. */
    { 3, NULL,
      "CREATE TABLE bases (\n"
      "  block INTEGER NOT NULL REFERENCES blocks (number)\n"
      "    ON DELETE CASCADE,\n"
      "  base INTEGER NOT NULL REFERENCES blocks (number),\n"
      "  PRIMARY KEY (block, base)\n"
      ") STRICT, WITHOUT ROWID" },
    { 3, NULL, "CREATE INDEX bases_of_base ON bases (base)" },
    /* What models were asked and what they answered. By ids, as exports are.
     * What lists show stands in front of the body, which is long. */
    { 4, NULL,
      "CREATE TABLE probe_sets (\n"
      "  number INTEGER PRIMARY KEY,\n"
      "  tenant INTEGER NOT NULL REFERENCES tenants (tenant),\n"
      "  id BLOB NOT NULL CHECK (length(id) = 32),\n"
      "  probes INTEGER NOT NULL CHECK (probes > 0),\n"
      "  created_at INTEGER NOT NULL,\n"
      "  body BLOB NOT NULL,\n"
      "  seal BLOB,\n"
      "  UNIQUE (tenant, id)\n"
      ") STRICT" },
    { 4, NULL,
      "CREATE TABLE fingerprints (\n"
      "  number INTEGER PRIMARY KEY,\n"
      "  tenant INTEGER NOT NULL REFERENCES tenants (tenant),\n"
      "  commit_id BLOB NOT NULL CHECK (length(commit_id) = 32),\n"
      "  probes BLOB NOT NULL CHECK (length(probes) = 32),\n"
      "  terms TEXT NOT NULL,\n"
      "  answers INTEGER NOT NULL CHECK (answers >= 0),\n"
      "  created_at INTEGER NOT NULL,\n"
      "  body BLOB NOT NULL,\n"
      "  seal BLOB,\n"
      "  UNIQUE (tenant, commit_id, probes, terms)\n"
      ") STRICT" },
    { 4, NULL,
      "CREATE INDEX fingerprints_of_probes ON fingerprints (tenant, probes)" },
    /* What the squares of a block's elements sum up to, so that what did not
     * change need not be read to be measured. */
    { 4, NULL,
      "CREATE TABLE norms (\n"
      "  block INTEGER NOT NULL REFERENCES blocks (number)\n"
      "    ON DELETE CASCADE,\n"
      "  dtype TEXT NOT NULL,\n"
      "  squares BLOB NOT NULL CHECK (length(squares) = 8),\n"
      "  seal BLOB,\n"
      "  PRIMARY KEY (block, dtype)\n"
      ") STRICT, WITHOUT ROWID" },
    /* What servers were told to load. By ids, as exports are. */
    { 5, NULL,
      "CREATE TABLE loads (\n"
      "  tenant INTEGER NOT NULL REFERENCES tenants (tenant),\n"
      "  server TEXT NOT NULL,\n"
      "  name TEXT NOT NULL,\n"
      "  commit_id BLOB NOT NULL CHECK (length(commit_id) = 32),\n"
      "  path TEXT NOT NULL,\n"
      "  loaded_at INTEGER NOT NULL,\n"
      "  unloaded_at INTEGER,\n"
      "  seal BLOB,\n"
      "  PRIMARY KEY (tenant, server, name)\n"
      ") STRICT, WITHOUT ROWID" },
    { 5, NULL, "CREATE INDEX loads_of_commit ON loads (tenant, commit_id)" },
};

const size_t bal_migration_count =
    sizeof(bal_migrations) / sizeof(bal_migrations[0]);
