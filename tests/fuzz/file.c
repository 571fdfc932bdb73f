#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

int
fuzz_file(struct span bytes, char path[FUZZ_PATH])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    FUZZ_CHECK(fd >= 0);
    while (bytes.len) {
        ssize_t written = write(fd, bytes.ptr, bytes.len);

        FUZZ_CHECK(written > 0);
        fuzz_take(&bytes, (size_t)written);
    }
    FUZZ_CHECK(lseek(fd, 0, SEEK_SET) == 0);
    snprintf(path, FUZZ_PATH, "/proc/self/fd/%d", fd);
    return fd;
}
