#include "server/store/untold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "server/logs/log.h"
#include "server/peers/peer_item.h"
#include "store/disk_file.h"
#include "tier/tier.h"

#define KIND "untold"
#define JOIN_US ((int64_t)2000) /* between two looks at the thread */

/* ---- the thread ------------------------------------------------------------------------------ */

/* Runs that on a thread, or at once if there can be none. */
static void
start(struct untold *untold, void *(*run)(void *untold))
{
    untold->runs = thread_start(&untold->thread, run, untold) == 0;
    if (!untold->runs)
        (void)run(untold);
}

/* False: it runs still after this time. */
static bool
await(struct untold *untold, int64_t us)
{
    const struct timespec pause = clock_timespec(JOIN_US);
    const int64_t until_us = clock_monotonic_us() + us;

    while (untold->runs && pthread_tryjoin_np(untold->thread, NULL) != 0) {
        if (clock_monotonic_us() >= until_us)
            return false;
        nanosleep(&pause, NULL);
    }
    untold->runs = false;
    return true;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void
purge(struct tier *tier, const struct source_purge *purge)
{
    struct source *source = tier_source(tier);
    const struct source_marked marked = source->ops->mark(source, purge, NULL);

    (void)source->ops->mark(source, purge, &marked);
}

/* False: it is not known what the text had. */
static bool
purge_items(struct tier *tier, struct span text)
{
    static const enum cache_by kinds[] = {
        [CONTROL_PURGE_URL] = CACHE_BY_URL,
        [CONTROL_PURGE_PREFIX] = CACHE_BY_PREFIX,
        [CONTROL_PURGE_ALL] = CACHE_BY_PREFIX,
        [CONTROL_PURGE_TAG] = CACHE_BY_TAG,
    };
    bool whole = text.len && text.ptr[text.len - 1] == '.';
    struct peer_item item;
    struct buf bytes;

    text.len -= whole;
    buf_init(&bytes, UNTOLD_MOST);
    while (whole && text.len) {
        whole = peer_item_read(&text, &item, &bytes);
        if (whole)
            purge(tier, &(struct source_purge){kinds[item.kind], item.soft, item.name, item.scope});
    }
    buf_free(&bytes);
    return whole;
}

/* False with an errno. */
static bool
read_file(int folder, uint64_t number, struct buf *text)
{
    const uint64_t size = disk_size(folder, KIND, number);
    char name[DISK_NAME];
    ssize_t n = -1;
    int fd;

    disk_name_write(name, KIND, number);
    fd = disk_open(folder, name, O_RDONLY);
    if (fd < 0)
        return false;
    if (buf_reserve(text, (size_t)size))
        n = disk_read(fd, text->data, (size_t)size, 0);
    text->len = n > 0 ? (size_t)n : 0;
    close(fd);
    return n >= 0;
}

static void
take_file(struct untold *untold, int folder, uint64_t number)
{
    const struct source_purge all = {.by = CACHE_BY_PREFIX};
    struct buf text;

    buf_init(&text, UNTOLD_MOST);
    if (!read_file(folder, number, &text) || !purge_items(untold->tier, buf_span(&text)))
        purge(untold->tier, &all);
    buf_free(&text);
}

/* A number that is not known. */
static void
note(void *context, uint64_t number)
{
    struct untold *untold = context;

    for (unsigned i = 0; i < untold->count; i++)
        if (untold->files[i] == number)
            return;
    if (untold->count < UNTOLD_FILES)
        untold->files[untold->count++] = number;
}

static int
open_folder(const struct untold *untold)
{
    return open(untold->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void *
read_files(void *context)
{
    struct untold *untold = context;
    const unsigned known = untold->count;
    const int fd = open_folder(untold);

    if (fd < 0)
        return NULL;
    (void)disk_list(fd, KIND, note, untold);
    for (unsigned i = known; i < untold->count; i++)
        take_file(untold, fd, untold->files[i]);
    close(fd);
    if (untold->count != known)
        log_info("what was purged before the last end is told to the servers of the shared tier");
    return NULL;
}

void
untold_begin(struct untold *untold, const char *folder, struct tier *tier)
{
    *untold = (struct untold){.folder = folder, .tier = tier};
    if (!folder)
        return;
    start(untold, read_files);
    if (!await(untold, UNTOLD_BEGIN_US))
        log_warning("store: %s: the disk does not answer: what was purged before the last end is "
                    "told to the servers of the shared tier later",
                    folder);
}

static void
remove_files(struct untold *untold, int folder)
{
    for (unsigned i = 0; i < untold->count; i++)
        (void)disk_unlink(folder, KIND, untold->files[i]);
    untold->count = 0;
}

/* There may be more than could be read. */
static void *
remove_told(void *context)
{
    struct untold *untold = context;
    const bool all = untold->count < UNTOLD_FILES;
    const int fd = open_folder(untold);

    if (fd >= 0) {
        remove_files(untold, fd);
        close(fd);
    }
    untold->count = 0;
    return all || fd < 0 ? NULL : read_files(untold);
}

bool
untold_look(struct untold *untold, bool taken)
{
    if (!untold->folder)
        return false;
    untold->again = untold->again || (untold->taken && !taken);
    untold->taken = taken;
    if (!await(untold, 0))
        return true;
    if (untold->again) {
        untold->again = false;
        start(untold, read_files);
    } else if (untold->count && tier_has_told(untold->tier)) {
        start(untold, remove_told);
    }
    return untold->taken || untold->runs || untold->count;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void
write_item(void *context, const struct source_purge *purge)
{
    static const enum control_purge kinds[] = {
        [CACHE_BY_URL] = CONTROL_PURGE_URL,
        [CACHE_BY_PREFIX] = CONTROL_PURGE_PREFIX,
        [CACHE_BY_TAG] = CONTROL_PURGE_TAG,
    };

    peer_item_write(&(struct peer_item){.kind = kinds[purge->by],
                                        .soft = purge->soft,
                                        .name = purge->name,
                                        .scope = purge->scope},
                    context);
}

/* 0 or an errno. A text that does not fit lacks the full stop. */
static int
write_file(int folder, struct span text)
{
    char name[DISK_NAME];
    int fd, error;

    disk_name_write(name, KIND, (uint64_t)clock_wall_us());
    fd = disk_open(folder, name, O_WRONLY | O_CREAT | O_EXCL);
    if (fd < 0)
        return errno;
    error = disk_write(fd, text.ptr, text.len, 0);
    if (!error && (fsync(fd) != 0 || fsync(folder) != 0))
        error = errno;
    close(fd);
    return error;
}

static int
keep(struct untold *untold, struct span text)
{
    const int fd = open_folder(untold);
    int error;

    if (fd < 0)
        return errno;
    error = text.len > 1 ? write_file(fd, text) : 0;
    /* What was read is among it, or was told. */
    if (!error)
        remove_files(untold, fd);
    close(fd);
    return error;
}

static void *
keep_untold(void *context)
{
    struct untold *untold = context;
    struct buf text;
    int error;

    buf_init(&text, UNTOLD_MOST);
    tier_visit_untold(untold->tier, write_item, &text);
    if (!buf_failed(&text))
        buf_append_char(&text, '.');
    error = text.len ? keep(untold, buf_span(&text)) : ENOMEM;
    if (error)
        log_error("store: %s: what no server of the shared tier knows to be purged cannot be "
                  "kept: %s",
                  untold->folder, disk_strerror(error));
    else if (text.len > 1)
        log_info("what no server of the shared tier knows to be purged is told by the next daemon "
                 "that has the store");
    buf_free(&text);
    return NULL;
}

bool
untold_end(struct untold *untold)
{
    if (!untold->folder)
        return true;
    if (!await(untold, UNTOLD_END_US))
        return false;
    if (untold->count || !tier_has_told(untold->tier))
        start(untold, keep_untold);
    return await(untold, UNTOLD_END_US);
}
