/* Telling the owner of what others have purged, on a thread of its own: it may walk the cache. */
#include <stdlib.h>

#include "base/thread.h"
#include "tier/tier_state.h"

#define MOST_TOLD 16384u /* that wait; more are one purge of everything */

struct tier_told {
    STAILQ_ENTRY(tier_told) link;
    struct source_purge purge; /* its texts are in `text` */
    char text[];
};

static struct tier_told *
make_told(const struct source_purge *purge)
{
    struct tier_told *told = malloc(sizeof(*told) + purge->name.len + purge->scope.len);

    if (!told)
        return NULL;
    told->purge = *purge;
    told->purge.name = span_of(told->text, purge->name.len);
    told->purge.scope = span_of(told->text + purge->name.len, purge->scope.len);
    span_put(span_put(told->text, purge->name), purge->scope);
    return told;
}

/* Under the lock. */
static void
drop_told(struct tier_teller *teller)
{
    struct tier_told *told;

    while ((told = STAILQ_FIRST(&teller->told))) {
        STAILQ_REMOVE_HEAD(&teller->told, link);
        free(told);
    }
    teller->count = 0;
}

void
tier_tell(struct tier *tier, const struct source_purge *purge)
{
    struct tier_teller *teller = &tier->teller;
    struct tier_told *told;

    if (!tier->config.purged)
        return;
    told = make_told(purge);
    pthread_mutex_lock(&teller->lock);
    if (told && teller->count < MOST_TOLD && !teller->all) {
        STAILQ_INSERT_TAIL(&teller->told, told, link);
        teller->count++;
    } else {
        free(told);
        drop_told(teller);
        teller->all = true;
    }
    pthread_cond_signal(&teller->cond);
    pthread_mutex_unlock(&teller->lock);
}

/* Under the lock, which is left meanwhile. */
static void
tell_next(struct tier *tier)
{
    struct tier_teller *teller = &tier->teller;
    struct tier_told *told = STAILQ_FIRST(&teller->told);
    const struct source_purge all = {.by = CACHE_BY_PREFIX};

    if (told) {
        STAILQ_REMOVE_HEAD(&teller->told, link);
        teller->count--;
    } else {
        teller->all = false;
    }
    pthread_mutex_unlock(&teller->lock);
    tier->config.purged(tier->config.context, &tier->source, told ? &told->purge : &all);
    free(told);
    pthread_mutex_lock(&teller->lock);
}

static void *
run(void *context)
{
    struct tier *tier = context;
    struct tier_teller *teller = &tier->teller;

    memory_set_relief(false);
    pthread_mutex_lock(&teller->lock);
    for (;;) {
        if (teller->count || teller->all)
            tell_next(tier);
        else if (teller->ends)
            break;
        else
            pthread_cond_wait(&teller->cond, &teller->lock);
    }
    pthread_mutex_unlock(&teller->lock);
    return NULL;
}

void
tier_teller_init(struct tier_teller *teller)
{
    pthread_mutex_init(&teller->lock, NULL);
    pthread_cond_init(&teller->cond, NULL);
    STAILQ_INIT(&teller->told);
}

int
tier_teller_start(struct tier *tier)
{
    const int error = thread_start(&tier->teller.thread, run, tier);

    tier->teller.has_thread = !error;
    return error;
}

void
tier_teller_end(struct tier_teller *teller)
{
    if (!teller->has_thread)
        return;
    pthread_mutex_lock(&teller->lock);
    teller->ends = true;
    pthread_cond_signal(&teller->cond);
    pthread_mutex_unlock(&teller->lock);
    pthread_join(teller->thread, NULL);
    teller->has_thread = false;
}

void
tier_teller_free(struct tier_teller *teller)
{
    drop_told(teller);
    pthread_cond_destroy(&teller->cond);
    pthread_mutex_destroy(&teller->lock);
}
