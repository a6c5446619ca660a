/* {"schema": "ballast/sync/1", "store": ID, "servers": {URL: {NAME: {"tenant",
 * "ref", "commit", "path", "loaded_at", "refused"}}}} */
#include "fleet/state.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/room.h"
#include "core/str.h"

enum { STATE_MAX = 64 << 20 };

static const char schema[] = "ballast/sync/1";

/* ---- rows --------------------------------------------------------------- */

static int order(const bal_known *a, const char *server, const char *name)
{
    int by = strcmp(a->server, server);

    return by ? by : strcmp(a->name, name);
}

/* Where it is, or would go. */
static size_t place_of(const bal_fleet_state *self, const char *server,
                       const char *name)
{
    size_t low = 0;
    size_t high = self->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (order(&self->rows[middle], server, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bal_known *bal_fleet_state_of(bal_fleet_state *self, const char *server,
                              size_t *count)
{
    size_t first = place_of(self, server, "");
    size_t end = first;

    while (end < self->count && !strcmp(self->rows[end].server, server))
        end++;
    *count = end - first;
    return self->rows + first;
}

bal_known *bal_fleet_state_find(bal_fleet_state *self, const char *server,
                                const char *name)
{
    size_t i = place_of(self, server, name);

    if (i == self->count || order(&self->rows[i], server, name) != 0)
        return NULL;
    return &self->rows[i];
}

static const char *copy(bal_fleet_state *self, const char *text)
{
    return bal_arena_copy(&self->arena, text, strlen(text));
}

static int copy_row(bal_known *out, bal_fleet_state *self, const bal_known *row,
                    bal_error *err)
{
    *out = *row;
    out->server = copy(self, row->server);
    out->name = copy(self, row->name);
    out->tenant = copy(self, row->tenant);
    out->ref = row->ref ? copy(self, row->ref) : NULL;
    out->path = copy(self, row->path);
    if (!out->server || !out->name || !out->tenant || !out->path ||
        (row->ref && !out->ref))
        return bal_fail_memory(err, "what is loaded");
    return 0;
}

static int make_room(bal_fleet_state *self, bal_error *err)
{
    bal_known *rows =
        bal_room_for_one(self->rows, self->count, &self->room, sizeof(*rows));

    if (!rows)
        return bal_fail_memory(err, "what is loaded");
    self->rows = rows;
    return 0;
}

int bal_fleet_state_put(bal_fleet_state *self, const bal_known *row,
                        bal_error *err)
{
    bal_known *there = bal_fleet_state_find(self, row->server, row->name);
    bal_known own;
    int rc = copy_row(&own, self, row, err);

    if (rc)
        return rc;
    self->changed = true;
    if (there) {
        *there = own;
        return 0;
    }
    rc = make_room(self, err);
    if (rc)
        return rc;
    size_t i = place_of(self, row->server, row->name);
    memmove(self->rows + i + 1, self->rows + i,
            (self->count - i) * sizeof(*self->rows));
    self->rows[i] = own;
    self->count++;
    return 0;
}

void bal_fleet_state_drop(bal_fleet_state *self, const char *server,
                          const char *name)
{
    bal_known *row = bal_fleet_state_find(self, server, name);

    if (!row)
        return;
    size_t i = (size_t)(row - self->rows);
    self->count--;
    memmove(row, row + 1, (self->count - i) * sizeof(*row));
    self->changed = true;
}

void bal_fleet_state_done(bal_fleet_state *self)
{
    bal_str_free(self->path);
    free(self->rows);
    bal_arena_done(&self->arena);
    *self = (bal_fleet_state){ 0 };
}

/* ---- reading ------------------------------------------------------------ */

static const char *text_of(const json_t *row, const char *key)
{
    return json_string_value(json_object_get(row, key));
}

static int read_row(bal_fleet_state *self, const char *server, const char *name,
                    const json_t *json, bal_error *err)
{
    const json_t *ref = json_object_get(json, "ref");
    const json_t *at = json_object_get(json, "loaded_at");
    const char *commit = text_of(json, "commit");
    bal_known row = {
        .server = server,
        .name = name,
        .tenant = text_of(json, "tenant"),
        .ref = json_string_value(ref),
        .path = text_of(json, "path"),
        .loaded_at = json_integer_value(at),
        .refused = json_is_true(json_object_get(json, "refused")),
    };

    if (!row.tenant || !row.path || row.path[0] != '/' || !commit ||
        !(json_is_string(ref) || json_is_null(ref)) ||
        !(json_is_integer(at) || json_is_null(at)) || row.loaded_at < 0 ||
        !bal_hex_valid(commit, BAL_ID_HEX) ||
        bal_id_parse(&row.commit, commit, NULL))
        return bal_fail(err, BAL_ECORRUPT, "'%s' at '%s' is no adapter's entry",
                        name, server);
    return bal_fleet_state_put(self, &row, err);
}

static int read_server(bal_fleet_state *self, const char *server, json_t *rows,
                       bal_error *err)
{
    const char *name;
    json_t *row;
    int rc = 0;

    if (!json_is_object(rows))
        return bal_fail(err, BAL_ECORRUPT, "'%s' is no object", server);
    json_object_foreach(rows, name, row)
    {
        rc = read_row(self, server, name, row, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int read_all(bal_fleet_state *self, json_t *value, bal_error *err)
{
    const char *is = text_of(value, "schema");
    json_t *servers = json_object_get(value, "servers");
    const char *server;
    json_t *rows;

    if (is && !strncmp(is, "ballast/sync/", strlen("ballast/sync/")) &&
        strcmp(is, schema) != 0)
        return bal_fail(err, BAL_EUNSUPPORTED, "it is '%s', not '%s'", is,
                        schema);
    if (!is || strcmp(is, schema) != 0 || !json_is_object(servers))
        return bal_fail(err, BAL_ECORRUPT, "it is not '%s'", schema);
    const char *store = text_of(value, "store");
    if (store) {
        self->store = copy(self, store);
        if (!self->store)
            return bal_fail_memory(err, "what is loaded");
    }
    json_object_foreach(servers, server, rows)
    {
        int rc = read_server(self, server, rows, err);
        if (rc)
            return rc;
    }
    return 0;
}

int bal_fleet_state_read(bal_fleet_state *self, const char *dir, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_OWN(json_t) value = NULL;

    *self = (bal_fleet_state){ .path = bal_path_join(dir, BAL_FLEET_STATE) };
    if (!self->path)
        return bal_fail_memory(err, "what is loaded");
    if (bal_path_type_of(self->path) == BAL_PATH_ABSENT)
        return 0;
    int rc = bal_file_slurp(&text, self->path, STATE_MAX, err);
    if (rc)
        return rc;
    rc = bal_json_parse(&value, bal_buf_string(&text), text.len, "not JSON",
                        err);
    if (!rc)
        rc = read_all(self, value, err);
    self->changed = false;
    if (!rc)
        return 0;
    rc = bal_within(err, rc, "'%s'", self->path);
    if (rc != BAL_ECORRUPT)
        return rc;
    return bal_hint(err, rc,
                    "it says what servers have loaded; only if they have "
                    "nothing of it any more may it be removed");
}

int bal_fleet_state_claim(bal_fleet_state *self, const char *store,
                          bal_error *err)
{
    if (self->store && strcmp(self->store, store) != 0) {
        int rc = bal_fail(err, BAL_ECONFLICT,
                          "'%.400s' is of another store's exports", self->path);
        return bal_hint(err, rc, "each store takes a folder of its own: -o");
    }
    self->store = copy(self, store);
    return self->store ? 0 : bal_fail_memory(err, "what is loaded");
}

/* ---- writing ------------------------------------------------------------ */

static void write_row(bal_json *json, const bal_known *row)
{
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, &row->commit);
    bal_json_key(json, row->name);
    bal_json_object(json);
    bal_json_key(json, "tenant");
    bal_json_string(json, row->tenant);
    bal_json_key(json, "ref");
    bal_json_string(json, row->ref);
    bal_json_key(json, "commit");
    bal_json_string(json, hex);
    bal_json_key(json, "path");
    bal_json_string(json, row->path);
    bal_json_key(json, "loaded_at");
    if (row->loaded_at)
        bal_json_i64(json, row->loaded_at);
    else
        bal_json_null(json);
    if (row->refused) {
        bal_json_key(json, "refused");
        bal_json_bool(json, true);
    }
    bal_json_close(json);
}

static int write_all(bal_buf *out, const bal_fleet_state *self, bal_error *err)
{
    bal_json json;

    bal_json_begin(&json, out, 2);
    bal_json_object(&json);
    bal_json_key(&json, "schema");
    bal_json_string(&json, schema);
    bal_json_key(&json, "store");
    bal_json_string(&json, self->store);
    bal_json_key(&json, "servers");
    bal_json_object(&json);
    for (size_t i = 0; i < self->count; i++) {
        const bal_known *row = &self->rows[i];
        if (!i || strcmp(row->server, row[-1].server) != 0) {
            if (i)
                bal_json_close(&json);
            bal_json_key(&json, row->server);
            bal_json_object(&json);
        }
        write_row(&json, row);
    }
    if (self->count)
        bal_json_close(&json);
    bal_json_close(&json);
    bal_json_close(&json);
    int rc = bal_json_end(&json, err);
    return rc ? rc : bal_buf_text(out, "\n", err);
}

int bal_fleet_state_save(bal_fleet_state *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { .ceiling = STATE_MAX };

    if (!self->changed)
        return 0;
    int rc = write_all(&text, self, err);
    if (!rc)
        rc = bal_file_replace(self->path, text.data, text.len, err);
    if (rc)
        return bal_within(err, rc, "noting what is loaded");
    self->changed = false;
    return 0;
}
