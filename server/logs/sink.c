#include "server/logs/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t one_writer = PTHREAD_MUTEX_INITIALIZER;

/*
 * Only a FIFO that has a reader can be opened for writing without waiting. The descriptor that
 * reads and writes is that reader for as long as it takes to open the other one.
 */
static int
open_without_reader(const char *path)
{
    int both = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC), fd, error;

    if (both < 0)
        return -1;
    fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    error = errno;
    close(both);
    errno = error;
    return fd;
}

/* Has the file, which is open for writing, something at its end that is no whole line? */
static bool
ends_within_line(const char *path, int fd)
{
    struct stat st;
    char last = '\n';
    int reading;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return false;
    reading = open(path, O_RDONLY | O_CLOEXEC);
    if (reading < 0)
        return false;
    if (pread(reading, &last, 1, st.st_size - 1) != 1)
        last = '\n';
    close(reading);
    return last != '\n';
}

int
sink_open(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0640);

    if (fd < 0)
        return errno == ENXIO ? open_without_reader(path) : fd;
    /* On a disk that is full it is not ended. */
    if (ends_within_line(path, fd))
        (void)!write(fd, "\n", 1);
    return fd;
}

/*
 * A pipe that is ready for writing has a free page, so PIPE_BUF bytes do not block. Of several
 * lines only whole ones are written, so that a pipe that is empty has whole lines taken out.
 */
static ssize_t
write_piece(int fd, const char *bytes, size_t len)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    const char *end;

    if (poll(&ready, 1, 0) < 1) {
        errno = EAGAIN;
        return -1;
    }
    if (len > PIPE_BUF) {
        end = memrchr(bytes, '\n', PIPE_BUF);
        len = end ? (size_t)(end - bytes) + 1 : PIPE_BUF;
    }
    return write(fd, bytes, len);
}

ssize_t
sink_write(int fd, const char *bytes, size_t len)
{
    struct stat st;
    ssize_t n;

    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return write(fd, bytes, len);
    pthread_mutex_lock(&one_writer);
    n = write_piece(fd, bytes, len);
    pthread_mutex_unlock(&one_writer);
    return n;
}

bool
sink_cut(int fd, size_t len)
{
    const off_t end = lseek(fd, 0, SEEK_CUR);
    struct stat st;

    return end >= (off_t)len && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == end &&
           ftruncate(fd, end - (off_t)len) == 0 && lseek(fd, end - (off_t)len, SEEK_SET) >= 0;
}
