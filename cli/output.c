#include "cli/output.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/printable.h"

#define MAX_LINE 16384 /* a URL and a sentence */

static const char *program_name = "sunproxy";

void
output_name(const char *name)
{
    program_name = name;
}

/* Prints a line without control characters: URLs and sentences may come from the network. */
static void
print_line(const char *prefix, const char *separator, const char *format, va_list args)
{
    char text[MAX_LINE];

    vsnprintf(text, sizeof(text), format, args);
    printable_make(text, strlen(text));
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

void
output_trace(struct span line)
{
    printable_write(stderr, line);
    fputc('\n', stderr);
}

void
output_put(const char *text)
{
    printable_write(stdout, span_str(text));
}

void
output_put_csv(struct span text)
{
    bool quoted = false;

    for (size_t i = 0; i < text.len && !quoted; i++)
        quoted = strchr(",\"\r\n", text.ptr[i]) != NULL;
    if (quoted)
        putchar('"');
    for (const char *mark; quoted && (mark = memchr(text.ptr, '"', text.len));) {
        const size_t len = (size_t)(mark - text.ptr);

        printable_write(stdout, span_of(text.ptr, len));
        fputs("\"\"", stdout);
        text = span_of(mark + 1, text.len - len - 1);
    }
    printable_write(stdout, text);
    if (quoted)
        putchar('"');
}

void
output_put_lines(FILE *to, struct span lines)
{
    bool terminal = isatty(fileno(to));

    while (terminal && lines.len != 0) {
        const char *end = memchr(lines.ptr, '\n', lines.len);
        size_t len = end ? (size_t)(end - lines.ptr) : lines.len;
        size_t taken = end ? len + 1 : len;
        bool returns = end && len != 0 && lines.ptr[len - 1] == '\r';

        printable_write(to, span_of(lines.ptr, returns ? len - 1 : len));
        fputs(returns ? "\r\n" : end ? "\n" : "", to);
        lines = span_of(lines.ptr + taken, lines.len - taken);
    }
    if (lines.len != 0)
        fwrite(lines.ptr, 1, lines.len, to);
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

    /* The errno of an earlier failure is lost; it was reported when it was detected. */
    errno = failed ? EIO : 0;
    if (fflush(stdout) != 0 || (!failed && fclose(stdout) != 0))
        failed = true;
    if (!failed || status == EX_IOERR)
        return status;
    return output_failed();
}

int
output_flush(void)
{
    /* A terminal is flushed line by line: an earlier line may have failed, and its errno is gone.
     */
    bool failed = ferror(stdout) != 0;

    if (fflush(stdout) == 0) {
        if (!failed)
            return EX_OK;
        errno = EIO;
    }
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
    return output_flush();
}

bool
output_is_lively(FILE *stream)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(fileno(stream)) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}
