/* What is tried again, when, and how a failure is told. The waits are drawn
 * from the whole of [0, time] ("full jitter"): clients that were turned away
 * together do not come back together. */
#include <errno.h>

#include "core/error.h"
#include "core/http_inside.h"

static const double first_pause = 0.25; /* seconds */
static const double longest_pause = 8;

/* What is to be said of libcurl's codes; those without a row are told in its
 * own words and not tried again. */
static const struct {
    CURLcode code;
    bool again;
    const char *words;
} rows[] = {
    { CURLE_COULDNT_RESOLVE_HOST, true, "the host's name is not known" },
    { CURLE_COULDNT_RESOLVE_PROXY, true, "the proxy's name is not known" },
    { CURLE_COULDNT_CONNECT, true, "cannot be reached" },
    { CURLE_SEND_ERROR, true, "the connection broke" },
    { CURLE_RECV_ERROR, true, "the connection broke" },
    { CURLE_GOT_NOTHING, true, "the connection was closed without an answer" },
    { CURLE_PARTIAL_FILE, true, "the answer was cut off" },
    { CURLE_UNSUPPORTED_PROTOCOL, false, "what answers is not HTTP" },
    { CURLE_WEIRD_SERVER_REPLY, false, "what answers is not HTTP" },
    { CURLE_PEER_FAILED_VERIFICATION, false, "its certificate is not trusted" },
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

bool bal_http_again(const bal_http_end *end)
{
    if (end->code == CURLE_OK)
        return end->status == 429 || end->status == 503;
    if (end->code == CURLE_OPERATION_TIMEDOUT)
        return !end->connected;
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].code == end->code)
            return rows[i].again;
    }
    return false;
}

/* In [0, 1), by splitmix64 (Steele, Lea, Flood 2014). */
static double draw(uint64_t *random)
{
    uint64_t z = *random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

double bal_http_pause(uint64_t *random, unsigned tries, double asked)
{
    double most = first_pause;

    while (tries-- && most < longest_pause)
        most *= 2;
    return asked + draw(random) * most;
}

int bal_http_failed(const bal_http_place *place, const bal_http_end *end,
                    double seconds, bal_error *err)
{
    const char *where = bal_buf_string(&place->text);

    if (end->code == CURLE_OUT_OF_MEMORY)
        return bal_fail_memory(err, where);
    if (end->code == CURLE_OPERATION_TIMEDOUT)
        return bal_fail(err, BAL_EIO, "'%s': no answer within %.3g s", where,
                        seconds);
    if (end->code == CURLE_COULDNT_CONNECT && end->os) {
        errno = (int)end->os;
        return bal_fail_errno(err, "'%s' cannot be reached", where);
    }
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].code == end->code)
            return bal_fail(err, BAL_EIO, "'%s': %s", where, rows[i].words);
    }
    return bal_fail(err, BAL_EIO, "'%s': %s", where,
                    end->text[0] ? end->text
                                 : bal_curl_use()->easy_strerror(end->code));
}
