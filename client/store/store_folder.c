#include "client/store/store_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/output.h"
#include "client/admin.h"
#include "client/server_stats.h"
#include "http/field.h"
#include "store/disk_file.h"

#define SENTENCE 1024

int
store_look_through(const char *folder, const struct store_look *look, struct store_totals *totals)
{
    struct buf why;
    bool done;

    buf_init(&why, SENTENCE);
    done = store_visit(folder, &look->wanted, look->see, look->context, totals, &why);
    if (!done)
        output_complain("%s: %s", folder, buf_str(&why));
    else if (totals->in_use)
        output_note("a daemon uses the store: what it has not written yet is missing here");
    if (done && totals->unread)
        output_note("%" PRIu64 " segments or records cannot be read, and are missing here",
                    totals->unread);
    if (done && totals->journal_lost)
        output_note("the journal is damaged or missing: the next start removes all pages");
    buf_free(&why);
    return done ? EX_OK : EX_NOINPUT;
}

/* ---- the daemon ------------------------------------------------------------------------------ */

/* Is it the daemon of this store? Notes what it has there. */
static bool
note_totals(const char *folder, const struct server *server, const proxy_stats *stats)
{
    const char *used = server_stats_fact(stats, "store");
    char *real = realpath(folder, NULL);
    const bool is_this = real && strcmp(used, real) == 0;
    char bytes[32];

    free(real);
    if (is_this)
        output_note("the daemon at %s has %" PRIu64 " pages in it, %s of %s%s", server->name,
                    server_stats_value(stats, "store_objects"),
                    units_format_bytes(server_stats_value(stats, "store_bytes"), bytes,
                                       sizeof(bytes)),
                    "files", server_stats_value(stats, "store_sick") ? "; its disk fails" : "");
    else if (*used)
        output_note("the daemon at %s uses another one, %s: name the right one by --socket",
                    server->name, used);
    else
        output_note("the daemon at %s does not name a store: it tells administrators alone, over "
                    "the AF_UNIX socket",
                    server->name);
    return is_this;
}

void
store_ask_daemon(const char *folder, const struct server_options *options, const char *url,
                 char **text)
{
    static char empty[] = "";
    struct server server;
    proxy_stats stats;
    bool is_this = false;
    int status;
    struct rpc_client *client = server_find(options, SERVER_ADMIN, &server, &status);

    if (!client)
        return;
    if (admin_stat(client, options->timeout_us, &stats) == EX_OK) {
        is_this = note_totals(folder, &server, &stats);
        admin_free_stats(&stats);
    }
    if (is_this && url)
        (void)admin_explain(client, options->timeout_us,
                            &(proxy_explain_args){
                                .method = empty,
                                .url = {.proxy_url_val = (char *)(uintptr_t)url,
                                        .proxy_url_len = (u_int)strlen(url)},
                            },
                            text);
    rpc_client_close(client);
}

/* ---- words ----------------------------------------------------------------------------------- */

const char *
store_state(const struct store_entry *entry)
{
    if (entry->error)
        return "unread";
    if (!entry->record || entry->damaged)
        return "damaged";
    if (!entry->current)
        return "outdated";
    return entry->expired ? "expired" : "current";
}

int64_t
store_age_s(const struct store_entry *entry)
{
    return entry->age_us / 1000000;
}

bool
store_is_fresh(const struct store_entry *entry)
{
    return entry->current && entry->age_us < entry->lifetime_us;
}

void
store_time(const struct store_entry *entry, char text[TIMESTAMP_SIZE])
{
    timestamp_format(entry->record->head.born_wall_us, text);
}

static void
json_fields(struct json *json, struct span fields)
{
    struct span line;

    json_open_array(json, "fields");
    while (http_next_line(&fields, &line))
        if (line.len)
            json_string(json, NULL, line);
    json_close_array(json);
}

void
store_json(struct json *json, const struct store_entry *entry, bool fields)
{
    const struct disk_record *record = entry->record;
    char time[TIMESTAMP_SIZE];

    json_cstring(json, "state", store_state(entry));
    if (record) {
        store_time(entry, time);
        json_string(json, "url", record->url);
        json_string(json, "variant", record->variant);
        json_string(json, "varies_by", record->names);
        json_uint(json, "status", record->head.status);
        json_uint(json, "bytes", record->head.body_len);
        json_cstring(json, "time", time);
        json_int(json, "age_s", store_age_s(entry));
        if (entry->lifetime_us == INT64_MAX)
            json_null(json, "lifetime_s");
        else
            json_double(json, "lifetime_s", (double)entry->lifetime_us / 1e6, 3);
        json_bool(json, "fresh", store_is_fresh(entry));
        json_string(json, "tags", record->tags);
        json_uint(json, "fetch_us", record->head.fetch_us);
    }
    if (entry->error)
        json_cstring(json, "error", disk_strerror(entry->error));
    json_uint(json, "segment", entry->segment);
    json_uint(json, "offset", entry->offset);
    if (record && fields)
        json_fields(json, record->fields);
}
