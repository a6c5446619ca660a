/* Model folders for tests, and what is said of those that are refused. */
#include "support/folders.h"

#include <string.h>

#include "model/model.h"
#include "support/check.h"

void folder_says(const char *word)
{
    if (!strstr(check_err.text, word) && !strstr(check_err.hint, word))
        print_error("message: %s (%s)\n", check_err.text, check_err.hint);
    CHECK(strstr(check_err.text, word) || strstr(check_err.hint, word));
}

void folder_refused(int code, const char *dir, const char *word)
{
    BAL_OWN(bal_model) model = NULL;

    CHECK_RC(code, bal_model_from_path(&model, dir, &check_err));
    CHECK(!model);
    folder_says(word);
}

void folder_put(const char *dir, const char *name, const char *text)
{
    BAL_LOCAL(bal_buf) path = { 0 };

    CHECK_OK(bal_buf_format(&path, &check_err, "%s/%s", dir, name));
    file_text(path.data, text);
}

/* A safetensors file whose data are the bytes 1, 2, 3, … */
void folder_tensors(const char *dir, const char *name, const char *json,
                    size_t len)
{
    BAL_LOCAL(bal_buf) path = { 0 };
    uint8_t data[16];

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i + 1);
    CHECK_OK(bal_buf_format(&path, &check_err, "%s/%s", dir, name));
    file_tensors(path.data, json, data, len);
}
