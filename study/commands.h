/*
 * The commands that need no server, one file each.
 */
#ifndef SUNPROXY_STUDY_COMMANDS_H
#define SUNPROXY_STUDY_COMMANDS_H

#include "cli/command.h"

extern const struct command command_simulate;
extern const struct command command_advise;
extern const struct command command_report;
extern const struct command command_policies;
extern const struct command command_trace;

#endif
