#include "server/store/untold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/logs/log.h"
#include "server/peers/peer_item.h"
#include "store/disk_file.h"
#include "tier/tier.h"

#define KIND "untold"

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

static void
note(void *context, uint64_t number)
{
    struct untold *untold = context;

    if (untold->count < UNTOLD_FILES)
        untold->files[untold->count++] = number;
}

static int
open_folder(const struct untold *untold)
{
    return open(untold->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void
untold_begin(struct untold *untold, const char *folder, struct tier *tier)
{
    int fd;

    *untold = (struct untold){.folder = folder, .tier = tier};
    fd = folder ? open_folder(untold) : -1;
    if (fd < 0)
        return;
    (void)disk_list(fd, KIND, note, untold);
    for (unsigned i = 0; i < untold->count; i++)
        take_file(untold, fd, untold->files[i]);
    close(fd);
    if (untold->count)
        log_info("what was purged before the last end is told to the servers of the shared tier");
}

static void
remove_files(struct untold *untold, int folder)
{
    for (unsigned i = 0; i < untold->count; i++)
        (void)disk_unlink(folder, KIND, untold->files[i]);
    untold->count = 0;
}

bool
untold_look(struct untold *untold)
{
    int fd;

    if (untold->count && tier_has_told(untold->tier)) {
        fd = open_folder(untold);
        if (fd >= 0)
            remove_files(untold, fd);
        if (fd >= 0)
            close(fd);
        untold->count = 0;
    }
    return untold->count != 0;
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

void
untold_end(struct untold *untold)
{
    struct buf text;
    int error;

    if (!untold->folder)
        return;
    buf_init(&text, UNTOLD_MOST);
    tier_visit_untold(untold->tier, write_item, &text);
    if (!buf_failed(&text))
        buf_append_char(&text, '.');
    if (text.len > 1 || untold->count) {
        error = keep(untold, buf_span(&text));
        if (error)
            log_error("store: %s: what no server of the shared tier knows to be purged cannot be "
                      "kept: %s",
                      untold->folder, disk_strerror(error));
        else if (text.len > 1)
            log_info("what no server of the shared tier knows to be purged is told after the next "
                     "start");
    }
    buf_free(&text);
}
