/* A row for each backend. */
#include "support/backends.h"

#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/s3.h"

static const struct {
    const char *name;
    const char *url; /* NULL: another one each time, of the server */
    bool nested;
} rows[] = {
    { "file", "file:blocks", true },
    { "s3", NULL, false },
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

size_t contract_rows(void)
{
    return ROWS;
}

bool contract_begin(contract *self, size_t row)
{
    char url[256];

    check_row(rows[row].name);
    *self = (contract){ .nested = rows[row].nested };
    if (!rows[row].url && !s3_url(url, sizeof(url)))
        return false;
    if (rows[row].url)
        snprintf(url, sizeof(url), "%s", rows[row].url);
    snprintf(self->root, sizeof(self->root), "%s/XXXXXX", check_dir());
    CHECK(mkdtemp(self->root) != NULL);
    CHECK_OK(bal_backend_open(&self->backend, url, self->root, &check_err));
    CHECK(!strcmp(self->backend->url, url));
    CHECK_OK(bal_work_new(&self->work, 3, &check_err));
    return true;
}

void contract_done(contract *self)
{
    bal_backend_free(self->backend);
    bal_work_free(self->work);
}

void contract_stage(contract *self, bal_staged *staged, const char *name,
                    const char *text)
{
    bal_bytes part = { text, strlen(text) };

    CHECK_OK(
        bal_backend_stage(self->backend, staged, name, &part, 1, &check_err));
    CHECK(!strcmp(staged->name, name) && staged->size == part.len);
}

void contract_put(contract *self, const char *name, const char *text)
{
    bal_staged staged = { 0 };

    contract_stage(self, &staged, name, text);
    CHECK_OK(
        bal_backend_settle(self->backend, &staged, 1, self->work, &check_err));
    CHECK(staged.name == NULL && staged.temp == NULL);
}

int contract_get(contract *self, bal_buf *out, const char *name,
                 uint64_t offset, uint64_t len)
{
    bal_buf_clear(out);
    return bal_backend_get(self->backend, name, offset, len, out, &check_err);
}

int contract_count_one(void *ctx, const char *name, uint64_t size,
                       bal_error *err)
{
    size_t *count = ctx;

    (void)err;
    CHECK(name[0] && size == strlen(name));
    (*count)++;
    return 0;
}

size_t contract_count(contract *self, const char *prefix)
{
    size_t count = 0;

    CHECK_OK(bal_backend_list(self->backend, prefix, contract_count_one, &count,
                              &check_err));
    return count;
}

int contract_remove(contract *self, const char *const *names, size_t count,
                    uint64_t *freed)
{
    return bal_backend_remove(self->backend, names, count, freed, &check_err);
}
