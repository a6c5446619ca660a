/* An answer of S3 of any bytes: elements close as they open, within bounds; and
 * what is text is UTF-8. The same bytes as a file of profiles. */
#include <stdlib.h>
#include <string.h>

#include "blocks/s3_place.h"
#include "core/str.h"
#include "core/xml.h"
#include "support/fuzz.h"

typedef struct seen {
    size_t depth;
    bool over;
} seen;

static void must(bool holds)
{
    if (!holds)
        abort();
}

static size_t depth_of(const char *path)
{
    size_t depth = 1;

    for (; *path; path++)
        depth += *path == '/';
    return depth;
}

static int note(void *ctx, bal_xml_end end, const char *path, const char *text,
                bal_error *err)
{
    seen *self = ctx;

    (void)err;
    must(!self->over && path[0] && strlen(path) < BAL_XML_PATH);
    must(strlen(text) <= BAL_XML_TEXT + 4);
    must(bal_utf8_valid(text, strlen(text)));
    if (end == BAL_XML_OPENS)
        self->depth++;
    must(self->depth == depth_of(path) && self->depth <= BAL_XML_DEPTH);
    if (end == BAL_XML_CLOSES)
        self->over = !--self->depth;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BAL_LOCAL(bal_arena) arena = { 0 };
    const bal_bytes text = { data, size };
    bal_s3_profile profile = { 0 };
    seen all = { 0 };
    bool found = false;
    bal_error err = { 0 };
    int rc = bal_xml_walk((const char *)data, size, "fuzz", note, &all, &err);

    must(!rc || (rc == BAL_ECORRUPT && err.text[0]));
    must(rc || all.over);
    rc = bal_s3_profile_read(&profile, &found, &arena, text, "a",
                             BAL_S3_CREDENTIALS, &err);
    must(!rc || (rc == BAL_ECORRUPT && err.text[0]));
    must(!profile.access || found);
    return 0;
}
