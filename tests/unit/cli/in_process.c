#include "tests/unit/cli/in_process.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/unit.h"

/* Points a descriptor at a fresh file in memory; *saved is what it was. */
static int catch (int fd, int *saved)
{
    int file = memfd_create("output", MFD_CLOEXEC);

    *saved = dup(fd);
    dup2(file, fd);
    return file;
}

static void
release(int fd, int saved, int file, char *text, size_t size)
{
    dup2(saved, fd);
    close(saved);
    if (text) {
        ssize_t len = pread(file, text, size - 1, 0);

        text[len > 0 ? len : 0] = '\0';
    }
    close(file);
}

int
in_process_run(const struct command *command, const char *const *words, const char *folder,
               struct in_process *printed)
{
    static char name[] = "sunproxy", texts[IN_PROCESS_WORDS][160];
    char *argv[IN_PROCESS_WORDS + 2] = {name};
    int argc = 1, status, out, err, out_file, err_file;

    for (unsigned i = 0; words[i]; i++) {
        size_t before = strcspn(words[i], "$");
        bool expands = words[i][before] == '$';

        ck_assert_uint_lt(i, IN_PROCESS_WORDS);
        snprintf(texts[i], sizeof(texts[i]), "%.*s%s%s", (int)before, words[i],
                 expands ? folder : "", words[i] + before + expands);
        argv[argc++] = texts[i];
    }
    fflush(stdout);
    out_file = catch (STDOUT_FILENO, &out);
    err_file = catch (STDERR_FILENO, &err);
    optind = 0;
    status = command->run(argc, argv);
    fflush(stdout);
    release(STDOUT_FILENO, out, out_file, printed ? printed->out : NULL, sizeof(printed->out));
    release(STDERR_FILENO, err, err_file, printed ? printed->err : NULL, sizeof(printed->err));
    return status;
}
