#include "client/command.h"

#include <stdio.h>

int
command_help(const struct command *command)
{
    fputs(command->help, stdout);
    return EX_OK;
}

int
command_usage(const struct command *command)
{
    fprintf(stderr, "Try 'sunproxy %s --help'.\n", command->name);
    return EX_USAGE;
}
