/*
 * Fetching from origins over http and https (libcurl): redirects followed and judged hop by hop,
 * names resolved where they can stall nobody else, addresses judged before a connection is made,
 * time-outs of each kind, a cap on the body, bounds on what is under way at once, in all, per
 * origin and per client, and fair turns among clients and origins (queue.h).
 *
 * Threads: a fetcher has one thread for transfers and a bounded pool of threads for names.
 * fetcher_submit() may be called on any thread; every call-back comes on the fetcher's thread and
 * must not block.
 */
#ifndef SUNPROXY_FETCH_FETCH_H
#define SUNPROXY_FETCH_FETCH_H

#include <stdint.h>

#include "base/client_key.h"
#include "base/memory_account.h"
#include "base/span.h"
#include "fetch/address.h"

struct fetcher;

/* Why a fetch ended. The order is that of enum proxy_status in proxy.x, from PROXY_OK on. */
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
    FETCH_BAD_REDIRECT,
    FETCH_OVERLOADED,
    FETCH_STOPPING,
    FETCH_INTERNAL,
    FETCH_DISPLACED, /* too many fetches were queued, and its client had the most of them */
};

/*
 * What a transfer is charged while it has its turn (MEMORY_FETCHES): libcurl's handle and buffers,
 * the connection with TLS, a decoder, the answer's head. The window of a decoder is charged beside
 * it as the body grows (coding_window()). A transfer for which there is no memory ends with
 * FETCH_OVERLOADED.
 */
#define FETCH_BYTES 262144u

/*
 * Only max_waiting, max_active_per_client, max_queued, max_redirects, reserved_descriptors,
 * max_body and dns_ttl_us may be zero; no time is over a week.
 */
struct fetch_config {
    struct memory_account *memory;          /* charged FETCH_BYTES a transfer; not owned, or NULL */
    const struct address_policy *addresses; /* not owned; outlives the fetcher */
    unsigned max_active;                    /* fetches at once */
    /*
     * Of those, the ones that wait for a name, a connection or the first byte; at most max_active.
     * 0: three quarters of max_active.
     */
    unsigned max_waiting;
    unsigned max_active_per_origin; /* scheme, host and port */
    unsigned max_active_per_client; /* when it is alone, less when others fetch; 0: not bounded */
    unsigned max_queued;            /* not begun; over it the client with the most of them gets
                                       FETCH_DISPLACED for its last */
    unsigned max_redirects;
    unsigned resolver_threads;
    unsigned reserved_descriptors; /* the last ones below the limit, not used (descriptors.h) */
    uint64_t max_body;             /* decoded bytes */
    uint32_t max_headers; /* bytes of a response's heads, interim ones included, and trailers */
    int64_t resolve_timeout_us;
    int64_t connect_timeout_us;    /* TCP and TLS, each hop */
    int64_t first_byte_timeout_us; /* from the request sent to the first byte of the answer */
    int64_t stall_timeout_us;      /* without a byte of the body */
    int64_t total_timeout_us;      /* everything, waiting for a turn included */
    int64_t dns_ttl_us;            /* how long a resolved name is remembered */
    const char *cacert;            /* file of authorities beside the system's own; NULL: none */
    /*
     * http or https URL; NULL: none. Excludes connect_to. Its own address needs no permission, and
     * names are its to resolve. The environment's proxies are never used.
     */
    const char *upstream_proxy;
    const char *user_agent;
    /*
     * "HOST:PORT:HOST:PORT" as curl's, NULL-ended; or NULL. The address of the second host needs no
     * permission when it is reached by that rule.
     */
    const char *const *connect_to;
    /*
     * Ports to fetch from although they are for other protocols (fetch/ports.h): numbers or "any",
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
};

/* Sensible values for everything that has one. */
void fetch_config_default(struct fetch_config *config);

/* The head of the final response. Spans are valid during the call-back. */
struct fetch_head {
    unsigned status;
    struct span final_url; /* equal to the requested one if nothing redirected */
    struct span headers;   /* field lines, each ended by CR LF, without hop-by-hop ones, and without
                              Content-Encoding and Content-Length where the body was decoded */
    int64_t content_length; /* as the origin states it, of the body as it will come; -1 unknown */
    bool no_store;          /* another recipient may read its framing in another way */
};

/*
 * The head of one response on the way to the final one, or of the final one itself, as it came.
 * Spans are valid during the call-back.
 */
struct fetch_hop {
    unsigned status;
    struct span lines; /* field lines as the origin sent them, not one dropped or unfolded */
    bool has_user;     /* the URL that was asked for has user information in it */
    int64_t waited_us; /* from the request sent to the end of the head */
};

/* Call-backs, on the fetcher's thread. */
struct fetch_sink {
    /* The fetch has its turn, and the account is charged for it next. NULL: not wanted. */
    void (*begin)(void *context);
    /* For each response, redirects included, before head() is called for the final one. NULL: not
     * wanted. */
    void (*hop)(void *context, const struct fetch_hop *hop);
    /* Once, before the body, unless the fetch fails earlier. False ends it (FETCH_INTERNAL). */
    bool (*head)(void *context, const struct fetch_head *head);
    /* A piece of the decoded body; never more than max_body in all. False ends it likewise. */
    bool (*body)(void *context, const void *bytes, size_t len);
    /* Last and exactly once. `sentence` says for a person what went wrong, "" when all went well;
     * it names host and reason, and is valid during the call. */
    void (*done)(void *context, enum fetch_error error, const char *sentence, int64_t total_us);
};

struct fetch_stats {
    uint64_t active;
    uint64_t waiting; /* of the active ones: for a name, a connection or the first byte */
    uint64_t queued;
    uint64_t displaced; /* ended because too many were queued */
    uint64_t started;
    uint64_t bytes; /* of bodies, as received from the network */
};

/* Starts the threads. NULL, with a sentence in `why`, on failure (bad cacert, proxy,
 * connect_to...). */
struct fetcher *fetcher_create(const struct fetch_config *config, char *why, size_t why_size);

/*
 * Ends everything under way with FETCH_STOPPING (call-backs run before this returns), joins the
 * threads, frees. A thread that is stuck in name resolution is given up, not waited for. NULL is
 * harmless.
 */
void fetcher_destroy(struct fetcher *fetcher);

/*
 * Asks for a URL (GET) for a client, to which the fetch counts. `headers` are field lines ended by
 * CR LF, as checked by fetch_check_headers(), or empty. All are copied. Every outcome, also
 * refusal, comes through sink->done on the fetcher's thread; the return value is false only if
 * there is no memory to remember the request, and then no call-back comes. [any thread]
 */
bool fetcher_submit(struct fetcher *fetcher, const struct client_key *client, struct span url,
                    struct span headers, const struct fetch_sink *sink, void *context);

/* Bytes that a request takes from its submission to its end, for the account of the submitter. */
size_t fetcher_request_bytes(struct span url, struct span headers);

/*
 * Ends the fetch that was submitted with `context` with FETCH_OVERLOADED: soon, and never inside
 * this call. Harmless when there is none. [fetcher's thread, in a call-back]
 */
void fetcher_end(struct fetcher *fetcher, const void *context);

/* [any thread] */
void fetcher_get_stats(struct fetcher *fetcher, struct fetch_stats *stats);

/*
 * Judges a URL by the parser that will fetch it: length (8,192 bytes), zero bytes, http or https, a
 * host. FETCH_OK, with *has_user set to whether there is user information in it ("user:word@host"),
 * or FETCH_BAD_URL with a sentence in `why`. [any thread]
 */
enum fetch_error fetch_check_url(struct span url, bool *has_user, char *why, size_t why_size);

/*
 * Judges request headers: field lines of RFC 9110 section 5, at most 65,536 bytes, none that
 * belongs to the connection or to us (Host, Connection, Content-Length, Transfer-Encoding, TE,
 * Upgrade, Accept-Encoding, Proxy-*, ...). FETCH_OK or FETCH_BAD_HEADERS with a sentence in `why`.
 * [any thread]
 */
enum fetch_error fetch_check_headers(struct span headers, char *why, size_t why_size);

#endif
