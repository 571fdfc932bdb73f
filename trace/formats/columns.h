/*
 * Columns of a table: which column means what, by the names in its header or by a list that the
 * user gives. Pure, but for remarks.
 */
#ifndef SUNPROXY_TRACE_FORMATS_COLUMNS_H
#define SUNPROXY_TRACE_FORMATS_COLUMNS_H

#include "trace/builder.h"

enum column {
    COLUMN_URL,
    COLUMN_ID,
    COLUMN_SITE,
    COLUMN_TIME,
    COLUMN_TIME_MS,
    COLUMN_TIME_US,
    COLUMN_SIZE,
    COLUMN_METHOD,
    COLUMN_STATUS,
    COLUMNS
};

#define COLUMNS_MOST 256u

/* COLUMNS is the meaning of a column without one. */
struct columns {
    unsigned count;
    int of[COLUMNS];      /* number of the column with this meaning, from 0; -1: none */
    bool site_is_guessed; /* a column "host" is taken for the site, */
    int client;           /* or this one for the client; -1: neither */
    bool has_client;      /* a column names the client */
    bool has_other_site;  /* a column is certainly the site */
};

void columns_init(struct columns *columns);

/* Adds a column by the name that a header gives it; false: there are COLUMNS_MOST already. */
bool columns_add(struct columns *columns, struct span name);

/*
 * Decides, when all were added, whether a column "host" is the site or the client: it is the site
 * if it stands beside the URL or another column names the client.
 */
void columns_decide_host(struct columns *columns);

/* Is there a URL or an id? */
bool columns_identify(const struct columns *columns);

/*
 * Reads a list of the user's, "time,url,-,size": one of the names that are known, or "-" for a
 * column to ignore. False with a sentence if a name is unknown or occurs twice, or none is url or
 * id.
 */
bool columns_parse(struct columns *columns, const char *list, char *why, size_t why_size);

/*
 * Adds remarks on what may be wrong: names that have several meanings, several columns of one
 * meaning, and columns that are not used although their names resemble a meaning that no column
 * has. `names` are those of the header.
 */
void columns_remark(const struct columns *columns, const struct span *names,
                    struct trace_builder *builder);

/* The list for --columns that has the meanings that were found. False: it does not fit. */
bool columns_print(const struct columns *columns, char *text, size_t size);

#endif
