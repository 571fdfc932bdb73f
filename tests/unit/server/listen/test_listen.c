#include "server/listen/listen.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static char folder[64], path[128], lock[160];
static struct options options;

static void
setup(void)
{
    snprintf(folder, sizeof(folder), "/tmp/sunproxy-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/socket", folder);
    snprintf(lock, sizeof(lock), "%s.lock", path);
    ck_assert(options_init(&options));
    options.socket = strdup(path);
}

static void
teardown(void)
{
    options_free(&options);
    unlink(path);
    unlink(lock);
    rmdir(folder);
}

static bool
can_connect(const char *address, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool ok;

    inet_pton(AF_INET, address, &to.sin_addr);
    ok = connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0;
    close(fd);
    return ok;
}

START_TEST(one_port_for_all_addresses_and_a_socket)
{
    struct listening listening;
    char text[INET6_ADDRSTRLEN];
    struct stat st;
    struct buf why;

    buf_init(&why, 1024);
    options.socket_mode = 0600;
    ck_assert_msg(listen_open(&listening, &options, NULL, &why) == LISTEN_OK, "%s", buf_str(&why));
    ck_assert_uint_ne(listening.port, 0);
    ck_assert(can_connect("127.0.0.1", listening.port));
    /* Other addresses of the machine are not served by default. */
    ck_assert_str_eq(listen_address_text(&listening.ipv4, text), "127.0.0.1");
    ck_assert(!can_connect("127.0.0.2", listening.port));
    if (listening.ipv6.ss_family)
        ck_assert_str_eq(listen_address_text(&listening.ipv6, text), "::1");
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert(S_ISSOCK(st.st_mode));
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    listen_close(&listening);
    ck_assert_int_ne(access(path, F_OK), 0);
    buf_free(&why);
}
END_TEST

START_TEST(several_addresses_of_a_family_are_its_wildcard_address)
{
    char one[] = "127.0.0.1", two[] = "127.0.0.2", *items[] = {two, one, NULL};
    char text[INET6_ADDRSTRLEN];
    struct listening listening;
    struct buf why;

    buf_init(&why, 1024);
    options.listen = (struct option_list){.items = items, .count = 2};
    ck_assert_msg(listen_open(&listening, &options, NULL, &why) == LISTEN_OK, "%s", buf_str(&why));
    ck_assert_uint_eq(listening.sets[LISTEN_RPC].count, 2);
    ck_assert_str_eq(listen_address_text(&listening.ipv4, text), "0.0.0.0");
    ck_assert_str_eq(listen_address_text(&listening.ipv6, text), "");
    listen_close(&listening);
    items[1] = NULL;
    options.listen.count = 1;
    ck_assert_int_eq(listen_open(&listening, &options, NULL, &why), LISTEN_OK);
    ck_assert_str_eq(listen_address_text(&listening.ipv4, text), "127.0.0.2");
    listen_close(&listening);
    options.listen = (struct option_list){0};
    buf_free(&why);
}
END_TEST

START_TEST(a_port_that_is_taken_names_its_holder)
{
    struct listening first, second;
    char message[64];
    struct buf why;

    buf_init(&why, 1024);
    ck_assert_int_eq(listen_open(&first, &options, NULL, &why), LISTEN_OK);
    options.port = first.port;
    ck_assert_int_eq(listen_open(&second, &options, NULL, &why), LISTEN_IN_USE);
    snprintf(message, sizeof(message), "TCP port %u is in use by process %ld (",
             (unsigned)first.port, (long)getpid());
    ck_assert_msg(strstr(buf_str(&why), message), "%s", buf_str(&why));
    /* The failure of the second has not harmed the first. */
    ck_assert_int_eq(access(path, F_OK), 0);
    listen_close(&first);
    buf_free(&why);
}
END_TEST

START_TEST(a_socket_that_is_taken_names_its_holder)
{
    struct listening first, second;
    char message[64];
    struct buf why;

    buf_init(&why, 1024);
    ck_assert_int_eq(listen_open(&first, &options, NULL, &why), LISTEN_OK);
    ck_assert_int_eq(listen_open(&second, &options, NULL, &why), LISTEN_IN_USE);
    snprintf(message, sizeof(message), "is in use by process %ld (", (long)getpid());
    ck_assert_msg(strstr(buf_str(&why), message), "%s", buf_str(&why));
    ck_assert_int_eq(access(path, F_OK), 0);
    listen_close(&first);
    buf_free(&why);
}
END_TEST

START_TEST(a_lock_can_be_opened_by_its_owner_only)
{
    struct listening listening;
    struct stat st;
    struct buf why;
    int before;

    buf_init(&why, 1024);
    ck_assert_int_eq(listen_open(&listening, &options, NULL, &why), LISTEN_OK);
    ck_assert_int_eq(stat(lock, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    listen_close(&listening);
    /* One from a version that made it readable is changed. */
    ck_assert_int_eq(chmod(lock, 0644), 0);
    ck_assert_int_eq(listen_open(&listening, &options, NULL, &why), LISTEN_OK);
    ck_assert_int_eq(stat(lock, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    listen_close(&listening);
    /* Also if it is held, so that the next start after its holder's end succeeds. */
    ck_assert_int_eq(chmod(lock, 0644), 0);
    before = open(lock, O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(flock(before, LOCK_SH), 0);
    ck_assert_int_eq(listen_open(&listening, &options, NULL, &why), LISTEN_IN_USE);
    ck_assert_int_eq(stat(lock, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    close(before);
    buf_free(&why);
}
END_TEST

/* Another name of a file that is no lock must not lead to a change of it. */
START_TEST(a_second_name_of_a_file_is_no_lock)
{
    struct listening listening;
    char other[192], text[16] = "";
    struct stat st;
    struct buf why;
    FILE *file;

    snprintf(other, sizeof(other), "%s/other", folder);
    file = fopen(other, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs("content", file), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(other, 0644), 0);
    ck_assert_int_eq(link(other, lock), 0);
    buf_init(&why, 1024);
    ck_assert_int_eq(listen_open(&listening, &options, NULL, &why), LISTEN_FAILED);
    ck_assert_ptr_nonnull(strstr(buf_str(&why), lock));
    ck_assert_int_eq(stat(other, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0644);
    file = fopen(other, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(text, sizeof(text), file));
    ck_assert_str_eq(text, "content");
    fclose(file);
    unlink(other);
    buf_free(&why);
}
END_TEST

START_TEST(a_lock_held_by_a_process_that_is_not_in_the_file_names_that_process)
{
    struct listening listening;
    int message[2], ready[2];
    char name[64], byte;
    struct buf why;
    FILE *file = fopen(lock, "w");
    pid_t child;

    ck_assert_ptr_nonnull(file);
    fprintf(file, "1\n"); /* left by an earlier holder */
    fclose(file);
    ck_assert_int_eq(pipe(message), 0);
    ck_assert_int_eq(pipe(ready), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        int fd = open(lock, O_RDONLY);

        if (fd < 0 || flock(fd, LOCK_EX) != 0 || write(ready[1], "r", 1) != 1)
            _exit(1);
        close(message[1]);
        _exit(read(message[0], &byte, 1) < 0);
    }
    close(message[0]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    buf_init(&why, 1024);
    ck_assert_int_eq(listen_open(&listening, &options, NULL, &why), LISTEN_IN_USE);
    snprintf(name, sizeof(name), "is in use by process %ld (", (long)child);
    ck_assert_msg(strstr(buf_str(&why), name), "%s", buf_str(&why));
    close(message[1]);
    close(ready[0]);
    close(ready[1]);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    buf_free(&why);
}
END_TEST

START_TEST(a_socket_left_behind_is_replaced)
{
    struct listening first, second;
    struct buf why;

    buf_init(&why, 1024);
    ck_assert_int_eq(listen_open(&first, &options, NULL, &why), LISTEN_OK);
    /* As after kill -9: descriptors and lock are gone, the name is not. */
    first.sets[LISTEN_LOCAL].sockets[0].bound = false;
    listen_close(&first);
    ck_assert_int_eq(access(path, F_OK), 0);
    ck_assert_msg(listen_open(&second, &options, NULL, &why) == LISTEN_OK, "%s", buf_str(&why));
    listen_close(&second);
    buf_free(&why);
}
END_TEST

START_TEST(a_file_in_the_sockets_place_is_left_alone)
{
    struct listening listening;
    FILE *file = fopen(path, "w");
    struct buf why;

    ck_assert_ptr_nonnull(file);
    fputs("precious", file);
    fclose(file);
    buf_init(&why, 1024);
    ck_assert_int_eq(listen_open(&listening, &options, NULL, &why), LISTEN_BAD_ADDRESS);
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "is not a socket"));
    ck_assert_int_eq(access(path, F_OK), 0);
    buf_free(&why);
}
END_TEST

START_TEST(addresses_that_cannot_be)
{
    static char *const cases[] = {"example.com", "192.0.2.1", "1.2.3.4.5", ""};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *items[] = {cases[i], NULL};
        struct listening listening;
        struct buf why;

        buf_init(&why, 1024);
        options.listen = (struct option_list){.items = items, .count = 1};
        ck_assert_msg(listen_open(&listening, &options, NULL, &why) == LISTEN_BAD_ADDRESS, "%s: %s",
                      cases[i], buf_str(&why));
        buf_free(&why);
    }
    options.listen = (struct option_list){0};
}
END_TEST

/* Values of --http, and the names of the sockets that they open, by families that there are. */
START_TEST(addresses_of_http)
{
    static const struct {
        char *value;
        const char *names[2];
    } rows[] = {
        {"127.0.0.1:", {"127.0.0.1:", NULL}},
        {"[::1]:", {"[::1]:", NULL}},
        {"localhost:", {"127.0.0.1:", "[::1]:"}},
        {"LocalHost:", {"127.0.0.1:", "[::1]:"}},
        {":", {"0.0.0.0:", "[::]:"}},
        {"*:", {"0.0.0.0:", "[::]:"}},
        {"[::]:", {"[::]:", NULL}},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char value[32], *items[] = {value, NULL}, name[LISTEN_NAME];
        struct listening listening;
        struct buf why;
        uint16_t port;

        buf_init(&why, 1024);
        snprintf(value, sizeof(value), "%s0", rows[i].value);
        options.http = (struct option_list){.items = items, .count = 1};
        ck_assert_msg(listen_open(&listening, &options, NULL, &why) == LISTEN_OK, "%s",
                      buf_str(&why));
        options.http = (struct option_list){0};
        ck_assert_uint_eq(listening.sets[LISTEN_HTTP].count, rows[i].names[1] ? 2 : 1);
        port = listen_address_port_of(listening.sets[LISTEN_HTTP].sockets[0].fd);
        for (unsigned n = 0; n < listening.sets[LISTEN_HTTP].count; n++) {
            char wanted[LISTEN_NAME];

            snprintf(wanted, sizeof(wanted), "%s%u", rows[i].names[n], (unsigned)port);
            ck_assert_str_eq(
                listen_describe(listening.sets[LISTEN_HTTP].sockets[n].fd, name, sizeof(name)),
                wanted);
        }
        listen_close(&listening);
        buf_free(&why);
    }
}
END_TEST

START_TEST(values_of_http_that_are_no_addresses)
{
    static const char *const values[] = {
        "8080", "localhost", "host:80", "::1:80", "[127.0.0.1]:80", "127.0.0.1:65536",
        ":",    "[]:80",     "[::1]",   "unix:",  "127.0.0.1:x",    ""};

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct listen_http http;
        struct buf why;

        buf_init(&why, 1024);
        ck_assert_msg(!listen_http_parse("--http", values[i], &http, &why), "%s", values[i]);
        ck_assert_ptr_nonnull(strstr(buf_str(&why), "--http: \""));
        buf_free(&why);
    }
}
END_TEST

START_TEST(a_relative_path_is_reported_whole)
{
    struct listening listening;
    char before[4096];
    struct buf why;

    buf_init(&why, 1024);
    ck_assert_ptr_nonnull(getcwd(before, sizeof(before)));
    ck_assert_int_eq(chdir(folder), 0);
    free(options.socket);
    options.socket = strdup("socket");
    ck_assert_msg(listen_open(&listening, &options, NULL, &why) == LISTEN_OK, "%s", buf_str(&why));
    ck_assert_str_eq(listening.sets[LISTEN_LOCAL].sockets[0].path, path);
    ck_assert_int_eq(chdir(before), 0);
    listen_close(&listening);
    ck_assert_int_ne(access(path, F_OK), 0);
    buf_free(&why);
}
END_TEST

START_TEST(without_tcp_there_is_still_the_socket)
{
    char none[] = "none", *items[] = {none, NULL};
    struct listening listening;
    struct buf why;

    buf_init(&why, 1024);
    options.listen = (struct option_list){.items = items, .count = 1};
    ck_assert_int_eq(listen_open(&listening, &options, NULL, &why), LISTEN_OK);
    ck_assert_uint_eq(listening.sets[LISTEN_RPC].count, 0);
    ck_assert_int_ge(listening.sets[LISTEN_LOCAL].sockets[0].fd, 0);
    listen_close(&listening);
    free(options.socket);
    options.socket = strdup("none");
    ck_assert_int_eq(listen_open(&listening, &options, NULL, &why), LISTEN_BAD_ADDRESS);
    options.listen = (struct option_list){0};
    buf_free(&why);
}
END_TEST

START_TEST(more_addresses_than_it_takes)
{
    char texts[LISTEN_MOST_TCP + 1][16], *items[LISTEN_MOST_TCP + 2] = {NULL};
    const size_t count = LISTEN_MOST_TCP + 1;
    struct listening listening;
    struct buf why;

    buf_init(&why, 1024);
    for (size_t i = 0; i < count; i++) {
        snprintf(texts[i], sizeof(texts[i]), "127.0.0.%u", (unsigned)i + 1);
        items[i] = texts[i];
    }
    options.listen = (struct option_list){.items = items, .count = count};
    ck_assert_int_eq(listen_open(&listening, &options, NULL, &why), LISTEN_BAD_ADDRESS);
    ck_assert_str_eq(buf_str(&why), "--listen: more than 16 addresses");
    buf_reset(&why);
    ck_assert_int_eq(listen_check(&options, &why), LISTEN_BAD_ADDRESS);
    ck_assert_str_eq(buf_str(&why), "--listen: more than 16 addresses");
    options.listen.count = LISTEN_MOST_TCP;
    ck_assert_int_eq(listen_check(&options, &why), LISTEN_OK);
    options.listen = (struct option_list){0};
    buf_free(&why);
}
END_TEST

/* Opens and closes the socket at its default path; the path, or the sentence. Static memory. */
static const char *
default_path(enum listen_error wanted)
{
    static char text[1024];
    char none[] = "none", *items[] = {none, NULL};
    struct listening listening;
    enum listen_error error;
    struct buf why;

    buf_init(&why, 1024);
    free(options.socket);
    options.socket = NULL;
    options.listen = (struct option_list){.items = items, .count = 1};
    error = listen_open(&listening, &options, NULL, &why);
    options.listen = (struct option_list){0};
    snprintf(text, sizeof(text), "%s",
             error == LISTEN_OK ? listening.sets[LISTEN_LOCAL].sockets[0].path : buf_str(&why));
    if (error == LISTEN_OK) {
        char left[160];

        ck_assert(listening.sets[LISTEN_LOCAL].sockets[0].default_path);
        snprintf(left, sizeof(left), "%s.lock", listening.sets[LISTEN_LOCAL].sockets[0].path);
        listen_close(&listening);
        unlink(left);
    }
    buf_free(&why);
    ck_assert_msg(error == wanted, "%d: %s", error, text);
    return text;
}

/* systemd's folder before the session's; one that is missing is made, one that is not safe left. */
START_TEST(default_paths)
{
    char wanted[160], made[128], too_long[200];

    snprintf(made, sizeof(made), "%s/made", folder);
    snprintf(wanted, sizeof(wanted), "%s/sunproxy.sock", folder);
    setenv("RUNTIME_DIRECTORY", folder, 1);
    setenv("XDG_RUNTIME_DIR", "/proc/no", 1);
    ck_assert_str_eq(default_path(LISTEN_OK), wanted);

    setenv("RUNTIME_DIRECTORY", "relative", 1);
    setenv("XDG_RUNTIME_DIR", made, 1);
    snprintf(wanted, sizeof(wanted), "%s/made/sunproxy.sock", folder);
    ck_assert_str_eq(default_path(LISTEN_OK), wanted);
    ck_assert_int_eq(rmdir(made), 0);
    unsetenv("RUNTIME_DIRECTORY");

    ck_assert_int_eq(symlink(folder, made), 0);
    ck_assert_ptr_nonnull(strstr(default_path(LISTEN_FAILED),
                                 "is not a folder that this user owns; it "
                                 "belongs to user "));
    ck_assert_int_eq(unlink(made), 0);
    setenv("XDG_RUNTIME_DIR", "/proc/no/such", 1);
    ck_assert_str_eq(default_path(LISTEN_FAILED), "/proc/no/such: No such file or directory");
    memset(too_long, 'x', sizeof(too_long) - 1);
    too_long[0] = '/';
    too_long[sizeof(too_long) - 1] = '\0';
    setenv("XDG_RUNTIME_DIR", too_long, 1);
    ck_assert_ptr_nonnull(strstr(default_path(LISTEN_FAILED), "the socket has no default path"));
    unsetenv("XDG_RUNTIME_DIR");
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/listen");
    TCase *tc = tcase_create("listen");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, one_port_for_all_addresses_and_a_socket);
    tcase_add_test(tc, several_addresses_of_a_family_are_its_wildcard_address);
    tcase_add_test(tc, a_port_that_is_taken_names_its_holder);
    tcase_add_test(tc, a_socket_that_is_taken_names_its_holder);
    tcase_add_test(tc, a_lock_can_be_opened_by_its_owner_only);
    tcase_add_test(tc, a_second_name_of_a_file_is_no_lock);
    tcase_add_test(tc, a_lock_held_by_a_process_that_is_not_in_the_file_names_that_process);
    tcase_add_test(tc, a_socket_left_behind_is_replaced);
    tcase_add_test(tc, a_file_in_the_sockets_place_is_left_alone);
    tcase_add_test(tc, addresses_that_cannot_be);
    tcase_add_test(tc, addresses_of_http);
    tcase_add_test(tc, values_of_http_that_are_no_addresses);
    tcase_add_test(tc, a_relative_path_is_reported_whole);
    tcase_add_test(tc, more_addresses_than_it_takes);
    tcase_add_test(tc, default_paths);
    tcase_add_test(tc, without_tcp_there_is_still_the_socket);
    suite_add_tcase(suite, tc);
    return suite;
}
