/*
 * Traces: sequences of requests, read from a file of any known format. Loading gives every distinct
 * URL a dense number once, from 0 in the order of first appearance, so that replays
 * and simulations work on arrays.
 *
 * A loaded trace is immutable; any thread may read it.
 */
#ifndef SUNPROXY_TRACE_TRACE_H
#define SUNPROXY_TRACE_TRACE_H

#include <stdint.h>
#include <stdio.h>

#include "base/span.h"

#define TRACE_SIZE_UNKNOWN UINT32_MAX
#define TRACE_SIZE_MOST (TRACE_SIZE_UNKNOWN - 1u)
#define TRACE_TIME_UNKNOWN INT64_MIN
#define TRACE_STATUS_UNKNOWN 0u /* the format has none */
#define TRACE_STATUS_NONE 1u    /* the format says that there was no answer */

/* An example of a line, entry, record or visit that is malformed. */
struct trace_bad_line {
    uint64_t line; /* from 1; of visits, the database's own number; 0: it has none */
    char text[80]; /* how it begins; control characters as '?' */
};

#define TRACE_BAD_LINES 5u
#define TRACE_REMARKS 8u
#define TRACE_REMARK_BYTES 240u

/* Requests read and left out, by reason. */
struct trace_counts {
    uint64_t requests;         /* in the trace as loaded */
    uint64_t skipped_orphan;   /* visits whose URL row is missing, log lines without a request */
    uint64_t skipped_method;   /* a method that the options exclude */
    uint64_t skipped_status;   /* a status that the options exclude, redirects apart */
    uint64_t skipped_redirect; /* redirects, if the options exclude them */
    uint64_t skipped_scheme;   /* neither http nor https, unless the options allow all schemes */
    uint64_t skipped_time;     /* outside since/until */
    uint64_t skipped_unique;   /* seen before, with --unique */
    uint64_t skipped_bad;    /* malformed lines; visits with no time, or no URL that could be one */
    uint64_t inferred_sizes; /* requests whose size is another's for the URL: see trace_load() */
    uint64_t inferred_bytes; /* of all these together */
    uint64_t first_bad_line; /* of the lines, the first; 0: none */
    struct trace_bad_line bad[TRACE_BAD_LINES]; /* the first ones */
    size_t bad_count;
    uint64_t logged_hits;     /* requests that the log calls a hit, */
    uint64_t logged_outcomes; /* of those of which it says whether they were one */
    char remarks[TRACE_REMARKS][TRACE_REMARK_BYTES]; /* what was read in a way that may be wrong */
    size_t remark_count;
    uint64_t large_sizes; /* requests of more than TRACE_SIZE_MOST bytes, counted as that */
};

/* A reason for leaving out requests, and their number. */
struct trace_reason {
    const char *name; /* a word, for programs */
    const char *what; /* which requests, behind their number */
    uint64_t count;
};

#define TRACE_REASONS 8u

/* All reasons, also those with a count of 0. */
void trace_reasons(const struct trace_counts *counts, struct trace_reason reasons[TRACE_REASONS]);

struct trace {
    const char *format; /* name of the format it was read as; static */
    const char *unit;   /* what a request is there: "line", "entry", "record", "visit"; static */
    size_t request_count;
    /* By request: */
    uint32_t *ids;      /* number of the URL */
    int64_t *times_us;  /* since 1970-01-01 UTC, or since the trace began; NULL: there are none */
    uint32_t *sizes;    /* of the body; TRACE_SIZE_UNKNOWN; NULL: all are unknown */
    uint16_t *statuses; /* of HTTP; TRACE_STATUS_UNKNOWN; NULL: there are none */
    uint8_t *methods;   /* of HTTP, see trace_method(); NULL: there are none */
    /* By number of the URL: */
    size_t url_count;
    struct span *urls; /* each is followed by a zero byte; NULL: the format has numbers only */
    uint64_t *numbers; /* the format's own numbers; NULL: it has URLs */
    uint64_t *keys;    /* base/hash.h of the URL, or of the format's number */
    struct trace_counts counts;
};

enum trace_redirects {
    TRACE_REDIRECTS_DEFAULT, /* histories: kept, since the user opened them; logs: by status
                              */
    TRACE_REDIRECTS_KEEP,    /* logs: 301, 302, 303, 307 and 308 count too */
    TRACE_REDIRECTS_DROP,
};

#define TRACE_DEFAULT_METHODS "GET"
#define TRACE_DEFAULT_STATUSES "200,304"
#define TRACE_DEFAULT_SITE "http://localhost"

struct trace_options {
    const char *format;   /* a name or alias of a format, or a format string of lines
                             (base/log_pattern.h); NULL: by the content */
    const char *columns;  /* of a table: "time,url,-,size"; NULL: as its first line names them */
    const char *methods;  /* "GET,HEAD" in any case, or "all"; NULL: TRACE_DEFAULT_METHODS */
    const char *statuses; /* "200,304,2xx,200-206", or "all"; NULL: TRACE_DEFAULT_STATUSES */
    const char *site;     /* stands before what is only a path; NULL: TRACE_DEFAULT_SITE */
    enum trace_redirects redirects;
    bool all_schemes;   /* keep URLs other than http and https */
    bool base_urls;     /* reduce each URL to scheme://host[:port], as the paper did */
    bool cut_query;     /* cut each URL before its query, "?..." */
    bool unique;        /* only the first request for each URL */
    bool without_times; /* do not keep them: times_us is NULL */
    bool without_sizes; /* likewise */
    bool without_methods;
    bool sizes_as_read; /* leave sizes as they are, known or not: see trace_load() */
    uint64_t limit;     /* of requests, after all other options; 0: none */
    int64_t since_us;   /* inclusive; INT64_MIN: no bound */
    int64_t until_us;   /* exclusive; INT64_MAX: no bound */
    int stop_fd;        /* loading is given up as soon as this can be read; 0: it is not */
    /*
     * Called while the file is read, with its bytes so far and their total, 0 if that is not known;
     * not of histories, which are not read from one end to the other. May be NULL.
     */
    void (*progress)(void *context, uint64_t done, uint64_t total);
    void *progress_context;
};

#define TRACE_OPTIONS_DEFAULT ((struct trace_options){.since_us = INT64_MIN, .until_us = INT64_MAX})

enum trace_error {
    TRACE_OK = 0,
    TRACE_CANNOT_OPEN, /* no such file, no permission: the sentence has errno's text */
    TRACE_NOT_A_TRACE, /* not the format it was taken for, or truncated, or other columns */
    TRACE_EMPTY,       /* no request is left; the sentence says what was left out */
    TRACE_NO_MEMORY,
    TRACE_STOPPED,    /* because of stop_fd; there is no sentence */
    TRACE_BAD_OPTION, /* methods, statuses or site that are none */
};

/*
 * Loads a file or FIFO, plain or compressed with gzip, xz or zstd; "-" is standard input. On
 * success *trace is the caller's, freed with trace_free(). Otherwise a sentence in `why` that names
 * the file and what was expected.
 *
 * A request whose size is unknown gets the last known size of its URL, or else the first one known
 * later: a 304 is logged without a body, but the request was for the body. With sizes_as_read a 304
 * keeps its logged size, and unknown sizes remain unknown. Sizes that are all 1 are unknown sizes
 * (`sizes` is NULL, with a remark), except with sizes_as_read.
 *
 * URLs have no fragment: no client sends one (RFC 9110 section 7.1).
 */
enum trace_error trace_load(const char *path, const struct trace_options *options,
                            struct trace **trace, char *why, size_t why_size);

/* Bytes of a URL, as in Chrome; a longer one is malformed. */
#define TRACE_URL_MAX (2u * 1024u * 1024u)

/* The URL of a number, or the format's own number in digits, written into `text`. */
#define TRACE_URL_TEXT 24u
struct span trace_url_text(const struct trace *trace, uint32_t id, char text[TRACE_URL_TEXT]);

/* The name of a request's method, of fewer than 24 bytes; "" if the trace does not know it. */
const char *trace_method(const struct trace *trace, size_t request);

/* NULL is harmless. */
void trace_free(struct trace *trace);

/* A format: one file in trace/, one row in trace_formats. */
struct trace_builder;
struct input;
struct line_format;
struct trace_format {
    const char *name;
    const char *summary;
    const char *sample; /* a typical line; NULL: not a format of lines */
    const char *unit;   /* as in struct trace; NULL: "line" */
    bool is_text;       /* a byte order mark in front of it means nothing */
    /* How its lines are read (lines.h); NULL unless a line is a request by itself. */
    const struct line_format *lines;
    /*
     * Could these first bytes of a file be this format? Called in the order of the rows. NULL: yes
     * if most of the lines are requests.
     */
    bool (*sniff)(struct span head);
    bool by_path; /* plain files are read by their path, and the input is left where it is */
    /*
     * Adds the requests of the input in order with trace_add(). trace_load() reports errors of
     * the input. NULL: line by line.
     */
    enum trace_error (*read)(struct input *in, const struct trace_options *options,
                             struct trace_builder *builder, char *why, size_t why_size);
};

/* All formats, ended by NULL. */
extern const struct trace_format *const trace_formats[];

/* Other names for formats, ended by a NULL name; one name may stand for several. */
struct trace_alias {
    const char *name;
    const struct trace_format *format;
};
extern const struct trace_alias trace_aliases[];

/* Is this the name or an alias of a format, in any case, or has it a percent sign? */
bool trace_format_exists(const char *name);

#endif
