/* Leases: what this daemon has said that it would fetch. */
#include <stdio.h>

#include "base/clock.h"
#include "tier/tier_state.h"

static bool
has_key(const struct tier_lease *lease, const struct tier_key *key)
{
    return lease->key.words[0] == key->words[0] && lease->key.words[1] == key->words[1] &&
           lease->until_us;
}

/* Under the lock: that of the key, or the one of its group that ends first. */
static struct tier_lease *
lease_of(struct tier *tier, const struct tier_key *key)
{
    struct tier_lease *group =
        &tier->leases[key->words[1] % (TIER_LEASES / TIER_LEASE_WAYS) * TIER_LEASE_WAYS];
    struct tier_lease *first = group;

    for (unsigned i = 0; i < TIER_LEASE_WAYS; i++) {
        if (has_key(&group[i], key))
            return &group[i];
        if (group[i].until_us < first->until_us)
            first = &group[i];
    }
    return first;
}

void
tier_lease_add(struct tier *tier, const struct tier_key *key, uint64_t cas, int64_t us)
{
    const int64_t now_us = clock_monotonic_us();
    struct tier_lease *lease;

    pthread_mutex_lock(&tier->lock);
    lease = lease_of(tier, key);
    if (cas || !has_key(lease, key) || !lease->cas || now_us >= lease->until_us)
        *lease = (struct tier_lease){*key, cas, now_us + us};
    pthread_mutex_unlock(&tier->lock);
}

bool
tier_lease_is_held(struct tier *tier, const struct tier_key *key)
{
    const int64_t now_us = clock_monotonic_us();
    const struct tier_lease *lease;
    bool is_held;

    pthread_mutex_lock(&tier->lock);
    lease = lease_of(tier, key);
    is_held = has_key(lease, key) && now_us < lease->until_us;
    pthread_mutex_unlock(&tier->lock);
    return is_held;
}

uint64_t
tier_lease_take(struct tier *tier, const struct tier_key *key)
{
    struct tier_lease *lease;
    uint64_t cas = 0;

    pthread_mutex_lock(&tier->lock);
    lease = lease_of(tier, key);
    if (has_key(lease, key)) {
        cas = lease->cas;
        *lease = (struct tier_lease){.until_us = 0};
    }
    pthread_mutex_unlock(&tier->lock);
    return cas;
}

void
tier_remove(struct tier *tier, const struct tier_key *key, uint64_t cas)
{
    struct tier_server *server = tier_server_of(tier, key);
    char command[96], condition[32] = "";

    if (cas)
        snprintf(condition, sizeof(condition), " C%llu", (unsigned long long)cas);
    snprintf(command, sizeof(command), "md %s%s", key->text, condition);
    if (server)
        (void)tier_server_send(tier, server, tier_op_create(TIER_OP_DROP), span_str(command),
                               span_of(NULL, 0));
}

void
tier_lease_release(struct tier *tier, const struct tier_key *key, uint64_t cas)
{
    if (cas)
        tier_remove(tier, key, cas);
}

void
tier_lease_release_all(struct tier *tier)
{
    const int64_t now_us = clock_monotonic_us();

    pthread_mutex_lock(&tier->lock);
    for (unsigned i = 0; i < TIER_LEASES; i++)
        if (now_us < tier->leases[i].until_us)
            tier_lease_release(tier, &tier->leases[i].key, tier->leases[i].cas);
    pthread_mutex_unlock(&tier->lock);
    for (unsigned i = 0; i < tier->server_count; i++)
        if (tier->servers[i].state >= TIER_CHECKED)
            (void)tier_server_flush(tier, &tier->servers[i]);
}
