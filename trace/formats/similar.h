/*
 * The format whose typical line resembles a given line most: for the message about a file of an
 * unknown format.
 */
#ifndef SUNPROXY_TRACE_FORMATS_SIMILAR_H
#define SUNPROXY_TRACE_FORMATS_SIMILAR_H

#include "trace/trace.h"

/*
 * Compares the line with each format's sample by Dice's coefficient of their features: pairs of
 * neighbouring characters, of which letters and digits are reduced to their kind, and words. NULL
 * if no sample resembles it.
 */
const struct trace_format *trace_format_most_similar(struct span line);

#endif
