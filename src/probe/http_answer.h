/* One probe as a server is asked it, and its answer. */
#ifndef PROBE_HTTP_ANSWER_H
#define PROBE_HTTP_ANSWER_H

#include "probe/http_server.h"

/* What is asked of which model. */
typedef struct bal_http_ask {
    const bal_server *server;
    const bal_served *served;
    const bal_ask_options *options;
    const char *salt; /* of this run */
    unsigned top[2];  /* likely tokens to ask for, by bal_api; 0: none */
} bal_http_ask;

bal_api bal_probe_api(const bal_probe *probe);
/* "/v1/completions". */
const char *bal_api_path(bal_api api);
/* Append the request's body. */
BAL_CHECK int bal_http_write(bal_buf *body, const bal_http_ask *self,
                             const bal_probe *probe, bal_error *err);

/* An answer that was read. Zero is empty; answer borrows from the rest. */
typedef struct bal_http_reply {
    bal_answer answer;
    const char *build; /* system_fingerprint, NULL: not told */
    bool thought;      /* text of a reasoning model was left out */
    json_t *value;
    bal_arena arena;
} bal_http_reply;

/* EIO: it is no answer, or not that model's, or has fewer log-probabilities
 * than tokens. body is written to. Tokens that may be several, because their
 * text is not whole or there twice, are left out of the likely ones. */
BAL_CHECK int bal_http_reply_init(bal_http_reply *self, const bal_http_ask *ask,
                                  bal_api api, bal_buf *body, bal_error *err);
void bal_http_reply_done(bal_http_reply *self);
/* The same text, tokens and log-probabilities, bit for bit. */
bool bal_http_reply_same(const bal_http_reply *a, const bal_http_reply *b);

#endif
