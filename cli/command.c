#include "cli/command.h"

#include <getopt.h>
#include <stdbool.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/output.h"

const struct command *
command_find(const struct command *const *commands, const char *word)
{
    struct nearest nearest = NEAREST_TO(word);
    char ask[80];
    bool option = *word == '-';
    size_t before = 0; /* characters before the last word */

    for (const struct command *const *at = commands; *at; at++) {
        const char *space = strrchr((*at)->name, ' ');

        before = space ? (size_t)(space - (*at)->name) + 1 : 0;
        if (strcmp((*at)->name + before, word) == 0)
            return *at;
        if (!option)
            nearest_offer(&nearest, (*at)->name + before);
    }
    if (option) {
        nearest_offer(&nearest, "--help");
        if (before == 0)
            nearest_offer(&nearest, "--version");
        output_complain("unknown option '%s'%s", word, nearest_ask(&nearest, ask, sizeof(ask)));
    } else {
        output_complain("unknown command '%.*s%s'%s", (int)before, commands[0]->name, word,
                        nearest_ask(&nearest, ask, sizeof(ask)));
    }
    fprintf(stderr, "Try 'sunproxy %.*s--help'.\n", (int)before, commands[0]->name);
    return NULL;
}

void
command_print_name(FILE *to, const char *name, const char *summary)
{
    fprintf(to, "  %-15s  %s\n", name, summary);
}

int
command_read(const struct command *command, void *const *into, int argc, char **argv)
{
    int status = options_read(command->options, into, argc, argv), words = argc - optind;

    if (status == OPTIONS_HELP)
        return command_help(command);
    if (status != EX_OK)
        return status == EX_USAGE ? command_usage(command) : status;
    if (words >= command->least && words <= command->most)
        return COMMAND_GO_ON;
    if (words < command->least)
        output_complain("a %s is missing", command->argument);
    else if (command->most == 0)
        output_complain("unexpected argument '%s'", argv[optind]);
    else
        output_complain("one %s at a time", command->argument);
    return command_usage(command);
}

int
command_help(const struct command *command)
{
    fputs(command->about, stdout);
    if (command->options[0]) {
        putchar('\n');
        options_print(stdout, command->options);
    }
    if (command->after)
        printf("\n%s", command->after);
    if (command->lists)
        command->lists();
    return EX_OK;
}

int
command_usage(const struct command *command)
{
    fprintf(stderr, "Try 'sunproxy %s --help'.\n", command->name);
    return EX_USAGE;
}

int
command_run_part(const struct command *command, const char *missing, int argc, char **argv)
{
    static char name[64];
    const struct command *part;

    if (argc == 1) {
        output_complain("%s", missing);
        return command_usage(command);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return command_help(command);
    part = command_find(command->parts, argv[1]);
    if (!part)
        return EX_USAGE;
    snprintf(name, sizeof(name), "sunproxy %s", part->name);
    output_name(name);
    argv[1] = name;
    return part->run(argc - 1, argv + 1);
}
