/*
 * Formats of a request a line: the loop over the lines, which counts what is malformed and goes on.
 */
#ifndef SUNPROXY_TRACE_FORMATS_LINES_H
#define SUNPROXY_TRACE_FORMATS_LINES_H

#include <stddef.h>

#include "base/buf.h"
#include "trace/builder.h"
#include "trace/input.h"

enum line_kind {
    LINE_REQUEST,
    LINE_OTHER,  /* a comment, a header, an empty line */
    LINE_ORPHAN, /* a request whose URL the log lacks */
    LINE_BAD,
};

#define LINE_STATE_BYTES 4096u

struct line_reader {
    const struct trace_options *options;
    struct trace_builder *builder; /* for remarks; NULL while sniffing */
    struct buf url;                /* for a URL that is put together; valid until the next line */
    bool sniffing;                 /* only whether a line is a request matters: no URL is made */
    bool no_memory;
    bool from_syslog; /* a line had the head of a syslog, and those that have it are read without */
    unsigned looked;  /* lines in which it was looked for in vain */
    _Alignas(max_align_t) char state[LINE_STATE_BYTES]; /* the format's own; zero at first */
};

/* How a format reads its lines. */
struct line_format {
    /* Reads one line, without its end and with no zero byte in it; `request` is empty before. */
    enum line_kind (*parse)(struct line_reader *reader, struct span line,
                            struct trace_request *request);
    /* For a format with a state; otherwise NULL. */
    void (*begin)(struct line_reader *reader);
    void (*end)(struct line_reader *reader);
};

/* Reads all lines; TRACE_OK or TRACE_NO_MEMORY. Errors of the input are reported by input_finish().
 */
enum trace_error lines_read(struct input *in, struct trace_builder *builder,
                            const struct trace_options *options, const struct line_format *format);

/*
 * For sniffing: are there requests in the first lines of these first bytes of a file, and no more
 * lines that are malformed than requests? A line that has no end may have been cut, and is not
 * called malformed.
 */
bool lines_sniff(struct span head, const struct line_format *format);

/* The number of requests in these first bytes, whatever the number of malformed lines. */
size_t lines_count(struct span head, const struct line_format *format);

/* Takes the first line, without its end, off the front of *rest. */
struct span lines_next(struct span *rest);

/* The site that a request went to, as far as a line says so. */
struct line_site {
    struct span host; /* empty: unknown; may contain a port, which then counts */
    unsigned port;    /* 0: unknown */
    bool https;       /* also with port 443 */
};

#define LINE_SITE_UNKNOWN ((struct line_site){.host = {.ptr = "", .len = 0}})

/*
 * Makes the URL of a request's target: an absolute URL is unchanged; a path gets the site in front,
 * or the site of the options if the line has no host; CONNECT's host:port becomes
 * https://host:port, and may also be an absolute URL. An IPv6 address without brackets gets them;
 * the scheme's default port is not written. LINE_BAD if the target is none of these or too long.
 */
enum line_kind lines_make_url(struct line_reader *reader, struct span method, struct line_site site,
                              struct span target, struct span *url);

/*
 * Undoes "\xNN", which sunproxyd and nginx write for bytes that are not printable, the quote and
 * the backslash. In the reader's URL; false without memory.
 */
bool lines_unescape(struct line_reader *reader, struct span *url);

/* Makes a URL of a name of any kind: a path below the option's site. */
enum line_kind lines_make_path(struct line_reader *reader, struct span name, struct span *url);

#endif
