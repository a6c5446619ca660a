/* One pass. The path is the stack: a name is compared with its end when an
 * element closes, and cut off it. */
#include "core/xml.h"

#include <string.h>

#include "core/error.h"
#include "core/utf8.h"

typedef struct walk {
    const char *data;
    size_t len, at;
    const char *what;
    bal_xml_fn *fn;
    void *ctx;
    size_t depth;
    bool rooted; /* the one element was there */
    char path[BAL_XML_PATH];
    size_t path_len;
    bal_buf text; /* of the innermost element */
} walk;

static void walk_done(walk *self)
{
    bal_buf_done(&self->text);
}

static int bad(const walk *self, const char *why, bal_error *err)
{
    return bal_fail(err, BAL_ECORRUPT, "%s: %s at byte %zu", self->what, why,
                    self->at);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_name(char c, bool first)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_')
        return true;
    return !first &&
           ((c >= '0' && c <= '9') || c == '-' || c == '.' || c == ':');
}

static bool starts(const walk *self, const char *text)
{
    size_t len = strlen(text);

    return self->len - self->at >= len &&
           !memcmp(self->data + self->at, text, len);
}

static void pass_space(walk *self)
{
    while (self->at < self->len && is_space(self->data[self->at]))
        self->at++;
}

/* Over a text that ends with `end`. */
static int pass_until(walk *self, const char *end, bal_error *err)
{
    while (self->at < self->len && !starts(self, end))
        self->at++;
    if (self->at == self->len)
        return bad(self, "something has no end", err);
    self->at += strlen(end);
    return 0;
}

/* ---- text --------------------------------------------------------------- */

static const struct {
    const char *text;
    char value;
} entities[] = {
    { "&amp;", '&' },  { "&lt;", '<' },    { "&gt;", '>' },
    { "&quot;", '"' }, { "&apos;", '\'' },
};

/* -1: none of the base. */
static int digit_of(char c, uint32_t base)
{
    static const char digits[] = "0123456789abcdef";
    char lower = (char)(c >= 'A' && c <= 'F' ? c | 0x20 : c);
    const char *at = c ? strchr(digits, lower) : NULL;

    return at && at - digits < (int)base ? (int)(at - digits) : -1;
}

/* As UTF-8; the characters that XML cannot have are refused as well. */
static int add_point(walk *self, uint32_t point, bal_error *err)
{
    char out[4];

    if ((point < 0x20 && point != '\t' && point != '\n' && point != '\r') ||
        (point >= 0xd800 && point < 0xe000) || point > 0x10ffff)
        return bad(self, "a character that there is not", err);
    return bal_buf_append(&self->text, out, bal_utf8_put(out, point), err);
}

/* "&#10;", "&#xA;". */
static int read_number(walk *self, bal_error *err)
{
    uint32_t base =
        self->at + 2 < self->len && self->data[self->at + 2] == 'x' ? 16 : 10;
    size_t at = self->at + (base == 16 ? 3 : 2);
    size_t first = at;
    uint32_t point = 0;

    while (at < self->len && at - first < 8 &&
           digit_of(self->data[at], base) >= 0)
        point = point * base + (uint32_t)digit_of(self->data[at++], base);
    if (at == first || at == self->len || self->data[at] != ';')
        return bad(self, "a number that is none", err);
    int rc = add_point(self, point, err);
    if (!rc)
        self->at = at + 1;
    return rc;
}

static int read_entity(walk *self, bal_error *err)
{
    if (starts(self, "&#"))
        return read_number(self, err);
    for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++) {
        if (!starts(self, entities[i].text))
            continue;
        self->at += strlen(entities[i].text);
        return bal_buf_append(&self->text, &entities[i].value, 1, err);
    }
    return bad(self, "an entity that is not known", err);
}

static int read_char(walk *self, bal_error *err)
{
    uint32_t point;

    if (self->data[self->at] == '&')
        return read_entity(self, err);
    size_t step =
        bal_utf8_next(&point, self->data + self->at, self->len - self->at);
    if (!step)
        return bad(self, "not UTF-8", err);
    int rc = add_point(self, point, err);
    if (!rc)
        self->at += step;
    return rc;
}

static int read_text(walk *self, bal_error *err)
{
    int rc = 0;

    while (self->at < self->len && self->data[self->at] != '<' && !rc) {
        if (self->text.len >= BAL_XML_TEXT)
            return bad(self, "a text that is too long", err);
        rc = read_char(self, err);
    }
    return rc;
}

/* ---- elements ----------------------------------------------------------- */

static size_t name_len(const walk *self)
{
    size_t at = self->at;

    while (at < self->len && is_name(self->data[at], at == self->at))
        at++;
    return at - self->at;
}

/* Where the innermost name begins in the path. */
static size_t last_name(const walk *self)
{
    const char *slash = strrchr(self->path, '/');

    return slash ? (size_t)(slash - self->path) + 1 : 0;
}

static int tell(walk *self, bal_xml_end end, bal_error *err)
{
    int rc =
        self->fn(self->ctx, end, self->path, bal_buf_string(&self->text), err);
    bal_buf_clear(&self->text);
    return rc;
}

static int close_element(walk *self, bal_error *err)
{
    int rc = tell(self, BAL_XML_CLOSES, err);
    size_t at = last_name(self);

    self->path_len = at ? at - 1 : 0;
    self->path[self->path_len] = '\0';
    self->depth--;
    return rc;
}

static int push_name(walk *self, size_t len, bal_error *err)
{
    if (!len)
        return bad(self, "no name", err);
    if (self->depth == BAL_XML_DEPTH ||
        self->path_len + len + 2 > sizeof(self->path))
        return bad(self, "too deep", err);
    if (self->depth++)
        self->path[self->path_len++] = '/';
    memcpy(self->path + self->path_len, self->data + self->at, len);
    self->path_len += len;
    self->path[self->path_len] = '\0';
    self->at += len;
    return 0;
}

/* name="value", of which nothing is used. */
static int pass_attribute(walk *self, bal_error *err)
{
    size_t len = name_len(self);

    self->at += len;
    pass_space(self);
    if (!len || !starts(self, "="))
        return bad(self, "not an attribute", err);
    self->at++;
    pass_space(self);
    if (!starts(self, "\"") && !starts(self, "'"))
        return bad(self, "an attribute without a value", err);
    const char end[] = { self->data[self->at++], '\0' };
    while (self->at < self->len && self->data[self->at] != end[0] &&
           self->data[self->at] != '<')
        self->at++;
    if (!starts(self, end))
        return bad(self, "an attribute without an end", err);
    self->at++;
    return 0;
}

/* Behind the name of one that opens: up to and with '>'. */
static int pass_attributes(walk *self, bool *empty, bal_error *err)
{
    for (;;) {
        size_t before = self->at;
        pass_space(self);
        *empty = starts(self, "/>");
        if (*empty || starts(self, ">")) {
            self->at += *empty ? 2 : 1;
            return 0;
        }
        if (self->at == before)
            return bad(self, "an element without an end", err);
        int rc = pass_attribute(self, err);
        if (rc)
            return rc;
    }
}

static int read_open(walk *self, bal_error *err)
{
    bool empty = false;

    if (self->rooted && !self->depth)
        return bad(self, "something behind the end", err);
    self->rooted = true;
    self->at++;
    int rc = push_name(self, name_len(self), err);
    if (!rc)
        rc = pass_attributes(self, &empty, err);
    /* What was before a child is no text of a leaf. */
    bal_buf_clear(&self->text);
    if (!rc)
        rc = tell(self, BAL_XML_OPENS, err);
    return rc || !empty ? rc : close_element(self, err);
}

static int read_close(walk *self, bal_error *err)
{
    self->at += 2;
    size_t len = name_len(self);
    const char *name = self->path + last_name(self);
    if (!self->depth || strlen(name) != len ||
        memcmp(name, self->data + self->at, len) != 0)
        return bad(self, "the end of another element", err);
    self->at += len;
    pass_space(self);
    if (!starts(self, ">"))
        return bad(self, "an end without an end", err);
    self->at++;
    return close_element(self, err);
}

static int read_step(walk *self, bal_error *err)
{
    if (self->depth && self->data[self->at] != '<')
        return read_text(self, err);
    if (starts(self, "<?"))
        return pass_until(self, "?>", err);
    if (starts(self, "<!--"))
        return pass_until(self, "-->", err);
    if (starts(self, "</"))
        return read_close(self, err);
    if (starts(self, "<") && !starts(self, "<!"))
        return read_open(self, err);
    return bad(self, "not an element", err);
}

int bal_xml_walk(const char *data, size_t len, const char *what, bal_xml_fn *fn,
                 void *ctx, bal_error *err)
{
    BAL_LOCAL(walk)
    self = { .data = data, .len = len, .what = what, .fn = fn, .ctx = ctx };
    int rc = 0;

    if (starts(&self, "\xef\xbb\xbf"))
        self.at += 3;
    while (!rc) {
        if (!self.depth)
            pass_space(&self);
        if (self.at == self.len)
            break;
        rc = read_step(&self, err);
    }
    if (!rc && (self.depth || !self.rooted))
        rc = bad(&self, "it is cut off", err);
    return rc;
}
