/*
 * The messages of `sunproxy get` about a finished answer, and the names of its files.
 */
#include <stdio.h>
#include <sysexits.h>

#include "base/units.h"
#include "client/exit_status.h"
#include "client/get/get.h"
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

/* ---- the outcome ----------------------------------------------------------------------------- */

/*
 * What the server measured. Over RPC a hit has an age, and a fetched page a time at the origin;
 * over HTTP only the age is known.
 */
static const char *
describe_source(const struct get_page *page, char *text, size_t size)
{
    char total[32], fetch[32];

    units_format_duration((int64_t)page->total_us, total, sizeof(total));
    units_format_duration((int64_t)page->fetch_us, fetch, sizeof(fetch));
    if (!page->measured && page->source == PROXY_HIT)
        snprintf(text, size, ", age %u s", page->age);
    else if (!page->measured)
        *text = '\0';
    else if (page->source == PROXY_HIT)
        snprintf(text, size, " (server %s), age %u s", total, page->age);
    else
        snprintf(text, size, " (server %s, origin %s), evicted %u", total, fetch, page->evicted);
    return text;
}

static void
print_outcome(const struct get_answer *answer)
{
    const struct get_page *page = &answer->page;
    char size[32], here[32], source[128];

    units_format_bytes(answer->size, size, sizeof(size));
    units_format_duration(answer->us, here, sizeof(here));
    if (page->status == 0) {
        output_note("%s: %s in %s", answer->url, size, here);
        return;
    }
    output_note("%s: HTTP %u, %s%s, %s in %s%s", answer->url, page->status,
                page->source == GET_SOURCE_UNKNOWN ? "source unknown"
                                                   : proxy_source_name((proxy_source)page->source),
                page->stored && page->source != PROXY_HIT ? ", stored" : "", size, here,
                describe_source(page, source, sizeof(source)));
    if (page->final_url.len != 0 && !span_equal(buf_span(&page->final_url), span_str(answer->url)))
        output_note("%s: final URL %s", answer->url, buf_str(&page->final_url));
}

void
get_show(const struct get_answer *answer, const struct get_options *options)
{
    if (options->silent)
        return;
    if (answer->failure.status != EX_OK) {
        output_complain("%s: %s", answer->url, answer->failure.sentence);
        return;
    }
    if (options->verbose)
        print_outcome(answer);
    if (options->fail && get_answer_is_http_error(answer))
        output_complain("%s: the origin answered with HTTP status %u", answer->url,
                        answer->page.status);
}
