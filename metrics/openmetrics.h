/*
 * The metrics as text for a monitoring system: OpenMetrics 1.0, or the older text format of
 * Prometheus (version 0.0.4), which names a counter's family with its suffix _total and has no
 * units.
 *
 * Names begin with sunproxy_. Durations are in seconds, the base unit of both formats: the family
 * NAME_microseconds of the table is exposed as NAME_seconds.
 */
#ifndef SUNPROXY_METRICS_OPENMETRICS_H
#define SUNPROXY_METRICS_OPENMETRICS_H

#include "base/buf.h"
#include "metrics/metrics.h"

enum exposition {
    EXPOSITION_PROMETHEUS,
    EXPOSITION_OPENMETRICS,
};

/* The media type of a format, for Content-Type. */
const char *exposition_media_type(enum exposition format);

/*
 * The format to answer a request with, by the value of its Accept field (empty if it has none):
 * OpenMetrics if that is accepted at least as willingly as text/plain (RFC 9110, section 12.5.1).
 */
enum exposition exposition_choose(struct span accept);

/* Appends all metrics with their current values. False without memory. [any thread] */
bool exposition_write(struct metrics *metrics, enum exposition format, struct buf *out);

#endif
