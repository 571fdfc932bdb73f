/*
 * The head of a response with an object: status line, the object's field lines from where they
 * stand, and those that depend on time and request; and which bytes of the body follow. Conditions
 * and ranges of the request are evaluated here (RFC 9110, sections 13 and 14), of an object that
 * still grows, too, if its length is known.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_RESPONSE_H
#define SUNPROXY_SERVER_HTTP_HTTP_RESPONSE_H

struct http_exchange;

/* Makes the head for exchange->object: x->pieces, x->body and x->status. */
void http_response_make(struct http_exchange *x);

#endif
