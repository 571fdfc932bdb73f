#include "cli/replay_log.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/printable.h"
#include "base/save.h"

/* A URL and 64 victims of 8 KiB each, each byte of them escaped. */
#define MAX_LINE (4u << 20)

struct replay_log {
    pthread_mutex_t lock; /* protects the next fields */
    FILE *file;
    struct buf line;
    enum replay_log_format format;
    bool with_run;
    int error;
};

const char *
replay_outcome_name(enum replay_outcome outcome)
{
    static const char *const names[REPLAY_OUTCOMES] = {"miss",   "hit",      "evicted", "coalesced",
                                                       "bypass", "uncached", "failed"};

    return names[outcome];
}

enum replay_log_format
replay_log_format_of(const char *path)
{
    static const char ending[] = ".jsonl";
    size_t len = strlen(path);

    return len >= sizeof(ending) - 1 && strcmp(path + len - (sizeof(ending) - 1), ending) == 0
               ? REPLAY_LOG_JSONL
               : REPLAY_LOG_TSV;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* The letter of the escape for a byte that would end a field or a line, or 0. */
static char
escape_of(char c, bool in_list)
{
    switch (c) {
    case '\t':
        return 't';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\0':
        return '0';
    case '\\':
        return '\\';
    case ' ':
        return in_list ? 's' : 0;
    default:
        return 0;
    }
}

static void
append_escaped(struct buf *out, struct span text, bool in_list)
{
    size_t plain = 0, i = 0;

    while (i < text.len) {
        char escape = escape_of(text.ptr[i], in_list);
        size_t len = escape ? 0 : printable_length(span_of(text.ptr + i, text.len - i));

        i += len;
        if (len != 0)
            continue;
        buf_append(out, text.ptr + plain, i - plain);
        if (escape)
            buf_printf(out, "\\%c", escape);
        else
            buf_printf(out, "\\x%02x", (unsigned char)text.ptr[i]);
        i++;
        plain = i;
    }
    buf_append(out, text.ptr + plain, text.len - plain);
}

static void
format_tsv(struct buf *out, bool with_run, const struct replay_entry *entry)
{
    if (with_run)
        buf_printf(out, "%u\t", entry->run);
    buf_printf(out, "%" PRIu64 "\t", entry->number);
    append_escaped(out, entry->url, false);
    buf_printf(out, "\t%s\t", replay_outcome_name(entry->outcome));
    for (size_t i = 0; i < entry->victim_count; i++) {
        if (i != 0)
            buf_append_char(out, ' ');
        append_escaped(out, entry->victims[i], true);
    }
    if (entry->error)
        buf_printf(out, "\t%s", entry->error);
    else
        buf_printf(out, "\t%u", entry->status);
    buf_printf(out, "\t%" PRIu64 "\t%" PRIu64 "\n", entry->bytes, entry->us);
}

static void
format_jsonl(struct buf *out, bool with_run, const struct replay_entry *entry)
{
    struct json j;

    json_init(&j, out);
    json_open_object(&j, NULL);
    if (with_run)
        json_uint(&j, "run", entry->run);
    json_uint(&j, "number", entry->number);
    json_string(&j, "url", entry->url);
    json_cstring(&j, "outcome", replay_outcome_name(entry->outcome));
    json_open_array(&j, "victims");
    for (size_t i = 0; i < entry->victim_count; i++)
        json_string(&j, NULL, entry->victims[i]);
    json_close_array(&j);
    json_uint(&j, "evicted", entry->evicted);
    if (entry->error)
        json_null(&j, "status");
    else
        json_uint(&j, "status", entry->status);
    if (entry->error)
        json_cstring(&j, "error", entry->error);
    else
        json_null(&j, "error");
    json_uint(&j, "bytes", entry->bytes);
    json_uint(&j, "us", entry->us);
    json_close_object(&j);
    buf_append_char(out, '\n');
}

void
replay_log_format(struct buf *out, enum replay_log_format format, bool with_run,
                  const struct replay_entry *entry)
{
    if (format == REPLAY_LOG_TSV)
        format_tsv(out, with_run, entry);
    else
        format_jsonl(out, with_run, entry);
}

/* ---- the file -------------------------------------------------------------------------------- */

struct replay_log *
replay_log_open(const char *path, enum replay_log_format format, unsigned runs)
{
    struct replay_log *log = calloc(1, sizeof(*log));
    int error;

    if (!log)
        return NULL;
    errno = save_check(path);
    log->file = errno ? NULL : fopen(path, "we");
    if (!log->file) {
        error = errno;
        free(log);
        errno = error;
        return NULL;
    }
    pthread_mutex_init(&log->lock, NULL);
    buf_init(&log->line, MAX_LINE);
    log->format = format == REPLAY_LOG_BY_NAME ? replay_log_format_of(path) : format;
    log->with_run = runs > 1;
    if (log->format == REPLAY_LOG_TSV &&
        fprintf(log->file, "%snumber\turl\toutcome\tvictim\tstatus\tbytes\tus\n",
                log->with_run ? "run\t" : "") < 0)
        log->error = errno;
    return log;
}

int
replay_log_write(struct replay_log *log, const struct replay_entry *entry)
{
    int error;

    pthread_mutex_lock(&log->lock);
    if (!log->error) {
        buf_reset(&log->line);
        replay_log_format(&log->line, log->format, log->with_run, entry);
        if (buf_failed(&log->line))
            log->error = ENOMEM;
        else if (fwrite(log->line.data, 1, log->line.len, log->file) != log->line.len)
            log->error = errno ? errno : EIO;
    }
    error = log->error;
    pthread_mutex_unlock(&log->lock);
    return error;
}

int
replay_log_close(struct replay_log *log)
{
    int error;

    if (!log)
        return 0;
    error = log->error;
    if (fclose(log->file) != 0 && !error)
        error = errno;
    buf_free(&log->line);
    pthread_mutex_destroy(&log->lock);
    free(log);
    return error;
}
