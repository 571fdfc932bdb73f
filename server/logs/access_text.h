/*
 * The texts of requests that the access log and the request database have in common. Safe on any
 * thread.
 */
#ifndef SUNPROXY_SERVER_LOGS_ACCESS_TEXT_H
#define SUNPROXY_SERVER_LOGS_ACCESS_TEXT_H

#include <stdint.h>

#include "base/buf.h"
#include "cache/cache.h"
#include "net/peer.h"

/* A client in few bytes, which a worker may hand to another thread. All zero: unknown. */
struct access_client {
    sa_family_t family; /* AF_INET, AF_INET6, AF_UNIX if the uid is known, otherwise AF_UNSPEC */
    uid_t uid;
    unsigned char address[16]; /* in network order */
};

struct access_client access_client_of(const struct net_peer *peer);

/* Appends an address, "unix:UID" or "-". */
void access_client_append(struct buf *text, const struct access_client *client);

/* Appends bytes with all but printable ASCII, blanks and the backslash as \xNN. */
void access_text_escape(struct buf *text, struct span bytes);

/*
 * Appends bytes with all but printable ASCII, quotes, backslashes and the byte `stop` as \xNN; "-"
 * if there are none.
 */
void access_text_quote(struct buf *text, struct span bytes, char stop);

/*
 * How many of these pages a line lists, from the first one on: 16 KiB of their URLs, so that a line
 * is not too long for a log because of them. It states the number of the others.
 */
size_t access_text_listed(const struct cache_victims *victims);

/* "22/Nov/2026:11:30:00 +0000", without the names of a locale. */
void access_text_date(struct buf *text, int64_t wall_us);

/*
 * Appends the origin of a URL: scheme://host[:port] in small letters and without user information;
 * of a tunnel host:port. Nothing if the URL names no host.
 */
void access_text_origin(struct buf *text, struct span url);

#endif
