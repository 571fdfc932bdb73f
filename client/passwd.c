/*
 * sunproxy passwd: adds, changes and removes users of a file for sunproxyd --users.
 */
#include <bsd/readpassphrase.h>
#include <crypt.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/load.h"
#include "base/save.h"
#include "cli/output.h"
#include "client/commands.h"
#include "client/user_lines.h"
#include "http/basic_credentials.h"

#define FILE_MAX ((size_t)8 << 20) /* what sunproxyd takes */

/* By the words of --method. The costs are such that a check takes some 10 ms to 100 ms. */
static const struct {
    const char *prefix;
    unsigned long cost;
} methods[] = {{"$y$", 5}, {"$2b$", 10}, {"$6$", 50000}};

struct passwd_options {
    bool removes;
    bool from_stdin;
    unsigned method;
};

static const struct option_row rows[] = {
    {"delete", 'D', NULL, option_flag, offsetof(struct passwd_options, removes), 0, 0, NULL,
     "remove the user"},
    {"stdin", 0, NULL, option_flag, offsetof(struct passwd_options, from_stdin), 0, 0, NULL,
     "read the password from the first line of standard input"},
    {"method", 'm', "yescrypt|bcrypt|sha512", option_choice,
     offsetof(struct passwd_options, method), 0, 0, "yescrypt", "method of the hash"},
    {0},
};

static const struct option_group own = {.rows = rows};

/* ---- passwords ------------------------------------------------------------------------------- */

/* A password with its line feed, or one byte that is too much, and the end of the text. */
enum { PASSWORD_SIZE = HTTP_BASIC_PASSWORD_MAX + 2 };

static int
read_line(char *password)
{
    if (!fgets(password, PASSWORD_SIZE, stdin)) {
        output_complain("standard input has no password");
        return EX_DATAERR;
    }
    password[strcspn(password, "\r\n")] = '\0';
    return EX_OK;
}

/* From the terminal, without echo. */
static int
ask(const char *prompt, char *password)
{
    if (readpassphrase(prompt, password, PASSWORD_SIZE, RPP_REQUIRE_TTY))
        return EX_OK;
    output_complain("there is no terminal to ask for a password: %s; --stdin reads it from "
                    "standard input",
                    strerror(errno));
    return EX_NOINPUT;
}

static int
ask_twice(char *password)
{
    char again[PASSWORD_SIZE];
    int status = ask("Password: ", password);

    if (status == EX_OK)
        status = ask("The same again: ", again);
    if (status == EX_OK && strcmp(password, again) != 0) {
        output_complain("the two passwords differ");
        status = EX_DATAERR;
    }
    OPENSSL_cleanse(again, sizeof(again));
    return status;
}

/* The hash into CRYPT_OUTPUT_SIZE bytes. */
static int
make_hash(const char *password, unsigned method, char *hash)
{
    char setting[CRYPT_GENSALT_OUTPUT_SIZE];
    struct crypt_data *data = calloc(1, sizeof(*data));
    const char *made = NULL;

    if (data && crypt_gensalt_rn(methods[method].prefix, methods[method].cost, NULL, 0, setting,
                                 sizeof(setting)))
        made = crypt_rn(password, setting, data, sizeof(*data));
    if (made)
        snprintf(hash, CRYPT_OUTPUT_SIZE, "%s", made);
    else
        output_complain("libcrypt cannot make the hash: %s", strerror(errno));
    if (data)
        OPENSSL_cleanse(data, sizeof(*data));
    free(data);
    return made ? EX_OK : EX_SOFTWARE;
}

static int
read_password(const struct passwd_options *options, char *hash)
{
    char password[PASSWORD_SIZE];
    int status = options->from_stdin ? read_line(password) : ask_twice(password);

    if (status == EX_OK && !http_basic_is_password(span_str(password))) {
        output_complain("a password has 1 to %d bytes of UTF-8 without control characters",
                        HTTP_BASIC_PASSWORD_MAX);
        status = EX_DATAERR;
    }
    if (status == EX_OK)
        status = make_hash(password, options->method, hash);
    OPENSSL_cleanse(password, sizeof(password));
    return status;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int
refuse(const char *path, int error, int status)
{
    output_complain("%s: %s", path, error == SAVE_NO_FILE ? "it is no file" : strerror(error));
    return error == EACCES || error == EPERM ? EX_NOPERM : status;
}

/* Has the name another file by now? */
static bool
was_replaced(const char *path, int fd)
{
    struct stat now, locked;

    return fstat(fd, &locked) != 0 || stat(path, &now) != 0 || now.st_ino != locked.st_ino ||
           now.st_dev != locked.st_dev;
}

/* Opens the file, or makes it with *made set. -1 with errno; EAGAIN: another one was quicker. */
static int
open_file(const char *path, bool makes, bool *made)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    *made = false;
    if (fd >= 0 || errno != ENOENT || !makes)
        return fd;
    fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    *made = fd >= 0;
    if (fd < 0 && errno == EEXIST)
        errno = EAGAIN;
    return fd;
}

/*
 * Opens the file and waits until no other one changes it: the lock is on the file, which each
 * change replaces. A new file is made if `makes`, with *made set. -1 with errno.
 */
static int
open_locked(const char *path, bool makes, bool *made)
{
    for (;;) {
        int fd = open_file(path, makes, made), error;

        if (fd < 0 && errno != EAGAIN)
            return -1;
        if (fd < 0)
            continue;
        error = flock(fd, LOCK_EX) == 0 ? 0 : errno;
        if (!error && !was_replaced(path, fd))
            return fd;
        close(fd);
        errno = error;
        if (error)
            return -1;
    }
}

/* A file stays its owner's and its group's. A group that gets another file gets no rights to it. */
static void
keep_owner(int fd, const struct stat *before)
{
    if (fchown(fd, before->st_uid, before->st_gid) != 0 &&
        fchown(fd, (uid_t)-1, before->st_gid) != 0)
        (void)!fchmod(fd, before->st_mode & 0700);
}

static int
write_file(const char *path, int locked, const struct buf *text)
{
    struct save save;
    struct stat before;
    int error = fstat(locked, &before) != 0 ? errno : save_open(&save, path, true);

    if (error)
        return refuse(path, error, EX_CANTCREAT);
    keep_owner(fileno(save.file), &before);
    fwrite(text->data, 1, text->len, save.file);
    error = save_close(&save, true);
    return error ? refuse(path, error, EX_CANTCREAT) : EX_OK;
}

/* Of the file that is locked. Without a hash the user is removed. */
static int
change(const char *path, int locked, struct span name, const char *hash)
{
    struct buf text, changed;
    bool had_user = false;
    int error, status = EX_OK;

    buf_init(&text, FILE_MAX);
    buf_init(&changed, FILE_MAX);
    error = load_file(path, &text);
    if (error)
        status = refuse(path, error, EX_NOINPUT);
    else if (!user_lines_change(buf_span(&text), name, hash, &changed, &had_user))
        status = refuse(path, EFBIG, EX_DATAERR);
    else if (!hash && !had_user) {
        output_complain("%s has no user '%.*s'", path, (int)name.len, name.ptr);
        status = EX_NOUSER;
    }
    if (status == EX_OK)
        status = write_file(path, locked, &changed);
    buf_free(&text);
    buf_free(&changed);
    return status;
}

static int
passwd(int argc, char **argv)
{
    struct passwd_options options = {0};
    void *const into[] = {&options};
    char hash[CRYPT_OUTPUT_SIZE];
    int status = command_read(&command_passwd, into, argc, argv), fd;
    const char *path;
    struct span name;
    bool made;

    if (status != COMMAND_GO_ON)
        return status;
    path = argv[optind];
    name = span_str(argv[optind + 1]);
    if (!http_basic_is_name(name) || name.ptr[0] == '#') {
        output_complain("the name of a user has 1 to %d bytes of UTF-8, no colon, no control "
                        "character and no # at its begin",
                        HTTP_BASIC_NAME_MAX);
        return EX_USAGE;
    }
    status = options.removes ? EX_OK : read_password(&options, hash);
    if (status != EX_OK)
        return status;
    fd = open_locked(path, !options.removes, &made);
    if (fd < 0)
        return refuse(path, errno, options.removes ? EX_NOINPUT : EX_CANTCREAT);
    status = change(path, fd, name, options.removes ? NULL : hash);
    if (made && status != EX_OK)
        unlink(path);
    close(fd);
    return status;
}

const struct command command_passwd = {
    .name = "passwd",
    .summary = "add, change or remove a user of the forward proxy",
    .about = "usage: sunproxy passwd [OPTION...] FILE NAME\n\n"
             "Changes a file of users, as sunproxyd --users reads it: asks for a password\n"
             "twice, and writes the line of the user with its hash. A file that is not there\n"
             "is made, for its owner alone. The daemon takes the change at its next reload.\n",
    .options = {&own},
    .after = "Exit status: 0 done; 64 wrong usage; 65 no password that is allowed, or two that\n"
             "differ; 66 the file or a terminal cannot be read; 67 no such user; 73 the file\n"
             "cannot be written; 77 permission denied.\n",
    .argument = "file with a user",
    .least = 2,
    .most = 2,
    .run = passwd,
};
