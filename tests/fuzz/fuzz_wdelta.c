/* A .wdelta file: its header, its records' heads, and where it is taken what
 * it adds to floats, range after range, which must not depend on the ranges. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/arith.h"
#include "support/fuzz.h"
#include "wdelta/file.h"
#include "wdelta/reader.h"

enum { MOST = 4096 };

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* x: what is added to zeros by steps; false: corrupt. */
static bool add(float *x, const bal_wdelta *file, const bal_wd_tensor *tensor,
                size_t step)
{
    BAL_LOCAL(bal_wd_reader) reader = { 0 };
    bal_error err = { 0 };
    int rc = bal_wd_reader_open(&reader, file, tensor, 0, tensor->n, &err);

    memset(x, 0, MOST * sizeof(*x));
    for (size_t at = 0; at < tensor->n && !rc; at += step)
        rc = bal_wd_reader_add(&reader, x + at,
                               (size_t)bal_min(step, tensor->n - at), &err);
    must(!rc || (rc == BAL_ECORRUPT && err.text[0]));
    return !rc;
}

static void read_all(const bal_wdelta *file)
{
    static float whole[MOST];
    static float parts[MOST];

    for (size_t i = 0; i < file->count; i++) {
        const bal_wd_tensor *tensor = &file->tensors[i];
        if (tensor->n > MOST || tensor->kind == BAL_WD_LOSSLESS)
            continue;
        bool good = add(whole, file, tensor, MOST);
        must(add(parts, file, tensor, 8) == good);
        must(!good || !memcmp(whole, parts, sizeof(whole)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BAL_OWN(bal_wdelta) file = NULL;
    bal_error err = { 0 };
    char path[64];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int rc = bal_wdelta_open(&file, path, &err);
    if (rc)
        must((rc == BAL_ECORRUPT || rc == BAL_EUNSUPPORTED) && err.text[0]);
    else
        read_all(file);
    close(fd);
    return 0;
}
