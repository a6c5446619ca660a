/* The documents made of the routes have every route, and lead nowhere that is
 * not there. */
#include <ctype.h>
#include <string.h>

#include "core/json.h"
#include "serve/openapi.h"
#include "serve/schemas.h"
#include "support/check.h"

static json_t *document(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    json_t *root = NULL;

    CHECK_OK(bal_openapi_write(&text, 0, &check_err));
    CHECK_OK(
        bal_json_parse(&root, text.data, text.len, "the document", &check_err));
    return root;
}

/* Paths as OpenAPI tells them apart: without the names of parameters. */
static bool alike(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a += *a == '{' ? strcspn(a, "}") : 1;
        b += *b == '{' ? strcspn(b, "}") : 1;
    }
    return *a == *b;
}

static json_t *operation_of(json_t *root, const bal_route *route,
                            const char **as)
{
    json_t *paths = json_object_get(root, "paths");
    char method[16];
    size_t len = 0;
    const char *path;
    json_t *item;

    for (; route->method[len]; len++)
        method[len] = (char)tolower((unsigned char)route->method[len]);
    method[len] = '\0';
    json_object_foreach(paths, path, item)
    {
        if (!alike(path, route->path))
            continue;
        *as = path;
        return json_object_get(item, method);
    }
    return NULL;
}

static const json_t *parameter_of(const json_t *operation, const char *name,
                                  size_t len, const char *in)
{
    const json_t *all = json_object_get(operation, "parameters");

    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *row = json_array_get(all, i);
        const char *is = json_string_value(json_object_get(row, "name"));
        if (strlen(is) == len && !strncmp(is, name, len) &&
            !strcmp(json_string_value(json_object_get(row, "in")), in))
            return row;
    }
    return NULL;
}

static void every_route_is_in_it(void)
{
    BAL_OWN(json_t) root = document();
    size_t count = 0;
    const char *path, *method;
    json_t *item, *operation;

    CHECK(
        !strcmp(json_string_value(json_object_get(root, "openapi")), "3.1.0"));
    for (size_t i = 0; i < bal_route_count; i++) {
        const char *as = NULL;
        check_row(bal_routes[i].path);
        CHECK(operation_of(root, &bal_routes[i], &as) != NULL);
    }
    json_object_foreach(json_object_get(root, "paths"), path, item)
    {
        json_object_foreach(item, method, operation)
        {
            count++;
        }
    }
    CHECK(count == bal_route_count);
}

static void each_parameter_is_declared(void)
{
    BAL_OWN(json_t) root = document();

    for (size_t i = 0; i < bal_route_count; i++) {
        const bal_route *route = &bal_routes[i];
        const char *as = NULL;
        const json_t *operation = operation_of(root, route, &as);
        check_row(route->path);
        for (const char *at = strchr(as, '{'); at; at = strchr(at, '{')) {
            at++;
            const json_t *row =
                parameter_of(operation, at, strcspn(at, "}"), "path");
            CHECK(row != NULL);
            CHECK(json_is_true(json_object_get(row, "required")));
        }
        for (const bal_route_query *at = route->query; at && at->name; at++) {
            const json_t *row =
                parameter_of(operation, at->name, strlen(at->name), "query");
            CHECK(row != NULL);
            const json_t *type =
                json_object_get(json_object_get(row, "schema"), "type");
            CHECK(!strcmp(json_string_value(type), at->type));
            CHECK(json_is_true(json_object_get(row, "required")) ==
                  at->required);
        }
    }
}

static void each_status_is_declared(void)
{
    BAL_OWN(json_t) root = document();

    for (size_t i = 0; i < bal_route_count; i++) {
        const char *as = NULL;
        json_t *responses = json_object_get(
            operation_of(root, &bal_routes[i], &as), "responses");
        const bal_route_status *at = bal_routes[i].statuses;
        size_t count = 1; /* default */
        check_row(bal_routes[i].path);
        for (; at->status; at++, count++) {
            char number[16];
            snprintf(number, sizeof(number), "%d", at->status);
            json_t *response = json_object_get(responses, number);
            CHECK(response != NULL);
            bool empty = at->status == 304;
            CHECK(empty == !json_object_get(response, "content"));
        }
        CHECK(json_object_size(responses) == count);
        CHECK(json_object_get(responses, "default") != NULL);
    }
}

/* Follows what "$ref" names, wherever it stands. */
static void follow(const json_t *root, json_t *value, size_t *count)
{
    static const char place[] = "#/components/schemas/";
    const json_t *schemas =
        json_object_get(json_object_get(root, "components"), "schemas");
    const char *name;
    json_t *each;

    for (size_t i = 0; i < json_array_size(value); i++)
        follow(root, json_array_get(value, i), count);
    json_object_foreach(value, name, each)
    {
        const char *text = json_string_value(each);
        follow(root, each, count);
        if (strcmp(name, "$ref") != 0)
            continue;
        ++*count;
        check_row(text);
        CHECK(text && !strncmp(text, place, sizeof(place) - 1));
        CHECK(json_object_get(schemas, text + sizeof(place) - 1) != NULL);
    }
}

static void no_reference_leads_nowhere(void)
{
    BAL_OWN(json_t) root = document();
    size_t count = 0;

    follow(root, root, &count);
    CHECK(count > bal_route_count);
}

static void operations_have_names_of_their_own(void)
{
    BAL_OWN(json_t) root = document();
    BAL_OWN(json_t) seen = json_object();

    for (size_t i = 0; i < bal_route_count; i++) {
        const char *as = NULL;
        const char *id = json_string_value(json_object_get(
            operation_of(root, &bal_routes[i], &as), "operationId"));
        check_row(id);
        CHECK(id && id[0] && !json_object_get(seen, id));
        CHECK(!json_object_set_new(seen, id, json_true()));
    }
}

static void who_must_show_a_token_is_told(void)
{
    BAL_OWN(json_t) root = document();

    for (size_t i = 0; i < bal_route_count; i++) {
        const char *as = NULL;
        const json_t *security = json_object_get(
            operation_of(root, &bal_routes[i], &as), "security");
        size_t want[] = { 0, 2, 2, 1 };
        check_row(bal_routes[i].path);
        CHECK(json_array_size(security) == want[bal_routes[i].need]);
    }
}

static void it_is_made_once(void)
{
    bal_bytes first, second;

    CHECK_OK(bal_openapi(&first, &check_err));
    CHECK_OK(bal_openapi(&second, &check_err));
    CHECK(first.data == second.data && first.len == second.len);
}

static void the_page_has_every_route(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };

    CHECK_OK(bal_docs_http(&text, &check_err));
    for (size_t i = 0; i < bal_route_count; i++) {
        char heading[96];
        snprintf(heading, sizeof(heading), "\n## %s %s\n", bal_routes[i].method,
                 bal_routes[i].path);
        check_row(heading);
        CHECK(strstr(text.data, heading) != NULL);
    }
}

static const check_test tests[] = {
    { TEST(every_route_is_in_it) },
    { TEST(each_parameter_is_declared) },
    { TEST(each_status_is_declared) },
    { TEST(no_reference_leads_nowhere) },
    { TEST(operations_have_names_of_their_own) },
    { TEST(who_must_show_a_token_is_told) },
    { TEST(it_is_made_once) },
    { TEST(the_page_has_every_route) },
};

CHECK_MAIN(tests)
