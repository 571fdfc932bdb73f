/*
 * One hop: one request to one address over libcurl, its answer checked and passed on.
 *
 * Everything happens on the thread of the multi handle. Call-backs to the owner come from inside
 * libcurl, so it must not add, remove or free a transfer in them.
 */
#ifndef SUNPROXY_FETCH_TRANSFER_H
#define SUNPROXY_FETCH_TRANSFER_H

#include <stdarg.h>
#include <stdatomic.h>

#include "fetch/answer.h"
#include "fetch/answer_order.h"
#include "fetch/body.h"
#include "fetch/connections.h"
#include "fetch/poller.h"
#include "fetch/settings.h"
#include "fetch/upload.h"

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

/* How far a hop has come. */
enum transfer_stage {
    TRANSFER_CONNECTING, /* TCP, TLS, a proxy's tunnel */
    TRANSFER_SENDING,    /* the request's head is on its way, of its body not everything */
    TRANSFER_ASKED,      /* the request is on its way, nothing has come back */
    TRANSFER_ANSWERING,  /* parts of the head have come */
    TRANSFER_BODY
};

struct transfer_owner {
    void *context;
    /* The head of any final answer, as it came. */
    void (*hop)(void *context, const struct fetch_hop *hop);
    /* An interim answer but 100, and its end-to-end fields. */
    void (*interim)(void *context, unsigned status, struct span lines);
    /* The head of an answer that is no redirect to follow, and its body. */
    enum fetch_flow (*head)(void *context, const struct fetch_head *head);
    enum fetch_flow (*body)(void *context, const void *bytes, size_t len);
    /* More of the request's body, if it is FETCH_BODY_SUPPLIED. */
    upload_source *supply;
    /* The stage has changed, so other time limits hold. */
    void (*stage)(void *context, enum transfer_stage stage);
    /* So much of the body came at once that the rest waits for transfer_next_turn(). */
    void (*pause)(void *context);
    /* head(), body() or supply() has begun a pause, which transfer_resume() ends. */
    void (*begin_hold)(void *context);
    /* All of the answer has come before all of the request's body was sent: the transfer has ended,
     * although libcurl goes on. */
    void (*complete)(void *context);
    _Atomic uint64_t *received; /* counts bytes of bodies from the network */
    const uint64_t *turn;       /* the number of the loop's turn */
    struct connections *connections;
    struct poller *poller; /* that drives the multi handle; NULL: none does */
};

struct transfer {
    CURL *easy; /* NULL: nothing under way */
    const struct settings *settings;
    const struct target *target;
    const struct fetch_request *request;
    struct transfer_owner owner;
    enum transfer_stage stage;
    int64_t asked_us; /* when the request was sent */
    int64_t last_byte_us;

    struct resolved *addresses; /* owned: where it may connect */
    bool by_operator;           /* ... without permission */
    bool literal_route;         /* the route's host is an address: nothing to pin */
    struct span final_url;

    struct curl_slist *headers; /* owned, as libcurl wants them while it runs */
    struct curl_slist *pins;
    struct curl_slist *connect_to;
    struct pool_lease lease;
    bool unclean; /* it has got a kept connection that must not be used: transfer_restart() */
    char error_text[CURL_ERROR_SIZE];

    struct buf lines; /* the head's field lines as they come */
    struct answer_head head;
    size_t window_charged;     /* to the account, for the window of the body's decoder */
    size_t line_bytes;         /* of all heads and trailers together */
    unsigned line_count;       /* likewise */
    unsigned interim;          /* 1xx answers seen */
    enum answer_state answer;  /* how far the answer has come */
    struct status_line status; /* of the last head of which a line has come */
    bool conditional;          /* the request has a condition, to which 304 is an answer */
    bool ranged;               /* it asks for a range, to which 206 is an answer */
    bool binds;                /* it authenticates its connection */
    bool has_body;             /* a body follows it (RFC 9112 section 6.3) */
    bool redirecting;          /* it is a redirect with somewhere to go */
    bool tls_ended;            /* the origin has sent close_notify after the final head */
    struct upload upload;      /* the request's body */
    bool sent;                 /* the request has been given to a connection */
    bool send_held;            /* the source of its body has paused */
    bool receive_held;         /* the consumer has paused the answer */
    bool receive_paused;       /* libcurl has, for the consumer or for the next turn */
    struct body body;
    uint64_t turn;       /* in which ... */
    size_t allowance;    /* ... this much work may still be done for it */
    size_t used;         /* of the piece that libcurl holds for it while it is paused */
    uint64_t body_bytes; /* decoded */
    uint64_t wire_bytes; /* as received */
    uint64_t
        read_bytes; /* of these, those that have been read to the end: paused pieces have not */

    enum fetch_error error;     /* why we ended it ourselves, FETCH_OK if we did not */
    enum fetch_error no_socket; /* why libcurl was given none, with a sentence; FETCH_OK: it was */
    char sentence[SENTENCE_MAX];
};

/*
 * Begins a hop on `multi` to `target` (not request->url) by `route`, whose host stands for
 * `addresses` (a reference is taken). `at_origin`: no redirect has led away from the origin of the
 * request, which may have its credentials and its Host. `target`, `request` and `final_url` outlive
 * it. False if there is no memory; the transfer is then as before.
 */
bool transfer_start(struct transfer *transfer, CURLM *multi, const struct settings *settings,
                    const struct target *target, const struct route *route,
                    struct resolved *addresses, const struct fetch_request *request, bool at_origin,
                    struct span final_url, const struct transfer_owner *owner);

/*
 * After the end of a transfer with FETCH_CONNECT_ONLY: a descriptor for its connection, which stays
 * when the transfer is cleared. -1 with errno.
 */
int transfer_take_socket(struct transfer *transfer);

/* libcurl's call-backs, for transfer_start(). */
size_t transfer_on_header(char *line, size_t size, size_t count, void *transfer);
size_t transfer_on_body(char *bytes, size_t size, size_t count, void *transfer);
size_t transfer_on_send(char *buffer, size_t size, size_t count, void *transfer);
int transfer_on_rewind(void *transfer, curl_off_t offset, int origin);
int transfer_on_debug(CURL *easy, curl_infotype type, char *bytes, size_t len, void *transfer);

/* It has come to this stage. For libcurl's call-backs. */
void transfer_enter(struct transfer *transfer, enum transfer_stage stage);

/* Records why it has to end. The first reason counts, also against the code of libcurl then. */
void transfer_fail(struct transfer *transfer, enum fetch_error error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Begins anew, on a connection of its own, a transfer that has ended with transfer->unclean set.
 * Nothing was sent for it. False if there is no memory.
 */
bool transfer_restart(struct transfer *transfer, CURLM *multi);

/* Goes on after owner.pause(), in a later turn. Any code but CURLE_OK is its end. */
CURLcode transfer_next_turn(struct transfer *transfer);

/*
 * Ends what owner.begin_hold() reported: pauses of the answer, of the request's body, or both.
 * Harmless without. Any code but CURLE_OK is its end.
 */
CURLcode transfer_resume(struct transfer *transfer, bool receive, bool send);

/* Has the consumer or the source paused it? */
bool transfer_is_held(const struct transfer *transfer);

/*
 * What came of it, once libcurl says that it is done: FETCH_OK, or an error with
 * transfer->sentence. A redirect is in transfer->head.location when transfer->redirecting is set,
 * whatever the rest.
 */
enum fetch_error transfer_evaluate(struct transfer *transfer, CURLcode code);

/* Ends it if it is under way, and frees what it owns. Harmless on a zeroed one. */
void transfer_clear(struct transfer *transfer, CURLM *multi);

#endif
