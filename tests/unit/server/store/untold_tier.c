#include "tests/unit/server/store/untold_tier.h"

#include "tests/unit/unit.h"

static void
say(void *context, enum tier_log kind, const char *sentence)
{
    (void)context;
    (void)kind;
    (void)sentence;
}

struct tier *
untold_open_tier(void)
{
    static const struct peer_keys keys = {1, {{"0123456789abcdef", 16}}};
    struct tier_servers servers;
    struct tier *opened;
    struct buf why;

    buf_init(&why, 200);
    ck_assert(tier_servers_read(span_str("memcached://127.0.0.1:1"), &servers, &why));
    buf_free(&why);
    opened = tier_open(&(struct tier_config){
        .servers = &servers, .keys = &keys, .poll_us = 1000, .skew_us = 1000, .log = say});
    ck_assert_ptr_nonnull(opened);
    return opened;
}

void
untold_purge(struct tier *tier, enum cache_by by, bool soft, const char *name, const char *scope)
{
    const struct source_purge purge = {by, soft, span_str(name), span_str(scope)};
    struct source *source = tier_source(tier);
    const struct source_marked marked = source->ops->mark(source, &purge, NULL);

    (void)source->ops->mark(source, &purge, &marked);
}
