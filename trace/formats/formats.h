/*
 * The formats that this library reads: one file and one row each. For trace.c only; others go
 * through trace_load().
 */
#ifndef SUNPROXY_TRACE_FORMATS_FORMATS_H
#define SUNPROXY_TRACE_FORMATS_FORMATS_H

#include "base/buf.h"
#include "trace/trace.h"

/* The bytes of a file by which its format is detected. SQLite's schema may begin some pages behind
 * the first. */
#define TRACE_HEAD_BYTES (256u * 1024u)

extern const struct trace_format trace_format_firefox;
extern const struct trace_format trace_format_safari;
extern const struct trace_format trace_format_chrome;
extern const struct trace_format trace_format_request_db;
extern const struct trace_format trace_format_sunproxyd;
extern const struct trace_format trace_format_caddy;
extern const struct trace_format trace_format_traefik;
extern const struct trace_format trace_format_nginx_json;
extern const struct trace_format trace_format_w3c;
extern const struct trace_format trace_format_haproxy;
extern const struct trace_format trace_format_s3;
extern const struct trace_format trace_format_alb;
extern const struct trace_format trace_format_ltsv;
extern const struct trace_format trace_format_ids;
extern const struct trace_format trace_format_zeek;
extern const struct trace_format trace_format_har;
extern const struct trace_format trace_format_access;
extern const struct trace_format trace_format_squid;
extern const struct trace_format trace_format_table;
extern const struct trace_format trace_format_adaptsize;
extern const struct trace_format trace_format_oracle;
extern const struct trace_format trace_format_wc98;
extern const struct trace_format trace_format_cache2k;
extern const struct trace_format trace_format_urls;

/* Lines by a format string, which is the name of the format: it has a percent sign. */
extern const struct trace_format trace_format_pattern;

/* Can logs of this format string be read? Otherwise TRACE_BAD_OPTION with a sentence in `why`, or
 * TRACE_NO_MEMORY. */
enum trace_error trace_pattern_check(const char *format, struct buf *why);

/*
 * By name or alias, in any case; NULL: there is none. Of a name that stands for several formats,
 * the first one that these first bytes of a file are, else the first one.
 */
const struct trace_format *trace_format_find(const char *name, struct span head);

/*
 * The first format whose sniff() accepts these bytes; else the format of lines with the most
 * requests in them, for a log with damage at its start; or NULL.
 */
const struct trace_format *trace_format_sniff(struct span head);

/* The bytes behind a byte order mark in UTF-8, if there is one. */
struct span trace_behind_mark(struct span head);

#endif
