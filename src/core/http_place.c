/* URLs, taken apart by the library that will follow them: so what was checked
 * is what is asked. */
#include <string.h>

#include "core/error.h"
#include "core/http_inside.h"
#include "core/str.h"

enum { URL_MAX_BYTES = 8192 };

typedef struct part {
    char *text;
} part;

static void part_done(part *self)
{
    bal_curl_use()->free(self->text);
}

static const char *part_get(part *self, CURLU *url, CURLUPart what)
{
    if (bal_curl_use()->url_get(url, what, &self->text, CURLU_NO_DEFAULT_PORT))
        return "";
    return self->text;
}

/* Text with an '@' may be a password: it is not repeated. */
static int no_url(const char *url, bal_error *err)
{
    int rc;

    if (strchr(url, '@') || strlen(url) > URL_MAX_BYTES)
        rc = bal_fail(err, BAL_EINVAL, "what is given is not a URL");
    else
        rc = bal_fail(err, BAL_EINVAL, "'%s' is not a URL", url);
    return bal_hint(err, rc, "http://host:port or https://host:port");
}

static bool is_loopback(const char *host)
{
    return !strcmp(host, "localhost") || bal_glob("*.localhost", host) ||
           bal_glob("127.*.*.*", host) || !strcmp(host, "[::1]");
}

static int take_apart(bal_http_place *self, const char *url, bal_error *err)
{
    BAL_LOCAL(part) scheme = { 0 };
    BAL_LOCAL(part) host = { 0 };
    BAL_LOCAL(part) port = { 0 };
    BAL_LOCAL(part) path = { 0 };
    const char *name = part_get(&scheme, self->url, CURLUPART_SCHEME);

    if (strcmp(name, "http") && strcmp(name, "https"))
        return bal_fail(err, BAL_EINVAL,
                        "a URL of http or https is wanted, not of '%s'", name);
    const char *where = part_get(&host, self->url, CURLUPART_HOST);
    if (!where[0])
        return no_url(url, err);
    const char *at = part_get(&port, self->url, CURLUPART_PORT);
    self->loopback = is_loopback(where);
    return bal_buf_format(&self->text, err, "%s://%s%s%s%s", name, where,
                          at[0] ? ":" : "", at,
                          part_get(&path, self->url, CURLUPART_PATH));
}

int bal_http_place_init(bal_http_place *self, const char *url, bal_error *err)
{
    int rc = bal_curl_load(err);

    if (rc)
        return rc;
    if (strlen(url) > URL_MAX_BYTES)
        return no_url(url, err);
    self->url = bal_curl_use()->url();
    if (!self->url)
        return bal_fail_memory(err, "a URL");
    CURLUcode code = bal_curl_use()->url_set(self->url, CURLUPART_URL, url,
                                             CURLU_DISALLOW_USER);
    if (code == CURLUE_OUT_OF_MEMORY)
        return bal_fail_memory(err, "a URL");
    if (code == CURLUE_USER_NOT_ALLOWED) {
        rc = bal_fail(err, BAL_EINVAL,
                      "a URL with a user or password in it is not taken");
        return bal_hint(err, rc, "a key goes into the environment");
    }
    if (code == CURLUE_UNSUPPORTED_SCHEME)
        return bal_fail(err, BAL_EINVAL, "a URL of http or https is wanted");
    if (code)
        return no_url(url, err);
    return take_apart(self, url, err);
}

void bal_http_place_done(bal_http_place *self)
{
    if (self->url)
        bal_curl_use()->url_cleanup(self->url);
    self->url = NULL;
    bal_buf_done(&self->text);
}

int bal_http_check(const char *url, bal_error *err)
{
    BAL_LOCAL(bal_http_place) place = { 0 };

    return bal_http_place_init(&place, url, err);
}

const char *bal_http_error_text(const json_t *value)
{
    const json_t *error = json_object_get(value, "error");
    const json_t *places[] = {
        json_object_get(error, "message"),
        error,
        json_object_get(value, "error_message"),
        json_object_get(value, "message"),
        json_object_get(value, "detail"),
    };

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (json_is_string(places[i]))
            return json_string_value(places[i]);
    }
    return NULL;
}
