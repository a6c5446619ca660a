/* libmicrohttpd by dlopen. Its binary interface has been the same since 0.9.43,
 * 1.0 included. */
#include "serve/mhd.h"

#include <stddef.h>

#include "core/library.h"

static const char *const names[] = {
    "libmicrohttpd.so.12",
    "libmicrohttpd.12.dylib",
};

static const bal_library_row functions[] = {
    { "MHD_add_response_header", offsetof(bal_mhd, add_response_header) },
    { "MHD_create_response_from_buffer",
      offsetof(bal_mhd, create_response_from_buffer) },
    { "MHD_create_response_from_callback",
      offsetof(bal_mhd, create_response_from_callback) },
    { "MHD_create_response_from_fd_at_offset64",
      offsetof(bal_mhd, create_response_from_fd_at_offset64) },
    { "MHD_destroy_response", offsetof(bal_mhd, destroy_response) },
    { "MHD_get_connection_info", offsetof(bal_mhd, get_connection_info) },
    { "MHD_get_connection_values_n",
      offsetof(bal_mhd, get_connection_values_n) },
    { "MHD_get_version", offsetof(bal_mhd, get_version) },
    { "MHD_is_feature_supported", offsetof(bal_mhd, is_feature_supported) },
    { "MHD_queue_response", offsetof(bal_mhd, queue_response) },
    { "MHD_quiesce_daemon", offsetof(bal_mhd, quiesce_daemon) },
    { "MHD_resume_connection", offsetof(bal_mhd, resume_connection) },
    { "MHD_start_daemon", offsetof(bal_mhd, start_daemon) },
    { "MHD_stop_daemon", offsetof(bal_mhd, stop_daemon) },
    { "MHD_suspend_connection", offsetof(bal_mhd, suspend_connection) },
};

enum { FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

_Static_assert(FUNCTIONS * sizeof(void *) == sizeof(bal_mhd),
               "a row for each function");

static bal_mhd table;

static bal_library library = {
    .names = names,
    .name_count = sizeof(names) / sizeof(names[0]),
    .rows = functions,
    .row_count = FUNCTIONS,
    .table = &table,
    .lack = "there is no libmicrohttpd to serve HTTP with",
    .packages = "libmicrohttpd12, libmicrohttpd",
};

int bal_mhd_load(bal_error *err)
{
    return bal_library_need(&library, err);
}

const bal_mhd *bal_mhd_use(void)
{
    return &table;
}
