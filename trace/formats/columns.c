#include "trace/formats/columns.h"

#include <strings.h>

#include "base/nearest.h"
#include "trace/formats/fields.h"

/* Meanings beside those of enum column. */
enum { HOST = COLUMNS, CLIENT, LOGNAME, MEANINGS };

/* Names in lower case, the usual one of each meaning first. */
static const struct name {
    const char *name;
    int meaning;
    bool is_doubtful; /* it means something else in some tables */
} known[] = {
    {"url", COLUMN_URL, false},
    {"uri", COLUMN_URL, false},
    {"request_url", COLUMN_URL, false},
    {"request_uri", COLUMN_URL, false},
    {"id", COLUMN_ID, false},
    {"obj_id", COLUMN_ID, false},
    {"object_id", COLUMN_ID, false},
    {"key", COLUMN_ID, false},
    {"object", COLUMN_ID, true},
    {"lbn", COLUMN_ID, false},
    {"site", COLUMN_SITE, false},
    {"vhost", COLUMN_SITE, false},
    {"http_host", COLUMN_SITE, false},
    {"server_name", COLUMN_SITE, false},
    {"domain", COLUMN_SITE, true},
    {"time", COLUMN_TIME, false},
    {"timestamp", COLUMN_TIME, false},
    {"ts", COLUMN_TIME, false},
    {"date", COLUMN_TIME, false},
    {"datetime", COLUMN_TIME, false},
    {"visit_time", COLUMN_TIME, false},
    {"clock_time", COLUMN_TIME, false},
    {"time_ms", COLUMN_TIME_MS, false},
    {"time_us", COLUMN_TIME_US, false},
    {"size", COLUMN_SIZE, false},
    {"bytes", COLUMN_SIZE, false},
    {"obj_size", COLUMN_SIZE, false},
    {"object_size", COLUMN_SIZE, false},
    {"length", COLUMN_SIZE, false},
    {"content_length", COLUMN_SIZE, false},
    {"body_bytes_sent", COLUMN_SIZE, false},
    {"response_size", COLUMN_SIZE, false},
    {"method", COLUMN_METHOD, false},
    {"verb", COLUMN_METHOD, false},
    {"request_method", COLUMN_METHOD, false},
    {"status", COLUMN_STATUS, false},
    {"status_code", COLUMN_STATUS, false},
    {"http_status", COLUMN_STATUS, false},
    {"response_code", COLUMN_STATUS, false},
    {"response", COLUMN_STATUS, true},
    {"host", HOST, true},
    {"client", CLIENT, false},
    {"client_ip", CLIENT, false},
    {"remote_addr", CLIENT, false},
    {"remote_host", CLIENT, false},
    {"remote_ip", CLIENT, false},
    {"ip", CLIENT, false},
    {"logname", LOGNAME, false},
    {"ident", LOGNAME, false},
    {"remote_logname", LOGNAME, false},
};

/* Parts of names that suggest a meaning. */
static const struct {
    const char *part;
    enum column meaning;
} hints[] = {
    {"url", COLUMN_URL},       {"uri", COLUMN_URL},   {"status", COLUMN_STATUS},
    {"code", COLUMN_STATUS},   {"size", COLUMN_SIZE}, {"byte", COLUMN_SIZE},
    {"length", COLUMN_SIZE},   {"time", COLUMN_TIME}, {"date", COLUMN_TIME},
    {"method", COLUMN_METHOD}, {"host", COLUMN_SITE},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct name *
find_name(struct span name)
{
    for (size_t i = 0; i < COUNT(known); i++) {
        if (strlen(known[i].name) == name.len &&
            strncasecmp(known[i].name, name.ptr, name.len) == 0)
            return &known[i];
    }
    return NULL;
}

static const char *
usual_name(int meaning)
{
    for (size_t i = 0; i < COUNT(known); i++) {
        if (known[i].meaning == meaning)
            return known[i].name;
    }
    return "-";
}

void
columns_init(struct columns *c)
{
    *c = (struct columns){.client = -1};
    for (int i = 0; i < COLUMNS; i++)
        c->of[i] = -1;
}

bool
columns_add(struct columns *c, struct span name)
{
    const struct name *found = find_name(name);
    int at = (int)c->count;

    if (c->count == COLUMNS_MOST)
        return false;
    c->count++;
    if (!found)
        return true;
    if (found->meaning < COLUMNS && c->of[found->meaning] < 0)
        c->of[found->meaning] = at;
    if (found->meaning == HOST && c->client < 0)
        c->client = at;
    c->has_other_site = c->has_other_site || found->meaning == COLUMN_SITE;
    c->has_client = c->has_client || found->meaning == CLIENT;
    /* In the names of the Common Log Format, host is the client's, and logname is behind it. */
    if (found->meaning == LOGNAME)
        c->has_other_site = true;
    return true;
}

void
columns_decide_host(struct columns *c)
{
    int distance = c->client - c->of[COLUMN_URL];

    if (c->client < 0 || c->of[COLUMN_URL] < 0 || c->has_other_site ||
        !(c->has_client || distance == 1 || distance == -1))
        return;
    c->of[COLUMN_SITE] = c->client;
    c->client = -1;
    c->site_is_guessed = true;
}

bool
columns_identify(const struct columns *c)
{
    return c->of[COLUMN_URL] >= 0 || c->of[COLUMN_ID] >= 0;
}

static void
explain_name(struct span item, char *why, size_t why_size)
{
    char word[64], ask[80];
    struct nearest nearest = NEAREST_TO(word);
    size_t len = item.len < sizeof(word) - 1 ? item.len : sizeof(word) - 1;

    memcpy(word, item.ptr, len);
    word[len] = '\0';
    for (size_t i = 0; i < COUNT(known) && known[i].meaning < COLUMNS; i++)
        nearest_offer(&nearest, known[i].name);
    snprintf(why, why_size,
             "no column is called '%s'%s (columns: url, id, site, time, time_ms, time_us, size, "
             "method, status; - for one to ignore)",
             word, nearest_ask(&nearest, ask, sizeof(ask)));
}

bool
columns_parse(struct columns *c, const char *list, char *why, size_t why_size)
{
    struct span rest = span_str(list), item;

    columns_init(c);
    while (fields_next(&rest, ',', &item)) {
        const struct name *found;
        bool ignored;

        item = fields_trim(item);
        ignored = item.len == 0 || span_equal(item, span_str("-"));
        found = ignored ? NULL : find_name(item);
        if (!ignored && (!found || found->meaning >= COLUMNS)) {
            explain_name(item, why, why_size);
            return false;
        }
        if (found && c->of[found->meaning] >= 0) {
            snprintf(why, why_size, "two columns are called '%s'", usual_name(found->meaning));
            return false;
        }
        if (c->count == COLUMNS_MOST) {
            snprintf(why, why_size, "more than %u columns", COLUMNS_MOST);
            return false;
        }
        if (found)
            c->of[found->meaning] = (int)c->count;
        c->count++;
    }
    if (!columns_identify(c))
        snprintf(why, why_size, "one of the columns must be url or id, not only '%s'", list);
    return columns_identify(c);
}

/* ---- remarks --------------------------------------------------------------------------------- */

static int
meaning_of(const struct columns *c, unsigned at)
{
    for (int i = 0; i < COLUMNS; i++) {
        if (c->of[i] == (int)at)
            return i;
    }
    return COLUMNS;
}

bool
columns_print(const struct columns *c, char *text, size_t size)
{
    size_t len = 0;

    for (unsigned at = 0; at < c->count && len < size; at++) {
        int meaning = meaning_of(c, at);
        int n = snprintf(text + len, size - len, "%s%s", at ? "," : "",
                         meaning < COLUMNS ? usual_name(meaning) : "-");

        len += n > 0 ? (size_t)n : 0;
    }
    return len < size;
}

static const char *
word_for(int meaning)
{
    static const char *const words[COLUMNS] = {"URL",  "id",   "site",   "time",  "time",
                                               "time", "size", "method", "status"};

    return words[meaning];
}

static bool
contains(struct span name, const char *part)
{
    size_t len = strlen(part);

    for (size_t i = 0; i + len <= name.len; i++) {
        if (strncasecmp(name.ptr + i, part, len) == 0)
            return true;
    }
    return false;
}

static bool
has_time(const struct columns *c)
{
    return c->of[COLUMN_TIME] >= 0 || c->of[COLUMN_TIME_MS] >= 0 || c->of[COLUMN_TIME_US] >= 0;
}

#define NAME_SHOWN 40
#define SHOWN(name) (int)((name).len < NAME_SHOWN ? (name).len : NAME_SHOWN), (name).ptr

/* A column without a meaning that is used: is it a second one, or one that may have a meaning? */
static bool
remark_unused(const struct columns *c, unsigned at, struct span name, struct trace_builder *builder)
{
    const struct name *found = find_name(name);

    if (found && found->meaning < COLUMNS) {
        trace_remark(builder, "column %u ('%.*s') is ignored: column %d has the %s", at + 1,
                     SHOWN(name), c->of[found->meaning] + 1, word_for(found->meaning));
        return true;
    }
    for (size_t i = 0; !found && i < COUNT(hints); i++) {
        enum column meaning = hints[i].meaning;
        bool missing = meaning == COLUMN_TIME  ? !has_time(c)
                       : meaning == COLUMN_URL ? !columns_identify(c)
                                               : c->of[meaning] < 0;

        if (missing && contains(name, hints[i].part)) {
            trace_remark(builder, "column %u ('%.*s') is ignored; is it the %s?", at + 1,
                         SHOWN(name), word_for((int)meaning));
            return true;
        }
    }
    return false;
}

void
columns_remark(const struct columns *c, const struct span *names, struct trace_builder *builder)
{
    char list[TRACE_REMARK_BYTES / 2];
    bool any = false;

    for (unsigned at = 0; at < c->count; at++) {
        const struct name *found = find_name(names[at]);
        int meaning = meaning_of(c, at);

        if (meaning < COLUMNS && found && found->is_doubtful) {
            trace_remark(builder, "column %u ('%.*s') is taken for the %s", at + 1,
                         SHOWN(names[at]), word_for(meaning));
            any = true;
        } else if ((int)at == c->client && c->of[COLUMN_URL] >= 0) {
            trace_remark(builder,
                         "column %u ('%.*s') is taken for the client, not for the site of "
                         "the URLs",
                         at + 1, SHOWN(names[at]));
            any = true;
        } else if (meaning == COLUMNS) {
            any = remark_unused(c, at, names[at], builder) || any;
        }
    }
    if (any && columns_print(c, list, sizeof(list)))
        trace_remark(builder, "read as --columns %s; to change that, give another list", list);
}
