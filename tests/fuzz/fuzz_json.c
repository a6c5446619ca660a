/* JSON of any bytes: the scanner and jansson agree on what is JSON, and what
 * has a canonical form survives being written and read unchanged. */
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "support/fuzz.h"

enum { DEPTH = 64 };

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* What jansson refuses although it is JSON: numbers that do not fit, members
 * twice, and U+0000 in a member's name. */
static bool is_limit(const json_error_t *why)
{
    enum json_error_code code = json_error_code(why);

    return code == json_error_numeric_overflow ||
           code == json_error_duplicate_key ||
           code == json_error_null_byte_in_key;
}

static void check_agreement(const char *text, size_t size)
{
    json_error_t why;
    bal_scan scan = { .data = text, .len = size, .what = "input" };
    bool scanned =
        !bal_scan_skip(&scan, DEPTH, NULL) && !bal_scan_end(&scan, NULL);

    if (scanned) {
        BAL_OWN(json_t)
        value = json_loadb(
            text, size,
            JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
        must(value || is_limit(&why));
        return;
    }
    BAL_OWN(json_t) value = NULL;
    must(bal_json_parse(&value, text, size, "input", NULL) != 0);
}

static void check_strings(const char *text, size_t size)
{
    BAL_LOCAL(bal_arena) arena = { .ceiling = 1 << 20 };
    BAL_LOCAL(bal_buf) quoted = { 0 };
    const char *got;
    size_t len;

    must(!bal_json_quote(&quoted, text, size, NULL));
    bal_scan scan = {
        .data = quoted.data,
        .len = quoted.len,
        .arena = &arena,
        .what = "input",
    };
    must(!bal_scan_string(&scan, &got, &len, NULL));
    must(!bal_scan_end(&scan, NULL));
    if (len == size)
        must(!memcmp(got, text, len));
}

/* The canonical text, laid out by the writer, is still the same value. */
static void check_layout(const json_t *value, const char *canonical)
{
    BAL_LOCAL(bal_buf) laid_out = { 0 };
    BAL_OWN(json_t) back = NULL;
    bal_json json;

    bal_json_begin(&json, &laid_out, 2);
    bal_json_raw(&json, canonical);
    must(!bal_json_end(&json, NULL));
    must(!bal_json_parse(&back, laid_out.data, laid_out.len, "layout", NULL));
    must(json_equal(value, back));
}

static void check_canonical(const char *text, size_t size)
{
    BAL_LOCAL(bal_buf) first = { 0 };
    BAL_LOCAL(bal_buf) second = { 0 };
    BAL_OWN(json_t) value = NULL;
    BAL_OWN(json_t) back = NULL;

    if (bal_json_parse(&value, text, size, "input", NULL))
        return;
    int rc = bal_json_canonical(&first, value, NULL);
    must(!rc || rc == BAL_EINVAL);
    if (rc)
        return;
    must(!bal_json_parse(&back, first.data, first.len, "canonical", NULL));
    must(json_equal(value, back));
    must(!bal_json_canonical(&second, back, NULL));
    must(first.len == second.len &&
         !memcmp(first.data, second.data, first.len));
    check_layout(value, first.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;

    check_agreement(text, size);
    check_strings(text, size);
    check_canonical(text, size);
    return 0;
}
