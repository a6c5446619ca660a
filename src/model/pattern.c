/* The limits: what a pattern of a real adapter needs is some hundred steps on a
 * module's name; a nested quantifier needs 2^40. */
#include "model/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/str.h"

enum {
    LONGEST = 4096,      /* bytes of a pattern */
    STEPS = 100000,      /* of one match */
    DEPTH = 10000,       /* of backtracking */
    HEAP_KIB = 8 * 1024, /* of one match */
};

struct bal_pattern {
    pcre2_code *code;
    pcre2_match_context *limits;
    pcre2_match_data *data;
    char *text;
};

void bal_pattern_free(bal_pattern *self)
{
    if (!self)
        return;
    pcre2_match_data_free(self->data);
    pcre2_match_context_free(self->limits);
    pcre2_code_free(self->code);
    bal_str_free(self->text);
    free(self);
}

static int compile(bal_pattern *self, bal_error *err)
{
    uint32_t flags = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
    int code;
    PCRE2_SIZE at;

    self->code = pcre2_compile((PCRE2_SPTR)self->text, PCRE2_ZERO_TERMINATED,
                               flags, &code, &at, NULL);
    if (self->code)
        return 0;
    if (code == PCRE2_ERROR_NOMEMORY)
        return bal_fail_memory(err, "compiling a pattern");
    PCRE2_UCHAR why[128] = { 0 };
    pcre2_get_error_message(code, why, sizeof(why));
    return bal_fail(err, BAL_EINVAL, "pattern '%s': %s at character %zu",
                    self->text, (const char *)why, (size_t)at);
}

int bal_pattern_new(bal_pattern **out, const char *regex, bal_error *err)
{
    if (strlen(regex) > LONGEST)
        return bal_fail(err, BAL_EINVAL, "a pattern of more than %d bytes",
                        LONGEST);
    BAL_OWN(bal_pattern) self = calloc(1, sizeof(*self));
    if (!self)
        return bal_fail_memory(err, "compiling a pattern");
    self->text = bal_str_copy(regex);
    if (!self->text)
        return bal_fail_memory(err, "compiling a pattern");
    int rc = compile(self, err);
    if (rc)
        return rc;
    self->limits = pcre2_match_context_create(NULL);
    self->data = pcre2_match_data_create(1, NULL);
    if (!self->limits || !self->data)
        return bal_fail_memory(err, "compiling a pattern");
    pcre2_set_match_limit(self->limits, STEPS);
    pcre2_set_depth_limit(self->limits, DEPTH);
    pcre2_set_heap_limit(self->limits, HEAP_KIB);
    *out = BAL_TAKE(self);
    return 0;
}

static int match(const bal_pattern *self, const char *text, uint32_t flags,
                 bool *yes, bal_error *err)
{
    int rc = pcre2_match(self->code, (PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, 0,
                         flags, self->data, self->limits);

    /* 0: matched, with more groups than data has room for. */
    *yes = rc >= 0;
    if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH)
        return 0;
    if (rc == PCRE2_ERROR_NOMEMORY)
        return bal_fail_memory(err, "matching a pattern");
    PCRE2_UCHAR why[128] = { 0 };
    pcre2_get_error_message(rc, why, sizeof(why));
    return bal_fail(err, BAL_EINVAL, "pattern '%s' on '%s': %s", self->text,
                    text, (const char *)why);
}

int bal_pattern_match(const bal_pattern *self, const char *text, bool *yes,
                      bal_error *err)
{
    return match(self, text, PCRE2_ANCHORED, yes, err);
}

int bal_pattern_find(const bal_pattern *self, const char *text, bool *yes,
                     bal_error *err)
{
    return match(self, text, 0, yes, err);
}
