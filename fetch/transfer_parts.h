/*
 * What a transfer's files share (transfer_state.c): its head (transfer_head.c) and its bodies and
 * pauses (transfer.c) call it, and do not call each other.
 */
#ifndef SUNPROXY_FETCH_TRANSFER_PARTS_H
#define SUNPROXY_FETCH_TRANSFER_PARTS_H

#include "fetch/transfer.h"

#define TRANSFER_MAX_LINES 1000u /* of all heads and trailers: libcurl keeps those that it sees */

/* Notes what the consumer has answered; FETCH_ABORT if that ends the transfer. */
enum fetch_flow transfer_take_flow(struct transfer *transfer, enum fetch_flow flow);

/* The bound on the decoded body, by what has been read of it. */
uint64_t transfer_max_body(const struct transfer *transfer);

/*
 * If all of the answer has come: decides whether its connection is kept, and calls owner.complete()
 * if not all of the request was sent.
 */
void transfer_check_complete(struct transfer *transfer);

/* A part of the answer has come: false if it is out of order, which fails the transfer, or if the
 * transfer has failed before. */
bool transfer_advance(struct transfer *transfer, enum answer_part part);

#endif
