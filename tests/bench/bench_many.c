/* A store of many tiny blocks, made without writing them one by one through a
 * commit: `bench-many ROOT COUNT` puts COUNT rows into the tenant acme of a
 * store that is there, a manifest on each 4096 of them, and a file of the right
 * name and size for each. What is in the files is of no use: this is for what
 * lists and removes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "core/hash.h"
#include "graph/graph.h"
#include "store/manifest.h"

enum { LEAF = 4096, STORED = 100, LOGICAL = 4096 };

static void need(int rc, const bal_error *err)
{
    if (!rc)
        return;
    fprintf(stderr, "bench-many: %s\n", err->text);
    exit(1);
}

static void need_io(bool good, const char *what)
{
    if (good)
        return;
    perror(what);
    exit(1);
}

static bal_graph *open_graph(const char *root)
{
    bal_error err = { 0 };
    bal_db *db = NULL;
    bal_graph *graph = NULL;

    need(bal_db_open(&db, "sqlite:graph.db", root, 30, 0, &err), &err);
    need(bal_graph_open(&graph, db, 0, &err), &err);
    return graph;
}

static void make_folders(const char *root)
{
    bal_error err = { 0 };
    char path[4096];

    for (unsigned i = 0; i < 16; i++) {
        snprintf(path, sizeof(path), "%s/blocks/acme/%x", root, i);
        need(bal_make_dirs(path, &err), &err);
    }
}

static void make_file(const char *root, const bal_id *id)
{
    char path[4096], hex[BAL_ID_HEX + 1];
    char bytes[STORED] = { 0 };

    bal_id_hex(hex, id);
    snprintf(path, sizeof(path), "%s/blocks/acme/%c/%s", root, hex[0], hex);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    need_io(fd >= 0, path);
    need_io(write(fd, bytes, sizeof(bytes)) == sizeof(bytes), path);
    close(fd);
}

/* One entry of many blocks. */
static void write_leaf(bal_buf *body, const bal_id *ids, size_t count)
{
    bal_error err = { 0 };
    uint64_t shape[] = { count * LOGICAL };
    bal_tensor entry = { .name = "w",
                         .dtype = BAL_U8,
                         .of = BAL_U8,
                         .rank = 1,
                         .shape = shape,
                         .size = shape[0] };
    bal_place place = { .count = count };
    bal_leaf leaf = { .kind = BAL_KIND_WEIGHTS,
                      .block_size = LOGICAL,
                      .entries = &entry,
                      .places = &place,
                      .count = 1,
                      .ids = (bal_id *)(uintptr_t)ids,
                      .id_count = count };

    need(bal_leaf_write(body, &leaf, &err), &err);
}

static int by_id(const void *a, const void *b)
{
    return bal_id_compare(a, b);
}

/* Rows for ids, and the manifest that uses them. */
static void put_leaf(bal_graph *graph, int64_t tenant, bal_id *ids,
                     size_t count)
{
    static bal_block_row rows[LEAF];
    bal_error err = { 0 };
    BAL_LOCAL(bal_buf) body = { 0 };
    bal_manifest_row manifest = { .kind = "weights",
                                  .logical = count * LOGICAL,
                                  .uses = ids,
                                  .use_count = count };

    write_leaf(&body, ids, count);
    bal_hash_of(&manifest.id, body.data, body.len);
    manifest.body = (bal_bytes){ body.data, body.len };
    qsort(ids, count, sizeof(*ids), by_id);
    for (size_t i = 0; i < count; i++)
        rows[i] = (bal_block_row){ .id = ids[i],
                                   .size = LOGICAL,
                                   .stored = STORED,
                                   .codec = 1,
                                   .check = ids[i],
                                   .has_check = true };
    need(bal_graph_manifest_put(graph, tenant, &manifest, rows, count, &err),
         &err);
}

static void fill(bal_graph *graph, const char *root, size_t count)
{
    static bal_id ids[LEAF];
    bal_error err = { 0 };
    bal_tx tx = { 0 };
    int64_t tenant = 0;

    need(bal_graph_begin(&tx, graph, BAL_TX_WRITE, &err), &err);
    need(bal_graph_tenant(graph, &tenant, "acme", BAL_DB_CREATE, &err), &err);
    for (size_t at = 0; at < count;) {
        size_t some = 0;
        for (; some < LEAF && at < count; some++, at++) {
            bal_hash_of(&ids[some], &at, sizeof(at));
            make_file(root, &ids[some]);
        }
        put_leaf(graph, tenant, ids, some);
    }
    need(bal_tx_commit(&tx, &err), &err);
}

int main(int argc, char **argv)
{
    char *end = NULL;

    if (argc != 3) {
        fprintf(stderr, "usage: bench-many ROOT COUNT\n");
        return 2;
    }
    size_t count = (size_t)strtoull(argv[2], &end, 10);
    bal_graph *graph = open_graph(argv[1]);
    make_folders(argv[1]);
    fill(graph, argv[1], count);
    bal_graph_free(graph);
    return 0;
}
