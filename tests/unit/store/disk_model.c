#include "tests/unit/store/disk_model.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/hash.h"
#include "store/disk_fill.h"
#include "store/disk_ring.h"
#include "tests/unit/faults.h"
#include "tests/unit/store/lost_writes.h"

/* What becomes of a call. */
enum outcome { AS_IT_IS, FAILS, SHORT, DAMAGED };

static _Atomic unsigned countdown, spoiled;
static _Atomic int error_wanted;
static _Atomic enum outcome wanted;
static _Atomic bool fails_all, read_only;
static const char *_Atomic failed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static bool hanging;
static unsigned hung;
static char full_folder[256];
static unsigned most_segments;
static char hangs_from[64];

void
disk_model_fail(unsigned n, int error, bool all)
{
    atomic_store(&failed, NULL);
    atomic_store(&error_wanted, error);
    atomic_store(&wanted, FAILS);
    atomic_store(&fails_all, all);
    atomic_store(&countdown, n);
}

void
disk_model_spoil(unsigned n, enum disk_model_fault fault)
{
    atomic_store(&failed, NULL);
    atomic_store(&wanted, fault == DISK_MODEL_SHORT ? SHORT : DAMAGED);
    atomic_store(&fails_all, false);
    atomic_store(&spoiled, n);
    atomic_store(&countdown, n);
}

const char *
disk_model_failed(void)
{
    return atomic_load(&failed);
}

void
disk_model_hang(bool hangs)
{
    pthread_mutex_lock(&lock);
    hanging = hangs;
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&lock);
}

void
disk_model_read_only(bool now)
{
    atomic_store(&read_only, now);
}

/* Sets errno then. */
static bool
is_read_only(void)
{
    errno = EROFS;
    return atomic_load(&read_only);
}

void
disk_model_full(const char *folder, unsigned segments)
{
    pthread_mutex_lock(&lock);
    snprintf(full_folder, sizeof(full_folder), "%s", folder ? folder : "");
    most_segments = segments;
    pthread_mutex_unlock(&lock);
}

/* Is the disk full? Sets errno then. */
static bool
is_full(void)
{
    unsigned count = 0;
    struct dirent *entry;
    DIR *dir;

    pthread_mutex_lock(&lock);
    dir = full_folder[0] ? opendir(full_folder) : NULL;
    while (dir && (entry = readdir(dir)))
        count += strncmp(entry->d_name, "segment-", 8) == 0;
    if (dir)
        closedir(dir);
    pthread_mutex_unlock(&lock);
    errno = ENOSPC;
    return count > most_segments;
}

void
disk_model_hang_from(const char *name)
{
    pthread_mutex_lock(&lock);
    snprintf(hangs_from, sizeof(hangs_from), "%s", name);
    pthread_mutex_unlock(&lock);
}

bool
disk_model_hangs(void)
{
    bool hangs;

    pthread_mutex_lock(&lock);
    hangs = hanging;
    pthread_mutex_unlock(&lock);
    return hangs;
}

unsigned
disk_model_hung(void)
{
    unsigned count;

    pthread_mutex_lock(&lock);
    count = hung;
    pthread_mutex_unlock(&lock);
    return count;
}

/* Of a file that was opened, or of a call. */
static void
note_name(const char *name)
{
    pthread_mutex_lock(&lock);
    if (hangs_from[0] && strncmp(name, hangs_from, strlen(hangs_from)) == 0) {
        hanging = true;
        hangs_from[0] = '\0';
    }
    pthread_mutex_unlock(&lock);
}

static void
wait_while_it_hangs(void)
{
    pthread_mutex_lock(&lock);
    hung++;
    while (hanging)
        pthread_cond_wait(&released, &lock);
    hung--;
    pthread_mutex_unlock(&lock);
}

/* Counts a call. Sets errno. */
static enum outcome
count_call(const char *name)
{
    unsigned n = atomic_load(&countdown);

    while (n && !atomic_compare_exchange_weak(&countdown, &n, n == 1 && fails_all ? 1 : n - 1))
        ;
    if (n != 1)
        return AS_IT_IS;
    atomic_store(&failed, name);
    errno = atomic_load(&error_wanted);
    return atomic_load(&wanted);
}

/* Waits while the disk hangs. */
static enum outcome
begin_call(const char *name)
{
    note_name(name);
    wait_while_it_hangs();
    return count_call(name);
}

static bool
fails(const char *name)
{
    return begin_call(name) == FAILS;
}

/* What a call moves that is to move n bytes. */
static size_t
moved(enum outcome outcome, size_t n)
{
    return outcome == SHORT ? (n + 1) / 2 : n;
}

/* Another bit with each call that is spoiled. */
static void
damage(enum outcome outcome, char *bytes, ssize_t n)
{
    const uint64_t drawn = hash64_uint(atomic_load(&spoiled));

    if (outcome == DAMAGED && n > 0)
        bytes[drawn % (uint64_t)n] = (char)(bytes[drawn % (uint64_t)n] ^ 1 << drawn / 7919 % 8);
}

ssize_t __real_pread(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at);
ssize_t
__wrap_pread(int fd, void *to, size_t n, off_t at)
{
    const enum outcome outcome = begin_call("pread");
    ssize_t result = outcome == FAILS ? -1 : __real_pread(fd, to, moved(outcome, n), at);

    damage(outcome, to, result);
    return result;
}

/* What is read around the record is not damaged. */
bool __real_disk_ring_take(struct disk_ring *ring, void **context, ssize_t *result);
bool __wrap_disk_ring_take(struct disk_ring *ring, void **context, ssize_t *result);
bool
__wrap_disk_ring_take(struct disk_ring *ring, void **context, ssize_t *result)
{
    enum outcome outcome;

    if (disk_model_hangs() || !__real_disk_ring_take(ring, context, result))
        return false;
    outcome = count_call("disk_ring_take");
    if (outcome == FAILS) {
        *result = -errno;
    } else if (outcome != AS_IT_IS && *result > 0) {
        const struct store_fill *fill = *context;
        const ssize_t before =
            fill->direct ? (ssize_t)((uint64_t)fill->place.offset * DISK_UNIT % 4096) : 0;

        *result = (ssize_t)moved(outcome, (size_t)*result);
        damage(outcome, fill->bytes + before, *result - before);
    }
    return true;
}

int __real_unlinkat(int fd, const char *path, int flags);
int __wrap_unlinkat(int fd, const char *path, int flags);
int
__wrap_unlinkat(int fd, const char *path, int flags)
{
    int result = is_read_only() || fails("unlinkat") ? -1 : __real_unlinkat(fd, path, flags);

    if (result == 0)
        lost_writes_note_unlink(fd, path);
    return result;
}

/* Other programs count its calls one by one. */
ssize_t __real_pwrite(int fd, const void *from, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, const void *from, size_t n, off_t at);
ssize_t
__wrap_pwrite(int fd, const void *from, size_t n, off_t at)
{
    enum outcome outcome;
    ssize_t result;
    char *bytes;

    if (faults_now("pwrite") || is_read_only() || (outcome = begin_call("pwrite")) == FAILS ||
        is_full())
        return -1;
    n = moved(outcome, n);
    bytes = malloc(n + 1);
    if (!bytes)
        abort();
    memcpy(bytes, from, n);
    damage(outcome, bytes, (ssize_t)n);
    result = __real_pwrite(fd, bytes, n, at);
    if (result > 0)
        lost_writes_note_write(fd, bytes, (size_t)result, (uint64_t)at);
    free(bytes);
    return result;
}

/* A disk that hangs has nothing at once. */
ssize_t __real_preadv2(int fd, const struct iovec *v, int n, off_t at, int flags);
ssize_t __wrap_preadv2(int fd, const struct iovec *v, int n, off_t at, int flags);
ssize_t
__wrap_preadv2(int fd, const struct iovec *v, int n, off_t at, int flags)
{
    const bool hangs = disk_model_hangs();
    const enum outcome outcome = hangs ? AS_IT_IS : count_call("preadv2");
    const struct iovec piece = {v->iov_base, moved(outcome, v->iov_len)};
    ssize_t result;

    if (hangs)
        errno = EAGAIN;
    result = hangs || outcome == FAILS ? -1 : __real_preadv2(fd, &piece, n, at, flags);
    damage(outcome, piece.iov_base, result);
    return result;
}

int __real_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...);
int
__wrap_openat(int fd, const char *path, int flags, ...)
{
    mode_t mode = 0;
    int result;

    if (flags & O_CREAT) {
        va_list args;

        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    result = (flags & (O_WRONLY | O_RDWR | O_CREAT) && is_read_only()) || fails("openat") ? -1 : __real_openat(fd, path, flags, mode);
    if (result >= 0 && flags & O_CREAT)
        lost_writes_note_create(fd, path);
    if (result >= 0)
        note_name(path);
    return result;
}

/* The real disk is not waited for: its loss of power is none that a test finds. */
static int
sync_file(const char *name, int fd)
{
    if (fails(name))
        return -1;
    lost_writes_note_sync(fd);
    return 0;
}

int __wrap_fdatasync(int fd);
int
__wrap_fdatasync(int fd)
{
    return sync_file("fdatasync", fd);
}

int __wrap_fsync(int fd);
int
__wrap_fsync(int fd)
{
    return sync_file("fsync", fd);
}
