/*
 * Fetching from origins over HTTP and HTTPS (libcurl): any method, request bodies, responses that
 * arrive piece by piece and can be paused. Names are resolved in threads of their own, each address
 * is checked before a connection is made, and every phase has a time limit. The number of fetches
 * under way is bounded in all, per origin and per client; clients and origins take turns
 * (base/fair_queue.h). Nothing is cached, and equal fetches are not merged.
 *
 * Threads: a fetcher has one thread for transfers and a bounded pool of threads for names. All
 * call-backs run on the fetcher's thread and must not block. Functions marked [any thread] may be
 * called from call-backs, too.
 */
#ifndef SUNPROXY_FETCH_FETCH_H
#define SUNPROXY_FETCH_FETCH_H

#include <stdint.h>

#include "base/buf.h"
#include "base/clients.h"
#include "base/memory_account.h"
#include "base/span.h"
#include "fetch/address.h"
#include "base/fair_queue.h"
#include "fetch/request.h"

struct fetcher;

/* Why a fetch ended. */
enum fetch_error {
    FETCH_OK = 0,
    FETCH_BAD_URL,
    FETCH_BAD_HEADERS,
    FETCH_DENIED,
    FETCH_RESOLVE_FAILED,
    FETCH_CONNECT_FAILED,
    FETCH_TLS_FAILED,
    FETCH_TIMED_OUT,
    FETCH_ORIGIN_BROKE,
    FETCH_TOO_LARGE,
    FETCH_OVERLOADED,
    FETCH_STOPPING,
    FETCH_INTERNAL,
    FETCH_DISPLACED,         /* too many fetches were queued, and its client had the most of them */
    FETCH_BAD_METHOD,        /* no method, CONNECT, or one that excludes the request's body */
    FETCH_BODY_FAILED,       /* the request's body could not be supplied as it was stated */
    FETCH_CANCELLED,         /* by fetcher_cancel() */
    FETCH_CONNECT_TIMED_OUT, /* no connection: nothing was sent, or it may be sent again */
    FETCH_BUSY,              /* the member had no place for it in time (origin_member.max) */
    FETCH_DOWN,              /* all members of the row are down (origin_route.h): none was asked */
};

/* Was there no connection: nothing was sent, or it may be sent again? */
static inline bool
fetch_is_unconnected(enum fetch_error error)
{
    return error == FETCH_RESOLVE_FAILED || error == FETCH_CONNECT_FAILED ||
           error == FETCH_CONNECT_TIMED_OUT;
}

/* Is there no way to the origin now, or no response from it? */
static inline bool
fetch_is_disconnected(enum fetch_error error)
{
    return fetch_is_unconnected(error) || error == FETCH_TLS_FAILED || error == FETCH_TIMED_OUT ||
           error == FETCH_ORIGIN_BROKE || error == FETCH_DOWN;
}

/*
 * What a transfer is charged while it has its turn (MEMORY_FETCHES): libcurl's handle and buffer
 * for reading (64 KiB), the connection with TLS, the answer's head. FETCH_BUFFER_BYTES are charged
 * beside it for each buffer that not all transfers have: for sending a body that is supplied, and
 * for what libcurl holds of the answer in a pause. A transfer for which there is no memory ends
 * with FETCH_OVERLOADED; a pause is charged in any case.
 */
#define FETCH_BYTES 163840u
#define FETCH_BUFFER_BYTES 65536u

/* A fetch that cannot begin yet. */
struct fetch_queued {
    enum queue_wait limit; /* not QUEUE_TURN */
    const struct client *client;
    const char *origin; /* "https://example.com:443" */
};

/*
 * Only max_waiting, max_active_per_client, max_idle_per_origin, max_queued, reserved_descriptors,
 * max_body, pause_timeout_us and dns_ttl_us may be zero; no time is over a week.
 */
struct fetch_config {
    struct memory_account *memory;          /* charged for transfers; not owned, or NULL */
    const struct address_policy *addresses; /* outlives the fetcher, */
    bool owns_addresses;                    /* or is freed with the settings */
    unsigned max_active;                    /* fetches at once */
    /*
     * Of those, the ones that wait for a name, a connection or the first byte; at most max_active.
     * 0: half of max_active. A fetch whose response has begun does not wait, nor does one whose
     * client is slow to send the request's body.
     */
    unsigned max_waiting;
    unsigned max_active_per_origin; /* that wait, of one scheme, host and port; a client may have
                                       half of what the others leave */
    /*
     * That wait, when it is alone, less when others fetch; 0: not bounded. Beside them four times
     * as many that do not wait, but at most half of those there may be.
     */
    unsigned max_active_per_client;
    unsigned max_idle_per_origin; /* connections kept for later fetches; a further one is closed
                                     after its answer. Not of HTTP/2, which are shared */
    unsigned max_queued;          /* not begun; over it the client with the most of them gets
                                     FETCH_DISPLACED for its last */
    unsigned resolver_threads;
    unsigned reserved_descriptors; /* the last ones below the limit, not used (descriptors.h) */
    uint64_t max_body;             /* see REQUEST_STREAMS */
    uint32_t max_headers; /* bytes of a response's heads, interim ones included, and trailers */
    int64_t resolve_timeout_us;
    int64_t connect_timeout_us;    /* TCP and TLS */
    int64_t first_byte_timeout_us; /* from the request sent to the first byte of the answer */
    int64_t stall_timeout_us;      /* without a byte of either body */
    int64_t total_timeout_us;      /* everything, waiting for a turn included, pauses excluded;
                                      see REQUEST_STREAMS */
    int64_t pause_timeout_us;      /* one pause by the consumer; 0: not bounded */
    int64_t dns_ttl_us;            /* how long a resolved name is remembered */
    const char *cacert;            /* file of authorities beside the system's own; NULL: none */
    struct span authorities;       /* its content, copied; empty: it is read from there */
    /*
     * http or https URL; NULL: none. Excludes connect_to. Its own address needs no permission, and
     * names are its to resolve. The environment's proxies are never used.
     */
    const char *upstream_proxy;
    /*
     * "HOST:PORT:HOST:PORT" as curl's, NULL-ended; or NULL. The address of the second host needs no
     * permission when it is reached by that rule.
     */
    const char *const *connect_to;
    /*
     * Ports to fetch from although they are for other protocols (address.h): numbers or "any",
     * NULL-ended; or NULL.
     */
    const char *const *allow_ports;
    /*
     * How names are resolved; NULL is getaddrinfo(). For tests that script the resolver; the
     * service is always NULL.
     */
    int (*getaddrinfo)(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **result);
    void (*freeaddrinfo)(struct addrinfo *result);
    /*
     * Called around each turn of the fetcher's thread, within which it does not wait, so that what
     * the call-backs of a turn signal to other threads can be signalled once, at its end. Both or
     * neither.
     */
    void (*turn_begins)(void);
    void (*turn_ends)(void);
    /* A fetch was queued that cannot begin. NULL: not wanted. [fetcher's thread] */
    void (*queued)(void *context, const struct fetch_queued *queued);
    void *context; /* of queued() */
};

/* Sensible values for everything that has one. */
void fetch_config_default(struct fetch_config *config);

/* ---- requests ------------------------------------------------------------------------ */

/*
 * Checks a request that is to be sent with these field lines: the URL, or that of the member which
 * is asked first, by the parser that fetches it (length of 8,192 bytes, zero bytes, http or https,
 * a host); the method, which is not CONNECT, nor HEAD or TRACE with a body; and the lines: of RFC
 * 9110 section 5, at most 65,536 bytes, none that belongs to the connection or to the fetcher
 * (Host, Connection, Content-Length, Transfer-Encoding, TE, Expect, Upgrade, Proxy-*, ...).
 * Content-Encoding needs a body. FETCH_OK, or FETCH_BAD_URL, FETCH_BAD_METHOD or FETCH_BAD_HEADERS
 * with a sentence in `why`. fetcher_submit() checks the same. [any thread]
 */
enum fetch_error fetch_check_request(const struct request *request, struct span fields, char *why,
                                     size_t why_size);

/* ---- responses ----------------------------------------------------------------------- */

/* The head of the final response. Spans are valid during the call-back. */
struct fetch_head {
    unsigned status;
    struct span headers;    /* field lines, each ended by CR LF, without hop-by-hop ones */
    int64_t content_length; /* bytes that body() will get, as the origin states them; 0 for HEAD,
                               204 and 304; -1: unknown */
    bool no_store;          /* another recipient may read its framing in another way */
    bool is_1_0;            /* it came in HTTP/1.0 */
};

/* The final response of an attempt, its head as it came. Spans are valid during the call-back. */
struct fetch_response {
    unsigned status;
    struct span lines; /* field lines as the origin sent them, not one dropped or unfolded */
    bool has_user;     /* the requested URL contains user information */
    int64_t waited_us; /* from the request sent to the end of the head */
    bool passed_over;  /* another member of the row is asked: head() is not called */
};

/* What a consumer answers. */
enum fetch_flow {
    FETCH_CONTINUE, /* taken */
    FETCH_PAUSE,    /* taken, and no more until fetcher_resume() */
    FETCH_REPEAT,   /* of head(): of no use. Once the response has ended well, the request is sent
                       again, with the lines that fields() has then */
    FETCH_ABORT,    /* not taken: ends the fetch with FETCH_INTERNAL */
};

/* What a source of a request's body answers. */
enum fetch_supply {
    FETCH_SUPPLIED,      /* *len bytes, at least one */
    FETCH_SUPPLY_LATER,  /* none yet: asked again after fetcher_resume() */
    FETCH_SUPPLY_END,    /* the body is complete */
    FETCH_SUPPLY_FAILED, /* it cannot be completed: ends the fetch with FETCH_BODY_FAILED */
};

/*
 * Call-backs, on the fetcher's thread.
 *
 * A pause begins when head() or body() returns FETCH_PAUSE, or supply() FETCH_SUPPLY_LATER; it ends
 * with the first fetcher_resume() that begins after that call began, so a resume from another
 * thread is never lost and an earlier one has no effect. While the consumer has paused the response
 * nothing more is read from the origin than libcurl has read already: at most 65,536 bytes of the
 * body, beside the kernel's socket buffers and a partial TLS record. The fetch keeps what it is
 * charged, but is none that waits (max_waiting, max_active_per_origin). The stall and total time
 * limits do not run during a pause, but pause_timeout_us does (FETCH_TIMED_OUT). done() may come in
 * a pause: after a failure, after a cancellation, or if the response has no body.
 */
struct fetch_sink {
    /*
     * An attempt begins: of a row with this member, else 0. Time limits of the whole begin anew.
     * NULL: not wanted.
     */
    void (*member)(void *context, unsigned member);
    /*
     * Once, before the first attempt: the peers that are asked before the row or the URL's origin
     * (origin_peers.h), or NULL; and an attempt at one of them begins, instead of member(). The
     * member stays as long as the request's rules. Both or neither.
     */
    struct origin_peers *(*peers)(void *context);
    void (*peer)(void *context, const struct origin_member *peer);
    /* The field lines that the request is sent with, which must stay until done(). NULL: those of
     * the request. */
    struct span (*fields)(void *context);
    /* The fetch has its turn, and the account is charged for it next. NULL: not wanted. */
    void (*begin)(void *context);
    /* For the final response of each attempt, before head() is called for it. NULL: not wanted. */
    void (*response)(void *context, const struct fetch_response *response);
    /*
     * For each interim response but 100, before the final one: 102, 103 and any other 1xx (RFC 9110
     * section 15.2), at most 16 a response. The lines are as in fetch_head. 101 ends the fetch with
     * FETCH_ORIGIN_BROKE. NULL: not wanted.
     */
    void (*interim)(void *context, unsigned status, struct span lines);
    /* Once, before the body, unless the fetch fails earlier. */
    enum fetch_flow (*head)(void *context, const struct fetch_head *head);
    /* A piece of the body; max_body bytes in all at most, unless REQUEST_STREAMS. */
    enum fetch_flow (*body)(void *context, const void *bytes, size_t len);
    /*
     * Asks for the next piece of a body that is REQUEST_BODY_SUPPLIED, at most `size` bytes, which
     * never exceeds what is left of a known length; not called again once that is reached. May be
     * called after head() and body(): an origin may respond before it has the whole request. When
     * the response is complete, the rest of the request's body is not asked for.
     */
    enum fetch_supply (*supply)(void *context, void *buffer, size_t size, size_t *len);
    /* With REQUEST_CONNECT_ONLY, once: a connected, non-blocking socket, which is the callee's now.
     * NULL without that flag. */
    void (*connected)(void *context, int fd);
    /*
     * An attempt has ended as done() would say, and member() is called next for the one that
     * follows it. May cancel the fetch. NULL: not wanted.
     */
    void (*again)(void *context, enum fetch_error error, const char *sentence, int64_t total_us);
    /* Last and exactly once. `sentence` says for a person what went wrong, "" when all went well;
     * it names host and reason, and is valid during the call. */
    void (*done)(void *context, enum fetch_error error, const char *sentence, int64_t total_us);
};

/* ---- the fetcher --------------------------------------------------------------------- */

struct fetch_stats {
    uint64_t active;
    uint64_t waiting; /* of the active ones: for a name, a connection or the first byte */
    uint64_t queued;
    uint64_t displaced; /* ended because too many were queued */
    uint64_t started;
    uint64_t retried; /* requests sent to another member of their row, */
    uint64_t refused; /* and not sent there for want of budget */
    uint64_t bytes; /* of bodies, as received from the network */
};

/*
 * Whether fetcher_create() takes this text for one of connect_to or allow_ports, or for
 * upstream_proxy or cacert; if not, with a sentence in `why` that does not name the setting.
 */
bool fetch_check_connect_to(const char *rule, char *why, size_t why_size);
bool fetch_check_port(const char *port, char *why, size_t why_size);
bool fetch_check_proxy(const char *url, char *why, size_t why_size);

/*
 * A configuration, checked and copied, with one reference: NULL with a sentence in `why`. Safe on
 * any thread. Releasing clears *settings, which may be NULL.
 */
struct settings *fetch_settings_create(const struct fetch_config *config, char *why,
                                       size_t why_size);
struct settings *fetch_settings_retain(struct settings *settings);
void fetch_settings_release(struct settings **settings);

/* Appends the content of a file of authorities, of at most that size. False with a sentence in
 * `why`. */
#define FETCH_AUTHORITIES_MAX ((size_t)16 << 20)
bool fetch_read_authorities(const char *path, struct buf *content, char *why, size_t why_size);

/* Starts the threads. NULL, with a sentence in `why`, on failure (bad cacert, proxy,
 * connect_to...). */
struct fetcher *fetcher_create(const struct fetch_config *config, char *why, size_t why_size);

/* The configuration with which it was created: a reference of the caller. Before
 * fetcher_configure(). */
struct settings *fetcher_get_settings(struct fetcher *fetcher);

/*
 * Other settings take the place of those that hold for the queue, for kept connections, and for
 * requests that have none of their own (request.settings). `memory`, resolver_threads, and the
 * functions are those of the first ones. Takes a reference of its own, and returns at once. [any
 * thread]
 */
void fetcher_configure(struct fetcher *fetcher, struct settings *settings);

/*
 * Ends everything under way with FETCH_STOPPING (call-backs run before this returns) and stops the
 * fetcher's threads. From then on fetcher_submit() fails, and resuming and cancelling have no
 * effect. A thread that is stuck in name resolution is given up, not waited for. One call only.
 * [any thread but the fetcher's]
 */
void fetcher_stop(struct fetcher *fetcher);

/* Stops the fetcher if that has not been done, and frees it. No other thread may be in one of these
 * functions. NULL is harmless. */
void fetcher_destroy(struct fetcher *fetcher);

/*
 * Submits a request that is kept (request_keep()), to which the fetch takes a reference. Every
 * outcome, also refusal, comes through sink->done on the fetcher's thread. *id, unless NULL, is set
 * before the first call-back: a number above zero that the fetcher never uses again. False, without
 * any call-back, only with errno ENOMEM, or ESHUTDOWN after fetcher_stop(). [any thread]
 */
bool fetcher_submit(struct fetcher *fetcher, const struct request *request,
                    const struct fetch_sink *sink, void *context, uint64_t *id);

/* Bytes that a fetch takes beside its request, for the account of the submitter. */
size_t fetcher_fetch_bytes(void);

/*
 * Ends the pauses of a fetch, of either direction. Harmless when it is not paused, or has ended. It
 * takes only the fetcher's own lock, under which no call-back runs, so the caller may hold locks of
 * its own that the call-backs take. [any thread]
 */
void fetcher_resume(struct fetcher *fetcher, uint64_t id);

/*
 * Ends a fetch with FETCH_CANCELLED: soon, and never inside this call; from the fetcher's thread
 * without any other call-back in between. If the fetch is ending already, done() states how.
 * Harmless when it has ended. Locks as with fetcher_resume(). [any thread]
 */
void fetcher_cancel(struct fetcher *fetcher, uint64_t id);

/* [any thread] */
void fetcher_get_stats(struct fetcher *fetcher, struct fetch_stats *stats);

/*
 * Checks a URL alone. FETCH_OK, with *has_user set to whether it contains user information
 * ("user:word@host"), or FETCH_BAD_URL with a sentence in `why`. [any thread]
 */
enum fetch_error fetch_check_url(struct span url, bool *has_user, char *why, size_t why_size);

/*
 * Appends the URL to which a Location field, which is not empty, leads from `url` (RFC 9110 section
 * 10.2.2), without dot segments (RFC 3986 section 5.2.4) and with what should have been encoded
 * encoded, as browsers do. *same_origin: is it of the origin of `url` (RFC 6454 section 5)?
 * FETCH_OK, FETCH_BAD_URL or FETCH_INTERNAL with a sentence in `why`, and then nothing is appended.
 * [any thread]
 */
enum fetch_error fetch_follow(struct span url, struct span location, struct buf *next,
                              bool *same_origin, char *why, size_t why_size);

/*
 * http_normal_url() and http_normal_prefix(), also for spellings that only libcurl's parser takes:
 * a name that is not ASCII or has escapes, other spellings of an IPv4 address, one or three
 * slashes. The text itself if it cannot be fetched or has user information. `size` of
 * FETCH_NORMAL_SIZE is enough. [any thread]
 */
#define FETCH_NORMAL_SIZE (8192 + 16)
struct span fetch_normal_url(struct span url, char *out, size_t size);
struct span fetch_normal_prefix(struct span prefix, char *out, size_t size);

#endif
