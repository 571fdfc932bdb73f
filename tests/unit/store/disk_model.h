/*
 * A model of a disk under the files of a store, for programs in which its calls are wrapped
 * (Makefile, FAULT_WRAPS): calls fail, or hang, or find it full. What was not synced is lost in
 * lost_writes.h. Calls of all threads are concerned.
 */
#ifndef SUNPROXY_TESTS_STORE_DISK_MODEL_H
#define SUNPROXY_TESTS_STORE_DISK_MODEL_H

#include <stdbool.h>

/* The n-th call from now on fails with this errno, and so do all behind it if `all`; 0: none. A read
 * by a ring is a call when it ends. */
void disk_model_fail(unsigned n, int error, bool all);

/* What becomes of a call that does not fail. One that neither reads nor writes is as it is. */
enum disk_model_fault {
    DISK_MODEL_SHORT,   /* it reads or writes half of the bytes */
    DISK_MODEL_DAMAGES, /* and changes one bit of them */
};

/* The same with a call that does not fail. */
void disk_model_spoil(unsigned n, enum disk_model_fault fault);

/* The name of the last call that has failed since, or was spoiled; NULL: none. */
const char *disk_model_failed(void);

/* Reads, writes and syncs wait until this is false. Those by a ring do not end. */
void disk_model_hang(bool hangs);
bool disk_model_hangs(void);

/* How many calls wait? Without those by a ring. */
unsigned disk_model_hung(void);

/* The same from the moment on at which a file is opened whose name begins so, or a call of such a name
 * is made, which waits itself. */
void disk_model_hang_from(const char *name);

/* Reads succeed, and all else fails with EROFS. */
void disk_model_read_only(bool read_only);

/* While this folder has more segments, writes fail with ENOSPC. NULL: no more. */
void disk_model_full(const char *folder, unsigned segments);

#endif
