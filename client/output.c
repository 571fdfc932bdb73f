#include "client/output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

static const char *program_name = "sunproxy";

void
output_name(const char *name)
{
    program_name = name;
}

void
output_complain(const char *format, ...)
{
    va_list args;

    flockfile(stderr);
    fprintf(stderr, "%s: ", program_name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    funlockfile(stderr);
}

int
output_failed(void)
{
    output_complain("cannot write to standard output: %s", strerror(errno));
    return EX_IOERR;
}

int
output_finish(int status)
{
    bool failed = ferror(stdout) != 0;

    /* An earlier failure's errno is gone by now; where it was noticed, it was told. */
    errno = failed ? EIO : 0;
    if (fflush(stdout) != 0 || (!failed && fclose(stdout) != 0))
        failed = true;
    if (!failed || status == EX_IOERR)
        return status;
    return output_failed();
}

int
output_json(struct buf *json)
{
    bool whole;

    buf_append_char(json, '\n');
    whole = !buf_failed(json);
    if (whole)
        fwrite(json->data, 1, json->len, stdout);
    buf_free(json);
    if (!whole) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    return fflush(stdout) == 0 ? EX_OK : output_failed();
}

bool
output_is_lively(FILE *stream)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(fileno(stream)) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}
