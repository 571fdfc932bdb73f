/*
 * A model of rpcbind and of libtirpc's calls to it, for programs named faults_*.c. It has rpcbind's
 * rules: an entry is not replaced by another address, and only its owner or root removes it; its
 * own entries are always there. It can be absent, refuse, and not answer.
 *
 * Its state is shared with child processes. While it is on, waits of threads other than the one
 * that began it end after a hundredth of a second, so that the registration's rounds follow each
 * other.
 */
#ifndef SUNPROXY_TESTS_SERVER_RPC_RPCBIND_MODEL_H
#define SUNPROXY_TESTS_SERVER_RPC_RPCBIND_MODEL_H

#include <stdatomic.h>
#include <stdbool.h>

#define RPCBIND_MODEL_ENTRIES 16

struct rpcbind_model {
    char caller[16]; /* rpcbind's name of this process's user: "superuser", or a number */
    _Atomic bool absent;
    _Atomic bool refuses;                     /* new entries */
    _Atomic bool hangs;                       /* no call ends */
    _Atomic bool no_transports, no_addresses; /* libtirpc does not know the netid, or the address */
    _Atomic unsigned sets, lists;             /* calls so far */
};

extern struct rpcbind_model *rpcbind_model;

/* Begins with no entries of others and a caller that is "superuser". */
void rpcbind_model_begin(void);
void rpcbind_model_end(void);

/* Forgets all entries, as after a restart. */
void rpcbind_model_forget(void);

/* Another program's entry. */
void rpcbind_model_add(unsigned program, unsigned version, const char *netid, const char *address,
                       const char *owner);

/* Another daemon of the same user takes an entry of our program over. */
void rpcbind_model_replace(unsigned version, const char *netid, const char *address);

/* The address of an entry of our program, copied to static memory of the calling thread; NULL if
 * there is none. */
const char *rpcbind_model_address(unsigned version, const char *netid);

/* The number of our program's entries. */
unsigned rpcbind_model_count(void);

/* Waits, for a minute at most, until `condition` holds. False: it did not. */
bool rpcbind_model_wait(bool (*condition)(void));

#endif
