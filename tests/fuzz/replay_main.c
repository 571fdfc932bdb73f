/*
 * Runs a fuzz target over the files of a folder, in order of name, and once over an empty input:
 * the corpus as a test. The folder is the argument, or tests/fuzz/corpus/NAME for a program called
 * NAME.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_BYTES = 1 << 24 };

static int
is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Runs the target on a copy of exactly the file's size, so that a sanitizer sees an over-read. */
static bool
run_file(const char *path)
{
    FILE *file = fopen(path, "rbe");
    struct stat status;
    uint8_t *bytes = NULL;
    size_t size = 0;
    bool ok = false;

    if (file && fstat(fileno(file), &status) == 0 && status.st_size <= MOST_BYTES) {
        size = (size_t)status.st_size;
        bytes = malloc(size ? size : 1);
        ok = bytes && fread(bytes, 1, size, file) == size;
    }
    if (file)
        fclose(file);
    if (ok)
        LLVMFuzzerTestOneInput(bytes, size);
    else
        fprintf(stderr, "%s: %s\n", path, errno ? strerror(errno) : "too large");
    free(bytes);
    return ok;
}

int
main(int argc, char **argv)
{
    const char *name = strrchr(argv[0], '/');
    char folder[4096], path[8192];
    struct dirent **entries;
    unsigned run = 0, failed = 0;
    int count;

    if (argc > 1)
        snprintf(folder, sizeof(folder), "%s", argv[1]);
    else
        snprintf(folder, sizeof(folder), "tests/fuzz/corpus/%s", name ? name + 1 : argv[0]);
    count = scandir(folder, &entries, is_visible, alphasort);
    if (count <= 0) {
        fprintf(stderr, "%s: no corpus\n", folder);
        return EXIT_FAILURE;
    }
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        printf("%s\n", path);
        fflush(stdout);
        run++;
        fuzz_seed = entries[i]->d_name;
        failed += !run_file(path);
        free(entries[i]);
    }
    free(entries);
    printf("Checks: %u, Failures: %u, Errors: 0\n", run, failed);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
