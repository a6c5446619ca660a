/* What this library is and what it stands on. */
#include <openssl/crypto.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <yaml.h>
#include <zstd.h>

#include "ballast.h"

#include "core/curl.h"
#include "core/json.h"
#include "kernel/kernels.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char details[256];

static const char *curl_version_text(void)
{
    return bal_curl_load(NULL)
               ? "none"
               : bal_curl_use()->version_info(CURLVERSION_NOW)->version;
}

static void write_details(void)
{
    snprintf(details, sizeof(details),
             "zstd %s\nsqlite %s\njansson %s\nlibyaml %s\nopenssl %s\n"
             "libcurl %s\ninstruction set %s\n",
             ZSTD_versionString(), sqlite3_libversion(), JANSSON_VERSION,
             yaml_get_version_string(), OpenSSL_version(OPENSSL_VERSION_STRING),
             curl_version_text(), bal_kernels_use()->isa);
}

const char *bal_version(void)
{
    return BAL_VERSION;
}

const char *bal_version_details(void)
{
    pthread_once(&once, write_details);
    return details;
}
