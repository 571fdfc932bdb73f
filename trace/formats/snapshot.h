/*
 * A private copy of an SQLite database that another process may be writing: the file, its
 * write-ahead log and its rollback journal, as they stood at one moment. Reading the copy instead
 * of the original creates no file beside the original, needs no lock on it (Chrome holds an
 * exclusive one for as long as it runs), and sees what is still in the log.
 *
 * The copy lies in a folder of its own under $TMPDIR or /tmp that only this user can enter.
 * A process that is killed while it copies does not remove the copy.
 *
 * Note that opening and closing the original drops this process's own POSIX locks on it: do not
 * read a database that the same process has open.
 */
#ifndef SUNPROXY_TRACE_FORMATS_SNAPSHOT_H
#define SUNPROXY_TRACE_FORMATS_SNAPSHOT_H

#include <limits.h>

#include "trace/input.h"
#include "trace/trace.h"

struct snapshot {
    char folder[PATH_MAX]; /* empty: there is none */
    char path[PATH_MAX];   /* of the copied database, inside it */
};

/*
 * Copies. TRACE_CANNOT_OPEN, with a sentence, when the original cannot be read, the copy cannot be
 * written, or the original does not stay unchanged for the time that copying takes, in several
 * attempts.
 */
enum trace_error snapshot_take(struct snapshot *s, const char *path, char *why, size_t why_size);

/*
 * Copies a database that has a write-ahead log which another process may write to all the time: as
 * it stands after one of its transactions, which SQLite sees to. This needs the log's index beside
 * it, or permission to make it. TRACE_STOPPED if the input `in` is to be read no further.
 */
enum trace_error snapshot_back_up(struct snapshot *s, const char *path, struct input *in, char *why,
                                  size_t why_size);

/*
 * Saves the bytes of an input, up to its end, as the database; there is no log beside it. What is
 * wrong with the input is reported, too. At most `most` bytes are written; if there are more, it is
 * TRACE_NOT_A_TRACE with a sentence: a few compressed ones can stand for more than a disk holds.
 */
enum trace_error snapshot_save(struct snapshot *s, struct input *in, uint64_t most, char *why,
                               size_t why_size);

/* Removes the copy; harmless when there is none. Files that are open stay readable. */
void snapshot_remove(struct snapshot *s);

#endif
