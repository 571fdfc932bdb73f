/*
 * A client as rpcgen makes them: its stubs and libtirpc's CLIENT, and nothing of sunproxy's own.
 *
 *   stubs rpcbind HOST VERSION URL     the port is asked of rpcbind
 *   stubs PORT 127.0.0.1 VERSION URL
 *
 * The body goes to standard output. Exit status 1: an RPC error or a failure, reported on standard
 * error.
 */
#include <arpa/inet.h>
#include <rpc/rpc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxy.h"

static CLIENT *
connect_to(const char *how, const char *host, rpcvers_t version)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = RPC_ANYSOCK;

    if (strcmp(how, "rpcbind") == 0)
        return clnt_create(host, PROXY_FETCHPROG, version, "tcp");
    address.sin_port = htons((uint16_t)strtoul(how, NULL, 10));
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
        return NULL;
    return clnttcp_create(&address, PROXY_FETCHPROG, version, &fd, 0, 0);
}

static int
fetch_v1(CLIENT *client, char *url)
{
    webpageResponse response = {0};
    int status = EXIT_FAILURE;

    if (proxy_fetch_1(&url, &response, client) == RPC_SUCCESS) {
        fputs(response.webPageContents, stdout);
        status = EXIT_SUCCESS;
    } else {
        clnt_perror(client, "PROXY_FETCH");
    }
    clnt_freeres(client, (xdrproc_t)xdr_webpageResponse, (caddr_t)&response);
    return status;
}

/* The body from `offset` on. */
static int
read_rest(CLIENT *client, const char *object, u_quad_t offset)
{
    proxy_read_args args = {.offset = offset, .count = PROXY_MAX_PIECE};
    int status = EXIT_FAILURE;
    bool goes_on = true;

    memcpy(args.object, object, sizeof(args.object));
    while (goes_on) {
        proxy_read_result result = {0};
        const proxy_piece *piece = &result.proxy_read_result_u.piece;

        goes_on = false;
        if (proxy_read_2(&args, &result, client) != RPC_SUCCESS) {
            clnt_perror(client, "PROXY_READ");
        } else if (result.status != PROXY_OK) {
            fprintf(stderr, "status %d: %s\n", (int)result.status,
                    result.proxy_read_result_u.sentence);
        } else {
            if (piece->bytes.bytes_len)
                fwrite(piece->bytes.bytes_val, 1, piece->bytes.bytes_len, stdout);
            args.offset += piece->bytes.bytes_len;
            goes_on = piece->ending == NULL;
            status = EXIT_SUCCESS;
        }
        clnt_freeres(client, (xdrproc_t)xdr_proxy_read_result, (caddr_t)&result);
    }
    return status;
}

static int
get_v2(CLIENT *client, char *url)
{
    proxy_fetch_args args = {.url = {.proxy_url_val = url, .proxy_url_len = (u_int)strlen(url)}};
    proxy_fetch_result result = {0};
    int status = EXIT_FAILURE;

    if (proxy_get_2(&args, &result, client) != RPC_SUCCESS) {
        clnt_perror(client, "PROXY_GET");
    } else if (result.status != PROXY_OK) {
        fprintf(stderr, "status %d: %s\n", (int)result.status,
                result.proxy_fetch_result_u.sentence);
    } else {
        const proxy_page *page = &result.proxy_fetch_result_u.page;

        fprintf(stderr, "http %u source %d stored %d\n", page->http_status, (int)page->source,
                page->ending.stored);
        if (page->body.body_len)
            fwrite(page->body.body_val, 1, page->body.body_len, stdout);
        status =
            page->rest ? read_rest(client, page->rest->object, page->body.body_len) : EXIT_SUCCESS;
    }
    clnt_freeres(client, (xdrproc_t)xdr_proxy_fetch_result, (caddr_t)&result);
    return status;
}

int
main(int argc, char **argv)
{
    CLIENT *client;
    int status;

    if (argc != 5) {
        fprintf(stderr, "usage: stubs rpcbind|PORT HOST 1|2 URL\n");
        return 64;
    }
    client = connect_to(argv[1], argv[2], (rpcvers_t)strtoul(argv[3], NULL, 10));
    if (!client) {
        clnt_pcreateerror(argv[2]);
        return EXIT_FAILURE;
    }
    status = argv[3][0] == '1' ? fetch_v1(client, argv[4]) : get_v2(client, argv[4]);
    clnt_destroy(client);
    return status;
}
