/*
 * The opener: a process that reads the configuration again for a reload, and starts the process
 * that replaces the daemon for a restart. The daemon starts it before it opens sockets, changes its
 * user and enters the sandbox. So the opener has the privileges of the daemon's start, and reads
 * the file that the daemon cannot read any more. It reads nothing from the network: it gets a
 * number and a kind for each wish, and answers with a configuration or with what is wrong with it,
 * or with a connection to the process that it has started. It ends when the daemon has ended.
 *
 * For the daemon's main thread. The process has one thread but while it checks.
 */
#ifndef SUNPROXY_SERVER_CONFIG_OPENER_H
#define SUNPROXY_SERVER_CONFIG_OPENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "server/config/options.h"
#include "server/listen/listen.h"

struct opener {
    int fd;          /* to the process; -1: there is none */
    pid_t pid;       /* of it */
    uint32_t number; /* of the last wish */
    bool waits;      /* its answer was not received yet */

    /* Called while the daemon waits for the process, ten times in a second. NULL: nothing is. */
    void (*work)(void *context);
    void *context;
};

typedef int opener_check(const struct options *options);
typedef bool opener_open(const struct options *options, struct taken_sockets *taken,
                         struct listening *listening, struct buf *why);

/*
 * Starts the process, which reads the command line of these options, and the file that it names, at
 * each opener_read(), and opens sockets by open() at each opener_open_sockets(). It calls check()
 * for what only the parts can check, which logs each error and returns a status of sysexits.h.
 * Before any other thread. False with errno.
 */
bool opener_start(struct opener *opener, const struct options *options, opener_check *check,
                  opener_open *open);

/*
 * Has the configuration read and checked. *text gets each option with its value, as
 * options_print_config() writes it, and *files the files that they name (config_files.h); or *why a
 * line for each error, and this returns false.
 * Waits for the process for 30 s at most, and no longer once SIGTERM or SIGINT is pending. An answer
 * that comes later is dropped before the next wish is sent, within the time of that. Without a
 * process, or with one that stops within an answer, which is left then, *why says so.
 */
bool opener_read(struct opener *opener, struct buf *text, struct buf *files, struct buf *why);

/*
 * Has the sockets opened that the configuration of the last opener_read() names and the daemon, as
 * `offer` describes, does not have. *opened gets all that are named, those of the daemon, too: the
 * descriptors are the caller's. False with a sentence in `why`. It waits as opener_read() does.
 */
bool opener_open_sockets(struct opener *opener, const struct taken_sockets *offer,
                         struct taken_sockets *opened, struct buf *why);

/*
 * Has the daemon's program started anew, with the command line of the options and --take-over.
 * Returns the connection to it (listen/take_over.h), non-blocking, which is the caller's. -1 with a
 * sentence in `why`. It waits as opener_read() does.
 */
int opener_launch(struct opener *opener, struct buf *why);

/* Ends the process, and waits a second for its end. Harmless without one. */
void opener_stop(struct opener *opener);

#endif
