/* Names, numbers, sizes, patterns and terminal texts of any bytes. */
#include <stdlib.h>
#include <string.h>

#include "core/str.h"
#include "support/fuzz.h"

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_name(const char *text)
{
    static const char allowed[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz._-";
    size_t len = strlen(text);
    bool valid = len >= 1 && len <= 64 && strspn(text, allowed) == len &&
                 !strchr("._-", text[0]);

    must(bal_name_valid(text) == valid);
    must(bal_hex_valid(text, 0) ==
         (len && strspn(text, "0123456789abcdef") == len));
}

static void check_numbers(const char *text)
{
    uint64_t count = 0;
    uint64_t bytes = 0;
    int64_t whole = 0;
    double real = 0;
    bool is_count = !bal_parse_u64(&count, text, NULL);
    bool is_whole = !bal_parse_i64(&whole, text, NULL);

    if (is_count) {
        char digits[32];
        bal_thousands(digits, count);
        must(!bal_parse_size(&bytes, text, NULL) && bytes == count);
        must(digits[0] != ',' && strlen(digits) <= 26);
    }
    if (is_count && is_whole)
        must((uint64_t)whole == count);
    if (is_count || is_whole)
        must(!bal_parse_f64(&real, text, NULL));
}

static void check_float_text(double value)
{
    char text[32];
    double back = 0;

    bal_f64_text(text, value);
    if (value - value != 0) /* not finite */
        return;
    must(!bal_parse_f64(&back, text, NULL));
    must(!memcmp(&back, &value, sizeof(value)));
}

static void check_printable(const char *text, size_t size)
{
    BAL_LOCAL(bal_buf) once = { 0 };
    BAL_LOCAL(bal_buf) twice = { 0 };

    must(!bal_printable(&once, text, size, false, NULL));
    must(bal_utf8_valid(bal_buf_string(&once), once.len));
    for (size_t i = 0; i < once.len; i++)
        must((uint8_t)once.data[i] >= 0x20 && once.data[i] != 0x7f);
    must(!bal_printable(&twice, bal_buf_string(&once), once.len, false, NULL));
    must(!strcmp(bal_buf_string(&once), bal_buf_string(&twice)));
}

/* The first half is the pattern. */
static void check_glob(const char *text, size_t len)
{
    BAL_LOCAL(bal_buf) pattern = { 0 };

    must(!bal_buf_append(&pattern, text, len / 2, NULL));
    bool match = bal_glob(pattern.data, text + len / 2);
    if (!strpbrk(pattern.data, "*?"))
        must(match == !strcmp(pattern.data, text + len / 2));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    double value = 0;

    check_printable((const char *)data, size);
    must(!bal_buf_append(&text, data, size, NULL));
    check_name(text.data);
    check_numbers(text.data);
    check_glob(text.data, strlen(text.data));
    if (size >= sizeof(value)) {
        memcpy(&value, data, sizeof(value));
        check_float_text(value);
    }
    if (!bal_parse_f64(&value, text.data, NULL))
        check_float_text(value);
    return 0;
}
