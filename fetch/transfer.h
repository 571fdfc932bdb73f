/*
 * One request to one address over libcurl, its answer checked and passed on.
 *
 * Everything happens on the thread of the multi handle. Call-backs come from inside libcurl, so no
 * transfer may be added, removed or freed in them.
 */
#ifndef SUNPROXY_FETCH_TRANSFER_H
#define SUNPROXY_FETCH_TRANSFER_H

#include <stdarg.h>
#include <stdatomic.h>

#include "fetch/answer.h"
#include "fetch/body.h"
#include "fetch/connections.h"
#include "fetch/headers.h"
#include "fetch/attempt.h"
#include "fetch/continued.h"
#include "fetch/poller.h"
#include "fetch/settings.h"
#include "http/response_read.h"

#define SENTENCE_MAX 512u

/* A sentence for a person, with what origins say in it: control characters become '?'. */
void sentence_format(char *sentence, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/*
 * Why the policy refuses the address that `host` stands for, and what would allow it. Returns the
 * sentence.
 */
const char *sentence_refuse(char *sentence, size_t size, const struct address_policy *policy,
                            const char *host, const union address *address);

/*
 * How far a transfer has come.
 *
 * CONNECTING -request begins-> SENDING or ASKED, -the kept connection must not be used-> UNCLEAN
 * UNCLEAN -transfer_restart()-> CONNECTING
 * SENDING -end of its body-> ASKED; SENDING, ASKED -the kept connection is dead-> CONNECTING
 * SENDING, ASKED -status line-> ANSWERING -end of the head-> BODY
 * BODY -the answer is complete, and its request is not-> COMPLETE
 * BODY -libcurl is done, and all is well-> ENDED
 */
enum transfer_stage {
    TRANSFER_CONNECTING, /* TCP, TLS, a proxy's tunnel */
    TRANSFER_SENDING,    /* the request's head is on its way, of its body not everything */
    TRANSFER_ASKED,      /* the request is on its way, nothing has come back */
    TRANSFER_ANSWERING,  /* parts of the head have come */
    TRANSFER_BODY,
    TRANSFER_COMPLETE, /* it has ended, although libcurl goes on */
    TRANSFER_UNCLEAN,  /* it has ended before its request began: transfer_restart() */
    TRANSFER_ENDED,    /* well */
};

/*
 * Who gets the responses to a request: the sink of the fetch, which the transfers of all its
 * attempts call. Of an attempt that is passed over or repeated it gets no body. After a
 * cancellation it is not called any more.
 */
struct consumer {
    const struct request *request;
    struct fetch_sink sink;
    void *context;
    struct attempt attempt;
    struct continued *continued; /* owned: the consumer has a head from a peer, which another
                                    response may continue; NULL: none */
    _Atomic unsigned resumes; /* calls of fetcher_resume() */
    _Atomic bool cancelled;   /* never cleared */
    unsigned receive_seen;    /* `resumes` as the last call of head() or body() began, */
    unsigned send_seen;       /* and that of supply(): later ones end its pause */
};

static inline bool
consumer_is_cancelled(const struct consumer *consumer)
{
    return atomic_load_explicit(&consumer->cancelled, memory_order_relaxed);
}

/* What has changed, so that the fetch has to act. */
enum transfer_change {
    TRANSFER_HAS_STAGE, /* its stage: other time limits hold */
    TRANSFER_IS_HELD,   /* the consumer has begun a pause, which transfer_resume() ends */
    TRANSFER_RESTS,     /* the rest of what has come waits for transfer_next_turn() */
};

/*
 * libcurl's handles that transfers have given back, for later ones: a new handle costs its
 * allocation and some 30 options that are the same for all. A handle is given back after a plain
 * GET that has ended well, so that nothing of another kind of request is set in it.
 */
#define HANDLES_MAX 256u    /* kept; each is some 8 KiB */
#define HANDLES_LINES 2048u /* of bytes of lines of a response, which the handle keeps */

struct handles {
    CURL *kept[HANDLES_MAX];
    unsigned count;
};

/* Frees those that are kept. Before the shares that they have used. */
void handles_free(struct handles *handles);

/* What the transfers of a fetcher share. */
struct transfer_place {
    struct settings *settings; /* in force: a reference */
    CURLM *multi;
    struct connections connections;
    struct handles handles;
    struct poller poller;      /* that drives the multi handle */
    int64_t turn_us;           /* when the loop's turn began */
    _Atomic uint64_t received; /* bytes of bodies from the network */
    void (*changed)(struct consumer *consumer, enum transfer_change change);
};

/* Where a transfer leads, and with what. All but `host` outlive it. */
struct transfer_order {
    const struct settings *settings;
    const struct target *target;
    const struct route *route;  /* its host stands for ... */
    struct resolved *addresses; /* ... these, to which a reference is taken */
    struct headers_sent headers;
    const struct origin_peers *peers; /* one of them is asked; NULL: none */
};

/* Whether the consumer gets what comes, and libcurl passes it on. */
enum transfer_flow {
    TRANSFER_FLOWS,
    TRANSFER_HOLDS,   /* the consumer has paused; libcurl is, when it has the next piece */
    TRANSFER_PAUSED,  /* both are */
    TRANSFER_WAITING, /* libcurl is, until the next turn */
};

struct transfer {
    CURL *easy; /* NULL: nothing under way */
    struct transfer_place *place;
    struct consumer *consumer;
    const struct request *request; /* the consumer's */
    const struct settings *settings; /* with which it has begun */
    const struct target *target;
    const struct route *route;
    struct span fields; /* of the request, as they are sent */
    const struct origin_peers *peers; /* one of them is asked, for the URL; NULL: none */
    struct continued *continues; /* the consumer's, of an earlier attempt; NULL: it has no head */
    enum transfer_stage stage;
    unsigned asked;   /* how often the request was given to a connection: libcurl repeats it */
    int64_t asked_us; /* when it was, last */
    int64_t last_byte_us; /* when the turn began in which it came, or later */

    struct resolved *addresses; /* owned: where it may connect */

    struct curl_slist *headers; /* owned, as libcurl wants them while it runs */
    struct curl_slist *pins;
    struct curl_slist *connect_to;
    enum pool_wish wish; /* POOL_NEW: of a connection that serves nothing else */
    struct pool_lease lease;
    char error_text[CURL_ERROR_SIZE];

    struct buf lines; /* the head's field lines as they come */
    struct http_response_head head;
    size_t line_bytes;         /* of all heads and trailers together */
    unsigned line_count;       /* likewise */
    unsigned interim;          /* 1xx answers seen */
    enum answer_state answer;  /* how far the answer has come */
    struct http_status_line status; /* of the last head of which a line has come */
    bool tls_ended;            /* the origin has sent close_notify after the final head */
    struct upload upload;      /* the request's body */
    enum transfer_flow flow;
    struct body body;
    int64_t turn_us;     /* the last one in which bytes were passed on */
    size_t allowance;    /* bytes that may still be passed on in that turn */
    size_t used;         /* of the piece that libcurl holds for it while it is paused */
    uint64_t body_bytes; /* given to the consumer */
    uint64_t read_bytes; /* of those received, read to the end: paused pieces have not been */

    enum fetch_error error;     /* why we ended it ourselves, FETCH_OK if we did not */
    enum fetch_error no_socket; /* why libcurl was given none, with a sentence; FETCH_OK: it was */
    char sentence[SENTENCE_MAX];
};

/* Begins one. False if there is no memory; the transfer is then as before. */
bool transfer_start(struct transfer *transfer, struct transfer_place *place,
                    struct consumer *consumer, const struct transfer_order *order);

/*
 * Does its handle serve others (struct handles)? That of a plain GET does, unless the request was
 * repeated: libcurl counts that in the handle, and gives up at the fifth time.
 */
static inline bool
transfer_is_plain(const struct transfer *t)
{
    return t->request->method == HTTP_GET && !request_has_body(t->request) &&
           !(t->request->flags & (REQUEST_CONNECT_ONLY | REQUEST_WHOLE_SERVER)) &&
           t->wish != POOL_NEW && t->asked <= 1;
}

/*
 * After the end of a transfer with REQUEST_CONNECT_ONLY: a descriptor for its connection, which
 * stays when the transfer is cleared. -1 with errno.
 */
int transfer_take_socket(struct transfer *transfer);

/* libcurl's call-backs, for transfer_start(). */
size_t transfer_on_header(char *line, size_t size, size_t count, void *transfer);
size_t transfer_on_body(char *bytes, size_t size, size_t count, void *transfer);
size_t transfer_on_send(char *buffer, size_t size, size_t count, void *transfer);
int transfer_on_rewind(void *transfer, curl_off_t offset, int origin);
/* CURLOPT_PREREQFUNCTION: refuses a kept connection that is not silent (TRANSFER_UNCLEAN), and a
 * request that must not be sent again. */
int transfer_on_request(void *transfer, char *to, char *from, int to_port, int from_port);
int transfer_on_debug(CURL *easy, curl_infotype type, char *bytes, size_t len, void *transfer);

/* It has come to this stage. For libcurl's call-backs. */
void transfer_enter(struct transfer *transfer, enum transfer_stage stage);

/* Records why it has to end. The first reason counts, also against the code of libcurl then. */
void transfer_fail(struct transfer *transfer, enum fetch_error error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Begins anew, on a connection of its own, a transfer that has ended with TRANSFER_UNCLEAN.
 * Nothing was sent for it. False if there is no memory.
 */
bool transfer_restart(struct transfer *transfer);

/* Goes on after TRANSFER_RESTS, in a later turn. Any code but CURLE_OK is its end. */
CURLcode transfer_next_turn(struct transfer *transfer);

/*
 * Ends the pauses, of the answer and of the request's body, since which the consumer has been
 * resumed. Harmless without. Any code but CURLE_OK is its end.
 */
CURLcode transfer_resume(struct transfer *transfer);

/* Has the consumer or the source paused it? */
bool transfer_is_held(const struct transfer *transfer);

/*
 * What came of it, once libcurl says that it is done: FETCH_OK, or an error with
 * transfer->sentence.
 */
enum fetch_error transfer_evaluate(struct transfer *transfer, CURLcode code);

/* Ends it if it is under way, and frees what it owns. Harmless on a zeroed one. */
void transfer_clear(struct transfer *transfer);

#endif
