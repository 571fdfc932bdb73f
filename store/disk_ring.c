#include "store/disk_ring.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct disk_ring {
    int fd;
    unsigned reads;     /* at a time, at most */
    unsigned under_way; /* asked for and not taken */
    unsigned to_begin;  /* of them */

    /* Shared with the kernel. */
    void *memory;
    size_t size;
    struct io_uring_sqe *asked;
    size_t asked_size;
    _Atomic unsigned *ask_tail; /* written here */
    unsigned ask_mask;
    _Atomic unsigned *end_head; /* written here */
    _Atomic unsigned *end_tail; /* written by the kernel */
    unsigned end_mask;
    const struct io_uring_cqe *ended;
};

static int
enter(struct disk_ring *ring, unsigned begin, unsigned wait)
{
    const unsigned flags = wait ? IORING_ENTER_GETEVENTS : 0;

    return (int)syscall(SYS_io_uring_enter, ring->fd, begin, wait, flags, NULL, 0);
}

/* Nothing but reads, without links, buffers or users of their own; and nothing is registered. */
static bool
restrict_and_enable(const struct disk_ring *ring)
{
    const struct io_uring_restriction restrictions[] = {
        {.opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_READ},
        {.opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED, .sqe_flags = 0},
    };

    return syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_RESTRICTIONS, restrictions,
                   sizeof(restrictions) / sizeof(restrictions[0])) == 0 &&
           syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0) == 0;
}

static void *
map(const struct disk_ring *ring, size_t size, uint64_t which)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd,
                        (off_t)which);

    return memory == MAP_FAILED ? NULL : memory;
}

/* The places in the order of their numbers, for good. */
static void
number_places(char *memory, const struct io_uring_params *params)
{
    unsigned *places = (unsigned *)(void *)(memory + params->sq_off.array);

    for (unsigned i = 0; i < params->sq_entries; i++)
        places[i] = i;
}

static bool
map_memory(struct disk_ring *ring, const struct io_uring_params *params)
{
    const size_t asked = params->sq_off.array + params->sq_entries * sizeof(unsigned);
    const size_t ended = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);
    char *memory;

    /* As of Linux 5.4 both queues are in one piece. */
    if (!(params->features & IORING_FEAT_SINGLE_MMAP)) {
        errno = ENOSYS;
        return false;
    }
    ring->size = asked > ended ? asked : ended;
    ring->memory = memory = map(ring, ring->size, IORING_OFF_SQ_RING);
    if (!memory)
        return false;
    ring->asked_size = params->sq_entries * sizeof(*ring->asked);
    ring->asked = map(ring, ring->asked_size, IORING_OFF_SQES);
    if (!ring->asked)
        return false;
    number_places(memory, params);
    ring->ask_tail = (void *)(memory + params->sq_off.tail);
    ring->ask_mask = params->sq_entries - 1;
    ring->end_head = (void *)(memory + params->cq_off.head);
    ring->end_tail = (void *)(memory + params->cq_off.tail);
    ring->end_mask = params->cq_entries - 1;
    ring->ended = (void *)(memory + params->cq_off.cqes);
    return true;
}

struct disk_ring *
disk_ring_make(unsigned reads)
{
    struct io_uring_params params = {.flags = IORING_SETUP_R_DISABLED};
    struct disk_ring *ring = calloc(1, sizeof(*ring));
    int error;

    if (!ring)
        return NULL;
    ring->fd = (int)syscall(SYS_io_uring_setup, reads, &params);
    ring->reads = params.sq_entries;
    if (ring->fd >= 0 && map_memory(ring, &params) && restrict_and_enable(ring))
        return ring;
    error = errno;
    disk_ring_free(ring);
    errno = error;
    return NULL;
}

void
disk_ring_free(struct disk_ring *ring)
{
    if (!ring)
        return;
    if (ring->asked)
        munmap(ring->asked, ring->asked_size);
    if (ring->memory)
        munmap(ring->memory, ring->size);
    if (ring->fd >= 0)
        close(ring->fd);
    free(ring);
}

int
disk_ring_fd(const struct disk_ring *ring)
{
    return ring->fd;
}

/*
 * At most `reads` are under way, so that the place is free: what is in a place has been copied by
 * the kernel when disk_ring_begin() has returned.
 */
bool
disk_ring_read(struct disk_ring *ring, int fd, void *bytes, size_t len, uint64_t offset,
               void *context)
{
    const unsigned tail = atomic_load_explicit(ring->ask_tail, memory_order_relaxed);

    if (ring->under_way >= ring->reads)
        return false;
    ring->asked[tail & ring->ask_mask] = (struct io_uring_sqe){
        .opcode = IORING_OP_READ,
        .fd = fd,
        .addr = (uint64_t)(uintptr_t)bytes,
        .len = (uint32_t)len,
        .off = offset,
        .user_data = (uint64_t)(uintptr_t)context,
    };
    atomic_store_explicit(ring->ask_tail, tail + 1, memory_order_release);
    ring->under_way++;
    ring->to_begin++;
    return true;
}

int
disk_ring_begin(struct disk_ring *ring)
{
    while (ring->to_begin) {
        int n = enter(ring, ring->to_begin, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : EAGAIN;
        ring->to_begin -= (unsigned)n;
    }
    return 0;
}

bool
disk_ring_take_back(struct disk_ring *ring, void **context)
{
    const unsigned tail = atomic_load_explicit(ring->ask_tail, memory_order_relaxed) - 1;

    if (!ring->to_begin)
        return false;
    *context = (void *)(uintptr_t)ring->asked[tail & ring->ask_mask].user_data;
    atomic_store_explicit(ring->ask_tail, tail, memory_order_release);
    ring->under_way--;
    ring->to_begin--;
    return true;
}

int
disk_ring_wait(struct disk_ring *ring)
{
    while (enter(ring, 0, 1) < 0) {
        if (errno != EINTR)
            return errno;
    }
    return 0;
}

bool
disk_ring_take(struct disk_ring *ring, void **context, ssize_t *result)
{
    const unsigned head = atomic_load_explicit(ring->end_head, memory_order_relaxed);
    const struct io_uring_cqe *ended = &ring->ended[head & ring->end_mask];

    if (head == atomic_load_explicit(ring->end_tail, memory_order_acquire))
        return false;
    *context = (void *)(uintptr_t)ended->user_data;
    *result = ended->res;
    atomic_store_explicit(ring->end_head, head + 1, memory_order_release);
    ring->under_way--;
    return true;
}

unsigned
disk_ring_under_way(const struct disk_ring *ring)
{
    return ring->under_way;
}
