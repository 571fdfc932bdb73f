/*
 * The log of a replay: a line for each request with its outcome. The paper logs "New Cache
 * Block", "Cache Hit" and "Evicted"; these are the outcomes miss, hit and evicted here.
 *
 * Tab-separated, with a line of names first:
 *     number  url  outcome  victim  status  bytes  us
 * or one JSON object per line with the same names (victims as an array). Victims are separated by
 * spaces. A tab, a line end, a backslash or a zero byte inside a URL is written as \t, \n, \r,
 * \\ or \0; a space in a victim as \s; each byte of what is not printable (base/printable.h) as
 * \xHH. So the log can be shown on a terminal, and no byte is lost.
 *
 * Any thread may write; lines stay whole, in the order of writing.
 */
#ifndef SUNPROXY_CLI_REPLAY_LOG_H
#define SUNPROXY_CLI_REPLAY_LOG_H

#include <stdint.h>

#include "base/buf.h"

/* The most victims of a request that are named: the protocol carries no more. */
#define REPLAY_LOG_VICTIMS 64u

enum replay_outcome {
    REPLAY_MISS,      /* fetched and stored without an eviction */
    REPLAY_HIT,       /* from the cache, revalidated and stale included */
    REPLAY_EVICTED,   /* fetched and stored after evictions */
    REPLAY_COALESCED, /* answered by the fetch for another request */
    REPLAY_BYPASS,    /* without the cache */
    REPLAY_UNCACHED,  /* fetched and not stored */
    REPLAY_FAILED,
    REPLAY_OUTCOMES
};

/* "miss", "hit", ... */
const char *replay_outcome_name(enum replay_outcome outcome);

struct replay_entry {
    unsigned run;    /* from 1; written only where there is more than one */
    uint64_t number; /* of the request, from 1 */
    struct span url;
    enum replay_outcome outcome;
    const struct span *victims;
    size_t victim_count;
    uint32_t evicted;  /* number of evicted pages, named or not */
    unsigned status;   /* HTTP status; 0: none */
    const char *error; /* name of the failure, instead of the status; NULL: none */
    uint64_t bytes;    /* of the body */
    uint64_t us;       /* until the answer */
};

/* In the order of "tsv|jsonl". */
enum replay_log_format { REPLAY_LOG_BY_NAME, REPLAY_LOG_TSV, REPLAY_LOG_JSONL };

struct replay_log;

/* The format for a file name: JSON lines for "....jsonl". */
enum replay_log_format replay_log_format_of(const char *path);

/*
 * Creates the file, with a column or member "run" if runs > 1. REPLAY_LOG_BY_NAME is the format of
 * its name. NULL with errno set.
 */
struct replay_log *replay_log_open(const char *path, enum replay_log_format format, unsigned runs);

/* 0 or an errno, which every later call repeats. */
int replay_log_write(struct replay_log *log, const struct replay_entry *entry);

/* Flushes, closes and frees. Returns 0, or the first errno since the start. NULL: 0. */
int replay_log_close(struct replay_log *log);

/* Appends a line with its line end. For replay_log_write() and its tests. */
void replay_log_format(struct buf *out, enum replay_log_format format, bool with_run,
                       const struct replay_entry *entry);

#endif
