/* What a postgresql: URL says. libpq reads it; here is what libpq does not
 * know, the schema, and what is not to be kept, passwords. Nothing that is said
 * about a URL has any part of it: where it is malformed, who knows where the
 * password is. */
#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "graph/postgres.h"

#define DEFAULT_SCHEMA "ballast"

static int malformed(bal_error *err)
{
    return bal_hint(
        err, bal_fail(err, BAL_EINVAL, "the database's address is malformed"),
        "postgresql://USER@HOST:PORT/DATABASE?schema=NAME, each but the "
        "slashes can be left out");
}

typedef struct texts {
    bal_buf url;
    bal_buf plain;
    char *schema; /* of the result */
    bool begun;   /* there was a parameter; one in plain: */
    bool begun_plain;
} texts;

static void texts_done(texts *self)
{
    bal_buf_done(&self->url);
    bal_buf_done(&self->plain);
}

static int both(texts *self, const char *from, size_t len, bal_error *err)
{
    int rc = bal_buf_append(&self->url, from, len, err);

    return rc ? rc : bal_buf_append(&self->plain, from, len, err);
}

/* Lower-case, so that no quoting changes what is meant. */
static int take_schema(texts *self, const char *name, size_t len,
                       bal_error *err)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyz_";
    static const char more[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    bool fine = len > 0 && len < 64 && strchr(first, name[0]) &&
                (len < 3 || memcmp(name, "pg_", 3) != 0);

    for (size_t i = 0; i < len && fine; i++)
        fine = name[i] && strchr(more, name[i]);
    if (!fine)
        return bal_fail(err, BAL_EINVAL,
                        "a schema is called by up to 63 of a-z, 0-9 and _, "
                        "not a digit first, nor pg_");
    memcpy(self->schema, name, len);
    self->schema[len] = '\0';
    return 0;
}

/* What is done with a parameter. */
typedef struct key_row {
    const char *key;
    bool for_libpq;
    bool shown;
    int (*take)(texts *self, const char *value, size_t len, bal_error *err);
} key_row;

static const key_row keys[] = {
    { "schema", false, true, take_schema },
    { "password", true, false, NULL },
    { "sslpassword", true, false, NULL },
};

static const key_row *key_find(const char *key, size_t len)
{
    static const key_row other = { NULL, true, true, NULL };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (strlen(keys[i].key) == len && !memcmp(keys[i].key, key, len))
            return &keys[i];
    }
    return &other;
}

static int add(bal_buf *to, bool *begun, const char *text, size_t len,
               bal_error *err)
{
    int rc = bal_buf_append(to, *begun ? "&" : "?", 1, err);

    *begun = true;
    return rc ? rc : bal_buf_append(to, text, len, err);
}

/* libpq decodes keys as well: what hides a letter of one could hide one of
 * those above. */
static int take_parameter(texts *self, const char *text, size_t len,
                          bal_error *err)
{
    const char *equals = memchr(text, '=', len);
    size_t key = equals ? (size_t)(equals - text) : 0;
    if (!key || memchr(text, '%', key))
        return malformed(err);

    const key_row *row = key_find(text, key);
    int rc = row->take ? row->take(self, equals + 1, len - key - 1, err) : 0;
    if (!rc && row->for_libpq)
        rc = add(&self->url, &self->begun, text, len, err);
    if (!rc && row->shown)
        rc = add(&self->plain, &self->begun_plain, text, len, err);
    return rc;
}

static int take_parameters(texts *self, const char *at, bal_error *err)
{
    while (*at) {
        size_t len = strcspn(at, "&");
        int rc = take_parameter(self, at, len, err);
        if (rc)
            return rc;
        at += len;
        if (*at == '&')
            at++;
    }
    return 0;
}

/* USER:PASSWORD@, as libpq finds it: before the first slash. */
static int take_user(texts *self, const char **at, bal_error *err)
{
    size_t user = strcspn(*at, "@/");
    if ((*at)[user] != '@')
        return 0;

    const char *colon = memchr(*at, ':', user);
    size_t shown = colon ? (size_t)(colon - *at) : user;
    int rc = bal_buf_append(&self->url, *at, user + 1, err);
    if (!rc)
        rc = bal_buf_append(&self->plain, *at, shown, err);
    if (!rc)
        rc = bal_buf_append(&self->plain, "@", 1, err);
    *at += user + 1;
    return rc;
}

static int read_all(texts *self, const char *rest, bal_error *err)
{
    if (strncmp(rest, "//", 2) != 0)
        return malformed(err);

    int rc = both(self, "postgresql://", strlen("postgresql://"), err);
    const char *at = rest + 2;
    if (!rc)
        rc = take_user(self, &at, err);
    if (rc)
        return rc;
    size_t place = strcspn(at, "?");
    if (memchr(at, '@', place))
        return malformed(err); /* behind a password with a slash in it */
    rc = both(self, at, place, err);
    at += place;
    if (!rc && *at)
        rc = take_parameters(self, at + 1, err);
    return rc;
}

int bal_pg_address_read(bal_pg_address *out, const char *rest, bal_error *err)
{
    bal_pg_address found = { .schema = DEFAULT_SCHEMA };
    BAL_LOCAL(texts) self = { .schema = found.schema };
    int rc = read_all(&self, rest, err);
    if (rc)
        return rc;

    found.url = bal_str_copy(bal_buf_string(&self.url));
    found.plain = bal_str_copy(bal_buf_string(&self.plain));
    if (!found.url || !found.plain) {
        bal_pg_address_done(&found);
        return bal_fail_memory(err, "a database's address");
    }
    *out = found;
    return 0;
}

void bal_pg_address_done(bal_pg_address *self)
{
    bal_str_free(self->url);
    bal_str_free(self->plain);
    *self = (bal_pg_address){ 0 };
}
