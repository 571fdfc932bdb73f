#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/save.h"
#include "base/units.h"
#include "client/exit_status.h"
#include "client/get.h"
#include "cli/output.h"

const char *
get_file_name(size_t number, const char *url, char *name, size_t size)
{
    const char *scheme = strstr(url, "://");
    int len = snprintf(name, size, "%04zu-", number);

    for (const char *from = scheme ? scheme + 3 : url; *from && (size_t)len + 1 < size; from++) {
        bool plain = (*from >= 'a' && *from <= 'z') || (*from >= 'A' && *from <= 'Z') ||
                     (*from >= '0' && *from <= '9') || *from == '.' || *from == '-';

        name[len++] = plain ? *from : '_';
    }
    while (name[len - 1] == '_')
        len--;
    name[len] = '\0';
    return name;
}

struct span
get_remote_name(const char *url)
{
    const char *path = strstr(url, "://"), *end;
    struct span name;

    path = strchr(path ? path + 3 : url, '/');
    if (!path)
        return span_of("", 0);
    end = path + strcspn(path, "?#");
    name = span_of(end, 0);
    while (name.ptr[-1] != '/')
        name = span_of(name.ptr - 1, name.len + 1);
    if (span_equal(name, span_str(".")) || span_equal(name, span_str("..")))
        return span_of("", 0);
    return name;
}

/* ---- on stderr ------------------------------------------------------------------------------- */

/* A hit has an age; a fetched page has a time at the origin. */
static const char *
describe_source(const proxy_page *page, char *text, size_t size)
{
    char total[32], fetch[32];

    units_format_duration((int64_t)page->total_us, total, sizeof(total));
    units_format_duration((int64_t)page->fetch_us, fetch, sizeof(fetch));
    if (page->source == PROXY_HIT)
        snprintf(text, size, "(server %s), age %u s", total, page->age);
    else
        snprintf(text, size, "(server %s, origin %s), evicted %u", total, fetch, page->evicted);
    return text;
}

static void
print_outcome(const struct get_answer *answer)
{
    const proxy_page *page = &answer->result.v2.proxy_fetch_result_u.page;
    char size[32], here[32], source[128];

    units_format_bytes(get_answer_body(answer).len, size, sizeof(size));
    units_format_duration(answer->us, here, sizeof(here));
    if (answer->api == 1) {
        output_note("%s: %s in %s", answer->url, size, here);
        return;
    }
    output_note("%s: HTTP %u, %s%s, %s in %s %s", answer->url, page->http_status,
                proxy_source_name(page->source),
                page->stored && page->source != PROXY_HIT ? ", stored" : "", size, here,
                describe_source(page, source, sizeof(source)));
    if (!span_equal(span_of(page->final_url.proxy_url_val, page->final_url.proxy_url_len),
                    span_str(answer->url)) &&
        page->final_url.proxy_url_len != 0)
        output_note("%s: final URL %.*s", answer->url, (int)page->final_url.proxy_url_len,
                    page->final_url.proxy_url_val);
}

static void
print_messages(const struct get_answer *answer, const struct get_options *options)
{
    if (options->silent)
        return;
    if (!get_answer_ok(answer)) {
        output_complain("%s: %s", answer->url, get_answer_sentence(answer));
    } else {
        if (options->verbose)
            print_outcome(answer);
        if (options->fail && get_answer_is_http_error(answer))
            output_complain("%s: the origin answered with HTTP status %u", answer->url,
                            answer->result.v2.proxy_fetch_result_u.page.http_status);
    }
}

/* ---- on stdout or into a file ---------------------------------------------------------------- */

static bool
write_page(const struct get_answer *answer, const struct get_options *options, FILE *to)
{
    struct span body = get_answer_body(answer);

    if (options->include || options->head) {
        const proxy_page *page = &answer->result.v2.proxy_fetch_result_u.page;

        /* A status line as in RFC 9112, whatever version the origin spoke. */
        fprintf(to, "HTTP/1.1 %u \r\n", page->http_status);
        output_put_lines(to,
                         span_of(page->headers.proxy_headers_val, page->headers.proxy_headers_len));
        fputs("\r\n", to);
    }
    if (body.len && !options->head) /* or the pointer is NULL */
        fwrite(body.ptr, 1, body.len, to);
    return !ferror(to);
}

static bool
write_answer(const struct get_answer *answer, const struct get_options *options, FILE *to)
{
    return options->json ? get_write_json(answer, options, to) : write_page(answer, options, to);
}

static int
save_answer(const struct get_answer *answer, const struct get_options *options)
{
    char name[GET_FILE_NAME_SIZE];
    struct buf path;
    struct save save;
    int error;
    bool written;

    buf_init(&path, 8192);
    if (options->remote_name)
        buf_append(&path, get_remote_name(answer->url).ptr, get_remote_name(answer->url).len);
    else
        buf_append_str(&path, options->output);
    if (options->output_is_folder)
        buf_printf(&path, "/%s", get_file_name(answer->number, answer->url, name, sizeof(name)));
    error = buf_failed(&path) ? ENAMETOOLONG : save_open(&save, buf_str(&path), false);
    if (!error) {
        errno = 0;
        written = write_answer(answer, options, save.file);
        error = written ? 0 : errno ? errno : EIO;
        if (error)
            save_close(&save, false);
        else
            error = save_close(&save, true);
    }
    if (error)
        output_complain("cannot write %s: %s", buf_str(&path), strerror(error));
    buf_free(&path);
    return error ? EX_IOERR : EX_OK;
}

int
get_put(const struct get_answer *answer, const struct get_options *options)
{
    int status = get_answer_exit(answer, options);

    if (status != EX_OK && !options->json)
        return status;
    if (options->output || options->remote_name)
        return save_answer(answer, options) == EX_OK ? status : EX_IOERR;
    errno = 0;
    if (!write_answer(answer, options, stdout) || fflush(stdout) != 0)
        return output_failed();
    return status;
}

/* True if the output is a terminal and the page has bytes that it would interpret or reorder. */
static bool
is_unfit_for_terminal(const struct get_answer *answer, const struct get_options *options)
{
    return !options->output && !options->remote_name && !options->head && !options->any_bytes &&
           !options->json && get_answer_exit(answer, options) == EX_OK && isatty(STDOUT_FILENO) &&
           !printable_lines(get_answer_body(answer));
}

static int
show(const struct get_answer *answer, const struct get_options *options)
{
    print_messages(answer, options);
    if (is_unfit_for_terminal(answer, options)) {
        if (!options->silent)
            output_complain("%s: not shown, because the page has bytes that a terminal may obey; "
                            "write it to a file with -o FILE, or anyway with -o -",
                            answer->url);
        return EX_DATAERR;
    }
    return get_put(answer, options);
}

int
get_show(const struct get_answer *answer, const struct get_options *options)
{
    int status = show(answer, options);

    if (!options->write_out || status == EX_IOERR)
        return status;
    errno = 0;
    get_write_out(answer, options);
    return fflush(stdout) != 0 || ferror(stdout) ? output_failed() : status;
}

int
get_fail(const struct get_failure *failure, const struct get_options *options,
         const struct url_list *urls)
{
    size_t count = urls->count ? urls->count : 1;

    for (size_t i = 0; options->json && i < count; i++) {
        struct get_answer answer = {
            .url = urls->count ? urls->urls[i] : NULL,
            .number = i + 1,
            .failure = failure,
            .done = true,
            .api = options->api,
        };

        if (get_put(&answer, options) == EX_IOERR)
            return EX_IOERR;
    }
    return failure->status;
}
