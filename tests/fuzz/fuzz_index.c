/* A shard index. What is taken is written again and read back as the same map;
 * every file that it names is a plain name. */
#include <stdlib.h>
#include <string.h>

#include "model/index.h"
#include "support/fuzz.h"

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void write_again(const bal_index *index)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_LOCAL(bal_index) again = { 0 };
    bal_index_totals totals = { .size = index->total };

    must(!bal_index_write(&text, index->rows, index->count, &totals, NULL));
    bal_bytes json = { text.data, text.len };
    must(!bal_index_parse(&again, json, "again", NULL));
    must(again.count == index->count && again.file_count == index->file_count);
    must(again.has_total && again.total == index->total);
    for (size_t i = 0; i < index->count; i++) {
        const char *file = bal_index_find(&again, index->rows[i].tensor);
        must(file && !strcmp(file, index->rows[i].file));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BAL_LOCAL(bal_index) index = { 0 };
    bal_bytes json = { data, size };
    bal_error err = { 0 };

    if (bal_index_parse(&index, json, "index", &err)) {
        must(err.code == BAL_ECORRUPT && err.text[0]);
        return 0;
    }
    for (size_t i = 0; i < index.file_count; i++)
        must(!strchr(index.files[i], '/') && !strchr(index.files[i], '\\') &&
             strcmp(index.files[i], "..") != 0);
    write_again(&index);
    return 0;
}
