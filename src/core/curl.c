/* libcurl by dlopen. Its binary interface has been the same since 2006, when it
 * became libcurl.so.4. */
#include "core/curl.h"

#include <stddef.h>
#include <stdint.h>

#include "core/library.h"

static const char *const names[] = {
    "libcurl.so.4",
    "libcurl-gnutls.so.4",
    "libcurl.4.dylib",
};

static const bal_library_row functions[] = {
    { "curl_easy_cleanup", offsetof(bal_curl, easy_cleanup) },
    { "curl_easy_getinfo", offsetof(bal_curl, easy_getinfo) },
    { "curl_easy_init", offsetof(bal_curl, easy_init) },
    { "curl_easy_perform", offsetof(bal_curl, easy_perform) },
    { "curl_easy_reset", offsetof(bal_curl, easy_reset) },
    { "curl_easy_setopt", offsetof(bal_curl, easy_setopt) },
    { "curl_easy_strerror", offsetof(bal_curl, easy_strerror) },
    { "curl_free", offsetof(bal_curl, free) },
    { "curl_global_init", offsetof(bal_curl, global_init) },
    { "curl_multi_add_handle", offsetof(bal_curl, multi_add_handle) },
    { "curl_multi_cleanup", offsetof(bal_curl, multi_cleanup) },
    { "curl_multi_info_read", offsetof(bal_curl, multi_info_read) },
    { "curl_multi_init", offsetof(bal_curl, multi_init) },
    { "curl_multi_perform", offsetof(bal_curl, multi_perform) },
    { "curl_multi_poll", offsetof(bal_curl, multi_poll) },
    { "curl_multi_remove_handle", offsetof(bal_curl, multi_remove_handle) },
    { "curl_multi_setopt", offsetof(bal_curl, multi_setopt) },
    { "curl_multi_strerror", offsetof(bal_curl, multi_strerror) },
    { "curl_slist_append", offsetof(bal_curl, slist_append) },
    { "curl_slist_free_all", offsetof(bal_curl, slist_free_all) },
    { "curl_url", offsetof(bal_curl, url) },
    { "curl_url_cleanup", offsetof(bal_curl, url_cleanup) },
    { "curl_url_get", offsetof(bal_curl, url_get) },
    { "curl_url_set", offsetof(bal_curl, url_set) },
    { "curl_version_info", offsetof(bal_curl, version_info) },
};

enum { FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

_Static_assert(FUNCTIONS * sizeof(void *) == sizeof(bal_curl),
               "a row for each function");

static bal_curl table;

static bool begin(void)
{
    return !table.global_init(CURL_GLOBAL_DEFAULT);
}

static bal_library library = {
    .names = names,
    .name_count = sizeof(names) / sizeof(names[0]),
    .rows = functions,
    .row_count = FUNCTIONS,
    .table = &table,
    .begin = begin,
    .lack = "there is no libcurl to speak HTTP with",
    .packages = "libcurl4, libcurl",
};

int bal_curl_load(bal_error *err)
{
    return bal_library_need(&library, err);
}

const bal_curl *bal_curl_use(void)
{
    return &table;
}
