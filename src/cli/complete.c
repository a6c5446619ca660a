/* Completion: the table of shells, and what their scripts share. */
#include "cli/complete.h"

#include <stdarg.h>

#include "cli/commands.h"
#include "cli/help.h"

const bal_shell bal_shells[] = {
    { "bash", bal_complete_bash },
    { "zsh", bal_complete_zsh },
    { "fish", bal_complete_fish },
    { 0 },
};

static int word(bal_buf *words, const char *text, bal_error *err)
{
    return bal_buf_format(words, err, "%s%s", words->len ? " " : "", text);
}

static int methods(bal_buf *words, bal_error *err)
{
    for (size_t i = 0; i < bal_method_count(); i++) {
        int rc = word(words, bal_method_at(i)->name, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int commands(bal_buf *words, bal_error *err)
{
    for (size_t i = 0; i < bal_commands_count; i++) {
        if (bal_commands[i]->hidden)
            continue;
        int rc = word(words, bal_commands[i]->name, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int settings(bal_buf *words, bal_error *err)
{
    return word(words,
                "backend block_size compression db default_jobs format tenant "
                "view_cache",
                err);
}

static int dtypes(bal_buf *words, bal_error *err)
{
    return word(words, "BF16 F16 F32 F64", err);
}

static const struct {
    const char *value;
    bal_value_kind kind;
    int (*words)(bal_buf *words, bal_error *err);
} kinds[] = {
    { "DIR", BAL_VALUE_DIR, NULL },
    { "FILE", BAL_VALUE_FILE, NULL },
    { "PATH", BAL_VALUE_FILE, NULL },
    { "REF", BAL_VALUE_REF, NULL },
    { "SPEC", BAL_VALUE_REF, NULL },
    { "SPEC|NAME", BAL_VALUE_REF, NULL },
    { "MODEL", BAL_VALUE_MODEL, NULL },
    { "SPEC|DIR", BAL_VALUE_MODEL, NULL },
    { "DIR|FILE|SPEC", BAL_VALUE_MODEL, NULL },
    { "METHOD", BAL_VALUE_WORDS, methods },
    { "COMMAND", BAL_VALUE_WORDS, commands },
    { "DTYPE", BAL_VALUE_WORDS, dtypes },
    { "SETTING", BAL_VALUE_WORDS, settings },
};

/* "a|b|c" as "a b c". */
static int choices(bal_buf *words, const char *value, bal_error *err)
{
    int rc = word(words, value, err);

    for (size_t i = 0; !rc && i < words->len; i++) {
        if (words->data[i] == '|')
            words->data[i] = ' ';
    }
    return rc;
}

int bal_value_kind_of(bal_value_kind *out, bal_buf *words, const char *value,
                      bal_error *err)
{
    *out = BAL_VALUE_TEXT;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].value, value) != 0)
            continue;
        *out = kinds[i].kind;
        return kinds[i].words ? kinds[i].words(words, err) : 0;
    }
    if (!strchr(value, '|'))
        return 0;
    *out = BAL_VALUE_WORDS;
    return choices(words, value, err);
}

void bal_script_put(bal_script *self, const char *format, ...)
{
    char line[4096];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (!self->rc)
        self->rc = bal_buf_text(self->to, line, self->err);
}

void bal_script_quoted(bal_script *self, const char *text, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'')
            bal_script_put(self, "'\\''");
        else if (strchr(special, *text))
            bal_script_put(self, "\\%c", *text);
        else
            bal_script_put(self, "%c", *text);
    }
}
