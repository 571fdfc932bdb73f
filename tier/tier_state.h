/*
 * What the files of tier/ share: the tier itself. Private.
 *
 * A thread owns the servers and the fills. `lock` protects what other threads leave for it. That of
 * the marks may be taken under it; every other lock is taken alone.
 */
#ifndef SUNPROXY_TIER_TIER_STATE_H
#define SUNPROXY_TIER_TIER_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clients.h"
#include "base/container_of.h"
#include "store/disk_marks.h"
#include "tier/tier.h"
#include "tier/tier_journal.h"
#include "tier/tier_meta.h"
#include "tier/tier_value.h"

#define TIER_RESOLUTION_US ((int64_t)1000000) /* of the servers' clocks */
#define TIER_LEASE_S 30                      /* seconds of a lease */
#define TIER_GRACE_S 30                      /* for which a value stays once it has expired */
#define TIER_LEASES 4096u                    /* that are remembered, */
#define TIER_LEASE_WAYS 4u                    /* in groups of that size, by hash */
#define TIER_TASKS 4096u                     /* that wait */
#define TIER_TASK_BYTES ((uint64_t)64 << 20) /* of bodies in them */
#define TIER_OUT ((size_t)4 << 20)           /* bytes that wait for a server */
#define TIER_MARKS 1024u                     /* that wait for a server that is down, */
#define TIER_MARK_BYTES TIER_JOURNAL_BYTES   /* and bytes of their texts; */
#define TIER_UP_TIMES 16u                    /* as many times more for one that is up */
#define TIER_EPOCHS 64u                      /* that are remembered with their moments */
#define TIER_SEEN 4096u                      /* entries that are remembered */

struct tier_fill;
struct tier_server;
struct tier_above;

TAILQ_HEAD(tier_fills, tier_fill);

/* ---- requests to a server -------------------------------------------------------------------- */

enum tier_op_kind {
    TIER_OP_GET,   /* of a fill */
    TIER_OP_STALE, /* marks a value stale, before another GET */
    TIER_OP_SET,
    TIER_OP_DROP,
    TIER_OP_PROBE, /* of a server that was down, or lags */
    TIER_OP_TIME,  /* of its clock */
    TIER_OP_POLL,  /* has the journal changed? */
    TIER_OP_READ,  /* the journal, */
    TIER_OP_WRITE, /* and it is written */
};

struct tier_op {
    STAILQ_ENTRY(tier_op) link;
    enum tier_op_kind kind;
    int64_t sent_us, until_us;
    size_t bytes; /* of its value */
    struct tier_fill *fill; /* GET; NULL: it was given up */
    struct tier_key key;    /* GET */
    uint64_t number;        /* WRITE: of the last mark in it */
};

/* ---- what other threads leave ---------------------------------------------------------------- */

enum tier_task_kind {
    TIER_TASK_FILL,
    TIER_TASK_OFFER,
    TIER_TASK_PASS,    /* the response is not for the tier, */
    TIER_TASK_RELEASE, /* or has failed: another daemon may fetch */
};

struct tier_task {
    STAILQ_ENTRY(tier_task) link;
    enum tier_task_kind kind;
    struct tier_fill *fill;
    struct object *object; /* OFFER: a reference */
    struct tier_key key;   /* of it, or of what is dropped */
    struct tier_key url;   /* OFFER of a variant: the URL's key */
    uint64_t cas, url_cas; /* of a lease; 0: there is none */
    uint64_t position;
    size_t names_len;
    char names[];
};

STAILQ_HEAD(tier_tasks, tier_task);

/* A purge that is to be in the journals. */
struct tier_mark {
    STAILQ_ENTRY(tier_mark) link;
    uint64_t number;
    struct tier_entry entry; /* its texts are in `text` */
    char text[];
};

/* A key for which this daemon is to fetch, or has just found nothing. */
struct tier_lease {
    struct tier_key key;
    uint64_t cas;
    int64_t until_us;
};

/* ---- a server -------------------------------------------------------------------------------- */

/*
 * DOWN -connects-> CONNECTS -connected-> CHECKED -its journal has been read-> UP;
 * any -late, broken or closed-> DOWN
 */
enum tier_server_state { TIER_DOWN, TIER_CONNECTS, TIER_CHECKED, TIER_UP };

struct tier_server {
    struct tier_address address; /* the name is constant; the address is the thread's */
    struct resolver_query query; /* for its name */
    int64_t asked_us;            /* when it began; 0: never */
    struct resolved *resolved;   /* a reference: its addresses; NULL: of no name */
    size_t untried;              /* of them, before it has failed */
    _Atomic bool up;             /* what other threads see of the state */
    _Atomic bool lags;           /* requests pass it by: its answers are slow */
    enum tier_server_state state;
    bool told_down; /* in the log */
    bool is_tried;  /* it has been up, or has failed */
    bool was_slow;  /* it is to answer quickly before it is used again */
    bool is_probed; /* an op of PROBE is under way */
    unsigned slow;  /* slow answers to GET and PROBE more than quick ones to GET, */
    int64_t slow_us; /* up to then: what was sent before was counted with the last one */
    unsigned unkept; /* leases of other daemons in a row for whose values requests waited in vain, */
    int64_t unkept_us;   /* likewise */
    int64_t no_leases_us; /* until then none waits for them */
    bool had_other;       /* the last op of STALE has found another value */
    int fd;         /* -1 */
    uint32_t events;
    int64_t again_us; /* DOWN: when it is tried; CONNECTS: when it is late */
    struct buf in, out;
    size_t out_at;              /* what of it was sent */
    size_t unanswered; /* bytes of values that wait for their replies */
    STAILQ_HEAD(, tier_op) ops; /* sent, or to be; in the order of their replies */

    /* Its journal. */
    bool knows;              /* it has been read, */
    struct tier_journal has; /* and had this, when it was last read or written */
    struct buf copy;         /* its entries then, */
    bool is_copied;          /* for which there was memory */
    uint64_t cas;            /* of what was read; 0: it has been written since */
    int64_t read_us;         /* when it was asked for what was read last */
    int64_t lost_us;         /* since when it is known that it is lost; 0: it is not */
    uint64_t lost_cas;       /* of what is there in its place; 0: nothing is */
    int64_t begun_us;        /* when this daemon has begun one that was lost; 0: it has not */
    bool compares;           /* what other servers have is to be written to it, too */
    uint64_t noted;              /* number of the last mark that is in it */
    struct tier_journal written; /* WRITE: what it has then, */
    struct buf writing;          /* its entries, */
    unsigned appended;           /* and those of them that are purges of this daemon */
    bool compared;               /* WRITE: it has what other servers have */
    bool lacks;                  /* marks that were forgotten: all is to be purged */
    bool at_journal;             /* an op of POLL, READ or WRITE is under way */
    int64_t write_us; /* it takes no more marks before: entries that others may not have read would
                         be dropped */
    int64_t polled_us;
    int64_t timed_us;
    int64_t apart_us; /* by how much this daemon's clock is ahead of it; INT64_MIN: not known */
};

/* ---- telling of purges: tier_tell.c ---------------------------------------------------------- */

struct tier_told;

struct tier_teller {
    pthread_mutex_t lock;
    /* protected by it */
    pthread_cond_t cond;
    STAILQ_HEAD(, tier_told) told; /* owned: what is to be told */
    unsigned count;
    bool all; /* everything is purged, instead of what there was no space for */
    bool ends;

    pthread_t thread;
    bool has_thread;
};

/* Has config.purged called soon, in the order of these calls. Of any thread. */
void tier_tell(struct tier *tier, const struct source_purge *purge);

void tier_teller_init(struct tier_teller *teller);
int tier_teller_start(struct tier *tier); /* 0 or an errno */

/* When all is told. Harmless if it was not started. */
void tier_teller_end(struct tier_teller *teller);
void tier_teller_free(struct tier_teller *teller);

/* ---- the tier -------------------------------------------------------------------------------- */

struct tier {
    struct source source;      /* first */
    struct tier_config config; /* constant, but for what has a field of its own */
    struct disk_marks marks;
    struct tier_teller teller;
    const struct tier_above *above;
    uint64_t boot;
    _Atomic uint64_t terms;
    _Atomic uint64_t counts[TIER_COUNTS];
    _Atomic bool leaves; /* tier_leave() */
    _Atomic bool left;   /* the clock differs */

    pthread_mutex_t keys_lock;
    /* protected by it */
    struct peer_keys keys;
    char *key_text; /* owned: of the keys */

    pthread_mutex_t lock;
    /* protected by it */
    struct tier_tasks lookups; /* FILL, */
    struct tier_tasks writes;  /* and the others */
    size_t task_count;
    uint64_t task_bytes;
    STAILQ_HEAD(, tier_mark) pending;
    size_t pending_count, pending_bytes;
    uint64_t marked, synced; /* numbers of marks */
    uint64_t told;           /* that of the last one that a server has, with those before */
    bool forgot;             /* a mark for which there was no memory */
    struct source_waiters waiters;
    uint64_t last_epoch; /* that was given to a purge here */
    int64_t apart_us; /* by how much this clock is ahead of the servers'; 0: it agrees */
    struct {
        int64_t at_us;
        uint64_t epoch;
    } epochs[TIER_EPOCHS]; /* the latest that servers have, and since when that is known */
    unsigned epoch_count;  /* that were added */
    struct tier_naming naming;
    struct tier_lease leases[TIER_LEASES];
    uint64_t random; /* state of a generator */

    /* the thread's */
    pthread_t thread;
    bool has_thread;
    int poll, wake; /* epoll and eventfd */
    struct tier_server servers[TIER_SERVERS];
    unsigned server_count;
    struct tier_names {
        struct resolver *resolver; /* NULL: all servers are addresses */
        struct clients *clients;
        struct client *client; /* that asks */
    } names;
    struct tier_fills asked;   /* for their servers, in the order of their ends, */
    struct tier_fills waiting; /* and for other daemons */
    bool begun;                    /* all servers have been tried */
    uint64_t unlisted; /* epoch: entries up to it, which this daemon knew of, may be in no copy */
    int64_t patience_us; /* how long a server that has lost its journal waits for others that cannot
                            be reached, or for a daemon that has read it; constant */
    int64_t last_us; /* how long a server is awaited for the last purges at the end; constant */
    uint64_t seen[TIER_SEEN];    /* ids of entries, by hash */
    struct buf value;
};

static inline void
tier_add(struct tier *tier, enum tier_count which)
{
    atomic_fetch_add_explicit(&tier->counts[which], 1, memory_order_relaxed);
}

/* ---- tier_state.c ---------------------------------------------------------------------------- */

int64_t tier_wall_us(const struct tier *tier);

void tier_say(const struct tier *tier, enum tier_log kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The key of a URL and variant under these terms. [any thread] */
struct tier_key tier_key_under(struct tier *tier, uint64_t terms, struct span url,
                               struct span variant);

/* Under those that there are. [any thread] */
struct tier_key tier_key_now(struct tier *tier, struct span url, struct span variant);

/* The server of a key among those that are up; NULL: none is. [any thread] */
struct tier_server *tier_server_of(struct tier *tier, const struct tier_key *key);

void tier_wake(struct tier *tier);

/* ---- tier_lease.c: of any thread ------------------------------------------------------------- */

/* Remembers that this daemon is to fetch, or without a lease (cas 0), that nothing is to be asked
 * for soon. A lease that is there stays then. */
void tier_lease_add(struct tier *tier, const struct tier_key *key, uint64_t cas, int64_t us);

/* Removes the value that has this cas value; 0: whatever there is. The thread's. */
void tier_remove(struct tier *tier, const struct tier_key *key, uint64_t cas);

/* Lets other daemons fetch, by the cas value of a lease. The thread's; so is the next. */
void tier_lease_release(struct tier *tier, const struct tier_key *key, uint64_t cas);

/* All that there are. */
void tier_lease_release_all(struct tier *tier);

/* Is there one, or is nothing to be asked for? */
bool tier_lease_is_held(struct tier *tier, const struct tier_key *key);

/* Takes it away: its cas; 0: there is none. */
uint64_t tier_lease_take(struct tier *tier, const struct tier_key *key);

/* ---- above the servers ----------------------------------------------------------------------- */

/* What their replies are for, and requests that are given up. The thread's. */
struct tier_above {
    void (*take)(struct tier *tier, struct tier_server *server, const struct tier_op *op,
                 const struct tier_meta *reply);
    void (*fail)(struct tier *tier, struct tier_fill *fill);
    bool (*next_address)(struct tier_server *server); /* tier_names_next() */
};

/* ---- tier_server.c: the thread's ------------------------------------------------------------- */

/* Sends a command and its value, if that is not empty. The op is the server's from then on. False,
 * and the op is freed: too much waits, or it is down. */
bool tier_server_send(struct tier *tier, struct tier_server *server, struct tier_op *op,
                      struct span command, struct span value);

/* The op may be NULL, without memory for it. */
struct tier_op *tier_op_create(enum tier_op_kind kind);

/* Gives it up: its ops fail, and it is tried again later. */
void tier_server_fail(struct tier *tier, struct tier_server *server, const char *why);

/* Sends what waits, as far as that is possible at once. False: it has failed. */
bool tier_server_flush(struct tier *tier, struct tier_server *server);

/* Takes the replies that have come: this thread may have waited, too. */
void tier_server_hurry(struct tier *tier, struct tier_server *server);

/* A request that was sent at that moment is slow: others pass the server by until a probe is
 * answered quickly. It is given up if requests and probes often are slow. */
void tier_server_note_slow(struct tier *tier, struct tier_server *server, int64_t sent_us);

void tier_server_ready(struct tier *tier, struct tier_server *server, uint32_t events);

/* Does what is due, but for the journal. */
void tier_server_look(struct tier *tier, struct tier_server *server, int64_t now_us);

/* The moment of the next look. */
int64_t tier_server_next(const struct tier *tier, const struct tier_server *server);

/* ---- tier_names.c: the thread's, but for starting and freeing ---------------------------------- */

/* 0 or an errno. */
int tier_names_start(struct tier *tier);
void tier_names_free(struct tier *tier);

/* A connection cannot be made: goes on to the next address of its name. False: to none, as all of
 * them were tried. */
bool tier_names_next(struct tier_server *server);

/* Takes the answers that there are. */
void tier_names_collect(struct tier *tier);

/* A server that is down is due: looks its name up if that is due. Without an address it is due
 * later. */
void tier_names_look(struct tier *tier, struct tier_server *server, int64_t now_us);

/* ---- tier_fill.c: the thread's --------------------------------------------------------------- */

struct tier_fill {
    struct cache_fill base; /* first */
    TAILQ_ENTRY(tier_fill) link;
    struct tier *tier;
    struct tier_key key;
    struct tier_server *server; /* that was asked last */
    struct tier_op *op;         /* under way, or NULL */
    struct tier_fills *in;      /* of the tier's, or NULL */
    int64_t begun_us;
    int64_t until_us; /* when all that is asked of servers has to be answered */
    int64_t again_us;
    unsigned waits;
    bool has_marked; /* a value stale */
    bool takes_over; /* the lease of another daemon */
    bool is_counted; /* its value, as one of no use */
    uint64_t most;
    size_t fields_len;
    char *fields; /* of the request, owned */
    struct source_review review; /* with a reference to the rules */
};

enum source_filling tier_fill_start(struct source *source, struct cache_fill *base,
                                    const struct source_request *request);

void tier_fill_ask(struct tier *tier, struct tier_fill *fill);
void tier_fill_take(struct tier *tier, struct tier_fill *fill, const struct tier_meta *reply);

/* Its server has failed, or is passed by. */
void tier_fill_fail(struct tier *tier, struct tier_fill *fill);

/* Asks again what is due. The moment of the next look. */
int64_t tier_fill_look(struct tier *tier, int64_t now_us);

/* ---- tier_offer.c ---------------------------------------------------------------------------- */

/* Functions of struct source_ops. */
uint64_t tier_begin_offer(struct source *source, int64_t begun_us);
bool tier_offer(struct source *source, struct object *object, struct span names, uint64_t position);
void tier_outdate(struct source *source, struct span url, struct span variant, bool all);
void tier_begins(struct source *source, struct span url, struct span variant, uint64_t length);
void tier_release(struct source *source, struct span url, struct span variant);

/* The thread's: the next one that is to be run, which is of these; NULL: none is. */
struct tier_task *tier_task_take(struct tier *tier, struct tier_tasks *from);

/* The thread's: does what was left for it, which is no FILL. */
void tier_write_run(struct tier *tier, struct tier_task *task);

/* ---- tier_purge.c ---------------------------------------------------------------------------- */

/* The latest epoch that servers had at this moment. Under the lock. */
uint64_t tier_epoch_at(const struct tier *tier, int64_t at_us);

/* Functions of struct source_ops. */
struct source_marked tier_mark(struct source *source, const struct source_purge *purge,
                               const struct source_marked *before);
bool tier_is_synced(struct source *source, struct source_waiter *waiter);
bool tier_forget_waiter(struct source *source, struct source_waiter *waiter);

/* Keeps an entry of a journal, so that it concerns what is in the tier. */
void tier_add_mark(struct tier *tier, const struct tier_entry *entry);

/* Is it seen for the first time? The thread's; so are those that follow. */
bool tier_see(struct tier *tier, uint64_t id);

/* A server has this epoch. */
void tier_know_epoch(struct tier *tier, uint64_t epoch);

/* Purges what the journal of a server has for the first time. */
void tier_take_entries(struct tier *tier, struct tier_server *server,
                       const struct tier_journal *journal, struct span entries);

/* It is not known what was purged up to the journal's floor. */
void tier_lose(struct tier *tier, const struct tier_server *server,
               const struct tier_journal *journal);

/* Begins to use the servers once each of them has been tried. */
void tier_begin(struct tier *tier);

/* Has a server all marks, and each one that is up? The thread's. */
bool tier_is_told(struct tier *tier);

/* Notifies those whose marks are noted by all servers that are up. The thread's. */
void tier_settle(struct tier *tier, bool all);

/* Later than all that was seen, and than the clock by that. Under the lock. */
uint64_t tier_next_epoch(struct tier *tier, int64_t more_us);

/* Later than what any daemon has given to a purge. Under the lock. */
uint64_t tier_epoch_of_all(struct tier *tier);

/* ---- tier_journals.c ------------------------------------------------------------------------- */

/* The thread's: does what is due at a server's journal, and takes its replies. The moment of the
 * next look. */
int64_t tier_journal_look(struct tier *tier, struct tier_server *server, int64_t now_us);
void tier_journal_take(struct tier *tier, struct tier_server *server, const struct tier_op *op,
                       const struct tier_meta *reply);

#endif
