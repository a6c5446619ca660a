/* Names, hex and patterns. Character classes are spelt out: <ctype.h> depends
 * on the locale. */
#include "core/str.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"

enum { NAME_MAX_BYTES = 64 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The value of a lower-case hex digit, -1 for anything else. */
static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *bal_str_copy(const char *text)
{
    return strdup(text);
}

void bal_str_free(char *text)
{
    free(text);
}

bool bal_name_valid(const char *text)
{
    size_t len = 0;

    if (!is_digit(text[0]) && !is_letter(text[0]))
        return false;
    while (len <= NAME_MAX_BYTES && text[len]) {
        char c = text[len++];
        if (!is_digit(c) && !is_letter(c) && c != '.' && c != '_' && c != '-')
            return false;
    }
    return len <= NAME_MAX_BYTES;
}

int bal_tenant_check(const char *text, bal_error *err)
{
    if (bal_name_valid(text) && !strstr(text, ".."))
        return 0;
    int rc = bal_fail(err, BAL_EINVAL, "'%s' is not a name for a tenant", text);

    return bal_hint(err, rc,
                    "letters, digits, '.', '_' and '-', at most %d, the first "
                    "a letter or digit, no '..'",
                    NAME_MAX_BYTES);
}

bool bal_hex_valid(const char *text, size_t length)
{
    size_t len = 0;

    while (hex_value(text[len]) >= 0)
        len++;
    return !text[len] && len && (!length || len == length);
}

void bal_hex_write(char *out, const uint8_t *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < count; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * count] = '\0';
}

bool bal_hex_read(uint8_t *out, size_t count, const char *text)
{
    if (count ? !bal_hex_valid(text, 2 * count) : text[0] != '\0')
        return false;
    for (size_t i = 0; i < count; i++) {
        int high = hex_value(text[2 * i]);
        int low = hex_value(text[2 * i + 1]);
        out[i] = (uint8_t)((unsigned)high << 4 | (unsigned)low);
    }
    return true;
}

/* The start of the next character: '?' stands for one character, not for one
 * byte of it. */
static const char *next_character(const char *text)
{
    text++;
    while (((uint8_t)*text & 0xc0) == 0x80)
        text++;
    return text;
}

/* On a mismatch only the last '*' has to take one more: what an earlier one
 * took can stay. So there is one place to go back to, and no recursion. */
bool bal_glob(const char *pattern, const char *text)
{
    const char *star = NULL;  /* behind the last '*' */
    const char *taken = NULL; /* what it has taken ends here */

    while (*text) {
        if (*pattern == '*') {
            star = ++pattern;
            taken = text;
        } else if (*pattern == '?') {
            pattern++;
            text = next_character(text);
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star;
            text = ++taken;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}
