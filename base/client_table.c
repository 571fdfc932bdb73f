#include "base/client_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/tree.h"

enum {
    DROPS_AT_ONCE = 16, /* entries forgotten while the lock is held */
    MEAN_SHIFT = 3,     /* the mean of answers moves by an eighth of the difference */
    FIRST_MEAN = 1024   /* bytes, before any answer */
};

struct client_entry {
    /* protected by the table's lock */
    RB_ENTRY(client_entry) by_key;
    RB_ENTRY(client_entry) by_full; /* without a connection only */
    struct client_key key;
    uint32_t connections;
    int64_t full_us; /* without a connection: when all buckets are full */

    /* read-only */
    struct client_table *table;

    /* protected by the entry's lock */
    pthread_mutex_t lock;
    struct token_bucket calls;
    struct token_bucket fetches;
    struct token_bucket bytes;
    uint64_t mean; /* bytes of an answer, the latest counting most */
};

RB_HEAD(key_tree, client_entry);
RB_HEAD(full_tree, client_entry);

struct client_table {
    struct client_table_config config;
    bool has_rates;
    pthread_mutex_t lock; /* before an entry's */
    struct key_tree keys;
    struct full_tree idle;
    uint64_t count;
    uint64_t idle_count;

    /* shared */
    _Atomic uint64_t calls_delayed;
    _Atomic uint64_t fetches_refused;
};

static int
compare_keys(const struct client_entry *a, const struct client_entry *b)
{
    return client_key_compare(&a->key, &b->key);
}

static int
compare_full(const struct client_entry *a, const struct client_entry *b)
{
    if (a->full_us != b->full_us)
        return a->full_us < b->full_us ? -1 : 1;
    return compare_keys(a, b);
}

TREE_GENERATE(key_tree, client_entry, by_key, compare_keys)
TREE_GENERATE(full_tree, client_entry, by_full, compare_full)

bool
client_rates_any(const struct client_rates *rates)
{
    return rates->calls.per_second || rates->fetches.per_second || rates->bytes.per_second;
}

struct client_table *
client_table_create(const struct client_table_config *config)
{
    struct client_table *table = calloc(1, sizeof(*table));

    if (!table)
        return NULL;
    table->config = *config;
    table->has_rates = client_rates_any(&config->rates);
    pthread_mutex_init(&table->lock, NULL);
    RB_INIT(&table->keys);
    RB_INIT(&table->idle);
    return table;
}

/* ---- entries; under the table's lock --------------------------------------------------------- */

static struct client_entry *
create_entry(struct client_table *table, const struct client_key *key, int64_t now_us)
{
    const struct client_rates *rates = &table->config.rates;
    struct client_entry *entry = calloc(1, sizeof(*entry));

    if (!entry)
        return NULL;
    entry->key = *key;
    entry->table = table;
    entry->mean = FIRST_MEAN;
    pthread_mutex_init(&entry->lock, NULL);
    token_bucket_init(&entry->calls, &rates->calls, now_us);
    token_bucket_init(&entry->fetches, &rates->fetches, now_us);
    token_bucket_init(&entry->bytes, &rates->bytes, now_us);
    RB_INSERT(key_tree, &table->keys, entry);
    table->count++;
    return entry;
}

static void
free_entry(struct client_table *table, struct client_entry *entry)
{
    RB_REMOVE(key_tree, &table->keys, entry);
    table->count--;
    pthread_mutex_destroy(&entry->lock);
    free(entry);
}

static void
leave_idle(struct client_table *table, struct client_entry *entry)
{
    RB_REMOVE(full_tree, &table->idle, entry);
    table->idle_count--;
}

/* Forgets entries that are full by now, and, over the bound, those that are the next to be. */
static void
forget_idle(struct client_table *table, int64_t now_us)
{
    struct client_entry *first;

    for (int i = 0; i < DROPS_AT_ONCE; i++) {
        first = RB_MIN(full_tree, &table->idle);
        if (!first || (first->full_us > now_us && table->idle_count <= table->config.max_idle))
            return;
        leave_idle(table, first);
        free_entry(table, first);
    }
}

static int64_t
time_until_full(struct token_bucket *bucket, const struct token_rate *rate, int64_t now_us)
{
    return rate->per_second ? token_bucket_wait_us(bucket, rate, rate->burst, now_us) : 0;
}

static int64_t
longest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* When it would be as if the client had never been here. */
static int64_t
full_again_us(struct client_entry *entry, int64_t now_us)
{
    const struct client_rates *rates = &entry->table->config.rates;
    int64_t wait_us;

    pthread_mutex_lock(&entry->lock);
    wait_us = time_until_full(&entry->calls, &rates->calls, now_us);
    wait_us = longest(wait_us, time_until_full(&entry->fetches, &rates->fetches, now_us));
    wait_us = longest(wait_us, time_until_full(&entry->bytes, &rates->bytes, now_us));
    pthread_mutex_unlock(&entry->lock);
    return now_us + wait_us;
}

void
client_table_destroy(struct client_table *table)
{
    struct client_entry *entry;

    if (!table)
        return;
    while ((entry = RB_MIN(key_tree, &table->keys)))
        free_entry(table, entry);
    pthread_mutex_destroy(&table->lock);
    free(table);
}

/* ---- connections ----------------------------------------------------------------------------- */

enum client_table_status
client_table_connect(struct client_table *table, const struct client_key *key, int64_t now_us,
                     struct client_entry **entry)
{
    struct client_entry sought = {.key = *key}, *found;
    enum client_table_status status = CLIENT_TABLE_OK;

    pthread_mutex_lock(&table->lock);
    found = RB_FIND(key_tree, &table->keys, &sought);
    if (found && found->connections == 0)
        leave_idle(table, found);
    if (!found)
        found = create_entry(table, key, now_us);
    if (!found) {
        status = CLIENT_TABLE_NO_MEMORY;
    } else if (table->config.max_connections &&
               found->connections >= table->config.max_connections) {
        status = CLIENT_TABLE_FULL;
    } else {
        found->connections++;
        *entry = found;
    }
    forget_idle(table, now_us);
    pthread_mutex_unlock(&table->lock);
    return status;
}

void
client_table_disconnect(struct client_table *table, struct client_entry *entry, int64_t now_us)
{
    pthread_mutex_lock(&table->lock);
    if (--entry->connections == 0) {
        entry->full_us = table->has_rates ? full_again_us(entry, now_us) : now_us;
        if (entry->full_us > now_us) {
            RB_INSERT(full_tree, &table->idle, entry);
            table->idle_count++;
        } else {
            free_entry(table, entry);
        }
    }
    forget_idle(table, now_us);
    pthread_mutex_unlock(&table->lock);
}

/* ---- rates ----------------------------------------------------------------------------------- */

int64_t
client_entry_book_call(struct client_entry *entry, struct client_booking *booking, int64_t now_us)
{
    const struct client_rates *rates = &entry->table->config.rates;
    int64_t wait_us = 0;

    pthread_mutex_lock(&entry->lock);
    if (rates->bytes.per_second)
        wait_us = token_bucket_wait_us(&entry->bytes, &rates->bytes, 0, now_us);
    if (rates->calls.per_second) {
        wait_us = longest(wait_us, token_bucket_wait_us(&entry->calls, &rates->calls, 1, now_us));
        token_bucket_spend(&entry->calls, &rates->calls, 1, now_us);
    }
    if (wait_us) {
        /* The next one that waits comes after this one's answer, which is guessed at. */
        *booking = (struct client_booking){.waiting = true, .bytes = entry->mean};
        if (rates->bytes.per_second)
            token_bucket_spend(&entry->bytes, &rates->bytes, booking->bytes, now_us);
    }
    pthread_mutex_unlock(&entry->lock);
    if (wait_us)
        atomic_fetch_add_explicit(&entry->table->calls_delayed, 1, memory_order_relaxed);
    return wait_us;
}

static void
end_booking(struct client_entry *entry, struct client_booking *booking, bool used, int64_t now_us)
{
    const struct client_rates *rates = &entry->table->config.rates;

    if (!booking->waiting)
        return;
    pthread_mutex_lock(&entry->lock);
    if (rates->bytes.per_second)
        token_bucket_give_back(&entry->bytes, &rates->bytes, booking->bytes, now_us);
    if (rates->calls.per_second && !used)
        token_bucket_give_back(&entry->calls, &rates->calls, 1, now_us);
    pthread_mutex_unlock(&entry->lock);
    *booking = (struct client_booking){.waiting = false};
}

void
client_entry_redeem(struct client_entry *entry, struct client_booking *booking, int64_t now_us)
{
    end_booking(entry, booking, true, now_us);
}

void
client_entry_cancel(struct client_entry *entry, struct client_booking *booking, int64_t now_us)
{
    end_booking(entry, booking, false, now_us);
}

void
client_entry_charge(struct client_entry *entry, uint64_t bytes, int64_t now_us)
{
    const struct token_rate *rate = &entry->table->config.rates.bytes;

    if (!rate->per_second)
        return;
    pthread_mutex_lock(&entry->lock);
    token_bucket_spend(&entry->bytes, rate, bytes, now_us);
    entry->mean = entry->mean - (entry->mean >> MEAN_SHIFT) + (bytes >> MEAN_SHIFT);
    pthread_mutex_unlock(&entry->lock);
}

int64_t
client_entry_take_fetch(struct client_entry *entry, int64_t now_us)
{
    const struct token_rate *rate = &entry->table->config.rates.fetches;
    int64_t wait_us;

    if (!rate->per_second)
        return 0;
    pthread_mutex_lock(&entry->lock);
    wait_us = token_bucket_wait_us(&entry->fetches, rate, 1, now_us);
    if (wait_us == 0)
        token_bucket_spend(&entry->fetches, rate, 1, now_us);
    pthread_mutex_unlock(&entry->lock);
    if (wait_us)
        atomic_fetch_add_explicit(&entry->table->fetches_refused, 1, memory_order_relaxed);
    return wait_us;
}

void
client_entry_charge_fetch(struct client_entry *entry, int64_t now_us)
{
    const struct token_rate *rate = &entry->table->config.rates.fetches;

    if (!rate->per_second)
        return;
    pthread_mutex_lock(&entry->lock);
    token_bucket_spend(&entry->fetches, rate, 1, now_us);
    pthread_mutex_unlock(&entry->lock);
}

void
client_table_get_stats(struct client_table *table, struct client_table_stats *stats)
{
    pthread_mutex_lock(&table->lock);
    stats->clients = table->count;
    pthread_mutex_unlock(&table->lock);
    stats->calls_delayed = atomic_load_explicit(&table->calls_delayed, memory_order_relaxed);
    stats->fetches_refused = atomic_load_explicit(&table->fetches_refused, memory_order_relaxed);
}
