/*
 * The parts of `sunproxy trace`: each is a command of its own with a file of its own; trace.c finds
 * it.
 */
#ifndef SUNPROXY_STUDY_TRACE_TRACE_H
#define SUNPROXY_STUDY_TRACE_TRACE_H

#include "cli/command.h"

extern const struct command command_trace_convert;
extern const struct command command_trace_describe;
extern const struct command command_trace_generate;

#endif
