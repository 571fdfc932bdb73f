/* A tier over models of memcached servers. Waits for most of its time. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "tests/unit/cache/pages.h"
#include "tests/unit/tier/model.h"
#include "tier/tier_state.h"
#include "tier/tier_journal.h"
#include "tier/tier_value.h"

#define URL "http://origin.test/page"
#define SECOND ((int64_t)1000000)
#define PEERS 2
#define SERVERS 3
#define CONFLICTING 100 /* purges of each daemon while others purge */

static const struct peer_keys keys = {1, {{"a key of sixteen bytes", 22}}};

static struct model models[SERVERS];
static unsigned model_count;
static int64_t poll_us;

/* A daemon. */
struct peer {
    struct tier *tier;
    struct source *source;
    struct cache *cache;
    _Atomic unsigned purged, purged_all;
    _Atomic bool holds; /* what is purged waits */
    pthread_mutex_t lock;
    char last[64], said[256];
};

static struct peer peers[PEERS];
static const char *hosts[SERVERS]; /* NULL: 127.0.0.1 */
static int (*resolve)(const char *host, const char *service, const struct addrinfo *hints,
                      struct addrinfo **result);
static int64_t late_us, patience_us;

/* A server is late in tests alone that say so, not because the machine is busy. */
static void
set_up(void)
{
    poll_us = 10000;
    late_us = 600 * SECOND;
    patience_us = 200000;
    memset(hosts, 0, sizeof(hosts));
    resolve = NULL;
}

static void
nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static void
take_purged(void *context, const struct source *from, const struct source_purge *purge)
{
    struct peer *p = context;

    ck_assert_ptr_eq(from, p->source);
    while (p->holds)
        nap();
    if (purge->by == CACHE_BY_PREFIX && purge->name.len == 0) {
        p->purged_all += !purge->soft;
        return;
    }
    pthread_mutex_lock(&p->lock);
    snprintf(p->last, sizeof(p->last), "%d%d%.*s", (int)purge->by, purge->soft,
             (int)purge->name.len, purge->name.ptr);
    pthread_mutex_unlock(&p->lock);
    p->purged++;
}

static void
say(void *context, enum tier_log kind, const char *sentence)
{
    struct peer *p = context;

    (void)kind;
    pthread_mutex_lock(&p->lock);
    snprintf(p->said, sizeof(p->said), "%s", sentence);
    pthread_mutex_unlock(&p->lock);
}

/* What it was told to purge last. */
static void
expect_last(struct peer *p, const char *expected)
{
    pthread_mutex_lock(&p->lock);
    ck_assert_str_eq(p->last, expected);
    pthread_mutex_unlock(&p->lock);
}

static void
expect_said(struct peer *p, const char *part)
{
    pthread_mutex_lock(&p->lock);
    ck_assert_ptr_nonnull(strstr(p->said, part));
    pthread_mutex_unlock(&p->lock);
}

static struct tier_stats
stats_of(const struct peer *p)
{
    struct tier_stats stats;

    tier_get_stats(p->tier, &stats);
    return stats;
}

static void
await_up(const struct peer *p, unsigned count)
{
    while (stats_of(p).up != count)
        nap();
}

static void
await_said(struct peer *p, const char *what)
{
    for (bool is_said = false; !is_said; nap()) {
        pthread_mutex_lock(&p->lock);
        is_said = strstr(p->said, what) != NULL;
        pthread_mutex_unlock(&p->lock);
    }
}

static void
open_peer(struct peer *p, int64_t wait_us)
{
    struct policy_spec policy;
    enum cache_error error;
    char sentence[200];
    struct tier_servers servers;
    struct buf why, text;

    buf_init(&why, 1000);
    buf_init(&text, 1000);
    for (unsigned i = 0; i < model_count; i++)
        buf_printf(&text, "%smemcached://%s:%u", i ? "," : "", hosts[i] ? hosts[i] : "127.0.0.1",
                   models[i].port);
    ck_assert_msg(tier_servers_read(buf_span(&text), &servers, &why), "%s", buf_str(&why));
    pthread_mutex_init(&p->lock, NULL);
    ck_assert(policy_parse("lru", &policy, sentence, sizeof(sentence)));
    p->cache = cache_create(
        &(struct cache_config){.policy = policy, .capacity_pages = 100, .shards = 1}, &error);
    ck_assert_ptr_nonnull(p->cache);
    p->tier = tier_open(&(struct tier_config){
        .servers = &servers,
        .keys = &keys,
        .terms = 7,
        .most = 100000,
        .poll_us = poll_us,
        .skew_us = 1000,
        .wait_us = wait_us,
        .late_us = late_us,
        .cache = p->cache,
        .failure = 77,
        .purged = take_purged,
        .log = say,
        .getaddrinfo = resolve,
        .freeaddrinfo = freeaddrinfo,
        .context = p,
    });
    p->source = tier_source(p->tier);
    p->tier->patience_us = patience_us;
    ck_assert_int_eq(tier_start(p->tier), 0);
    buf_free(&why);
    buf_free(&text);
}

/* A tier whose thread does not run. */
static struct tier *
open_still(int (*resolves)(const char *host, const char *service, const struct addrinfo *hints,
                           struct addrinfo **result))
{
    struct tier_servers servers;
    struct tier *tier;
    struct buf why;

    buf_init(&why, 1000);
    ck_assert(tier_servers_read(span_str("memcached://cache.test:7"), &servers, &why));
    buf_free(&why);
    tier = tier_open(&(struct tier_config){
        .servers = &servers,
        .keys = &keys,
        .wait_us = SECOND,
        .late_us = SECOND,
        .log = say,
        .getaddrinfo = resolves,
        .freeaddrinfo = freeaddrinfo,
        .context = &peers[0],
    });
    ck_assert_ptr_nonnull(tier);
    return tier;
}

static void
close_peer(struct peer *p)
{
    tier_close(p->tier);
    cache_destroy(p->cache);
    pthread_mutex_destroy(&p->lock);
    *p = (struct peer){.tier = NULL};
}

static void
begin(unsigned servers, int64_t wait_us)
{
    model_count = servers;
    for (unsigned i = 0; i < servers; i++)
        model_start(&models[i]);
    for (unsigned i = 0; i < PEERS; i++) {
        open_peer(&peers[i], wait_us);
        await_up(&peers[i], servers);
    }
}

/* After each test, also after one that has failed: what it leaves would trouble the next. */
static void
tear_down(void)
{
    for (unsigned i = 0; i < PEERS; i++) {
        peers[i].holds = false;
        if (peers[i].tier)
            close_peer(&peers[i]);
    }
    for (unsigned i = 0; i < model_count; i++)
        model_stop(&models[i]);
    model_count = 0;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static struct object *
make_page(const char *url, const char *variant, const char *tags, char letter, int64_t lifetime_us)
{
    struct object *object = object_make(&(struct object_parts){.url = span_str(url),
                                                               .variant = span_str(variant),
                                                               .fields = span_str("A: b\r\n"),
                                                               .tags = span_str(tags),
                                                               .status = 200,
                                                               .inline_size = 500});

    for (int i = 0; i < 500; i++)
        ck_assert_int_eq(object_append(object, &letter, 1, UINT64_MAX), 0);
    object_complete(object, 7, clock_monotonic_us(), object_lifetime_of(lifetime_us));
    return object;
}

static void
put_more(struct peer *p, const char *variant, const char *names, const char *tags, char letter,
         int64_t lifetime_us)
{
    struct object *object = make_page(URL, variant, tags, letter, lifetime_us);
    const uint64_t before = stats_of(p).counts[TIER_STORED] + stats_of(p).counts[TIER_NOT_STORED];
    const uint64_t position = p->source->ops->begin_offer(p->source, clock_monotonic_us());

    if (p->source->ops->offer(p->source, object, span_str(names), position))
        while (stats_of(p).counts[TIER_STORED] + stats_of(p).counts[TIER_NOT_STORED] == before)
            nap();
    object_release(&object);
}

static void
put(struct peer *p, char letter)
{
    put_more(p, "", "", "red", letter, 100 * SECOND);
}

static void
later(void *context)
{
    *(bool *)context = true;
}

/* The letter of the page that a lookup finds; 0: it has to be fetched. */
static char
get_url(struct peer *p, const char *url)
{
    struct requester r = {.answer = CACHE_HIT};
    bool waits = false;
    const struct source_request request = {
        .fields = span_str(""), .most = UINT64_MAX, .later = later, .context = &waits};
    char letter = 0;

    cache_purge_all(p->cache);
    request_lookup_variant(&r, p->cache, url, "", clock_monotonic_us(),
                           (struct cache_request){.fill_size = tier_fill_size()});
    ck_assert_int_eq(r.answer, CACHE_MISS);
    if (p->source->ops->fill(p->source, r.found.fill, &request) == SOURCE_HAS_NOT) {
        fill_fail(r.found.fill);
        request_take(&r);
        request_end(&r);
        return 0;
    }
    ck_assert(waits);
    while (!(r.taken & WAITER_LAST)) {
        request_take(&r);
        unit_pause();
    }
    if (r.taken & WAITER_END && object_is_fresh(r.waiter.object, clock_monotonic_us())) {
        const struct span body = object_body(r.waiter.object);

        ck_assert_uint_eq(body.len, 500);
        for (size_t i = 1; i < body.len; i++)
            ck_assert_int_eq(body.ptr[i], body.ptr[0]);
        letter = body.ptr[0];
    }
    request_end(&r);
    return letter;
}

static char
get(struct peer *p)
{
    return get_url(p, URL);
}

/* What it was to fetch has failed. */
static void
release(struct peer *p)
{
    p->source->ops->release(p->source, span_str(URL), span_of(NULL, 0));
}

static void
note(struct source_waiter *waiter)
{
    atomic_store((_Atomic bool *)(waiter + 1), true);
}

/* Purges, and waits until that is noted. Does no server have it? */
static bool
purge_untold(struct peer *p, enum cache_by by, bool soft, const char *name)
{
    const struct source_purge what = {by, soft, span_str(name), span_of(NULL, 0)};
    struct {
        struct source_waiter base;
        _Atomic bool is_noted;
    } waiter = {.base.notify = note};
    struct source_marked before = p->source->ops->mark(p->source, &what, NULL);

    (void)p->source->ops->mark(p->source, &what, &before);
    if (!p->source->ops->is_synced(p->source, &waiter.base))
        while (!waiter.is_noted)
            nap();
    return waiter.base.untold;
}

static void
purge(struct peer *p, enum cache_by by, bool soft, const char *name)
{
    ck_assert(!purge_untold(p, by, soft, name));
}

START_TEST(a_page_reaches_the_other_daemon)
{
    begin(2, SECOND);
    ck_assert_int_eq(get(&peers[0]), 0);
    put(&peers[0], 'x');
    ck_assert_int_eq(get(&peers[1]), 'x');
    ck_assert_int_eq(get(&peers[0]), 'x');
    ck_assert_uint_eq(stats_of(&peers[1]).counts[TIER_HITS], 1);
}
END_TEST

static void *
put_soon(void *context)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    put(context, 'y');
    return NULL;
}

START_TEST(one_daemon_waits_for_the_other)
{
    pthread_t thread;

    begin(1, 60 * SECOND);
    ck_assert_int_eq(get(&peers[0]), 0);
    /* It is to fetch, and asks no more. */
    ck_assert_int_eq(get(&peers[0]), 0);
    ck_assert_uint_eq(models[0].gets > 0, 1);
    pthread_create(&thread, NULL, put_soon, &peers[0]);
    ck_assert_int_eq(get(&peers[1]), 'y');
    pthread_join(thread, NULL);
    ck_assert_uint_eq(stats_of(&peers[1]).counts[TIER_SHARED], 1);
}
END_TEST

START_TEST(waiting_has_a_bound)
{
    begin(1, 20000);
    ck_assert_int_eq(get(&peers[0]), 0);
    ck_assert_int_eq(get(&peers[1]), 0);
    ck_assert_uint_eq(stats_of(&peers[1]).counts[TIER_GIVEN_UP], 1);
    /* It has taken the lease over: what was fetched with the other one is not stored. */
    put(&peers[0], 'a');
    ck_assert_uint_eq(stats_of(&peers[0]).counts[TIER_NOT_STORED], 1);
    put(&peers[1], 'b');
    ck_assert_int_eq(get(&peers[0]), 'b');
}
END_TEST

/* Otherwise a slow page would never be stored while it is asked for. */
START_TEST(a_lease_is_taken_over_once)
{
    begin(1, 20000);
    ck_assert_int_eq(get(&peers[0]), 0);
    ck_assert_int_eq(get(&peers[1]), 0);
    close_peer(&peers[0]);
    open_peer(&peers[0], 20000);
    await_up(&peers[0], 1);
    ck_assert_int_eq(get(&peers[0]), 0);
    release(&peers[0]);
    put(&peers[1], 'b');
    ck_assert_uint_eq(stats_of(&peers[1]).counts[TIER_STORED], 1);
    ck_assert_int_eq(get(&peers[0]), 'b');
}
END_TEST

/* Its daemon has died: no request waits for it. */
START_TEST(a_lease_that_is_overdue_is_taken_over_at_once)
{
    begin(1, 10 * SECOND);
    ck_assert_int_eq(get(&peers[0]), 0);
    models[0].age_s = 11;
    ck_assert_int_eq(get(&peers[1]), 0);
    ck_assert_uint_eq(stats_of(&peers[1]).counts[TIER_GIVEN_UP], 0);
    ck_assert_uint_eq(models[0].pages, 3);
    models[0].age_s = 0;
    put(&peers[1], 'b');
    ck_assert_int_eq(get(&peers[1]), 'b');
}
END_TEST

START_TEST(a_fetch_that_fails_or_is_not_for_all_ends_the_waiting)
{
    begin(1, 60 * SECOND);
    ck_assert_int_eq(get(&peers[0]), 0);
    release(&peers[0]);
    ck_assert_int_eq(get(&peers[1]), 0); /* has the lease now */
    peers[1].source->ops->outdate(peers[1].source, span_str(URL), span_of(NULL, 0), true);
    ck_assert_int_eq(get(&peers[0]), 0);
}
END_TEST

START_TEST(the_head_of_a_response_that_others_cannot_have_ends_the_waiting)
{
    const struct source_ops *ops;

    begin(1, 60 * SECOND);
    ops = peers[0].source->ops;
    ck_assert_int_eq(get(&peers[0]), 0);
    ops->begins(peers[0].source, span_str(URL), span_of(NULL, 0), 100000);
    ck_assert_uint_eq(models[0].sets, 1); /* of the journal */
    ops->begins(peers[0].source, span_str(URL), span_of(NULL, 0), _i ? 100001 : UINT64_MAX);
    ck_assert_int_eq(get(&peers[1]), 0);
    ck_assert_uint_eq(stats_of(&peers[1]).counts[TIER_GIVEN_UP], 0);
}
END_TEST

START_TEST(a_variant_is_found_by_its_names)
{
    begin(1, 20000);
    put_more(&peers[0], "en", "", "", 'n', 100 * SECOND); /* without names */
    ck_assert_int_eq(get(&peers[1]), 0);
}
END_TEST

START_TEST(purges_reach_the_other_daemon)
{
    static const struct {
        enum cache_by by;
        const char *name;
        bool concerns;
    } cases[] = {
        {CACHE_BY_URL, URL, true},
        {CACHE_BY_URL, URL "2", false},
        {CACHE_BY_PREFIX, "http://origin.test/", true},
        {CACHE_BY_PREFIX, "http://other.test/", false},
        {CACHE_BY_TAG, "red", true},
        {CACHE_BY_TAG, "blue", false},
    };

    begin(2, 20000);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const unsigned before = peers[1].purged;
        char expected[64];

        put(&peers[0], 'x');
        ck_assert_int_eq(get(&peers[1]), 'x');
        purge(&peers[0], cases[i].by, false, cases[i].name);
        ck_assert_int_eq(get(&peers[0]), cases[i].concerns ? 0 : 'x');
        while (peers[1].purged == before)
            nap();
        ck_assert_int_eq(get(&peers[1]), cases[i].concerns ? 0 : 'x');
        snprintf(expected, sizeof(expected), "%d0%s", (int)cases[i].by, cases[i].name);
        expect_last(&peers[1], expected);
        /* Once, though both servers have it. */
        ck_assert_uint_eq(peers[1].purged, before + 1);
        release(&peers[1]);
    }
    ck_assert_uint_eq(peers[0].purged, 0);
}
END_TEST

START_TEST(what_was_asked_for_before_a_purge_is_not_used)
{
    struct object *object = make_page(URL, "", "", 'o', 100 * SECOND);
    uint64_t position;

    begin(1, 20000);
    /* The other daemon does not know of the purge. */
    position = peers[1].source->ops->begin_offer(peers[1].source, clock_monotonic_us());
    purge(&peers[0], CACHE_BY_URL, false, URL);
    ck_assert(peers[1].source->ops->offer(peers[1].source, object, span_of(NULL, 0), position));
    while (stats_of(&peers[1]).counts[TIER_STORED] == 0)
        nap();
    ck_assert_int_eq(get(&peers[0]), 0);
    ck_assert_uint_eq(stats_of(&peers[0]).counts[TIER_OUTDATED], 1);
    object_release(&object);
}
END_TEST

/* ---- journals that another daemon has written ------------------------------------------------ */

/* NULL: there is none. */
static struct model_item *
find_item(struct model *m, const struct tier_key *key)
{
    for (unsigned i = 0; i < m->count; i++)
        if (strcmp(m->items[i].key, key->text) == 0)
            return &m->items[i];
    return NULL;
}

/* Opens the journal of a model. Under its lock. */
static struct model_item *
open_journal(struct model *m, struct tier_journal *journal, struct span *entries)
{
    const struct tier_key key = tier_key_of_journal();
    struct model_item *item = find_item(m, &key);
    struct span content;
    enum tier_kind kind;

    ck_assert_ptr_nonnull(item);
    ck_assert(tier_value_open(span_of(item->value, item->len), &keys, &key, &kind, &content));
    ck_assert(tier_journal_read(content, journal, entries));
    return item;
}

/* Appends an entry this many times, with an id and an epoch that are each by one greater than the
 * one before. Under the lock. */
static void
forge_held(struct model *m, struct tier_entry entry, unsigned count)
{
    const struct tier_key key = tier_key_of_journal();
    struct tier_journal journal;
    struct model_item *item;
    struct buf entries, value;
    struct span before;

    buf_init(&entries, 10000000);
    buf_init(&value, 1000000);
    item = open_journal(m, &journal, &before);
    buf_append(&entries, before.ptr, before.len);
    for (unsigned i = 0; i < count; i++, entry.id++, entry.epoch++, journal.number++)
        tier_entry_write(&entries, &entry);
    tier_value_begin(&value, TIER_JOURNAL);
    tier_journal_write(&value, &journal, buf_span(&entries));
    ck_assert(tier_value_end(&value, &keys, &key));
    free(item->value);
    item->value = malloc(value.len);
    memcpy(item->value, value.data, value.len);
    item->len = (uint32_t)value.len;
    item->cas = ++m->cas;
    buf_free(&value);
    buf_free(&entries);
}

static void
forge(struct model *m, struct tier_entry entry, unsigned count)
{
    pthread_mutex_lock(&m->lock);
    forge_held(m, entry, count);
    pthread_mutex_unlock(&m->lock);
}

static struct tier_journal
journal_of(struct model *m)
{
    struct tier_journal journal;
    struct span entries;

    pthread_mutex_lock(&m->lock);
    (void)open_journal(m, &journal, &entries);
    pthread_mutex_unlock(&m->lock);
    return journal;
}

static uint64_t
latest_of(struct model *m)
{
    return journal_of(m).latest;
}

static struct tier_entry
entry_of(uint64_t id, uint64_t epoch, const char *url)
{
    return (struct tier_entry){.id = id, .epoch = epoch, .by = CACHE_BY_URL, .name = span_str(url)};
}

START_TEST(the_same_purge_with_a_later_epoch_counts)
{
    uint64_t latest;

    begin(2, 20000);
    latest = latest_of(&models[0]) > latest_of(&models[1]) ? latest_of(&models[0])
                                                           : latest_of(&models[1]);
    put(&peers[0], 'x');
    forge(&models[0], entry_of(4711, 5, URL), 1);
    while (!peers[0].purged)
        nap();
    ck_assert_int_eq(get(&peers[0]), 'x');
    forge(&models[1], entry_of(4711, latest + 1000, URL), 1);
    while (get(&peers[0]))
        nap();
    ck_assert_uint_eq(peers[0].purged, 1);
}
END_TEST

START_TEST(purges_that_were_missed_are_hard)
{
    begin(1, 20000);
    ck_assert_uint_eq(peers[0].purged_all, 0);
    forge(&models[0], entry_of(1, latest_of(&models[0]) + 1, URL), 20000);
    while (!peers[0].purged_all)
        nap();
    /* And what is known is purged as it says. */
    while (!peers[0].purged)
        nap();
    expect_last(&peers[0], "00" URL);
}
END_TEST

/* Marks this many URLs of a length, without waiting. */
static void
purge_urls(struct peer *p, unsigned count, unsigned len)
{
    char *url = malloc(len + 1);

    for (unsigned i = 0; i < count; i++) {
        const struct source_purge what = {CACHE_BY_URL, false, span_of(url, len), span_of(NULL, 0)};
        struct source_marked before;

        memset(url, 'x', len);
        url[snprintf(url, len, "http://origin.test/%u/", i)] = 'x';
        before = p->source->ops->mark(p->source, &what, NULL);
        (void)p->source->ops->mark(p->source, &what, &before);
    }
    free(url);
}

START_TEST(many_purges_do_not_outdate_everything)
{
    poll_us = SECOND; /* in twice that the other daemon has to have read them */
    begin(1, 20000);
    put(&peers[0], 'x');
    purge_urls(&peers[0], 2000, 200);
    purge(&peers[0], CACHE_BY_TAG, false, "blue");
    ck_assert_uint_eq(stats_of(&peers[0]).counts[TIER_LOST], 0);
    while (peers[1].purged < 2001)
        nap();
    ck_assert_uint_eq(peers[1].purged_all, 0);
    ck_assert_uint_eq(stats_of(&peers[1]).counts[TIER_LOST], 0);
    ck_assert_int_eq(get(&peers[1]), 'x');
}
END_TEST

static _Atomic unsigned conflicting; /* purges */

static bool
have_conflicts(void)
{
    bool have = true;

    for (unsigned i = 0; i < SERVERS; i++)
        have = have && models[i].conflicts;
    return have;
}

/* At least that often, and until other daemons have purged at the same time. */
static void *
purge_often(void *context)
{
    for (unsigned i = 0; i < CONFLICTING || !have_conflicts(); i++) {
        purge(context, CACHE_BY_URL, false, URL "2");
        conflicting++;
    }
    return NULL;
}

/* Each server gets each purge once, though daemons often have to write again. */
START_TEST(daemons_in_conflict_write_each_purge_once)
{
    uint64_t before[SERVERS];
    pthread_t threads[PEERS];

    conflicting = 0;
    begin(SERVERS, 20000);
    put(&peers[0], 'x');
    for (unsigned i = 0; i < SERVERS; i++)
        before[i] = journal_of(&models[i]).number;
    for (unsigned i = 0; i < PEERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, purge_often, &peers[i]), 0);
    for (unsigned i = 0; i < PEERS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < SERVERS; i++)
        ck_assert_uint_eq(journal_of(&models[i]).number - before[i], conflicting);
    for (unsigned i = 0; i < PEERS; i++)
        ck_assert_int_eq(get(&peers[i]), 'x');
}
END_TEST

START_TEST(a_purge_is_told_when_the_daemon_ends)
{
    begin(1, 20000);
    models[0].fault = MODEL_CLOSES;
    await_up(&peers[0], 0);
    ck_assert(purge_untold(&peers[0], CACHE_BY_URL, false, URL));
    peers[0].tier->last_us = 600 * SECOND;
    models[0].fault = MODEL_WORKS;
    close_peer(&peers[0]);
    while (!peers[1].purged)
        nap();
}
END_TEST

START_TEST(a_purge_that_cannot_be_told_is_said)
{
    struct peer *p = &peers[0];

    begin(1, 20000);
    models[0].fault = MODEL_CLOSES;
    await_up(p, 0);
    ck_assert(purge_untold(p, CACHE_BY_URL, false, URL));
    tier_leave(p->tier);
    ck_assert_ptr_nonnull(strstr(p->said, "no server has what was purged last"));
}
END_TEST

/* The server that is away may alone have what was purged. */
START_TEST(a_daemon_that_cannot_read_all_journals_uses_nothing_older)
{
    unsigned other = 0;

    begin(2, 20000);
    put(&peers[0], 'x');
    ck_assert_int_eq(get(&peers[1]), 'x');
    close_peer(&peers[1]);
    pthread_mutex_lock(&models[0].lock);
    other = models[0].count > 1 ? 1 : 0;
    pthread_mutex_unlock(&models[0].lock);
    models[other].fault = MODEL_CLOSES;
    open_peer(&peers[1], 20000);
    await_up(&peers[1], 1);
    ck_assert_int_eq(get(&peers[1]), 0);
    put(&peers[1], 'y');
    ck_assert_int_eq(get(&peers[1]), 'y');
}
END_TEST

START_TEST(a_server_that_has_missed_many_purges_is_used_again)
{
    begin(1, 20000);
    put(&peers[0], 'x');
    models[0].fault = MODEL_CLOSES;
    await_up(&peers[0], 0);
    purge_urls(&peers[0], 400, 7900);
    models[0].fault = MODEL_WORKS;
    await_up(&peers[0], 1);
    purge(&peers[0], CACHE_BY_TAG, false, "blue");
    /* Each, or everything if they were too many. */
    while (peers[1].purged < 401 && !peers[1].purged_all)
        nap();
}
END_TEST

/* Removes the journals of these servers at once. */
static void
lose_journals(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        pthread_mutex_lock(&models[i].lock);
    for (unsigned i = 0; i < count; i++)
        model_drop(&models[i], tier_key_of_journal().text);
    for (unsigned i = 0; i < count; i++)
        pthread_mutex_unlock(&models[i].lock);
}

START_TEST(journals_that_all_servers_have_lost_outdate_everything)
{
    const int64_t wall_us = clock_wall_us();

    begin(2, 20000);
    put(&peers[0], 'x');
    for (unsigned i = 0; i < PEERS; i++)
        peers[i].purged_all = 0;
    lose_journals(2);
    for (unsigned i = 0; i < PEERS; i++)
        while (!peers[i].purged_all)
            nap();
    /* Later than the purge of a daemon whose clock is ahead of the servers' by the skew and a
     * second, though this one's is behind as much. */
    ck_assert_uint_ge(latest_of(&models[0]), (uint64_t)(wall_us + 3 * 1000 + 2 * SECOND));
    ck_assert_int_eq(get(&peers[1]), 0);
    ck_assert_uint_ge(stats_of(&peers[0]).counts[TIER_LOST], 1);
}
END_TEST

/* ---- servers that have lost their journals --------------------------------------------------- */

/* What a server has when a daemon looks at it. */
enum has {
    HAS_NEWEST, /* the last purge, too, */
    HAS_OLDER,  /* or all but that, */
    HAS_NONE,   /* or no journal; */
    IS_AWAY,    /* or it does not answer */
    HAS_KINDS
};

#define NEWEST 4711 /* id of the last purge */

struct journal_seen {
    uint64_t floor;
    bool is_there, has_newest;
};

static struct journal_seen
see_journal(struct model *m)
{
    const struct tier_key key = tier_key_of_journal();
    struct journal_seen seen = {.floor = 0};
    struct tier_journal journal;
    struct tier_entry entry;
    struct span entries;

    pthread_mutex_lock(&m->lock);
    seen.is_there = find_item(m, &key) != NULL;
    if (seen.is_there) {
        (void)open_journal(m, &journal, &entries);
        seen.floor = journal.floor;
        while (tier_entry_next(&entries, &entry))
            seen.has_newest = seen.has_newest || entry.id == NEWEST;
    }
    pthread_mutex_unlock(&m->lock);
    return seen;
}

/* How often has it this URL? */
static unsigned
count_purges(struct model *m, const char *url)
{
    const struct tier_key key = tier_key_of_journal();
    struct tier_journal journal;
    struct tier_entry entry;
    struct span entries;
    unsigned count = 0;

    pthread_mutex_lock(&m->lock);
    if (find_item(m, &key)) {
        (void)open_journal(m, &journal, &entries);
        while (tier_entry_next(&entries, &entry))
            count += span_equal(entry.name, span_str(url));
    }
    pthread_mutex_unlock(&m->lock);
    return count;
}

/* The daemon that has purged is gone when the server that was away returns. */
START_TEST(a_server_that_returns_gets_what_others_have_purged)
{
    begin(2, 20000);
    models[1].fault = MODEL_CLOSES;
    for (unsigned i = 0; i < PEERS; i++)
        await_up(&peers[i], 1);
    purge(&peers[0], CACHE_BY_URL, false, URL);
    while (!peers[1].purged)
        nap();
    close_peer(&peers[0]);
    ck_assert_uint_eq(count_purges(&models[1], URL), 0);
    models[1].fault = MODEL_WORKS;
    await_up(&peers[1], 2);
    ck_assert_uint_eq(count_purges(&models[1], URL), 1);
    ck_assert_uint_eq(peers[1].purged, 1);
    open_peer(&peers[0], 20000);
    await_up(&peers[0], 2);
    ck_assert_uint_eq(count_purges(&models[0], URL), 1);
    ck_assert_uint_eq(count_purges(&models[1], URL), 1);
}
END_TEST

static void
await_gets(const struct model *m, unsigned more)
{
    const unsigned before = m->gets;

    while (m->gets < before + more)
        nap();
}

/* One of them is asked for its journal again while the other one's is begun. */
START_TEST(journals_that_are_lost_are_begun_together)
{
    patience_us = 600 * SECOND;
    model_count = 2;
    for (unsigned i = 0; i < 2; i++)
        model_start(&models[i]);
    models[1].fault = MODEL_IS_STOPPED;
    open_peer(&peers[0], 20000);
    await_gets(&models[0], 2);
    models[0].fault = MODEL_IS_STOPPED;
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    models[1].fault = MODEL_WORKS;
    while (!models[1].sets)
        nap();
    await_gets(&models[1], 2);
    models[0].fault = MODEL_WORKS;
    await_up(&peers[0], 2);
}
END_TEST

/* A purge that one server alone has is written again by a daemon that has read it. */
START_TEST(what_one_server_alone_had_is_written_again)
{
    patience_us = 600 * SECOND; /* until the other one has returned */
    begin(2, 20000);
    models[1].fault = MODEL_CLOSES;
    for (unsigned i = 0; i < PEERS; i++)
        await_up(&peers[i], 1);
    purge(&peers[0], CACHE_BY_URL, false, URL);
    while (!peers[1].purged)
        nap();
    close_peer(&peers[0]);
    for (unsigned i = 0; i < 2; i++)
        pthread_mutex_lock(&models[i].lock);
    model_drop(&models[0], tier_key_of_journal().text);
    models[1].fault = MODEL_WORKS;
    for (unsigned i = 0; i < 2; i++)
        pthread_mutex_unlock(&models[i].lock);
    await_up(&peers[1], 2);
    for (unsigned i = 0; i < 2; i++)
        while (!count_purges(&models[i], URL))
            nap();
    ck_assert_uint_eq(peers[1].purged_all, 0);
    open_peer(&peers[0], 20000);
}
END_TEST

/* At one moment, as far as daemons see: of three servers each is as `combination` has it. */
static void
arrange(const enum has is[3], uint64_t epoch)
{
    for (unsigned i = 0; i < 3; i++)
        pthread_mutex_lock(&models[i].lock);
    for (unsigned i = 0; i < 3; i++) {
        if (is[i] == HAS_NEWEST)
            forge_held(&models[i], entry_of(NEWEST, epoch, URL), 1);
        if (is[i] == HAS_NONE)
            model_drop(&models[i], tier_key_of_journal().text);
        if (is[i] == IS_AWAY)
            models[i].fault = MODEL_CLOSES;
    }
    for (unsigned i = 0; i < 3; i++)
        pthread_mutex_unlock(&models[i].lock);
}

/* Are records with this position outdated, by a purge of everything? */
static bool
is_all_outdated(struct tier *tier, uint64_t position)
{
    bool is;

    pthread_mutex_lock(&tier->marks.lock);
    is = tier->marks.all >= position;
    pthread_mutex_unlock(&tier->marks.lock);
    return is;
}

/* Each fifth combination is tried, and each one with SUNPROXY_LONG_TESTS. */
static int
combinations_step(void)
{
    return getenv("SUNPROXY_LONG_TESTS") ? 1 : 5;
}

/*
 * Each combination of what three servers have when a daemon looks, once for one that has read their
 * journals before the last purge and once for one that has just started; the daemon that has purged
 * is gone. Where a majority may have kept the last purge it is known, or all is outdated.
 */
START_TEST(a_purge_that_a_majority_has_kept_is_not_lost)
{
    const int n = combinations_step() * _i;
    const bool knows = n & 1;
    const enum has is[3] = {(enum has)(n >> 1 & 3), (enum has)(n >> 3 & 3), (enum has)(n >> 5)};
    unsigned counts[HAS_KINDS] = {0};
    struct journal_seen before[3], after;
    struct peer *p = &peers[1];
    uint64_t epoch = 0;
    bool is_now;

    begin(3, 20000);
    purge(&peers[0], CACHE_BY_TAG, false, "green");
    while (!p->purged)
        nap();
    close_peer(&peers[0]);
    for (unsigned i = 0; i < 3; i++) {
        counts[is[i]]++;
        before[i] = see_journal(&models[i]);
        epoch = latest_of(&models[i]) + 1000 > epoch ? latest_of(&models[i]) + 1000 : epoch;
    }
    p->purged = p->purged_all = 0;
    if (!knows)
        close_peer(p);
    arrange(is, epoch);
    if (!knows)
        open_peer(p, 20000);
    /* A journal was lost, and of the purge alone, or there is no daemon that has read it. */
    is_now = counts[HAS_NONE] && (!knows || counts[HAS_NONE] + counts[IS_AWAY] > 1);
    for (unsigned i = 0; i < 3; i++) {
        do {
            nap();
            after = see_journal(&models[i]);
        } while (is[i] != IS_AWAY && !after.is_there);
        if (is[i] != IS_AWAY)
            ck_assert_int_eq(after.floor > before[i].floor, is[i] == HAS_NONE && is_now);
    }
    await_up(p, 3 - counts[IS_AWAY]);
    /* What a server has reaches the others, too. */
    for (unsigned i = 0; i < 3; i++)
        while (counts[HAS_NEWEST] && is[i] != IS_AWAY && !(is[i] == HAS_NONE && is_now) &&
               (!knows || is[i] == HAS_NONE) && !see_journal(&models[i]).has_newest)
            nap();
    while (counts[HAS_NEWEST] && !p->purged)
        nap();
    if (is_now || (!knows && counts[IS_AWAY])) {
        while (!is_all_outdated(p->tier, epoch))
            nap();
    } else {
        ck_assert(!is_all_outdated(p->tier, epoch));
        ck_assert_uint_eq(p->purged_all, 0);
    }
    if (knows && is_now)
        while (!p->purged_all)
            nap();
    open_peer(&peers[0], 20000);
}
END_TEST

START_TEST(a_journal_that_is_put_back_outdates_everything)
{
    begin(1, 20000);
    put(&peers[0], 'x');
    purge(&peers[0], CACHE_BY_URL, false, URL "2");
    while (!peers[1].purged)
        nap();
    peers[0].purged_all = 0;
    models[0].fault = MODEL_ROLLS_BACK;
    (void)purge_untold(&peers[1], CACHE_BY_URL, false, URL "3");
    while (!peers[0].purged_all)
        nap();
}
END_TEST

START_TEST(values_that_do_not_verify_are_not_used)
{
    begin(1, 20000);
    put(&peers[0], 'x');
    models[0].fault = MODEL_CORRUPTS;
    ck_assert_int_eq(get(&peers[1]), 0);
    ck_assert_uint_ge(stats_of(&peers[1]).counts[TIER_INVALID], 1);
}
END_TEST

/* Each of them takes the server out of use, for a time in which requests are not delayed. */
START_TEST(a_server_that_fails_is_not_used)
{
    static const enum model_fault faults[] = {MODEL_SILENT, MODEL_CLOSES, MODEL_CUTS, MODEL_GARBAGE,
                                              MODEL_STRANGE};

    if (faults[_i] == MODEL_SILENT)
        late_us = 2 * SECOND;
    begin(1, 20000);
    put(&peers[0], 'x');
    models[0].fault = faults[_i];
    (void)get(&peers[0]);
    (void)get(&peers[1]);
    await_up(&peers[0], 0);
    ck_assert_int_eq(get(&peers[0]), 0);
    /* A purge waits for nothing. */
    ck_assert(purge_untold(&peers[0], CACHE_BY_TAG, false, "red"));
    models[0].fault = MODEL_WORKS;
    for (unsigned i = 0; i < PEERS; i++)
        await_up(&peers[i], 1);
    expect_said(&peers[0], "it answers again");
    while (!peers[1].purged)
        nap();
    ck_assert_int_eq(get(&peers[1]), 0);
}
END_TEST

START_TEST(a_server_that_is_full_is_passed_by)
{
    begin(1, 20000);
    models[0].fault = MODEL_IS_FULL;
    put(&peers[0], 'x');
    ck_assert_uint_eq(stats_of(&peers[0]).counts[TIER_NOT_STORED], 1);
}
END_TEST

START_TEST(a_daemon_whose_clock_differs_leaves)
{
    model_count = 1;
    model_start(&models[0]);
    models[0].fault = MODEL_IS_APART;
    for (unsigned i = 0; i < PEERS; i++) {
        open_peer(&peers[i], 20000);
        while (!stats_of(&peers[i]).left)
            nap();
    }
    expect_said(&peers[0], "behind those of the servers");
    ck_assert_int_eq(get(&peers[0]), 0);
    /* What it purges is told all the same, by the servers' clock. */
    purge(&peers[0], CACHE_BY_URL, false, URL);
    ck_assert_uint_gt(latest_of(&models[0]), (uint64_t)(clock_wall_us() + 50 * SECOND));
    while (!peers[1].purged)
        nap();
}
END_TEST

/* By more than the clocks may differ, with what the server's leaves out. */
START_TEST(a_clock_that_is_told_late_does_not_differ)
{
    model_count = 1;
    model_start(&models[0]);
    models[0].pause_ms = 2600;
    models[0].fault = MODEL_TELLS_LATE;
    open_peer(&peers[0], 20000);
    await_up(&peers[0], 1);
    /* The time was asked for before, and replies come in order. */
    purge(&peers[0], CACHE_BY_URL, false, URL);
    purge(&peers[0], CACHE_BY_URL, false, URL);
    ck_assert(!stats_of(&peers[0]).left);
    ck_assert_ptr_null(strstr(peers[0].said, "clock"));
}
END_TEST

START_TEST(an_expired_page_is_validated_by_one)
{
    pthread_t thread;

    begin(1, 600 * SECOND);
    put_more(&peers[0], "", "", "", 'x', 20000);
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    ck_assert_int_eq(get(&peers[0]), 0);
    ck_assert_uint_eq(models[0].leases, 1);
    /* The other one waits for what it fetches. */
    pthread_create(&thread, NULL, put_soon, &peers[0]);
    ck_assert_int_eq(get(&peers[1]), 'y');
    pthread_join(thread, NULL);
    ck_assert_uint_eq(models[0].leases, 1);
    ck_assert_uint_eq(stats_of(&peers[0]).counts[TIER_HITS], 0);
}
END_TEST

/* ---- names of servers ------------------------------------------------------------------------ */

static _Atomic unsigned resolved;
static _Atomic bool hangs;

static int
resolve_as(const char *text, const char *host, const struct addrinfo *hints,
           struct addrinfo **result)
{
    struct addrinfo numeric = *hints;

    ck_assert_str_eq(host, "cache.test");
    numeric.ai_flags |= AI_NUMERICHOST;
    return getaddrinfo(text, NULL, &numeric, result);
}

static int
resolve_differently(const char *host, const char *service, const struct addrinfo *hints,
                    struct addrinfo **result)
{
    const unsigned number = resolved++;

    (void)service;
    if (number == 0)
        return EAI_NONAME;
    /* At the first address there is no server. */
    return resolve_as(number == 1 ? "127.0.0.2" : "127.0.0.1", host, hints, result);
}

/* Two addresses, of which the first has no server. */
static int
resolve_twice(const char *host, const char *service, const struct addrinfo *hints,
              struct addrinfo **result)
{
    int error = resolve_as("127.0.0.2", host, hints, result);

    (void)service;
    return error ? error : resolve_as("127.0.0.1", host, hints, &(*result)->ai_next);
}

static int
resolve_late(const char *host, const char *service, const struct addrinfo *hints,
             struct addrinfo **result)
{
    (void)service;
    while (hangs)
        nap();
    return resolve_as("127.0.0.1", host, hints, result);
}

START_TEST(a_name_is_resolved_again_while_its_server_is_down)
{
    resolved = 0;
    hosts[0] = "cache.test";
    resolve = resolve_differently;
    model_count = 1;
    model_start(&models[0]);
    open_peer(&peers[0], 20000);
    await_said(&peers[0], "not known; it is not used");
    await_said(&peers[0], "refused; it is not used");
    await_up(&peers[0], 1);
    ck_assert_uint_eq(resolved, 3);
    put(&peers[0], 'x');
    ck_assert_int_eq(get(&peers[0]), 'x');
    /* It is up: nothing is looked up. A connection that breaks is made anew. */
    models[0].fault = MODEL_CLOSES;
    await_up(&peers[0], 0);
    models[0].fault = MODEL_WORKS;
    await_up(&peers[0], 1);
    open_peer(&peers[1], 20000);
}
END_TEST

/* One that does not answer does not count as a server that is down. */
START_TEST(each_address_of_a_name_is_tried)
{
    hosts[0] = "cache.test";
    resolve = resolve_twice;
    begin(1, 20000);
    put(&peers[0], 'x');
    ck_assert_int_eq(get(&peers[1]), 'x');
    for (unsigned i = 0; i < PEERS; i++) {
        pthread_mutex_lock(&peers[i].lock);
        ck_assert_str_eq(peers[i].said, "");
        pthread_mutex_unlock(&peers[i].lock);
    }
    models[0].fault = MODEL_CLOSES;
    await_up(&peers[0], 0);
    models[0].fault = MODEL_WORKS;
    await_up(&peers[0], 1);
}
END_TEST

START_TEST(a_look_up_that_hangs_delays_no_other_server)
{
    hosts[1] = "cache.test";
    resolve = resolve_late;
    hangs = true;
    model_count = 2;
    model_start(&models[0]);
    model_start(&models[1]);
    open_peer(&peers[0], 20000);
    await_said(&peers[0], "its name is not resolved in time");
    await_up(&peers[0], 1);
    hangs = false;
    await_up(&peers[0], 2);
    /* A tier that ends waits for none. */
    hangs = true;
    open_peer(&peers[1], 20000);
    close_peer(&peers[1]);
    hangs = false;
    open_peer(&peers[1], 20000);
}
END_TEST

/* The first one too, before the server counts as down. */
START_TEST(each_address_of_a_list_that_comes_late_is_tried)
{
    struct tier *tier = open_still(resolve_twice);
    struct tier_server *server = &tier->servers[0];
    union address old = {.in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000003)}};

    ck_assert_int_eq(tier_names_start(tier), 0);
    tier_address_set(&server->address, &old);
    server->state = TIER_CONNECTS;
    tier_names_look(tier, server, SECOND);
    while (!server->resolved)
        tier_names_collect(tier);
    ck_assert_uint_eq(server->address.address.in.sin_addr.s_addr, htonl(0x7f000003));
    ck_assert(tier_names_next(server));
    ck_assert_uint_eq(server->address.address.in.sin_addr.s_addr, htonl(0x7f000002));
    ck_assert(tier_names_next(server));
    ck_assert_uint_eq(server->address.address.in.sin_addr.s_addr, htonl(0x7f000001));
    ck_assert(!tier_names_next(server));
    server->state = TIER_DOWN;
    tier_close(tier);
}
END_TEST

START_TEST(lists_of_servers)
{
    static const struct {
        const char *text, *name; /* or NULL: it is refused */
        bool is_name;
    } cases[] = {
        {"memcached://a.test:1", "a.test:1", true},
        {"memcached://a.test/", "a.test:11211", true},
        {"memcached://[::1]", "[::1]:11211", false},
        {"memcached://[::1]:7", "[::1]:7", false},
        {"memcached://127.0.0.1:7", "127.0.0.1:7", false},
        {"memcached://a:1,memcached://b:1", "a:1", true},
        {"", NULL, false},
        {"a:1", NULL, false},
        {"memcached://", NULL, false},
        {"memcached://:1", NULL, false},
        {"memcached://a:0", NULL, false},
        {"memcached://a:65536", NULL, false},
        {"memcached://a:x", NULL, false},
        {"memcached://a/b", NULL, false},
        {"memcached://u@a", NULL, false},
        {"memcached://a:1,", NULL, false},
        {"memcached://a:1,memcached://a:1", NULL, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tier_servers servers;
        struct buf why;

        buf_init(&why, 1000);
        ck_assert_msg(tier_servers_read(span_str(cases[i].text), &servers, &why) ==
                          (cases[i].name != NULL),
                      "%s", cases[i].text);
        if (cases[i].name) {
            ck_assert_str_eq(servers.of[0].name, cases[i].name);
            ck_assert_int_eq(servers.of[0].is_name, cases[i].is_name);
            ck_assert_int_eq(servers.of[0].len == 0, cases[i].is_name);
        } else
            ck_assert_uint_gt(why.len, 0);
        buf_free(&why);
    }
}
END_TEST

/* While no server is up purges are answered without one, at once: not when the next trial fails. */
START_TEST(a_purge_waits_for_no_server_that_is_down)
{
    begin(1, 20000);
    models[0].fault = MODEL_CLOSES;
    (void)get(&peers[0]);
    await_up(&peers[0], 0);
    /* With a trial for each, which comes every half second, the time limit would end this. */
    for (int i = 0; i < 200; i++)
        ck_assert(purge_untold(&peers[0], CACHE_BY_URL, false, URL));
    models[0].fault = MODEL_WORKS;
    await_up(&peers[0], 1);
    purge(&peers[0], CACHE_BY_URL, false, URL);
}
END_TEST

/* What would be asked for next is not. */
START_TEST(a_request_waits_for_one_slow_answer)
{
    late_us = 8 * SECOND;
    begin(1, 20000);
    put(&peers[0], 'x');
    purge(&peers[1], CACHE_BY_URL, false, URL);
    while (!peers[0].purged)
        nap();
    models[0].pause_ms = 2100; /* it is slow, and far from late */
    models[0].fault = MODEL_IS_SLOW;
    /* The value is of no use: it would be marked stale, and asked for once more. */
    ck_assert_int_eq(get(&peers[0]), 0);
    ck_assert_uint_ge(stats_of(&peers[0]).counts[TIER_PASSED], 1);
    ck_assert_uint_eq(stats_of(&peers[0]).counts[TIER_MISSES], 0);
}
END_TEST

START_TEST(a_server_that_is_always_slow_is_not_used)
{
    unsigned probes;

    late_us = 2 * SECOND;
    begin(1, 20000);
    models[0].pause_ms = 600; /* more than a quarter of it */
    models[0].fault = MODEL_IS_SLOW;
    while (stats_of(&peers[0]).up) {
        (void)get(&peers[0]);
        release(&peers[0]);
    }
    await_said(&peers[0], "it answers slowly");
    /* The others have passed it by. */
    ck_assert_uint_eq(models[0].pages, 1);
    /* It is probed, and not used while the probe is slow. */
    probes = models[0].probes;
    while (models[0].probes < probes + 2)
        ck_assert_uint_eq(stats_of(&peers[0]).up, 0);
    models[0].fault = MODEL_WORKS;
    await_up(&peers[0], 1);
    put(&peers[0], 'x');
    ck_assert_int_eq(get(&peers[0]), 'x');
}
END_TEST

/* ---- requests that pass a server by ---------------------------------------------------------- */

/* A request for a page that no other test has. */
struct pending {
    struct requester r;
    char url[64];
};

static void
ask(struct peer *p, struct pending *pending, unsigned number)
{
    bool waits = false;
    const struct source_request request = {.most = UINT64_MAX, .later = later, .context = &waits};

    snprintf(pending->url, sizeof(pending->url), URL "/%u", number);
    pending->r = (struct requester){.answer = CACHE_HIT};
    request_lookup_variant(&pending->r, p->cache, pending->url, "", clock_monotonic_us(),
                           (struct cache_request){.fill_size = tier_fill_size()});
    ck_assert_int_eq(p->source->ops->fill(p->source, pending->r.found.fill, &request),
                     SOURCE_FILLS);
}

/* Has the tier sent it back? */
static bool
is_back(struct pending *pending)
{
    request_take(&pending->r);
    return pending->r.taken & WAITER_LAST;
}

static void
await_back(struct pending *pending)
{
    while (!is_back(pending))
        nap();
    request_end(&pending->r);
}

static void
await_lag(const struct peer *p, bool lags)
{
    while (atomic_load(&p->tier->servers[0].lags) != lags)
        nap();
}

START_TEST(one_request_waits_for_a_server_that_hangs)
{
    struct pending first;

    poll_us = 3600 * SECOND; /* so that the request is the oldest command */
    late_us = 4 * SECOND;
    begin(1, 20000);
    models[0].fault = _i ? MODEL_IS_STOPPED : MODEL_SILENT;
    ask(&peers[0], &first, 0);
    await_lag(&peers[0], true);
    for (unsigned i = 1; i <= 50; i++) {
        char url[64];

        snprintf(url, sizeof(url), URL "/%u", i);
        ck_assert_int_eq(get_url(&peers[0], url), 0);
    }
    ck_assert_uint_eq(stats_of(&peers[0]).counts[TIER_PASSED], 50);
    ck_assert(!is_back(&first));
    await_back(&first);
    await_up(&peers[0], 0);
    ck_assert_uint_eq(stats_of(&peers[0]).counts[TIER_PASSED], 50);
    models[0].fault = MODEL_WORKS;
    await_up(&peers[0], 1);
    ck_assert_uint_eq(models[0].pages, 1);
    ck_assert_uint_eq(stats_of(&peers[0]).counts[TIER_LATE], 1);
}
END_TEST

START_TEST(of_those_that_wait_for_a_server_that_lags_one_goes_on)
{
    struct pending asked[5];

    poll_us = 3600 * SECOND;
    late_us = 8 * SECOND;
    begin(1, 3600 * SECOND);
    models[0].fault = MODEL_IS_STOPPED;
    for (unsigned i = 0; i < 5; i++)
        ask(&peers[0], &asked[i], i);
    for (unsigned i = 1; i < 5; i++)
        await_back(&asked[i]);
    ck_assert(!is_back(&asked[0]));
    ck_assert_uint_eq(stats_of(&peers[0]).counts[TIER_PASSED], 4);
    /* It answers in time: its answer counts, and it is used again. */
    models[0].fault = MODEL_WORKS;
    await_back(&asked[0]);
    ck_assert_uint_eq(stats_of(&peers[0]).counts[TIER_MISSES], 1);
    await_lag(&peers[0], false);
    ck_assert_uint_eq(stats_of(&peers[0]).up, 1);
    ck_assert_uint_eq(stats_of(&peers[0]).counts[TIER_LATE], 0);
    put(&peers[0], 'x');
    ck_assert_int_eq(get(&peers[0]), 'x');
    /* Those that went on have no lease for which another daemon would wait. */
    for (unsigned i = 1; i < 5; i++)
        ck_assert_int_eq(get_url(&peers[1], asked[i].url), 0);
    ck_assert_uint_eq(stats_of(&peers[1]).counts[TIER_GIVEN_UP], 0);
}
END_TEST

START_TEST(the_next_look_at_a_request_whose_server_lags_is_known)
{
    struct tier *tier = open_still(NULL);
    struct tier_fill fill = {
        .tier = tier, .server = &tier->servers[0], .in = &tier->waiting, .again_us = 10};
    int64_t next_us;

    TAILQ_INSERT_TAIL(&tier->waiting, &fill, link);
    atomic_store(&tier->servers[0].lags, true);
    next_us = tier_fill_look(tier, 10);
    ck_assert_int_gt(next_us, 10);
    ck_assert_int_eq(next_us, fill.again_us);
    ck_assert_int_lt(next_us, SECOND);
    ck_assert_int_eq(tier_fill_look(tier, 11), next_us);
    TAILQ_REMOVE(&tier->waiting, &fill, link);
    tier_close(tier);
}
END_TEST

START_TEST(a_server_that_takes_a_little_longer_is_used)
{
    late_us = 4 * SECOND;
    begin(1, 20000);
    models[0].pause_ms = 50;
    models[0].fault = MODEL_IS_SLOW;
    for (unsigned i = 0; i < 10; i++) {
        char url[64];

        snprintf(url, sizeof(url), URL "/%u", i);
        ck_assert_int_eq(get_url(&peers[0], url), 0);
    }
    ck_assert_uint_eq(models[0].pages, 10);
    ck_assert_uint_eq(stats_of(&peers[0]).counts[TIER_PASSED], 0);
}
END_TEST

/* ---- promises of servers --------------------------------------------------------------------- */

START_TEST(a_server_whose_promises_are_not_kept_is_not_waited_for)
{
    begin(1, 20000);
    models[0].fault = MODEL_PROMISES;
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(get(&peers[0]), 0);
        release(&peers[0]);
    }
    ck_assert_uint_eq(stats_of(&peers[0]).counts[TIER_GIVEN_UP], 1);
    ck_assert_uint_eq(stats_of(&peers[0]).counts[TIER_MISSES], 20);
    ck_assert_uint_eq(stats_of(&peers[0]).up, 1);
}
END_TEST

/* A client leaves while a server is asked: another daemon may fetch at once. */
START_TEST(a_request_that_has_left_leaves_no_lease)
{
    struct requester r = {.answer = CACHE_HIT};
    bool waits = false;
    const struct source_request request = {.later = later, .context = &waits};

    begin(1, 600 * SECOND);
    models[0].pause_ms = 100;
    models[0].fault = MODEL_IS_SLOW;
    request_lookup_variant(&r, peers[0].cache, URL, "", clock_monotonic_us(),
                           (struct cache_request){.fill_size = tier_fill_size()});
    ck_assert_int_eq(peers[0].source->ops->fill(peers[0].source, r.found.fill, &request),
                     SOURCE_FILLS);
    ck_assert(cache_leave(&r.waiter));
    request_end(&r);
    while (stats_of(&peers[0]).counts[TIER_MISSES] == 0)
        nap();
    models[0].fault = MODEL_WORKS;
    ck_assert_int_eq(get(&peers[1]), 0);
}
END_TEST

START_TEST(a_daemon_that_ends_leaves_no_lease)
{
    begin(1, 600 * SECOND);
    ck_assert_int_eq(get(&peers[0]), 0);
    close_peer(&peers[0]);
    ck_assert_int_eq(get(&peers[1]), 0);
    open_peer(&peers[0], 20000);
}
END_TEST

START_TEST(leases_of_keys_with_the_same_hash_are_kept)
{
    struct tier_key key = {.words = {0, 9}, .text = "sp"};
    struct tier *tier;

    begin(1, 20000);
    tier = peers[0].tier;
    for (key.words[0] = 1; key.words[0] <= TIER_LEASE_WAYS; key.words[0]++)
        tier_lease_add(tier, &key, key.words[0], SECOND * 60);
    for (key.words[0] = 1; key.words[0] <= TIER_LEASE_WAYS; key.words[0]++) {
        /* To ask for nothing for a while does not end one. */
        tier_lease_add(tier, &key, 0, SECOND);
        ck_assert(tier_lease_is_held(tier, &key));
        ck_assert_uint_eq(tier_lease_take(tier, &key), key.words[0]);
        ck_assert(!tier_lease_is_held(tier, &key));
    }
}
END_TEST

/* Much is written while the server reads nothing: it waits, and the server is not given up. */
START_TEST(writes_wait_for_a_server_that_reads_slowly)
{
    struct object *object =
        object_make(&(struct object_parts){.url = span_str(URL), .inline_size = 100000});
    static char body[100000];
    uint64_t position;

    begin(1, 20000);
    ck_assert_int_eq(object_append(object, body, sizeof(body), UINT64_MAX), 0);
    object_complete(object, 7, clock_monotonic_us(), object_lifetime_of(100 * SECOND));
    position = peers[0].source->ops->begin_offer(peers[0].source, clock_monotonic_us());
    pthread_mutex_lock(&models[0].lock);
    for (int i = 0; i < 300; i++)
        ck_assert(peers[0].source->ops->offer(peers[0].source, object, span_of(NULL, 0), position));
    for (int i = 0; i < 50; i++)
        nap();
    pthread_mutex_unlock(&models[0].lock);
    while (stats_of(&peers[0]).counts[TIER_STORED] < 300)
        ck_assert_uint_eq(stats_of(&peers[0]).counts[TIER_NOT_STORED], 0);
    ck_assert_uint_eq(stats_of(&peers[0]).up, 1);
    object_release(&object);
}
END_TEST

START_TEST(a_purge_that_takes_long_delays_no_request)
{
    begin(1, 20000);
    put(&peers[0], 'x');
    peers[1].holds = true;
    purge(&peers[0], CACHE_BY_TAG, false, "green");
    purge(&peers[0], CACHE_BY_URL, false, URL);
    while (stats_of(&peers[1]).counts[TIER_PURGES_TAKEN] < 2)
        nap();
    /* It holds in the tier already. */
    ck_assert_int_eq(get(&peers[1]), 0);
    put(&peers[1], 'y');
    ck_assert_int_eq(get(&peers[1]), 'y');
    ck_assert_uint_eq(peers[1].purged, 0);
    peers[1].holds = false;
    while (peers[1].purged < 2)
        nap();
    ck_assert_str_eq(peers[1].last, "00" URL);
}
END_TEST

START_TEST(an_old_server_is_told_from_others)
{
    begin(1, 20000);
    models[0].fault = MODEL_IS_OLD;
    await_said(&peers[0], "since 1.6");
}
END_TEST

/* Nagle's algorithm would hold a command back until the one before is acknowledged. */
START_TEST(short_commands_are_sent_at_once)
{
    unsigned found = 0;

    begin(1, 20000);
    for (int fd = 3; fd < 100; fd++) {
        struct sockaddr_in address = {.sin_port = 0};
        socklen_t len = sizeof(address), size = sizeof(int);
        int is_on = 0;

        if (getpeername(fd, (struct sockaddr *)&address, &len) < 0 ||
            ntohs(address.sin_port) != models[0].port)
            continue;
        ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &is_on, &size), 0);
        ck_assert(is_on);
        found++;
    }
    ck_assert_uint_eq(found, PEERS);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("tier");
    TCase *tests = tcase_create("tier");

    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_page_reaches_the_other_daemon);
    tcase_add_test(tests, one_daemon_waits_for_the_other);
    tcase_add_test(tests, waiting_has_a_bound);
    tcase_add_test(tests, a_lease_is_taken_over_once);
    tcase_add_test(tests, a_lease_that_is_overdue_is_taken_over_at_once);
    tcase_add_test(tests, a_fetch_that_fails_or_is_not_for_all_ends_the_waiting);
    tcase_add_loop_test(tests, the_head_of_a_response_that_others_cannot_have_ends_the_waiting, 0,
                        2);
    tcase_add_test(tests, a_variant_is_found_by_its_names);
    tcase_add_test(tests, purges_reach_the_other_daemon);
    tcase_add_test(tests, what_was_asked_for_before_a_purge_is_not_used);
    tcase_add_test(tests, the_same_purge_with_a_later_epoch_counts);
    tcase_add_test(tests, purges_that_were_missed_are_hard);
    tcase_add_test(tests, many_purges_do_not_outdate_everything);
    tcase_add_test(tests, daemons_in_conflict_write_each_purge_once);
    tcase_add_test(tests, a_purge_is_told_when_the_daemon_ends);
    tcase_add_test(tests, a_purge_that_cannot_be_told_is_said);
    tcase_add_test(tests, a_daemon_that_cannot_read_all_journals_uses_nothing_older);
    tcase_add_test(tests, a_server_that_has_missed_many_purges_is_used_again);
    tcase_add_test(tests, journals_that_all_servers_have_lost_outdate_everything);
    tcase_add_test(tests, a_server_that_returns_gets_what_others_have_purged);
    tcase_add_test(tests, journals_that_are_lost_are_begun_together);
    tcase_add_test(tests, what_one_server_alone_had_is_written_again);
    tcase_add_loop_test(tests, a_purge_that_a_majority_has_kept_is_not_lost, 0,
                        127 / combinations_step() + 1);
    tcase_add_test(tests, a_journal_that_is_put_back_outdates_everything);
    tcase_add_test(tests, values_that_do_not_verify_are_not_used);
    tcase_add_loop_test(tests, a_server_that_fails_is_not_used, 0, 5);
    tcase_add_test(tests, a_server_that_is_full_is_passed_by);
    tcase_add_test(tests, a_daemon_whose_clock_differs_leaves);
    tcase_add_test(tests, a_clock_that_is_told_late_does_not_differ);
    tcase_add_test(tests, an_expired_page_is_validated_by_one);
    tcase_add_test(tests, a_purge_waits_for_no_server_that_is_down);
    tcase_add_test(tests, a_request_waits_for_one_slow_answer);
    tcase_add_test(tests, a_server_that_is_always_slow_is_not_used);
    tcase_add_loop_test(tests, one_request_waits_for_a_server_that_hangs, 0, 2);
    tcase_add_test(tests, of_those_that_wait_for_a_server_that_lags_one_goes_on);
    tcase_add_test(tests, the_next_look_at_a_request_whose_server_lags_is_known);
    tcase_add_test(tests, a_server_that_takes_a_little_longer_is_used);
    tcase_add_test(tests, a_server_whose_promises_are_not_kept_is_not_waited_for);
    tcase_add_test(tests, a_request_that_has_left_leaves_no_lease);
    tcase_add_test(tests, a_daemon_that_ends_leaves_no_lease);
    tcase_add_test(tests, leases_of_keys_with_the_same_hash_are_kept);
    tcase_add_test(tests, writes_wait_for_a_server_that_reads_slowly);
    tcase_add_test(tests, a_purge_that_takes_long_delays_no_request);
    tcase_add_test(tests, an_old_server_is_told_from_others);
    tcase_add_test(tests, short_commands_are_sent_at_once);
    tcase_add_test(tests, a_name_is_resolved_again_while_its_server_is_down);
    tcase_add_test(tests, each_address_of_a_name_is_tried);
    tcase_add_test(tests, each_address_of_a_list_that_comes_late_is_tried);
    tcase_add_test(tests, a_look_up_that_hangs_delays_no_other_server);
    tcase_add_test(tests, lists_of_servers);
    suite_add_tcase(suite, tests);
    return suite;
}
