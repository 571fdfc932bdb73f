/*
 * sunproxy: the client of sunproxyd. Finds the subcommand and runs it.
 */
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/output.h"
#include "client/commands.h"
#include "study/commands.h"

static const struct command command_help_on;

static const struct command *const commands[] = {
    &command_get,
    &command_replay,
    &command_simulate,
    &command_advise,
    &command_report,
    &command_policies,
    &command_trace,
    &command_store,
    &command_stat,
    &command_set,
    &command_purge,
    &command_verify,
    &command_ping,
    &command_reload,
    &command_origin,
    &command_explain,
    &command_passwd,
    &command_help_on,
    NULL,
};

static void
print_commands(FILE *to)
{
    fputs("usage: sunproxy COMMAND [OPTION...] [ARGUMENT...]\n\nCommands:\n", to);
    for (size_t i = 0; commands[i]; i++)
        fprintf(to, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n"
          "  --help     this text\n"
          "  --version  the version of this program\n",
          to);
}

/* The arguments name a command and one of its parts. */
static int
help(int argc, char **argv)
{
    const struct command *const *among = commands;
    const struct command *command = NULL;

    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return command_help(&command_help_on);
    for (int i = 1; i < argc; i++) {
        if (!among) {
            output_complain("unknown command '%s %s'", command->name, argv[i]);
            return command_usage(command);
        }
        command = command_find(among, argv[i]);
        if (!command)
            return EX_USAGE;
        among = command->parts;
    }
    if (command)
        return command_help(command);
    print_commands(stdout);
    return EX_OK;
}

static const struct command command_help_on = {
    .name = "help",
    .summary = "help on a command: sunproxy help COMMAND",
    .about = "usage: sunproxy help [COMMAND [PART]]\n\n"
             "Prints what 'sunproxy COMMAND --help' does; alone, the commands.\n",
    .run = help,
};

static int
run(const struct command *command, int argc, char **argv)
{
    static char name[64];

    snprintf(name, sizeof(name), "sunproxy %s", command->name);
    output_name(name);
    argv[0] = name;
    return command->run(argc, argv);
}

/*
 * The command whose own options are before its name, as in "sunproxy --port 4711 get URL"; it is
 * moved before them. NULL: there is none.
 */
static const struct command *
find_behind_options(int argc, char **argv)
{
    for (size_t i = 0; commands[i]; i++) {
        int at = options_skip(commands[i]->options, argc, argv);
        char *name;

        if (at == 1 || at == argc || strcmp(argv[at], commands[i]->name) != 0)
            continue;
        name = argv[at];
        memmove(&argv[2], &argv[1], (size_t)(at - 1) * sizeof(*argv));
        argv[1] = name;
        return commands[i];
    }
    return NULL;
}

static int
dispatch(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    const struct command *command;

    if (!name) {
        print_commands(stderr);
        return EX_USAGE;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        puts("sunproxy " SUNPROXY_VERSION);
        return EX_OK;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_commands(stdout);
        return EX_OK;
    }
    command = name[0] == '-' ? find_behind_options(argc, argv) : NULL;
    if (!command)
        command = command_find(commands, name);
    return command ? run(command, argc - 1, argv + 1) : EX_USAGE;
}

/*
 * If a standard descriptor is closed, the next socket would get its number, and a page would be
 * written to the server. Replaces it by a descriptor to which writing fails.
 */
static bool
occupy_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd)
            return false;
    return true;
}

int
main(int argc, char **argv)
{
    if (!occupy_standard_descriptors())
        return EX_OSERR;
    /* URLs are UTF-8 whatever the environment says: libidn2 goes by the locale's characters. */
    setlocale(LC_CTYPE, "C.UTF-8");
    /* A closed pipe and a file at its size limit are write errors, which are reported. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    return output_finish(dispatch(argc, argv));
}
