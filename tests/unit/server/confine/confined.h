/*
 * A daemon that is about to be confined: its options, sockets and files in a folder of the test's,
 * in the model of process_model.h.
 */
#ifndef SUNPROXY_TESTS_SERVER_CONFINE_CONFINED_H
#define SUNPROXY_TESTS_SERVER_CONFINE_CONFINED_H

#include <limits.h>

#include "server/confine/confinement.h"
#include "server/confine/sandbox.h"

struct confined {
    char folder[PATH_MAX];
    struct options options;
    struct listening listening;
    struct sandbox_files files;
    struct service_user user;
    struct buf restrictions, why;
};

extern struct confined confined;

/* A checked fixture: the daemon's files; run/ has the socket and its lock, log/ the access log. */
void confined_set_up(void);
void confined_tear_down(void);

/* A text with the folder in place of "@"; static memory, eight of them. */
const char *confined_in(const char *format);

/* Each makes its file, which confined_tear_down() removes if it made it. */
int confined_make_socket(const char *path);
int confined_make_file(const char *path);

#endif
