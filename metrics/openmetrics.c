#include "metrics/openmetrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/field.h"

#define PREFIX "sunproxy_"
#define MICROSECONDS "microseconds"

/* A number of microseconds in seconds, without zeros at its end but for one after the point. */
static void
put_seconds(struct buf *out, uint64_t us)
{
    char fraction[8];
    size_t len = (size_t)snprintf(fraction, sizeof(fraction), "%06" PRIu64, us % 1000000);

    while (len > 1 && fraction[len - 1] == '0')
        len--;
    buf_printf(out, "%" PRIu64 ".%.*s", us / 1000000, (int)len, fraction);
}

static bool
is_duration(const struct metric_row *row)
{
    return strcmp(row->unit, MICROSECONDS) == 0;
}

static void
put_value(struct buf *out, const struct metric_row *row, uint64_t value)
{
    if (is_duration(row))
        put_seconds(out, value);
    else
        buf_printf(out, "%" PRIu64, value);
    buf_append_char(out, '\n');
}

static void
put_family(struct buf *out, const struct metric_row *row)
{
    size_t len = strlen(row->name);

    buf_append_str(out, PREFIX);
    if (is_duration(row)) {
        buf_append(out, row->name, len - strlen(MICROSECONDS));
        buf_append_str(out, "seconds");
    } else {
        buf_append(out, row->name, len);
    }
}

static void
put_descriptor(struct buf *out, const char *what, const struct metric_row *row,
               enum exposition format, const char *text)
{
    buf_printf(out, "# %s ", what);
    put_family(out, row);
    if (row->kind == METRIC_KIND_COUNTER && format == EXPOSITION_PROMETHEUS)
        buf_append_str(out, "_total");
    buf_printf(out, " %s\n", text);
}

static void
put_descriptors(struct buf *out, const struct metric_row *row, enum exposition format)
{
    static const char *const kinds[] = {
        [METRIC_KIND_COUNTER] = "counter",
        [METRIC_KIND_GAUGE] = "gauge",
        [METRIC_KIND_HISTOGRAM] = "histogram",
    };

    put_descriptor(out, "HELP", row, format, row->help);
    put_descriptor(out, "TYPE", row, format, kinds[row->kind]);
    if (row->unit[0] && format == EXPOSITION_OPENMETRICS)
        put_descriptor(out, "UNIT", row, format, is_duration(row) ? "seconds" : row->unit);
}

static void
put_simple(struct buf *out, const struct metric_row *row, uint64_t value)
{
    put_family(out, row);
    if (row->kind == METRIC_KIND_COUNTER)
        buf_append_str(out, "_total");
    if (row->labels[0])
        buf_printf(out, "{%s}", row->labels);
    buf_append_char(out, ' ');
    put_value(out, row, value);
}

/* The values of a histogram as metrics_read() has them; returns those behind it. */
static const uint64_t *
put_histogram(struct buf *out, const struct metric_row *row, const uint64_t *values)
{
    for (unsigned i = 0; i < METRICS_BUCKETS; i++) {
        uint64_t bound = metrics_bucket_bound(i);

        put_family(out, row);
        buf_append_str(out, "_bucket{le=\"");
        if (bound == UINT64_MAX)
            buf_append_str(out, "+Inf");
        else
            put_seconds(out, bound);
        buf_printf(out, "\"} %" PRIu64 "\n", *values++);
    }
    put_family(out, row);
    buf_printf(out, "_count %" PRIu64 "\n", *values++);
    put_family(out, row);
    buf_append_str(out, "_sum ");
    put_value(out, row, *values++);
    return values;
}

bool
exposition_write(struct metrics *metrics, enum exposition format, struct buf *out)
{
    const struct metric_row *before = NULL;
    const struct metric_sample *samples;
    size_t rows = metrics_row_count(metrics);
    uint64_t *values = calloc(metrics_samples(metrics, &samples), sizeof(*values));
    const uint64_t *value = values;

    if (!values)
        return false;
    metrics_read(metrics, values);
    for (size_t i = 0; i < rows; i++) {
        const struct metric_row *row = metrics_row(metrics, i);

        if (!row) {
            value++;
            continue;
        }
        if (!before || strcmp(before->name, row->name) != 0)
            put_descriptors(out, row, format);
        before = row;
        if (row->kind == METRIC_KIND_HISTOGRAM)
            value = put_histogram(out, row, value);
        else
            put_simple(out, row, *value++);
    }
    if (format == EXPOSITION_OPENMETRICS)
        buf_append_str(out, "# EOF\n");
    free(values);
    return !buf_failed(out);
}

/* ---- negotiation ----------------------------------------------------------------------------- */

const char *
exposition_media_type(enum exposition format)
{
    return format == EXPOSITION_OPENMETRICS
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8";
}

/* The weight of a member of Accept in thousandths; 1000 if it has none, 0 if that is malformed. */
static unsigned
weight_of(struct span parameters)
{
    const char *q = memmem(parameters.ptr, parameters.len, "q=", 2);
    unsigned weight, scale = 100;

    if (!q)
        return 1000;
    q += 2;
    if (q == parameters.ptr + parameters.len || (*q != '0' && *q != '1'))
        return 0;
    weight = (unsigned)(*q++ - '0') * 1000;
    if (q < parameters.ptr + parameters.len && *q == '.')
        for (q++; q < parameters.ptr + parameters.len && *q >= '0' && *q <= '9' && scale; q++) {
            weight += (unsigned)(*q - '0') * scale;
            scale /= 10;
        }
    return weight < 1000 ? weight : 1000;
}

enum exposition
exposition_choose(struct span accept)
{
    unsigned openmetrics = 0, text = 0;
    struct span member;

    while (http_next_member(&accept, &member)) {
        const char *semicolon = memchr(member.ptr, ';', member.len);
        size_t len = semicolon ? (size_t)(semicolon - member.ptr) : member.len;
        struct span type = http_trim(span_of(member.ptr, len));
        unsigned weight = weight_of(span_of(member.ptr + len, member.len - len));

        if (http_name_is(type, "application/openmetrics-text"))
            openmetrics = weight > openmetrics ? weight : openmetrics;
        else if (http_name_is(type, "text/plain"))
            text = weight > text ? weight : text;
    }
    return openmetrics && openmetrics >= text ? EXPOSITION_OPENMETRICS : EXPOSITION_PROMETHEUS;
}
