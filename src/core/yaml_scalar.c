/* What a scalar is, by the expressions of PyYAML's resolver. They differ from
 * YAML 1.1's own in what they leave to text: a float has a point, and its
 * exponent a sign. */
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "core/yaml.h"

#define DECIMAL "0123456789"

/* Does the whole text have this type? 0: no; 1: yes; -1: it looks like it, and
 * has no value ("0x_"). */
typedef int is_fn(bal_yaml_node *node, const char *text);

static const struct {
    const char *text;
    bal_yaml_type type;
    bool value;
} words[] = {
    { "", BAL_YAML_NULL, false },      { "~", BAL_YAML_NULL, false },
    { "null", BAL_YAML_NULL, false },  { "Null", BAL_YAML_NULL, false },
    { "NULL", BAL_YAML_NULL, false },  { "yes", BAL_YAML_BOOL, true },
    { "Yes", BAL_YAML_BOOL, true },    { "YES", BAL_YAML_BOOL, true },
    { "true", BAL_YAML_BOOL, true },   { "True", BAL_YAML_BOOL, true },
    { "TRUE", BAL_YAML_BOOL, true },   { "on", BAL_YAML_BOOL, true },
    { "On", BAL_YAML_BOOL, true },     { "ON", BAL_YAML_BOOL, true },
    { "no", BAL_YAML_BOOL, false },    { "No", BAL_YAML_BOOL, false },
    { "NO", BAL_YAML_BOOL, false },    { "false", BAL_YAML_BOOL, false },
    { "False", BAL_YAML_BOOL, false }, { "FALSE", BAL_YAML_BOOL, false },
    { "off", BAL_YAML_BOOL, false },   { "Off", BAL_YAML_BOOL, false },
    { "OFF", BAL_YAML_BOOL, false },
};

static int is_word(bal_yaml_node *node, const char *text, bal_yaml_type type)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (words[i].type != type || strcmp(words[i].text, text) != 0)
            continue;
        node->integer = words[i].value;
        node->number = words[i].value;
        return 1;
    }
    return 0;
}

static int is_null(bal_yaml_node *node, const char *text)
{
    return is_word(node, text, BAL_YAML_NULL);
}

static int is_bool(bal_yaml_node *node, const char *text)
{
    return is_word(node, text, BAL_YAML_BOOL);
}

/* Behind a sign. */
static const char *unsigned_of(const char *text, bool *minus)
{
    *minus = *text == '-';
    return text + (*text == '-' || *text == '+');
}

/* The digits, '_' left out, as a number; what is too large stays text. */
static int put_float(bal_yaml_node *node, const char *text, size_t len)
{
    BAL_LOCAL(bal_buf) digits = { 0 };

    for (size_t i = 0; i < len; i++) {
        if (text[i] != '_' && bal_buf_append(&digits, text + i, 1, NULL))
            return -1;
    }
    if (bal_parse_f64(&node->number, bal_buf_string(&digits), NULL))
        node->type = BAL_YAML_TEXT;
    return 1;
}

/* ---- integers ----------------------------------------------------------- */

static unsigned digit_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = strchr(digits, c | 0x20);

    return c && at ? (unsigned)(at - digits) : 0;
}

/* Adds what is written in len digits and '_'; false: there is no digit. */
static bool add_digits(double *number, uint64_t *exact, bool *large,
                       const char *digits, size_t len, unsigned radix)
{
    bool any = false;

    for (size_t i = 0; i < len; i++) {
        if (digits[i] == '_')
            continue;
        unsigned digit = digit_of(digits[i]);
        any = true;
        *number = *number * radix + digit;
        *large = *large || *exact > ((uint64_t)INT64_MAX - digit) / radix;
        *exact = *exact * radix + digit;
    }
    return any;
}

static int put_integer(bal_yaml_node *node, double number, uint64_t exact,
                       bool large, bool minus)
{
    if (!large) {
        node->integer = minus ? -(int64_t)exact : (int64_t)exact;
        node->number = (double)node->integer;
        return 1;
    }
    node->number = minus ? -number : number;
    node->type = isfinite(node->number) ? BAL_YAML_FLOAT : BAL_YAML_TEXT;
    return 1;
}

static const struct {
    const char *prefix;
    const char *digits;
    unsigned radix;
} radixes[] = {
    { "0b", "01_", 2 },
    { "0x", DECIMAL "abcdefABCDEF_", 16 },
    { "0", "01234567_", 8 },
};

/* "0b11", "0x1F", "017": 0 if it is none. */
static int is_radix(bal_yaml_node *node, const char *text, bool minus)
{
    for (size_t i = 0; i < sizeof(radixes) / sizeof(radixes[0]); i++) {
        size_t prefix = strlen(radixes[i].prefix);
        const char *digits = text + prefix;
        size_t len = strlen(text) - prefix;
        uint64_t exact = 0;
        double number = 0;
        bool large = false;

        if (strncmp(text, radixes[i].prefix, prefix) != 0 || !*digits ||
            strspn(digits, radixes[i].digits) != len)
            continue;
        if (!add_digits(&number, &exact, &large, digits, len,
                        radixes[i].radix) &&
            radixes[i].radix != 8)
            return -1;
        return put_integer(node, number, exact, large, minus);
    }
    return 0;
}

/* Length of ":[0-5]?[0-9]" at the front, 0: it is not there. */
static size_t sixtieth(const char *text)
{
    size_t len = text[0] == ':' ? strspn(text + 1, DECIMAL) : 0;

    if (len == 1 || (len == 2 && text[1] <= '5'))
        return len + 1;
    return 0;
}

static int is_int(bal_yaml_node *node, const char *text)
{
    uint64_t exact = 0;
    double number = 0;
    bool large = false;
    bool minus;

    text = unsigned_of(text, &minus);
    if (!strcmp(text, "0"))
        return put_integer(node, 0, 0, false, minus);
    if (*text == '0')
        return is_radix(node, text, minus);
    size_t len = strspn(text, DECIMAL "_");
    if (!len || *text == '_')
        return 0;
    add_digits(&number, &exact, &large, text, len, 10);
    if (large && !text[len]) {
        node->type = BAL_YAML_FLOAT;
        return put_float(node, node->text, strlen(node->text));
    }
    for (text += len; *text; text += len) {
        uint64_t part = 0;
        double ignored = 0;
        bool never = false;
        len = sixtieth(text);
        if (!len)
            return 0;
        add_digits(&ignored, &part, &never, text + 1, len - 1, 10);
        number = number * 60 + (double)part;
        large = large || exact > ((uint64_t)INT64_MAX - part) / 60;
        exact = exact * 60 + part;
    }
    return put_integer(node, number, exact, large, minus);
}

/* ---- floats ------------------------------------------------------------- */

/* "[eE][-+][0-9]+" or nothing, and then the end? */
static bool ends_float(const char *text)
{
    if (!*text)
        return true;
    if ((*text | 0x20) != 'e' || (text[1] != '-' && text[1] != '+'))
        return false;
    size_t len = strspn(text + 2, DECIMAL);
    return len && !text[2 + len];
}

/* "1:30.5": the parts from the last on, as Python adds them up. */
static int put_sixtieths(bal_yaml_node *node, const char *text, size_t len,
                         bool minus)
{
    bal_yaml_node part = { 0 };
    double sum = 0;
    double base = 1;

    for (size_t end = len; end; base *= 60) {
        size_t start = end;
        while (start && text[start - 1] != ':')
            start--;
        if (put_float(&part, text + start, end - start) < 0)
            return -1;
        if (part.type == BAL_YAML_TEXT)
            sum = HUGE_VAL;
        sum += part.number * base;
        end = start ? start - 1 : 0;
    }
    node->number = minus ? -sum : sum;
    if (!isfinite(sum))
        node->type = BAL_YAML_TEXT;
    return 1;
}

static bool is_special(const char *text)
{
    static const char *const all[] = { ".inf", ".Inf", ".INF",
                                       ".nan", ".NaN", ".NAN" };
    bool sign = *text == '-' || *text == '+';

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (!strcmp(text, all[i]) ||
            (i < 3 && sign && !strcmp(text + 1, all[i])))
            return true;
    }
    return false;
}

static int is_float(bal_yaml_node *node, const char *text)
{
    bool minus;
    const char *first = unsigned_of(text, &minus);
    size_t len = strspn(first, DECIMAL "_");
    const char *at = first + len;

    node->type = BAL_YAML_FLOAT;
    if (is_special(text)) {
        node->type = BAL_YAML_TEXT;
        return 1;
    }
    if (*first == '_')
        return 0;
    if (*at == '.') {
        size_t more = strspn(at + 1, DECIMAL "_");
        if (!len && (first != text || !more || at[1] == '_'))
            return 0;
        return ends_float(at + 1 + more) ? put_float(node, text, strlen(text))
                                         : 0;
    }
    while (len && sixtieth(at))
        at += sixtieth(at);
    if (at == first + len || *at != '.' || at[1 + strspn(at + 1, DECIMAL "_")])
        return 0;
    return put_sixtieths(node, first, strlen(first), minus);
}

/* ------------------------------------------------------------------------- */

static const struct {
    bal_yaml_type type;
    const char *name;
    is_fn *is;
} types[] = {
    { BAL_YAML_NULL, "null", is_null },
    { BAL_YAML_BOOL, "bool", is_bool },
    { BAL_YAML_FLOAT, "float", is_float },
    { BAL_YAML_INT, "int", is_int },
};

/* "!!float 3" is 3.0. */
static bool widen(bal_yaml_node *node, bal_yaml_type as)
{
    if (as != BAL_YAML_FLOAT || is_int(node, node->text) != 1)
        return false;
    node->type = BAL_YAML_FLOAT;
    return true;
}

int bal_yaml_resolve(bal_yaml_node *node, bal_yaml_type as, bal_error *err)
{
    bool free_choice = as == BAL_YAML_MAP;

    if (as == BAL_YAML_TEXT) {
        node->type = as;
        return 0;
    }
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (!free_choice && types[i].type != as)
            continue;
        node->type = types[i].type;
        int is = types[i].is(node, node->text);
        if (is > 0 || (!is && widen(node, as)))
            return 0;
        if (is < 0 || !free_choice)
            return bal_yaml_fail(err, BAL_EINVAL, node, "'%s' is not %s %s",
                                 node->text, i == 3 ? "an" : "a",
                                 types[i].name);
    }
    node->type = BAL_YAML_TEXT;
    return 0;
}
