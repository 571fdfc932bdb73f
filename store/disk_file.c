#include "store/disk_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"

int
disk_open(int folder, const char *name, int flags)
{
    const int fd = openat(folder, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    struct stat st;
    int error;

    if (fd < 0) {
        if (errno == ELOOP || errno == EISDIR || errno == ENXIO)
            errno = DISK_NO_FILE;
        return -1;
    }
    if (fstat(fd, &st) != 0)
        error = errno;
    else if (!S_ISREG(st.st_mode))
        error = DISK_NO_FILE;
    /* A ring would not wait for a file of O_NONBLOCK. */
    else if (fcntl(fd, F_SETFL, flags & (O_DIRECT | O_NOATIME)) != 0)
        error = errno;
    else
        return fd;
    close(fd);
    errno = error;
    return -1;
}

const char *
disk_strerror(int error)
{
    return error == DISK_NO_FILE ? "it is no regular file" : strerror(error);
}

void
disk_tell(struct buf *why, int folder, const char *name, int error)
{
    struct stat st;

    buf_printf(why, "%s%s%s", name, name[0] ? ": " : "", disk_strerror(error));
    if ((error == EACCES || error == EPERM) && name[0] &&
        fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        buf_printf(why, ", it belongs to user %ju, and this is user %ju", (uintmax_t)st.st_uid,
                   (uintmax_t)geteuid());
}

void
disk_name_write(char name[DISK_NAME], const char *kind, uint64_t number)
{
    snprintf(name, DISK_NAME, "%s-%016" PRIx64, kind, number);
}

bool
disk_name_read(const char *name, const char *kind, uint64_t *number)
{
    const size_t len = strlen(kind);
    char again[DISK_NAME];

    if (strncmp(name, kind, len) != 0 || sscanf(name + len, "-%" SCNx64, number) != 1)
        return false;
    disk_name_write(again, kind, *number);
    return strcmp(again, name) == 0;
}

int
disk_write(int fd, const void *bytes, size_t len, uint64_t offset)
{
    const char *at = bytes;

    while (len) {
        ssize_t n = pwrite(fd, at, len, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : EIO;
        at += n;
        offset += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}

ssize_t
disk_read(int fd, void *bytes, size_t len, uint64_t offset)
{
    char *at = bytes;
    size_t got = 0;

    while (got < len) {
        ssize_t n = pread(fd, at + got, len - got, (off_t)(offset + got));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

int
disk_list(int folder, const char *kind, void (*visit)(void *context, uint64_t number),
          void *context)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), error;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    uint64_t number;

    if (!dir) {
        error = errno;
        if (fd >= 0)
            close(fd);
        return error;
    }
    while (errno = 0, entry = readdir(dir))
        if (disk_name_read(entry->d_name, kind, &number))
            visit(context, number);
    error = errno;
    closedir(dir);
    return error;
}

uint64_t
disk_size(int folder, const char *kind, uint64_t number)
{
    char name[DISK_NAME];
    struct stat st;

    disk_name_write(name, kind, number);
    return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)st.st_size : 0;
}

bool
disk_unlink(int folder, const char *kind, uint64_t number)
{
    char name[DISK_NAME];

    disk_name_write(name, kind, number);
    return unlinkat(folder, name, 0) == 0;
}

uint64_t
disk_boot(void)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    char text[64];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

    if (fd >= 0)
        close(fd);
    if (n > 0)
        return hash64_bytes(span_of(text, (size_t)n));
    return hash64_uint((uint64_t)clock_wall_us());
}
