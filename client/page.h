/*
 * A page that is read over version 2 of the protocol: the answer to PROXY_GET, then the rest of the
 * body by PROXY_READ, a piece at a time. One piece at most is in memory, whatever the body's size.
 *
 * When the server does not hold the object any more, or after page_begin() for a page that has
 * failed, the page is fetched again. What the owner has taken is then read once more and compared,
 * so that the body goes on where it was, or fails because the page has changed.
 *
 * Used by the client's thread.
 */
#ifndef SUNPROXY_CLIENT_PAGE_H
#define SUNPROXY_CLIENT_PAGE_H

#include "base/digest.h"
#include "base/span.h"
#include "proxy.h"
#include "rpc/client.h"

enum page_state {
    PAGE_IDLE,   /* nothing is under way: not begun, or taken whole */
    PAGE_WAITS,  /* a call is under way */
    PAGE_PIECE,  /* page->piece is to be taken */
    PAGE_FAILED, /* by page->rpc, or else by the status of page->result */
};

struct page {
    /* Set by the owner, all else zero; what they refer to stays until page_free(). */
    struct rpc_client *client;
    struct span url, headers;
    unsigned flags;     /* of enum proxy_flag */
    int64_t timeout_us; /* for the answer to PROXY_GET, and each time without a further byte */
    /* The state is PAGE_PIECE or PAGE_FAILED now. It may call page_next() and page_begin(). */
    void (*notify)(struct page *page);

    /* For the owner to read. */
    enum page_state state;
    enum rpc_client_status rpc;
    proxy_fetch_result result; /* if rpc is RPC_CLIENT_OK. Its body is of no use: */
    struct span piece;         /* of the body, from `offset` on */
    uint64_t offset;
    bool last; /* the body ends with the piece, and the page's `ending` is known */

    /* page.c's */
    bool held;
    unsigned attempts;       /* since the last piece */
    int64_t heard_us;        /* monotonic: the last byte has come, or the wait has begun */
    struct page_keep *keep;  /* a call of page_keep() under way; it frees itself */
    proxy_object object;     /* while held */
    proxy_read_result read;  /* has the piece, but for the first one */
    uint64_t at;             /* bytes of this object that have come */
    uint64_t known;          /* bytes at its beginning that are compared */
    unsigned status;         /* of the page whose bytes the owner has taken */
    struct digest seen;      /* of what the owner has taken */
    struct digest once_more; /* of the same part, read again */
};

/*
 * Fetches. Also again, after a failure. Unless the result is RPC_CLIENT_OK, the state is
 * PAGE_FAILED, and notify() is not called.
 */
enum rpc_client_status page_begin(struct page *page);

/*
 * The piece has been taken: it is freed. If it was not the last one, the next is requested;
 * otherwise the server's object is released. notify() is not called from here.
 */
void page_next(struct page *page);

/*
 * The piece cannot be taken yet, since the owner's output blocks: asks the server to hold the
 * object on. To be called every few seconds meanwhile; harmless in any state.
 */
void page_keep(struct page *page);

/* Length of the whole body; -1 if it is not known yet. While the result is a page. */
int64_t page_length(const struct page *page);

/* The owner wants no more: the server may forget the object. Not in PAGE_WAITS. */
void page_release(struct page *page);

/* Frees; sends nothing. Not in PAGE_WAITS. */
void page_free(struct page *page);

#endif
