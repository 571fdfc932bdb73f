#include "server/reload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/target.h"
#include "net/server.h"
#include "proxy/control.h"
#include "proxy/purging.h"
#include "proxy/sharing.h"
#include "server/config/config_files.h"
#include "rules/rules.h"
#include "server/http/http_service.h"
#include "server/logs/log.h"
#include "server/logs/origin_report.h"
#include "store/store.h"

enum { NAMES_MAX = 8192 }; /* bytes of names of options */

#define STORE_SYNC_US ((int64_t)5000000) /* that a reload waits for the store */

/* ---- reading --------------------------------------------------------------------------------- */

/* The options of the text, owned; NULL with a line in `why`. */
static struct options *
parse(struct span text, struct buf *why)
{
    struct options *options = malloc(sizeof(*options));
    bool ok = options && options_init(options);

    if (ok && options_parse_text(options, text, why))
        return options;
    if (!ok)
        buf_append_str(why, strerror(ENOMEM));
    else
        options_free(options);
    free(options);
    return NULL;
}

static struct options *
read_options(struct opener *opener, struct buf *files, struct buf *why)
{
    struct options *options = NULL;
    struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    if (opener_read(opener, &text, files, why))
        options = parse(buf_span(&text), why);
    buf_free(&text);
    return options;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static struct origin_member *
find_member(struct origin_route *route, struct span url)
{
    for (unsigned i = 0; i < route->count; i++)
        if (span_equal(route->members[i].url, url))
            return &route->members[i];
    return NULL;
}

/* Can both rows have the same pages? */
static bool
have_same_pages(const struct http_origin *a, struct http_origin *b)
{
    if (a->route.host != b->route.host ||
        (a->route.host == ORIGIN_HOST_NAMED && !span_equal(a->route.name, b->route.name)))
        return false;
    for (unsigned i = 0; i < a->route.count; i++)
        if (find_member(&b->route, a->route.members[i].url))
            return true;
    return false;
}

enum { MOST_ROWS = 32 }; /* that are searched for in the cache one by one */

/* Removes the pages of a row, and those of rows with a host that begins as its host does. */
static void
remove_pages(struct proxy *proxy, const struct http_origin *row)
{
    for (unsigned https = 0; https < 2; https++) {
        char url[512];
        size_t len =
            http_write_url(url, sizeof(url), https, row->host, https ? 443 : 80, span_str("/"));

        /* Without the slash: any port. */
        if (len)
            control_purge(proxy, CONTROL_PURGE_PREFIX, span_of(url, len - 1));
    }
}

/* Do the origins `b` have other pages than this row of others? */
static bool
is_changed(const struct http_origin *row, const struct http_origins *b)
{
    struct http_origin *same = http_origins_find_same(b, row);

    return !same || !have_same_pages(row, same);
}

/* Removes the pages of rows that only one of the two has, or with other origins: all pages, if they
 * are of any host, or many. */
static void
remove_changed(struct proxy *proxy, const struct http_origins *a, const struct http_origins *b)
{
    const struct http_origins *both[] = {a, b};
    const struct http_origin *changed[MOST_ROWS];
    unsigned count = 0;
    bool all = false;

    for (unsigned side = 0; side < 2 && !all; side++)
        for (size_t i = 0; i < both[side]->count && !all; i++) {
            const struct http_origin *row = &both[side]->rows[i];

            if (!is_changed(row, both[!side]))
                continue;
            all = row->host.len == 0 || row->host.len > 255 || count == MOST_ROWS;
            if (!all)
                changed[count++] = row;
        }
    if (all)
        control_purge(proxy, CONTROL_PURGE_ALL, span_of(NULL, 0));
    for (unsigned i = 0; !all && i < count; i++)
        remove_pages(proxy, changed[i]);
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* Rules of two configurations, of which those in the middle differ. */
struct rule_change {
    const struct rules *tables[2]; /* NULL: there are none */
    size_t begin;                  /* of those in the middle, of both, */
    size_t end[2];                 /* and of each the end */
};

static bool
are_same(const struct config *a, size_t i, const struct config *b, size_t k)
{
    return strcmp(a->options->rule.items[i], b->options->rule.items[k]) == 0 &&
           rules_have_same_files(a->table, i, b->table, k);
}

static struct rule_change
compare_rules(const struct config *a, const struct config *b)
{
    struct rule_change change = {.tables = {a->table, b->table},
                                 .end = {a->options->rule.count, b->options->rule.count}};

    while (change.begin < change.end[0] && change.begin < change.end[1] &&
           are_same(a, change.begin, b, change.begin))
        change.begin++;
    while (change.end[0] > change.begin && change.end[1] > change.begin &&
           are_same(a, change.end[0] - 1, b, change.end[1] - 1)) {
        change.end[0]--;
        change.end[1]--;
    }
    return change;
}

static enum rules_concern
concern(const struct rule_change *change, struct span url)
{
    enum rules_concern most = RULES_CONCERN_NOT;

    for (unsigned i = 0; i < 2; i++) {
        enum rules_concern one = change->tables[i] ? rules_concern(change->tables[i], change->begin,
                                                                   change->end[i], HTTP_GET, url)
                                                   : RULES_CONCERN_NOT;

        most = one > most ? one : most;
    }
    for (unsigned i = 0; most == RULES_CONCERN_STORING && i < 2; i++)
        if (change->tables[i] && rules_let_in(change->tables[i], url))
            most = RULES_CONCERN_CONTENT;
    return most;
}

/* Of a page: it is removed if it may be another one now, and expires if rules concern it else. */
static enum cache_fate
decide(struct object *object, const void *change)
{
    switch (concern(change, object_url(object))) {
    case RULES_CONCERN_NOT:
        return CACHE_SPARED;
    case RULES_CONCERN_STORING:
        return CACHE_EXPIRED;
    case RULES_CONCERN_CONTENT:
        break;
    }
    return CACHE_REMOVED;
}

/* Outdates the pages that changed rules concern. */
static void
outdate(struct proxy *proxy, const struct config *from, const struct config *to)
{
    const struct rule_change change = compare_rules(from, to);

    if (change.begin == change.end[0] && change.begin == change.end[1])
        return;
    purging_apply(proxy, &(struct purging){
                             .by = CACHE_BY_PREFIX,
                             .scope = &(struct cache_scope){.decide = decide, .context = &change},
                             .local = true});
}

/* ---- options that decide about responses ----------------------------------------------------- */

static const char *const names_of_storing[] = {
    "max-age",       "heuristic-lifetime",  "redirect-lifetime", "error-lifetime",
    "store-cookies", "store-client-errors", NULL};

struct review {
    const struct proxy *proxy;
    struct request request; /* of none: with the options that are in force */
};

/* Of a page: it is removed if it would not be stored now, and is fresh no longer than it would be. */
static enum cache_fate
review_object(struct object *object, const void *context)
{
    const struct review *review = context;
    struct source_head head;
    enum http_reason refusal;

    if (object_state(object) != OBJECT_READY)
        return CACHE_SPARED;
    head = sharing_head_of(object);
    refusal = sharing_review(review->proxy, &review->request, &head);
    if (refusal && refusal != HTTP_REASON_MEMORY)
        return CACHE_REMOVED;
    /* Without memory for a review it is validated, by the options in force. */
    object_shorten(object, refusal ? 0 : head.lifetime_us);
    return CACHE_SPARED;
}

/* What is in memory. What sources have is reviewed when it is read. */
static void
review_pages(struct proxy *proxy, const struct config *from, struct config *to)
{
    const struct review review = {
        .proxy = proxy,
        .request = {.rules = &to->rules.shared, .flags = to->origins.count ? REQUEST_OWNED : 0}};

    if (options_differ(from->options, to->options, names_of_storing))
        (void)cache_purge(proxy->config.cache,
                          &(struct cache_purge){.by = CACHE_BY_PREFIX,
                                                .scope = &(struct cache_scope){
                                                    .decide = review_object, .context = &review}});
}

/* ---- taking effect --------------------------------------------------------------------------- */

/* Policy and capacity, where the options change them. False with a sentence in `why`. */
static bool
change_cache(struct service *service, const struct options *from, const struct options *to,
             struct buf *why)
{
    const bool policy = strcmp(from->policy, to->policy) != 0;
    const bool capacity =
        from->capacity_urls != to->capacity_urls || from->capacity_bytes != to->capacity_bytes;
    struct control_change change = {.policy = policy ? to->policy : NULL, .set_capacity = capacity};
    struct cache_config config;
    char sentence[CONTROL_SENTENCE];

    /* What an administrator has set stays, unless the file changes it. */
    cache_get_config(service->cache, &config);
    change.capacity_pages =
        from->capacity_urls != to->capacity_urls ? to->capacity_urls : config.capacity_pages;
    change.capacity_bytes =
        from->capacity_bytes != to->capacity_bytes ? to->capacity_bytes : config.capacity_bytes;
    if ((!policy && !capacity) || control_configure(&service->proxy, &change, &config, sentence,
                                                    sizeof(sentence)) == CONTROL_OK)
        return true;
    buf_append_str(why, sentence);
    return false;
}

/* What has been stored up to now is not used. */
static void
outdate_store(struct store *store)
{
    (void)store_mark(store, CACHE_BY_PREFIX, false, span_of(NULL, 0), span_of(NULL, 0),
                     &(struct source_marked){.marked = true});
}

/*
 * Nothing that is stored under other terms is used under these: the mark is on disk before they are,
 * and a second one concerns what requests with the last terms have stored meanwhile. The answer is
 * given when that is on disk.
 */
static void
begin_terms(struct store *store, uint64_t terms, bool others)
{
    if (others)
        outdate_store(store);
    store_set_terms(store, terms);
}

static void
end_terms(struct store *store, bool others)
{
    if (others)
        outdate_store(store);
    if (store_await_sync(store, STORE_SYNC_US) != STORE_SYNCED)
        log_warning("the disk of the store is slow: it does not have the rules in force yet");
}

static void
replace(struct service *service, struct config *next)
{
    struct config *last = service_config(service);
    const uint64_t terms = components_store_terms(next);
    const bool others = components_store_terms(last) != terms;

    http_origins_inherit(&next->origins, &last->origins);
    http_origins_inherit(&next->peers.rows, &last->peers.rows);
    next->peers.group.auth = service->peer_auth;
    next->rules.generation = last->rules.generation + 1;
    if (service->store)
        begin_terms(service->store, terms, others);
    if (service->tier)
        tier_configure(service->tier, &next->tier.keys, components_tier_terms(next));
    atomic_store_explicit(&service->config, next, memory_order_release);
    /* What requests with the last one still fetch is not stored. */
    atomic_store(&service->proxy.generation, next->rules.generation);
    /* A worker that has found the last one in this turn may begin a fetch with it. */
    net_server_await_turn(rpc_server_net(service->rpc));
    if (service->http)
        http_service_recheck_users(service->http);
    if (service->report)
        origin_report_watch(service->report, &next->origins, &next->peers.rows);
    remove_changed(&service->proxy, &last->origins, &next->origins);
    outdate(&service->proxy, last, next);
    review_pages(&service->proxy, last, next);
    if (service->store)
        end_terms(service->store, others);
    config_release(last);
}

/* ---- sockets --------------------------------------------------------------------------------- */

static const char *const names_of_sockets[] = {"listen",       "port",    "socket", "http",
                                               "http-proxied", "metrics", NULL};

/* Those that the options name; none, unless they name others than before. */
static bool
open_sockets(struct components *parts, const struct options *options, struct taken_sockets *opened,
             struct buf *why)
{
    const struct options *last = service_config(&parts->service)->options;

    opened->count = 0;
    return !options_differ(last, options, names_of_sockets) ||
           opener_open_sockets(&parts->opener, &parts->restart.sockets, opened, why);
}

static bool
is_registered_alike(const struct listening *a, const struct listening *b)
{
    const struct local_socket *one = listen_local(a), *other = listen_local(b);

    return a->port == b->port && memcmp(&a->ipv4, &b->ipv4, sizeof(a->ipv4)) == 0 &&
           memcmp(&a->ipv6, &b->ipv6, sizeof(a->ipv6)) == 0 && !one == !other &&
           (!one || strcmp(one->path, other->path) == 0);
}

static bool
change_sockets(struct components *parts, struct taken_sockets *opened, struct buf *why)
{
    struct listen_service services[LISTEN_ROLES];
    struct taken_sockets offer = parts->restart.sockets;
    const struct listening before = parts->listening;
    int error;

    if (!opened->count)
        return true;
    components_get_services(parts, services);
    error = serve_change(rpc_server_net(parts->service.rpc), &parts->listening, &offer, opened,
                         services);
    if (error) {
        buf_append_str(why, strerror(error));
        return false;
    }
    restart_offer(&parts->restart, &offer);
    if (!is_registered_alike(&before, &parts->listening)) {
        registration_stop(parts->registration);
        components_register(parts);
    }
    return true;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* What can be refused takes effect first, and is undone if what follows is refused. */
static bool
change_parts(struct components *parts, const struct config *next, struct taken_sockets *opened,
             struct buf *why)
{
    struct service *service = &parts->service;
    const struct options *from = service_config(service)->options, *to = next->options;
    struct buf ignored;

    if (!change_cache(service, from, to, why))
        return false;
    if (change_sockets(parts, opened, why)) {
        components_change(parts, next);
        return true;
    }
    buf_init(&ignored, 4096);
    (void)change_cache(service, to, from, &ignored);
    buf_free(&ignored);
    return false;
}

/* What the configuration has from outside. */
static bool
complete(struct components *parts, struct config *next, struct span files, struct buf *why)
{
    if (!config_take_files(next, files, why))
        return false;
    next->settings = components_make_fetch_settings(parts, next->options, next->authorities, why);
    return next->settings != NULL;
}

/* Both as in struct config; the options are its own from then on, if this succeeds. */
static bool
take_effect(struct components *parts, struct options *options, struct span files, struct buf *why)
{
    struct config *next = config_create(options, why);
    struct taken_sockets opened = {.count = 0};
    bool done = false;

    if (!next)
        return false;
    done = complete(parts, next, files, why) && open_sockets(parts, options, &opened, why) &&
           change_parts(parts, next, &opened, why);
    if (done) {
        next->owned = options;
        replace(&parts->service, next);
        return true;
    }
    taken_sockets_close(&opened);
    config_release(next);
    return false;
}

/* Takes the file of an option that names one off both; names the option if it names the same file
 * as before, and its content has changed. */
static void
compare_file(const char *name, const char *before, const char *now, struct span *last,
             struct span *files, struct buf *live)
{
    struct span last_content = {0}, content = {0};

    if (before)
        (void)config_files_next(last, &last_content);
    if (now)
        (void)config_files_next(files, &content);
    if (before && now && strcmp(before, now) == 0 && !span_equal(last_content, content))
        buf_printf(live, "%s%s", live->len ? ", " : "", name);
}

/* Names the options of files whose content has changed, unless they name other files. */
static void
compare_files(const struct config *last, const struct options *options, struct span files,
              struct buf *live)
{
    static const char *const names[] = {"rule", NULL};
    struct span before = buf_span(&last->files);

    compare_file("cacert", last->options->cacert, options->cacert, &before, &files, live);
    compare_file("users", last->options->users, options->users, &before, &files, live);
    compare_file("peer-key-file", last->options->peer_key_file, options->peer_key_file, &before,
                 &files, live);
    compare_file("shared-key-file", last->options->shared_key_file, options->shared_key_file,
                 &before, &files, live);
    if (!options_differ(last->options, options, names) && !span_equal(before, files))
        buf_printf(live, "%srule", live->len ? ", " : "");
}

/* Compares the options with those in force, and lets them take effect. */
static bool
apply(struct components *parts, struct options *options, struct span files, struct buf *answer)
{
    const struct config *last = service_config(&parts->service);
    struct buf live, fixed;
    bool done = false;

    buf_init(&live, NAMES_MAX);
    buf_init(&fixed, NAMES_MAX);
    if (options_compare(last->options, options, &live, &fixed))
        compare_files(last, options, files, &live);
    if (buf_failed(&live) || buf_failed(&fixed)) {
        buf_append_str(answer, strerror(ENOMEM));
    } else if (fixed.len) {
        buf_printf(answer, "these options are changed by a restart only: %s", buf_str(&fixed));
    } else if (!live.len) {
        buf_append_str(answer, "nothing has changed");
        done = true;
    } else if (take_effect(parts, options, files, answer)) {
        buf_printf(answer, "changed: %s", buf_str(&live));
        done = true;
    }
    buf_free(&live);
    buf_free(&fixed);
    return done;
}

bool
reload(struct components *parts, struct buf *answer)
{
    struct buf files;
    struct options *options;
    bool done;

    buf_init(&files, CONFIG_FILES_MAX);
    options = read_options(&parts->opener, &files, answer);
    done = options && apply(parts, options, buf_span(&files), answer);
    if (options && service_config(&parts->service)->options != options) {
        options_free(options);
        free(options);
    }
    buf_free(&files);
    return done;
}
