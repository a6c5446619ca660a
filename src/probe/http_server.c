/* Asking a server what it is and what it serves. */
#include "probe/http_server.h"

#include <stdlib.h>
#include <string.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/str.h"
#include "probe/http_engines.h"

enum {
    SAID_MAX = 240, /* bytes of a server's own words that are passed on */
    SERVED_MAX = 100000,
};

static const char models_path[] = "/v1/models";
static const char adapters_path[] = "/lora-adapters";

int bal_server_check(const char *url, bal_error *err)
{
    int rc;

    if (!url || !url[0]) {
        rc = bal_fail(err, BAL_EINVAL, "no server is given");
        return bal_hint(err, rc, "--url http://host:port");
    }
    rc = bal_http_check(url, err);
    if (rc)
        return rc;
    if (strpbrk(url, "?#"))
        return bal_fail(err, BAL_EINVAL, "the server's URL has a '?' or '#'");
    return 0;
}

/* ---- answers ----------------------------------------------------------- */

int bal_server_refused(const bal_server *self, const char *path, int status,
                       bal_bytes body, bal_error *err)
{
    BAL_OWN(json_t) value = NULL;
    const char *text = NULL;

    if (!bal_json_parse(&value, body.data, body.len, "", NULL))
        text = bal_http_error_text(value);
    /* Some say which key it was that they did not like. */
    if (!text || (self->key && strstr(text, self->key)))
        text = "";
    int rc = bal_fail(err, BAL_EIO, "'%s%s' answered %d%s%.*s", self->url, path,
                      status, text[0] ? ": " : "", SAID_MAX, text);
    if (status == 401 || status == 403)
        return bal_hint(err, rc, "a key goes into BALLAST_PROBE_API_KEY");
    return rc;
}

/* A token may well be U+0000, which our texts cannot hold: its picture stands
 * for it, not U+FFFD, which stands for parts of characters. */
static void replace_zeros(bal_buf *body)
{
    static const char mark[] = { '\\', 'u', '2', '4', '0', '0' };
    char *at = body->data;

    while (at && (at = strchr(at, '\\'))) {
        if (!strncmp(at, "\\u0000", 6))
            memcpy(at, mark, sizeof(mark));
        at += at[1] ? 2 : 1;
    }
}

int bal_server_parse(json_t **out, const bal_server *self, const char *path,
                     bal_buf *body, bal_error *err)
{
    replace_zeros(body);
    int rc =
        bal_json_parse(out, bal_buf_string(body), body->len, "not JSON", err);
    if (rc)
        return bal_within(err, rc == BAL_ECORRUPT ? BAL_EIO : rc, "'%s%s'",
                          self->url, path);
    return 0;
}

/* GET url + path, whatever the status. */
static int fetch(bal_buf *body, int *status, bal_server *self, const char *path,
                 bal_error *err)
{
    BAL_LOCAL(bal_buf) url = { 0 };
    int rc = bal_buf_format(&url, err, "%s%s", self->url, path);

    if (rc)
        return rc;
    const bal_http_request request = { .url = url.data };
    return bal_http_send(self->http, status, body, &request, self->work, err);
}

int bal_server_get(json_t **out, int *status, bal_server *self,
                   const char *path, bal_error *err)
{
    BAL_LOCAL(bal_buf) body = { 0 };

    *status = 0;
    int rc = fetch(&body, status, self, path, err);
    if (rc || *status != 200)
        return rc;
    return bal_server_parse(out, self, path, &body, err);
}

/* As bal_server_get, where it must be there. */
static int must_get(json_t **out, bal_server *self, const char *path,
                    bal_error *err)
{
    BAL_LOCAL(bal_buf) body = { 0 };
    int status;
    int rc = fetch(&body, &status, self, path, err);

    if (rc)
        return rc;
    if (status != 200)
        return bal_server_refused(
            self, path, status, (bal_bytes){ bal_buf_string(&body), body.len },
            err);
    return bal_server_parse(out, self, path, &body, err);
}

/* ---- models ------------------------------------------------------------ */

static const char *copy(bal_server *self, const char *text)
{
    return bal_arena_copy(&self->arena, text, strlen(text));
}

/* A member that is a text, *out NULL: it is none, or null. */
static int get_text(const char **out, bal_server *self, const json_t *object,
                    const char *name, bal_error *err)
{
    const char *text = json_string_value(json_object_get(object, name));

    *out = NULL;
    if (!text)
        return 0;
    *out = copy(self, text);
    return *out ? 0 : bal_fail_memory(err, "a server");
}

/* What a request asks for, of one of a list that has names. */
static int name_model(bal_server *self, bal_served *served, bal_error *err)
{
    BAL_LOCAL(bal_buf) name = { 0 };
    const char *between = self->engine->between;

    served->model = served->id;
    if (!served->parent || !between || !between[0])
        return 0;
    int rc = bal_buf_format(&name, err, "%s%s%s", served->parent, between,
                            served->id);
    if (rc)
        return rc;
    served->model = copy(self, name.data);
    return served->model ? 0 : bal_fail_memory(err, "a server");
}

static int add_model(bal_server *self, const json_t *row, const char *root,
                     bal_error *err)
{
    bal_served *served = &self->served[self->count];

    served->lora = -1;
    int rc = get_text(&served->id, self, row, "id", err);
    if (!rc)
        rc = get_text(&served->parent, self, row, "parent", err);
    if (!rc)
        rc = get_text(&served->root, self, row, "root", err);
    if (rc)
        return rc;
    if (!served->id)
        return bal_fail(err, BAL_EIO, "'%s%s' lists a model without an id",
                        self->url, models_path);
    if (root && !served->parent)
        served->root = root;
    self->count++;
    return name_model(self, served, err);
}

/* The name of a file without ".gguf", and of the folder that it is in. */
static int name_adapter(bal_server *self, bal_served *served, bal_error *err)
{
    const char *path = served->root;
    const char *file = strrchr(path, '/');
    size_t folder = file ? (size_t)(file - path) : 0;
    size_t start = folder;

    file = file ? file + 1 : path;
    size_t len = strlen(file);
    if (bal_glob("?*.gguf", file))
        len -= strlen(".gguf");
    while (start && path[start - 1] != '/')
        start--;
    served->id = bal_arena_copy(&self->arena, file, len);
    served->other = bal_arena_copy(&self->arena, path + start, folder - start);
    return served->id && served->other ? 0 : bal_fail_memory(err, "a server");
}

/* An adapter that has a number, on the model that is served first. */
static int add_adapter(bal_server *self, const json_t *row, bal_error *err)
{
    bal_served *served = &self->served[self->count];
    const json_t *id = json_object_get(row, "id");
    int rc = get_text(&served->root, self, row, "path", err);

    if (rc)
        return rc;
    served->lora = json_is_integer(id) ? json_integer_value(id) : -1;
    if (served->lora < 0 || !served->root)
        return bal_fail(err, BAL_EIO,
                        "'%s%s' lists an adapter without id or path", self->url,
                        adapters_path);
    served->parent = self->served[0].id;
    served->model = self->served[0].model;
    self->count++;
    self->adapters++;
    return name_adapter(self, served, err);
}

static int check_list(const bal_server *self, const json_t *list,
                      const char *path, size_t least, bal_error *err)
{
    if (!json_is_array(list))
        return bal_fail(err, BAL_EIO, "'%s%s' answers with no list", self->url,
                        path);
    if (json_array_size(list) < least)
        return bal_fail(err, BAL_EIO, "'%s%s' lists no models", self->url,
                        path);
    if (json_array_size(list) > SERVED_MAX)
        return bal_fail(err, BAL_EIO, "'%s%s' lists more than %d models",
                        self->url, path, SERVED_MAX);
    return 0;
}

static int read_models(bal_server *self, bal_error *err)
{
    BAL_OWN(json_t) models = NULL;
    BAL_OWN(json_t) adapters = NULL;
    const char *root = NULL;
    int rc = must_get(&models, self, models_path, err);

    if (rc)
        return rc;
    const json_t *list = json_object_get(models, "data");
    rc = check_list(self, list, models_path, 1, err);
    if (!rc)
        rc = bal_server_engine(self, &root, models, err);
    if (!rc && !self->engine->between)
        rc = must_get(&adapters, self, adapters_path, err);
    if (!rc && adapters)
        rc = check_list(self, adapters, adapters_path, 0, err);
    if (rc)
        return rc;
    size_t count = json_array_size(list) + json_array_size(adapters);
    self->served = bal_arena_alloc(&self->arena, count * sizeof(bal_served));
    if (!self->served)
        return bal_fail_memory(err, "a server");
    for (size_t i = 0; !rc && i < json_array_size(list); i++)
        rc = add_model(self, json_array_get(list, i), root, err);
    for (size_t i = 0; !rc && i < json_array_size(adapters); i++)
        rc = add_adapter(self, json_array_get(adapters, i), err);
    return rc;
}

/* ---- the server -------------------------------------------------------- */

/* Without "/v1" and slashes behind. */
static const char *own_url(bal_server *self, const char *url)
{
    size_t len = strlen(url);

    while (len && url[len - 1] == '/')
        len--;
    if (len > 3 && !strncmp(url + len - 3, "/v1", 3))
        len -= 3;
    while (len && url[len - 1] == '/')
        len--;
    return bal_arena_copy(&self->arena, url, len);
}

static const char *find_key(void)
{
    static const char *const names[] = { "BALLAST_PROBE_API_KEY",
                                         "OPENAI_API_KEY" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *key = getenv(names[i]);
        if (key && key[0])
            return key;
    }
    return NULL;
}

int bal_server_open(bal_server *self, const bal_question *question,
                    bal_error *err)
{
    const bal_ask_options *options = question->options;
    int rc = bal_server_check(options->url, err);

    if (rc)
        return rc;
    self->key = find_key();
    self->work = question->work;
    self->url = own_url(self, options->url);
    if (!self->url)
        return bal_fail_memory(err, "a server");
    const bal_http_options http = {
        .timeout = options->timeout,
        .deadline = options->timeout,
        .parallel = options->parallel,
        .token = self->key,
    };
    rc = bal_http_open(&self->http, &http, err);
    if (rc)
        return rc;
    return read_models(self, err);
}

void bal_server_done(bal_server *self)
{
    bal_http_free(self->http);
    self->http = NULL;
    bal_arena_done(&self->arena);
}
