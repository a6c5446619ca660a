/* Reading manifests back, strictly: they come from a database that may have
 * been damaged. A leaf is scanned, not made a tree of, for it may be large. */
#include <stdlib.h>
#include <string.h>

#include "blocks/blocks.h"
#include "core/arith.h"
#include "core/error.h"
#include "core/json.h"
#include "core/room.h"
#include "core/str.h"
#include "kernel/dtype.h"
#include "store/manifest.h"

typedef struct reader {
    bal_scan scan;
    bal_leaf *leaf;
    size_t entry_room, place_room, id_room;
    /* of the entry being read */
    bal_tensor entry;
    bal_place place;
    uint64_t shape[BAL_MAX_RANK];
    bool has_of;
    uint64_t version;
} reader;

/* A member: its key and what reads its value. */
typedef struct member_row {
    const char *key;
    int (*read)(reader *self, bal_error *err);
} member_row;

static int bad(const reader *self, const char *what, bal_error *err)
{
    return bal_fail(err, BAL_ECORRUPT, "manifest: %s at byte %zu", what,
                    self->scan.at);
}

/* Read an object whose members are rows, each at most once and in their order,
 * which is that of the canonical text: what one member was checked against, no
 * later one may change. Anything else is corrupt. */
static int read_members(reader *self, const member_row *rows, bal_error *err)
{
    const member_row *row = rows;
    int rc = bal_scan_open(&self->scan, '{', err);
    bool more;

    for (bool first = true; !rc; first = false) {
        rc = bal_scan_more(&self->scan, '}', first, &more, err);
        if (rc || !more)
            return rc;
        const char *key;
        size_t len;
        rc = bal_scan_key(&self->scan, &key, &len, err);
        if (rc)
            return rc;
        while (row->key && strcmp(row->key, key))
            row++;
        if (!row->key)
            return bad(self, "an unknown member, or one out of order", err);
        rc = row->read(self, err);
        row++;
    }
    return rc;
}

static int read_text(reader *self, const char **out, bal_error *err)
{
    size_t len;

    if (bal_scan_peek(&self->scan) == 'n') {
        *out = NULL;
        return bal_scan_skip(&self->scan, 1, err);
    }
    int rc = bal_scan_string(&self->scan, out, &len, err);
    if (rc)
        return rc;
    if (strlen(*out) != len)
        return bad(self, "a text with U+0000", err);
    return 0;
}

static int read_word(reader *self, const char **out, bal_error *err)
{
    int rc = read_text(self, out, err);
    if (rc)
        return rc;
    return *out ? 0 : bad(self, "null for a text", err);
}

static int read_id(reader *self, bal_id *out, bal_error *err)
{
    const char *hex;
    int rc = read_word(self, &hex, err);
    if (rc)
        return rc;
    return bal_id_parse(out, hex, NULL) ? bad(self, "not an id", err) : 0;
}

static int add_id(reader *self, bal_error *err)
{
    bal_leaf *leaf = self->leaf;

    bal_id *ids = bal_room_for_one(leaf->ids, leaf->id_count, &self->id_room,
                                   sizeof(*ids));
    if (!ids)
        return bal_fail_memory(err, "manifest");
    leaf->ids = ids;
    int rc = read_id(self, &leaf->ids[leaf->id_count], err);
    if (rc)
        return rc;
    leaf->id_count++;
    self->place.count++;
    return 0;
}

static int read_at(reader *self, bal_error *err)
{
    uint64_t *const numbers[] = { &self->place.offset,
                                  &self->place.block_size };
    bool more = true;
    int rc = bal_scan_open(&self->scan, '[', err);
    if (!rc)
        rc = bal_scan_more(&self->scan, ']', true, &more, err);
    if (!rc && more)
        rc = add_id(self, err);
    for (size_t i = 0; i < 2 && !rc && more; i++) {
        rc = bal_scan_more(&self->scan, ']', false, &more, err);
        if (!rc && more)
            rc = bal_scan_u64(&self->scan, numbers[i], err);
    }
    if (rc)
        return rc;
    if (!more)
        return bad(self, "a short place", err);
    self->place.shared = true;
    rc = bal_scan_more(&self->scan, ']', false, &more, err);
    if (rc)
        return rc;
    return more ? bad(self, "a long place", err) : 0;
}

static int read_blocks(reader *self, bal_error *err)
{
    int rc = bal_scan_open(&self->scan, '[', err);
    bool more;

    for (bool first = true; !rc; first = false) {
        rc = bal_scan_more(&self->scan, ']', first, &more, err);
        if (rc || !more)
            return rc;
        rc = add_id(self, err);
    }
    return rc;
}

static int read_digest(reader *self, const bal_id **out, bal_error *err)
{
    bal_id *id = bal_arena_alloc(&self->leaf->arena, sizeof(*id));
    if (!id)
        return bal_fail_memory(err, "manifest");

    *out = id;
    return read_id(self, id, err);
}

static int read_base(reader *self, bal_error *err)
{
    return read_digest(self, &self->entry.base, err);
}

static int read_tuned(reader *self, bal_error *err)
{
    return read_digest(self, &self->entry.tuned, err);
}

static int read_dtype_word(reader *self, bal_dtype *out, bal_error *err)
{
    const char *word;
    int rc = read_word(self, &word, err);
    if (rc)
        return rc;
    return bal_dtype_find(out, word, strlen(word))
               ? 0
               : bad(self, "an unknown dtype", err);
}

static int read_dtype(reader *self, bal_error *err)
{
    return read_dtype_word(self, &self->entry.dtype, err);
}

static int read_of(reader *self, bal_error *err)
{
    self->has_of = true;
    return read_dtype_word(self, &self->entry.of, err);
}

/* The index of a word in a list. */
static int read_choice(reader *self, const char *const *words, size_t count,
                       size_t *out, bal_error *err)
{
    const char *word;
    int rc = read_word(self, &word, err);
    if (rc)
        return rc;

    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], word))
            continue;
        *out = i;
        return 0;
    }
    return bad(self, "an unknown word", err);
}

static int read_form(reader *self, bal_error *err)
{
    size_t form = 0;
    int rc = read_choice(self, bal_form_words, BAL_FORMS, &form, err);

    self->entry.form = (bal_form)form;
    return rc;
}

static int read_part(reader *self, bal_error *err)
{
    size_t part = 0;
    int rc = read_choice(self, bal_part_words, BAL_PARTS, &part, err);

    self->entry.part = (bal_part)part;
    return rc;
}

static int read_name(reader *self, bal_error *err)
{
    return read_word(self, &self->entry.name, err);
}

static int read_shape(reader *self, bal_error *err)
{
    int rc = bal_scan_open(&self->scan, '[', err);
    bool more;

    self->entry.rank = 0;
    for (bool first = true; !rc; first = false) {
        rc = bal_scan_more(&self->scan, ']', first, &more, err);
        if (rc || !more)
            return rc;
        if (self->entry.rank == BAL_MAX_RANK)
            return bad(self, "too many dimensions", err);
        rc = bal_scan_u64(&self->scan, &self->shape[self->entry.rank], err);
        self->entry.rank++;
    }
    return rc;
}

static const member_row entry_rows[] = {
    { "at", read_at },       { "base", read_base }, { "blocks", read_blocks },
    { "dtype", read_dtype }, { "form", read_form }, { "name", read_name },
    { "of", read_of },       { "part", read_part }, { "shape", read_shape },
    { "tuned", read_tuned }, { NULL, NULL },
};

/* Does the place hold exactly the entry's bytes? */
static bool place_fits(const reader *self, uint64_t size)
{
    const bal_place *place = &self->place;
    uint64_t block = self->leaf->block_size;
    uint64_t end;

    if (place->shared)
        return place->count == 1 && bal_add(&end, place->offset, size) &&
               end <= place->block_size && place->block_size <= block;
    return place->count == size / block + (size % block != 0);
}

static int check_entry(reader *self, bal_error *err)
{
    bal_tensor *entry = &self->entry;
    bool empty =
        entry->form == BAL_FORM_SAME || entry->form == BAL_FORM_REMOVED;
    uint64_t elements;

    if (!entry->name)
        return bad(self, "an entry without a name", err);
    if (!self->has_of)
        entry->of = entry->dtype;
    if (!bal_shape_size(&elements, &entry->size, entry->dtype, self->shape,
                        entry->rank))
        return bad(self, "a shape that cannot be", err);
    if (empty)
        entry->size = 0;
    if (!place_fits(self, entry->size))
        return bad(self, "blocks that do not fit the shape", err);
    return 0;
}

static int keep_entry(reader *self, bal_error *err)
{
    bal_leaf *leaf = self->leaf;

    bal_tensor *entries = bal_room_for_one(leaf->entries, leaf->count,
                                           &self->entry_room, sizeof(*entries));
    if (!entries)
        return bal_fail_memory(err, "manifest");
    leaf->entries = entries;
    bal_place *places = bal_room_for_one(leaf->places, leaf->count,
                                         &self->place_room, sizeof(*places));
    if (!places)
        return bal_fail_memory(err, "manifest");
    leaf->places = places;
    size_t bytes = self->entry.rank * sizeof(*self->shape);
    uint64_t *shape = bal_arena_alloc(&leaf->arena, bytes + 1);
    if (!shape)
        return bal_fail_memory(err, "manifest");
    memcpy(shape, self->shape, bytes);
    self->entry.shape = shape;
    leaf->entries[leaf->count] = self->entry;
    leaf->places[leaf->count] = self->place;
    leaf->count++;
    return 0;
}

static int read_entry(reader *self, bal_error *err)
{
    memset(&self->entry, 0, sizeof(self->entry));
    memset(&self->place, 0, sizeof(self->place));
    self->place.first = self->leaf->id_count;
    self->has_of = false;
    int rc = read_members(self, entry_rows, err);
    if (rc)
        return rc;
    rc = check_entry(self, err);
    if (rc)
        return rc;
    return keep_entry(self, err);
}

static int read_entries(reader *self, bal_error *err)
{
    if (!self->leaf->block_size)
        return bad(self, "entries before the block size", err);

    int rc = bal_scan_open(&self->scan, '[', err);
    bool more;
    for (bool first = true; !rc; first = false) {
        rc = bal_scan_more(&self->scan, ']', first, &more, err);
        if (rc || !more)
            return rc;
        rc = read_entry(self, err);
    }
    return rc;
}

static int read_base_model(reader *self, bal_error *err)
{
    return read_text(self, &self->leaf->base_model, err);
}

static int read_block_size(reader *self, bal_error *err)
{
    uint64_t *size = &self->leaf->block_size;
    int rc = bal_scan_u64(&self->scan, size, err);
    if (rc)
        return rc;
    return *size && *size <= BAL_BLOCK_LONGEST
               ? 0
               : bad(self, "a block size that cannot be", err);
}

static int read_kind(reader *self, bal_error *err)
{
    static const char *const words[] = {
        [BAL_KIND_WEIGHTS] = "weights",
        [BAL_KIND_ADAPTER] = "adapter",
        [BAL_KIND_DELTA] = "delta",
    };
    size_t kind = 0;
    int rc = read_choice(self, words, BAL_KIND_VIEW, &kind, err);

    self->leaf->kind = (bal_kind)kind;
    return rc;
}

static int read_revision(reader *self, bal_error *err)
{
    return read_text(self, &self->leaf->revision, err);
}

static int read_version(reader *self, bal_error *err)
{
    return bal_scan_u64(&self->scan, &self->version, err);
}

static const member_row leaf_rows[] = {
    { "base_model", read_base_model },
    { "block_size", read_block_size },
    { "entries", read_entries },
    { "kind", read_kind },
    { "revision", read_revision },
    { "version", read_version },
    { NULL, NULL },
};

/* The version, which stands last, is looked at first: a newer manifest may have
 * members that this program does not know, and is not corrupt for that. */
static int check_version(bal_bytes text, bal_error *err)
{
    static const char key[] = "\"version\":";
    const char *data = text.data;
    size_t at = text.len ? text.len - 1 : 0;

    while (at && data[at - 1] >= '0' && data[at - 1] <= '9')
        at--;
    size_t len = sizeof(key) - 1;
    size_t digits = text.len ? text.len - 1 - at : 0;
    if (at < len || !digits || memcmp(data + at - len, key, len) ||
        (digits == 1 && data[at] == '1'))
        return 0;
    return bal_fail(err, BAL_EUNSUPPORTED,
                    "manifest of version %.*s, this program reads 1",
                    (int)bal_min(digits, 20), data + at);
}

int bal_leaf_read(bal_leaf *out, bal_bytes text, bal_error *err)
{
    reader self = { .leaf = out };

    self.scan.data = text.data;
    self.scan.len = text.len;
    self.scan.arena = &out->arena;
    self.scan.what = "manifest";
    int rc = check_version(text, err);
    if (rc)
        return rc;
    rc = read_members(&self, leaf_rows, err);
    if (rc)
        return rc;
    rc = bal_scan_end(&self.scan, err);
    if (rc)
        return rc;
    return self.version == 1 ? 0 : bad(&self, "no version", err);
}

void bal_leaf_done(bal_leaf *self)
{
    free(self->entries);
    free(self->places);
    free(self->ids);
    bal_arena_done(&self->arena);
    memset(self, 0, sizeof(*self));
}

int bal_view_read(json_t **recipe, bal_bytes text, bal_error *err)
{
    BAL_OWN(json_t) body = NULL;
    int rc = bal_json_parse(&body, text.data, text.len, "manifest", err);
    if (rc)
        return rc;

    json_t *inner = json_object_get(body, "recipe");
    json_int_t version = json_integer_value(json_object_get(body, "version"));
    if (version != 1)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "view of version %lld, this program reads 1",
                        (long long)version);
    if (!json_is_object(inner))
        return bal_fail(err, BAL_ECORRUPT, "manifest: a view without recipe");
    *recipe = json_incref(inner);
    return 0;
}
