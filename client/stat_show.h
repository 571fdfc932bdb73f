/*
 * The forms in which `sunproxy stat` shows what a server has counted.
 */
#ifndef SUNPROXY_CLIENT_STAT_SHOW_H
#define SUNPROXY_CLIENT_STAT_SHOW_H

#include "client/server_stats.h"

/* An answer, and the one before, which rates are computed from. */
struct stat_view {
    proxy_stats now;
    proxy_stats before; /* zeros the first time */
    double seconds;     /* between them; 0: no rates */
    double elapsed;     /* since the first answer */
    uint64_t looks;     /* answers before this one */
};

/*
 * Each writes to standard output: a table for people, headed by the server's name; a line of eight
 * columns, which are named every twenty lines; a JSON object on a line; CSV, a line a pair, with a
 * heading before the first answer, and with time and rate if `watching`. EX_OK, or an exit status
 * after a complaint. What could not be written shows in output_flush().
 */
int stat_show_table(const struct stat_view *view, const char *server);
int stat_show_line(const struct stat_view *view);
int stat_show_json(const struct stat_view *view);
int stat_show_csv(const struct stat_view *view, bool watching);

#endif
