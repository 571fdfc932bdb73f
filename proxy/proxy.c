#include "proxy/proxy.h"

#include "base/clock.h"

static int64_t
monotonic_us(void *context)
{
    (void)context;
    return clock_monotonic_us();
}

static int64_t
wall_us(void *context)
{
    (void)context;
    return clock_wall_us();
}

const struct proxy_clock proxy_clock_system = {.monotonic_us = monotonic_us, .wall_us = wall_us};

bool
proxy_init(struct proxy *proxy, const struct proxy_config *config)
{
    *proxy = (struct proxy){.config = *config};
    shedding_init(&proxy->shedding);
    proxy->waiting = client_tally_create(config->account, MEMORY_REQUESTS);
    if (!proxy->waiting)
        return false;
    if (pthread_mutex_init(&proxy->configuring, NULL) != 0) {
        client_tally_destroy(proxy->waiting);
        return false;
    }
    return true;
}

void
proxy_destroy(struct proxy *proxy)
{
    pthread_mutex_destroy(&proxy->configuring);
    client_tally_destroy(proxy->waiting);
}

size_t
proxy_shed(struct proxy *proxy, size_t bytes)
{
    return shedding_shed(&proxy->shedding, bytes, proxy_now_us(proxy));
}
