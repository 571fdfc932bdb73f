/*
 * What the rules of the configuration (rules/rules.h) make of requests over RPC. Where a rule
 * redirects, the request fails: its client knows no redirects, and the front follows those of
 * origins.
 *
 * Everything here is for the request's worker.
 */
#ifndef SUNPROXY_SERVER_RPC_FRONT_RULES_H
#define SUNPROXY_SERVER_RPC_FRONT_RULES_H

#include "server/rpc/front.h"

/*
 * Does the forward proxy need a user for the URL of front->request? Over TCP a request cannot name
 * one; peers over AF_UNIX are not asked.
 */
bool front_rules_demand_user(struct front_exchange *front);

/*
 * Applies the rules to the URL of front->request, which is in memory of this thread then if they
 * edit it. 0; or why the request is refused, with a sentence of this thread in *why.
 */
enum failure front_rules_apply(struct front_exchange *front, const char **why);

/* The fields that go to the origin, of which the buffer has this size, as the rules have them. */
struct span front_rules_edit(struct front_exchange *front, char *fields, size_t len, size_t size);

/* Calls visit() with other keys that the rules may make of a URL that is purged, each in memory of
 * this thread. */
void front_rules_visit_keys(const struct service *service, struct span url,
                            void (*visit)(void *context, struct span key), void *context);

#endif
