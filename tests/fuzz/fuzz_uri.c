/* The first line and the fields of a request. The first line of the input is
 * the path and query, the second a range, the third a list of tags, the rest
 * header fields. */
#include <stdlib.h>
#include <string.h>

#include "core/str.h"
#include "serve/heads.h"
#include "serve/range.h"
#include "serve/uri.h"
#include "support/fuzz.h"

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_uri(const char *text, size_t len)
{
    BAL_LOCAL(bal_arena) arena = { .ceiling = 1 << 20 };
    bal_uri uri;

    if (bal_uri_parse(&uri, text, len, &arena, NULL))
        return;
    must(len <= BAL_URI_LONGEST && uri.segment_count <= BAL_URI_SEGMENTS &&
         uri.query_count <= BAL_URI_FIELDS);
    for (size_t i = 0; i < uri.segment_count; i++) {
        const char *segment = uri.segments[i];
        must(!strchr(segment, '/') && strcmp(segment, "..") != 0);
        must(bal_utf8_valid(segment, strlen(segment)));
    }
    for (size_t i = 0; i < uri.query_count; i++) {
        for (size_t j = 0; j < i; j++)
            must(strcmp(uri.query[i].name, uri.query[j].name) != 0);
    }
}

static void check_range(const char *text, uint64_t size)
{
    uint64_t offset;
    uint64_t length;

    bal_range_kind kind = bal_range_of(text, size, &offset, &length);
    if (kind == BAL_RANGE_WHOLE)
        must(offset == 0 && length == size);
    if (kind == BAL_RANGE_PART)
        must(length > 0 && offset < size && length <= size - offset);
}

static void check_heads(char *text)
{
    bal_heads heads = { .unsound = NULL };

    while (*text) {
        size_t len = strcspn(text, "\n");
        size_t name = strcspn(text, ":\n");
        size_t skip = name + (name < len);
        char end = text[len];
        text[len] = '\0';
        bal_heads_add(&heads, text, name, text + skip, len - skip);
        text += len + (end != '\0');
    }
    must(!bal_heads_end(&heads) == !heads.unsound);
    must(heads.unsound || !heads.chunked || !heads.length);
}

/* The next line, its end made a NUL. */
static char *line(char **text)
{
    char *from = *text;
    size_t len = strcspn(from, "\n");

    *text += len + (from[len] == '\n');
    from[len] = '\0';
    return from;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1);
    char *at = copy;

    must(copy != NULL);
    memcpy(copy, data, size);
    copy[size] = '\0';
    check_uri(copy, size);
    char *uri = line(&at);
    check_uri(uri, strlen(uri));
    const char *range = line(&at);
    check_range(range, 0);
    check_range(range, 10000);
    check_range(range, UINT64_MAX);
    const char *tags = line(&at);
    bool weak = bal_etag_named(tags, "\"a\"", true);
    must(weak || !bal_etag_named(tags, "\"a\"", false));
    check_heads(at);
    free(copy);
    return 0;
}
