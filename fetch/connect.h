/*
 * libcurl's call-backs about the connection of a hop: the last check of the address that it goes
 * to, and on a kept connection before it is used again. The context of each is the struct transfer.
 */
#ifndef SUNPROXY_FETCH_CONNECT_H
#define SUNPROXY_FETCH_CONNECT_H

#include <curl/curl.h>

/*
 * CURLOPT_OPENSOCKETFUNCTION: a socket, if the address may be connected to, and the request has not
 * been sent before unless it may be repeated.
 */
curl_socket_t connect_open_socket(void *transfer, curlsocktype purpose, struct curl_sockaddr *to);

/*
 * CURLOPT_PREREQFUNCTION: refuses a kept connection that is not silent (transfer->unclean), and a
 * request that must not be sent again.
 */
int connect_begin_request(void *transfer, char *to, char *from, int to_port, int from_port);

/* CURLOPT_RESOLVER_START_FUNCTION: libcurl resolves no name, since it could stall others. */
int connect_begin_lookup(void *resolver, void *reserved, void *transfer);

#endif
