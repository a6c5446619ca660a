/* A model as the bytes of one safetensors file. */
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "kernel/dtype.h"
#include "model/model.h"
#include "support/check.h"
#include "support/memory_model.h"

BAL_OWNABLE(bal_stream)

static bal_work *work;

/* One tensor of every dtype, sizes that no piece divides, one without bytes. */
static bal_model *every_dtype(void)
{
    bal_model *model = memory_new(BAL_KIND_WEIGHTS, "every");
    char name[BAL_DTYPES][24];

    for (int dtype = 0; dtype < BAL_DTYPES; dtype++) {
        uint64_t shape[2] = { 3, 8 * (uint64_t)(dtype + 1) };
        snprintf(name[dtype], sizeof(name[dtype]), "t%02d", dtype);
        memory_strange(model, name[dtype], dtype, 2, shape, (uint64_t)dtype);
    }
    uint64_t none[2] = { 0, 5 };
    memory_tensor(model, "empty", BAL_F32, 2, none, "");
    memory_strange1(model, "long", BAL_BF16, 200003, 7);
    memory_file(model, BAL_PART_FILE, "config.json", "{}", 2);
    memory_finish(model);
    return model;
}

static uint8_t *slurp(bal_stream *stream, size_t *len)
{
    *len = (size_t)bal_stream_size(stream);
    uint8_t *bytes = malloc(*len);

    CHECK(bytes);
    CHECK_OK(bal_stream_read(stream, 0, bytes, *len, &check_err));
    return bytes;
}

static void read_file(bal_buf *to, const char *dir, const char *name)
{
    char *path = bal_path_join(dir, name);

    to->ceiling = 16 << 20;
    CHECK_OK(bal_file_slurp(to, path, 16 << 20, &check_err));
    free(path);
}

static void is_the_file_that_write_makes(void)
{
    BAL_OWN(bal_model) model = every_dtype();
    BAL_OWN(bal_stream) stream = NULL;
    BAL_LOCAL(bal_buf) file = { 0 };
    char dir[512];
    size_t len;

    snprintf(dir, sizeof(dir), "%s/out", check_dir());
    CHECK_OK(bal_model_write(model, dir, NULL, NULL, work, &check_err));
    read_file(&file, dir, "model.safetensors");
    CHECK_OK(bal_stream_open(&stream, model, &check_err));
    uint8_t *bytes = slurp(stream, &len);
    CHECK(len == file.len && !memcmp(bytes, file.data, len));
    free(bytes);
}

/* Ranges that begin and end everywhere: small ones at every place of the head
 * and of the first tensors, large ones at odd places. */
static void any_range_is_the_same_bytes(void)
{
    static const size_t lens[] = { 0, 1, 2, 3, 7, 8, 9, 63, 1000, 70001 };
    BAL_OWN(bal_model) model = every_dtype();
    BAL_OWN(bal_stream) stream = NULL;
    uint8_t piece[70001];
    size_t len;

    CHECK_OK(bal_stream_open(&stream, model, &check_err));
    uint8_t *bytes = slurp(stream, &len);
    for (size_t at = 0; at <= len; at += at < 9000 ? 1 : 9973) {
        for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
            if (lens[i] > len - at || (at < 9000 && at % 7 && lens[i] > 9))
                continue;
            CHECK_OK(bal_stream_read(stream, at, piece, lens[i], &check_err));
            CHECK(!memcmp(piece, bytes + at, lens[i]));
        }
    }
    CHECK_RC(BAL_EINVAL, bal_stream_read(stream, len, piece, 1, &check_err));
    CHECK_RC(BAL_EINVAL,
             bal_stream_read(stream, UINT64_MAX, piece, 8, &check_err));
    free(bytes);
}

/* Two files with a tensor each: the index of neither fits one file. */
static void several_files_come_as_one(void)
{
    static const char *const heads[] = {
        "{\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}",
    };
    static const char want[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
        "\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[8,16]}}";
    BAL_OWN(bal_model) model = memory_new(BAL_KIND_WEIGHTS, "sharded");
    BAL_OWN(bal_stream) stream = NULL;
    uint64_t two = 2;
    uint64_t eight = 8;
    size_t len;

    memory_tensor(model, "a", BAL_U8, 1, &eight, "01234567");
    memory_tensor(model, "b", BAL_F32, 1, &two, "abcdefgh");
    memory_file(model, BAL_PART_HEADER, "model-00001-of-00002.safetensors",
                heads[0], strlen(heads[0]));
    memory_file(model, BAL_PART_HEADER, "model-00002-of-00002.safetensors",
                heads[1], strlen(heads[1]));
    memory_finish(model);
    CHECK_OK(bal_stream_open(&stream, model, &check_err));
    uint8_t *bytes = slurp(stream, &len);
    CHECK(len > 8 + sizeof(want) - 1 + 16 - 1);
    CHECK(!memcmp(bytes + 8, want, sizeof(want) - 1));
    CHECK(!memcmp(bytes + len - 16, "abcdefgh01234567", 16));
    free(bytes);
}

static void a_model_without_tensors_is_refused(void)
{
    BAL_OWN(bal_model) model = memory_new(BAL_KIND_WEIGHTS, "bare");
    bal_stream *stream = NULL;

    memory_file(model, BAL_PART_FILE, "config.json", "{}", 2);
    memory_finish(model);
    CHECK_RC(BAL_EINVAL, bal_stream_open(&stream, model, &check_err));
    CHECK(!stream);
}

static const check_test tests[] = {
    { TEST(is_the_file_that_write_makes) },
    { TEST(any_range_is_the_same_bytes) },
    { TEST(several_files_come_as_one) },
    { TEST(a_model_without_tensors_is_refused) },
};

int main(void)
{
    CHECK_OK(bal_work_new(&work, 1, &check_err));
    int failed = check_main(tests, sizeof(tests) / sizeof(tests[0]));
    bal_work_free(work);
    return failed;
}
