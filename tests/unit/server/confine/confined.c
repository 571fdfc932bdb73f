#include "tests/unit/server/confine/confined.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/logs/log.h"
#include "tests/unit/faults.h"
#include "tests/unit/server/logs/logged.h"
#include "tests/unit/server/confine/process_model.h"
#include "tests/unit/unit.h"

struct confined confined;

static gid_t groups[] = {300, 301};

/* A text with the test's folder in place of "@"; static memory, eight of them. */
const char *
confined_in(const char *format)
{
    static char texts[8][PATH_MAX + 256];
    static unsigned next;
    char *text = texts[next++ % 8];
    const char *at = strchr(format, '@');

    snprintf(text, sizeof(texts[0]), "%.*s%s%s", (int)(at - format), format, confined.folder,
             at + 1);
    return text;
}

int
confined_make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

int
confined_make_file(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    ck_assert_int_ge(fd, 0);
    return fd;
}

/* The daemon's files: run/ has the socket and its lock, log/ the access log. */
void
confined_set_up(void)
{
    char made[] = "/tmp/sunproxy-test-XXXXXX";
    struct local_socket *local;

    ck_assert_ptr_nonnull(mkdtemp(made));
    ck_assert_ptr_nonnull(realpath(made, confined.folder));
    ck_assert_int_eq(mkdir(confined_in("@/run"), 0755), 0);
    ck_assert_int_eq(mkdir(confined_in("@/log"), 0755), 0);
    close(confined_make_file(confined_in("@/log/access.log")));
    close(confined_make_file(confined_in("@/ca.pem")));
    ck_assert(options_init(&confined.options));
    confined.options.no_rpcbind = true;
    confined.options.sandbox = SANDBOX_ON;
    free(confined.options.access_log);
    confined.options.access_log = strdup(confined_in("@/log/access.log"));
    confined.options.cacert = strdup(confined_in("@/ca.pem"));
    confined.options.user = strdup("4000");
    confined.listening = LISTENING_NONE;
    confined.listening.sets[LISTEN_LOCAL].count = 1;
    local = &confined.listening.sets[LISTEN_LOCAL].sockets[0];
    *local = (struct local_socket){.fd = confined_make_socket(confined_in("@/run/socket")),
                                   .bound = true,
                                   .lock = confined_make_file(confined_in("@/run/socket.lock")),
                                   .default_path = true};
    snprintf(local->path, sizeof(local->path), "%s", confined_in("@/run/socket"));
    confined.files = (struct sandbox_files){.sockets = {local->path},
                                            .access_log = confined.options.access_log,
                                            .cacert = confined.options.cacert};
    confined.user =
        (struct service_user){.uid = 4000, .gid = 300, .groups = groups, .group_count = 2};
    unsetenv("NOTIFY_SOCKET");
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_PLAIN);
    process_model_begin(true);
    logged_begin();
    buf_init(&confined.restrictions, 1024);
    buf_init(&confined.why, 1024);
}

void
confined_tear_down(void)
{
    static const char *const names[] = {"@/run/socket", "@/run/socket.lock", "@/log/access.log",
                                        "@/log/second", "@/ca.pem",          "@/stderr"};

    logged_end();
    process_model_end();
    faults_fail_at(0, 0);
    options_free(&confined.options);
    close(confined.listening.sets[LISTEN_LOCAL].sockets[0].fd);
    close(confined.listening.sets[LISTEN_LOCAL].sockets[0].lock);
    buf_free(&confined.restrictions);
    buf_free(&confined.why);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(confined_in(names[i]));
    rmdir(confined_in("@/run"));
    rmdir(confined_in("@/log"));
    ck_assert_int_eq(rmdir(confined.folder), 0);
}
