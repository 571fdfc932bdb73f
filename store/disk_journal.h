/*
 * The journal of a store: a file with the marks of what has been purged (disk_marks.h), and with
 * what identifies the store. Each start writes a new one with the marks that are known, and removes
 * those before it. A mark is appended twice, and says up to where the file was synced before. So a
 * mark that is damaged is told from one that was being written when the process or the machine
 * ended, behind that. The file is longer than its marks and ends with a mark of its own, which is
 * synced before another one is written in its place. So a file that was cut short is told as well.
 * Where a mark cannot be read, everything on disk counts as purged.
 *
 * One thread at a time.
 */
#ifndef SUNPROXY_STORE_DISK_JOURNAL_H
#define SUNPROXY_STORE_DISK_JOURNAL_H

#include <stdatomic.h>

#include "store/disk_file.h"
#include "store/disk_marks.h"

/* What identifies a store, and one run of it. */
struct disk_identity {
    uint64_t id[2];      /* random */
    uint64_t secret;     /* of its hashes */
    uint64_t generation; /* of the run, from 1 on */
    uint64_t terms;      /* of struct store_config */
};

/* Positions of a run begin here. */
static inline uint64_t
disk_first_position(const struct disk_identity *identity)
{
    return identity->generation << 40;
}

struct disk_journal {
    int folder;            /* not owned */
    struct disk_now now;   /* of the caller, not earlier than any mark */
    uint64_t slack;        /* bytes that may be appended before it is worth being renewed, at
                              least */
    _Atomic uint64_t *bytes; /* of all its files, or NULL */
    int fd;                /* -1: none */
    uint64_t size;         /* of header and marks */
    uint64_t synced;       /* of those, on disk */
    uint64_t end;          /* of the file */
    uint64_t renew_size;   /* at which it is worth being renewed */
    uint64_t number;       /* of the file; at least the generation */
    bool has_later;        /* the next start may find the next file, which is not in force */
    char bad[DISK_NAME];   /* the file that an error of opening or reading is about, or "" */
};

/* Bytes of one that a start reads, less than that. */
#define JOURNAL_MAX ((uint64_t)1 << 30)

#define JOURNAL_NONE {.folder = -1, .fd = -1}

/* Bytes of its files at most, until it has been renewed once: as its marks are now. */
static inline uint64_t
disk_journal_most(const struct disk_journal *journal)
{
    return 2 * journal->renew_size;
}

enum journal_found {
    JOURNAL_NEW,   /* there is none: the identity is new */
    JOURNAL_READ,  /* its marks have been added */
    JOURNAL_OTHER, /* its terms are others: everything on disk is purged, and the identity is new */
    JOURNAL_LOST,  /* it is damaged, or has a number that none is given: everything on disk is
                      purged, and the identity is new */
};

/*
 * Reads the latest journal in the folder, if there is one, and begins another one with the marks.
 * The first members are set. 0 or an errno: also if it cannot be read, which does not tell that it
 * is damaged, and nothing has changed then.
 */
int disk_journal_open(struct disk_journal *journal, uint64_t terms, struct disk_marks *marks,
                      struct disk_identity *identity, enum journal_found *found);

/* Reads it, and changes nothing. 0 or an errno. */
int disk_journal_read(struct disk_journal *journal, struct disk_marks *marks,
                      struct disk_identity *identity, enum journal_found *found);

/* Appends a mark, not synced. 0 or an errno, after which the journal is as it was. */
int disk_journal_append(struct disk_journal *journal, const struct disk_mark *mark);

/* Waits until what was appended is on disk, and a start finds it. 0 or an errno. */
int disk_journal_sync(struct disk_journal *journal);

/* Begins another file with these marks alone, synced, and no lock held over that. 0 or an errno,
 * after which the journal is as it was. */
int disk_journal_renew(struct disk_journal *journal, struct disk_marks *marks,
                       const struct disk_identity *identity);

/* Makes the next start find that marks are lost, after an error. False if the disk does not let
 * it. */
bool disk_journal_spoil(struct disk_journal *journal);

void disk_journal_close(struct disk_journal *journal);

#endif
