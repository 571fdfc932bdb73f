/*
 * libCacheSim's oracleGeneral: see oracle.c. The ids are the format's own numbers where it has
 * them, else our numbers from 1 on. Sizes that are not known are 1, because libCacheSim passes over
 * requests for 0 bytes; times are seconds, as far as they fit.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "trace/write/writers.h"

#define RECORD 24u
#define MICRO 1000000
#define NEVER UINT64_MAX

/* By request: the number, from 1, among those written, of the next for its id; or NEVER. */
static uint64_t *
find_next(const struct trace *t, const struct trace_write_options *options)
{
    uint64_t *next = malloc((t->request_count + 1) * sizeof(*next));
    uint64_t *seen = malloc((t->url_count + 1) * sizeof(*seen));
    uint64_t number = 0;

    if (!next || !seen) {
        free(next);
        free(seen);
        return NULL;
    }
    for (size_t i = 0; i < t->url_count; i++)
        seen[i] = NEVER;
    for (size_t i = 0; i < t->request_count; i++)
        number += !trace_write_skips(&trace_writer_oracle, options, i);
    for (size_t i = t->request_count; i-- != 0;) {
        if (trace_write_skips(&trace_writer_oracle, options, i))
            continue;
        next[i] = seen[t->ids[i]];
        seen[t->ids[i]] = number--;
    }
    free(seen);
    return next;
}

static uint32_t
seconds_of(int64_t us)
{
    int64_t seconds = us / MICRO;

    return seconds < 0 ? 0 : seconds > UINT32_MAX ? UINT32_MAX : (uint32_t)seconds;
}

static uint32_t
size_of(const struct trace *t, size_t request)
{
    return t->sizes && t->sizes[request] != TRACE_SIZE_UNKNOWN ? t->sizes[request] : 1;
}

static int
write_records(const struct trace *t, const struct trace_write_options *options, FILE *file)
{
    uint64_t *next = find_next(t, options);

    if (!next)
        return ENOMEM;
    for (size_t i = 0; i < t->request_count && !ferror(file); i++) {
        char record[RECORD];
        uint32_t time = htole32(t->times_us ? seconds_of(t->times_us[i]) : 0);
        uint64_t id = htole64(t->numbers ? t->numbers[t->ids[i]] : t->ids[i] + UINT64_C(1));
        uint32_t size = htole32(size_of(t, i));
        uint64_t then = htole64(next[i]);

        if (trace_write_skips(&trace_writer_oracle, options, i))
            continue;
        memcpy(record, &time, sizeof(time));
        memcpy(record + 4, &id, sizeof(id));
        memcpy(record + 12, &size, sizeof(size));
        memcpy(record + 16, &then, sizeof(then));
        fwrite(record, sizeof(record), 1, file);
    }
    free(next);
    return 0;
}

const struct trace_writer trace_writer_oracle = {
    .name = "oracle",
    .summary = "libCacheSim's oracleGeneral",
    .reads_only = true,
    .write = write_records,
};
