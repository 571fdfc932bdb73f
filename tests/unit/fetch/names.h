/* Names that stand for what a test says, in place of the system's. */
#ifndef SUNPROXY_TESTS_FETCH_NAMES_H
#define SUNPROXY_TESTS_FETCH_NAMES_H

#include <netdb.h>
#include <stdatomic.h>

#include "fetch/fetch.h"

struct name_row {
    const char *host; /* NULL ends the table */
    const char *address;
};

/* Where names are looked up, and how many have been. */
extern const struct name_row *_Atomic names_table;
extern _Atomic unsigned names_asked;

/* A name that is not in the table does not exist, and names that begin with "hang" only take longer
 * to say so. */
int names_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                      struct addrinfo **result);

/* Has fetchers of this configuration look names up in the table. */
void names_use(struct fetch_config *config, const struct name_row *table);

/* Lets the threads go that hang in a name, and waits until they have. */
void names_release(void);

#endif
