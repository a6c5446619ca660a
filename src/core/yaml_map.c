/* Maps: keys, each once, and what "<<" merges in. */
#include <string.h>

#include "core/error.h"
#include "core/map.h"
#include "core/yaml_inside.h"

/* Keys that are being gathered: a later one of the same text takes the place
 * of an earlier that was merged in. */
typedef struct members {
    bal_map names;
    const bal_yaml_node **keys, **items;
    size_t count;
} members;

static void members_done(members *self)
{
    bal_map_done(&self->names);
}

static int put_member(members *self, const bal_yaml_node *key,
                      const bal_yaml_node *item, bool over, bal_error *err)
{
    size_t at = self->count;
    bool there = false;
    int rc = bal_map_add(&self->names, key->text, strlen(key->text), &at,
                         &there, err);
    if (rc)
        return rc;
    if (there && !over)
        return bal_yaml_fail(err, BAL_EINVAL, key,
                             "'%s' is there twice, and in line %u", key->text,
                             self->keys[at]->line);
    self->keys[at] = key;
    self->items[at] = item;
    self->count += !there;
    return 0;
}

static int check_key(const bal_yaml_node *key, bal_error *err)
{
    if (key->text)
        return 0;
    return bal_yaml_fail(err, BAL_EINVAL, key, "a key that is no scalar");
}

static bool is_merge_key(const bal_yaml_node *key)
{
    return key->type == BAL_YAML_MERGE;
}

/* Members that "<<: value" brings. Of several maps the first has its way. */
static int merge(members *to, const bal_yaml_node *value, bal_error *err)
{
    bool list = value->type == BAL_YAML_LIST;
    const bal_yaml_node *const one[] = { value };
    const bal_yaml_node *const *maps = list ? value->items : one;

    for (size_t i = list ? value->count : 1; i--;) {
        const bal_yaml_node *map = maps[i];
        if (map->type != BAL_YAML_MAP)
            return bal_yaml_fail(err, BAL_EINVAL, map,
                                 "'<<' takes a map or a list of maps");
        int rc = 0;
        for (size_t k = 0; !rc && k < map->count; k++)
            rc = put_member(to, map->keys[k], map->items[k], true, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* How many members there can be at most, merged ones counted. */
static size_t most_members(const bal_yaml_node *const *pairs, size_t count)
{
    size_t most = count;

    for (size_t i = 0; i < count; i++) {
        const bal_yaml_node *value = pairs[2 * i + 1];
        if (!is_merge_key(pairs[2 * i]))
            continue;
        most += value->type == BAL_YAML_MAP ? value->count : 0;
        for (size_t k = 0; value->type == BAL_YAML_LIST && k < value->count;
             k++)
            most += value->items[k]->count;
    }
    return most;
}

/* Room for so many. */
static int members_init(members *self, bal_arena *arena, size_t most,
                        bal_error *err)
{
    self->keys = bal_arena_alloc(arena, (most + 1) * sizeof(void *));
    self->items = bal_arena_alloc(arena, (most + 1) * sizeof(void *));
    return self->keys && self->items ? 0 : bal_fail_memory(err, "yaml");
}

/* All that is merged in comes first, wherever "<<" stands. */
static int gather(members *to, const members *own, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < own->count; i++) {
        if (is_merge_key(own->keys[i]))
            rc = merge(to, own->items[i], err);
    }
    for (size_t i = 0; !rc && i < own->count; i++) {
        if (!is_merge_key(own->keys[i]))
            rc = put_member(to, own->keys[i], own->items[i], true, err);
    }
    return rc;
}

int bal_yaml_members(bal_yaml_node *node, bal_arena *arena, size_t *nodes,
                     const bal_yaml_node *const *pairs, size_t count,
                     bal_error *err)
{
    BAL_LOCAL(members) own = { 0 };
    BAL_LOCAL(members) all = { 0 };
    size_t most = most_members(pairs, count);

    int rc = bal_yaml_count(nodes, most - count, node, err);
    if (!rc)
        rc = members_init(&own, arena, count, err);
    if (!rc)
        rc = members_init(&all, arena, most, err);
    for (size_t i = 0; !rc && i < count; i++) {
        rc = check_key(pairs[2 * i], err);
        if (!rc)
            rc = put_member(&own, pairs[2 * i], pairs[2 * i + 1], false, err);
    }
    if (!rc)
        rc = gather(&all, &own, err);
    node->keys = all.keys;
    node->items = all.items;
    node->count = all.count;
    return rc;
}
