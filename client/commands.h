/*
 * The commands that talk to a server, one file each.
 */
#ifndef SUNPROXY_CLIENT_COMMANDS_H
#define SUNPROXY_CLIENT_COMMANDS_H

#include "cli/command.h"

extern const struct command command_get;
extern const struct command command_replay;
extern const struct command command_stat;
extern const struct command command_set;
extern const struct command command_purge;
extern const struct command command_verify;
extern const struct command command_ping;
extern const struct command command_reload;
extern const struct command command_origin;
extern const struct command command_explain;
extern const struct command command_passwd;
extern const struct command command_store;

#endif
