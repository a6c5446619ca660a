/* Stands in for what is made elsewhere; goes when that is there. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "report/report.h"
#include "serve/daemon.h"
#include "serve/range.h"
#include "serve/spool.h"

#define WEAK __attribute__((weak))

/* ---- streams: one tensor file without a header ----------------------------
 */

struct bal_stream {
    bal_model *model;
    uint64_t size;
};

WEAK int bal_stream_open(bal_stream **out, bal_model *model, bal_error *err)
{
    bal_stream *self = calloc(1, sizeof(*self));

    if (!self)
        return bal_fail_memory(err, "a stream");
    self->model = bal_model_ref(model);
    self->size = bal_model_count(model);
    *out = self;
    return 0;
}

WEAK uint64_t bal_stream_size(const bal_stream *self)
{
    return self->size;
}

WEAK int bal_stream_read(bal_stream *self, uint64_t offset, void *to,
                         size_t len, bal_error *err)
{
    (void)self;
    (void)offset;
    (void)err;
    memset(to, 's', len);
    return 0;
}

WEAK void bal_stream_free(bal_stream *self)
{
    if (!self)
        return;
    bal_model_free(self->model);
    free(self);
}

/* ---- spool: in memory -----------------------------------------------------
 */

struct bal_spooled {
    unsigned references;
    char key[160];
    uint64_t size;
    char *data;
    bal_spooled *next;
};

struct bal_spool {
    bal_spooled *first;
};

static void key_of(char key[160], const char *tenant, const bal_id *commit)
{
    char hex[BAL_ID_HEX + 1];

    bal_id_hex(hex, commit);
    snprintf(key, 160, "%s:%s", tenant, hex);
}

WEAK int bal_spool_new(bal_spool **out, const char *dir, uint64_t limit,
                       bal_error *err)
{
    (void)dir;
    (void)limit;
    *out = calloc(1, sizeof(**out));
    return *out ? 0 : bal_fail_memory(err, "a spool");
}

WEAK void bal_spool_free(bal_spool *self)
{
    while (self && self->first)
        bal_spool_drop(self, self->first);
    free(self);
}

WEAK bal_spooled *bal_spool_find(bal_spool *self, const char *tenant,
                                 const bal_id *commit)
{
    char key[160];

    key_of(key, tenant, commit);
    for (bal_spooled *at = self->first; at; at = at->next) {
        if (strcmp(at->key, key) != 0)
            continue;
        at->references++;
        return at;
    }
    return NULL;
}

WEAK int bal_spool_make(bal_spooled **out, bool *mine, bal_spool *self,
                        const char *tenant, const bal_id *commit, uint64_t size,
                        bal_error *err)
{
    *out = bal_spool_find(self, tenant, commit);
    *mine = !*out;
    if (*out)
        return 0;
    bal_spooled *made = calloc(1, sizeof(*made));
    if (!made)
        return bal_fail_memory(err, "a spool");
    key_of(made->key, tenant, commit);
    made->references = 2;
    made->size = size;
    made->next = self->first;
    self->first = made;
    *out = made;
    return 0;
}

WEAK int bal_spooled_fill(bal_spooled *self, bal_stream *stream,
                          const volatile bool *stop, bal_error *err)
{
    (void)stop;
    self->data = malloc(self->size + 1);
    if (!self->data)
        return bal_fail_memory(err, "a spool");
    return bal_stream_read(stream, 0, self->data, self->size, err);
}

WEAK void bal_spool_drop(bal_spool *self, bal_spooled *gone)
{
    for (bal_spooled **at = &self->first; *at; at = &(*at)->next) {
        if (*at != gone)
            continue;
        *at = gone->next;
        bal_spooled_free(gone);
        return;
    }
}

WEAK uint64_t bal_spooled_size(const bal_spooled *self)
{
    return self->size;
}

WEAK int bal_spooled_fd(const bal_spooled *self)
{
    (void)self;
    return -1;
}

WEAK bal_spooled *bal_spooled_ref(bal_spooled *self)
{
    self->references++;
    return self;
}

WEAK void bal_spooled_free(bal_spooled *self)
{
    if (!self || --self->references)
        return;
    free(self->data);
    free(self);
}

/* ---- the rest --------------------------------------------------------------
 */

WEAK const char *bal_request_query(const bal_request *self, const char *name)
{
    for (size_t i = 0; i < self->query_count; i++) {
        if (!strcmp(self->query[i].name, name))
            return self->query[i].value;
    }
    return NULL;
}

WEAK void bal_reply_done(bal_reply *self)
{
    bal_buf_done(&self->body);
    bal_spooled_free(self->source);
    self->source = NULL;
}

WEAK void bal_reply_header(bal_reply *self, const char *name, const char *value)
{
    if (self->header_count < BAL_REPLY_HEADERS)
        self->headers[self->header_count++] = (bal_field){ name, value };
}

WEAK int bal_reply_range(bal_reply *reply, const bal_request *request,
                         uint64_t size, const char *etag, bal_error *err)
{
    (void)request;
    (void)etag;
    (void)err;
    reply->status = 200;
    reply->offset = 0;
    reply->length = size;
    return 0;
}

WEAK bool bal_etag_named(const char *field, const char *tag, bool weak)
{
    (void)weak;
    return field && strstr(field, tag);
}

WEAK bal_spool *bal_daemon_spool(bal_daemon *self)
{
    (void)self;
    return NULL;
}

WEAK int bal_daemon_metrics(bal_daemon *self, bal_buf *to, bal_error *err)
{
    (void)self;
    return bal_buf_text(to, "", err);
}

WEAK int bal_report_diff(bal_buf *to, bal_tenant *tenant, const bal_id *a,
                         const bal_id *b, bal_work *work, bal_error *err)
{
    (void)tenant;
    (void)a;
    (void)b;
    (void)work;
    return bal_buf_text(to, "{\"schema\":\"ballast/diff/1\"}", err);
}

WEAK int bal_report_proof(bal_buf *to, const bal_proof *proof, bal_store *store,
                          const bal_key *key, bool *verified, bal_error *err)
{
    (void)store;
    (void)key;
    *verified = true;
    return bal_buf_format(to, err,
                          "{\"schema\":\"ballast/forget/1\","
                          "\"attestation\":\"%s\",\"verified\":true}",
                          bal_proof_info_of(proof)->attestation);
}
