#include "client/output.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define MAX_LINE 16384 /* a URL and what is to be said of it */

static const char *program_name = "sunproxy";

void
output_name(const char *name)
{
    program_name = name;
}

/* One whole line, with nothing in it that a terminal would obey: URLs and sentences come from afar.
 */
static void
print_line(const char *prefix, const char *separator, const char *format, va_list args)
{
    char text[MAX_LINE];

    vsnprintf(text, sizeof(text), format, args);
    for (unsigned char *at = (unsigned char *)text; *at; at++) {
        if (*at < ' ' || *at == 0x7f)
            *at = '?';
        else if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0) /* U+0080 to U+009F */
            at[0] = at[1] = '?';
    }
    fprintf(stderr, "%s%s%s\n", prefix, separator, text);
}

void
output_complain(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_line(program_name, ": ", format, args);
    va_end(args);
}

void
output_note(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_line("*", " ", format, args);
    va_end(args);
}

bool
output_is_unread(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};

    return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

int
output_failed(void)
{
    int error = errno;

    if (error == EPIPE || output_is_unread())
        return EX_IOERR;
    errno = error;
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
