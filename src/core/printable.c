/* Text fit for a terminal: whatever could move the cursor, change its state or
 * make text read other than it is, is written out instead of sent. */
#include "core/error.h"
#include "core/str.h"
#include "core/utf8.h"

/* Code points that are not sent, beside C0 and DEL. */
static const struct {
    uint32_t first;
    uint32_t last;
} hidden[] = {
    { 0x80, 0x9f },     /* C1 */
    { 0x61c, 0x61c },   /* arabic letter mark */
    { 0x200e, 0x200f }, /* left-to-right, right-to-left mark */
    { 0x2028, 0x2029 }, /* line, paragraph separator */
    { 0x202a, 0x202e }, /* bidi embeddings and overrides */
    { 0x2066, 0x2069 }, /* bidi isolates */
};

static bool is_hidden(uint32_t point)
{
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
        if (point >= hidden[i].first && point <= hidden[i].last)
            return true;
    }
    return false;
}

static bool is_control(uint32_t point)
{
    return point < 0x20 || point == 0x7f;
}

int bal_printable(bal_buf *to, const char *text, size_t len, bool lines,
                  bal_error *err)
{
    size_t at = 0;
    int rc = 0;

    while (at < len && !rc) {
        uint32_t point;
        size_t step = bal_utf8_next(&point, text + at, len - at);
        bool stays = step == 1 && point == '\n' && lines;

        if (!step || (is_control(point) && !stays))
            rc = bal_buf_format(to, err, "\\x%02x", (uint8_t)text[at]);
        else if (is_hidden(point))
            rc = bal_buf_format(to, err, "\\u{%x}", (unsigned)point);
        else
            rc = bal_buf_append(to, text + at, step, err);
        at += step ? step : 1;
    }
    return rc;
}
