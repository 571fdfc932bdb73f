/*
 * What Cache-Status (RFC 9211) and Age of a response say about its way through the cache, in the
 * terms of the RPC protocol. Safe on any thread.
 */
#ifndef SUNPROXY_CLIENT_GET_GET_CACHE_STATUS_H
#define SUNPROXY_CLIENT_GET_GET_CACHE_STATUS_H

#include "client/get/get.h"

/*
 * Fills source, stored, age and cache_status of a page from its head. Of several caches the one
 * that is nearest to this client counts, which is the last. A page that names none has no known
 * source.
 */
void get_read_cache_status(struct get_page *page);

#endif
