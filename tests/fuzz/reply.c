/*
 * A reply as the client reads it (RFC 5531 section 9). The first byte chooses the procedure whose
 * result is decoded; the stream of the rest goes through record marking as it does from a server.
 */
#include "proxy.h"
#include "rpc/client_reply.h"
#include "rpc/client_stream.h"
#include "tests/fuzz/fuzz.h"

#include <sys/socket.h>
#include <unistd.h>

static const struct {
    xdrproc_t decode;
    size_t size;
} results[] = {
    {(xdrproc_t)xdr_webpageResponse, sizeof(webpageResponse)},
    {(xdrproc_t)xdr_proxy_fetch_result, sizeof(proxy_fetch_result)},
    {(xdrproc_t)xdr_proxy_stats, sizeof(proxy_stats)},
    {(xdrproc_t)xdr_proxy_purge_result, sizeof(proxy_purge_result)},
    {(xdrproc_t)xdr_proxy_set_result, sizeof(proxy_set_result)},
    {(xdrproc_t)xdr_proxy_read_result, sizeof(proxy_read_result)},
    {(xdrproc_t)xdr_proxy_status, sizeof(proxy_status)},
    {NULL, 0},
};

enum { MAX_RECORD = 65536 };

static void
check_reply(struct span record, unsigned which)
{
    xdrproc_t decode = results[which].decode;
    void *result = calloc(1, results[which].size + 1);

    FUZZ_CHECK(result);
    if (client_reply_read(record, decode, result) == RPC_CLIENT_OK && decode)
        xdr_free(decode, result);
    free(result);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span input = span_of(data, size), record;
    unsigned which = fuzz_byte(&input) % (sizeof(results) / sizeof(results[0]));
    struct client_stream stream;
    int ends[2];

    check_reply(input, which);
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    if (input.len > MAX_RECORD)
        input.len = MAX_RECORD; /* a socket takes this much without a reader */
    FUZZ_CHECK(write(ends[1], input.ptr, input.len) == (ssize_t)input.len);
    close(ends[1]);
    client_stream_init(&stream, ends[0], 4096);
    do {
        while (client_stream_next(&stream, &record) == CLIENT_STREAM_OK) {
            FUZZ_CHECK(record.len <= 4096);
            check_reply(record, which);
        }
    } while (client_stream_receive(&stream) == CLIENT_STREAM_OK);
    client_stream_free(&stream);
    return 0;
}
