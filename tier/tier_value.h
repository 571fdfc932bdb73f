/*
 * Values of the tier, as they are in memcached: a kind, a code of authentication (HMAC-SHA-256, RFC
 * 2104) under a key that the daemons share, and what the kind has. The code is over the value's key
 * in memcached, too, so a value under another key is none. Servers, and what else writes into them,
 * can lose values and put back older ones, and no more.
 *
 * A record is that of the store (store/disk_record.h), with its body behind it, and with the epoch
 * up to which purges do not concern it as its position. Safe on any thread.
 */
#ifndef SUNPROXY_TIER_TIER_VALUE_H
#define SUNPROXY_TIER_TIER_VALUE_H

#include "base/buf.h"
#include "base/keyed_hash.h"
#include "origins/peer_auth.h"
#include "store/disk_record.h"

/* A key: "sp" and 128 bits in hexadecimal digits. */
#define TIER_KEY_LEN 34u

struct tier_key {
    uint64_t words[2];
    char text[TIER_KEY_LEN + 1];
};

/*
 * From which keys are made. Without what the daemons share it cannot be told which URL a key is of,
 * and no two URLs with the same key can be found.
 */
struct tier_naming {
    struct hash_key words[2][3]; /* of either word: of a URL, of a variant, and of both together */
};

/* Of the key by which values are written. False: it cannot be computed, without memory. */
bool tier_naming_make(struct tier_naming *naming, struct span secret);

/* Of a URL and variant under these terms (struct tier_config). */
struct tier_key tier_key_of(const struct tier_naming *naming, uint64_t terms, struct span url,
                            struct span variant);

/* Of the journal: the same under each of the keys that daemons share, so that no purge is missed
 * while these are replaced. */
struct tier_key tier_key_of_journal(void);

enum tier_kind {
    TIER_RECORD = 1,
    TIER_NAMES,   /* a record without a body: the names by which the URL varies */
    TIER_PASS,    /* nothing: the response is not for the tier */
    TIER_JOURNAL, /* tier_journal.h */
};

#define TIER_VALUE_HEAD 48u /* bytes before what the kind has */

/* Begins a value in an empty buffer, behind which what the kind has is appended; and ends it. False
 * if it has not fit, or no code can be computed. */
void tier_value_begin(struct buf *value, enum tier_kind kind);
bool tier_value_end(struct buf *value, const struct peer_keys *keys, const struct tier_key *key);

/* Verifies a value. False: it is none under this key. */
bool tier_value_open(struct span value, const struct peer_keys *keys, const struct tier_key *key,
                     enum tier_kind *kind, struct span *content);

/* Is it a value under none of the keys, as far as it says? */
bool tier_value_is_foreign(struct span value, const struct peer_keys *keys);

/*
 * Appends a record of a ready object, or with TIER_NAMES of its URL and names. `head` has times,
 * position, lifetime, notes and status.
 */
void tier_record_write(struct buf *value, enum tier_kind kind, struct disk_head *head,
                       const struct object *object, struct span names);

/* Reads a record; *body points into `content`. False: it is damaged. */
bool tier_record_read(struct span content, struct disk_record *record, struct span *body);

#endif
