/*
 * The formats that this library writes. For write.c only.
 */
#ifndef SUNPROXY_TRACE_WRITE_WRITERS_H
#define SUNPROXY_TRACE_WRITE_WRITERS_H

#include "trace/write/write.h"

extern const struct trace_writer trace_writer_tsv;
extern const struct trace_writer trace_writer_urls;
extern const struct trace_writer trace_writer_oracle;
extern const struct trace_writer trace_writer_chrome;

#endif
