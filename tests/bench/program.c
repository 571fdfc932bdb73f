#include "tests/bench/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

int
program_parse(int argc, char **argv, const struct option *table, const char *help, program_set *set,
              void *config)
{
    int c;

    while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (c == 'h') {
            fputs(help, stdout);
            return EXIT_SUCCESS;
        }
        if (!set(config, c, optarg)) {
            fputs(help, stderr);
            return EX_USAGE;
        }
    }
    return PROGRAM_GOES_ON;
}

bool
program_print(struct buf *line)
{
    bool ok = !buf_failed(line) && puts(buf_str(line)) >= 0 && fflush(stdout) == 0;

    buf_free(line);
    return ok;
}
