#include "client/get/get_output.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/printable.h"
#include "cli/output.h"

#define MAX_PATH 8192
/* Of a page on a terminal this much is checked as a whole, and the rest in pieces of this size. */
#define MAX_UNCHECKED (1u << 20)
/* A terminal that is full takes less than a page of memory. */
#define TERMINAL_AT_ONCE 256u

void
get_output_init(struct get_output *output, const struct get_options *options)
{
    *output = (struct get_output){.options = options};
    buf_init(&output->path, MAX_PATH);
    buf_init(&output->body, options->json ? GET_JSON_MAX_BODY : 2 * (size_t)MAX_UNCHECKED);
}

static bool
to_file(const struct get_output *output)
{
    return output->options->output || output->options->remote_name;
}

/* Closes the file, which replaces what is there if `keep`. 0 or an errno. */
static int
close_file(struct get_output *output, bool keep)
{
    int error = output->saves ? save_close(&output->save, keep) : 0;

    output->saves = false;
    return error;
}

void
get_output_free(struct get_output *output)
{
    close_file(output, false);
    buf_free(&output->path);
    buf_free(&output->body);
}

/* ---- the file or the stream ------------------------------------------------------------------ */

static void
complain_of_file(struct get_output *output, int error)
{
    output_complain("cannot write %s: %s", buf_str(&output->path), strerror(error));
    output->failed = true;
}

static void
name_file(struct get_output *output, const struct get_answer *answer)
{
    char name[GET_FILE_NAME_SIZE];
    struct span last = get_remote_name(answer->url ? answer->url : "");

    buf_reset(&output->path);
    if (output->options->remote_name)
        buf_append(&output->path, last.ptr, last.len);
    else
        buf_append_str(&output->path, output->options->output);
    if (output->options->output_is_folder)
        buf_printf(&output->path, "/%s",
                   get_file_name(answer->number, answer->url, name, sizeof(name)));
}

static void
open_file(struct get_output *output, const struct get_answer *answer)
{
    int error;

    if (!to_file(output))
        return;
    name_file(output, answer);
    error = buf_failed(&output->path) ? ENAMETOOLONG
                                      : save_open(&output->save, buf_str(&output->path), false);
    if (error)
        complain_of_file(output, error);
    else
        output->saves = true;
}

/* After something was written: notices if it could not be, and passes on what is buffered. */
static void
check_written(struct get_output *output, bool written)
{
    int error = written ? 0 : errno ? errno : EIO;

    if (output->saves) {
        if (!error)
            return;
        close_file(output, false);
        complain_of_file(output, error);
    } else if (!written || fflush(stdout) != 0) {
        output_failed();
        output->failed = true;
    }
}

static FILE *
stream_of(const struct get_output *output)
{
    return output->saves ? output->save.file : stdout;
}

/* How much may be written at once to what a reader may leave full; see struct get_output. */
static size_t
find_at_once(void)
{
    struct stat status;

    if (isatty(STDOUT_FILENO))
        return TERMINAL_AT_ONCE;
    if (fstat(STDOUT_FILENO, &status) == 0 &&
        (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)))
        return PIPE_BUF;
    return 0;
}

/* Waits until standard output takes something, or has failed. */
static void
wait_for_output(struct get_output *output)
{
    struct pollfd wait = {.fd = STDOUT_FILENO, .events = POLLOUT};
    int ready = 0;

    while (output->at_once && !output->saves && ready == 0) {
        int64_t now_us = clock_monotonic_us();

        if (now_us >= output->keep_us) {
            if (output->blocked)
                output->blocked(output->context);
            output->keep_us = now_us + GET_KEEP_US;
        }
        ready = poll(&wait, 1, (int)((output->keep_us - now_us + 999) / 1000));
        if (ready < 0 && errno == EINTR)
            ready = 0;
    }
}

/* The same as fwrite() and fflush(), but for what is done while the reader does not read. */
static bool
write_in_parts(struct get_output *output, struct span bytes)
{
    while (bytes.len) {
        ssize_t written;

        wait_for_output(output);
        written = write(STDOUT_FILENO, bytes.ptr,
                        bytes.len < output->at_once ? bytes.len : output->at_once);
        if (written < 0 && errno != EINTR && errno != EAGAIN)
            return false;
        if (written > 0)
            bytes = span_of(bytes.ptr + written, bytes.len - (size_t)written);
    }
    return true;
}

static void
write_bytes(struct get_output *output, struct span bytes)
{
    FILE *to = stream_of(output);

    output->keep_us = clock_monotonic_us() + GET_KEEP_US;
    errno = 0;
    if (bytes.len && output->at_once && !output->saves)
        check_written(output, write_in_parts(output, bytes));
    else if (bytes.len) /* or the pointer is NULL */
        check_written(output, fwrite(bytes.ptr, 1, bytes.len, to) == bytes.len);
}

static void
write_head(struct get_output *output, const struct get_answer *answer)
{
    FILE *to = stream_of(output);

    output->keep_us = clock_monotonic_us() + GET_KEEP_US;
    wait_for_output(output);
    errno = 0;
    output_put_lines(to, buf_span(&answer->page.head));
    fputs("\r\n", to);
    check_written(output, !ferror(to));
}

/* ---- a terminal ------------------------------------------------------------------------------ */

/* The length of what ends with the last ASCII byte: it does not end within a character. */
static size_t
whole_characters(struct span text)
{
    while (text.len != 0 && (text.ptr[text.len - 1] & 0x80))
        text.len--;
    return text.len;
}

/* Writes the first bytes of what was collected if they are text, and the head before. */
static void
write_checked(struct get_output *output, const struct get_answer *answer, size_t len)
{
    struct buf *body = &output->body;

    output->unfit = !printable_lines(span_of(body->data, len));
    if (output->unfit)
        return;
    if (output->options->include && !output->shown_part)
        write_head(output, answer);
    output->shown_part = true;
    write_bytes(output, span_of(body->data, len));
    if (len < body->len)
        memmove(body->data, body->data + len, body->len - len);
    body->len -= len;
}

static void
write_to_terminal(struct get_output *output, const struct get_answer *answer, struct span piece)
{
    while (piece.len != 0 && !output->unfit && !output->failed) {
        size_t len = piece.len < MAX_UNCHECKED ? piece.len : MAX_UNCHECKED;

        if (!buf_append(&output->body, piece.ptr, len)) {
            output_complain("out of memory");
            output->failed = true;
            return;
        }
        piece = span_of(piece.ptr + len, piece.len - len);
        if (output->body.len < MAX_UNCHECKED)
            continue;
        len = whole_characters(buf_span(&output->body));
        if (len == 0)
            output->unfit = true;
        else
            write_checked(output, answer, len);
    }
}

static void
complain_of_bytes(const struct get_output *output, const struct get_answer *answer)
{
    if (!output->options->silent)
        output_complain("%s: %s, because the page has bytes that a terminal may obey; write it to "
                        "a file with -o FILE, or anyway with -o -",
                        answer->url, output->shown_part ? "the rest is not shown" : "not shown");
}

/* ---- a page ---------------------------------------------------------------------------------- */

void
get_output_begin(struct get_output *output, const struct get_answer *answer)
{
    const struct get_options *options = output->options;

    output->begun = true;
    output->shown_part = output->unfit = false;
    output->at_once = find_at_once();
    buf_reset(&output->body);
    if (options->json)
        return;
    open_file(output, answer);
    if (output->failed)
        return;
    output->on_terminal =
        !output->saves && !options->any_bytes && !options->head && isatty(STDOUT_FILENO);
    if (options->head || (options->include && !output->on_terminal))
        write_head(output, answer);
}

/* The body as one string of JSON is bounded. */
static enum get_take
collect(struct get_output *output, struct get_answer *answer, struct span piece)
{
    static const struct get_failure too_large = {
        .status = EX_PROTOCOL,
        .code = "too_large",
        .sentence = "the page is too large for --json: write it to a file with --output instead"};
    static const struct get_failure no_memory = {
        .status = EX_SOFTWARE, .code = "no_memory", .sentence = "out of memory"};

    if (buf_append(&output->body, piece.ptr, piece.len))
        return GET_TAKEN;
    get_answer_fail(answer,
                    piece.len > GET_JSON_MAX_BODY - output->body.len ? &too_large : &no_memory);
    return GET_STOP;
}

enum get_take
get_output_body(struct get_output *output, struct get_answer *answer, struct span piece)
{
    if (output->options->json)
        return collect(output, answer, piece);
    if (output->options->head)
        return GET_STOP;
    if (!output->failed && output->on_terminal)
        write_to_terminal(output, answer, piece);
    else if (!output->failed)
        write_bytes(output, piece);
    return output->failed || output->unfit ? GET_STOP : GET_TAKEN;
}

int
get_output_put(struct get_output *output, const struct get_answer *answer, struct span body)
{
    int status = get_answer_exit(answer, output->options);

    if (!output->options->json)
        return status;
    open_file(output, answer);
    if (!output->failed) {
        errno = 0;
        check_written(output, get_write_json(answer, body, output->options, stream_of(output)));
    }
    if (!output->failed) {
        int error = close_file(output, true);

        if (error)
            complain_of_file(output, error);
    }
    return output->failed ? EX_IOERR : status;
}

/* Completes the page of a good answer. */
static void
complete(struct get_output *output, const struct get_answer *answer)
{
    int error;

    if (output->on_terminal && !output->unfit)
        write_checked(output, answer, output->body.len);
    error = close_file(output, true);
    if (error)
        complain_of_file(output, error);
}

void
get_output_write_out(struct get_output *output, const struct get_answer *answer)
{
    if (!output->options->write_out || output->failed)
        return;
    errno = 0;
    get_write_out(answer, output->options);
    check_written(output, !ferror(stdout));
}

static int
finish(struct get_output *output, const struct get_answer *answer)
{
    int status = get_answer_exit(answer, output->options);

    if (output->failed)
        return EX_IOERR;
    if (output->options->json)
        return get_output_put(output, answer, buf_span(&output->body));
    if (!output->begun)
        return status;
    if (answer->failure.status != EX_OK)
        close_file(output, false);
    else
        complete(output, answer);
    if (output->unfit) {
        complain_of_bytes(output, answer);
        status = EX_DATAERR;
    }
    return output->failed ? EX_IOERR : status;
}

int
get_output_end(struct get_output *output, struct get_answer *answer)
{
    int status;

    if (!output->failed)
        get_show(answer, output->options);
    status = finish(output, answer);
    output->begun = output->on_terminal = false;
    buf_free(&output->body);
    if (output->failed)
        return status;
    get_output_write_out(output, answer);
    return output->failed ? EX_IOERR : status;
}
