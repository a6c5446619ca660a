/* A template is pieces: some text, and a name behind it; the last piece has
 * none. */
#include "probe/template.h"

#include <string.h>

#include "core/error.h"

static const char blanks[] = " \t\r\n";

typedef struct bal_template_piece {
    const char *text;
    size_t len;
    const char *name; /* NULL: the end */
} bal_template_piece;

/* How often "{{" is in text. */
static size_t count_names(const char *text)
{
    size_t count = 0;

    for (const char *at = strstr(text, "{{"); at; at = strstr(at + 2, "{{"))
        count++;
    return count;
}

/* What stands between "{{" and "}}" at `at`, blanks taken away. */
static int read_name(bal_template *self, const char **name, const char *at,
                     size_t len, bal_error *err)
{
    const char *start = at + 2;
    size_t left = len - 2;

    while (left && strchr(blanks, *start)) {
        start++;
        left--;
    }
    while (left && strchr(blanks, start[left - 1]))
        left--;
    int shown = left < 80 ? (int)left : 80;
    if (memchr(start, '|', left))
        return bal_fail(err, BAL_EINVAL,
                        "a filter in '{{%.*s}}': only a name can stand there",
                        shown, start);
    if (!left || memchr(start, '{', left) || memchr(start, '}', left))
        return bal_fail(err, BAL_EINVAL, "'{{%.*s}}' names no variable", shown,
                        start);
    *name = bal_arena_copy(&self->arena, start, left);
    return *name ? 0 : bal_fail_memory(err, "a template");
}

static int read_pieces(bal_template *self, const char *text, bal_error *err)
{
    bal_template_piece *pieces = bal_arena_alloc(
        &self->arena, (count_names(text) + 1) * sizeof(*pieces));
    const char *copy = bal_arena_copy(&self->arena, text, strlen(text));

    if (!pieces || !copy)
        return bal_fail_memory(err, "a template");
    if (strstr(copy, "{%"))
        return bal_fail(err, BAL_EINVAL,
                        "'{%%' in a template: only names in '{{' and '}}' are "
                        "understood");
    self->pieces = pieces;
    while (true) {
        bal_template_piece *piece = &pieces[self->count++];
        const char *open = strstr(copy, "{{");
        piece->text = copy;
        piece->len = open ? (size_t)(open - copy) : strlen(copy);
        if (!open)
            return 0;
        const char *close = strstr(open + 2, "}}");
        if (!close)
            return bal_fail(err, BAL_EINVAL, "no '}}' behind '%.40s'", open);
        int rc =
            read_name(self, &piece->name, open, (size_t)(close - open), err);
        if (rc)
            return rc;
        copy = close + 2;
    }
}

int bal_template_read(bal_template *out, const char *text, bal_error *err)
{
    bal_template self = { 0 };
    int rc = read_pieces(&self, text, err);

    if (rc) {
        bal_template_done(&self);
        return rc;
    }
    *out = self;
    return 0;
}

void bal_template_done(bal_template *self)
{
    bal_arena_done(&self->arena);
    *self = (bal_template){ 0 };
}

int bal_vars_init(bal_vars *self, bal_arena *arena, size_t count,
                  bal_error *err)
{
    self->items = bal_arena_alloc(arena, count * sizeof(*self->items));
    return self->items ? 0 : bal_fail_memory(err, "variables");
}

int bal_vars_add(bal_vars *self, const char *name, const char *value,
                 bal_error *err)
{
    size_t at = self->count;
    bool there = false;
    int rc = bal_map_add(&self->names, name, strlen(name), &at, &there, err);

    if (rc)
        return rc;
    if (there)
        return bal_fail(err, BAL_EINVAL, "'%.80s' is there twice", name);
    self->items[self->count++] = (bal_var){ .name = name, .value = value };
    return 0;
}

void bal_vars_done(bal_vars *self)
{
    bal_map_done(&self->names);
    *self = (bal_vars){ 0 };
}

int bal_template_fill(bal_buf *out, const bal_template *self, bal_vars *vars,
                      bal_error *err)
{
    for (size_t i = 0; i < self->count; i++) {
        const bal_template_piece *piece = &self->pieces[i];
        int rc = bal_buf_append(out, piece->text, piece->len, err);
        if (rc || !piece->name)
            return rc;
        size_t at =
            bal_map_find(&vars->names, piece->name, strlen(piece->name));
        if (at == BAL_NONE)
            return bal_fail(err, BAL_EINVAL,
                            "no variable '%.80s' for '{{%.80s}}'", piece->name,
                            piece->name);
        vars->items[at].used = true;
        if (!vars->items[at].value)
            return bal_fail(err, BAL_EINVAL,
                            "the variable '%.80s' is no text and no number",
                            piece->name);
        rc = bal_buf_text(out, vars->items[at].value, err);
        if (rc)
            return rc;
    }
    return 0;
}
