/* Numbers as text, the same in every locale. */
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/arith.h"
#include "core/error.h"
#include "core/str.h"

static size_t count_digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* All of text but its first `skip` bytes as decimal digits. */
static bool read_digits(uint64_t *out, const char *text, size_t len)
{
    uint64_t value = 0;

    for (size_t i = 0; i < len; i++) {
        if (!bal_mul(&value, value, 10) ||
            !bal_add(&value, value, (uint64_t)(text[i] - '0')))
            return false;
    }
    *out = value;
    return len > 0;
}

int bal_parse_u64(uint64_t *out, const char *text, bal_error *err)
{
    size_t len = count_digits(text);

    if (!len || text[len])
        return bal_fail(err, BAL_EINVAL, "'%s' is not a whole number", text);
    if (!read_digits(out, text, len))
        return bal_fail(err, BAL_EINVAL, "'%s' is too large", text);
    return 0;
}

int bal_parse_i64(int64_t *out, const char *text, bal_error *err)
{
    size_t sign = text[0] == '-' || text[0] == '+';
    bool negative = text[0] == '-';
    size_t len = count_digits(text + sign);
    uint64_t size;

    if (!len || text[sign + len])
        return bal_fail(err, BAL_EINVAL, "'%s' is not a whole number", text);
    if (!read_digits(&size, text + sign, len) ||
        size > (uint64_t)INT64_MAX + negative)
        return bal_fail(err, BAL_EINVAL, "'%s' is too large", text);
    *out = negative ? (int64_t)(0 - size) : (int64_t)size;
    return 0;
}

/* The length of a decimal number at the front of text, 0 if there is none:
 * strtod alone would take hex, "inf", "nan" and leading space. */
static size_t float_length(const char *text)
{
    size_t at = text[0] == '-' || text[0] == '+';
    size_t whole = count_digits(text + at);
    size_t parts = 0;

    at += whole;
    if (text[at] == '.') {
        parts = count_digits(text + at + 1);
        at += 1 + parts;
    }
    if (!whole && !parts)
        return 0;
    if (text[at] != 'e' && text[at] != 'E')
        return at;
    at++;
    at += text[at] == '-' || text[at] == '+';
    size_t exponent = count_digits(text + at);
    return exponent ? at + exponent : 0;
}

/* In glibc the "C" locale is a constant: nothing is allocated. */
static locale_t plain_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

int bal_parse_f64(double *out, const char *text, bal_error *err)
{
    size_t len = float_length(text);

    if (!len || text[len])
        return bal_fail(err, BAL_EINVAL, "'%s' is not a number", text);
    locale_t locale = plain_locale();
    if (!locale)
        return bal_fail_memory(err, "reading a number");
    double value = strtod_l(text, NULL, locale);
    freelocale(locale);
    if (!isfinite(value))
        return bal_fail(err, BAL_EINVAL, "'%s' is too large", text);
    *out = value;
    return 0;
}

static const struct {
    const char *name;
    uint64_t size;
} units[] = {
    { "", 1 },
    { "B", 1 },
    { "K", UINT64_C(1) << 10 },
    { "M", UINT64_C(1) << 20 },
    { "G", UINT64_C(1) << 30 },
    { "T", UINT64_C(1) << 40 },
    { "KiB", UINT64_C(1) << 10 },
    { "MiB", UINT64_C(1) << 20 },
    { "GiB", UINT64_C(1) << 30 },
    { "TiB", UINT64_C(1) << 40 },
    { "KB", UINT64_C(1000) },
    { "MB", UINT64_C(1000000) },
    { "GB", UINT64_C(1000000000) },
    { "TB", UINT64_C(1000000000000) },
};

/* 0: no such unit. */
static uint64_t unit_size(const char *name)
{
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (!strcasecmp(units[i].name, name))
            return units[i].size;
    }
    return 0;
}

int bal_parse_size(uint64_t *out, const char *text, bal_error *err)
{
    size_t len = count_digits(text);
    size_t space = strspn(text + len, " ");
    const char *name = text + len + space;
    uint64_t unit = unit_size(name);
    uint64_t count;

    if (!len || !unit || (space && !*name)) {
        int rc = bal_fail(err, BAL_EINVAL, "'%s' is not a size", text);
        return bal_hint(err, rc, "write it like 4M, 512 KiB or 5GB");
    }
    if (!read_digits(&count, text, len) || !bal_mul(out, count, unit))
        return bal_fail(err, BAL_EINVAL, "'%s' is too large", text);
    return 0;
}

/* A number as d.ddd × 10^exponent, count digits without trailing zeros. */
typedef struct decimal {
    char digits[18];
    int count;
    int exponent;
} decimal;

static void decimal_read(decimal *self, const char *text)
{
    size_t at = 0;

    self->count = 0;
    for (; text[at] != 'e'; at++) {
        if (text[at] != '.')
            self->digits[self->count++] = text[at];
    }
    bool negative = text[at + 1] == '-';
    uint64_t size = 0;
    read_digits(&size, text + at + 2, count_digits(text + at + 2));
    self->exponent = negative ? -(int)size : (int)size;
    while (self->count > 1 && self->digits[self->count - 1] == '0')
        self->count--;
}

static double decimal_value(const decimal *self, locale_t locale)
{
    char text[40];

    snprintf(text, sizeof(text), "%c.%.*se%d", self->digits[0], self->count - 1,
             self->digits + 1, self->exponent);
    return strtod_l(text, NULL, locale);
}

/* The next number of as many digits, away from zero. */
static void decimal_step(decimal *self)
{
    int at = self->count - 1;

    while (at >= 0 && self->digits[at] == '9')
        self->digits[at--] = '0';
    if (at >= 0) {
        self->digits[at]++;
        return;
    }
    self->digits[0] = '1';
    self->exponent++;
}

/* The fewest digits that read back. Below a power of two doubles lie denser
 * than above it, so the nearest number of few digits may be a miss on that side
 * where the next one up is a hit. */
static void shortest(decimal *self, double size, locale_t locale)
{
    for (int precision = 0; precision < 17; precision++) {
        char text[40];

        snprintf(text, sizeof(text), "%.*e", precision, size);
        decimal_read(self, text);
        if (decimal_value(self, locale) == size) /* NOLINT: exactly */
            return;
        decimal up = *self;
        while (up.count <= precision)
            up.digits[up.count++] = '0';
        decimal_step(&up);
        if (decimal_value(&up, locale) == size) { /* NOLINT: exactly */
            *self = up;
            return;
        }
    }
}

/* As Python's repr lays it out: plain from 1e-4 to 1e16. */
static void lay_out(char *to, size_t room, const decimal *number)
{
    const char *digits = number->digits;
    int count = number->count;
    int point = number->exponent + 1; /* digits before the point */

    if (point < -3 || point > 16) {
        snprintf(to, room, "%c%s%.*se%c%02d", digits[0], count > 1 ? "." : "",
                 count - 1, digits + 1, point > 0 ? '+' : '-',
                 point > 0 ? point - 1 : 1 - point);
        return;
    }
    if (point <= 0) {
        snprintf(to, room, "0.%.*s%.*s", -point, "0000", count, digits);
        return;
    }
    if (count > point) {
        snprintf(to, room, "%.*s.%.*s", point, digits, count - point,
                 digits + point);
        return;
    }
    snprintf(to, room, "%.*s%.*s", count, digits, point - count,
             "0000000000000000");
}

static const char *special(double value)
{
    if (isnan(value))
        return "nan";
    if (isinf(value))
        return value < 0 ? "-inf" : "inf";
    if (value == 0)
        return signbit(value) ? "-0" : "0";
    return NULL;
}

void bal_f64_text(char out[32], double value)
{
    const char *word = special(value);
    decimal number = { 0 };

    if (word) {
        snprintf(out, 32, "%s", word);
        return;
    }
    locale_t plain = plain_locale();
    locale_t before = uselocale(plain);
    shortest(&number, fabs(value), plain);
    lay_out(out + (value < 0), 31, &number);
    uselocale(before);
    freelocale(plain);
    if (value < 0)
        out[0] = '-';
}

void bal_thousands(char out[32], uint64_t value)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%" PRIu64, value);
    size_t at = 0;

    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
}
