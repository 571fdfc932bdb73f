/*
 * The sections of a configuration file: what stands there in lines of its own is one word of a
 * repeated option. "[row]" is an --origin, "[listener]" an --http, --http-proxied or --metrics, and
 * "[origin NAME]" is named by rows. So each value has one meaning, however it is written.
 *
 * One thread; while a file is read.
 */
#ifndef SUNPROXY_SERVER_CONFIG_SECTIONS_H
#define SUNPROXY_SERVER_CONFIG_SECTIONS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "server/config/options.h"

struct section;

/* The sections of all files that are read; all zero but for the list: none. */
struct sections {
    TAILQ_HEAD(section_list, section) list;
    /* Within one file: */
    bool begun;           /* the next lines belong to a section, */
    struct section *open; /* to this one; NULL: it was refused, and they are passed over */
};

void sections_init(struct sections *sections);

/*
 * Opens a section by the text of its line, "[KIND]" or "[KIND NAME]". `place` is that of the line,
 * as option_place() has it. False with a sentence in `why`.
 */
bool sections_open(struct sections *sections, const char *place, const char *line, struct buf *why);

/* The file has ended, and its last section with it. */
void sections_end_file(struct sections *sections);

/* A line of the section that has begun. False with a sentence in `why`. */
bool sections_set(struct sections *sections, const char *place, const char *key, const char *value,
                  struct buf *why);

/* All files are read: sets the options. False with a line in `why` for each error. */
bool sections_apply(const struct sections *sections, struct options *options, struct buf *why);

void sections_free(struct sections *sections);

/* Prints each kind of section as comments of a configuration file. */
void sections_print_defaults(FILE *out);

#endif
