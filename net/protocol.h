/*
 * What a protocol gives to the net: how the bytes of its connections are understood. A protocol
 * sees messages: it takes them off the input one at a time, starts work on them, and answers by
 * net_connection_send() at once or later. The net applies the bounds, rates and time-outs of
 * limits.h between messages, whatever they mean.
 *
 * Every function is called on the connection's worker, and may not free the connection. stopped()
 * and closed() may not close it either, nor may opened(). received() may close it only for a
 * response that breaks off, and returns NET_INPUT_END then; otherwise it ends the connection by
 * what it returns.
 */
#ifndef SUNPROXY_NET_PROTOCOL_H
#define SUNPROXY_NET_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

struct net_connection;
struct net_peer;

enum net_input {
    NET_INPUT_PARTIAL,   /* a message is begun: its time runs. Called again if input is left */
    NET_INPUT_MESSAGE,   /* a message is over; what is left of the input follows it */
    NET_INPUT_STREAM,    /* bytes of no message were taken: no time runs, and no call is counted */
    NET_INPUT_NO_MEMORY, /* an account is used up, input is left: called again if the net can close
                            another connection with a message begun, otherwise as NET_INPUT_END */
    NET_INPUT_HOLD,      /* input is left that cannot be taken now: no more is read, and received()
                            is not called, until net_connection_release_input() */
    NET_INPUT_END        /* nothing more is to be read; what is in work is still answered */
};

struct net_protocol {
    size_t connection_size; /* of an object that begins with a struct net_connection */

    /*
     * Is work in vain whose answer cannot be delivered? Then a connection is closed as soon as the
     * system reports that both sides have ended, as over AF_UNIX when the peer closes. False: what
     * is in work goes on, as where the peer has ended its side alone.
     */
    bool answers_all;

    /*
     * Does the peer connect for clients of its own, which the protocol learns later? Then no
     * client's bounds and rates hold for the connection until net_connection_set_client(). Called
     * with the context of the listener, on worker 0. NULL: no peer does.
     */
    bool (*for_others)(void *context, const struct net_peer *peer);

    /* A connection begins: the object is zero behind its struct net_connection. */
    void (*opened)(struct net_connection *connection);

    /* Bytes have come: takes them off the front of *input, one message at most. They are valid
     * until the return. */
    enum net_input (*received)(struct net_connection *connection, struct span *input);

    /*
     * The peer has ended its side behind input that is not taken yet (NET_INPUT_HOLD, or a bound).
     * True: what it has sent is not wanted any more, and no more is read; stopped() follows. False:
     * the input is taken in its turn. It may be called again. NULL: false.
     */
    bool (*left)(struct net_connection *connection);

    /* No more is read: forgets a message that is begun. Called once or more. */
    void (*stopped)(struct net_connection *connection);

    /*
     * Before the object is freed. Work for it is over, unless the server is destroyed: then
     * requests that are still counted (net_connection_begin_request()) or kept must be released
     * here.
     */
    void (*closed)(struct net_connection *connection);
};

#endif
