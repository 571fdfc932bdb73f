/*
 * Binary formats: the loop over records of one length, and numbers in either order of bytes.
 */
#ifndef SUNPROXY_TRACE_FORMATS_RECORDS_H
#define SUNPROXY_TRACE_FORMATS_RECORDS_H

#include <endian.h>

#include "trace/builder.h"
#include "trace/input.h"

/* Reads one record; false: it is malformed. `request` is empty before. */
typedef bool records_parse(const char *record, struct trace_request *request);

/* Reads all; what is left over at the end and is no whole record is an error with a sentence. */
enum trace_error records_read(struct input *in, struct trace_builder *builder, size_t size,
                              records_parse *parse, char *why, size_t why_size);

/* The sentence for an end within a record; TRACE_NOT_A_TRACE. */
enum trace_error records_cut_short(struct input *in, size_t size, char *why, size_t why_size);

static inline uint32_t
records_le32(const char *at)
{
    uint32_t word;

    memcpy(&word, at, sizeof(word));
    return le32toh(word);
}

static inline uint64_t
records_le64(const char *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof(word));
    return le64toh(word);
}

static inline uint32_t
records_be32(const char *at)
{
    uint32_t word;

    memcpy(&word, at, sizeof(word));
    return be32toh(word);
}

#endif
