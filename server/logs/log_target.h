/*
 * Where the access log goes, as --access-log has it:
 *
 *     FILE, -               a file, or standard output
 *     |COMMAND              the standard input of a command (log_command.h)
 *     syslog:[FACILITY][@PLACE]   the service of syslog at a socket, /dev/log by default, or at
 *                           ADDRESS:PORT over UDP; the latter by RFC 5424
 *     journal:[SOCKET]      the journal of systemd, by its native protocol
 *
 * A service gets a datagram for each line. The journal gets values of the request as fields, too.
 */
#ifndef SUNPROXY_SERVER_LOGS_LOG_TARGET_H
#define SUNPROXY_SERVER_LOGS_LOG_TARGET_H

#include <sys/socket.h>
#include <sys/types.h>

#include "base/buf.h"

enum log_target_kind {
    LOG_TARGET_FILE,
    LOG_TARGET_COMMAND,
    LOG_TARGET_SYSLOG,
    LOG_TARGET_SYSLOG_UDP,
    LOG_TARGET_JOURNAL,
};

struct log_target {
    enum log_target_kind kind;
    const char *path;                /* of a file, or the command; bytes of the text parsed */
    unsigned priority;               /* of syslog: facility and severity */
    struct sockaddr_storage address; /* of a service */
    socklen_t address_len;
    char host[65]; /* the name of this machine, for RFC 5424 */
};

/* False with a sentence in `why`. */
bool log_target_parse(struct log_target *target, const char *text, struct buf *why);

/*
 * A socket for a service, which need not be there yet: -1 with errno only if there can be no
 * socket.
 */
int log_target_connect(const struct log_target *target);

/*
 * Before its line the record for a journal has fields; this is the format string
 * (base/log_pattern.h) of what precedes the line.
 */
extern const char log_target_fields[];

/*
 * Writes without waiting what is taken now of the text, which is whole lines: returns the number of
 * its bytes. -1 with errno on failure: EAGAIN if nothing is taken now, EPIPE if no process takes
 * it, EMSGSIZE if the first line is too long for a datagram. [any thread]
 */
ssize_t log_target_write(const struct log_target *target, int fd, struct span text);

#endif
