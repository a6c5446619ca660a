/* The one option parser. Nothing is guessed: an option is spelt out whole, and
 * one that is not known is an error with the nearest one as a hint. */
#include "cli/options.h"

#include "core/error.h"
#include "core/str.h"

/* One option as given. */
typedef struct given_value {
    const char *value; /* NULL: none */
    const char *shown; /* how the user wrote it, for messages */
    bool negated;
    size_t room; /* of a list: what can come in all */
    bal_arena *arena;
} given_value;

typedef int set_fn(const bal_opt *row, void *field, const given_value *given,
                   bal_error *err);

static int set_string(const bal_opt *row, void *field, const given_value *given,
                      bal_error *err)
{
    const char **to = field;

    (void)row;
    (void)err;
    *to = given->value;
    return 0;
}

static int set_flag(const bal_opt *row, void *field, const given_value *given,
                    bal_error *err)
{
    bool *to = field;

    (void)row;
    (void)err;
    (void)given;
    *to = true;
    return 0;
}

static int set_switch(const bal_opt *row, void *field, const given_value *given,
                      bal_error *err)
{
    bal_opt_switch *to = field;

    (void)row;
    (void)err;
    *to = given->negated ? BAL_SWITCH_OFF : BAL_SWITCH_ON;
    return 0;
}

static int set_u64(const bal_opt *row, void *field, const given_value *given,
                   bal_error *err)
{
    bal_opt_u64 *to = field;
    int rc = row->type == BAL_OPT_SIZE
                 ? bal_parse_size(&to->value, given->value, err)
                 : bal_parse_u64(&to->value, given->value, err);

    to->given = !rc;
    return rc ? bal_within(err, BAL_EINVAL, "%s", given->shown) : 0;
}

static int set_double(const bal_opt *row, void *field, const given_value *given,
                      bal_error *err)
{
    bal_opt_f64 *to = field;
    int rc = bal_parse_f64(&to->value, given->value, err);

    (void)row;
    to->given = !rc;
    return rc ? bal_within(err, BAL_EINVAL, "%s", given->shown) : 0;
}

static int append(bal_opt_list *list, const char *item,
                  const given_value *given, bal_error *err)
{
    if (!list->items) {
        list->items =
            bal_arena_alloc(given->arena, given->room * sizeof(*list->items));
    }
    if (!list->items)
        return bal_fail_memory(err, given->shown);
    list->items[list->count++] = item;
    return 0;
}

static int set_list(const bal_opt *row, void *field, const given_value *given,
                    bal_error *err)
{
    (void)row;
    return append(field, given->value, given, err);
}

static int set_param(const bal_opt *row, void *field, const given_value *given,
                     bal_error *err)
{
    const char *value = given->value;

    if (row->type == BAL_OPT_PARAM_SWITCH)
        value = given->negated ? "false" : "true";
    int rc = append(field, row->name, given, err);
    if (rc)
        return rc;
    return append(field, value, given, err);
}

/* True if word is one of choices "a|b|c". */
static bool is_choice(const char *choices, const char *word)
{
    size_t len = strlen(word);
    const char *at = choices;

    while (at) {
        size_t span = strcspn(at, "|");
        if (span == len && !memcmp(at, word, len))
            return true;
        at = at[span] ? at + span + 1 : NULL;
    }
    return false;
}

static int set_enum(const bal_opt *row, void *field, const given_value *given,
                    bal_error *err)
{
    const char **to = field;

    if (!is_choice(row->value, given->value)) {
        return bal_fail(err, BAL_EINVAL, "%s: '%s' is not one of %s",
                        given->shown, given->value, row->value);
    }
    *to = given->value;
    return 0;
}

static const struct {
    set_fn *set;
    bool valued;
    bool negatable;
} types[] = {
    [BAL_OPT_STRING] = { set_string, true, false },
    [BAL_OPT_FLAG] = { set_flag, false, false },
    [BAL_OPT_SWITCH] = { set_switch, false, true },
    [BAL_OPT_U64] = { set_u64, true, false },
    [BAL_OPT_SIZE] = { set_u64, true, false },
    [BAL_OPT_DOUBLE] = { set_double, true, false },
    [BAL_OPT_LIST] = { set_list, true, false },
    [BAL_OPT_ENUM] = { set_enum, true, false },
    [BAL_OPT_PARAM] = { set_param, true, false },
    [BAL_OPT_PARAM_SWITCH] = { set_param, false, true },
};
_Static_assert(sizeof(types) / sizeof(types[0]) == BAL_OPT_TYPES,
               "a row for each type");

bool bal_opt_valued(const bal_opt *row)
{
    return types[row->type].valued;
}

bool bal_opt_negatable(const bal_opt *row)
{
    return types[row->type].negatable;
}

bool bal_opt_at(bal_opt *out, const bal_opt_set *set, size_t i)
{
    size_t count = 0;

    while (set->rows && set->rows[count].name) {
        if (count == i) {
            *out = set->rows[i];
            return true;
        }
        count++;
    }
    return set->more && set->more(out, i - count);
}

void bal_opt_spell(char out[64], const char *name)
{
    size_t len = 0;

    for (; len < 63 && name[len]; len++) {
        out[len] = name[len];
        if (name[len] == '_')
            out[len] = '-';
    }
    out[len] = '\0';
}

/* A row that was found, and where its values are. */
typedef struct found {
    bal_opt row;
    void *values;
    bool negated;
} found;

static bool matches(found *at, const char *name, size_t len)
{
    char spelt[64];

    bal_opt_spell(spelt, at->row.name);
    at->negated = false;
    if (strlen(spelt) == len && !memcmp(spelt, name, len))
        return true;
    if (!bal_opt_negatable(&at->row) || len < 3 || memcmp(name, "no-", 3) != 0)
        return false;
    at->negated = true;
    return strlen(spelt) == len - 3 && !memcmp(spelt, name + 3, len - 3);
}

/* By name of len bytes, or by letter where name is NULL. */
static bool find(found *out, const bal_parser *self, const char *name,
                 size_t len, char letter)
{
    for (size_t s = 0; s < 2; s++) {
        const bal_opt_set *set = &self->sets[s];

        for (size_t i = 0; bal_opt_at(&out->row, set, i); i++) {
            bool same =
                name ? matches(out, name, len) : out->row.letter == letter;
            out->values = set->values;
            if (same)
                return true;
        }
    }
    return false;
}

static void *field_of(const found *at)
{
    return (char *)at->values + at->row.offset;
}

static void offer(bal_nearest *nearest, const bal_opt *row, const char *spelt)
{
    char negated[80];

    bal_nearest_offer(nearest, spelt);
    snprintf(negated, sizeof(negated), "no-%s", spelt);
    if (bal_opt_negatable(row))
        bal_nearest_offer(nearest, negated);
}

int bal_opt_unknown(const bal_parser *parser, const char *option,
                    bal_error *err)
{
    bal_nearest nearest;
    bal_opt row;
    char spelt[64];
    int rc = bal_fail(err, BAL_EINVAL, "unknown option '%s'", option);

    if (strncmp(option, "--", 2) != 0)
        return rc;
    bal_nearest_begin(&nearest, option + 2);
    for (size_t s = 0; s < 2; s++) {
        for (size_t i = 0; bal_opt_at(&row, &parser->sets[s], i); i++) {
            bal_opt_spell(spelt, row.name);
            if (!(row.flags & BAL_OPT_HIDDEN))
                offer(&nearest, &row, spelt);
        }
    }
    if (nearest.best[0])
        bal_hint(err, rc, "did you mean '--%s'?", nearest.best);
    return rc;
}

static int unknown(const bal_parser *self, const char *option, bal_error *err)
{
    bal_unknown_fn *fn = self->unknown ? self->unknown : bal_opt_unknown;

    return fn(self, option, err);
}

/* Set what was found; value is what was written with it, or NULL. */
static int apply(bal_parser *self, const found *at, const char *value,
                 const char *shown, bal_error *err)
{
    given_value given = { .value = value,
                          .shown = shown,
                          .negated = at->negated,
                          .room = 2 * self->count,
                          .arena = self->arena };

    if (value && !bal_opt_valued(&at->row))
        return bal_fail(err, BAL_EINVAL, "%s takes no value", shown);
    if (bal_opt_valued(&at->row) && !value) {
        if (self->at == self->count)
            return bal_fail(err, BAL_EINVAL, "%s needs a value", shown);
        given.value = self->words[self->at++];
    }
    return types[at->row.type].set(&at->row, field_of(at), &given, err);
}

/* "--name" or "--name=value". */
static int parse_long(bal_parser *self, const char *word, bal_error *err)
{
    size_t len = strcspn(word + 2, "=");
    const char *value = word[2 + len] ? word + 2 + len + 1 : NULL;
    char *shown = bal_arena_copy(self->arena, word, len + 2);
    found at = { 0 };

    if (!shown)
        return bal_fail_memory(err, "options");
    if (!find(&at, self, word + 2, len, 0))
        return unknown(self, shown, err);
    return apply(self, &at, value, shown, err);
}

/* "-q", "-qv", "-n5", "-n 5". */
static int parse_short(bal_parser *self, const char *word, bal_error *err)
{
    for (const char *letter = word + 1; *letter; letter++) {
        char shown[] = { '-', *letter, '\0' };
        const char *value = NULL;
        found at = { 0 };

        if (!find(&at, self, NULL, 0, *letter))
            return unknown(self, shown, err);
        if (bal_opt_valued(&at.row) && letter[1])
            value = letter + 1;
        int rc = apply(self, &at, value, shown, err);
        if (rc)
            return rc;
        if (value)
            break;
    }
    return 0;
}

int bal_opt_parse(bal_parser *self, bal_error *err)
{
    bool options = true;

    self->args =
        bal_arena_alloc(self->arena, (self->count + 1) * sizeof(*self->args));
    if (!self->args)
        return bal_fail_memory(err, "arguments");
    while (self->at < self->count) {
        const char *word = self->words[self->at];
        bool option = options && word[0] == '-' && word[1];
        int rc = 0;

        if (!option && (self->flags & BAL_PARSE_HEAD))
            return 0;
        self->at++;
        if (!option)
            self->args[self->arg_count++] = word;
        else if (!strcmp(word, "--"))
            options = false;
        else if (word[1] == '-')
            rc = parse_long(self, word, err);
        else
            rc = parse_short(self, word, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* Was it given? What is zero was not. */
static bool was_given(const bal_opt *row, const void *field)
{
    static const size_t sizes[] = {
        [BAL_OPT_STRING] = sizeof(const char *),
        [BAL_OPT_FLAG] = sizeof(bool),
        [BAL_OPT_SWITCH] = sizeof(bal_opt_switch),
        [BAL_OPT_U64] = sizeof(bool),
        [BAL_OPT_SIZE] = sizeof(bool),
        [BAL_OPT_DOUBLE] = sizeof(bool),
        [BAL_OPT_LIST] = sizeof(const char **),
        [BAL_OPT_ENUM] = sizeof(const char *),
        [BAL_OPT_PARAM] = sizeof(const char **),
        [BAL_OPT_PARAM_SWITCH] = sizeof(const char **),
    };
    static const char zero[sizeof(void *)] = { 0 };

    return memcmp(field, zero, sizes[row->type]) != 0;
}

int bal_opt_environment(const bal_opt_set *set, bal_arena *arena,
                        bal_error *err)
{
    bal_opt row;

    for (size_t i = 0; bal_opt_at(&row, set, i); i++) {
        void *field = (char *)set->values + row.offset;
        const char *value = row.env ? getenv(row.env) : NULL;

        if (!value || !value[0] || was_given(&row, field))
            continue;
        given_value given = { value, row.env, false, 1, arena };
        int rc = types[row.type].set(&row, field, &given, err);
        if (rc)
            return rc;
    }
    return 0;
}

int bal_opt_required(const bal_opt_set *set, bal_error *err)
{
    bal_opt row;

    for (size_t i = 0; bal_opt_at(&row, set, i); i++) {
        const char *field = (const char *)set->values + row.offset;

        if (!(row.flags & BAL_OPT_REQUIRED) || was_given(&row, field))
            continue;
        int rc = bal_fail(err, BAL_EINVAL, "--%s is missing", row.name);
        return row.letter ? bal_hint(err, rc, "-%c %s: %s", row.letter,
                                     row.value, row.help)
                          : bal_hint(err, rc, "--%s %s: %s", row.name,
                                     row.value, row.help);
    }
    return 0;
}
