/* The statement of a deletion. Everything in it is a string, an integer, a
 * boolean, null, or made of those, so that every writer of canonical JSON
 * writes the same bytes. */
#include "store/statement.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"

/* Bytes that a value of a statement takes at least, on the average, and what
 * may stand beside them in a reason full of commas. */
enum { LEAST_VALUE = 16, SLACK = 4 << 20 };

static const char *const not_covered[] = {
    "backups and snapshots of the disk, the database or the backend",
    "replicas of the database or the backend",
    "running servers and processes that have it in memory",
    "view caches of other roots on the database, until they are opened",
    "copies of blocks that --cache keeps elsewhere, until the next read there",
    "exported copies, the ones named here included",
    "what storage media keep of overwritten and unlinked data",
};

/* The kinds of subjects, in the order of their names. */
static const struct subject_kind {
    const char *member;
    const char *name;
} subject_kinds[] = {
    { "commits", "commit" },
    { "manifests", "manifest" },
};

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A value made for an object or array that takes it, or no memory. */
static int put(json_t *object, const char *key, json_t *value, bal_error *err)
{
    if (json_object_set_new(object, key, value))
        return bal_fail_memory(err, "a statement");
    return 0;
}

/* ---- the subject -------------------------------------------------------- */

static int add_subject(json_t *to, const char *kind, const char *tenant,
                       const char *id, bal_error *err)
{
    BAL_LOCAL(bal_buf) name = { 0 };
    int rc = bal_buf_format(&name, err, "%s:%s/%s", kind, tenant, id);
    if (rc)
        return rc;

    json_t *subject = json_pack("{s:s,s:{s:s}}", "name", bal_buf_string(&name),
                                "digest", "blake3", id);
    if (json_array_append_new(to, subject))
        return bal_fail_memory(err, "a statement");
    return 0;
}

static int add_kind(json_t *to, const json_t *predicate,
                    const struct subject_kind *kind, bal_error *err)
{
    const json_t *ids = json_object_get(predicate, kind->member);
    const char *tenant =
        json_string_value(json_object_get(predicate, "tenant"));
    size_t count = json_array_size(ids);
    const char **sorted = calloc(count + 1, sizeof(*sorted));
    int rc = 0;

    if (!sorted)
        return bal_fail_memory(err, "a statement");
    for (size_t i = 0; i < count; i++) {
        sorted[i] = json_string_value(json_array_get(ids, i));
        if (!sorted[i] || !tenant)
            rc = bal_fail(err, BAL_ECORRUPT, "a statement of no ids");
    }
    if (!rc && count)
        qsort(sorted, count, sizeof(*sorted), compare_text);
    for (size_t i = 0; i < count && !rc; i++)
        rc = add_subject(to, kind->name, tenant, sorted[i], err);
    free(sorted);
    return rc;
}

int bal_statement_subject(json_t **out, const json_t *predicate, bal_error *err)
{
    BAL_OWN(json_t) subject = json_array();
    if (!subject)
        return bal_fail_memory(err, "a statement");

    for (size_t i = 0; i < sizeof(subject_kinds) / sizeof(subject_kinds[0]);
         i++) {
        int rc = add_kind(subject, predicate, &subject_kinds[i], err);
        if (rc)
            return rc;
    }
    *out = BAL_TAKE(subject);
    return 0;
}

/* ---- writing ------------------------------------------------------------ */

/* What the plan's row of a server comes to. */
static int add_server(json_t *to, const json_t *row, bal_error *err)
{
    const char *server = json_string_value(json_object_get(row, "server"));
    const char *name = json_string_value(json_object_get(row, "name"));
    BAL_LOCAL(bal_buf) text = { 0 };

    if (!server || !name)
        return bal_fail(err, BAL_ECORRUPT, "a statement of no server");
    int rc = bal_buf_format(&text, err,
                            "server '%s', which has loaded it as '%s', until "
                            "it is restarted",
                            server, name);
    if (rc)
        return rc;
    if (json_array_append_new(to, json_string(bal_buf_string(&text))))
        return bal_fail_memory(err, "a statement");
    return 0;
}

static int put_sentences(json_t *predicate, bal_error *err)
{
    const json_t *servers = json_object_get(predicate, "servers");
    BAL_OWN(json_t) array = json_array();
    int rc = 0;

    for (size_t i = 0; i < sizeof(not_covered) / sizeof(not_covered[0]); i++) {
        if (json_array_append_new(array, json_string(not_covered[i])))
            return bal_fail_memory(err, "a statement");
    }
    for (size_t i = 0; i < json_array_size(servers) && !rc; i++)
        rc = add_server(array, json_array_get(servers, i), err);
    if (rc)
        return rc;
    return put(predicate, "not_covered", json_incref(array), err);
}

static int complete(json_t *predicate, const bal_statement_facts *facts,
                    bal_error *err)
{
    const bal_key *key = facts->key;
    BAL_LOCAL(bal_buf) origin = { 0 };
    char at[40];
    int rc = bal_log_origin(&origin, facts->store, err);
    if (rc)
        return rc;

    bal_clock_rfc3339(at, facts->completed_at);
    rc = put(predicate, "schema", json_string(BAL_STATEMENT_SCHEMA), err);
    if (!rc)
        rc = put(predicate, "store", json_string(facts->store), err);
    if (!rc)
        rc = put(predicate, "completed_at", json_string(at), err);
    if (!rc)
        rc = put(predicate, "signing",
                 json_pack("{s:s,s:s?}", "algorithm",
                           key ? bal_key_algorithm(key) : "none", "key_id",
                           key ? bal_key_id(key) : NULL),
                 err);
    if (!rc)
        rc = put(predicate, "log",
                 json_pack("{s:s,s:I}", "origin", bal_buf_string(&origin),
                           "index", (json_int_t)facts->index),
                 err);
    if (!rc)
        rc = put_sentences(predicate, err);
    return rc;
}

int bal_statement_write(bal_buf *to, json_t *plan,
                        const bal_statement_facts *facts, bal_error *err)
{
    BAL_OWN(json_t) predicate = bal_json_copy(plan);
    BAL_OWN(json_t) statement = json_object();
    json_t *subject = NULL;

    if (!predicate || !statement)
        return bal_fail_memory(err, "a statement");
    json_object_del(predicate, "private");
    int rc = complete(predicate, facts, err);
    if (!rc)
        rc = bal_statement_subject(&subject, predicate, err);
    if (!rc)
        rc = put(statement, "subject", subject, err);
    if (!rc)
        rc = put(statement, "_type", json_string(BAL_STATEMENT_TYPE), err);
    if (!rc)
        rc = put(statement, "predicateType",
                 json_string(BAL_STATEMENT_PREDICATE), err);
    if (!rc)
        rc = put(statement, "predicate", json_incref(predicate), err);
    if (rc)
        return rc;
    return bal_json_canonical(to, statement, err);
}

/* ---- reading ------------------------------------------------------------ */

int bal_statement_read(json_t **out, bal_bytes text, bal_error *err)
{
    const char *bytes = text.data;
    size_t commas = 0;

    for (size_t i = 0; i < text.len; i++)
        commas += bytes[i] == ',';
    if (commas > SLACK / LEAST_VALUE + text.len / LEAST_VALUE)
        return bal_fail(err, BAL_ECORRUPT, "statement: not one of a deletion");
    return bal_json_parse(out, bytes ? bytes : "", text.len, "statement", err);
}

/* The number that `count` digits make; false: one is not a digit. */
static bool digits(int64_t *out, const char *text, size_t count)
{
    int64_t value = 0;

    for (size_t i = 0; i < count; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (text[i] - '0');
    }
    *out = value;
    return true;
}

/* Days since 1970 of a date in the Gregorian calendar. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    int64_t years = month > 2 ? year : year - 1;
    int64_t months = (month + 9) % 12; /* since March */

    return 365 * years + years / 4 - years / 100 + years / 400 +
           (153 * months + 2) / 5 + day - 1 - 719468;
}

bool bal_statement_time(int64_t *out, const char *text)
{
    static const char form[] = "0000-00-00T00:00:00.000000000Z";
    static const struct {
        size_t at, count;
    } fields[] = { { 0, 4 },  { 5, 2 },  { 8, 2 }, { 11, 2 },
                   { 14, 2 }, { 17, 2 }, { 20, 9 } };
    int64_t n[7];
    char again[40];

    if (!text || strlen(text) != sizeof(form) - 1)
        return false;
    for (size_t i = 0; i < 7; i++) {
        if (!digits(&n[i], text + fields[i].at, fields[i].count))
            return false;
    }
    if (n[0] < 1970 || n[0] > 2261 || n[1] < 1 || n[1] > 12)
        return false;
    int64_t seconds =
        ((days_of(n[0], n[1], n[2]) * 24 + n[3]) * 60 + n[4]) * 60 + n[5];
    *out = seconds * 1000000000 + n[6];
    /* One time has one text: what is out of its range gives another. */
    bal_clock_rfc3339(again, *out);
    return !strcmp(again, text);
}

int bal_log_origin(bal_buf *to, const char *store, bal_error *err)
{
    return bal_buf_format(to, err, "ballast/%s", store);
}

int bal_store_identity(bal_buf *to, bal_store *store, bal_error *err)
{
    return bal_graph_setting(store->graph, "store_id", to, err);
}

int bal_tenant_store_id(char out[BAL_STORE_ID_ROOM], bal_tenant *tenant,
                        bal_error *err)
{
    BAL_LOCAL(bal_buf) id = { 0 };
    int rc = bal_store_identity(&id, tenant->store, err);

    if (rc)
        return rc;
    if (id.len >= BAL_STORE_ID_ROOM)
        return bal_fail(err, BAL_ECORRUPT, "the store's id is too long");
    memcpy(out, bal_buf_string(&id), id.len + 1);
    return 0;
}

int bal_statement_ids(bal_buf *to, const json_t *array, bal_error *err)
{
    bal_id id;

    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *hex = json_string_value(json_array_get(array, i));
        if (!hex || bal_id_parse(&id, hex, NULL))
            return bal_fail(err, BAL_ECORRUPT, "'%.80s' is not an id",
                            hex ? hex : "");
        int rc = bal_buf_append(to, &id, sizeof(id), err);
        if (rc)
            return rc;
    }
    return 0;
}
