/* From most particular to most general: the environment, the profile, AWS. */
#include "blocks/s3_place.h"

#include <assert.h>
#include <string.h>

#include "core/error.h"
#include "core/http.h"
#include "core/str.h"

enum {
    BUCKET_MOST = 63,
    BUCKET_LEAST = 3,
    PREFIX_MOST = 512,
    REGION_MOST = 32,
    TRIES = 6,
    TRIES_MOST = 100,
};

static const char default_region[] = "us-east-1";

static int no_url(bal_error *err)
{
    return bal_hint(
        err, bal_fail(err, BAL_EINVAL, "what is given names no bucket"),
        "s3://bucket or s3://bucket/prefix; a bucket has 3 to 63 small "
        "letters, digits, '-' and '.'");
}

static bool bucket_valid(const char *text, size_t len)
{
    if (len < BUCKET_LEAST || len > BUCKET_MOST || text[0] == '.' ||
        text[0] == '-')
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
              (c == '.' && text[i - 1] != '.')))
            return false;
    }
    return true;
}

/* As names are (blocks/backend.h): no part is empty or starts with a dot. */
static bool prefix_valid(const char *text, size_t len)
{
    bool fresh = true;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if ((unsigned char)c < ' ' || c == 0x7f || strchr("?#@", c))
            return false;
        if (fresh && (c == '/' || c == '.'))
            return false;
        fresh = c == '/';
    }
    return len <= PREFIX_MOST && bal_utf8_valid(text, len);
}

static const char *keep(bal_s3_place *self, const bal_buf *text)
{
    return bal_arena_copy(&self->arena, bal_buf_string(text), text->len);
}

/* The bucket and, behind a slash, the prefix. */
static int take_url(bal_s3_place *self, const char **bucket, const char *rest,
                    bal_error *err)
{
    BAL_LOCAL(bal_buf) prefix = { 0 };
    BAL_LOCAL(bal_buf) text = { 0 };

    if (strncmp(rest, "//", 2) != 0)
        return no_url(err);
    rest += 2;
    size_t len = strcspn(rest, "/");
    const char *path = rest + len + (rest[len] == '/');
    size_t path_len = strlen(path);
    if (path_len && path[path_len - 1] == '/')
        path_len--;
    if (!bucket_valid(rest, len) || !prefix_valid(path, path_len))
        return no_url(err);
    int rc = bal_buf_format(&prefix, err, "%.*s%s", (int)path_len, path,
                            path_len ? "/" : "");
    if (!rc)
        rc = bal_buf_format(&text, err, "s3://%.*s%s%.*s", (int)len, rest,
                            path_len ? "/" : "", (int)path_len, path);
    if (rc)
        return rc;
    *bucket = bal_arena_copy(&self->arena, rest, len);
    self->prefix = keep(self, &prefix);
    self->text = keep(self, &text);
    if (!*bucket || !self->prefix || !self->text)
        return bal_fail_memory(err, "a backend");
    return 0;
}

/* ---- what is said of it ------------------------------------------------- */

/* The first of them that is set to something. */
static const char *first_of(const char *const *names, size_t count,
                            const char *fallback)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = getenv(names[i]);
        if (value && value[0])
            return value;
    }
    return fallback;
}

static const char *const region_names[] = { "AWS_REGION",
                                            "AWS_DEFAULT_REGION" };
static const char *const endpoint_names[] = { "AWS_ENDPOINT_URL_S3",
                                              "AWS_ENDPOINT_URL" };

/* It becomes a part of the host's name. */
static int take_region(bal_s3_place *self, const bal_s3_profile *profile,
                       bal_error *err)
{
    const char *region =
        first_of(region_names, 2,
                 profile->region && profile->region[0] ? profile->region
                                                       : default_region);
    size_t len = strspn(region, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                                "UVWXYZ0123456789-");

    if (region[len] || len > REGION_MOST)
        return bal_fail(err, BAL_EINVAL, "'%.80s' is not a region of AWS",
                        region);
    self->region = bal_arena_copy(&self->arena, region, len);
    return self->region ? 0 : bal_fail_memory(err, "a backend");
}

/* What a header can hold. */
static bool is_plain(const char *text)
{
    while (*text > ' ' && *text <= '~')
        text++;
    return !*text;
}

/* Keys and their token are taken from one place: the environment's token with
 * the file's key would fit nobody. */
static int take_keys(bal_s3_place *self, const bal_s3_profile *profile,
                     bal_error *err)
{
    const char *access = getenv("AWS_ACCESS_KEY_ID");
    const char *secret = getenv("AWS_SECRET_ACCESS_KEY");
    bool named = access && access[0] && secret && secret[0];
    const char *texts[] = {
        named ? access : profile->access,
        named ? secret : profile->secret,
        named ? getenv("AWS_SESSION_TOKEN") : profile->session,
    };

    if (!texts[0] || !texts[1] || !texts[0][0] || !texts[1][0])
        return 0;
    for (size_t i = 0; i < 3; i++) {
        if (!texts[i] || !texts[i][0]) {
            texts[i] = NULL;
            continue;
        }
        if (!is_plain(texts[i]))
            return bal_fail(err, BAL_EINVAL,
                            "the key for '%s' has characters that no header "
                            "can hold",
                            self->text);
        texts[i] = bal_arena_copy(&self->arena, texts[i], strlen(texts[i]));
        if (!texts[i])
            return bal_fail_memory(err, "a backend");
    }
    self->keys = (bal_sigv4_keys){ texts[0], texts[1], texts[2] };
    return 0;
}

/* ---- where it is -------------------------------------------------------- */

/* Regions whose hosts end otherwise than AWS's usually do. */
static const struct {
    const char *region;
    const char *domain;
} domains[] = {
    { "cn-*", "amazonaws.com.cn" },
    { "*", "amazonaws.com" },
};

static const char *domain_of(const char *region)
{
    size_t i = 0;

    while (!bal_glob(domains[i].region, region))
        i++;
    return domains[i].domain;
}

/* A certificate for *.s3.… does not cover a bucket's name that has dots. */
static int use_aws(bal_s3_place *self, const char *bucket, bal_error *err)
{
    BAL_LOCAL(bal_buf) origin = { 0 };
    BAL_LOCAL(bal_buf) path = { 0 };
    bool dots = strchr(bucket, '.') != NULL;
    int rc =
        bal_buf_format(&origin, err, "https://%s%ss3.%s.%s", dots ? "" : bucket,
                       dots ? "" : ".", self->region, domain_of(self->region));
    if (!rc && dots)
        rc = bal_buf_format(&path, err, "/%s", bucket);
    if (rc)
        return rc;
    self->origin = keep(self, &origin);
    self->path = keep(self, &path);
    return 0;
}

/* "https://host:port/path": the path goes before the bucket's name. */
static int use_endpoint(bal_s3_place *self, const char *endpoint,
                        const char *bucket, bal_error *err)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    int rc = bal_http_check(endpoint, err);
    if (rc)
        return bal_within(err, rc, "the endpoint of S3");
    const char *host = strstr(endpoint, "://");
    if (!host || strpbrk(endpoint, "?#"))
        return bal_fail(err, BAL_EINVAL,
                        "the endpoint of S3 is http://host:port or "
                        "https://host:port, not '%s'",
                        endpoint);
    host += 3;
    size_t len = strcspn(host, "/");
    size_t rest = strlen(host + len);
    while (rest && host[len + rest - 1] == '/')
        rest--;
    rc = bal_buf_format(&path, err, "%.*s/%s", (int)rest, host + len, bucket);
    if (rc)
        return rc;
    self->origin =
        bal_arena_copy(&self->arena, endpoint, (size_t)(host - endpoint) + len);
    self->path = keep(self, &path);
    self->endpoint = self->origin;
    return 0;
}

static int locate(bal_s3_place *self, const bal_s3_profile *profile,
                  const char *bucket, bal_error *err)
{
    const char *endpoint = first_of(endpoint_names, 2, profile->endpoint);
    const char *ca = getenv("AWS_CA_BUNDLE");
    int rc = endpoint && endpoint[0] ? use_endpoint(self, endpoint, bucket, err)
                                     : use_aws(self, bucket, err);
    if (rc)
        return rc;
    if (!self->origin || !self->path)
        return bal_fail_memory(err, "a backend");
    self->tls = !strncmp(self->origin, "https:", strlen("https:"));
    self->host = strstr(self->origin, "://") + 3;
    if (!ca || !ca[0])
        return 0;
    self->ca = bal_arena_copy(&self->arena, ca, strlen(ca));
    return self->ca ? 0 : bal_fail_memory(err, "a backend");
}

/* AWS's own programs have the same variable. */
static int take_tries(bal_s3_place *self, bal_error *err)
{
    const char *text = getenv("AWS_MAX_ATTEMPTS");
    uint64_t tries = TRIES;

    if (text && text[0] &&
        (bal_parse_u64(&tries, text, NULL) || !tries || tries > TRIES_MOST))
        return bal_fail(err, BAL_EINVAL,
                        "AWS_MAX_ATTEMPTS is 1 to %d, not '%.40s'", TRIES_MOST,
                        text);
    self->tries = (unsigned)tries;
    return 0;
}

int bal_s3_place_init(bal_s3_place *self, const char *rest, bal_error *err)
{
    bal_s3_profile profile = { 0 };
    const char *bucket = NULL;
    int rc = take_url(self, &bucket, rest, err);

    if (!rc)
        rc = bal_s3_profile_find(&profile, &self->arena, err);
    if (!rc)
        rc = take_region(self, &profile, err);
    if (!rc)
        rc = take_keys(self, &profile, err);
    if (!rc)
        rc = take_tries(self, err);
    if (rc)
        return rc;
    assert(bucket);
    return locate(self, &profile, bucket, err);
}

void bal_s3_place_done(bal_s3_place *self)
{
    bal_arena_done(&self->arena);
    *self = (bal_s3_place){ 0 };
}
