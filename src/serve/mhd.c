/* libmicrohttpd by dlopen. Its binary interface has been the same since 0.9.43,
 * 1.0 included. */
#include "serve/mhd.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/library.h"

static const char *const names[] = {
    "libmicrohttpd.so.12",
    "libmicrohttpd.12.dylib",
};

#define ROW(name)                                                              \
    {                                                                          \
        "MHD_" #name, offsetof(bal_mhd, name)                                  \
    }

static const bal_library_row functions[] = {
    ROW(add_response_header),
    ROW(create_response_from_buffer),
    ROW(create_response_from_callback),
    ROW(create_response_from_fd_at_offset64),
    ROW(destroy_response),
    ROW(get_connection_info),
    ROW(get_connection_values_n),
    ROW(get_version),
    ROW(is_feature_supported),
    ROW(queue_response),
    ROW(quiesce_daemon),
    ROW(resume_connection),
    ROW(start_daemon),
    ROW(stop_daemon),
    ROW(suspend_connection),
};

enum { FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

_Static_assert(FUNCTIONS * sizeof(void *) == sizeof(bal_mhd),
               "a row for each function");

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bal_mhd table;
static bool loaded;

static const bal_library library = {
    .names = names,
    .name_count = sizeof(names) / sizeof(names[0]),
    .rows = functions,
    .row_count = FUNCTIONS,
};

static void load(void)
{
    loaded = bal_library_load(&table, &library);
}

int bal_mhd_load(bal_error *err)
{
    pthread_once(&once, load);
    if (loaded)
        return 0;
    return bal_hint(err,
                    bal_fail(err, BAL_EUNSUPPORTED,
                             "there is no libmicrohttpd to serve HTTP with"),
                    "install it: libmicrohttpd12, libmicrohttpd");
}

const bal_mhd *bal_mhd_use(void)
{
    return &table;
}
