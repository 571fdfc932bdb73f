#include "tests/unit/store/lost_writes.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define SECTOR 512u
#define MOST_FILES 1000u
#define MOST_BYTES ((size_t)2 << 20) /* of one file */

enum act { ACT_WRITE, ACT_SYNC, ACT_SYNC_FOLDER, ACT_CREATE, ACT_UNLINK };

struct deed {
    enum act act;
    unsigned file; /* a number in `names` */
    uint64_t offset;
    size_t len;
    char *bytes; /* owned */
};

/* A file as it is made again. */
struct image {
    char *bytes; /* MOST_BYTES; NULL: it was never there, or is gone for good */
    size_t size; /* of what is on disk */
    bool named;  /* its name is on disk */
    bool unlinked;
    size_t first; /* of the deeds that may concern it and are not synced */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char recorded[256];
static char names[MOST_FILES][64];
static struct image base[MOST_FILES];
static unsigned file_count;
static struct deed *deeds;
static size_t deed_count, deed_size;

/* ---- recording: under the lock --------------------------------------------------------------- */

static unsigned
file_of(const char *name)
{
    for (unsigned i = 0; i < file_count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    ck_assert_uint_lt(file_count, MOST_FILES);
    snprintf(names[file_count], sizeof(names[0]), "%s", name);
    return file_count++;
}

static void
add(struct deed deed)
{
    if (deed_count == deed_size) {
        deed_size = deed_size ? 2 * deed_size : 1024;
        deeds = realloc(deeds, deed_size * sizeof(*deeds));
        ck_assert_ptr_nonnull(deeds);
    }
    deeds[deed_count++] = deed;
}

static void
read_base(void)
{
    DIR *dir = opendir(recorded);
    struct dirent *entry;

    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir))) {
        char path[600];
        struct image *image;
        ssize_t n;
        int fd;

        snprintf(path, sizeof(path), "%s/%s", recorded, entry->d_name);
        if (entry->d_name[0] == '.')
            continue;
        fd = open(path, O_RDONLY | O_CLOEXEC);
        image = &base[file_of(entry->d_name)];
        image->bytes = malloc(MOST_BYTES);
        n = image->bytes && fd >= 0 ? read(fd, image->bytes, MOST_BYTES) : -1;
        ck_assert_int_ge(n, 0);
        image->size = (size_t)n;
        image->named = true;
        close(fd);
    }
    closedir(dir);
}

void
lost_writes_record(const char *folder)
{
    pthread_mutex_lock(&lock);
    while (deed_count)
        free(deeds[--deed_count].bytes);
    while (file_count)
        free(base[--file_count].bytes);
    memset(base, 0, sizeof(base));
    free(deeds);
    deeds = NULL;
    deed_size = 0;
    snprintf(recorded, sizeof(recorded), "%s", folder ? folder : "");
    if (folder)
        read_base();
    pthread_mutex_unlock(&lock);
}

/* The name of an open file in the folder; "" for the folder itself; NULL for another one. */
static const char *
name_of(int fd, char path[600])
{
    const size_t len = strlen(recorded);
    char link[64];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = len ? readlink(link, path, 599) : -1;
    if (n < (ssize_t)len || strncmp(path, recorded, len) != 0)
        return NULL;
    path[n] = '\0';
    return path[len] == '/' ? path + len + 1 : path + len;
}

void
lost_writes_note_write(int fd, const void *bytes, size_t len, uint64_t offset)
{
    char path[600];
    const char *name;

    pthread_mutex_lock(&lock);
    name = name_of(fd, path);
    if (name && *name) {
        struct deed deed = {ACT_WRITE, file_of(name), offset, len, malloc(len)};

        ck_assert_ptr_nonnull(deed.bytes);
        memcpy(deed.bytes, bytes, len);
        add(deed);
    }
    pthread_mutex_unlock(&lock);
}

void
lost_writes_note_sync(int fd)
{
    char path[600];
    const char *name;

    pthread_mutex_lock(&lock);
    name = name_of(fd, path);
    if (name && *name)
        add((struct deed){.act = ACT_SYNC, .file = file_of(name)});
    else if (name)
        add((struct deed){.act = ACT_SYNC_FOLDER});
    pthread_mutex_unlock(&lock);
}

static void
note_name(int folder, const char *name, enum act act)
{
    char path[600];
    const char *in;

    pthread_mutex_lock(&lock);
    in = name_of(folder, path);
    if (in && !*in)
        add((struct deed){.act = act, .file = file_of(name)});
    pthread_mutex_unlock(&lock);
}

void
lost_writes_note_create(int folder, const char *name)
{
    note_name(folder, name, ACT_CREATE);
}

void
lost_writes_note_unlink(int folder, const char *name)
{
    note_name(folder, name, ACT_UNLINK);
}

size_t
lost_writes_count(void)
{
    size_t count;

    pthread_mutex_lock(&lock);
    count = deed_count;
    pthread_mutex_unlock(&lock);
    return count;
}

size_t
lost_writes_synced(const char *kind)
{
    size_t i;

    pthread_mutex_lock(&lock);
    for (i = deed_count; i > 0; i--)
        if (deeds[i - 1].act == ACT_SYNC &&
            strncmp(names[deeds[i - 1].file], kind, strlen(kind)) == 0)
            break;
    pthread_mutex_unlock(&lock);
    return i;
}

/* ---- making again ---------------------------------------------------------------------------- */

static void
put(struct image *image, const struct deed *deed, uint64_t *draws)
{
    const size_t end = (size_t)deed->offset + deed->len;

    ck_assert_uint_le(end, MOST_BYTES);
    if (image->size < end)
        memset(image->bytes + image->size, 0, end - image->size);
    for (size_t at = 0; at < deed->len;) {
        /* Up to the next boundary of a sector, which is there as a whole or not. */
        size_t len = SECTOR - (size_t)(deed->offset + at) % SECTOR;

        if (len > deed->len - at)
            len = deed->len - at;
        if (!draws || unit_draw(draws, 2))
            memcpy(image->bytes + deed->offset + at, deed->bytes + at, len);
        at += len;
    }
    if (image->size < end)
        image->size = end;
}

static void
sync_name(struct image *image)
{
    if (image->unlinked) {
        free(image->bytes);
        image->bytes = NULL;
    }
    image->named = image->bytes;
    image->unlinked = false;
}

static void
apply(struct image *images, size_t i)
{
    struct image *image = &images[deeds[i].file];

    switch (deeds[i].act) {
    case ACT_WRITE:
        break;
    case ACT_CREATE:
        if (!image->bytes)
            image->bytes = calloc(1, MOST_BYTES);
        ck_assert_ptr_nonnull(image->bytes);
        image->size = 0;
        image->first = i;
        image->unlinked = false;
        break;
    case ACT_UNLINK:
        image->unlinked = true;
        break;
    case ACT_SYNC:
        for (size_t k = image->first; k < i; k++)
            if (deeds[k].act == ACT_WRITE && deeds[k].file == deeds[i].file)
                put(image, &deeds[k], NULL);
        image->first = i;
        break;
    case ACT_SYNC_FOLDER:
        for (unsigned f = 0; f < file_count; f++)
            sync_name(&images[f]);
        break;
    }
}

static void
save(const char *folder, unsigned file, const struct image *image)
{
    char path[600];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", folder, names[file]);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, image->bytes, image->size), (ssize_t)image->size);
    close(fd);
}

/* What was not synced is lost, or not, or in part. */
static void
make_file(const char *folder, unsigned file, struct image *image, size_t count, uint64_t *draws)
{
    /* Its creation or its removal may be lost. */
    const bool is_there =
        image->named != image->unlinked ? image->named : unit_draw(draws, 2) != 0;

    if (!image->bytes || !is_there)
        return;
    for (size_t k = image->first; k < count; k++)
        if (deeds[k].act == ACT_WRITE && deeds[k].file == file && unit_draw(draws, 3))
            put(image, &deeds[k], unit_draw(draws, 2) ? draws : NULL);
    save(folder, file, image);
}

void
lost_writes_make(const char *folder, size_t count, uint64_t *draws)
{
    struct image *images = calloc(MOST_FILES, sizeof(*images));

    ck_assert_ptr_nonnull(images);
    pthread_mutex_lock(&lock);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    for (unsigned f = 0; f < file_count; f++) {
        images[f] = base[f];
        images[f].bytes = base[f].bytes ? malloc(MOST_BYTES) : NULL;
        if (base[f].bytes)
            memcpy(images[f].bytes, base[f].bytes, base[f].size);
    }
    for (size_t i = 0; i < count; i++)
        apply(images, i);
    for (unsigned f = 0; f < file_count; f++) {
        make_file(folder, f, &images[f], count, draws);
        free(images[f].bytes);
    }
    pthread_mutex_unlock(&lock);
    free(images);
}
