/*
 * What a server answers to PROXY_EXPLAIN, for people and for programs: lines "NAME: VALUE". The text
 * is changed.
 */
#ifndef SUNPROXY_CLIENT_EXPLAIN_LINES_H
#define SUNPROXY_CLIENT_EXPLAIN_LINES_H

#include "base/json.h"

/* Prints the lines, with the names in a column of this width. */
#define EXPLAIN_WIDTH 14
void explain_print(char *text);

/* Adds them as an array of objects with one member each, since names may be repeated. */
void explain_json(struct json *json, const char *key, char *text);

#endif
