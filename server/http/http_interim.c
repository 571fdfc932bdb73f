#include "server/http/http_interim.h"

#include <stdlib.h>

#include "base/container_of.h"
#include "http/response_head.h"
#include "server/http/http_service.h"
#include "server/http/http_stream.h"
#include "server/http/http_worker.h"

struct interim {
    struct net_output output;
    struct iovec piece;
    struct memory_account *account;
    char bytes[];
};

static void
release(struct net_output *output)
{
    struct interim *interim = container_of(output, struct interim, output);

    memory_uncharge(interim->account, MEMORY_REPLIES, output->len);
    free(interim);
}

void
http_interim_send(struct http_stream *stream, unsigned status, struct span lines)
{
    struct memory_account *account = &stream->worker->http->service->memory;
    char line[64];
    struct http_writer writer = http_writer_of(line, sizeof(line));
    struct interim *interim;
    size_t len;

    http_write_status(&writer, status);
    len = writer.len + lines.len + 2;
    if (!memory_charge(account, MEMORY_REPLIES, len))
        return;
    interim = memory_realloc(account, NULL, sizeof(*interim) + len);
    if (!interim) {
        memory_uncharge(account, MEMORY_REPLIES, len);
        return;
    }
    interim->account = account;
    memcpy(interim->bytes, line, writer.len);
    if (lines.len)
        memcpy(interim->bytes + writer.len, lines.ptr, lines.len);
    memcpy(interim->bytes + len - 2, "\r\n", 2);
    interim->piece = (struct iovec){.iov_base = interim->bytes, .iov_len = len};
    interim->output =
        (struct net_output){.pieces = &interim->piece, .count = 1, .len = len, .release = release};
    http_stream_send_interim(stream, &interim->output);
}
