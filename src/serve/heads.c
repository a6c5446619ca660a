/* Whatever two servers in a row might read in two ways is refused. */
#include "serve/heads.h"

#include <string.h>
#include <strings.h>

#include "core/str.h"

static const struct {
    const char *name;
    bool once;
} fields[] = {
    [BAL_HEAD_AUTHORIZATION] = { "authorization", true },
    [BAL_HEAD_CONTENT_LENGTH] = { "content-length", true },
    [BAL_HEAD_EXPECT] = { "expect", false },
    [BAL_HEAD_TRANSFER_ENCODING] = { "transfer-encoding", true },
    [BAL_HEAD_HOST] = { "host", true },
    [BAL_HEAD_IF_MATCH] = { "if-match", true },
    [BAL_HEAD_IF_NONE_MATCH] = { "if-none-match", false },
    [BAL_HEAD_IF_RANGE] = { "if-range", true },
    [BAL_HEAD_RANGE] = { "range", true },
};

/* RFC 9110's tchar. */
static bool in_names(char c)
{
    bool alpha = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

    return alpha || (c >= '0' && c <= '9') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_name(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!in_names(name[i]))
            return false;
    }
    return len > 0;
}

static bool is_value(const char *value, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (((uint8_t)value[i] < 0x20 && value[i] != '\t') || value[i] == 0x7f)
            return false;
    }
    return true;
}

void bal_heads_add(bal_heads *self, const char *name, size_t name_len,
                   const char *value, size_t value_len)
{
    size_t i = 0;

    if (!is_name(name, name_len) || !is_value(value, value_len)) {
        self->unsound = "a header field is malformed";
        return;
    }
    while (i < BAL_HEADS && (strlen(fields[i].name) != name_len ||
                             strncasecmp(fields[i].name, name, name_len) != 0))
        i++;
    if (i == BAL_HEADS)
        return;
    if (self->values[i] && fields[i].once)
        self->unsound = "a header field that may come once came twice";
    else if (!self->values[i])
        self->values[i] = value;
}

int bal_heads_end(bal_heads *self)
{
    const char *length = self->values[BAL_HEAD_CONTENT_LENGTH];
    const char *coding = self->values[BAL_HEAD_TRANSFER_ENCODING];

    if (self->unsound)
        return 400;
    if (length && coding) {
        self->unsound = "a body with two lengths";
        return 400;
    }
    self->chunked = coding && !strcasecmp(coding, "chunked");
    if (coding && !self->chunked) {
        self->unsound = "only chunked is known as a transfer encoding";
        return 501;
    }
    if (length && bal_parse_u64(&self->length, length, NULL)) {
        self->unsound = "a body whose length is no number";
        return 400;
    }
    return 0;
}
