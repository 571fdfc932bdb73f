#include "base/save.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_LINKS 40 /* as many as Linux follows */

static const int ending[SAVE_SIGNALS] = {SIGHUP, SIGINT, SIGTERM};

/* What a signal that ends the program removes first. */
static const char *volatile half_written;

/* ---- signals ------------------------------------------------------------------------------- */

/* Installed with SA_RESETHAND: the second time the signal does what it did before. */
static void
remove_and_end(int number)
{
    if (half_written)
        unlink(half_written);
    raise(number);
}

static void
guard(struct save *save)
{
    struct sigaction action = {.sa_handler = remove_and_end, .sa_flags = (int)SA_RESETHAND};

    half_written = save->temporary;
    for (size_t i = 0; i < SAVE_SIGNALS; i++) {
        sigaction(ending[i], NULL, &save->before[i]);
        if (save->before[i].sa_handler == SIG_DFL)
            sigaction(ending[i], &action, NULL);
    }
}

static void
unguard(struct save *save)
{
    for (size_t i = 0; i < SAVE_SIGNALS; i++)
        if (save->before[i].sa_handler == SIG_DFL)
            sigaction(ending[i], &save->before[i], NULL);
    half_written = NULL;
}

/* Signals wait while there is a file that nothing knows of. Returns what waited before. */
static sigset_t
hold_signals(void)
{
    sigset_t set, before;

    sigemptyset(&set);
    for (size_t i = 0; i < SAVE_SIGNALS; i++)
        sigaddset(&set, ending[i]);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    return before;
}

/* ---- where ---------------------------------------------------------------------------------- */

/* Where the link leads, or NULL with errno; EINVAL and ENOENT: it is none. */
static char *
read_link(const char *link)
{
    const char *slash = strrchr(link, '/');
    size_t folder = slash ? (size_t)(slash - link) + 1 : 0;
    char to[PATH_MAX];
    ssize_t len = readlink(link, to, sizeof(to));
    char *path;

    if (len < 0)
        return NULL;
    if (len == 0 || len == sizeof(to)) {
        errno = len ? ENAMETOOLONG : EIO;
        return NULL;
    }
    if (to[0] == '/')
        folder = 0;
    path = malloc(folder + (size_t)len + 1);
    if (!path)
        return NULL;
    memcpy(path, link, folder);
    memcpy(path + folder, to, (size_t)len);
    path[folder + (size_t)len] = '\0';
    return path;
}

/* The name that is no link. NULL with errno. */
static char *
follow(const char *name)
{
    char *path = strdup(name);

    for (int links = 0; path && links <= MOST_LINKS; links++) {
        char *next = read_link(path);
        int error = errno;

        if (!next && (error == EINVAL || error == ENOENT))
            return path;
        free(path);
        path = next;
        errno = error;
    }
    if (path) {
        free(path);
        errno = ELOOP;
    }
    return NULL;
}

/* The mode that open() would give a new file, or that the one there has. */
static mode_t
mode_for(const struct stat *old)
{
    mode_t mask;

    if (old)
        return old->st_mode & 0777;
    mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* ---- opening and closing -------------------------------------------------------------------- */

static void
forget(struct save *save)
{
    if (save->temporary)
        unguard(save);
    free(save->path);
    free(save->temporary);
    *save = (struct save){.file = NULL};
}

/* Makes and opens the temporary file beside save->path. */
static int
open_temporary(struct save *save, const struct stat *old)
{
    static const char suffix[] = ".part-XXXXXX";
    size_t size = strlen(save->path) + sizeof(suffix);
    char *temporary = malloc(size);
    sigset_t before;
    int fd, error;

    if (!temporary)
        return ENOMEM;
    snprintf(temporary, size, "%s%s", save->path, suffix);
    before = hold_signals();
    fd = mkostemp(temporary, O_CLOEXEC);
    error = fd < 0 ? errno : 0;
    if (fd < 0) {
        free(temporary);
    } else {
        save->temporary = temporary;
        guard(save);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return error;
    if (fchmod(fd, mode_for(old)) == 0 && (save->file = fdopen(fd, "w")))
        return 0;
    error = errno;
    close(fd);
    unlink(save->temporary);
    return error;
}

int
save_check(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return 0;
    /* The kernel refuses root nothing; the file's owner meant it to stay all the same. */
    if ((st.st_mode & 0222) == 0)
        return EACCES;
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 ? 0 : errno;
}

int
save_open(struct save *save, const char *path, bool files_only)
{
    struct stat old, named;
    bool exists = stat(path, &old) == 0;
    bool in_place = exists && !S_ISREG(old.st_mode);
    int error = save_check(path);

    *save = (struct save){.file = NULL};
    if (error)
        return error;
    save->path = follow(path);
    if (!save->path)
        return errno;
    /* Some links have no name behind them: /dev/stdout leads to what was opened, gone or not. */
    if (exists &&
        (stat(save->path, &named) != 0 || named.st_dev != old.st_dev || named.st_ino != old.st_ino))
        in_place = true;
    if (in_place && files_only) {
        error = SAVE_NO_FILE;
    } else if (in_place) {
        save->file = fopen(path, "we");
        error = save->file ? 0 : errno;
    } else {
        error = open_temporary(save, exists ? &old : NULL);
    }
    if (error)
        forget(save);
    return error;
}

int
save_close(struct save *save, bool keep)
{
    int error = 0;

    if (ferror(save->file))
        error = EIO;
    if (fflush(save->file) != 0)
        error = errno;
    if (fclose(save->file) != 0 && !error)
        error = errno;
    if (save->temporary && (!keep || error || rename(save->temporary, save->path) != 0)) {
        if (keep && !error)
            error = errno;
        unlink(save->temporary);
    }
    forget(save);
    return error;
}
