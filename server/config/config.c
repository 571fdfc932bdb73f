#include "server/config/config.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "http/field.h"
#include "rules/rules.h"
#include "server/config/config_files.h"
#include "server/logs/log.h"

static char loopback4[] = "127.0.0.0/8", loopback6[] = "::1";
static char *loopback[] = {loopback4, loopback6, NULL};
const struct option_list config_loopback = {.items = loopback, .count = 2};

bool
config_add_networks(struct networks *networks, const struct option_list *list, const char *name,
                    struct buf *why)
{
    char sentence[256];
    bool added = true;

    for (size_t i = 0; i < list->count; i++) {
        if (networks_add(networks, list->items[i], sentence, sizeof(sentence)))
            continue;
        buf_end_line(why);
        buf_printf(why, "%s%s: %s", option_place(list, i), name, sentence);
        added = false;
    }
    return added;
}

/* ---- tags ------------------------------------------------------------------------------------ */

/* A response has no field of another name: its tags would be missed silently. */
static bool
check_fields(const struct option_list *list, struct buf *why)
{
    bool ok = true;

    for (size_t i = 0; i < list->count; i++) {
        if (http_is_token(span_str(list->items[i])))
            continue;
        buf_end_line(why);
        buf_printf(why, "%stag-field: \"%s\" is not the name of a field", option_place(list, i),
                   list->items[i]);
        ok = false;
    }
    return ok;
}

static bool
read_rules(struct tag_rules *rules, const struct option_list *list, const char *option,
           struct buf *why)
{
    bool ok = true;

    for (size_t i = 0; i < list->count; i++) {
        size_t before;

        buf_end_line(why);
        before = why->len;
        buf_printf(why, "%s%s: ", option_place(list, i), option);
        if (tag_rules_add(rules, list->items[i], why))
            buf_truncate(why, before);
        else
            ok = false;
    }
    return ok;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static const char *
place_of_rule(void *context, size_t i)
{
    return option_place(context, i);
}

static bool
read_table(struct config *config, struct option_list list, struct buf *why)
{
    bool ok = true;

    if (list.count == 0)
        return true;
    config->table = rules_create();
    if (!config->table) {
        buf_append_str(why, strerror(ENOMEM));
        return false;
    }
    for (size_t i = 0; i < list.count; i++) {
        size_t before;

        buf_end_line(why);
        before = why->len;
        buf_printf(why, "%srule: ", option_place(&list, i));
        if (rules_add(config->table, list.items[i], why))
            buf_truncate(why, before);
        else
            ok = false;
    }
    return ok && rules_finish(config->table, place_of_rule, &list, why);
}

/* ---- responses ------------------------------------------------------------------------------- */

/* A lifetime that follows from Last-Modified alone is a guess: RFC 9111 section 4.2.2. */
#define HEURISTIC_MAX_US ((int64_t)86400 * 1000000)

static void
set_storing(struct http_storing_rules *rules, const struct options *options)
{
    http_storing_rules_init(rules);
    rules->heuristic_percent = (unsigned)options->heuristic_lifetime;
    rules->heuristic_max_us = HEURISTIC_MAX_US;
    rules->redirect_max_us = options->redirect_lifetime;
    rules->negative_max_us = options->error_lifetime;
    rules->set_cookie = options->store_cookies;
    rules->client_errors = options->store_client_errors;
}

static void
set_rules(struct config *config)
{
    const struct options *options = config->options;
    struct proxy_rules *rules = &config->rules;

    rules->max_age_us = options->max_age;
    rules->storing = &config->storing;
    rules->table = config->table;
    rules->tag_fields = (const char *const *)options->tag_field.items;
    rules->tag_rules = &config->tag_rules;
    rules->write_rules = &config->write_rules;
    rules->invalidates_early = options->invalidate_early;
    rules->max_page = options->max_page;
    rules->range_fill = options->range_fill_size;
    rules->max_waiters = (unsigned)options->max_waiters;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* At most a line for each time that a member is left. */
static void
log_member(const struct origin_change *member)
{
    if (member->left_us == ORIGIN_SERVER_DOWN)
        log_warning("%.*s is down: %s", (int)member->url.len, member->url.ptr, member->reason);
    else if (member->left_us)
        log_warning("%.*s fails and is left for %lld s: %s", (int)member->url.len, member->url.ptr,
                    (long long)(member->left_us / 1000000), member->reason);
    else
        log_info("%.*s responds and is used again", (int)member->url.len, member->url.ptr);
}

/* ---- peers ----------------------------------------------------------------------------------- */

/* "unix" stands for the peers over AF_UNIX. */
static bool
read_trust(struct config *config, struct buf *why)
{
    const struct options *options = config->options;
    const struct option_list *list = &options->trust_forwarded;
    bool named = options->forwarded_field != HTTP_WAY_NONE, ok = named || !list->count;
    char sentence[256];

    config->forwarded_field = (enum http_way_field)options->forwarded_field;
    if (!ok) {
        buf_end_line(why);
        buf_printf(why,
                   "%strust-forwarded: --forwarded-field has to name the field that is believed",
                   option_place(list, 0));
    }
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i], "unix") == 0) {
            config->trusts_local = true;
        } else if (!networks_add(&config->trusted, list->items[i], sentence, sizeof(sentence))) {
            buf_end_line(why);
            buf_printf(why, "%strust-forwarded: %s", option_place(list, i), sentence);
            ok = false;
        }
    }
    return ok;
}

static bool
find_uid(const char *text, uid_t *uid)
{
    const struct passwd *user;
    uint64_t number;

    if (units_parse_uint(text, 0, UINT32_MAX - 1, &number)) {
        *uid = (uid_t)number;
        return true;
    }
    user = getpwnam(text);
    if (user)
        *uid = user->pw_uid;
    return user != NULL;
}

static bool
read_admins(struct config *config, struct buf *why)
{
    const struct option_list *named = &config->options->admin_uid;
    bool ok = true;

    config->admins = calloc(named->count + 1, sizeof(*config->admins));
    if (!config->admins) {
        buf_end_line(why);
        buf_append_str(why, strerror(ENOMEM));
        return false;
    }
    for (size_t i = 0; i < named->count; i++) {
        if (find_uid(named->items[i], &config->admins[config->admin_count])) {
            config->admin_count++;
            continue;
        }
        buf_end_line(why);
        buf_printf(why, "%sadmin-uid: \"%s\" is not a number or a user of this machine",
                   option_place(named, i), named->items[i]);
        ok = false;
    }
    return ok;
}

static bool
read_peers(struct config *config, struct buf *why)
{
    const struct options *options = config->options;
    const struct option_list *clients = &options->client_net;
    const struct option_list *balancers = &options->proxy_protocol_net;
    bool ok = config_add_networks(&config->clients, clients->count ? clients : &config_loopback,
                                  "client-net", why);

    ok = config_add_networks(&config->purgers, &options->purge_net, "purge-net", why) && ok;
    ok = config_add_networks(&config->balancers, balancers->count ? balancers : &config_loopback,
                             "proxy-protocol-net", why) &&
         ok;
    ok = read_trust(config, why) && ok;
    return read_admins(config, why) && ok;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void
destroy(struct shared *shared)
{
    struct config *config = (struct config *)shared;

    access_format_free(&config->log_format);
    rules_free(config->table);
    tag_rules_free(&config->tag_rules);
    tag_rules_free(&config->write_rules);
    networks_free(&config->clients);
    networks_free(&config->purgers);
    networks_free(&config->balancers);
    networks_free(&config->trusted);
    free(config->admins);
    buf_free(&config->files);
    user_file_free(config->users);
    fetch_settings_release(&config->settings);
    http_origins_free(&config->origins);
    config_peers_free(&config->peers);
    if (config->owned)
        options_free(config->owned);
    free(config->owned);
    free(config);
}

static bool
check_users(const struct options *options, struct buf *why)
{
    if (!options->users || !options->auth_helper)
        return true;
    buf_end_line(why);
    buf_printf(why, "%susers: --auth-helper is given, too: users are checked by one of them",
               options_place(options, "users"));
    return false;
}

/* A denial of users that no one ever has would go unnoticed. */
static bool
check_users_of_rules(const struct config *config, struct buf *why)
{
    if (!config->table || config_asks_users(config) || !rules_know_users(config->table))
        return true;
    buf_append_str(why, "rule: user, user-list and authenticate need --users or --auth-helper");
    return false;
}

/* All values are read, whatever the others are, so that `why` has every error. */
static bool
read_options(struct config *config, struct buf *why)
{
    const struct options *options = config->options;
    bool ok = read_peers(config, why);

    buf_end_line(why);
    ok = http_origins_init(&config->origins, &options->origin, why) && ok;
    buf_end_line(why);
    ok = check_users(options, why) && ok;
    ok = config_peers_read(&config->peers, options, why) && ok;
    ok = config_tier_read(&config->tier, options, why) && ok;
    buf_end_line(why);
    ok = check_fields(&options->tag_field, why) && ok;
    ok = read_rules(&config->tag_rules, &options->tag_rule, "tag-rule", why) && ok;
    ok = read_rules(&config->write_rules, &options->write_rule, "write-rule", why) && ok;
    buf_end_line(why);
    ok = read_table(config, options->rule, why) && ok;
    buf_end_line(why);
    ok = check_users_of_rules(config, why) && ok;
    buf_end_line(why);
    ok = http_ports_read(&config->connect_ports, &options->connect_port, why) && ok;
    buf_end_line(why);
    return access_format_init(&config->log_format, options->log_format, why) && ok;
}

/* For rules_load(): the next file. */
static bool
take_page(void *context, const char *path, struct buf *page, struct buf *why)
{
    struct span *files = context, content;

    if (config_files_next(files, &content) && buf_append(page, content.ptr, content.len))
        return true;
    buf_printf(why, "%s has not been read", path);
    return false;
}

bool
config_take_files(struct config *config, struct span files, struct buf *why)
{
    struct span rest, content = {0};

    if (!buf_append(&config->files, files.ptr, files.len)) {
        buf_append_str(why, strerror(ENOMEM));
        return false;
    }
    rest = buf_span(&config->files);
    if (config->options->cacert)
        (void)config_files_next(&rest, &config->authorities);
    if (config->options->users) {
        (void)config_files_next(&rest, &content);
        config->users = user_file_read(content, config->options->users, why);
        if (!config->users)
            return false;
    }
    if (config->options->peer_key_file) {
        (void)config_files_next(&rest, &content);
        if (!peer_keys_read(&config->peers.group.keys, content, why))
            return false;
    }
    if (config->options->shared_key_file) {
        (void)config_files_next(&rest, &content);
        if (!peer_keys_read(&config->tier.keys, content, why))
            return false;
    }
    return !config->table || rules_load(config->table, take_page, &rest, why);
}

bool
config_asks_users(const struct config *config)
{
    return config->options->users || config->options->auth_helper;
}

void
config_release(struct config *config)
{
    struct shared *shared = config ? &config->rules.shared : NULL;

    shared_release(&shared);
}

struct config *
config_create(const struct options *options, struct buf *why)
{
    struct config *config = calloc(1, sizeof(*config));

    if (!config) {
        buf_append_str(why, strerror(ENOMEM));
        return NULL;
    }
    shared_init(&config->rules.shared, destroy);
    buf_init(&config->files, CONFIG_FILES_MAX);
    config->options = options;
    if (!read_options(config, why)) {
        config_release(config);
        return NULL;
    }
    set_storing(&config->storing, options);
    set_rules(config);
    if (config->peers.rows.count)
        config->peers.group.route->changed = log_member;
    for (size_t i = 0; i < config->origins.count; i++) {
        config->origins.rows[i].route.changed = log_member;
        config->origins.rows[i].route.budget.percent = (unsigned)options->retry_budget;
    }
    return config;
}
