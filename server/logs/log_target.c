#include "server/logs/log_target.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/nearest.h"
#include "server/listen/listen_address.h"
#include "server/logs/sink.h"
#include "base/timestamp.h"

#define SYSLOG_SOCKET "/dev/log"
#define JOURNAL_SOCKET "/run/systemd/journal/socket"
#define LONGEST_RECORD ((size_t)1 << 20)

/* Fields and line are separated by tabs, which no field has: base/log_pattern.h. */
#define LINE "\tMESSAGE="
const char log_target_fields[] =
    "PRIORITY=6\tSYSLOG_IDENTIFIER=sunproxyd\tSUNPROXY_CLIENT=%h\tSUNPROXY_METHOD=%m\t"
    "SUNPROXY_URL=%{url}x\tSUNPROXY_STATUS=%s\tSUNPROXY_BYTES=%B\tSUNPROXY_US=%D\t"
    "SUNPROXY_OUTCOME=%{outcome}x\tSUNPROXY_REASON=%{reason}x\tSUNPROXY_ERROR=%{error}x\t"
    "SUNPROXY_MEMBER=%{member}x\t"
    "SUNPROXY_PROTOCOL=%{protocol}x" LINE;

/* ---- parsing --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int facility;
} facilities[] = {
    {"user", LOG_USER},     {"mail", LOG_MAIL},     {"daemon", LOG_DAEMON}, {"auth", LOG_AUTH},
    {"syslog", LOG_SYSLOG}, {"lpr", LOG_LPR},       {"news", LOG_NEWS},     {"uucp", LOG_UUCP},
    {"cron", LOG_CRON},     {"authpriv", LOG_AUTHPRIV}, {"ftp", LOG_FTP},   {"local0", LOG_LOCAL0},
    {"local1", LOG_LOCAL1}, {"local2", LOG_LOCAL2}, {"local3", LOG_LOCAL3}, {"local4", LOG_LOCAL4},
    {"local5", LOG_LOCAL5}, {"local6", LOG_LOCAL6}, {"local7", LOG_LOCAL7},
};

static bool
set_socket(struct log_target *target, const char *path, struct buf *why)
{
    struct sockaddr_un *address = (struct sockaddr_un *)&target->address;

    if (*path != '/' || strlen(path) >= sizeof(address->sun_path)) {
        buf_printf(why, "\"%s\" is not the absolute path of a socket, of at most %zu bytes", path,
                   sizeof(address->sun_path) - 1);
        return false;
    }
    address->sun_family = AF_UNIX;
    snprintf(address->sun_path, sizeof(address->sun_path), "%s", path);
    target->address_len = sizeof(*address);
    return true;
}

static bool
set_facility(struct log_target *target, const char *name, struct buf *why)
{
    struct nearest nearest = NEAREST_TO(name);
    char ask[80];

    target->priority = LOG_DAEMON | LOG_INFO;
    if (*name == '\0')
        return true;
    for (size_t i = 0; i < sizeof(facilities) / sizeof(facilities[0]); i++) {
        nearest_offer(&nearest, facilities[i].name);
        target->priority = (unsigned)(facilities[i].facility | LOG_INFO);
        if (strcmp(facilities[i].name, name) == 0)
            return true;
    }
    buf_printf(why, "\"%s\" is not a facility of syslog such as daemon and local0%s", name,
               nearest_ask(&nearest, ask, sizeof(ask)));
    return false;
}

static bool
set_place(struct log_target *target, const char *place, struct buf *why)
{
    struct listen_http http = {.count = 0};
    struct buf unused;
    bool ok;

    if (*place == '/')
        return set_socket(target, place, why);
    buf_init(&unused, 1024);
    ok = listen_http_parse("", place, &http, &unused) && http.count == 1;
    buf_free(&unused);
    if (!ok) {
        buf_printf(why, "\"%s\" is not a place of syslog, such as 192.0.2.1:514 or /dev/log", place);
        return false;
    }
    target->kind = LOG_TARGET_SYSLOG_UDP;
    target->address = http.addresses[0];
    target->address_len = http.lens[0];
    gethostname(target->host, sizeof(target->host));
    target->host[sizeof(target->host) - 1] = '\0';
    return true;
}

/* [FACILITY][@PLACE] */
static bool
set_syslog(struct log_target *target, const char *text, struct buf *why)
{
    const char *at = strchr(text, '@');
    char facility[32];

    target->kind = LOG_TARGET_SYSLOG;
    snprintf(facility, sizeof(facility), "%.*s", (int)(at ? at - text : (long)strlen(text)), text);
    return set_facility(target, facility, why) && set_place(target, at ? at + 1 : SYSLOG_SOCKET, why);
}

/* Is what precedes a colon like the word of a service? */
static bool
resembles_service(const char *text, struct buf *why)
{
    const size_t len = strcspn(text, ":/");
    char word[16];
    struct nearest nearest = NEAREST_TO(word);

    if (text[len] != ':' || len >= sizeof(word))
        return false;
    snprintf(word, sizeof(word), "%.*s", (int)len, text);
    nearest_offer(&nearest, "syslog");
    nearest_offer(&nearest, "journal");
    if (!nearest_is_near(&nearest))
        return false;
    buf_printf(why, "\"%s:\" is neither syslog: nor journal:; did you mean %s:? A file of that name "
                    "is ./%s",
               word, nearest.best, text);
    return true;
}

bool
log_target_parse(struct log_target *target, const char *text, struct buf *why)
{
    *target = (struct log_target){.kind = LOG_TARGET_FILE, .path = text};
    if (*text == '|') {
        target->kind = LOG_TARGET_COMMAND;
        target->path = text + 1 + strspn(text + 1, " \t");
        if (*target->path)
            return true;
        buf_append_str(why, "no command follows the |");
        return false;
    }
    if (strncmp(text, "syslog:", 7) == 0)
        return set_syslog(target, text + 7, why);
    if (strncmp(text, "journal:", 8) == 0) {
        target->kind = LOG_TARGET_JOURNAL;
        return set_socket(target, text[8] ? text + 8 : JOURNAL_SOCKET, why);
    }
    return !resembles_service(text, why);
}

/* ---- services -------------------------------------------------------------------------------- */

static bool
join(const struct log_target *target, int fd)
{
    return connect(fd, (const struct sockaddr *)&target->address, target->address_len) == 0;
}

int
log_target_connect(const struct log_target *target)
{
    int fd = socket(target->address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0)
        (void)join(target, fd); /* or at the first line */
    return fd;
}

static void
append_head(struct buf *record, const struct log_target *target)
{
    const int64_t now_us = clock_wall_us();
    const time_t seconds = (time_t)(now_us / 1000000);
    char when[TIMESTAMP_SIZE];
    struct tm tm;

    if (target->kind == LOG_TARGET_SYSLOG_UDP) {
        timestamp_format(now_us, when);
        buf_printf(record, "<%u>1 %s %s sunproxyd %d access - ", target->priority, when,
                   *target->host ? target->host : "-", (int)getpid());
        return;
    }
    localtime_r(&seconds, &tm);
    strftime(when, sizeof(when), "%b %e %T", &tm);
    buf_printf(record, "<%u>%s sunproxyd[%d]: ", target->priority, when, (int)getpid());
}

/* The journal separates fields by line feeds. One without a value, "-", is left out. */
static void
append_fields(struct buf *record, struct span line)
{
    const char *message = memmem(line.ptr, line.len, LINE, strlen(LINE));
    struct span rest = span_of(line.ptr, message ? (size_t)(message - line.ptr) : 0);

    while (rest.len) {
        const char *end = memchr(rest.ptr, '\t', rest.len);
        const size_t len = end ? (size_t)(end - rest.ptr) : rest.len;

        if (len < 2 || memcmp(rest.ptr + len - 2, "=-", 2) != 0) {
            buf_append(record, rest.ptr, len);
            buf_append_char(record, '\n');
        }
        rest = span_of(rest.ptr + len + (end ? 1 : 0), rest.len - len - (end ? 1 : 0));
    }
    if (message)
        buf_append(record, message + 1, (size_t)(line.ptr + line.len - message) - 1);
    buf_append_char(record, '\n');
}

static bool
is_absence(int error)
{
    return error == ECONNREFUSED || error == ENOTCONN || error == EDESTADDRREQ || error == ENOENT ||
           error == ECONNRESET || error == EPIPE;
}

/* A service that has been started anew is found again by its address. */
static bool
send_record(const struct log_target *target, int fd, struct span record)
{
    ssize_t n = send(fd, record.ptr, record.len, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n < 0 && is_absence(errno) && join(target, fd))
        n = send(fd, record.ptr, record.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0)
        errno = is_absence(errno)                           ? EPIPE
                : errno == EWOULDBLOCK || errno == ENOBUFS ? EAGAIN
                                                           : errno;
    return n >= 0;
}

ssize_t
log_target_write(const struct log_target *target, int fd, struct span text)
{
    const char *end = memchr(text.ptr, '\n', text.len);
    const struct span line = span_of(text.ptr, end ? (size_t)(end - text.ptr) : text.len);
    struct buf record;
    bool done;

    if (target->kind == LOG_TARGET_FILE || target->kind == LOG_TARGET_COMMAND)
        return sink_write(fd, text.ptr, text.len);
    buf_init(&record, LONGEST_RECORD + 1024);
    if (target->kind == LOG_TARGET_JOURNAL) {
        append_fields(&record, line);
    } else {
        append_head(&record, target);
        buf_append(&record, line.ptr, line.len);
    }
    errno = ENOMEM;
    done = !buf_failed(&record) && send_record(target, fd, buf_span(&record));
    buf_free(&record);
    return done ? (ssize_t)(line.len + (end ? 1 : 0)) : -1;
}
