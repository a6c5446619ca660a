/* One lock guards the list; phases are told without it. A link is taken from
 * the list before its socket is closed, so that who holds the lock never shuts
 * somebody else's. */
#include "serve/links.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "core/clock.h"
#include "core/error.h"

/* TCP_CLOSE_WAIT is in netinet/tcp.h, which does not go with linux/tcp.h. */
enum { PEER_ROOM = INET6_ADDRSTRLEN, CLOSE_WAIT = 8 };

static const double head_deadline = 10;

static const char too_slow[] = "{\"error\":{\"code\":\"usage\",\"message\":"
                               "\"the request took too long\"}}\n";

struct bal_link {
    bal_link *next, *before;
    int fd;
    bool plain, local;
    atomic_int phase;
    atomic_int_fast64_t since;        /* ms of bal_clock_ticks */
    atomic_uint_fast64_t before_head; /* bytes that had come */
    int64_t left_since; /* the sweeper's: `since` when the peer had left */
    char peer[PEER_ROOM];
};

struct bal_links {
    pthread_mutex_t lock;
    pthread_cond_t stopping;
    pthread_t sweeper;
    bool stop, plain;
    double deadline;
    bal_metrics *metrics;
    bal_link *first;
};

static int64_t now_ms(void)
{
    return (int64_t)(bal_clock_ticks() * 1000);
}

/* ---- peers -------------------------------------------------------------- */

static void set_peer6(bal_link *self, const struct in6_addr *address)
{
    bool mapped = IN6_IS_ADDR_V4MAPPED(address);

    self->local = IN6_IS_ADDR_LOOPBACK(address) ||
                  (mapped && address->s6_addr[12] == 127);
    inet_ntop(AF_INET6, address, self->peer, PEER_ROOM);
}

static void set_peer(bal_link *self, const struct sockaddr *peer)
{
    struct sockaddr_in6 six;
    struct sockaddr_in four;

    snprintf(self->peer, PEER_ROOM, "-");
    if (!peer)
        return;
    self->local = peer->sa_family == AF_UNIX;
    if (peer->sa_family == AF_INET6) {
        memcpy(&six, peer, sizeof(six));
        set_peer6(self, &six.sin6_addr);
    } else if (peer->sa_family == AF_INET) {
        memcpy(&four, peer, sizeof(four));
        self->local = ntohl(four.sin_addr.s_addr) >> 24 == 127;
        inet_ntop(AF_INET, &four.sin_addr, self->peer, PEER_ROOM);
    }
}

const char *bal_link_peer(const bal_link *self)
{
    return self->peer;
}

bool bal_link_local(const bal_link *self)
{
    return self->local;
}

/* ---- phases ------------------------------------------------------------- */

/* Bytes that came through the socket so far; 0: not known. */
static uint64_t received(int fd)
{
    struct tcp_info info;
    socklen_t len = sizeof(info);

    memset(&info, 0, sizeof(info));
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
        return 0;
    return info.tcpi_bytes_received;
}

void bal_link_phase(bal_link *self, bal_phase phase)
{
    if (phase == BAL_PHASE_IDLE)
        atomic_store(&self->before_head, received(self->fd));
    if (phase != BAL_PHASE_HEAD || atomic_load(&self->phase) != BAL_PHASE_HEAD)
        atomic_store(&self->since, now_ms());
    atomic_store(&self->phase, phase);
}

static const struct {
    int status;
    const char *reason;
} reasons[] = {
    { 400, "Bad Request" },         { 403, "Forbidden" },
    { 404, "Not Found" },           { 405, "Method Not Allowed" },
    { 408, "Request Timeout" },     { 413, "Content Too Large" },
    { 414, "URI Too Long" },        { 429, "Too Many Requests" },
    { 503, "Service Unavailable" },
};

static const char *reason_of(int status)
{
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (reasons[i].status == status)
            return reasons[i].reason;
    }
    return "Refused";
}

void bal_link_refuse(bal_link *self, int status, const char *body)
{
    bool again = status == 429 || status == 503;
    char text[1024];

    int len = snprintf(text, sizeof(text),
                       "HTTP/1.1 %d %s\r\nConnection: close\r\n%s"
                       "content-type: application/json\r\n"
                       "cache-control: no-store\r\n"
                       "Content-Length: %zu\r\n\r\n%s",
                       status, reason_of(status),
                       again ? "retry-after: 1\r\n" : "", strlen(body), body);
    if (self->plain && len > 0 && len < (int)sizeof(text))
        (void)!send(self->fd, text, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(self->fd, self->plain ? SHUT_WR : SHUT_RDWR);
}

bool bal_link_plain(const bal_link *self)
{
    return self->plain;
}

/* ---- the thread --------------------------------------------------------- */

static bool is_late(const bal_links *self, bal_link *link, int64_t now)
{
    double seconds = (double)(now - atomic_load(&link->since)) / 1000;
    int phase = atomic_load(&link->phase);

    if (phase == BAL_PHASE_IDLE &&
        received(link->fd) > atomic_load(&link->before_head)) {
        atomic_store(&link->since, now);
        /* Unless its thread has come further meanwhile. */
        atomic_compare_exchange_strong(&link->phase, &phase, BAL_PHASE_HEAD);
    }
    return (phase == BAL_PHASE_HEAD && seconds > head_deadline) ||
           (phase == BAL_PHASE_BODY && seconds > self->deadline);
}

/* Has the peer ended its side, and all that it sent was read? */
static bool has_left(int fd)
{
    struct tcp_info info;
    socklen_t len = sizeof(info);
    int unread = 0;

    memset(&info, 0, sizeof(info));
    return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
           info.tcpi_state == CLOSE_WAIT && !ioctl(fd, FIONREAD, &unread) &&
           !unread;
}

/* In the middle of a request, the second time that it is looked at: an end that
 * comes with the last bytes is not told by epoll once more. */
static bool is_left(bal_link *link)
{
    int phase = atomic_load(&link->phase);
    int64_t since = atomic_load(&link->since);
    bool left = (phase == BAL_PHASE_HEAD || phase == BAL_PHASE_BODY) &&
                has_left(link->fd);
    bool again = left && link->left_since == since;

    link->left_since = left ? since : 0;
    return again;
}

static void sweep_locked(bal_links *self)
{
    int64_t now = now_ms();

    for (bal_link *link = self->first; link; link = link->next) {
        if (is_left(link))
            shutdown(link->fd, SHUT_RDWR);
        if (!is_late(self, link, now))
            continue;
        bal_metrics_add(self->metrics, BAL_COUNT_TIMEOUT, 1);
        bal_link_refuse(link, 408, too_slow);
        shutdown(link->fd, SHUT_RDWR);
        atomic_store(&link->phase, BAL_PHASE_REPLY);
    }
}

static void *sweep(void *ctx)
{
    bal_links *self = ctx;

    pthread_mutex_lock(&self->lock);
    while (!self->stop) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec++;
        pthread_cond_timedwait(&self->stopping, &self->lock, &until);
        if (!self->stop)
            sweep_locked(self);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

int bal_links_new(bal_links **out, double deadline, bool plain,
                  bal_metrics *metrics, bal_error *err)
{
    bal_links *self = calloc(1, sizeof(*self));
    pthread_condattr_t attributes;

    if (!self)
        return bal_fail_memory(err, "starting the server");
    self->deadline = deadline;
    self->plain = plain;
    self->metrics = metrics;
    pthread_mutex_init(&self->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&self->stopping, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&self->sweeper, NULL, sweep, self)) {
        free(self);
        return bal_fail(err, BAL_EIO, "a thread could not be started");
    }
    *out = self;
    return 0;
}

void bal_links_free(bal_links *self)
{
    if (!self)
        return;
    pthread_mutex_lock(&self->lock);
    self->stop = true;
    pthread_cond_signal(&self->stopping);
    pthread_mutex_unlock(&self->lock);
    pthread_join(self->sweeper, NULL);
    while (self->first)
        bal_links_remove(self, self->first);
    pthread_cond_destroy(&self->stopping);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

bal_link *bal_links_add(bal_links *self, int fd, const struct sockaddr *peer)
{
    bal_link *link = calloc(1, sizeof(*link));

    if (!link)
        return NULL;
    link->fd = fd;
    link->plain = self->plain;
    set_peer(link, peer);
    atomic_store(&link->since, now_ms());
    pthread_mutex_lock(&self->lock);
    link->next = self->first;
    if (self->first)
        self->first->before = link;
    self->first = link;
    pthread_mutex_unlock(&self->lock);
    return link;
}

void bal_links_remove(bal_links *self, bal_link *link)
{
    pthread_mutex_lock(&self->lock);
    *(link->before ? &link->before->next : &self->first) = link->next;
    if (link->next)
        link->next->before = link->before;
    pthread_mutex_unlock(&self->lock);
    free(link);
}
