#include "tests/unit/client/served.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CALL_WORDS 10
#define MOST_REPLY 4096

struct call {
    uint32_t words[CALL_WORDS]; /* host order */
    char args[2048];
    unsigned len;
};

/* ---- results --------------------------------------------------------------------------------- */

static struct {
    const char *path;
    proxy_source source;
} const sources[] = {
    {"/hit", PROXY_HIT},     {"/coalesced", PROXY_COALESCED}, {"/bypass", PROXY_BYPASS},
    {"/stale", PROXY_STALE}, {"/new", PROXY_REVALIDATED},
};

static bool_t
put_page(XDR *x, const struct call *call, bool refused)
{
    static char sentence[] = "it is a test", moved[] = "http://elsewhere/", victim[] = "http://v/";
    static char headers[] = "A: b\r\n";
    proxy_fetch_args args = {.flags = 0};
    proxy_fetch_result result = {.status = PROXY_OK};
    proxy_page *page = &result.proxy_fetch_result_u.page;
    proxy_url victims[] = {{sizeof(victim) - 1, victim}};
    char path[256], *slash;
    XDR in;
    bool_t done;

    xdrmem_create(&in, (char *)(uintptr_t)call->args, call->len, XDR_DECODE);
    if (!xdr_proxy_fetch_args(&in, &args))
        return FALSE;
    snprintf(path, sizeof(path), "%.*s", (int)args.url.proxy_url_len, args.url.proxy_url_val);
    xdr_free((xdrproc_t)xdr_proxy_fetch_args, &args);
    slash = strrchr(path, '/');
    page->source = PROXY_MISS;
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
        if (strcmp(slash, sources[i].path) == 0)
            page->source = sources[i].source;
    page->http_status = strcmp(slash, "/404") == 0 ? 404 : 200;
    page->ending.stored = strcmp(slash, "/huge") != 0;
    if (strcmp(slash, "/moved") == 0)
        page->final_url = (proxy_url){sizeof(moved) - 1, moved};
    else
        page->final_url = (proxy_url){(u_int)strlen(path), path};
    if (strcmp(slash, "/victim") == 0) {
        page->ending.evicted = 1;
        page->ending.victims.victims_val = victims;
        page->ending.victims.victims_len = 1;
    }
    page->headers = (proxy_headers){sizeof(headers) - 1, headers};
    page->body.body_val = slash;
    page->body.body_len = (u_int)strlen(slash);
    if (refused || strcmp(slash, "/fail") == 0) {
        result.status = refused ? PROXY_DENIED : PROXY_RESOLVE_FAILED;
        result.proxy_fetch_result_u.sentence = sentence;
    }
    done = xdr_proxy_fetch_result(x, &result);
    return done;
}

/* A server that knows less than this client, and some things more. */
static proxy_fact facts[] = {
    {"software", "sunproxyd test"},
    {"policy", "lru"},
    {"mood", "fine"},
};
static proxy_metric metrics[] = {
    {"cache_shards", PROXY_GAUGE, 2},
    {"cache_capacity_pages", PROXY_GAUGE, 100},
    {"cache_capacity_bytes", PROXY_GAUGE, 1 << 20},
    {"requests{outcome=\"hit\"}", PROXY_COUNTER, 3},
    {"requests{outcome=\"miss\"}", PROXY_COUNTER, 4},
    {"requests{outcome=\"imagined\"}", PROXY_COUNTER, 2},
    {"turns", PROXY_COUNTER, 5},
    {"turn_bytes", PROXY_GAUGE, 2048},
    {"turn_microseconds", PROXY_GAUGE, 3000},
    {"tails\033", 77, 6},
    {"turn_duration_microseconds_bucket{le=\"1\"}", PROXY_HISTOGRAM, 1},
    {"turn_duration_microseconds_bucket{le=\"1000\"}", PROXY_HISTOGRAM, 3},
    {"turn_duration_microseconds_bucket{le=\"+Inf\"}", PROXY_HISTOGRAM, 4},
    {"turn_duration_microseconds_count", PROXY_HISTOGRAM, 4},
    {"turn_duration_microseconds_sum", PROXY_HISTOGRAM, 8000},
    {"cut_duration_microseconds_bucket{le=\"1\"}", PROXY_HISTOGRAM, 9},
};

static bool_t
put_results(XDR *x, const struct call *call, bool refused)
{
    static char body[] = "a page";
    static char sentence[] = "it is a test", policy[] = "fifo", changed[] = "changed: origin";
    static char row[] = "h.test/", url[] = "http://m.test", state[] = "drained", why[] = "refused";
    webpageResponse page = {.webPageContents = body};
    proxy_stats stats = {
        .facts = {sizeof(facts) / sizeof(facts[0]), facts},
        .metrics = {sizeof(metrics) / sizeof(metrics[0]), metrics},
    };
    proxy_purge_result purged = {.status = refused ? PROXY_DENIED : PROXY_OK};
    proxy_set_result set = {.status = refused ? PROXY_DENIED : PROXY_OK};
    proxy_member member = {row, url, 2, TRUE, state, why, 9, 3, 40, 5, 6000000, 700, 8000, 90000};
    proxy_origin_result origins = {
        .status = refused ? PROXY_DENIED : PROXY_OK,
        .proxy_origin_result_u.members.members_val = &member,
    };
    proxy_reload_result reloaded = {
        .status = refused ? PROXY_DENIED : PROXY_OK,
        .text = refused ? sentence : changed,
    };
    static char told[] = "request: GET http://h/\nanswer: hit";
    proxy_explain_result explained = {
        .status = refused ? PROXY_BAD_VALUE : PROXY_OK,
        .text = refused ? sentence : told,
    };
    proxy_set_preview_result preview = {.status = refused ? PROXY_DENIED : PROXY_OK};

    if (call->words[5] == NULLPROC)
        return TRUE;
    if (call->words[4] == PROXY_FETCHVERS)
        return xdr_webpageResponse(x, &page);
    switch (call->words[5]) {
    case PROXY_GET:
        return put_page(x, call, refused);
    case PROXY_STAT:
        return xdr_proxy_stats(x, &stats);
    case PROXY_SET_PREVIEW:
        if (refused)
            preview.proxy_set_preview_result_u.sentence = sentence;
        else
            preview.proxy_set_preview_result_u.state =
                (proxy_set_state){.policy = policy, .capacity_urls = 5, .shards = 1};
        return xdr_proxy_set_preview_result(x, &preview);
    case PROXY_ORIGIN:
        if (refused)
            origins.proxy_origin_result_u.sentence = sentence;
        else
            origins.proxy_origin_result_u.members.members_len = 1;
        return xdr_proxy_origin_result(x, &origins);
    case PROXY_EXPLAIN:
        return xdr_proxy_explain_result(x, &explained);
    case PROXY_RELOAD:
        return xdr_proxy_reload_result(x, &reloaded);
    case PROXY_PURGE_PREVIEW:
    case PROXY_PURGE:
        if (refused)
            purged.proxy_purge_result_u.sentence = sentence;
        else
            purged.proxy_purge_result_u.purged = 3;
        return xdr_proxy_purge_result(x, &purged);
    default:
        if (refused)
            set.proxy_set_result_u.sentence = sentence;
        else
            set.proxy_set_result_u.kept = 2;
        return xdr_proxy_set_result(x, &set);
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool
take(int fd, void *to, size_t len)
{
    return recv(fd, to, len, MSG_WAITALL) == (ssize_t)len;
}

static bool
take_call(int fd, struct call *call)
{
    uint32_t mark;

    if (!take(fd, &mark, sizeof(mark)))
        return false;
    mark = ntohl(mark) & 0x7fffffff;
    if (mark < sizeof(call->words) || mark > sizeof(call->words) + sizeof(call->args) ||
        !take(fd, call->words, sizeof(call->words)))
        return false;
    for (unsigned i = 0; i < CALL_WORDS; i++)
        call->words[i] = ntohl(call->words[i]);
    call->len = mark - (unsigned)sizeof(call->words);
    return call->len == 0 || take(fd, call->args, call->len);
}

static bool_t
put_uint(XDR *x, u_int value)
{
    return xdr_u_int(x, &value);
}

/* Encodes a reply; its length, 0 if it cannot be. */
static u_int
encode(const struct call *call, enum served_fault fault, char *reply, u_int size)
{
    static const u_int accepts[] = {[SERVED_PROG_UNAVAIL] = PROG_UNAVAIL,
                                    [SERVED_PROG_MISMATCH] = PROG_MISMATCH,
                                    [SERVED_PROC_UNAVAIL] = PROC_UNAVAIL,
                                    [SERVED_GARBAGE_ARGS] = GARBAGE_ARGS,
                                    [SERVED_SYSTEM_ERR] = SYSTEM_ERR};
    XDR x;
    bool_t good;

    xdrmem_create(&x, reply, size, XDR_ENCODE);
    good = put_uint(&x, call->words[0]) && put_uint(&x, REPLY);
    if (fault == SERVED_AUTH_ERROR)
        good = good && put_uint(&x, MSG_DENIED) && put_uint(&x, AUTH_ERROR) &&
               put_uint(&x, AUTH_TOOWEAK);
    else
        good =
            good && put_uint(&x, MSG_ACCEPTED) && put_uint(&x, AUTH_NONE) && put_uint(&x, 0) &&
            put_uint(&x, fault >= SERVED_PROG_UNAVAIL && fault <= SERVED_SYSTEM_ERR ? accepts[fault]
                                                                                    : SUCCESS);
    if (fault == SERVED_PROG_MISMATCH)
        good = good && put_uint(&x, 3) && put_uint(&x, 4);
    if (fault == SERVED_WELL || fault == SERVED_REFUSED)
        good = good && put_results(&x, call, fault == SERVED_REFUSED);
    return good ? xdr_getpos(&x) : 0;
}

/* Answers a call; false when the connection is to be closed. */
static bool
answer(void *context, int fd)
{
    struct served *served = context;
    struct call call;
    struct {
        uint32_t mark;
        char reply[MOST_REPLY];
    } record;
    enum served_fault fault = SERVED_WELL;
    unsigned number;
    u_int len;

    if (!take_call(fd, &call))
        return false;
    number = served->calls++;
    if (number >= served->from && (served->count == 0 || number - served->from < served->count))
        fault = served->fault;
    if (fault == SERVED_SILENT || fault == SERVED_HANGS_UP)
        return fault == SERVED_SILENT;
    if (fault == SERVED_GOES)
        unlink(served->server.path);
    len = encode(&call, fault, record.reply, sizeof(record.reply));
    record.mark = htonl(0x80000000 | len);
    len += (u_int)sizeof(record.mark);
    return send(fd, &record, len, MSG_NOSIGNAL) == (ssize_t)len;
}

void
served_start(struct served *served)
{
    served->calls = 0;
    local_server_start(&served->server, served->folder, "s", answer, served);
}

void
served_stop(struct served *served)
{
    local_server_stop(&served->server);
}
