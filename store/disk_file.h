/*
 * Reading, writing and naming files of a store. Interrupted and partial calls are continued.
 */
#ifndef SUNPROXY_STORE_DISK_FILE_H
#define SUNPROXY_STORE_DISK_FILE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

#define DISK_NAME 48 /* bytes of a name */

/* Names in a store's folder: the file that is locked, and the kind of a journal. */
#define DISK_LOCK "lock"
#define DISK_JOURNAL "journal"

/* The errno of disk_open() for what is no regular file. */
#define DISK_NO_FILE ENOTBLK

/*
 * Opens a regular file of a folder. A link is not followed, and a FIFO not waited for. -1 with
 * errno.
 */
int disk_open(int folder, const char *name, int flags);

/* The sentence for an errno of these functions. */
const char *disk_strerror(int error);

/* Appends why a file of a folder cannot be used: its name, the error, and for want of permission
 * its owner. `name` "": the folder itself. */
void disk_tell(struct buf *why, int folder, const char *name, int error);

/* "KIND-NUMBER", as disk_name_read() reads it: false for any other name. */
void disk_name_write(char name[DISK_NAME], const char *kind, uint64_t number);
bool disk_name_read(const char *name, const char *kind, uint64_t *number);

/* Writes all, or returns an errno. */
int disk_write(int fd, const void *bytes, size_t len, uint64_t offset);

/* Reads up to the end of the file; -1 with errno. */
ssize_t disk_read(int fd, void *bytes, size_t len, uint64_t offset);

/* Bytes of the file of this name; 0: it is not there. */
uint64_t disk_size(int folder, const char *kind, uint64_t number);

/* False with errno. */
bool disk_unlink(int folder, const char *kind, uint64_t number);

/* The run of the machine that the monotonic clock belongs to; another one each time if that is not
 * known. */
uint64_t disk_boot(void);

/* Calls `visit` with the number of each file of this kind in a folder. 0 or an errno. */
int disk_list(int folder, const char *kind, void (*visit)(void *context, uint64_t number),
              void *context);

#endif
