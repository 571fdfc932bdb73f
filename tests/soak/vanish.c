#include "tests/soak/vanish.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

#define CALLS 20u       /* of a client that pipelines */
#define REPLY_PART 1000 /* bytes read of a reply */

static void
put_word(struct buf *out, uint32_t word)
{
    unsigned char bytes[4] = {(unsigned char)(word >> 24), (unsigned char)(word >> 16),
                              (unsigned char)(word >> 8), (unsigned char)word};

    buf_append(out, bytes, sizeof(bytes));
}

/* A record with a call of PROXY_GET, version 2 (RFC 5531), without credentials. */
static void
put_call(struct buf *out, uint32_t xid, const char *url)
{
    uint32_t len = (uint32_t)strlen(url), padded = (len + 3) & ~3u;

    put_word(out, 0x80000000u | (10 * 4 + 4 + padded + 2 * 4));
    put_word(out, xid);
    put_word(out, CALL);
    put_word(out, RPC_MSG_VERSION);
    put_word(out, PROXY_FETCHPROG);
    put_word(out, PROXY_VERS2);
    put_word(out, PROXY_GET);
    for (unsigned i = 0; i < 4; i++)
        put_word(out, 0); /* AUTH_NONE twice, both empty */
    put_word(out, len);
    buf_append(out, url, len);
    buf_append(out, "\0\0", padded - len);
    put_word(out, 0); /* no headers */
    put_word(out, 0); /* no flags */
}

static bool
send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

static bool
receive_part(int fd, size_t len)
{
    char part[REPLY_PART];

    while (len > 0) {
        ssize_t n = recv(fd, part, len < sizeof(part) ? len : sizeof(part), 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        len -= (size_t)n;
    }
    return true;
}

const char *
vanish(const struct mix_ask *ask, const struct lane_address *to)
{
    const struct timeval patience = {.tv_sec = 60};
    const struct linger reset = {.l_onoff = 1};
    enum mix_kind kind = ask->row->kind;
    const char *wrong = NULL;
    struct buf calls;
    int fd = socket(to->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return strerror(errno);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    buf_init(&calls, 1u << 20);
    for (unsigned i = 0; i < (kind == MIX_VANISH_PIPELINED ? CALLS : 1); i++)
        put_call(&calls, ask->draw + i, ask->url);
    if (buf_failed(&calls))
        wrong = "out of memory";
    else if (connect(fd, (const struct sockaddr *)&to->address, to->len) != 0 ||
             !send_all(fd, calls.data, kind == MIX_VANISH_IN_CALL ? calls.len / 2 : calls.len))
        wrong = strerror(errno);
    else if (kind == MIX_VANISH_IN_REPLY && !receive_part(fd, REPLY_PART))
        wrong = "the reply does not come";
    if (ask->draw % 2)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(fd);
    buf_free(&calls);
    return wrong;
}
