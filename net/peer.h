/*
 * The peer of a connection as its socket knows it.
 */
#ifndef SUNPROXY_NET_PEER_H
#define SUNPROXY_NET_PEER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

struct net_peer {
    struct sockaddr_storage address; /* AF_INET, AF_INET6 or AF_UNIX */
    socklen_t address_len;
    bool has_uid; /* an AF_UNIX peer; by SO_PEERCRED, so as of its connect() */
    uid_t uid;
    pid_t pid;
    bool is_privileged; /* by net_limits.is_privileged, when it connected */
    bool for_others;    /* by net_protocol.for_others, when it connected */
};

#endif
