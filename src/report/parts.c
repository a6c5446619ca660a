/* Where a tensor stands in its model: names of transformers are paths, whose
 * first number is that of a layer. */
#include "report/parts.h"

#include <stdio.h>
#include <string.h>

#include "core/utf8.h"

/* A part of a name, between dots. */
typedef struct part {
    const char *text;
    size_t len;
} part;

/* What is in front of the layer's number in one stack of layers or another. */
static const char *const plain[] = {
    "base_model", "model",  "transformer", "language_model",
    "text_model", "layers", "layer",       "h",
    "block",      "blocks", "gpt_neox",    "backbone",
};

/* What is behind a module's name: from here on it is a tensor of the module. */
static const char *const tails[] = { "weight", "base_layer" };
static const char lora[] = "lora_";

/* Numbers of more digits are no layer's. */
enum { DIGITS = 6 };

/* The part in front of *rest, which is moved behind it; false: none is left. */
static bool next(const char **rest, part *out)
{
    if (!*rest)
        return false;
    const char *dot = strchr(*rest, '.');
    out->text = *rest;
    out->len = dot ? (size_t)(dot - *rest) : strlen(*rest);
    *rest = dot ? dot + 1 : NULL;
    return true;
}

static bool is_one_of(part of, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(words[i]) == of.len && !memcmp(words[i], of.text, of.len))
            return true;
    }
    return false;
}

static bool is_plain(part of)
{
    return is_one_of(of, plain, sizeof(plain) / sizeof(plain[0]));
}

static bool is_tail(part of)
{
    return is_one_of(of, tails, sizeof(tails) / sizeof(tails[0])) ||
           (of.len > sizeof(lora) - 1 &&
            !memcmp(of.text, lora, sizeof(lora) - 1));
}

static bool is_number(part of)
{
    size_t digits = 0;

    while (digits < of.len && of.text[digits] >= '0' && of.text[digits] <= '9')
        digits++;
    return of.len && digits == of.len && digits <= DIGITS;
}

static size_t number(part of)
{
    size_t value = 0;

    for (size_t i = 0; i < of.len; i++)
        value = value * 10 + (size_t)(of.text[i] - '0');
    return value;
}

/* A module's name as it grows. What does not fit pushes the front out, at the
 * start of a character. */
typedef struct label {
    char *text;
    size_t len;
} label;

static void put(label *self, const char *text, size_t len)
{
    size_t room = BAL_MODULE_ROOM - 1;

    if (len > room) {
        text += len - room;
        len = room;
    }
    size_t over = self->len + len > room ? self->len + len - room : 0;
    memmove(self->text, self->text + over, self->len - over);
    self->len -= over;
    memcpy(self->text + self->len, text, len);
    self->len += len;
}

static void put_part(label *self, part of)
{
    if (self->len)
        put(self, ".", 1);
    put(self, of.text, of.len);
}

static void finish(label *self)
{
    size_t at = 0;

    while (at < self->len && ((uint8_t)self->text[at] & 0xc0) == 0x80)
        at++;
    memmove(self->text, self->text + at, self->len - at);
    self->text[self->len - at] = '\0';
}

/* Behind the layer's number, or all of the name. */
static void put_module(label *self, const char *rest, size_t layer)
{
    static const part any = { "*", 1 };
    size_t parts = 0;
    part one;

    while (next(&rest, &one)) {
        /* A tensor that is called only so is a module of that name. */
        if (parts && is_tail(one))
            return;
        put_part(self, layer != BAL_NONE && is_number(one) ? any : one);
        parts++;
    }
}

static const char *skip(const char *name, const char *front)
{
    size_t len = strlen(front);

    return strncmp(name, front, len) != 0 ? name : name + len;
}

/* What tells its stack of layers from others into out; the layer, BAL_NONE:
 * there is none. rest: what is behind it. */
static size_t find_layer(label *out, const char **rest)
{
    part one;

    while (next(rest, &one)) {
        if (is_number(one))
            return number(one);
        if (!is_plain(one))
            put_part(out, one);
    }
    return BAL_NONE;
}

void bal_part_layer(const char *name, size_t *layer, char text[BAL_MODULE_ROOM])
{
    label out = { text, 0 };
    char digits[24];
    const char *rest = name;

    *layer = find_layer(&out, &rest);
    if (*layer == BAL_NONE)
        out.len = 0;
    else if (out.len)
        put(&out, " ", 1);
    if (*layer != BAL_NONE) {
        snprintf(digits, sizeof(digits), "%zu", *layer);
        put(&out, digits, strlen(digits));
    }
    finish(&out);
}

void bal_part_of(const char *name, size_t *layer, char module[BAL_MODULE_ROOM])
{
    label out = { module, 0 };
    const char *rest = name;

    *layer = find_layer(&out, &rest);
    if (*layer == BAL_NONE) {
        out.len = 0;
        rest = skip(name, "base_model.model.");
    }
    put_module(&out, rest, *layer);
    finish(&out);
}
