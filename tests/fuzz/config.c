/*
 * A configuration file of the daemon: it is read or refused with a sentence, and what
 * --check-config prints of one that was read says the same when it is read again.
 */
#include "server/config/options.h"
#include "tests/fuzz/fuzz.h"

/* Reads the file and returns what --check-config prints, to be freed; NULL if it is refused. */
static char *
print_config(struct span bytes, size_t *len)
{
    char name[] = "sunproxyd", option[] = "--config";
    /* The parser takes arguments as main() has them. */
    char *arguments[] = {name, option, (char *)(uintptr_t)fuzz_file(bytes), NULL};
    struct options options;
    char *text = NULL;
    struct buf why;
    FILE *out;

    buf_init(&why, 4096);
    FUZZ_CHECK(options_init(&options));
    if (options_parse(&options, 3, arguments, &why) == 0) {
        out = open_memstream(&text, len);
        FUZZ_CHECK(out);
        options_print_config(&options, out);
        fclose(out);
    } else {
        FUZZ_CHECK(why.len > 0);
    }
    options_free(&options);
    buf_free(&why);
    return text;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t once_len = 0, twice_len = 0;
    char *once = print_config(span_of(data, size), &once_len), *twice;

    if (!once)
        return 0;
    twice = print_config(span_of(once, once_len), &twice_len);
    FUZZ_CHECK(twice && once_len == twice_len && memcmp(once, twice, once_len) == 0);
    free(once);
    free(twice);
    return 0;
}
