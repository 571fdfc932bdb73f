/*
 * The file of the request database among other files: what stands under its name before SQLite
 * opens it, where it is later on, and the write-ahead log and the index beside it. SQLite finds
 * these two by name, so that those of a file that was moved would be taken for the next one's.
 */
#ifndef SUNPROXY_SERVER_LOGS_REQUEST_FILE_H
#define SUNPROXY_SERVER_LOGS_REQUEST_FILE_H

#include <sys/types.h>

#include "base/buf.h"

/* A file beside the database, under the name that the database had when it was opened. */
struct request_beside {
    char *path;
    dev_t device;
    ino_t inode; /* 0: unknown */
};

struct request_file {
    char *path;
    int fd; /* O_PATH: closing it gives up no lock of SQLite; -1: none */
    struct request_beside log, index;
};

#define REQUEST_FILE_NONE ((struct request_file){.fd = -1})

/* Where an open file is. */
enum request_place {
    REQUEST_NAMED, /* under the name that it was opened by */
    REQUEST_MOVED,
    REQUEST_REMOVED, /* it has no name */
};

/*
 * Makes the file if there is none, with mode 0640, and removes what another one has left beside an
 * empty one. False with a sentence in `why`, as for a file that is no SQLite database.
 */
bool request_file_prepare(const char *path, struct buf *why);

/*
 * Notes file, log and index, which SQLite has open. A result code of SQLite. request_file_free()
 * frees what was noted, in any case.
 */
int request_file_note(struct request_file *file, const char *path);

enum request_place request_file_place(const struct request_file *file);

/*
 * Removes log and index, if they are still those that were noted. SQLite does that only for a file
 * that has its name.
 */
void request_file_remove_log(const struct request_file *file);

void request_file_free(struct request_file *file);

#endif
