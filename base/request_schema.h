/*
 * The request database: an SQLite database that sunproxyd --request-db writes, and that
 * `sunproxy stat --since` and the reader of traces read. sunproxyd(8) documents its columns.
 *
 * Every later schema gets a number of its own, in PRAGMA user_version.
 */
#ifndef SUNPROXY_BASE_REQUEST_SCHEMA_H
#define SUNPROXY_BASE_REQUEST_SCHEMA_H

/* PRAGMA application_id, and where the file's header has it, in network order: "sunp". */
#define REQUEST_SCHEMA_APPLICATION 0x73756e70
#define REQUEST_SCHEMA_APPLICATION_AT 68

/* PRAGMA user_version */
#define REQUEST_SCHEMA_VERSION 3

#define REQUEST_SCHEMA_TABLE "requests"

/*
 * Times are in microseconds, of the clock since 1970-01-01 UTC. Rows are inserted when requests
 * end, so `id` rises in the order of the ends; the index gives the order of the arrivals. Bytes of
 * `method`, `url` and `user` that are not printable ASCII, blanks and the backslash are \xNN.
 */
#define REQUEST_SCHEMA_SQL                                                                      \
    "CREATE TABLE IF NOT EXISTS requests (\n"                                                   \
    "    id INTEGER PRIMARY KEY,\n"                                                             \
    "    time_us INTEGER NOT NULL,     -- arrival, since 1970-01-01 UTC\n"                      \
    "    duration_us INTEGER NOT NULL, -- from the arrival to the end of the response\n"        \
    "    fetch_us INTEGER,             -- of the fetch that it caused; NULL: it caused none\n"  \
    "    protocol TEXT NOT NULL,       -- 'rpc1', 'rpc2', 'http'\n"                             \
    "    client TEXT NOT NULL,         -- an address, 'unix:UID' or '-'\n"                      \
    "    method TEXT,                  -- NULL: it could not be read\n"                         \
    "    url TEXT NOT NULL,\n"                                                                  \
    "    origin TEXT,                  -- scheme://host[:port] of the URL; NULL: it has none\n" \
    "    outcome TEXT NOT NULL,        -- 'hit', 'miss' ..., or the word of a failure\n"        \
    "    status INTEGER,               -- of HTTP; NULL: none\n"                                \
    "    bytes INTEGER NOT NULL,       -- of the body\n"                                        \
    "    reason TEXT,                  -- why it was no hit; NULL: a hit or failure\n"       \
    "    user TEXT                     -- of the forward proxy; NULL: none\n"                   \
    ");\n"                                                                                      \
    "CREATE INDEX IF NOT EXISTS requests_by_time ON requests (time_us);\n"

/* What makes version 2 of version 1, and this one of version 2, which lack only these. */
#define REQUEST_SCHEMA_UPGRADE_1 "ALTER TABLE requests ADD COLUMN reason TEXT;"
#define REQUEST_SCHEMA_UPGRADE_2 "ALTER TABLE requests ADD COLUMN user TEXT"

#endif
