/* libcurl, loaded when it is first needed: a dozen libraries come with it, and
 * starting the program would take three times as long for what most commands
 * never use. */
#ifndef CORE_CURL_H
#define CORE_CURL_H

/* Its checks are macros of the functions' names, which the table has not. */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "ballast.h"

/* Its functions, without "curl_". */
typedef struct bal_curl {
    __typeof__(curl_easy_cleanup) *easy_cleanup;
    __typeof__(curl_easy_getinfo) *easy_getinfo;
    __typeof__(curl_easy_init) *easy_init;
    __typeof__(curl_easy_perform) *easy_perform;
    __typeof__(curl_easy_reset) *easy_reset;
    __typeof__(curl_easy_setopt) *easy_setopt;
    __typeof__(curl_easy_strerror) *easy_strerror;
    __typeof__(curl_free) *free;
    __typeof__(curl_global_init) *global_init;
    __typeof__(curl_multi_add_handle) *multi_add_handle;
    __typeof__(curl_multi_cleanup) *multi_cleanup;
    __typeof__(curl_multi_info_read) *multi_info_read;
    __typeof__(curl_multi_init) *multi_init;
    __typeof__(curl_multi_perform) *multi_perform;
    __typeof__(curl_multi_poll) *multi_poll;
    __typeof__(curl_multi_remove_handle) *multi_remove_handle;
    __typeof__(curl_multi_setopt) *multi_setopt;
    __typeof__(curl_multi_strerror) *multi_strerror;
    __typeof__(curl_slist_append) *slist_append;
    __typeof__(curl_slist_free_all) *slist_free_all;
    __typeof__(curl_url) *url;
    __typeof__(curl_url_cleanup) *url_cleanup;
    __typeof__(curl_url_get) *url_get;
    __typeof__(curl_url_set) *url_set;
    __typeof__(curl_version_info) *version_info;
} bal_curl;

/* Load it, once. EUNSUPPORTED: it is not installed. */
BAL_CHECK int bal_curl_load(bal_error *err);
/* After that has gone well. */
const bal_curl *bal_curl_use(void);

#endif
