/* The doors to a database: the row for a scheme, transactions that end with
 * their scope, values. Drivers do the rest. */
#include "graph/db.h"

#include <assert.h>
#include <string.h>

#include "core/error.h"
#include "graph/inside.h"

static const bal_db_ops *const schemes[] = {
    &bal_db_sqlite,
    &bal_db_postgres,
};

bal_value bal_null(void)
{
    return (bal_value){ .type = BAL_VALUE_NULL };
}

bal_value bal_int(int64_t number)
{
    return (bal_value){ .type = BAL_VALUE_INT, .number = number };
}

bal_value bal_text(const char *text)
{
    if (!text)
        return bal_null();
    return (bal_value){
        .type = BAL_VALUE_TEXT,
        .bytes = { text, strlen(text) },
    };
}

bal_value bal_blob(const void *data, size_t len)
{
    return (bal_value){ .type = BAL_VALUE_BLOB, .bytes = { data, len } };
}

bal_value bal_id_value(const bal_id *id)
{
    if (!id)
        return bal_null();
    return bal_blob(id->bytes, sizeof(id->bytes));
}

static const bal_db_ops *find(const char *scheme, size_t len)
{
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        const char *name = schemes[i]->scheme;
        if (strlen(name) == len && !memcmp(name, scheme, len))
            return schemes[i];
    }
    return NULL;
}

/* Letters that a scheme has; before another colon there may be anything. */
static bool is_scheme(const char *url, size_t len)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789+-.";

    return len && strspn(url, letters) == len;
}

/* The URL may hold a password, so no message has more of it than the scheme. */
static int split(const bal_db_ops **ops, const char **rest, const char *url,
                 bal_error *err)
{
    const char *colon = strchr(url, ':');
    if (!colon || !is_scheme(url, (size_t)(colon - url)))
        return bal_hint(err,
                        bal_fail(err, BAL_EINVAL,
                                 "the database's address is not of the form "
                                 "scheme:address"),
                        "sqlite:FILE or postgresql://USER@HOST:PORT/DATABASE");

    *ops = find(url, colon - url);
    *rest = colon + 1;
    if (*ops)
        return 0;
    return bal_fail(err, BAL_EINVAL, "no database driver for '%.*s:'",
                    (int)(colon - url), url);
}

int bal_db_open(bal_db **out, const char *url, const char *root, double wait,
                unsigned flags, bal_error *err)
{
    const bal_db_ops *ops = NULL;
    const char *rest = NULL;
    int rc = split(&ops, &rest, url, err);

    return ops ? ops->open(out, rest, root, wait, flags, err) : rc;
}

int bal_db_plain(char **out, const char *url, bal_error *err)
{
    const bal_db_ops *ops = NULL;
    const char *rest = NULL;
    int rc = split(&ops, &rest, url, err);

    return ops ? ops->plain(out, rest, err) : rc;
}

int bal_db_lock_take(bal_db_lock **out, bal_db *self, enum bal_lock_mode mode,
                     double wait, bal_error *err)
{
    return self->ops->lock(self, out, mode, wait, err);
}

int bal_db_locks_held(bal_db *self, bal_error *err)
{
    return self->ops->held(self, err);
}

void bal_db_lock_free(bal_db_lock *self)
{
    if (self)
        self->ops->unlock(self);
}

int bal_db_changes(bal_db *self, uint64_t *out, bal_error *err)
{
    return self->ops->changes(self, out, err);
}

int bal_db_place(bal_db *self, bal_buf *to, bal_error *err)
{
    return self->ops->place(self, to, err);
}

void bal_db_free(bal_db *self)
{
    if (self)
        self->ops->free(self);
}

int bal_db_query(bal_db *self, const char *sql, const bal_value *args,
                 size_t count, bal_row_fn *fn, void *ctx, bal_error *err)
{
    const bal_query query = { sql, args, count, fn, ctx, NULL };

    return self->ops->query(self, &query, err);
}

int bal_db_run(bal_db *self, const char *sql, const bal_value *args,
               size_t count, uint64_t *changed, bal_error *err)
{
    const bal_query query = { sql, args, count, NULL, NULL, changed };

    return self->ops->query(self, &query, err);
}

int bal_db_scrub(bal_db *self, unsigned flags, bal_error *err)
{
    return self->ops->scrub(self, flags, err);
}

int bal_tx_begin(bal_tx *self, bal_db *db, unsigned flags, bal_error *err)
{
    assert(!self->db);
    int rc = db->ops->begin(db, flags, err);
    if (rc)
        return rc;
    self->db = db;
    return 0;
}

int bal_tx_commit(bal_tx *self, bal_error *err)
{
    assert(self->db);
    int rc = self->db->ops->commit(self->db, err);
    if (rc)
        return rc;
    self->db = NULL;
    return 0;
}

void bal_tx_done(bal_tx *self)
{
    if (self->db)
        self->db->ops->rollback(self->db);
    self->db = NULL;
}
