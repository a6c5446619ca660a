/* A set of probes: what it gives, and what it is when there is no file. */
#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "probe/probes_inside.h"
#include "probe/runner.h"

static const char opening[] = "{\"probes\":[";

const bal_id *bal_probes_id(const bal_probes *self)
{
    return &self->id;
}

size_t bal_probes_count(const bal_probes *self)
{
    return self->count;
}

const bal_probe *bal_probes_at(const bal_probes *self, size_t i)
{
    return &self->items[i];
}

size_t bal_probes_find(const bal_probes *self, const char *id)
{
    return bal_map_find(&self->ids, id, strlen(id));
}

const char *bal_probes_json(const bal_probes *self)
{
    return bal_buf_string(&self->json);
}

const char *bal_probes_unused(const bal_probes *self)
{
    return bal_buf_string(&self->unused);
}

bal_probes *bal_probes_ref(bal_probes *self)
{
    if (self)
        atomic_fetch_add_explicit(&self->refs, 1, memory_order_relaxed);
    return self;
}

void bal_probes_free(bal_probes *self)
{
    if (!self ||
        atomic_fetch_sub_explicit(&self->refs, 1, memory_order_acq_rel) != 1)
        return;
    bal_arena_done(&self->arena);
    bal_map_done(&self->ids);
    bal_buf_done(&self->json);
    bal_buf_done(&self->unused);
    free(self->items);
    free(self);
}

/* ---- of prompts --------------------------------------------------------- */

static int add_prompt(bal_maker *maker, const char *prompt, bal_error *err)
{
    bal_probe probe = { 0 };
    size_t len = strlen(prompt);

    if (!bal_utf8_valid(prompt, len))
        return bal_fail(err, BAL_EINVAL, "not utf-8");
    int rc = bal_maker_copy(maker, &probe.prompt, prompt, len, err);

    return rc ? rc : bal_maker_add(maker, &probe, err);
}

int bal_probes_of(bal_probes **out, const char *const *prompts, size_t count,
                  bal_error *err)
{
    BAL_LOCAL(bal_maker) maker = { 0 };
    int rc = bal_maker_init(&maker, "prompt", err);

    for (size_t i = 0; i < count && !rc; i++) {
        maker.place = i + 1;
        rc = add_prompt(&maker, prompts[i], err);
    }
    if (rc)
        return bal_within(err, rc, "prompt %zu", maker.place);
    return bal_maker_end(&maker, out, err);
}

/* ---- of canonical JSON -------------------------------------------------- */

/* One element of "probes". As JSON Lines have it: whether it is as we write it
 * is seen at the end. */
static int read_probe(bal_maker *maker, bal_scan *scan, bal_error *err)
{
    BAL_OWN(json_t) object = NULL;

    bal_scan_peek(scan);
    size_t start = scan->at;
    int rc = bal_scan_skip(scan, 8, err);
    if (rc)
        return rc;
    if (scan->at - start > BAL_PROBE_TEXT)
        return bal_fail(err, BAL_EINVAL, "more than %zu bytes", BAL_PROBE_TEXT);
    rc = bal_json_parse(&object, scan->data + start, scan->at - start, "json",
                        err);
    if (rc)
        return rc;
    if (!json_is_object(object))
        return bal_fail(err, BAL_EINVAL, "no json object");
    return bal_probes_native.line(maker, object, err);
}

static int read_probes(bal_maker *maker, bal_scan *scan, bal_error *err)
{
    bool more = true;
    int rc = 0;

    while (!rc && more) {
        rc = bal_scan_more(scan, ']', !maker->place, &more, err);
        if (rc || !more)
            continue;
        maker->place++;
        rc = read_probe(maker, scan, err);
        if (rc)
            return bal_within(err, rc, "probe %zu", maker->place);
    }
    return rc;
}

/* What is read must be, byte for byte, what would be written of it: all that
 * was not looked at is so looked at, too. */
static int read_all(bal_probes **out, const char *json, size_t len,
                    bal_error *err)
{
    BAL_LOCAL(bal_maker) maker = { 0 };
    BAL_OWN(bal_probes) made = NULL;
    bal_scan scan = {
        .data = json,
        .len = len,
        .at = strlen(opening),
        .what = "json",
    };

    if (len < scan.at || memcmp(json, opening, scan.at) != 0)
        return bal_fail(err, BAL_EINVAL, "it does not begin with '%s'",
                        opening);
    int rc = bal_maker_init(&maker, "probe", err);

    if (!rc)
        rc = read_probes(&maker, &scan, err);
    if (!rc)
        rc = bal_maker_end(&maker, &made, err);
    if (rc)
        return rc;
    if (made->json.len != len || memcmp(made->json.data, json, len) != 0)
        return bal_fail(err, BAL_EINVAL, "not in canonical form");
    bal_buf_done(&made->unused);
    *out = BAL_TAKE(made);
    return 0;
}

int bal_probes_read(bal_probes **out, const char *json, size_t len,
                    bal_error *err)
{
    bal_error why = { 0 };

    if (len > BAL_PROBES_TEXT)
        return bal_fail(err, BAL_ECORRUPT, "set of probes: %zu bytes", len);
    int rc = read_all(out, json, len, &why);
    if (rc)
        bal_fail(err, rc == BAL_EINVAL ? BAL_ECORRUPT : rc, "set of probes: %s",
                 why.text);
    return rc == BAL_EINVAL ? BAL_ECORRUPT : rc;
}
