/*
 * A ring of reads (io_uring_setup(2)): they are begun together in one system call, and take no
 * thread.
 *
 * A ring is restricted before it is used: it takes the operation READ without any flag, and nothing
 * can be registered with it. So it reads what pread() could read, and does nothing else, though no
 * filter of system calls looks at what is in it. It is made before such a filter, which then needs
 * to allow io_uring_enter() alone.
 *
 * Every function is for one thread at a time.
 */
#ifndef SUNPROXY_STORE_DISK_RING_H
#define SUNPROXY_STORE_DISK_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct disk_ring;

/* For this many reads at a time, a power of two. NULL with errno: the kernel has none, or
 * refuses. */
struct disk_ring *disk_ring_make(unsigned reads);

/* No read is under way. NULL is harmless. */
void disk_ring_free(struct disk_ring *ring);

/* A descriptor that can be read, as poll() sees it, while a read has ended that was not taken. */
int disk_ring_fd(const struct disk_ring *ring);

/*
 * Reads into these bytes, which must stay until the read is taken, as the file must stay open until
 * it is begun. False: as many as the ring is for are under way. The next disk_ring_begin() begins
 * it.
 */
bool disk_ring_read(struct disk_ring *ring, int fd, void *bytes, size_t len, uint64_t offset,
                    void *context);

/* Begins the reads that were asked for. An error is that of the ring: 0 or an errno. */
int disk_ring_begin(struct disk_ring *ring);

/* Takes back the last read that was asked for, if it was not begun. False: all were. */
bool disk_ring_take_back(struct disk_ring *ring, void **context);

/* Waits until one has ended. 0 or an errno. */
int disk_ring_wait(struct disk_ring *ring);

/* Takes a read that has ended: its bytes, which may be fewer, or minus an errno. False: none
 * has. */
bool disk_ring_take(struct disk_ring *ring, void **context, ssize_t *result);

/* Reads that were asked for and not taken. */
unsigned disk_ring_under_way(const struct disk_ring *ring);

#endif
