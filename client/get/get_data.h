/*
 * The body of the requests of `sunproxy get`, from --data and its relatives: texts and files,
 * joined by '&' as by curl. Files are read while they are sent.
 */
#ifndef SUNPROXY_CLIENT_GET_GET_DATA_H
#define SUNPROXY_CLIENT_GET_GET_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum get_data_kind {
    GET_DATA_FORM,   /* "@FILE" is a file, sent without CR, LF and zero bytes */
    GET_DATA_BINARY, /* "@FILE" is a file, sent as it is */
    GET_DATA_RAW,    /* '@' has no meaning */
};

struct get_data_part {
    const char *text; /* or the file's name; not owned */
    bool is_file;
    bool strips;    /* CR, LF and zero bytes of the file */
    int64_t length; /* in bytes; -1: not known before it is read */
};

/* All zeros: there is no body. */
struct get_data {
    struct get_data_part *parts; /* owned */
    size_t count;
    bool uses_stdin; /* a part is "@-": it can be sent once only */
};

/* Appends a part. The text must outlive it. False without memory. */
bool get_data_add(struct get_data *data, enum get_data_kind kind, const char *text);

void get_data_free(struct get_data *data);

/*
 * Opens each file once to see that it can be read, and finds out its length, which for one that is
 * stripped means to read it. EX_OK, or EX_NOINPUT after a complaint.
 */
int get_data_prepare(struct get_data *data);

/* Bytes of the whole; -1: not known. Of prepared data. */
int64_t get_data_length(const struct get_data *data);

/* A reader of the data. All zeros but for `data`: at the begin. */
struct get_data_reader {
    const struct get_data *data;
    size_t part;
    size_t offset; /* in a text */
    int64_t taken; /* bytes of this part that were read */
    FILE *file;    /* of this part, if open */
    bool begun;    /* this part, including its '&' */
    bool failed;   /* a file could not be read, or has another length than before */
};

/* Reads at most `size` bytes; 0 at the end or after a failure. */
size_t get_data_read(struct get_data_reader *reader, char *bytes, size_t size);

/* Goes back to the begin. False if that is not possible, since standard input was read. */
bool get_data_rewind(struct get_data_reader *reader);

/* Closes what is open. */
void get_data_close(struct get_data_reader *reader);

#endif
