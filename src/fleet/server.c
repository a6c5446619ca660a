/* The routes of vLLM and SGLang, and their answers. */
#include "fleet/server.h"

#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "core/str.h"

enum {
    SAID_MAX = 240, /* bytes of a server's own words that are passed on */
    LIST_MAX = 100000,
};

struct bal_loader {
    const char *engine;
    const char *load, *unload;
};

static const bal_loader loaders[] = {
    { "vllm", "/v1/load_lora_adapter", "/v1/unload_lora_adapter" },
    { "sglang", "/load_lora_adapter", "/unload_lora_adapter" },
};

enum { LOADERS = sizeof(loaders) / sizeof(loaders[0]) };

static const char models_path[] = "/v1/models";
static const double usual_timeout = 30;

static const bal_loader *find_loader(const char *engine)
{
    for (size_t i = 0; engine && i < LOADERS; i++) {
        if (!strcmp(loaders[i].engine, engine))
            return &loaders[i];
    }
    return NULL;
}

int bal_fleet_server_name(char **out, const char *url, bal_arena *arena,
                          bal_error *err)
{
    int rc = bal_http_check(url, err);

    if (rc)
        return rc;
    if (strpbrk(url, "?#"))
        return bal_fail(err, BAL_EINVAL, "the server's URL has a '?' or '#'");
    size_t len = strlen(url);
    while (len && url[len - 1] == '/')
        len--;
    if (len > 3 && !strncmp(url + len - 3, "/v1", 3))
        len -= 3;
    while (len && url[len - 1] == '/')
        len--;
    *out = bal_arena_copy(arena, url, len);
    return *out ? 0 : bal_fail_memory(err, "a server");
}

int bal_fleet_server_open(bal_fleet_server *self, const char *url,
                          const bal_fleet_options *options, bal_work *work,
                          bal_error *err)
{
    const bal_http_options http = {
        .timeout = options->timeout > 0 ? options->timeout : usual_timeout,
        .retries = options->retries,
        .token = options->token,
    };

    *self = (bal_fleet_server){
        .url = url,
        .key = options->token,
        .work = work,
        .loader = find_loader(options->engine),
        .engine = options->engine,
    };
    return bal_http_open(&self->http, &http, err);
}

void bal_fleet_server_done(bal_fleet_server *self)
{
    bal_http_free(self->http);
    bal_arena_done(&self->arena);
    *self = (bal_fleet_server){ 0 };
}

/* ---- answers ------------------------------------------------------------ */

/* A text cut to what is passed on, at the end of a character. */
static size_t cut(const char *text)
{
    size_t len = strlen(text);

    if (len <= SAID_MAX)
        return len;
    len = SAID_MAX;
    while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--;
    return len;
}

/* "it answered 500: words". */
static int tell_status(const char **out, bal_fleet_server *self, int status,
                       const bal_buf *body, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_OWN(json_t) value = NULL;
    const char *said = NULL;
    int rc;

    if (!bal_json_parse(&value, bal_buf_string(body), body->len, "", NULL))
        said = bal_http_error_text(value);
    /* Some say which key it was that they did not like. */
    if (said && self->key && strstr(said, self->key))
        said = NULL;
    if (status == 401 || status == 403)
        rc = bal_buf_text(&text, "the server wants another API key", err);
    else
        rc = bal_buf_format(&text, err, "the server answered %d", status);
    if (!rc && said && status != 401 && status != 403) {
        rc = bal_buf_text(&text, ": ", err);
        if (!rc)
            rc = bal_printable(&text, said, cut(said), false, err);
    }
    if (rc)
        return rc;
    *out = bal_arena_copy(&self->arena, text.data, text.len);
    return *out ? 0 : bal_fail_memory(err, "a server");
}

/* What keeps a server from being used, unless it ends everything. */
static int give_up(bal_fleet_server *self, int rc, bool unreached,
                   bal_error *why, bal_error *err)
{
    if (rc == BAL_ENOMEM || rc == BAL_ECANCELLED) {
        if (err)
            *err = *why;
        return rc;
    }
    self->unreached = unreached;
    self->why = bal_arena_copy(&self->arena, why->text, strlen(why->text));
    return self->why ? 0 : bal_fail_memory(err, "a server");
}

/* *status 0: given up. */
static int ask(bal_fleet_server *self, int *status, bal_buf *body,
               const char *path, const bal_buf *sent, bal_error *err)
{
    BAL_LOCAL(bal_buf) url = { 0 };
    bal_error why = { 0 };
    int rc = bal_buf_format(&url, err, "%s%s", self->url, path);

    *status = 0;
    if (rc)
        return rc;
    const bal_http_request request = {
        .url = url.data,
        .body = sent ? (bal_bytes){ sent->data, sent->len } : (bal_bytes){ 0 },
    };
    rc = bal_http_send(self->http, status, body, &request, self->work, &why);
    if (!rc)
        return 0;
    *status = 0;
    return give_up(self, rc, true, &why, err);
}

/* ---- lists -------------------------------------------------------------- */

/* A text of a row, NULL: it has none. */
static int get_text(const char **out, bal_fleet_server *self, const json_t *row,
                    const char *key, bal_error *err)
{
    const char *text = json_string_value(json_object_get(row, key));

    *out = text ? bal_arena_copy(&self->arena, text, strlen(text)) : NULL;
    return text && !*out ? bal_fail_memory(err, "a server") : 0;
}

static int add_row(bal_fleet_server *self, const json_t *row, bal_error *err)
{
    bal_listed *listed = &self->listed[self->count];
    const char *owner = json_string_value(json_object_get(row, "owned_by"));
    int rc = get_text(&listed->name, self, row, "id", err);

    if (!rc)
        rc = get_text(&listed->root, self, row, "root", err);
    if (rc)
        return rc;
    if (!listed->name)
        return bal_fail(err, BAL_EIO, "'%s%s' lists a model without an id",
                        self->url, models_path);
    listed->base = json_is_null(json_object_get(row, "parent"));
    if (!self->loader)
        self->loader = find_loader(owner);
    self->count++;
    return 0;
}

static int read_list(bal_fleet_server *self, const bal_buf *body,
                     bal_error *err)
{
    BAL_OWN(json_t) value = NULL;
    int rc = bal_json_parse(&value, bal_buf_string(body), body->len, "not JSON",
                            err);
    const json_t *rows = json_object_get(value, "data");
    size_t n = json_array_size(rows);

    if (rc)
        return bal_within(err, rc == BAL_ECORRUPT ? BAL_EIO : rc, "'%s%s'",
                          self->url, models_path);
    if (!json_is_array(rows) || n > LIST_MAX)
        return bal_fail(err, BAL_EIO,
                        "'%s%s' answers with no list, or with "
                        "more than %d models",
                        self->url, models_path, LIST_MAX);
    self->listed =
        bal_arena_alloc(&self->arena, (n + 1) * sizeof(*self->listed));
    if (!self->listed)
        return bal_fail_memory(err, "a server");
    for (size_t i = 0; !rc && i < n; i++)
        rc = add_row(self, json_array_get(rows, i), err);
    return rc;
}

int bal_fleet_server_list(bal_fleet_server *self, bal_error *err)
{
    BAL_LOCAL(bal_buf) body = { 0 };
    bal_error why = { 0 };
    int status;

    self->count = 0;
    int rc = ask(self, &status, &body, models_path, NULL, err);
    if (rc || self->why)
        return rc;
    if (status != 200)
        return tell_status(&self->why, self, status, &body, err);
    rc = read_list(self, &body, &why);
    if (rc)
        return give_up(self, rc, false, &why, err);
    if (!self->loader)
        self->loader = &loaders[0];
    self->engine = self->loader->engine;
    return 0;
}

const bal_listed *bal_fleet_server_find(const bal_fleet_server *self,
                                        const char *name)
{
    for (size_t i = 0; i < self->count; i++) {
        if (!strcmp(self->listed[i].name, name))
            return &self->listed[i];
    }
    return NULL;
}

/* ---- telling it --------------------------------------------------------- */

static int post(bal_fleet_server *self, const char *route, const char *name,
                const char *path, int *status, const char **why, bal_error *err)
{
    BAL_LOCAL(bal_buf) sent = { 0 };
    BAL_LOCAL(bal_buf) body = { 0 };
    bal_json json;

    *why = NULL;
    bal_json_begin(&json, &sent, 0);
    bal_json_object(&json);
    bal_json_key(&json, "lora_name");
    bal_json_string(&json, name);
    if (path) {
        bal_json_key(&json, "lora_path");
        bal_json_string(&json, path);
    }
    bal_json_close(&json);
    int rc = bal_json_end(&json, err);
    if (!rc)
        rc = ask(self, status, &body, route, &sent, err);
    if (rc)
        return rc;
    if (!*status)
        *why = self->why;
    else if (*status != 200)
        return tell_status(why, self, *status, &body, err);
    return 0;
}

int bal_fleet_server_load(bal_fleet_server *self, const char *name,
                          const char *path, int *status, const char **why,
                          bal_error *err)
{
    return post(self, self->loader->load, name, path, status, why, err);
}

int bal_fleet_server_unload(bal_fleet_server *self, const char *name,
                            int *status, const char **why, bal_error *err)
{
    return post(self, self->loader->unload, name, NULL, status, why, err);
}
