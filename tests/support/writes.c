/* Models written by tests, and what came of it. */
#include "support/writes.h"

#include <string.h>

#include "core/pool.h"
#include "support/check.h"

int write_with(bal_model *model, const char *out,
               const bal_write_options *options, bal_written *written,
               unsigned jobs)
{
    BAL_OWN(bal_work) work = NULL;

    CHECK_OK(bal_work_new(&work, jobs, &check_err));
    return bal_model_write(model, out, options, written, work, &check_err);
}

int write_plain(bal_model *model, const char *out)
{
    return write_with(model, out, NULL, NULL, 2);
}

/* The path of a new place in an empty folder of its own. */
const char *write_place(void)
{
    const char *dir = file_dir();

    return file_path("%s/out", strrchr(dir, '/') + 1);
}

bool write_alone(const char *out)
{
    BAL_LOCAL(bal_buf) dir = { 0 };

    CHECK_OK(bal_buf_append(&dir, out, (size_t)(strrchr(out, '/') - out),
                            &check_err));
    return file_count(dir.data) == (size_t)file_exists(out);
}

void write_holds(const char *dir, const char *name, const char *text)
{
    BAL_LOCAL(bal_buf) path = { 0 };

    check_row(name);
    CHECK_OK(bal_buf_format(&path, &check_err, "%s/%s", dir, name));
    if (!text) {
        CHECK(!file_exists(path.data));
        return;
    }
    CHECK(file_is(path.data, text));
}
