#include "serve/access_log.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/json.h"
#include "core/str.h"

static const char *const kinds[] = {
    [BAL_LOG_TEXT] = "text",
    [BAL_LOG_JSON] = "json",
    [BAL_LOG_OFF] = "off",
};

int bal_log_kind_of(bal_log_kind *out, const char *text, bal_error *err)
{
    *out = BAL_LOG_TEXT;
    for (size_t i = 0; text && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i], text) != 0)
            continue;
        *out = (bal_log_kind)i;
        return 0;
    }
    if (!text)
        return 0;
    return bal_fail(err, BAL_EINVAL, "'%s' is not one of json, text, off",
                    text);
}

static int as_json(bal_buf *to, const bal_log_line *line, const char *time)
{
    bal_json json;

    bal_json_begin(&json, to, 0);
    bal_json_object(&json);
    bal_json_key(&json, "time");
    bal_json_string(&json, time);
    bal_json_key(&json, "method");
    bal_json_string(&json, line->method);
    bal_json_key(&json, "path");
    bal_json_string(&json, line->path);
    bal_json_key(&json, "status");
    bal_json_i64(&json, line->status);
    bal_json_key(&json, "bytes");
    bal_json_u64(&json, line->bytes);
    bal_json_key(&json, "ms");
    bal_json_u64(&json, (uint64_t)(line->seconds * 1000));
    bal_json_key(&json, "token");
    bal_json_u64(&json, line->token);
    bal_json_key(&json, "peer");
    bal_json_string(&json, line->peer);
    bal_json_close(&json);
    return bal_json_end(&json, NULL);
}

static int as_text(bal_buf *to, const bal_log_line *line, const char *time)
{
    int rc = bal_buf_format(to, NULL, "%s %s ", time, line->peer);

    if (!rc)
        rc = bal_printable(to, line->method, strlen(line->method), false, NULL);
    if (!rc)
        rc = bal_buf_text(to, " ", NULL);
    if (!rc)
        rc = bal_printable(to, line->path, strlen(line->path), false, NULL);
    if (!rc)
        rc = bal_buf_format(to, NULL, " %d %" PRIu64 " %.1fms token=%zu",
                            line->status, line->bytes, line->seconds * 1000,
                            line->token);
    return rc;
}

void bal_log_write(bal_log_kind kind, const bal_log_line *line)
{
    BAL_LOCAL(bal_buf) text = { .ceiling = 1 << 20 };
    char time[40];

    if (kind == BAL_LOG_OFF)
        return;
    bal_clock_rfc3339(time, line->at);
    int rc = kind == BAL_LOG_JSON ? as_json(&text, line, time)
                                  : as_text(&text, line, time);
    if (!rc)
        rc = bal_buf_text(&text, "\n", NULL);
    if (!rc)
        (void)!write(STDERR_FILENO, text.data, text.len);
}
