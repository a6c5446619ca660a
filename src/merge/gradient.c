/* Values for each tensor: read, told, evaluated. */
#include "merge/gradient.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/room.h"
#include "core/str.h"
#include "merge/values.h"

/* ---- reading ------------------------------------------------------------ */

/* The end of text's first piece, that c or the text ends. */
static size_t piece_len(const char *text, size_t len, char c)
{
    const char *end = memchr(text, c, len);

    return end ? (size_t)(end - text) : len;
}

static int add_value(bal_gradient_part *part, size_t *room,
                     const bal_param *param, const char *text, size_t len,
                     bal_error *err)
{
    char copy[64];
    bal_param_value value;

    if (part->count >= BAL_GRADIENT_MOST)
        return bal_fail(err, BAL_EINVAL, "%s: more than %d values", param->name,
                        BAL_GRADIENT_MOST);
    if (len >= sizeof(copy))
        return bal_fail(err, BAL_EINVAL, "%s: a value of %zu bytes is too long",
                        param->name, len);
    memcpy(copy, text, len);
    copy[len] = '\0';
    int rc = bal_value_parse(&value, param, copy, err);
    if (rc)
        return rc;
    double *values =
        bal_room_for_one(part->values, part->count, room, sizeof(*values));
    if (!values)
        return bal_fail_memory(err, "a parameter");
    part->values = values;
    values[part->count++] = value.number;
    return 0;
}

/* "FILTER:" of a part, NULL where it has none or one for any name. What is
 * behind it has no ':'. */
static int read_filter(char **out, size_t *head, const char *text, size_t len,
                       bal_error *err)
{
    const char *colon = memrchr(text, ':', len);
    size_t size = colon ? (size_t)(colon - text) : 0;

    *out = NULL;
    *head = colon ? size + 1 : 0;
    if (!colon || (size == 1 && text[0] == '*'))
        return 0;
    if (!size)
        return bal_fail(err, BAL_EINVAL, "an empty filter");
    if (!bal_utf8_valid(text, size))
        return bal_fail(err, BAL_EINVAL, "a filter that is not UTF-8");
    *out = strndup(text, size);
    return *out ? 0 : bal_fail_memory(err, "a parameter");
}

static int read_part(bal_gradient_part *part, const bal_param *param,
                     const char *text, size_t len, bal_error *err)
{
    size_t head;
    size_t room = 0;
    int rc = read_filter(&part->filter, &head, text, len, err);
    if (rc)
        return bal_within(err, rc, "%s", param->name);

    for (size_t at = head; !rc && at <= len;) {
        size_t size = piece_len(text + at, len - at, ',');
        rc = add_value(part, &room, param, text + at, size, err);
        at += size + 1;
    }
    return rc;
}

static void part_done(bal_gradient_part *part)
{
    free(part->filter);
    free(part->values);
}

static int add_part(bal_gradient *self, const bal_param *param,
                    const char *text, size_t len, bal_error *err)
{
    bal_gradient_part part = { 0 };
    bal_gradient_part *parts = NULL;
    int rc = read_part(&part, param, text, len, err);

    if (!rc && self->count >= BAL_GRADIENT_MOST)
        rc = bal_fail(err, BAL_EINVAL, "%s: more than %d filters", param->name,
                      BAL_GRADIENT_MOST);
    if (!rc && !self->whole) {
        parts = bal_room_for_one(self->parts, self->count, &self->room,
                                 sizeof(*parts));
        if (!parts)
            rc = bal_fail_memory(err, "a parameter");
    }
    if (rc || self->whole) {
        part_done(&part);
        return rc;
    }
    self->parts = parts;
    parts[self->count++] = part;
    self->whole = !part.filter;
    return 0;
}

int bal_gradient_append(bal_gradient *self, const bal_param *param,
                        const char *text, bal_error *err)
{
    size_t len = strlen(text);

    for (size_t at = 0; at <= len;) {
        size_t size = piece_len(text + at, len - at, ';');
        int rc = add_part(self, param, text + at, size, err);
        if (rc)
            return rc;
        at += size + 1;
    }
    return 0;
}

void bal_gradient_done(bal_gradient *self)
{
    for (size_t i = 0; i < self->count; i++)
        part_done(&self->parts[i]);
    free(self->parts);
    *self = (bal_gradient){ 0 };
}

/* ---- evaluating --------------------------------------------------------- */

bool bal_gradient_scalar(double *out, const bal_gradient *self)
{
    if (self->count != 1 || !self->whole || self->parts[0].count != 1)
        return false;
    *out = self->parts[0].values[0];
    return true;
}

static const bal_gradient_part *part_for(const bal_gradient *self,
                                         const char *tensor)
{
    for (size_t i = 0; i < self->count; i++) {
        const bal_gradient_part *part = &self->parts[i];
        if (!part->filter || strstr(tensor, part->filter))
            return part;
    }
    return NULL;
}

/* Is what is between two values one, too? */
static bool is_number(const bal_param *param)
{
    return param->type == BAL_PARAM_FLOAT || param->type == BAL_PARAM_INT;
}

int bal_gradient_at(double *out, bool *found, const bal_gradient *self,
                    const bal_param *param, const bal_place *place,
                    bal_error *err)
{
    const bal_gradient_part *part = part_for(self, place->tensor);

    *found = part != NULL;
    if (!part)
        return 0;
    double at = place->depth * (double)(part->count - 1);
    size_t low = (size_t)at;
    size_t high = low + 1 < part->count ? low + 1 : part->count - 1;
    double more = at - (double)low;
    double value = part->values[low];
    if (is_number(param) && part->count > 1)
        value = (1 - more) * value + more * part->values[high];
    if (param->type == BAL_PARAM_INT && value != trunc(value))
        return bal_fail(err, BAL_EINVAL,
                        "%s: %g is not a whole number (tensor '%s')",
                        param->name, value, place->tensor);
    *out = value;
    return 0;
}

/* ---- telling ------------------------------------------------------------ */

int bal_gradient_text(bal_buf *to, const bal_gradient *self,
                      const bal_param *param, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < self->count; i++) {
        const bal_gradient_part *part = &self->parts[i];
        rc = i ? bal_buf_text(to, ";", err) : 0;
        if (!rc && part->filter)
            rc = bal_buf_format(to, err, "%s:", part->filter);
        for (size_t k = 0; !rc && k < part->count; k++) {
            bal_param_value value;
            bal_value_text(&value, param, part->values[k]);
            rc = bal_buf_format(to, err, "%s%s", k ? "," : "", value.text);
        }
    }
    return rc;
}
