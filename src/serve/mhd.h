/* libmicrohttpd, loaded when a server starts: a TLS library and what that needs
 * come with it, and no other command has a use for them. */
#ifndef SERVE_MHD_H
#define SERVE_MHD_H

#include <microhttpd.h>

#include "ballast.h"

/* Its functions, without "MHD_". */
typedef struct bal_mhd {
    __typeof__(MHD_add_response_header) *add_response_header;
    __typeof__(MHD_create_response_from_buffer) *create_response_from_buffer;
    __typeof__(MHD_create_response_from_callback)
        *create_response_from_callback;
    __typeof__(MHD_create_response_from_fd_at_offset64)
        *create_response_from_fd_at_offset64;
    __typeof__(MHD_destroy_response) *destroy_response;
    __typeof__(MHD_get_connection_info) *get_connection_info;
    __typeof__(MHD_get_connection_values_n) *get_connection_values_n;
    __typeof__(MHD_get_version) *get_version;
    __typeof__(MHD_is_feature_supported) *is_feature_supported;
    __typeof__(MHD_queue_response) *queue_response;
    __typeof__(MHD_quiesce_daemon) *quiesce_daemon;
    __typeof__(MHD_resume_connection) *resume_connection;
    __typeof__(MHD_start_daemon) *start_daemon;
    __typeof__(MHD_stop_daemon) *stop_daemon;
    __typeof__(MHD_suspend_connection) *suspend_connection;
} bal_mhd;

/* Load it, once. EUNSUPPORTED: it is not installed. */
BAL_CHECK int bal_mhd_load(bal_error *err);
/* After that has gone well. */
const bal_mhd *bal_mhd_use(void);

#endif
