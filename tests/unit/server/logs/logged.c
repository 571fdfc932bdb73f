#include "tests/unit/server/logs/logged.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int file = -1, real_stderr = -1;
static off_t from; /* what is before was forgotten */

void
logged_begin(void)
{
    char path[] = "/tmp/sunproxy-test-XXXXXX";

    fflush(stderr);
    from = 0;
    file = mkostemp(path, O_CLOEXEC | O_APPEND);
    if (file < 0 || unlink(path) != 0)
        abort();
    real_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (real_stderr < 0 || dup2(file, STDERR_FILENO) < 0)
        abort();
}

void
logged_end(void)
{
    if (dup2(real_stderr, STDERR_FILENO) < 0)
        abort();
    close(real_stderr);
    close(file);
}

void
logged_clear(void)
{
    from = lseek(file, 0, SEEK_END);
}

const char *
logged_text(void)
{
    static _Thread_local char text[65536];
    ssize_t n = pread(file, text, sizeof(text) - 1, from);

    text[n < 0 ? 0 : n] = '\0';
    return text;
}

unsigned
logged_times(const char *words)
{
    unsigned count = 0;

    for (const char *at = logged_text(); (at = strstr(at, words)) != NULL; at++)
        count++;
    return count;
}
