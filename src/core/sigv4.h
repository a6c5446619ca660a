/* AWS Signature Version 4 as S3 has it: in the Authorization header, the path
 * encoded once. Our own, because libcurl's differs from one version to the next
 * and is refused by strict servers (docs/decisions/025). */
#ifndef CORE_SIGV4_H
#define CORE_SIGV4_H

#include "core/sha256.h"

/* Whose requests; borrowed texts. The secret is in nothing that is made. */
typedef struct bal_sigv4_keys {
    const char *access;
    const char *secret;
    const char *session; /* a token of temporary keys, NULL: none */
} bal_sigv4_keys;

/* Of a query, both as they are, not encoded; of the headers, the name in lower
 * case. */
typedef struct bal_sigv4_pair {
    const char *name;
    const char *value;
} bal_sigv4_pair;

typedef struct bal_sigv4_request {
    const char *method;
    const char *path; /* as it is sent: encoded, from '/' on */
    const bal_sigv4_pair *query;
    size_t query_count;
    const bal_sigv4_pair *headers; /* all that are signed, in any order */
    size_t header_count;
    const char *payload; /* what x-amz-content-sha256 says */
} bal_sigv4_request;

/* When and where: what a signature is good for. */
typedef struct bal_sigv4_scope {
    const char *region;
    const char *service; /* "s3" */
    int64_t at;          /* nanoseconds since 1970 */
} bal_sigv4_scope;

#define BAL_SIGV4_PAIRS_MAX 24
#define BAL_SIGV4_UNSIGNED  "UNSIGNED-PAYLOAD"

/* "20130524T000000Z": what x-amz-date says. */
void bal_sigv4_date(char out[17], int64_t at);
/* Append text with every byte but A-Z a-z 0-9 - . _ ~ as %XX; slash: '/' stays
 * as well. */
enum bal_sigv4_encoding { BAL_SIGV4_SLASH = 1 };
BAL_CHECK int bal_sigv4_encode(bal_buf *to, const char *text, unsigned flags,
                               bal_error *err);
/* Append the query as it is signed and sent: encoded, in order, "" for none. */
BAL_CHECK int bal_sigv4_query(bal_buf *to, const bal_sigv4_pair *query,
                              size_t count, bal_error *err);
/* Append the value of the Authorization header. */
BAL_CHECK int bal_sigv4_sign(bal_buf *to, const bal_sigv4_keys *keys,
                             const bal_sigv4_scope *scope,
                             const bal_sigv4_request *request, bal_error *err);

#endif
