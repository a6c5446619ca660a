/* Texts with {{names}} in them. Names only: filters and statements, which
 * promptfoo would hand to Nunjucks, are refused. */
#ifndef PROBE_TEMPLATE_H
#define PROBE_TEMPLATE_H

#include "core/buf.h"
#include "core/map.h"

typedef struct bal_template {
    bal_arena arena;
    const struct bal_template_piece *pieces;
    size_t count;
} bal_template;

/* Borrows nothing. EINVAL: a "{{" without its end, a filter, a statement. */
BAL_CHECK int bal_template_read(bal_template *out, const char *text,
                                bal_error *err);
void bal_template_done(bal_template *self);

typedef struct bal_var {
    const char *name;
    const char *value; /* NULL: there is one, and it is no text */
    bool used;         /* some template named it */
} bal_var;

/* Variables by name. */
typedef struct bal_vars {
    bal_var *items;
    size_t count;
    bal_map names;
} bal_vars;

/* Room for count variables in the arena. */
BAL_CHECK int bal_vars_init(bal_vars *self, bal_arena *arena, size_t count,
                            bal_error *err);
/* One more; borrows. EINVAL: it is there already. */
BAL_CHECK int bal_vars_add(bal_vars *self, const char *name, const char *value,
                           bal_error *err);
void bal_vars_done(bal_vars *self);

/* Append what the template gives. EINVAL: a variable that is not there or is no
 * text, or over the buffer's ceiling. */
BAL_CHECK int bal_template_fill(bal_buf *out, const bal_template *self,
                                bal_vars *vars, bal_error *err);

#endif
