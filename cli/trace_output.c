#include "cli/trace_output.h"

#include <inttypes.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/command.h"
#include "cli/output.h"

void
trace_print_writers(FILE *to)
{
    for (size_t i = 0; trace_writers[i]; i++)
        command_print_name(to, trace_writers[i]->name, trace_writers[i]->summary);
}

const struct trace_writer *
trace_choose_writer(const char *to, const char *output, const struct trace_writer *otherwise)
{
    const struct trace_writer *writer = to ? trace_writer_find(to) : trace_writer_for(output);
    struct nearest nearest = NEAREST_TO(to);
    char ask[80];

    if (!writer && !to)
        writer = otherwise;
    if (writer)
        return writer;
    for (size_t i = 0; to && trace_writers[i]; i++)
        nearest_offer(&nearest, trace_writers[i]->name);
    if (to)
        output_complain("no format to write is called '%s'%s", to,
                        nearest_ask(&nearest, ask, sizeof(ask)));
    else
        output_complain("--to is missing");
    fputs("There are:\n", stderr);
    trace_print_writers(stderr);
    return NULL;
}

int
trace_write_out(const struct trace *trace, const struct trace_writer *writer,
                const struct trace_write_options *options, const char *output)
{
    uint64_t raised = trace_write_raised(trace, writer, options);
    char why[1024];

    if (trace_write(trace, writer, options, output, why, sizeof(why))) {
        if (raised != 0)
            output_note("%s: %" PRIu64 " request%s earlier than a previous one got its time, to "
                        "keep the order",
                        output, raised, raised == 1 ? "" : "s");
        return EX_OK;
    }
    if (strcmp(output, "-") == 0 && output_is_unread())
        return EX_IOERR;
    output_complain("%s", why);
    if (strcmp(output, "-") != 0)
        return EX_CANTCREAT;
    return writer->files_only ? EX_USAGE : EX_IOERR;
}
