#include "fetch/pool.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_AT 16 /* idle connections, whose pools may be full */

struct pool {
    CURLSH *share; /* NULL: it has no connection */
    unsigned leases;
    unsigned idle;     /* members; a claimed one belongs to its claimer's lease */
    int64_t unused_us; /* monotonic: no lease was seen from then on; 0: there may have been one */
    LIST_HEAD(, pool_member) members;
};

/* It stays while a lease or a member refers to it. */
struct pool_origin {
    RB_ENTRY(pool_origin) node;
    unsigned references;
    unsigned kept;                 /* members that are */
    LIST_HEAD(, pool_member) idle; /* the one used last comes first */
    struct pool_member *shared;    /* over HTTP/2: the one that a transfer was given last */
    char key[];
};

static int
compare_origins(struct pool_origin *a, struct pool_origin *b)
{
    return strcmp(a->key, b->key);
}

TREE_GENERATE(pool_origin_tree, pool_origin, node, compare_origins)

/* ---- all pools ----------------------------------------------------------------------- */

void
pools_init(struct pools *pools, unsigned connections, unsigned kept)
{
    *pools = (struct pools){.kept = kept};
    RB_INIT(&pools->origins);
    pools->most = (connections - 1) / POOL_CONNECTIONS + 1;
    pools->size = (connections - 1) / pools->most + 1;
}

CURLMcode
pools_set_bounds(const struct pools *pools, CURLM *multi)
{
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)pools->size);

    /* For each cache of libcurl's. An idle connection is closed where a new one would be too many.
     */
    return code ? code
                : curl_multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)pools->size);
}

void
pools_close(struct pools *pools)
{
    for (unsigned i = 0; i < pools->count; i++) {
        curl_share_cleanup(pools->list[i]->share);
        pools->list[i]->share = NULL;
    }
    pools->open = 0;
}

void
pools_free(struct pools *pools)
{
    for (unsigned i = 0; i < pools->count; i++)
        free(pools->list[i]);
    free(pools->list);
    pools->list = NULL;
    pools->count = 0;
}

/* NULL without memory. */
static struct pool *
add_pool(struct pools *pools)
{
    struct pool **longer = realloc(pools->list, (pools->count + 1) * sizeof(struct pool *));
    struct pool *pool;

    if (!longer)
        return NULL;
    pools->list = longer;
    pool = calloc(1, sizeof(*pool));
    if (!pool)
        return NULL;
    LIST_INIT(&pool->members);
    pools->list[pools->count++] = pool;
    return pool;
}

/* False without memory. */
static bool
open_share(struct pools *pools, struct pool *pool)
{
    CURLSH *share;

    if (pool->share)
        return true;
    share = curl_share_init();
    if (!share || curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT)) {
        curl_share_cleanup(share);
        return false;
    }
    pool->share = share;
    pools->open++;
    return true;
}

/* Have the origins closed all its connections? */
static bool
is_dead(const struct pool *pool, bool (*is_open)(struct pool_member *member))
{
    struct pool_member *member;

    LIST_FOREACH(member, &pool->members, sibling)
    if (is_open(member))
        return false;
    return !LIST_EMPTY(&pool->members);
}

void
pools_close_unused(struct pools *pools, int64_t now_us, bool (*is_open)(struct pool_member *member))
{
    if (now_us < pools->look_us)
        return;
    pools->look_us = now_us + POOL_LOOK_US;
    for (unsigned i = 0; i < pools->count; i++) {
        struct pool *pool = pools->list[i];

        /* Without a lease, no handle of libcurl has the share. */
        if (!pool->share || pool->leases) {
            continue;
        } else if (pool->unused_us == 0) {
            pool->unused_us = now_us;
        } else if ((now_us - pool->unused_us >= POOL_UNUSED_US || is_dead(pool, is_open)) &&
                   curl_share_cleanup(pool->share) == CURLSHE_OK) {
            pool->share = NULL;
            pools->open--;
        }
    }
}

/* ---- origins ------------------------------------------------------------------------- */

/* NULL without memory. It may have no reference yet. */
static struct pool_origin *
find_or_add_origin(struct pools *pools, const char *key)
{
    size_t size = strlen(key) + 1;
    struct pool_origin *origin = malloc(sizeof(*origin) + size), *same;

    if (!origin)
        return NULL;
    *origin = (struct pool_origin){0};
    LIST_INIT(&origin->idle);
    memcpy(origin->key, key, size);
    same = RB_INSERT(pool_origin_tree, &pools->origins, origin);
    if (same)
        free(origin);
    return same ? same : origin;
}

static void
release_origin(struct pools *pools, struct pool_origin *origin)
{
    if (origin->references)
        return;
    RB_REMOVE(pool_origin_tree, &pools->origins, origin);
    free(origin);
}

/* ---- choosing ------------------------------------------------------------------------ */

static bool
has_slot(const struct pools *pools, const struct pool *pool)
{
    return pool->leases < pools->size;
}

/* May it open a connection, and keep all it has? */
static bool
has_place(const struct pools *pools, const struct pool *pool)
{
    return pool->leases + pool->idle < pools->size;
}

static void
set_kept(struct pool_member *member, bool kept)
{
    if (kept && !member->kept)
        member->origin->kept++;
    else if (!kept && member->kept)
        member->origin->kept--;
    member->kept = kept;
}

static void
make_idle(struct pool_member *member)
{
    set_kept(member, true);
    member->state = MEMBER_IDLE;
    member->pool->idle++;
    LIST_INSERT_HEAD(&member->origin->idle, member, link);
}

/* It is about to become something else. */
static void
end_idleness(struct pool_member *member)
{
    if (member->state != MEMBER_IDLE)
        return;
    member->pool->idle--;
    LIST_REMOVE(member, link);
}

static void
claim(struct pool_member *member, struct pool_lease *lease)
{
    end_idleness(member);
    member->state = MEMBER_CLAIMED;
    member->claimer = lease;
    lease->claimed = member;
}

/* libcurl gives no transfer of HTTP/1 a connection of HTTP/2. */
static struct pool_member *
find_idle(const struct pools *pools, const struct pool_origin *origin, bool may_share)
{
    struct pool_member *member = LIST_FIRST(&origin->idle);

    for (int i = 0; member && i < LOOK_AT; i++, member = LIST_NEXT(member, link))
        if (has_slot(pools, member->pool) && (may_share || !member->shareable))
            return member;
    return NULL;
}

typedef bool pool_test(const struct pools *pools, const struct pool *pool);

/* The next pool that passes, in turns; NULL if none does. */
static struct pool *
find_pool(struct pools *pools, pool_test *passes)
{
    for (unsigned i = 0; i < pools->count; i++) {
        unsigned at = (pools->cursor + i) % pools->count;

        if (passes(pools, pools->list[at])) {
            pools->cursor = at;
            return pools->list[at];
        }
    }
    return NULL;
}

/* A pool for a new connection; NULL without memory. */
static struct pool *
choose_for_new(struct pools *pools)
{
    struct pool *pool = find_pool(pools, has_place);

    if (!pool && pools->count < pools->most)
        pool = add_pool(pools);
    if (pool)
        return pool;
    /* An idle connection is closed for the new one, not always one of the same pool. */
    pools->cursor++;
    pool = find_pool(pools, has_slot);
    return pool || pools->count == 0 ? pool : pools->list[pools->cursor % pools->count];
}

bool
pool_choose(struct pools *pools, struct pool_lease *lease, const char *key, enum pool_wish wish)
{
    struct pool_origin *origin = find_or_add_origin(pools, key);
    struct pool_member *idle = NULL;
    struct pool *pool = NULL;

    if (!origin)
        return false;
    if (wish == POOL_SHARED && origin->shared && has_slot(pools, origin->shared->pool))
        pool = origin->shared->pool;
    if (!pool && wish != POOL_NEW)
        idle = find_idle(pools, origin, wish == POOL_SHARED);
    if (idle)
        pool = idle->pool;
    if (!pool)
        pool = choose_for_new(pools);
    if (!pool || !open_share(pools, pool)) {
        release_origin(pools, origin);
        return false;
    }
    *lease = (struct pool_lease){.pool = pool, .origin = origin};
    origin->references++;
    if (idle)
        claim(idle, lease);
    pool->leases++;
    pool->unused_us = 0;
    return true;
}

CURLSH *
pool_share(const struct pool *pool)
{
    return pool->share;
}

/* ---- leases -------------------------------------------------------------------------- */

static void
end_claim(struct pool_lease *lease)
{
    if (!lease->claimed)
        return;
    lease->claimed->claimer = NULL;
    make_idle(lease->claimed);
    lease->claimed = NULL;
}

static void
end_use(struct pool_lease *lease)
{
    struct pool_member *member = lease->used;

    if (!member)
        return;
    LIST_REMOVE(lease, link);
    lease->used = NULL;
    if (LIST_EMPTY(&member->users))
        make_idle(member);
}

void
pool_end_lease(struct pools *pools, struct pool_lease *lease)
{
    if (!lease->pool)
        return;
    end_claim(lease);
    end_use(lease);
    lease->pool->leases--;
    lease->origin->references--;
    release_origin(pools, lease->origin);
    *lease = (struct pool_lease){0};
}

/* ---- members ------------------------------------------------------------------------- */

void
pool_add_member(struct pool_member *member, const struct pool_lease *lease)
{
    *member = (struct pool_member){
        .pool = lease->pool,
        .origin = lease->origin,
        .state = MEMBER_OPENING,
    };
    LIST_INIT(&member->users);
    LIST_INSERT_HEAD(&member->pool->members, member, sibling);
    member->origin->references++;
}

void
pool_take_member(struct pool_member *member, struct pool_lease *lease, bool shared)
{
    struct pool_lease *claimer = member->state == MEMBER_CLAIMED ? member->claimer : NULL;
    struct pool_member *left = lease->claimed;

    end_use(lease);
    end_idleness(member);
    /* It has no claimer from here on; what the lease had claimed is left for another. */
    lease->claimed = NULL;
    if (claimer)
        claimer->claimed = NULL;
    member->claimer = NULL;
    if (left && left != member) {
        left->claimer = NULL;
        make_idle(left);
        if (claimer)
            claim(left, claimer);
    }
    set_kept(member, false);
    member->state = MEMBER_USED;
    member->shareable = shared;
    LIST_INSERT_HEAD(&member->users, lease, link);
    lease->used = member;
    if (shared)
        member->origin->shared = member;
}

bool
pool_keep_member(const struct pools *pools, const struct pool_lease *lease)
{
    struct pool_member *member = lease->used;

    if (!member || member->shareable || member->kept)
        return true;
    if (member->origin->kept >= pools->kept)
        return false;
    set_kept(member, true);
    return true;
}

void
pool_remove_member(struct pools *pools, struct pool_member *member)
{
    struct pool_lease *lease;

    end_idleness(member);
    set_kept(member, false);
    LIST_REMOVE(member, sibling);
    if (member->claimer)
        member->claimer->claimed = NULL;
    while ((lease = LIST_FIRST(&member->users))) {
        LIST_REMOVE(lease, link);
        lease->used = NULL;
    }
    if (member->origin->shared == member)
        member->origin->shared = NULL;
    member->origin->references--;
    release_origin(pools, member->origin);
    *member = (struct pool_member){0};
}
