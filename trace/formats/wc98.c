/*
 * The access logs of the 1998 World Cup's web site (Arlitt, Jin 1999; the Internet Traffic
 * Archive): records of 20 bytes, big endian: u32 time, client, object, size; u8 method, status,
 * type, server. The lower six bits of the status number the codes of HTTP.
 */
#include "trace/formats/formats.h"
#include "trace/formats/records.h"

#define RECORD 20u
#define MICRO INT64_C(1000000)
#define SNIFF_RECORDS 200u
/* 1998, with a margin of time zones. */
#define TIME_LOW 883526400u
#define TIME_HIGH 915235200u

static const char *const methods[] = {"GET",    "HEAD",  "POST",    "PUT",
                                      "DELETE", "TRACE", "OPTIONS", "CONNECT"};
static const unsigned statuses[] = {100, 101, 200, 201, 202, 203, 204, 205, 206, 300, 301, 302, 303,
                                    304, 305, 400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410,
                                    411, 412, 413, 414, 415, 500, 501, 502, 503, 504, 505};

#define METHODS (sizeof(methods) / sizeof(methods[0]))
#define STATUSES (sizeof(statuses) / sizeof(statuses[0]))

static bool
parse(const char *record, struct trace_request *request)
{
    uint32_t size = records_be32(record + 12);
    unsigned method = (unsigned char)record[16];
    unsigned status = (unsigned char)record[17] & 0x3fU;

    request->time_us = records_be32(record) * MICRO;
    request->number = records_be32(record + 8);
    request->size = size == UINT32_MAX ? -1 : (int64_t)size;
    /* Whatever is not in the tables is "other". */
    request->method = span_str(method < METHODS ? methods[method] : "OTHER");
    request->status = status < STATUSES ? statuses[status] : TRACE_STATUS_NONE;
    return true;
}

static bool
sniff(struct span head)
{
    size_t count = head.len / RECORD;
    uint32_t before = TIME_LOW;

    for (size_t i = 0; i < count && i < SNIFF_RECORDS; i++) {
        const char *record = head.ptr + i * RECORD;
        uint32_t time = records_be32(record);

        if (time < before || time > TIME_HIGH || (unsigned char)record[16] > METHODS)
            return false;
        before = time;
    }
    return count != 0;
}

static enum trace_error
read_log(struct input *in, const struct trace_options *options, struct trace_builder *builder,
         char *why, size_t why_size)
{
    (void)options;
    return records_read(in, builder, RECORD, parse, why, why_size);
}

const struct trace_format trace_format_wc98 = {
    .name = "wc98",
    .summary = "the binary access logs of the 1998 World Cup",
    .unit = "record",
    .sniff = sniff,
    .read = read_log,
};
