/*
 * A model of a disk under the files of a store, for programs in which its calls are wrapped
 * (Makefile, FAULT_WRAPS): calls fail, or hang, or find it full. What was not synced is lost in
 * lost_writes.h. Calls of all threads are concerned.
 */
#ifndef SUNPROXY_TESTS_STORE_DISK_MODEL_H
#define SUNPROXY_TESTS_STORE_DISK_MODEL_H

#include <stdbool.h>

/* The n-th call from now on fails with this errno, and so do all behind it if `all`; 0: none. */
void disk_model_fail(unsigned n, int error, bool all);

/* The name of the last call that has failed since; NULL: none. */
const char *disk_model_failed(void);

/* Reads, writes and syncs wait until this is false. */
void disk_model_hang(bool hangs);
bool disk_model_hangs(void);

/* The same from the moment on at which a file is opened whose name begins so. */
void disk_model_hang_from(const char *kind);

/* Reads succeed, and all else fails with EROFS. */
void disk_model_read_only(bool read_only);

/* While this folder has more segments, writes fail with ENOSPC. NULL: no more. */
void disk_model_full(const char *folder, unsigned segments);

#endif
