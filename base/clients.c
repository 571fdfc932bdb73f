#include "base/clients.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum {
    DROPS_AT_ONCE = 16, /* clients forgotten while the lock is held */
    MEAN_SHIFT = 3,     /* the mean of answers moves by an eighth of the difference */
    FIRST_MEAN = 1024   /* bytes, before any answer */
};

_Static_assert(sizeof(struct client_key) == 20, "keys are compared as bytes");

RB_HEAD(key_tree, client);
RB_HEAD(full_tree, client);

struct clients {
    struct clients_config config; /* constant, but for max_connections and rates */

    /* protected by lock, and so are config.rates */
    pthread_mutex_t lock; /* before a client's */
    struct key_tree keys;
    struct full_tree idle;
    uint64_t count;
    uint64_t idle_count;
    int64_t now_us; /* the latest time at which a client was found */
    bool destroyed; /* the last client frees the table */

    /* shared */
    _Atomic uint32_t max_connections;
    atomic_bool bounds_bytes, bounds_fetches; /* there is such a rate */
    _Atomic uint64_t connected;               /* clients with a connection */
    _Atomic uint64_t calls_delayed;
    _Atomic uint64_t fetches_refused;
};

static int
compare_keys(const struct client *a, const struct client *b)
{
    return memcmp(&a->key, &b->key, sizeof(a->key));
}

static int
compare_full(const struct client *a, const struct client *b)
{
    if (a->full_us != b->full_us)
        return a->full_us < b->full_us ? -1 : 1;
    return compare_keys(a, b);
}

TREE_GENERATE(key_tree, client, by_key, compare_keys)
TREE_GENERATE(full_tree, client, by_full, compare_full)

static void
set_shared_bounds(struct clients *table, uint32_t max_connections, const struct client_rates *rates)
{
    atomic_store(&table->max_connections, max_connections);
    atomic_store(&table->bounds_bytes, rates->bytes.per_second != 0);
    atomic_store(&table->bounds_fetches, rates->fetches.per_second != 0);
}

struct clients *
clients_create(const struct clients_config *config)
{
    struct clients *table = calloc(1, sizeof(*table));

    if (!table)
        return NULL;
    table->config = *config;
    set_shared_bounds(table, config->max_connections, &config->rates);
    pthread_mutex_init(&table->lock, NULL);
    RB_INIT(&table->keys);
    RB_INIT(&table->idle);
    return table;
}

/* ---- clients; under the table's lock --------------------------------------------------------- */

static struct client *
find(struct clients *table, const struct client_key *key)
{
    struct client *client = RB_ROOT(&table->keys);

    while (client) {
        int order = memcmp(key, &client->key, sizeof(*key));

        if (order == 0)
            return client;
        client = order < 0 ? RB_LEFT(client, by_key) : RB_RIGHT(client, by_key);
    }
    return NULL;
}

static struct client *
add(struct clients *table, const struct client_key *key, int64_t now_us)
{
    const struct client_rates *rates = &table->config.rates;
    struct client *client = calloc(1, sizeof(*client));

    if (!client)
        return NULL;
    client->key = *key;
    client->table = table;
    client->mean = FIRST_MEAN;
    client->rates = *rates;
    pthread_mutex_init(&client->lock, NULL);
    token_bucket_init(&client->calls, &rates->calls, now_us);
    token_bucket_init(&client->fetches, &rates->fetches, now_us);
    token_bucket_init(&client->bytes, &rates->bytes, now_us);
    RB_INSERT(key_tree, &table->keys, client);
    table->count++;
    return client;
}

static void
forget(struct clients *table, struct client *client)
{
    RB_REMOVE(key_tree, &table->keys, client);
    table->count--;
    pthread_mutex_destroy(&client->lock);
    free(client);
}

static void
leave_idle(struct clients *table, struct client *client)
{
    RB_REMOVE(full_tree, &table->idle, client);
    table->idle_count--;
}

/* Forgets clients that are full by now, and, over the bound, those that are the next to be. */
static void
forget_idle(struct clients *table)
{
    struct client *first;

    for (int i = 0; i < DROPS_AT_ONCE; i++) {
        first = RB_MIN(full_tree, &table->idle);
        if (!first ||
            (first->full_us > table->now_us && table->idle_count <= table->config.max_idle))
            return;
        leave_idle(table, first);
        forget(table, first);
    }
}

static int64_t
longest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* When a bucket is full that nothing more is taken from. */
static int64_t
full_at_us(struct token_bucket *bucket, const struct token_rate *rate)
{
    return rate->per_second
               ? bucket->at_us + token_bucket_wait_us(bucket, rate, rate->burst, bucket->at_us)
               : INT64_MIN;
}

/* No reference is left: it is forgotten as soon as it is as if the client had never been here. */
static void
retire(struct clients *table, struct client *client)
{
    const struct client_rates *rates = &client->rates;

    client->full_us = longest(full_at_us(&client->calls, &rates->calls),
                              longest(full_at_us(&client->fetches, &rates->fetches),
                                      full_at_us(&client->bytes, &rates->bytes)));
    if (table->destroyed || client->full_us <= table->now_us) {
        forget(table, client);
    } else {
        RB_INSERT(full_tree, &table->idle, client);
        table->idle_count++;
        forget_idle(table);
    }
}

/* Without a reference it may be full at another time, or by now. */
static void
change_rates(struct clients *table, struct client *client, int64_t now_us)
{
    const struct client_rates *to = &table->config.rates;
    struct client_rates *from = &client->rates;
    bool is_idle = atomic_load(&client->references) == 0;

    if (is_idle)
        leave_idle(table, client);
    pthread_mutex_lock(&client->lock);
    token_bucket_change(&client->calls, &from->calls, &to->calls, now_us);
    token_bucket_change(&client->fetches, &from->fetches, &to->fetches, now_us);
    token_bucket_change(&client->bytes, &from->bytes, &to->bytes, now_us);
    *from = *to;
    pthread_mutex_unlock(&client->lock);
    if (is_idle)
        retire(table, client);
}

/* Unlocks the table, and frees it if it has been destroyed and this was the last client. */
static void
unlock(struct clients *table)
{
    bool last = table->destroyed && table->count == 0;

    pthread_mutex_unlock(&table->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&table->lock);
    free(table);
}

void
clients_destroy(struct clients *table)
{
    struct client *client;

    if (!table)
        return;
    pthread_mutex_lock(&table->lock);
    while ((client = RB_ROOT(&table->idle))) {
        leave_idle(table, client);
        forget(table, client);
    }
    table->destroyed = true;
    unlock(table);
}

void
clients_set_bounds(struct clients *table, uint32_t max_connections,
                   const struct client_rates *rates, int64_t now_us)
{
    struct client *client, *next;

    pthread_mutex_lock(&table->lock);
    table->config.rates = *rates;
    set_shared_bounds(table, max_connections, rates);
    table->now_us = longest(table->now_us, now_us);
    RB_FOREACH_SAFE(client, key_tree, &table->keys, next)
    change_rates(table, client, now_us);
    pthread_mutex_unlock(&table->lock);
}

void
clients_get_stats(struct clients *table, struct clients_stats *stats)
{
    pthread_mutex_lock(&table->lock);
    stats->clients = atomic_load(&table->connected) + table->idle_count;
    pthread_mutex_unlock(&table->lock);
    stats->calls_delayed = atomic_load_explicit(&table->calls_delayed, memory_order_relaxed);
    stats->fetches_refused = atomic_load_explicit(&table->fetches_refused, memory_order_relaxed);
}

/* ---- references ------------------------------------------------------------------------------ */

/* Copies an address whose bits after the first `bits` are cleared. */
static void
copy_prefix(uint8_t *to, const void *address, unsigned len, unsigned bits)
{
    memcpy(to, address, len);
    for (unsigned i = 0; i < len; i++) {
        unsigned kept = bits > 8 * i ? bits - 8 * i : 0;

        if (kept < 8)
            to[i] = (uint8_t)(to[i] & (0xff00U >> kept));
    }
}

static struct client_key
key_of(const struct clients_config *config, const struct sockaddr *address)
{
    struct client_key key = {.kind = CLIENT_UNKNOWN};

    if (address->sa_family == AF_INET) {
        key.kind = CLIENT_INET;
        copy_prefix(key.bytes, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4,
                    config->inet_bits);
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *inet6 = (const void *)address;
        bool mapped = IN6_IS_ADDR_V4MAPPED(&inet6->sin6_addr);

        key.kind = mapped ? CLIENT_INET : CLIENT_INET6;
        if (mapped)
            copy_prefix(key.bytes, inet6->sin6_addr.s6_addr + 12, 4, config->inet_bits);
        else
            copy_prefix(key.bytes, &inet6->sin6_addr, 16, config->inet6_bits);
    }
    return key;
}

static struct client *
find_or_add(struct clients *table, const struct client_key *key, int64_t now_us)
{
    struct client *client;

    pthread_mutex_lock(&table->lock);
    table->now_us = longest(table->now_us, now_us);
    client = find(table, key);
    if (!client)
        client = add(table, key, now_us);
    else if (atomic_load(&client->references) == 0)
        leave_idle(table, client);
    if (client)
        atomic_fetch_add(&client->references, 1);
    forget_idle(table);
    pthread_mutex_unlock(&table->lock);
    return client;
}

struct client *
clients_find(struct clients *table, const struct sockaddr *address, int64_t now_us)
{
    struct client_key key = key_of(&table->config, address);

    return find_or_add(table, &key, now_us);
}

struct client *
clients_find_uid(struct clients *table, uid_t uid, int64_t now_us)
{
    struct client_key key = {.kind = CLIENT_UID};
    uint32_t number = htonl((uint32_t)uid);

    memcpy(key.bytes, &number, sizeof(number));
    return find_or_add(table, &key, now_us);
}

struct client *
clients_find_named(struct clients *table, enum client_kind kind, struct span name, int64_t now_us)
{
    struct client_key key = {.kind = (uint32_t)kind};
    const uint64_t hash = hash64_bytes(name);

    memcpy(key.bytes, name.ptr, name.len < sizeof(key.bytes) ? name.len : sizeof(key.bytes));
    if (name.len > sizeof(key.bytes))
        memcpy(key.bytes + sizeof(key.bytes) - sizeof(hash), &hash, sizeof(hash));
    return find_or_add(table, &key, now_us);
}

struct client *
client_retain(struct client *client)
{
    atomic_fetch_add_explicit(&client->references, 1, memory_order_relaxed);
    return client;
}

/* The last reference is dropped under the lock, under which a client is found again. */
void
client_release(struct client **client)
{
    struct client *gone = *client;
    struct clients *table;
    uint32_t references;

    *client = NULL;
    if (!gone)
        return;
    references = atomic_load(&gone->references);
    while (references > 1) {
        if (atomic_compare_exchange_weak(&gone->references, &references, references - 1))
            return;
    }
    table = gone->table;
    pthread_mutex_lock(&table->lock);
    if (atomic_fetch_sub(&gone->references, 1) == 1)
        retire(table, gone);
    unlock(table);
}

/* ---- connections ----------------------------------------------------------------------------- */

bool
client_connect(struct client *client)
{
    uint32_t most = atomic_load(&client->table->max_connections);
    uint32_t before = atomic_fetch_add(&client->connections, 1);

    if (before == 0)
        atomic_fetch_add(&client->table->connected, 1);
    if (before < most || most == 0)
        return true;
    client_disconnect(client);
    return false;
}

void
client_disconnect(struct client *client)
{
    if (atomic_fetch_sub(&client->connections, 1) == 1)
        atomic_fetch_sub(&client->table->connected, 1);
}

bool
client_linger(struct client *client)
{
    uint32_t most = atomic_load(&client->table->max_connections);
    uint32_t before = atomic_fetch_add(&client->lingering, 1);

    if (before < most || most == 0) {
        client_disconnect(client);
        return true;
    }
    client_end_lingering(client);
    return false;
}

void
client_end_lingering(struct client *client)
{
    atomic_fetch_sub(&client->lingering, 1);
}

/* ---- rates ----------------------------------------------------------------------------------- */

int64_t
client_book_call(struct client *client, struct client_booking *booking, int64_t now_us)
{
    const struct client_rates *rates = &client->rates;
    int64_t wait_us = 0;

    pthread_mutex_lock(&client->lock);
    if (rates->bytes.per_second)
        wait_us = token_bucket_wait_us(&client->bytes, &rates->bytes, 0, now_us);
    if (rates->calls.per_second) {
        wait_us = longest(wait_us, token_bucket_wait_us(&client->calls, &rates->calls, 1, now_us));
        token_bucket_spend(&client->calls, &rates->calls, 1, now_us);
    }
    if (wait_us) {
        /* The next one that waits comes after this one's answer, which is guessed at. */
        *booking = (struct client_booking){.waiting = true, .bytes = client->mean};
        if (rates->bytes.per_second)
            token_bucket_spend(&client->bytes, &rates->bytes, booking->bytes, now_us);
    }
    pthread_mutex_unlock(&client->lock);
    if (wait_us)
        atomic_fetch_add_explicit(&client->table->calls_delayed, 1, memory_order_relaxed);
    return wait_us;
}

static void
end_booking(struct client *client, struct client_booking *booking, bool used, int64_t now_us)
{
    const struct client_rates *rates = &client->rates;

    if (!booking->waiting)
        return;
    pthread_mutex_lock(&client->lock);
    if (rates->bytes.per_second)
        token_bucket_give_back(&client->bytes, &rates->bytes, booking->bytes, now_us);
    if (rates->calls.per_second && !used)
        token_bucket_give_back(&client->calls, &rates->calls, 1, now_us);
    pthread_mutex_unlock(&client->lock);
    *booking = (struct client_booking){.waiting = false};
}

void
client_redeem(struct client *client, struct client_booking *booking, int64_t now_us)
{
    end_booking(client, booking, true, now_us);
}

void
client_cancel(struct client *client, struct client_booking *booking, int64_t now_us)
{
    end_booking(client, booking, false, now_us);
}

void
client_charge(struct client *client, uint64_t bytes, int64_t now_us)
{
    const struct token_rate *rate = &client->rates.bytes;

    if (!atomic_load_explicit(&client->table->bounds_bytes, memory_order_relaxed))
        return;
    pthread_mutex_lock(&client->lock);
    if (rate->per_second)
        token_bucket_spend(&client->bytes, rate, bytes, now_us);
    client->mean = client->mean - (client->mean >> MEAN_SHIFT) + (bytes >> MEAN_SHIFT);
    pthread_mutex_unlock(&client->lock);
}

static bool
bounds_fetches(const struct client *client)
{
    return atomic_load_explicit(&client->table->bounds_fetches, memory_order_relaxed);
}

int64_t
client_take_fetch(struct client *client, int64_t now_us)
{
    const struct token_rate *rate = &client->rates.fetches;
    int64_t wait_us = 0;

    if (!bounds_fetches(client))
        return 0;
    pthread_mutex_lock(&client->lock);
    if (rate->per_second)
        wait_us = token_bucket_wait_us(&client->fetches, rate, 1, now_us);
    if (rate->per_second && wait_us == 0)
        token_bucket_spend(&client->fetches, rate, 1, now_us);
    pthread_mutex_unlock(&client->lock);
    if (wait_us)
        atomic_fetch_add_explicit(&client->table->fetches_refused, 1, memory_order_relaxed);
    return wait_us;
}

void
client_charge_fetch(struct client *client, int64_t now_us)
{
    const struct token_rate *rate = &client->rates.fetches;

    if (!bounds_fetches(client))
        return;
    pthread_mutex_lock(&client->lock);
    if (rate->per_second)
        token_bucket_spend(&client->fetches, rate, 1, now_us);
    pthread_mutex_unlock(&client->lock);
}
