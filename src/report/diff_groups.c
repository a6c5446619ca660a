/* Sums by group; a model has some dozens of them. */
#include "report/diff_groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

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

static int find(bal_diff_group **out, bal_diff_groups *self, const char *name,
                bal_error *err)
{
    size_t len = strlen(name);
    size_t found = bal_map_find(&self->index, name, len);
    bal_diff_group group = { .tensors = 0 };
    size_t at = bal_diff_groups_count(self);
    bool there = false;

    if (found != BAL_NONE) {
        *out = row_at(self, found);
        return 0;
    }
    group.name = bal_arena_copy(&self->names, name, len);
    int rc = group.name
                 ? bal_buf_append(&self->rows, &group, sizeof(group), err)
                 : bal_fail_memory(err, "diff");
    if (!rc)
        rc = bal_map_add(&self->index, group.name, len, &at, &there, err);
    if (!rc)
        *out = row_at(self, at);
    return rc;
}

int bal_diff_groups_add(bal_diff_groups *self, const char *name,
                        const bal_diff_row *row, bool unmeasured,
                        bal_error *err)
{
    bal_diff_group *group = NULL;
    int rc = find(&group, self, name, err);
    if (rc)
        return rc;

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
