/* Sums by group; a model has some dozens of them. */
#include "report/diff_groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "report/parts.h"

void bal_diff_groups_done(bal_diff_groups *self)
{
    bal_buf_done(&self->rows);
    bal_map_done(&self->index);
    bal_arena_done(&self->names);
}

size_t bal_diff_groups_count(const bal_diff_groups *self)
{
    return self->rows.len / sizeof(bal_diff_group);
}

static bal_diff_group *row_at(const bal_diff_groups *self, size_t i)
{
    return (bal_diff_group *)(void *)self->rows.data + i;
}

const bal_diff_group *bal_diff_groups_at(const bal_diff_groups *self, size_t i)
{
    return row_at(self, i);
}

/* What a group is found by: layer, NUL, name. */
typedef struct key {
    char text[2 * BAL_MODULE_ROOM];
    size_t name; /* where it starts */
    size_t len;
} key;

static void make_key(key *out, const char *layer, const char *name)
{
    size_t front = layer ? strlen(layer) : 0;
    size_t len = strlen(name);

    memcpy(out->text, layer ? layer : "", front);
    out->text[front] = '\0';
    memcpy(out->text + front + 1, name, len);
    out->name = front + 1;
    out->len = front + 1 + len;
}

static int add_group(bal_diff_groups *self, const key *of, bool in_layer,
                     bal_error *err)
{
    const char *text = bal_arena_copy(&self->names, of->text, of->len);
    size_t at = bal_diff_groups_count(self);
    bool there = false;
    if (!text)
        return bal_fail_memory(err, "diff");

    const bal_diff_group group = {
        .layer = in_layer ? text : NULL,
        .name = text + of->name,
    };
    int rc = bal_buf_append(&self->rows, &group, sizeof(group), err);
    return rc ? rc : bal_map_add(&self->index, text, of->len, &at, &there, err);
}

int bal_diff_groups_add(bal_diff_groups *self, const char *layer,
                        const char *name, const bal_diff_row *row,
                        bool unmeasured, bal_error *err)
{
    key of;
    make_key(&of, layer, name);
    size_t at = bal_map_find(&self->index, of.text, of.len);
    if (at == BAL_NONE) {
        at = bal_diff_groups_count(self);
        int rc = add_group(self, &of, layer != NULL, err);
        if (rc)
            return rc;
    }

    bal_diff_group *group = row_at(self, at);
    group->tensors++;
    group->changed += row->change != BAL_UNCHANGED;
    group->unmeasured |= unmeasured;
    group->diff2 += row->diff2;
    group->norm2 += row->norm2;
    return 0;
}

/* Whole numbers without zeros in front, and perhaps one text in front of them
 * all: the longer one is larger. */
static int compare(const void *a, const void *b)
{
    const char *one = ((const bal_diff_group *)a)->name;
    const char *other = ((const bal_diff_group *)b)->name;
    size_t lens[2] = { strlen(one), strlen(other) };

    if (lens[0] != lens[1])
        return lens[0] < lens[1] ? -1 : 1;
    return strcmp(one, other);
}

void bal_diff_groups_sort(bal_diff_groups *self)
{
    if (self->rows.len)
        qsort(self->rows.data, bal_diff_groups_count(self),
              sizeof(bal_diff_group), compare);
    bal_map_done(&self->index);
}

double bal_diff_group_relative(const bal_diff_group *self)
{
    if (self->unmeasured || !isfinite(self->diff2) || !isfinite(self->norm2))
        return (double)INFINITY;
    if (self->norm2 > 0)
        return sqrt(self->diff2) / sqrt(self->norm2);
    return self->diff2 > 0 ? (double)INFINITY : 0;
}

void bal_diff_groups_json(bal_json *json, const bal_diff_groups *self)
{
    bal_json_array(json);
    for (size_t i = 0; i < bal_diff_groups_count(self); i++) {
        const bal_diff_group *group = row_at(self, i);
        bal_json_object(json);
        if (group->layer) {
            bal_json_key(json, "layer");
            bal_json_string(json, group->layer);
        }
        bal_json_key(json, "name");
        bal_json_string(json, group->name);
        bal_json_key(json, "tensors");
        bal_json_u64(json, group->tensors);
        bal_json_key(json, "changed");
        bal_json_u64(json, group->changed);
        bal_json_key(json, "relative");
        bal_json_f64(json, bal_diff_group_relative(group));
        bal_json_close(json);
    }
    bal_json_close(json);
}
