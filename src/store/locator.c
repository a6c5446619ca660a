#include "store/locator.h"

#include <string.h>

#include "core/file.h"
#include "core/json.h"
#include "core/str.h"

#define SCHEMA      "ballast/store/1"
#define LOCATOR_MAX ((size_t)64 << 10)

int bal_locator_read(char **db, const char *path, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    int rc = bal_file_slurp(&text, path, LOCATOR_MAX, err);
    if (rc)
        return rc;

    BAL_OWN(json_t) json = NULL;
    rc = bal_json_parse(&json, text.data, text.len, path, err);
    if (rc)
        return rc;
    const char *schema = json_string_value(json_object_get(json, "schema"));
    const char *url = json_string_value(json_object_get(json, "db"));
    if (!schema || !url)
        return bal_fail(err, BAL_ECORRUPT, "'%s' is not a store's", path);
    if (strcmp(schema, SCHEMA))
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "'%s' is of '%s', this program reads '%s'", path,
                        schema, SCHEMA);
    *db = bal_str_copy(url);
    return *db ? 0 : bal_fail_memory(err, path);
}

int bal_locator_write(const char *root, const char *db, bal_error *err)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    bal_json json;

    bal_json_begin(&json, &text, 2);
    bal_json_object(&json);
    bal_json_key(&json, "schema");
    bal_json_string(&json, SCHEMA);
    bal_json_key(&json, "db");
    bal_json_string(&json, db);
    bal_json_close(&json);
    int rc = bal_json_end(&json, err);
    if (rc)
        return rc;
    char *path = bal_path_join(root, "store.json");
    if (!path)
        return bal_fail_memory(err, root);
    rc = bal_file_replace(path, text.data, text.len, err);
    bal_str_free(path);
    return rc;
}
