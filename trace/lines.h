/*
 * Formats of a request a line: the loop over the lines, which counts what is malformed and goes on.
 */
#ifndef SUNPROXY_TRACE_LINES_H
#define SUNPROXY_TRACE_LINES_H

#include "base/buf.h"
#include "trace/builder.h"
#include "trace/input.h"

enum line_kind {
    LINE_REQUEST,
    LINE_OTHER,  /* a comment, a header, nothing */
    LINE_ORPHAN, /* a request of which the log does not know the URL */
    LINE_BAD,
};

struct line_reader {
    const struct trace_options *options;
    struct buf url; /* for a URL that is put together; good until the next line */
    bool sniffing;  /* only whether it is a request matters: nothing is allocated, no URL made */
    bool no_memory;
    void *state; /* the format's own */
    /* Reads one line, without its end; `entry` is empty before. */
    enum line_kind (*parse)(struct line_reader *reader, struct span line,
                            struct trace_entry *entry);
};

/* Reads all lines; TRACE_OK or TRACE_NO_MEMORY. What is wrong with the input, it tells itself. */
enum trace_error lines_read(struct input *in, struct trace_builder *builder,
                            const struct trace_options *options, void *state,
                            enum line_kind (*parse)(struct line_reader *reader, struct span line,
                                                    struct trace_entry *entry));

/*
 * For sniffing: are there requests in these first bytes of a file, and no more lines that are
 * malformed than requests? The last line is passed over unless it is the only one.
 */
bool lines_sniff(struct span head, void *state,
                 enum line_kind (*parse)(struct line_reader *reader, struct span line,
                                         struct trace_entry *entry));

/* The line without blanks at its ends, and the rest behind its newline. */
struct span lines_next(struct span *rest);

/*
 * Makes the URL of what a request line has: an absolute one stays; a path gets scheme://host, or
 * the option's site if host is empty; CONNECT's host:port becomes https://host:port. The default
 * port of the scheme is not written. LINE_BAD if it is none of these or too long.
 */
enum line_kind lines_make_url(struct line_reader *reader, struct span method, struct span host,
                              unsigned port, struct span target, struct span *url);

/* Makes a URL of a name of any kind: a path below the option's site. */
enum line_kind lines_make_path(struct line_reader *reader, struct span name, struct span *url);

#endif
