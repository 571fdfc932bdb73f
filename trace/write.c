#include "trace/write.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/writers.h"

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

/* A new file beside the one that is meant, which then takes its place. */
static int
write_beside(const struct trace *trace, const struct trace_writer *writer,
             const struct trace_write_options *options, const char *path)
{
    char beside[PATH_MAX];
    mode_t mask = umask(0);
    FILE *file;
    int error = 0;
    int fd;

    umask(mask);
    if (snprintf(beside, sizeof(beside), "%s.XXXXXX", path) >= (int)sizeof(beside))
        return ENAMETOOLONG;
    fd = mkstemp(beside);
    if (fd < 0)
        return errno;
    if (writer->files_only) {
        close(fd);
        error = writer->write_file(trace, options, beside);
    } else {
        file = fdopen(fd, "w");
        if (!file) {
            error = errno;
            close(fd);
        } else {
            error = write_stream(trace, writer, options, file);
            if (fclose(file) != 0 && error == 0)
                error = errno;
        }
    }
    if (error == 0 && (chmod(beside, 0666 & ~mask) != 0 || rename(beside, path) != 0))
        error = errno;
    if (error != 0)
        unlink(beside);
    return error;
}

bool
trace_write(const struct trace *trace, const struct trace_writer *writer,
            const struct trace_write_options *options, const char *path, char *why, size_t why_size)
{
    bool to_stdout = strcmp(path, "-") == 0;
    struct stat st;
    int error;

    if (to_stdout && writer->files_only) {
        snprintf(why, why_size, "the format %s can only be written to a file", writer->name);
        return false;
    }
    /* What is no regular file, such as /dev/null or a FIFO, is written and not replaced. */
    if (!to_stdout && !writer->files_only && stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        FILE *file = fopen(path, "we");

        error = file ? write_stream(trace, writer, options, file) : errno;
        if (file && fclose(file) != 0 && error == 0)
            error = errno;
    } else {
        error = to_stdout ? write_stream(trace, writer, options, stdout)
                          : write_beside(trace, writer, options, path);
    }
    if (error != 0)
        snprintf(why, why_size, "cannot write %s: %s", to_stdout ? "to standard output" : path,
                 strerror(error));
    return error == 0;
}
