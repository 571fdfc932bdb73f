#include "trace/write/write.h"

#include <errno.h>
#include <strings.h>

#include "base/save.h"
#include "trace/write/writers.h"

const struct trace_writer *const trace_writers[] = {
    &trace_writer_tsv, &trace_writer_urls, &trace_writer_oracle, &trace_writer_chrome, NULL,
};

const struct trace_writer *
trace_writer_find(const char *name)
{
    for (size_t i = 0; trace_writers[i]; i++) {
        if (strcmp(trace_writers[i]->name, name) == 0)
            return trace_writers[i];
    }
    return NULL;
}

const struct trace_writer *
trace_writer_for(const char *path)
{
    static const struct {
        const char *ending;
        const struct trace_writer *writer;
    } endings[] = {
        {".tsv", &trace_writer_tsv},       {".urls", &trace_writer_urls},
        {".txt", &trace_writer_urls},      {".oracleGeneral", &trace_writer_oracle},
        {".bin", &trace_writer_oracle},    {"History", &trace_writer_chrome},
        {".sqlite", &trace_writer_chrome},
    };
    size_t len = strlen(path);

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        size_t end = strlen(endings[i].ending);

        if (len >= end && strcasecmp(path + len - end, endings[i].ending) == 0)
            return endings[i].writer;
    }
    return NULL;
}

static int
write_stream(const struct trace *trace, const struct trace_writer *writer,
             const struct trace_write_options *options, FILE *file)
{
    int error;

    errno = 0;
    error = writer->write(trace, options, file);
    if (error == 0 && (fflush(file) != 0 || ferror(file)))
        error = errno ? errno : EIO;
    return error;
}

static int
write_file(const struct trace *trace, const struct trace_writer *writer,
           const struct trace_write_options *options, const char *path)
{
    struct save save;
    int error = save_open(&save, path, writer->files_only);
    int closed;

    if (error != 0)
        return error;
    error = writer->files_only ? writer->write_file(trace, options, save.temporary)
                               : write_stream(trace, writer, options, save.file);
    closed = save_close(&save, error == 0);
    return error != 0 ? error : closed;
}

bool
trace_write(const struct trace *trace, const struct trace_writer *writer,
            const struct trace_write_options *options, const char *path, char *why, size_t why_size)
{
    bool to_stdout = strcmp(path, "-") == 0;
    int error;

    if (to_stdout && writer->files_only) {
        snprintf(why, why_size, "the format %s can only be written to a file", writer->name);
        return false;
    }
    error = to_stdout ? write_stream(trace, writer, options, stdout)
                      : write_file(trace, writer, options, path);
    if (error == SAVE_NO_FILE)
        snprintf(why, why_size, "cannot write %s: it is no regular file, and %s needs one", path,
                 writer->summary);
    else if (error != 0)
        snprintf(why, why_size, "cannot write %s: %s", to_stdout ? "to standard output" : path,
                 strerror(error));
    return error == 0;
}

uint64_t
trace_write_raised(const struct trace *trace, const struct trace_writer *writer,
                   const struct trace_write_options *options)
{
    int64_t latest = INT64_MIN;
    uint64_t raised = 0;

    for (size_t i = 0; writer->by_time && trace->times_us && i < trace->request_count; i++) {
        if (trace_write_skips(writer, options, i))
            continue;
        raised += trace->times_us[i] < latest;
        latest = trace->times_us[i] > latest ? trace->times_us[i] : latest;
    }
    return raised;
}
