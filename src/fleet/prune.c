/* Folders that no server needs any more. One that is loaded may be read again
 * at any request, and a server that does not find it then dies: so a folder
 * goes only after every server of the fleet was seen without it. */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/room.h"
#include "core/str.h"
#include "fleet/run.h"

typedef struct keep {
    bal_fleet_run *run;
    bal_id *ids;
    size_t count, room;
} keep;

static void keep_done(keep *self)
{
    free(self->ids);
}

static int add(bal_id **ids, size_t *count, size_t *room, const bal_id *id,
               bal_error *err)
{
    bal_id *grown = bal_room_for_one(*ids, *count, room, sizeof(*grown));

    if (!grown)
        return bal_fail_memory(err, "what is loaded");
    *ids = grown;
    (*ids)[(*count)++] = *id;
    return 0;
}

int bal_fleet_let_go(bal_fleet_run *self, const bal_id *commit, bal_error *err)
{
    return add(&self->gone, &self->gone_count, &self->gone_room, commit, err);
}

static int keep_id(keep *self, const bal_id *id, bal_error *err)
{
    return add(&self->ids, &self->count, &self->room, id, err);
}

static int keep_path(keep *self, const char *path, bal_error *err)
{
    bal_id id;

    if (!bal_fleet_commit_of(&id, self->run->place, path))
        return 0;
    return keep_id(self, &id, err);
}

/* Every id in a path that a server tells, however it spells it and whatever it
 * calls our place: what is too much is kept, what is too little ends it. */
static int keep_ids(keep *self, const char *path, bal_error *err)
{
    int rc = 0;

    while (path && *path && !rc) {
        size_t len = strcspn(path, "/");
        char hex[BAL_ID_HEX + 1] = "";
        bal_id id;

        if (len == BAL_ID_HEX)
            memcpy(hex, path, len);
        if (bal_hex_valid(hex, BAL_ID_HEX) && !bal_id_parse(&id, hex, NULL))
            rc = keep_id(self, &id, err);
        path += len;
        path += strspn(path, "/");
    }
    return rc;
}

/* Where only some refs were named, all but what these had. */
static int keep_folder(void *ctx, const char *name, bal_error *err)
{
    keep *self = ctx;
    bal_id id;

    if (bal_id_parse(&id, name, NULL))
        return 0;
    for (size_t i = 0; i < self->run->gone_count; i++) {
        if (!memcmp(&self->run->gone[i], &id, sizeof(id)))
            return 0;
    }
    return keep_id(self, &id, err);
}

/* What is wanted, noted, or listed anywhere, whoever had it loaded. */
static int fill(keep *self, bal_error *err)
{
    const bal_fleet_run *run = self->run;
    int rc = 0;

    for (size_t i = 0; !rc && i < run->want_count; i++)
        rc = keep_id(self, &run->wants[i].commit, err);
    for (size_t i = 0; !rc && i < run->state.count; i++)
        rc = keep_path(self, run->state.rows[i].path, err);
    for (size_t i = 0; i < run->server_count; i++) {
        const bal_fleet_server *server = &run->servers[i];
        for (size_t k = 0; !rc && k < server->count; k++)
            rc = keep_ids(self, server->listed[k].root, err);
    }
    if (!rc && run->options->spec_count)
        rc = bal_dir_each(run->place, keep_folder, self, err);
    return rc;
}

/* ---- what is noted and not so ------------------------------------------- */

/* Notes of servers that list nothing of that name: they were restarted, or told
 * by somebody else, or the state that knew of it was lost. */
typedef struct stale {
    bal_fleet_run *run;
    bal_buf rows; /* of bal_loaded, texts of the run's arena */
    bool lost;    /* no memory for one */
} stale;

static void stale_done(stale *self)
{
    bal_buf_done(&self->rows);
}

static const bal_fleet_server *server_of(const bal_fleet_run *run,
                                         const char *url)
{
    for (size_t i = 0; i < run->server_count; i++) {
        if (!strcmp(run->servers[i].url, url))
            return &run->servers[i];
    }
    return NULL;
}

static int find_stale(void *ctx, const bal_loaded *row)
{
    stale *self = ctx;
    const bal_fleet_server *server = server_of(self->run, row->server);
    bal_loaded copy = *row;

    if (row->unloaded_at || !server || server->why ||
        bal_fleet_server_find(server, row->name))
        return 0;
    copy.server = server->url;
    copy.name = bal_fleet_copy(self->run, row->name);
    copy.path = bal_fleet_copy(self->run, row->path);
    self->lost = !copy.name || !copy.path ||
                 bal_buf_append(&self->rows, &copy, sizeof(copy), NULL) != 0;
    return self->lost;
}

static int settle_notes(bal_fleet_run *run, bal_error *err)
{
    BAL_LOCAL(stale) found = { .run = run };
    bal_loaded row;
    int rc = bal_loaded_each(run->tenant, NULL, find_stale, &found, err);

    if (!rc && found.lost)
        rc = bal_fail_memory(err, "what is loaded");
    for (size_t at = 0; !rc && at < found.rows.len; at += sizeof(row)) {
        memcpy(&row, found.rows.data + at, sizeof(row));
        row.unloaded_at = bal_clock_now();
        rc = bal_loaded_put(run->tenant, &row, err);
        if (rc == BAL_ENOTFOUND) /* forgotten meanwhile, and the note with it */
            rc = 0;
    }
    return rc;
}

static int pruned(void *ctx, const char *path, const char *why)
{
    (void)ctx;
    bal_trace("fleet", "path=%s removed=%s", path, why ? why : "yes");
    return 0;
}

int bal_fleet_prune(bal_fleet_run *run, bal_error *err)
{
    BAL_LOCAL(keep) all = { .run = run };
    bal_error why = { 0 };

    if (run->options->flags & (BAL_FLEET_NO_PRUNE | BAL_FLEET_DRY_RUN) ||
        run->failed || bal_path_type_of(run->place) != BAL_PATH_DIR)
        return 0;
    int rc = fill(&all, err);
    if (rc)
        return rc;
    rc = settle_notes(run, &why);
    if (!rc)
        rc = bal_export_prune(run->tenant, run->dir, all.ids, all.count, pruned,
                              NULL, &why);
    if (rc == BAL_ENOMEM || rc == BAL_ECANCELLED) {
        if (err)
            *err = why;
        return rc;
    }
    /* The servers are as they should be all the same. */
    if (rc)
        bal_warn("fleet", "exports that nobody needs are left: %s", why.text);
    return 0;
}
