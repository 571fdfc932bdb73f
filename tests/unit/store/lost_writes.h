/*
 * A model of a block device that loses what was not synced, under the files of a store: writes,
 * syncs, and changes of the folder are recorded, and the files are made again as a power failure
 * might have left them at any point. What was written and not synced is there, missing, or there
 * with some of its sectors. A file that was created is missing, and one that was removed is there,
 * until the folder is synced. It is stricter than a file system with a journal.
 *
 * The calls are those of disk_model.c. Files are not cut or renamed while they are recorded.
 */
#ifndef SUNPROXY_TESTS_STORE_LOST_WRITES_H
#define SUNPROXY_TESTS_STORE_LOST_WRITES_H

#include <stddef.h>
#include <stdint.h>

/* Records what is done to this folder from now on: what it has is on disk. NULL: ends, and forgets. */
void lost_writes_record(const char *folder);

/* How much has been done. */
size_t lost_writes_count(void);

/* How much was done when a file of this kind was last synced; 0: none was. */
size_t lost_writes_synced(const char *kind);

/* Makes this folder, which is not there, as of a power failure when that much was done. */
void lost_writes_make(const char *folder, size_t count, uint64_t *draws);

/* Done successfully. */
void lost_writes_note_write(int fd, const void *bytes, size_t len, uint64_t offset);
void lost_writes_note_sync(int fd);
void lost_writes_note_create(int folder, const char *name);
void lost_writes_note_unlink(int folder, const char *name);

#endif
