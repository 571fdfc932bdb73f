/*
 * News of peers as text (peer_news.h): what was purged. An item is a letter for the kind, one for
 * how, and the name, with a scope behind a comma if it has one; in both a byte that is no visible
 * character, "%" and "," are written as "%" and two digits. Items are separated by blanks.
 */
#ifndef SUNPROXY_SERVER_PEERS_PEER_ITEM_H
#define SUNPROXY_SERVER_PEERS_PEER_ITEM_H

#include "base/buf.h"
#include "proxy/control.h"

struct peer_item {
    enum control_purge kind;
    bool soft;
    bool written;      /* a URL, by a write: with the tags of what is stored of it */
    struct span name;  /* of CONTROL_PURGE_ALL empty */
    struct span scope; /* of tags: as struct proxy_purged has it */
};

/* Appends it, and a blank. The buffer says if that failed. */
void peer_item_write(const struct peer_item *item, struct buf *out);

/* Takes the first item off, with its names in `bytes`, which is reset. False: it is malformed. */
bool peer_item_read(struct span *text, struct peer_item *item, struct buf *bytes);

/*
 * Purges it here. Of one that was written appends to `told`, unless that is NULL, items for the
 * tags that it had here, or for all in its scope if there are many.
 */
void peer_item_purge(struct proxy *proxy, const struct peer_item *item, struct buf *told);

#endif
