/* The parts put together, and libmicrohttpd over them. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/cores.h"
#include "core/error.h"
#include "core/file.h"
#include "serve/turn.h"

enum {
    MEMORY_EACH = 128 << 10,
    SILENCE = 30,
    PEM_MAX = 1 << 20,
    CACHE_ENTRIES = 1024,
    CACHE_BYTES = 64 << 20,
    CONNECTIONS_MAX = 64 << 10,
    FILES_SPARE = 1024,
    OPTIONS = 24,
};

static const uint64_t gib = 1 << 30;

/* ---- for the other parts ------------------------------------------------ */

bal_spool *bal_daemon_spool(bal_daemon *self)
{
    return self->spool;
}

const char *bal_daemon_home(const bal_daemon *self)
{
    return bal_home_path(self->home);
}

int bal_daemon_metrics(bal_daemon *self, bal_buf *to, bal_error *err)
{
    bal_metrics_set(self->metrics, BAL_COUNT_QUEUE,
                    (int64_t)bal_workers_waiting(self->workers));
    bal_metrics_set(self->metrics, BAL_COUNT_SPOOL,
                    (int64_t)bal_spool_bytes(self->spool));
    return bal_metrics_text(self->metrics, to, err);
}

/* Numbers of another database may be those of the one before. */
static int follow_watched(bal_daemon *self)
{
    bal_store_options options = self->options->store;
    bal_store *store = NULL;

    options.work = self->work;
    options.flags &= ~(unsigned)(BAL_OPEN_CREATE | BAL_OPEN_INIT);
    int rc = bal_store_open(&store, &options, NULL);
    if (rc)
        return rc;
    bal_store_free(self->watched);
    self->watched = store;
    self->moves++;
    return 0;
}

int bal_daemon_changes(bal_daemon *self, uint64_t *out)
{
    pthread_mutex_lock(&self->watching);
    int rc = bal_store_changes(out, self->watched, NULL);
    if (rc == BAL_ECONFLICT) {
        rc = follow_watched(self);
        if (!rc)
            rc = bal_store_changes(out, self->watched, NULL);
    }
    *out ^= self->moves << 48;
    pthread_mutex_unlock(&self->watching);
    return rc;
}

static bool stays(void *ctx, const char *name, const bal_id *commit)
{
    BAL_OWN(bal_tenant) tenant = NULL;
    BAL_OWN(bal_model) model = NULL;
    int rc = bal_tenant_open(&tenant, ctx, name, NULL);

    if (!rc)
        rc = bal_model_from_commit(&model, tenant, commit, NULL);
    return rc != BAL_ENOTFOUND && rc != BAL_EBROKEN;
}

void bal_daemon_sift(bal_daemon *self)
{
    bal_store_options options = self->options->store;
    BAL_OWN(bal_store) store = NULL;
    uint64_t changes = 0;

    if (!bal_spool_bytes(self->spool) || bal_daemon_changes(self, &changes) ||
        changes == self->sifted)
        return;
    options.work = self->sifting;
    options.flags &= ~(unsigned)(BAL_OPEN_CREATE | BAL_OPEN_INIT);
    if (bal_store_open(&store, &options, NULL))
        return;
    self->sifted = changes;
    bal_spool_sift(self->spool, stays, store);
}

void bal_daemon_suspend(bal_daemon *self, struct MHD_Connection *connection)
{
    atomic_fetch_add(&self->suspended, 1);
    self->mhd->suspend_connection(connection);
}

void bal_daemon_resume(bal_daemon *self, struct MHD_Connection *connection)
{
    self->mhd->resume_connection(connection);
    atomic_fetch_sub(&self->suspended, 1);
}

int64_t bal_daemon_busy(const bal_daemon *self)
{
    return bal_metrics_get(self->metrics, BAL_COUNT_IN_FLIGHT);
}

/* ---- what libmicrohttpd calls ------------------------------------------- */

static void *on_uri(void *ctx, const char *uri,
                    struct MHD_Connection *connection)
{
    return bal_turn_new(ctx, connection, uri);
}

/* Paths are decoded in uri.c, after they were cut. */
static size_t leave_escaped(void *ctx, struct MHD_Connection *connection,
                            char *text)
{
    (void)ctx;
    (void)connection;
    return strlen(text);
}

/* libmicrohttpd calls with eight parameters; three of them are one thing. */
#define REQUEST_LINE const char *url, const char *method, const char *version

static enum MHD_Result /* NOLINTNEXTLINE: as many as it says */
on_request(void *ctx, struct MHD_Connection *connection, REQUEST_LINE,
           const char *data, size_t *len, void **turn)
{
    (void)ctx;
    (void)connection;
    (void)url;
    return *turn ? bal_turn_step(*turn, method, version, data, len) : MHD_NO;
}

static void on_completed(void *ctx, struct MHD_Connection *connection,
                         void **turn, enum MHD_RequestTerminationCode why)
{
    (void)ctx;
    (void)connection;
    if (*turn)
        bal_turn_end(*turn, why == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    *turn = NULL;
}

/* What get_connection_info gives is good until it is called again. */
static int fd_of(const bal_daemon *self, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = self->mhd->get_connection_info(
        connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    return info ? info->connect_fd : -1;
}

static const struct sockaddr *peer_of(const bal_daemon *self,
                                      struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = self->mhd->get_connection_info(
        connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

    return info ? info->client_addr : NULL;
}

static void on_connection(void *ctx, struct MHD_Connection *connection,
                          void **link, enum MHD_ConnectionNotificationCode what)
{
    bal_daemon *self = ctx;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        int fd = fd_of(self, connection);
        *link = bal_links_add(self->links, fd, peer_of(self, connection));
        bal_metrics_add(self->metrics, BAL_COUNT_CONNECTIONS, 1);
        bal_metrics_add(self->metrics, BAL_COUNT_OPEN, 1);
        return;
    }
    bal_metrics_add(self->metrics, BAL_COUNT_OPEN, -1);
    if (*link)
        bal_links_remove(self->links, *link);
    *link = NULL;
}

/* ---- making ------------------------------------------------------------- */

static int load_tls(bal_daemon *self, bal_error *err)
{
    const bal_serve_options *options = self->options;

    if (!options->cert)
        return 0;
    if (self->mhd->is_feature_supported(MHD_FEATURE_SSL) != MHD_YES)
        return bal_fail(err, BAL_EUNSUPPORTED,
                        "this libmicrohttpd was built without TLS");
    int rc = bal_file_slurp(&self->cert, options->cert, PEM_MAX, err);
    if (!rc)
        rc = bal_file_slurp(&self->key, options->key, PEM_MAX, err);
    return rc;
}

/* The store that is asked whether anything has changed. */
static int open_watched(bal_daemon *self, bal_error *err)
{
    bal_store_options options = self->options->store;

    int rc = bal_work_new(&self->work, 1, err);
    if (!rc)
        rc = bal_work_new(&self->sifting, 1, err);
    if (rc)
        return rc;
    options.work = self->work;
    rc = bal_store_open(&self->watched, &options, err);
    if (rc)
        return rc;
    return bal_home_make(&self->home, bal_store_root(self->watched), err);
}

static int make_parts(bal_daemon *self, bal_error *err)
{
    const bal_serve_options *options = self->options;
    unsigned cores = bal_cores_usable();
    unsigned workers = options->workers ? options->workers : cores;

    if (!options->workers && workers < 4)
        workers = 4;
    int rc = bal_metrics_new(&self->metrics, err);
    if (!rc)
        rc = bal_limits_new(&self->limits, options->rate,
                            options->streams ? options->streams : 256, err);
    if (!rc)
        rc = bal_reply_cache_new(&self->cache, CACHE_ENTRIES, CACHE_BYTES, err);
    if (!rc)
        rc = bal_spool_new(&self->spool, bal_home_path(self->home),
                           options->spool ? options->spool : 4 * gib, err);
    if (!rc)
        rc = bal_links_new(&self->links,
                           options->deadline > 0 ? options->deadline : 600,
                           !options->cert, self->metrics, err);
    if (!rc)
        rc = bal_workers_new(&self->workers, workers, &options->store,
                             &self->stopped, err);
    return rc;
}

int bal_daemon_new(bal_daemon **out, const bal_serve_options *options,
                   bal_error *err)
{
    int rc = bal_mhd_load(err);
    if (rc)
        return rc;
    BAL_OWN(bal_daemon) self = calloc(1, sizeof(*self));
    if (!self)
        return bal_fail_memory(err, "starting the server");
    self->options = options;
    self->mhd = bal_mhd_use();
    self->max_body = options->max_body ? options->max_body : 8 * gib;
    pthread_mutex_init(&self->watching, NULL);
    rc = bal_log_kind_of(&self->log, options->log, err);
    if (!rc)
        rc = bal_keyring_new(&self->keyring, options->tokens, err);
    if (!rc)
        rc = load_tls(self, err);
    if (!rc)
        rc = open_watched(self, err);
    if (!rc)
        rc = make_parts(self, err);
    if (rc)
        return rc;
    *out = BAL_TAKE(self);
    return 0;
}

/* ---- serving ------------------------------------------------------------ */

typedef struct option_list {
    struct MHD_OptionItem items[OPTIONS];
    size_t count;
} option_list;

static void option(option_list *list, enum MHD_OPTION what, intptr_t value,
                   void *pointer)
{
    list->items[list->count++] =
        (struct MHD_OptionItem){ what, value, pointer };
}

static unsigned connections(void)
{
    unsigned files = bal_raise_files();
    unsigned most = files > 2 * FILES_SPARE ? files - FILES_SPARE : files / 2;

    return most < CONNECTIONS_MAX ? most : CONNECTIONS_MAX;
}

static void set_options(bal_daemon *self, option_list *list, int fd)
{
    unsigned threads = bal_cores_usable();

    option(list, MHD_OPTION_LISTEN_SOCKET, fd, NULL);
    option(list, MHD_OPTION_CONNECTION_MEMORY_LIMIT, MEMORY_EACH, NULL);
    option(list, MHD_OPTION_CONNECTION_LIMIT, connections(), NULL);
    option(list, MHD_OPTION_CONNECTION_TIMEOUT, SILENCE, NULL);
    option(list, MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL);
    option(list, MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)on_uri, self);
    option(list, MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)leave_escaped, self);
    option(list, MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_completed, self);
    option(list, MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, self);
    if (threads > 1)
        option(list, MHD_OPTION_THREAD_POOL_SIZE, threads, NULL);
    if (self->cert.len) {
        option(list, MHD_OPTION_HTTPS_MEM_CERT, 0, self->cert.data);
        option(list, MHD_OPTION_HTTPS_MEM_KEY, 0, self->key.data);
    }
    option(list, MHD_OPTION_END, 0, NULL);
}

int bal_daemon_start(bal_daemon *self, int fd, bal_error *err)
{
    option_list list = { .count = 0 };
    unsigned flags =
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_SUSPEND_RESUME | MHD_USE_ITC;

    set_options(self, &list, fd);
    if (self->cert.len)
        flags |= MHD_USE_TLS;
    self->http =
        self->mhd->start_daemon(flags, 0, NULL, NULL, on_request, self,
                                MHD_OPTION_ARRAY, list.items, MHD_OPTION_END);
    if (self->http)
        return 0;
    close(fd);
    return bal_fail(err, self->cert.len ? BAL_EINVAL : BAL_EIO, "%s",
                    self->cert.len
                        ? "the server did not start: certificate and key are "
                          "no PEM files of one another"
                        : "the server did not start");
}

void bal_daemon_quiesce(bal_daemon *self)
{
    atomic_store(&self->stopping, true);
    int fd = self->mhd->quiesce_daemon(self->http);
    if (fd >= 0)
        close(fd);
}

/* Connections that sleep have to be woken before libmicrohttpd may be stopped:
 * by workers that are done, and by files that fail. */
static bool all_woken(bal_daemon *self)
{
    for (int i = 0; i < 1000 && atomic_load(&self->suspended); i++)
        bal_clock_sleep(0.01);
    return !atomic_load(&self->suspended);
}

void bal_daemon_free(bal_daemon *self)
{
    if (!self)
        return;
    atomic_store(&self->stopping, true);
    __atomic_store_n(&self->stopped, true, __ATOMIC_RELEASE);
    /* Requests come until libmicrohttpd has stopped, and are refused. */
    bal_workers_end(self->workers);
    if (self->http && !all_woken(self))
        return; /* its threads use what would be freed */
    if (self->http)
        self->mhd->stop_daemon(self->http);
    bal_workers_free(self->workers);
    bal_links_free(self->links);
    bal_reply_cache_free(self->cache);
    bal_spool_free(self->spool);
    bal_limits_free(self->limits);
    bal_keyring_free(self->keyring);
    bal_metrics_free(self->metrics);
    bal_home_free(self->home);
    bal_store_free(self->watched);
    bal_work_free(self->work);
    bal_work_free(self->sifting);
    bal_buf_done(&self->cert);
    bal_buf_done(&self->key);
    pthread_mutex_destroy(&self->watching);
    free(self);
}
