/*
 * What the parts of `sunproxy store` share: a look through the files of a store, the words for what
 * is there, and the daemon that uses it.
 */
#ifndef SUNPROXY_CLIENT_STORE_STORE_FOLDER_H
#define SUNPROXY_CLIENT_STORE_STORE_FOLDER_H

#include "base/json.h"
#include "base/timestamp.h"
#include "cli/command.h"
#include "client/connect.h"
#include "store/store_visit.h"

extern const struct command command_store_list;
extern const struct command command_store_show;
extern const struct command command_store_export;
extern const struct command command_store_verify;
extern const struct command command_store_trim;

struct store_look {
    struct store_wanted wanted;
    void (*see)(void *context, const struct store_entry *entry);
    void *context;
};

/* EX_OK with the totals; or EX_NOINPUT after a complaint. Notes what they say of the whole. */
int store_look_through(const char *folder, const struct store_look *look,
                       struct store_totals *totals);

/*
 * The daemon that uses the store: notes what it says of all pages, or why it cannot be asked. With
 * a URL, *text is what it would do with a request for that (sunproxy explain), or NULL; the
 * caller's to free().
 */
void store_ask_daemon(const char *folder, const struct server_options *options, const char *url,
                      char **text);

/* "current", "expired" by a soft purge or "outdated"; or "damaged", or "unread" with an error. */
const char *store_state(const struct store_entry *entry);

/* Whole seconds. */
int64_t store_age_s(const struct store_entry *entry);

/* Would a request get it without its origin, its own conditions aside? */
bool store_is_fresh(const struct store_entry *entry);

/* When the response's age was 0. */
void store_time(const struct store_entry *entry, char text[TIMESTAMP_SIZE]);

/* Adds the members of an entry to an object; `fields`: those of the response, too. */
void store_json(struct json *json, const struct store_entry *entry, bool fields);

/* The end of the help of parts that read a store. */
#define STORE_EXIT_HELP \
    "66 the folder cannot be read, or is no store; 74 output could not be written.\n"

#endif
