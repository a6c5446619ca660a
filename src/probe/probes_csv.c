/* promptfoo's tests as CSV: a header row, then a test a row. Quoting is that of
 * RFC 4180; what that does not allow is refused rather than guessed at. Columns
 * whose names begin with "__" say something of the test, all others are
 * variables. */
#include <string.h>

#include "core/error.h"
#include "probe/probes_inside.h"

static const char blanks[] = " \t\r\n";

typedef struct csv_text {
    const char *at, *end;
    size_t line; /* that `at` is in */
} csv_text;

/* The fields of a row. */
typedef struct csv_row {
    bal_arena arena;
    const char **fields;
    size_t count;
} csv_row;

static void csv_row_done(csv_row *self)
{
    bal_arena_done(&self->arena);
    *self = (csv_row){ 0 };
}

/* ---- fields ------------------------------------------------------------- */

/* At the end of a row, of the text included: its length, else 0. */
static size_t row_end(const csv_text *csv)
{
    size_t left = (size_t)(csv->end - csv->at);

    if (left && csv->at[0] == '\n')
        return 1;
    return left > 1 && csv->at[0] == '\r' && csv->at[1] == '\n' ? 2 : 0;
}

static bool at_field_end(const csv_text *csv)
{
    return csv->at == csv->end || *csv->at == ',' || row_end(csv);
}

static int quoted_field(csv_text *csv, bal_buf *field, bal_error *err)
{
    csv->at++;
    while (csv->at < csv->end) {
        const char *quote = memchr(csv->at, '"', (size_t)(csv->end - csv->at));
        const char *stop = quote ? quote : csv->end;
        for (const char *c = csv->at; c < stop; c++)
            csv->line += *c == '\n';
        int rc = bal_buf_append(field, csv->at, (size_t)(stop - csv->at), err);
        if (rc)
            return rc;
        csv->at = quote ? stop + 1 : stop;
        if (quote && at_field_end(csv))
            return 0;
        if (quote && *csv->at != '"')
            return bal_fail(err, BAL_EINVAL,
                            "text behind the closing quote of a field");
        if (quote && (rc = bal_buf_append(field, csv->at++, 1, err)) != 0)
            return rc;
    }
    return bal_fail(err, BAL_EINVAL, "a quoted field that does not end");
}

static int plain_field(csv_text *csv, bal_buf *field, bal_error *err)
{
    const char *start = csv->at;

    while (!at_field_end(csv)) {
        if (*csv->at == '"')
            return bal_fail(err, BAL_EINVAL,
                            "a quote in a field that is not quoted");
        csv->at++;
    }
    return bal_buf_append(field, start, (size_t)(csv->at - start), err);
}

static int read_field(csv_text *csv, csv_row *row, bal_error *err)
{
    BAL_LOCAL(bal_buf) field = { .ceiling = BAL_PROBE_TEXT };
    bool quoted = csv->at < csv->end && *csv->at == '"';
    int rc =
        quoted ? quoted_field(csv, &field, err) : plain_field(csv, &field, err);

    if (rc)
        return rc;
    if (row->count == BAL_PROBES_COLUMNS)
        return bal_fail(err, BAL_EINVAL, "more than %zu columns",
                        BAL_PROBES_COLUMNS);
    row->fields[row->count] =
        bal_arena_copy(&row->arena, bal_buf_string(&field), field.len);
    return row->fields[row->count++] ? 0 : bal_fail_memory(err, "csv");
}

static void skip_empty_rows(csv_text *csv)
{
    while (row_end(csv)) {
        csv->at += row_end(csv);
        csv->line++;
    }
}

/* The next row; count 0: there is none. */
static int read_row(csv_text *csv, csv_row *row, bal_error *err)
{
    if (csv->at == csv->end)
        return 0;
    row->fields =
        bal_arena_alloc(&row->arena, BAL_PROBES_COLUMNS * sizeof(*row->fields));
    if (!row->fields)
        return bal_fail_memory(err, "csv");
    while (true) {
        int rc = read_field(csv, row, err);
        if (rc)
            return rc;
        if (csv->at == csv->end || *csv->at != ',')
            break;
        csv->at++;
    }
    csv->line += row_end(csv) > 0;
    csv->at += row_end(csv);
    return 0;
}

/* ---- what is expected --------------------------------------------------- */

/* What promptfoo takes for the type of an assertion in front of a ':'. All but
 * "equals" need a judge; any other text is the answer itself. */
static const char *const types[] = {
    "agent-rubric",
    "answer-relevance",
    "bleu",
    "classifier",
    "contains",
    "contains-all",
    "contains-any",
    "contains-html",
    "contains-json",
    "contains-sql",
    "contains-xml",
    "context-faithfulness",
    "context-recall",
    "context-relevance",
    "conversation-relevance",
    "cost",
    "equals",
    "eval",
    "factuality",
    "finish-reason",
    "fn",
    "g-eval",
    "gleu",
    "grade",
    "guardrails",
    "icontains",
    "icontains-all",
    "icontains-any",
    "is-html",
    "is-json",
    "is-refusal",
    "is-sql",
    "is-valid-function-call",
    "is-valid-openai-function-call",
    "is-valid-openai-tools-call",
    "is-xml",
    "javascript",
    "latency",
    "levenshtein",
    "llm-rubric",
    "meteor",
    "model-graded-closedqa",
    "model-graded-factuality",
    "moderation",
    "perplexity",
    "perplexity-score",
    "pi",
    "python",
    "regex",
    "rouge-n",
    "ruby",
    "search-rubric",
    "similar",
    "starts-with",
    "tool-call-f1",
    "webhook",
    "word-count",
};

static bool is_type(const char *text, size_t len)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strlen(types[i]) == len && !memcmp(types[i], text, len))
            return true;
    }
    return false;
}

/* Bytes of "(0.8)" at text, 0: there is no such thing. */
static size_t threshold_length(const char *text)
{
    size_t digits = text[0] == '(' ? strspn(text + 1, "0123456789.") : 0;

    return digits && text[1 + digits] == ')' ? digits + 2 : 0;
}

/* Bytes of "type", "not-type(0.8)" in front of text, if a ':' or nothing is
 * behind them; 0: it is no assertion. *name: how many of them say which. */
static size_t type_length(const char *text, size_t *name)
{
    static const char file[] = "file://";
    size_t before = strncmp(text, "not-", 4) != 0 ? 0 : 4;
    size_t len = strcspn(text + before, "(:");

    if (!strncmp(text, file, strlen(file))) {
        *name = strlen("file");
        return strlen(text);
    }
    if (!is_type(text + before, len))
        return 0;
    *name = before + len;
    size_t all = *name + threshold_length(text + *name);
    return text[all] == ':' || !text[all] ? all : 0;
}

static int expect(bal_maker *self, bal_foo *foo, const char *text,
                  bal_error *err)
{
    BAL_LOCAL(bal_buf) type = { 0 };
    size_t name = 0;

    text += strspn(text, blanks);
    if (!text[0])
        return 0;
    size_t len = type_length(text, &name);
    if (!len)
        return bal_foo_expect(self, foo, text, err);
    int rc = bal_buf_append(&type, text, name, err);
    if (rc)
        return rc;
    if (!strcmp(type.data, "equals") && text[len] == ':')
        return bal_foo_expect(self, foo, text + len + 1, err);
    return bal_maker_unused(self, "assert", type.data, err);
}

/* ---- columns ------------------------------------------------------------ */

static int take_prefix(bal_maker *self, bal_foo *foo, const char *field,
                       bal_error *err)
{
    (void)self;
    (void)err;
    foo->prefix = field;
    return 0;
}

static int take_suffix(bal_maker *self, bal_foo *foo, const char *field,
                       bal_error *err)
{
    (void)self;
    (void)err;
    foo->suffix = field;
    return 0;
}

typedef int take_fn(bal_maker *self, bal_foo *foo, const char *field,
                    bal_error *err);

/* What begins with "__" and is in no row here says nothing that is asked or
 * right. "more": digits may follow. */
static const struct {
    const char *name;
    bool more;
    take_fn *take;
} columns[] = {
    { "__expected", true, expect },
    { "__prefix", false, take_prefix },
    { "__suffix", false, take_suffix },
};

/* NULL: no column that we know of. */
static take_fn *column_of(const char *name)
{
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        size_t len = strlen(columns[i].name);
        if (strncmp(columns[i].name, name, len) != 0)
            continue;
        size_t digits = columns[i].more ? strspn(name + len, "0123456789") : 0;
        if (!name[len + digits])
            return columns[i].take;
    }
    return NULL;
}

static bool is_special(const char *name)
{
    return !strncmp(name, "__", 2);
}

static int read_header(bal_maker *self, const csv_row *header, bal_foo *foo,
                       bal_arena *arena, bal_error *err)
{
    int rc = bal_vars_init(&foo->vars, arena, header->count, err);

    for (size_t i = 0; i < header->count && !rc; i++) {
        const char *name = NULL;
        rc = bal_maker_trim(self, &name, header->fields[i], err);
        if (!rc && !name[0])
            rc = bal_fail(err, BAL_EINVAL, "column %zu has no name", i + 1);
        if (!rc)
            rc = bal_vars_add(&foo->vars, name, NULL, err);
        if (rc)
            return bal_within(err, rc, "its columns");
    }
    return rc;
}

/* ---- rows --------------------------------------------------------------- */

static int read_test(bal_maker *self, bal_foo *foo, const csv_row *row,
                     bal_error *err)
{
    bal_var *vars = foo->vars.items;
    int rc = 0;

    if (row->count != foo->vars.count)
        return bal_fail(err, BAL_EINVAL, "%zu fields in %zu columns",
                        row->count, foo->vars.count);
    for (size_t i = 0; i < row->count; i++)
        vars[i].value = is_special(vars[i].name) ? NULL : row->fields[i];
    for (size_t i = 0; i < row->count && !rc; i++) {
        take_fn *take = column_of(vars[i].name);
        if (!take)
            continue;
        vars[i].used = true;
        rc = take(self, foo, row->fields[i], err);
    }
    return rc ? rc : bal_foo_add(self, foo, err);
}

static int read_tests(bal_maker *self, csv_text *csv, bal_foo *foo,
                      bal_error *err)
{
    while (true) {
        BAL_LOCAL(csv_row) row = { 0 };
        skip_empty_rows(csv);
        self->place = csv->line;
        int rc = read_row(csv, &row, err);
        if (rc || !row.count)
            return rc;
        foo->expected_count = 0;
        rc = read_test(self, foo, &row, err);
        if (rc)
            return rc;
    }
}

static int note_unused(bal_maker *self, const bal_foo *foo, bal_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < foo->vars.count && !rc; i++) {
        const bal_var *var = &foo->vars.items[i];
        if (!var->used)
            rc = bal_maker_unused(self, is_special(var->name) ? NULL : "vars",
                                  var->name, err);
    }
    return rc;
}

static int read_all(bal_maker *self, csv_text *csv, bal_foo *foo,
                    bal_error *err)
{
    BAL_LOCAL(bal_arena) arena = { 0 };
    BAL_LOCAL(csv_row) header = { 0 };

    skip_empty_rows(csv);
    self->place = csv->line;
    int rc = read_row(csv, &header, err);
    if (!rc)
        rc = read_header(self, &header, foo, &arena, err);
    if (!rc)
        rc = read_tests(self, csv, foo, err);
    return rc ? rc : note_unused(self, foo, err);
}

int bal_probes_csv(bal_maker *self, bal_bytes text, bal_error *err)
{
    csv_text csv = {
        .at = text.data,
        .end = (const char *)text.data + text.len,
        .line = 1,
    };
    bal_foo foo = { 0 };
    int rc = read_all(self, &csv, &foo, err);

    bal_vars_done(&foo.vars);
    if (rc)
        return bal_within(err, rc, "line %zu", self->place);
    return 0;
}
