/* The tokens file: read once, strictly; only hashes of what it holds are kept,
 * and whether a header's is one of them is found out by looking at all. */
#include "serve/tokens.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/str.h"

#define FILE_MAX  ((size_t)1 << 20)
#define TOKEN_MAX ((size_t)4096)

typedef struct token {
    bal_id hash;
    bal_scope scope;
} token;

struct bal_tokens {
    bal_arena arena;
    token *rows;
    size_t count;
};

static const char *const all[] = { "*" };

const bal_scope bal_scope_open = { .read = all, .read_count = 1 };
const bal_scope bal_scope_none;

/* ---- a token --------------------------------------------------------------
 */

/* Visible ASCII: what a header can carry. */
static bool is_token(const char *text, size_t len)
{
    if (!len || len > TOKEN_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    }
    return true;
}

/* The hash of a token, or the one that is given in its place. */
static bool hash_of(bal_id *out, const char *text)
{
    static const char prefix[] = "blake3:";
    size_t len = strlen(text);

    if (!strncmp(text, prefix, sizeof(prefix) - 1))
        return !bal_id_parse(out, text + sizeof(prefix) - 1, NULL);
    if (!is_token(text, len))
        return false;
    bal_hash_of(out, text, len);
    return true;
}

/* ---- reading a file -------------------------------------------------------
 */

/* Names the file and the place of what is wrong, never what stands there: it
 * may be a token. */
typedef struct reading {
    bal_tokens *to;
    const char *what;
    size_t number; /* of the token at hand */
    bal_error *err;
} reading;

static int wrong(const reading *self, const char *why)
{
    return bal_fail(self->err, BAL_EINVAL, "%s: token %zu: %s", self->what,
                    self->number, why);
}

/* A list of names, behind those that are in the list already. */
static int take_names(reading *self, const char **to, size_t *count,
                      const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (!name || (strcmp(name, "*") && bal_tenant_check(name, NULL)))
            return wrong(self, "a name that is neither a tenant's nor '*'");
        to[*count] = bal_arena_copy(&self->to->arena, name, strlen(name));
        if (!to[(*count)++])
            return bal_fail_memory(self->err, self->what);
    }
    return 0;
}

static int take_lists(reading *self, bal_scope *scope, const json_t *read,
                      const json_t *write)
{
    size_t most = json_array_size(read) + json_array_size(write);
    const char **names =
        bal_arena_alloc(&self->to->arena, (most + 1) * sizeof(*names));

    if (!names)
        return bal_fail_memory(self->err, self->what);
    scope->write = names;
    scope->read = names;
    int rc = take_names(self, names, &scope->write_count, write);
    scope->read_count = scope->write_count;
    return rc ? rc : take_names(self, names, &scope->read_count, read);
}

static bool is_list(const json_t *value)
{
    return !value || json_is_array(value);
}

static int take_object(reading *self, bal_scope *scope, json_t *value)
{
    static const char *const members[] = { "read", "write", "expires" };
    const json_t *found[3];
    size_t known = 0;

    for (size_t i = 0; i < 3; i++) {
        found[i] = json_object_get(value, members[i]);
        known += found[i] != NULL;
    }
    if (known != json_object_size(value))
        return wrong(self, "a member that is none of read, write, expires");
    if (!is_list(found[0]) || !is_list(found[1]))
        return wrong(self, "read and write are lists of names");
    if (found[2] &&
        (!json_is_string(found[2]) ||
         !bal_clock_read(&scope->expires, json_string_value(found[2]))))
        return wrong(self, "expires is not a time as RFC 3339 writes it");
    return take_lists(self, scope, found[0], found[1]);
}

static int take_token(reading *self, token *row, const char *text,
                      json_t *value)
{
    row->scope.number = self->number;
    if (!hash_of(&row->hash, text))
        return wrong(self, "not 1 to 4096 visible ASCII characters, nor "
                           "'blake3:' and 64 lower-case hex digits");
    if (json_is_array(value))
        return take_lists(self, &row->scope, value, NULL);
    if (json_is_object(value))
        return take_object(self, &row->scope, value);
    return wrong(self, "neither a list of names nor an object");
}

/* One twice: as itself and as its hash. */
static int check_twice(const reading *self)
{
    BAL_LOCAL(bal_buf) ids = { 0 };
    const bal_tokens *tokens = self->to;

    for (size_t i = 0; i < tokens->count; i++) {
        int rc = bal_buf_append(&ids, &tokens->rows[i].hash, sizeof(bal_id),
                                self->err);
        if (rc)
            return rc;
    }
    bal_id *sorted = (bal_id *)(void *)ids.data;
    if (bal_ids_unique(sorted, tokens->count) == tokens->count)
        return 0;
    return bal_fail(self->err, BAL_EINVAL, "%s: a token is there twice",
                    self->what);
}

static int take_all(reading *self, json_t *root)
{
    bal_tokens *tokens = self->to;
    const char *text;
    json_t *value;

    if (!json_is_object(root))
        return bal_fail(self->err, BAL_EINVAL, "%s: not a JSON object",
                        self->what);
    if (!json_object_size(root))
        return bal_fail(self->err, BAL_EINVAL, "%s: no token in it",
                        self->what);
    tokens->rows = bal_arena_alloc(&tokens->arena, json_object_size(root) *
                                                       sizeof(*tokens->rows));
    if (!tokens->rows)
        return bal_fail_memory(self->err, self->what);
    json_object_foreach(root, text, value)
    {
        self->number = tokens->count + 1;
        int rc = take_token(self, &tokens->rows[tokens->count], text, value);
        if (rc)
            return rc;
        tokens->count++;
    }
    return check_twice(self);
}

/* What the parser says of a mistake quotes what stands near it. */
static int no_json(const char *text, size_t len, const char *what,
                   bal_error *err)
{
    json_error_t why;
    BAL_OWN(json_t)
    value =
        json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);

    if (value)
        return bal_fail(err, BAL_EINVAL, "%s: a NUL, or nested too deep", what);
    return bal_fail(err, BAL_EINVAL, "%s: %s at line %d, column %d", what,
                    json_error_code(&why) == json_error_duplicate_key
                        ? "a token or a member that is there twice"
                        : "not JSON",
                    why.line, why.column);
}

int bal_tokens_parse(bal_tokens **out, const char *text, size_t len,
                     const char *what, bal_error *err)
{
    BAL_OWN(bal_tokens) self = calloc(1, sizeof(*self));
    BAL_OWN(json_t) root = NULL;

    if (!self)
        return bal_fail_memory(err, what);
    int rc = bal_json_parse(&root, text, len, what, err);
    if (rc)
        return rc == BAL_ECORRUPT ? no_json(text, len, what, err) : rc;
    rc = take_all(&(reading){ self, what, 0, err }, root);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}

static void warn_of_readers(const char *path)
{
    struct stat stat_;

    if (!stat(path, &stat_) && (stat_.st_mode & (S_IRWXG | S_IRWXO)))
        bal_warn("serve", "tokens=%s mode=%03o others-may-read=yes", path,
                 (unsigned)(stat_.st_mode & 0777));
}

int bal_tokens_load(bal_tokens **out, const char *path, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    int rc = bal_file_slurp(&text, path, FILE_MAX, err);

    if (!rc) {
        warn_of_readers(path);
        rc = bal_tokens_parse(out, bal_buf_string(&text), text.len, path, err);
    }
    if (text.data)
        explicit_bzero(text.data, text.len);
    return rc;
}

void bal_tokens_free(bal_tokens *self)
{
    if (!self)
        return;
    bal_arena_done(&self->arena);
    free(self);
}

/* ---- asking ---------------------------------------------------------------
 */

/* The token of a header, "" where it has none that could be one. */
static const char *bearer(const char *header, size_t *len)
{
    static const char scheme[] = "bearer";

    *len = 0;
    if (!header || strncasecmp(header, scheme, sizeof(scheme) - 1) != 0)
        return "";
    const char *at = header + sizeof(scheme) - 1;
    size_t spaces = strspn(at, " ");
    at += spaces;
    size_t found = strnlen(at, TOKEN_MAX + 1);
    if (!spaces || !is_token(at, found))
        return "";
    *len = found;
    return at;
}

/* All ones where the ids are equal, else 0; takes as long either way. */
static size_t equal_mask(const bal_id *a, const bal_id *b)
{
    volatile unsigned differ = 0;

    for (size_t i = 0; i < sizeof(a->bytes); i++)
        differ |= (unsigned)(a->bytes[i] ^ b->bytes[i]);
    return (size_t)0 - (size_t)((differ - 1U) >> 31);
}

const bal_scope *bal_tokens_find(const bal_tokens *self, const char *header,
                                 int64_t now)
{
    size_t len;
    const char *text = bearer(header, &len);
    size_t found = 0;
    bal_id hash;

    if (!self || !len)
        return &bal_scope_none;
    bal_hash_of(&hash, text, len);
    for (size_t i = 0; i < self->count; i++) {
        size_t mask = equal_mask(&hash, &self->rows[i].hash);
        found = (found & ~mask) | ((i + 1) & mask);
    }
    if (!found)
        return &bal_scope_none;
    const bal_scope *scope = &self->rows[found - 1].scope;
    bool over = scope->expires && now >= scope->expires;
    return over ? &bal_scope_none : scope;
}

static bool among(const char *const *names, size_t count, const char *tenant)
{
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(names[i], "*") || !strcmp(names[i], tenant))
            return true;
    }
    return false;
}

bool bal_scope_reads(const bal_scope *self, const char *tenant)
{
    return among(self->read, self->read_count, tenant);
}

bool bal_scope_writes(const bal_scope *self, const char *tenant)
{
    return among(self->write, self->write_count, tenant);
}
