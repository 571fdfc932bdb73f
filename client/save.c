#include "client/save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void
forget(struct save *save)
{
    free(save->path);
    free(save->temporary);
    sigprocmask(SIG_SETMASK, &save->before, NULL);
    *save = (struct save){.file = NULL};
}

/* The mode that open() would give a new file, or that the one there has. */
static mode_t
mode_for(const struct stat *old)
{
    mode_t mask = umask(0);

    umask(mask);
    return old ? old->st_mode & 0777 : 0666 & ~mask;
}

/* Makes and opens the temporary file beside save->path. */
static int
open_temporary(struct save *save, const struct stat *old)
{
    static const char suffix[] = ".part-XXXXXX";
    size_t size = strlen(save->path) + sizeof(suffix);
    int fd, error;

    if (!(save->temporary = malloc(size)))
        return ENOMEM;
    snprintf(save->temporary, size, "%s%s", save->path, suffix);
    fd = mkostemp(save->temporary, O_CLOEXEC);
    if (fd < 0)
        return errno;
    if (fchmod(fd, mode_for(old)) == 0 && (save->file = fdopen(fd, "w")))
        return 0;
    error = errno;
    close(fd);
    unlink(save->temporary);
    return error;
}

int
save_open(struct save *save, const char *path)
{
    struct stat old;
    sigset_t ending;
    bool exists = stat(path, &old) == 0;
    int error;

    *save = (struct save){.file = NULL};
    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGHUP);
    sigprocmask(SIG_BLOCK, &ending, &save->before);
    save->path = exists ? realpath(path, NULL) : strdup(path);
    if (!save->path) {
        error = errno;
    } else if (exists && !S_ISREG(old.st_mode)) {
        /* A pipe may wait for its reader as long as it likes: signals must get through. */
        sigprocmask(SIG_SETMASK, &save->before, NULL);
        save->file = fopen(save->path, "we");
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
