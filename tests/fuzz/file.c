#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *fuzz_seed;

static char folder[128], path[sizeof(folder) + 8];

static void
remove_file(void)
{
    unlink(path);
    rmdir(folder);
}

static void
make_folder(void)
{
    const char *parents[] = {getenv("TMPDIR"), "/dev/shm", "/tmp"};

    for (size_t i = 0; !folder[0] && i < sizeof(parents) / sizeof(parents[0]); i++) {
        int len = parents[i] && parents[i][0]
                      ? snprintf(folder, sizeof(folder), "%s/fuzz-XXXXXX", parents[i])
                      : 0;

        if (len <= 0 || (size_t)len >= sizeof(folder) || !mkdtemp(folder))
            folder[0] = '\0';
    }
    FUZZ_CHECK(folder[0]);
    snprintf(path, sizeof(path), "%s/input", folder);
    FUZZ_CHECK(atexit(remove_file) == 0);
}

const char *
fuzz_file(struct span bytes)
{
    /* What changed a moment ago may still be changing: a reader of databases waits then. */
    static const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    int fd;

    if (!folder[0])
        make_folder();
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_CHECK(fd >= 0);
    while (bytes.len) {
        ssize_t written = write(fd, bytes.ptr, bytes.len);

        FUZZ_CHECK(written > 0);
        fuzz_take(&bytes, (size_t)written);
    }
    FUZZ_CHECK(futimens(fd, long_ago) == 0 && close(fd) == 0);
    return path;
}
