/*
 * A model of a disk under the files of a store, for programs in which its calls are wrapped
 * (Makefile, FAULT_WRAPS): calls fail, or hang, and what was not synced is lost. It stands for a
 * device that does so, and does not show what a file system would do with the order of its own
 * writes. Calls of all threads are concerned.
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

/* While this folder has more segments, writes fail with ENOSPC. NULL: no more. */
void disk_model_full(const char *folder, unsigned segments);

/* Files of this folder are kept as of their last syncs in another one. NULL: no more. */
void disk_model_keep(const char *folder, const char *durable);

#endif
