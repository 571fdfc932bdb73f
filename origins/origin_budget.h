/*
 * How many requests of a row are sent again to another member (origin_route.h): a share of its
 * requests, so that an outage does not multiply them, and a few besides, so that a row with few
 * requests repeats them, too. Finagle and Envoy bound retries in this way, by share and minimum.
 *
 * Both are counted over the last ORIGIN_BUDGET_SLOT_US to twice that. Safe on any thread; a few
 * counts may be lost when a slot begins.
 */
#ifndef SUNPROXY_ORIGINS_ORIGIN_BUDGET_H
#define SUNPROXY_ORIGINS_ORIGIN_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define ORIGIN_BUDGET_SLOT_US ((int64_t)10 * 1000000)
#define ORIGIN_BUDGET_LEAST 30u /* retries beside the share */

/* All zero: no request was counted, and there is no share. */
struct origin_budget {
    unsigned percent; /* the share; constant */
    _Atomic int64_t slot;
    _Atomic unsigned requests[2]; /* in even and odd slots: this one and the last one */
    _Atomic unsigned retries[2];
};

/* A request begins. */
void origin_budget_add(struct origin_budget *budget, int64_t now_us);

/* May one be sent again? Then it is counted. */
bool origin_budget_take(struct origin_budget *budget, int64_t now_us);

/* Counts on from there. Before `to` is used. */
void origin_budget_inherit(struct origin_budget *to, const struct origin_budget *from);

#endif
