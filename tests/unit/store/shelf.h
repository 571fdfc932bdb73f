/*
 * What the tests of store/ share: a folder, a cache and a store with a scripted clock, and objects.
 */
#ifndef SUNPROXY_TESTS_STORE_SHELF_H
#define SUNPROXY_TESTS_STORE_SHELF_H

#include "store/store_fill.h"
#include "tests/unit/cache/pages.h"

#define SHELF_SECOND ((int64_t)1000000)
#define SHELF_LANES 64u
#define SHELF_FAILURE 77u

struct shelf {
    char folder[64];
    struct cache *cache;
    struct store *store;
    _Atomic int64_t now_us, wall_us; /* no read is late until the first one is changed */
    _Atomic int64_t tick_us;         /* which each look at the first one sets it forward by */
    uint64_t max_bytes; /* 0: STORE_LEAST */
    uint64_t terms;
    uint64_t boot; /* 0: that of the machine */
    int64_t waits_us, opens_us;
    bool write_all, reads_later;
    bool fails; /* reads may fail for good, so that none is tried again */
    int64_t retry_us; /* as the store has it; 0: as by default */
    enum http_reason refusal; /* of what is read, by its review */
    void (*later)(void);    /* called before a read that is not done at once; NULL: nothing is */
    unsigned lanes;         /* SHELF_LANES at most; 0: one */
    struct disk_ring *ring; /* by which lane 0 reads; owned; NULL: none */
    char said[4096]; /* what the store has told */
};

extern struct shelf shelf;

/* An empty folder, without a store; and its end, with all files removed. */
void shelf_begin(void);
void shelf_end(void);

/* Opens the store, with an empty cache; false if it refuses. Both steps by themselves. */
bool shelf_open(void);
void shelf_make_cache(void);
struct store_config shelf_config(void);

/* Closes both. */
void shelf_close(void);

/* As if the process had ended at once: the files are as they are now, and the store is another. The
 * steps by themselves: they are kept, and take the place of those that the closed store leaves. */
void shelf_kill(void);
void shelf_keep_files(void);
void shelf_take_kept_files(void);

/*
 * Have the purges so far been noted? Else the waiter is told when they have been, from which on
 * shelf_is_synced(). Its notify is set here.
 */
void shelf_ask_sync(struct source_waiter *waiter);
bool shelf_is_synced(void);

/* Waits until the purges so far have been noted. */
void shelf_await_sync(void);

uint64_t shelf_count(enum store_count which);
uint64_t shelf_objects(void);

/* A ready object, with a body of bytes that follow from URL and position; a reference. */
struct object *shelf_object(const char *url, const char *variant, const char *tags, size_t len,
                            int64_t lifetime_us);

/* Offers one that is to be written later. */
void shelf_offer(const char *url, size_t len);

/* Makes one, offers it with these names, and waits until it is written. */
void shelf_put(const char *url, size_t len);
void shelf_put_more(const char *url, const char *variant, const char *names, const char *tags,
                    size_t len, int64_t lifetime_us);

/* The store that is opened next reads by a ring; false where the kernel has none. */
bool shelf_take_ring(void);

/* What comes of a lookup that the store is to fill. */
struct shelf_found {
    bool begun;            /* the store has taken it */
    unsigned events;       /* the last of them */
    struct object *object; /* a reference, of WAITER_END; or NULL */
    char failure[128];
};

struct shelf_found shelf_get(const char *url, const char *variant, const char *fields);

/* Begins one, and leaves it: false if the store has not taken it. Then its last event; the store is
 * there still, or was closed. */
bool shelf_begin_get(struct requester *r, const char *url);
unsigned shelf_end_get(struct requester *r);

bool shelf_is_sick(void);

/* These are the bytes of the page, all of them. */
void shelf_check(const struct object *object, const char *url, size_t len);

/* It is there, and has its bytes; or it is not. A store that is sick is waited for. */
bool shelf_has(const char *url, size_t len);

/* The path of the only file of this kind, or of the newest. */
const char *shelf_file(const char *kind);
unsigned shelf_files(const char *kind);

/* Changes one bit of a file. */
void shelf_flip(const char *path, uint64_t offset);
void shelf_cut(const char *path, uint64_t size);
void shelf_clear(const char *path, uint64_t offset, size_t len); /* zeros */
uint64_t shelf_size(const char *path);
uint64_t shelf_bytes(void); /* of all files */

/* Where the last mark of the only journal ends. */
uint64_t shelf_marks_end(const char *path);

#endif
