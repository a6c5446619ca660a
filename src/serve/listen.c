/* Sockets by plain calls: libsystemd's part in this is two variables of the
 * environment and a datagram. */
#include "serve/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/error.h"
#include "core/str.h"

enum { BACKLOG = 4096, FIRST_HANDED = 3, FILES_MAX = 1 << 20 };

typedef union address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    struct sockaddr_storage room;
} address;

/* ---- addresses ---------------------------------------------------------- */

static int resolve(address *out, socklen_t *len, const char *host,
                   bal_error *err)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_PASSIVE };
    struct addrinfo *found = NULL;

    int failed = getaddrinfo(host, NULL, &hints, &found);
    if (failed || !found || found->ai_addrlen > sizeof(*out))
        return bal_fail(err, BAL_EINVAL, "'%s' is no address to listen on",
                        host);
    memset(out, 0, sizeof(*out));
    memcpy(out, found->ai_addr, found->ai_addrlen);
    *len = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

static bool is_loopback(const address *where)
{
    if (where->any.sa_family == AF_INET)
        return ntohl(where->four.sin_addr.s_addr) >> 24 == 127;
    return where->any.sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&where->six.sin6_addr);
}

/* What the socket turned out to be. */
static int describe(bal_listener *self, bal_error *err)
{
    char text[INET6_ADDRSTRLEN] = "";
    address where;
    socklen_t len = sizeof(where);

    memset(&where, 0, sizeof(where));
    if (getsockname(self->fd, &where.any, &len))
        return bal_fail_errno(err, "looking at the socket");
    self->loopback = is_loopback(&where);
    self->local = where.any.sa_family == AF_UNIX;
    if (where.any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &where.six.sin6_addr, text, sizeof(text));
        snprintf(self->host, sizeof(self->host), "[%s]", text);
        self->port = ntohs(where.six.sin6_port);
    } else if (where.any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &where.four.sin_addr, text, sizeof(text));
        snprintf(self->host, sizeof(self->host), "%s", text);
        self->port = ntohs(where.four.sin_port);
    } else {
        self->loopback = self->local;
        snprintf(self->host, sizeof(self->host), "localhost");
    }
    return 0;
}

/* ---- sockets ------------------------------------------------------------ */

/* How many sockets were handed to this very process. */
static bool is_handed(void)
{
    const char *pid = getenv("LISTEN_PID");
    const char *count = getenv("LISTEN_FDS");
    uint64_t values[2];

    if (!pid || !count || bal_parse_u64(&values[0], pid, NULL) ||
        bal_parse_u64(&values[1], count, NULL))
        return false;
    return values[0] == (uint64_t)getpid() && values[1] > 0;
}

static void set_flags(int fd)
{
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static int bind_to(int fd, const address *where, socklen_t len,
                   const char *host, uint16_t port, bal_error *err)
{
    int on = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (where->any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind(fd, &where->any, len) || listen(fd, BACKLOG)) {
        (void)bal_fail_errno(err, "listening on '%s', port %u", host, port);
        if (err)
            err->code = BAL_EIO;
        return BAL_EIO;
    }
    return 0;
}

int bal_listener_open(bal_listener *out, const char *host, uint16_t port,
                      bal_error *err)
{
    address where;
    socklen_t len = 0;

    *out = (bal_listener){ .fd = -1 };
    if (is_handed()) {
        out->fd = FIRST_HANDED;
        unsetenv("LISTEN_PID");
        unsetenv("LISTEN_FDS");
        set_flags(out->fd);
        return describe(out, err);
    }
    int rc = resolve(&where, &len, host, err);
    if (rc)
        return rc;
    *(where.any.sa_family == AF_INET6 ? &where.six.sin6_port
                                      : &where.four.sin_port) = htons(port);
    int fd = socket(where.any.sa_family, SOCK_STREAM, 0);
    if (fd < 0)
        return bal_fail_errno(err, "making a socket");
    set_flags(fd);
    rc = bind_to(fd, &where, len, host, port, err);
    out->fd = fd;
    if (!rc)
        rc = describe(out, err);
    if (rc) {
        close(fd);
        out->fd = -1;
    }
    return rc;
}

/* ---- the system --------------------------------------------------------- */

void bal_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    size_t len = path ? strlen(path) : 0;

    if (!len || len >= sizeof(to.sun_path) || (*path != '/' && *path != '@'))
        return;
    memcpy(to.sun_path, path, len);
    if (*path == '@')
        to.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL,
                  (const struct sockaddr *)&to,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
}

unsigned bal_raise_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit))
        return 1024;
    rlim_t most = limit.rlim_max < FILES_MAX ? limit.rlim_max : FILES_MAX;
    if (limit.rlim_cur < most) {
        limit.rlim_cur = most;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        getrlimit(RLIMIT_NOFILE, &limit);
    }
    return limit.rlim_cur < FILES_MAX ? (unsigned)limit.rlim_cur : FILES_MAX;
}
