#include "client/get/get_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "cli/output.h"

bool
get_data_add(struct get_data *data, enum get_data_kind kind, const char *text)
{
    struct get_data_part *parts = realloc(data->parts, (data->count + 1) * sizeof(*parts));
    bool is_file = kind != GET_DATA_RAW && *text == '@';

    if (!parts)
        return false;
    data->parts = parts;
    parts[data->count++] = (struct get_data_part){
        .text = is_file ? text + 1 : text,
        .is_file = is_file,
        .strips = is_file && kind == GET_DATA_FORM,
        .length = is_file ? -1 : (int64_t)strlen(text),
    };
    data->uses_stdin |= is_file && strcmp(text, "@-") == 0;
    return true;
}

void
get_data_free(struct get_data *data)
{
    free(data->parts);
    *data = (struct get_data){.parts = NULL};
}

static bool
is_stdin(const struct get_data_part *part)
{
    return part->is_file && strcmp(part->text, "-") == 0;
}

/* ---- lengths --------------------------------------------------------------------------------- */

static bool
is_stripped(const struct get_data_part *part, char c)
{
    return part->strips && (c == '\r' || c == '\n' || c == '\0');
}

/* The number of bytes that are sent of an open file; -1 with errno set if it cannot be read. */
static int64_t
count_bytes(const struct get_data_part *part, FILE *file)
{
    char bytes[16384];
    int64_t length = 0;
    size_t len;

    while ((len = fread(bytes, 1, sizeof(bytes), file)) != 0)
        for (size_t i = 0; i < len; i++)
            length += !is_stripped(part, bytes[i]);
    return ferror(file) ? -1 : length;
}

/* 0 or an errno. The length of what is no regular file stays unknown. */
static int
measure(struct get_data_part *part)
{
    FILE *file = fopen(part->text, "re");
    struct stat there;
    int error = 0;

    if (!file)
        return errno;
    if (fstat(fileno(file), &there) != 0) {
        error = errno;
    } else if (S_ISDIR(there.st_mode)) {
        error = EISDIR;
    } else if (S_ISREG(there.st_mode)) {
        part->length = part->strips ? count_bytes(part, file) : (int64_t)there.st_size;
        error = part->length < 0 ? errno : 0;
    }
    fclose(file);
    return error;
}

int
get_data_prepare(struct get_data *data)
{
    for (size_t i = 0; i < data->count; i++) {
        struct get_data_part *part = &data->parts[i];
        int error = part->is_file && !is_stdin(part) ? measure(part) : 0;

        if (error) {
            output_complain("cannot read %s: %s", part->text, strerror(error));
            return EX_NOINPUT;
        }
    }
    return EX_OK;
}

int64_t
get_data_length(const struct get_data *data)
{
    int64_t length = data->count ? (int64_t)data->count - 1 : 0; /* '&' */

    for (size_t i = 0; i < data->count; i++) {
        if (data->parts[i].length < 0)
            return -1;
        length += data->parts[i].length;
    }
    return length;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void
close_file(struct get_data_reader *reader)
{
    if (reader->file && reader->file != stdin)
        fclose(reader->file);
    reader->file = NULL;
}

static void
next_part(struct get_data_reader *reader)
{
    const struct get_data_part *part = &reader->data->parts[reader->part];

    if (part->is_file && part->length >= 0 && reader->taken != part->length)
        reader->failed = true;
    close_file(reader);
    reader->part++;
    reader->offset = 0;
    reader->taken = 0;
    reader->begun = false;
}

static size_t
read_text(struct get_data_reader *reader, const struct get_data_part *part, char *bytes,
          size_t size)
{
    size_t len = (size_t)part->length - reader->offset;

    if (len > size)
        len = size;
    memcpy(bytes, part->text + reader->offset, len);
    reader->offset += len;
    return len;
}

/* Reads until at least one byte is to be sent, or the end. */
static size_t
read_file(struct get_data_reader *reader, const struct get_data_part *part, char *bytes,
          size_t size)
{
    size_t len, kept = 0;

    if (!reader->file)
        reader->file = is_stdin(part) ? stdin : fopen(part->text, "re");
    if (!reader->file) {
        reader->failed = true;
        return 0;
    }
    while (kept == 0 && (len = fread(bytes, 1, size, reader->file)) != 0) {
        if (!part->strips) {
            kept = len;
            break;
        }
        for (size_t i = 0; i < len; i++)
            if (!is_stripped(part, bytes[i]))
                bytes[kept++] = bytes[i];
    }
    reader->taken += (int64_t)kept;
    /* A file that has become longer would break the length that the request states. */
    if (ferror(reader->file) || (part->length >= 0 && reader->taken > part->length))
        reader->failed = true;
    return reader->failed ? 0 : kept;
}

size_t
get_data_read(struct get_data_reader *reader, char *bytes, size_t size)
{
    while (!reader->failed && size != 0 && reader->part < reader->data->count) {
        const struct get_data_part *part = &reader->data->parts[reader->part];
        size_t len;

        if (!reader->begun) {
            reader->begun = true;
            if (reader->part != 0) {
                *bytes = '&';
                return 1;
            }
        }
        len = part->is_file ? read_file(reader, part, bytes, size)
                            : read_text(reader, part, bytes, size);
        if (len != 0)
            return len;
        if (!reader->failed)
            next_part(reader);
    }
    return 0;
}

bool
get_data_rewind(struct get_data_reader *reader)
{
    const struct get_data *data = reader->data;
    bool touched = reader->part != 0 || reader->begun;

    if (touched && data->uses_stdin)
        return false;
    close_file(reader);
    *reader = (struct get_data_reader){.data = data};
    return true;
}

void
get_data_close(struct get_data_reader *reader)
{
    close_file(reader);
}
