/* What every file of tier/ needs of the tier. */
#include "tier/tier_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "origins/origin_balance.h"

int64_t
tier_wall_us(const struct tier *tier)
{
    (void)tier;
    return clock_wall_us();
}

void
tier_say(const struct tier *tier, enum tier_log kind, const char *format, ...)
{
    char sentence[512], whole[640];
    va_list args;

    if (!tier->config.log)
        return;
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    snprintf(whole, sizeof(whole), "shared: %s", sentence);
    tier->config.log(tier->config.context, kind, whole);
}

struct tier_key
tier_key_under(struct tier *tier, uint64_t terms, struct span url, struct span variant)
{
    struct tier_naming naming;

    pthread_mutex_lock(&tier->lock);
    naming = tier->naming;
    pthread_mutex_unlock(&tier->lock);
    return tier_key_of(&naming, terms, url, variant);
}

struct tier_key
tier_key_now(struct tier *tier, struct span url, struct span variant)
{
    return tier_key_under(tier, atomic_load(&tier->terms), url, variant);
}

struct tier_server *
tier_server_of(struct tier *tier, const struct tier_key *key)
{
    struct tier_server *best = NULL;
    double highest = -1;

    for (unsigned i = 0; i < tier->server_count; i++) {
        struct tier_server *server = &tier->servers[i];
        double score;

        if (!atomic_load(&server->up))
            continue;
        score = origin_balance_score(key->words[0], span_str(server->address.name), 1);
        if (score > highest) {
            highest = score;
            best = server;
        }
    }
    return best;
}

void
tier_wake(struct tier *tier)
{
    const uint64_t one = 1;

    /* It fails only if a wake-up is due already. */
    (void)!write(tier->wake, &one, sizeof(one));
}
