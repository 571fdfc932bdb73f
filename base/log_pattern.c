#include "base/log_pattern.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/nearest.h"

const struct log_directive log_directives[] = {
    {"h", LOG_VALUE_CLIENT, LOG_KIND_ADDRESS, "address of the client, or unix:UID"},
    {"a", LOG_VALUE_CLIENT, LOG_KIND_ADDRESS, "as %h"},
    {"l", LOG_VALUE_NOTHING, LOG_KIND_TEXT, "name of the user by identd: always -"},
    {"u", LOG_VALUE_USER, LOG_KIND_TEXT, "user of the forward proxy, or -"},
    {"t", LOG_VALUE_TIME, LOG_KIND_DATE,
     "when the request came, as [22/Nov/2026:11:30:00 +0000]"},
    {"{FORMAT}t", LOG_VALUE_TIME, LOG_KIND_STRFTIME,
     "when the request came: sec, msec or usec since 1970, msec_frac, usec_frac, or a format of "
     "strftime(3), in UTC; with end: before it, when the request ended"},
    {"r", LOG_VALUE_REQUEST, LOG_KIND_TEXT, "first line of the request"},
    {"m", LOG_VALUE_METHOD, LOG_KIND_TEXT, "method"},
    {"U", LOG_VALUE_PATH, LOG_KIND_TEXT, "path of the URL"},
    {"q", LOG_VALUE_QUERY, LOG_KIND_TEXT, "query of the URL with its ?, or nothing"},
    {"H", LOG_VALUE_VERSION, LOG_KIND_TEXT, "protocol: HTTP/1.0, HTTP/1.1, RPC/1 or RPC/2"},
    {"v", LOG_VALUE_HOST, LOG_KIND_HOST, "host of the URL"},
    {"V", LOG_VALUE_HOST, LOG_KIND_HOST, "as %v"},
    {"p", LOG_VALUE_PORT, LOG_KIND_NUMBER, "port of the URL"},
    {"{remote}p", LOG_VALUE_CLIENT_PORT, LOG_KIND_NUMBER, "port of the client"},
    {"s", LOG_VALUE_STATUS, LOG_KIND_NUMBER, "status, also as %>s"},
    {"b", LOG_VALUE_BYTES_OR_DASH, LOG_KIND_NUMBER, "bytes of the body that were sent, - for 0"},
    {"B", LOG_VALUE_BYTES, LOG_KIND_NUMBER, "bytes of the body that were sent"},
    {"D", LOG_VALUE_US, LOG_KIND_NUMBER, "microseconds from the request to its end"},
    {"T", LOG_VALUE_SECONDS, LOG_KIND_NUMBER, "seconds from the request to its end"},
    {"{s}T", LOG_VALUE_SECONDS, LOG_KIND_NUMBER, "as %T"},
    {"{ms}T", LOG_VALUE_MS, LOG_KIND_NUMBER, "milliseconds from the request to its end"},
    {"{us}T", LOG_VALUE_US, LOG_KIND_NUMBER, "as %D"},
    {"P", LOG_VALUE_PID, LOG_KIND_NUMBER, "process id of the daemon"},
    {"{FIELD}i", LOG_VALUE_FIELD, LOG_KIND_TEXT, "field of the request"},
    {"{FIELD}o", LOG_VALUE_RESPONSE, LOG_KIND_TEXT,
     "field of the response, as the origin has sent it"},
    {"{NAME}C", LOG_VALUE_COOKIE, LOG_KIND_TEXT, "cookie of the request"},
    {"{url}x", LOG_VALUE_URL, LOG_KIND_TEXT,
     "URL that was looked up or fetched, or else the target of the request"},
    {"{key}x", LOG_VALUE_URL, LOG_KIND_TEXT, "as %{url}x: the key in the cache"},
    {"{member}x", LOG_VALUE_MEMBER, LOG_KIND_TEXT,
     "URL of the member of a row of --origin that the request was sent to"},
    {"{user}x", LOG_VALUE_USER, LOG_KIND_TEXT, "as %u"},
    {"{outcome}x", LOG_VALUE_OUTCOME, LOG_KIND_TEXT, "hit, miss and so on, or the kind of failure"},
    {"{reason}x", LOG_VALUE_REASON, LOG_KIND_TEXT, "why it was no hit (REASONS)"},
    {"{error}x", LOG_VALUE_ERROR, LOG_KIND_TEXT, "sentence on a failure"},
    {"{protocol}x", LOG_VALUE_PROTOCOL, LOG_KIND_TEXT, "protocol of the client: http, rpc1 or rpc2"},
    {"{fetch_us}x", LOG_VALUE_FETCH_US, LOG_KIND_NUMBER,
     "microseconds of the fetch that the request caused"},
    {"{victims}x", LOG_VALUE_EVICTED, LOG_KIND_TEXT, "URLs of the pages that were evicted for it"},
    {"{worker}x", LOG_VALUE_WORKER, LOG_KIND_NUMBER, "number of the worker"},
    {NULL, LOG_VALUE_NOTHING, LOG_KIND_TEXT, NULL},
};

#define COMMON "%h %l %u %t \"%r\" %>s %b"
#define COMBINED COMMON " \"%{Referer}i\" \"%{User-Agent}i\""

const struct log_named_pattern log_named_patterns[] = {
    {"common", COMMON},
    {"combined", COMBINED},
    {"vhost_combined", "%v:%p " COMBINED},
    {NULL, NULL},
};

/* Apache's directives that have no value here. */
static const char not_here[] = "AefkLnRXIOS^";

/* ---- directives ------------------------------------------------------------------------------ */

/* What stands in the braces of a row; empty: it has none. */
static struct span
braced(const struct log_directive *row)
{
    const char *end = row->name[0] == '{' ? strchr(row->name, '}') : NULL;

    return end ? span_of(row->name + 1, (size_t)(end - row->name) - 1) : span_of("", 0);
}

static char
letter_of(const struct log_directive *row)
{
    return row->name[strlen(row->name) - 1];
}

static const struct log_directive *
find(char letter, struct span argument)
{
    for (const struct log_directive *row = log_directives; row->name; row++) {
        struct span own = braced(row);

        if (letter_of(row) == letter &&
            (span_equal(own, argument) || (argument.len && own.len && isupper(own.ptr[0]))))
            return row;
    }
    return NULL;
}

/* "%{outcom}x is not a directive; did you mean %{outcome}x?" */
static void
explain_unknown(char letter, struct span argument, struct buf *why)
{
    const struct log_directive *other = NULL;
    char word[64], written[72];
    struct nearest nearest = NEAREST_TO(word);
    const char other_case = (char)(islower(letter) ? toupper(letter) : tolower(letter));

    snprintf(word, sizeof(word), "{%.*s}%c", (int)(argument.len < 56 ? argument.len : 56),
             argument.ptr, letter);
    snprintf(written, sizeof(written), "%%%s", argument.len ? word : (char[]){letter, '\0'});
    for (const struct log_directive *row = log_directives; row->name; row++) {
        if (braced(row).len && letter_of(row) == letter) {
            nearest_offer(&nearest, row->name);
            other = row;
        }
    }
    if (!argument.len && other) {
        buf_printf(why, "%s needs a name, as in %%%s", written, other->name);
    } else if (argument.len && nearest_is_near(&nearest)) {
        buf_printf(why, "%s is not a directive; did you mean %%%s?", written, nearest.best);
    } else if (!argument.len && strchr(not_here, letter)) {
        buf_printf(why, "%s is a directive of Apache that has no value here", written);
    } else if (!argument.len && find(other_case, span_of("", 0))) {
        buf_printf(why, "%s is not a directive; did you mean %%%c?", written, other_case);
    } else {
        buf_printf(why, "%s is not a directive; sunproxyd --list-log-format has them", written);
    }
}

/* ---- times ----------------------------------------------------------------------------------- */

/* Can a time of this format be read back? Then *is_moment: it is all of the time, to a second. */
static bool
is_readable(const char *format, bool *is_moment)
{
    const time_t when = 1700000000;
    struct tm tm, back = {0};
    char text[256];
    const char *end;

    gmtime_r(&when, &tm);
    /* strftime() takes the time for one of the local zone. */
    if (strstr(format, "%s") || !strftime(text, sizeof(text), format, &tm))
        return false;
    end = strptime(text, format, &back);
    *is_moment = timegm(&back) == when;
    return end && *end == '\0';
}

static bool
set_time(struct log_part *part, struct buf *why)
{
    static const struct {
        const char *word;
        enum log_kind kind;
    } words[] = {
        {"sec", LOG_KIND_SECONDS},           {"msec", LOG_KIND_MILLISECONDS},
        {"usec", LOG_KIND_MICROSECONDS},     {"msec_frac", LOG_KIND_MS_FRACTION},
        {"usec_frac", LOG_KIND_US_FRACTION},
    };
    char *format = part->argument;
    size_t prefix = 0;

    part->at_end = strncmp(format, "end:", 4) == 0;
    if (part->at_end || strncmp(format, "begin:", 6) == 0)
        prefix = part->at_end ? 4 : 6;
    memmove(format, format + prefix, strlen(format) + 1 - prefix);
    if (*format == '\0')
        part->kind = LOG_KIND_DATE;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(format, words[i].word) == 0)
            part->kind = words[i].kind;
    if (part->kind != LOG_KIND_STRFTIME || is_readable(format, &part->is_moment))
        return true;
    buf_printf(why, "%%{%s}t is not a time that can be read back; usual are sec, msec, usec, "
                    "msec_frac, usec_frac and formats such as %%Y-%%m-%%d %%H:%%M:%%S",
               format);
    return false;
}

/* ---- compiling ------------------------------------------------------------------------------- */

struct compiling {
    struct log_pattern *pattern;
    const char *at; /* in the format */
    char *text;     /* where the literal text grows */
    struct buf *why;
};

static bool
refuse_text(struct compiling *c)
{
    if (*c->at == '\\')
        buf_printf(c->why, "\"%.2s\" is not one of \\\", \\\\ and \\t", c->at);
    else
        buf_append_str(c->why, "it has a byte that is not printable ASCII");
    return false;
}

/* Takes literal text up to the next directive. As in Apache's configuration, quotes may have a
 * backslash before them. */
static bool
take_text(struct compiling *c, struct span *text)
{
    char *const begin = c->text;

    while (*c->at && (c->at[0] != '%' || c->at[1] == '%')) {
        const char next = c->at[1];
        const bool escaped = *c->at == '%' || *c->at == '\\';

        if (*c->at == '\\' && next != '"' && next != '\\' && next != 't')
            return refuse_text(c);
        if (!isprint((unsigned char)*c->at) && *c->at != '\t')
            return refuse_text(c);
        *c->text++ = (char)(*c->at == '\\' && next == 't' ? '\t' : escaped ? next : *c->at);
        c->at += escaped ? 2 : 1;
    }
    *text = span_of(begin, (size_t)(c->text - begin));
    return true;
}

/* Takes "!200,304", if that is there. */
static bool
take_statuses(struct compiling *c, struct log_part *part)
{
    part->negated = *c->at == '!';
    c->at += part->negated;
    while (isdigit((unsigned char)*c->at)) {
        char *end;
        unsigned long status = strtoul(c->at, &end, 10);

        if (status < 100 || status > 999 || part->status_count == LOG_PATTERN_STATUSES)
            break;
        part->statuses[part->status_count++] = (unsigned short)status;
        c->at = end + (*end == ',');
    }
    if (!isdigit((unsigned char)*c->at) && (!part->negated || part->status_count))
        return true;
    buf_append_str(c->why, "statuses before a directive are such as %200,304{Referer}i or %!200D");
    return false;
}

/* Takes what is in braces, if anything is. */
static bool
take_argument(struct compiling *c, struct span *argument)
{
    const char *end = *c->at == '{' ? strchr(c->at, '}') : NULL;

    *argument = span_of("", 0);
    if (*c->at != '{')
        return true;
    if (!end || end == c->at + 1) {
        buf_printf(c->why, "\"%.20s\" has no name in its braces", c->at - 1);
        return false;
    }
    *argument = span_of(c->at + 1, (size_t)(end - c->at) - 1);
    c->at = end + 1;
    return true;
}

/* Takes a directive, at the percent sign, and the text behind it. */
static bool
take_part(struct compiling *c, struct log_part *part)
{
    struct span argument;

    c->at++;
    if (!take_statuses(c, part))
        return false;
    while (*c->at == '>' || *c->at == '<')
        c->at++;
    if (!take_argument(c, &argument))
        return false;
    if (!isalpha((unsigned char)*c->at) && *c->at != '^') {
        buf_append_str(c->why, "a percent sign has no letter behind it; %% is a percent sign");
        return false;
    }
    part->directive = find(*c->at, argument);
    if (!part->directive) {
        explain_unknown(*c->at, argument, c->why);
        return false;
    }
    c->at++;
    part->kind = part->directive->kind;
    part->argument = argument.len ? strndup(argument.ptr, argument.len) : NULL;
    if (argument.len && !part->argument) {
        errno = ENOMEM;
        return false;
    }
    return (part->kind != LOG_KIND_STRFTIME || set_time(part, c->why)) &&
           take_text(c, &part->text);
}

/* ---- what ends a value ----------------------------------------------------------------------- */

/* May the value have this byte? */
static bool
may_have(enum log_kind kind, char byte)
{
    const unsigned char c = (unsigned char)byte;

    switch (kind) {
    case LOG_KIND_TEXT:
        return isalnum(c) || c == '\\';
    case LOG_KIND_HOST:
        return isalnum(c) || strchr("\\.-_[]", c);
    case LOG_KIND_ADDRESS:
        return isalnum(c) || c == '.' || c == ':' || c == '-';
    case LOG_KIND_DATE:
        return false;
    default:
        return isdigit(c) || c == '-';
    }
}

static bool
set_stops(struct log_pattern *pattern, struct buf *why)
{
    for (unsigned i = pattern->count; i-- > 0;) {
        struct log_part *part = &pattern->parts[i];
        const struct log_part *next = i + 1 < pattern->count ? part + 1 : NULL;

        part->stop = (char)(part->text.len ? part->text.ptr[0] : 0);
        if (part->text.len) {
            if (!may_have(part->kind, part->stop))
                continue;
            buf_printf(why, "\"%c\" behind %%%s may occur in its value, so that lines could not be "
                            "read back",
                       part->stop, part->directive->name);
            return false;
        }
        part->joined = next && part->directive->value == LOG_VALUE_PATH &&
                       next->directive->value == LOG_VALUE_QUERY;
        if (next && !part->joined) {
            buf_printf(why, "nothing stands between %%%s and %%%s, so that lines could not be read "
                            "back",
                       part->directive->name, next->directive->name);
            return false;
        }
        if (part->joined)
            part->stop = next->stop;
    }
    return true;
}

/* ---- patterns -------------------------------------------------------------------------------- */

/* The text of a format string, which may be given by its name. */
static const char *
text_of(const char *format, struct buf *why)
{
    struct nearest nearest = NEAREST_TO(format);
    char ask[80];

    for (const struct log_named_pattern *named = log_named_patterns; named->name; named++) {
        if (strcmp(named->name, format) == 0)
            return named->text;
        nearest_offer(&nearest, named->name);
    }
    if (strchr(format, '%'))
        return format;
    nearest_offer(&nearest, "plain");
    nearest_offer(&nearest, "json");
    buf_printf(why, "\"%s\" is not one of plain, json", format);
    for (const struct log_named_pattern *named = log_named_patterns; named->name; named++)
        buf_printf(why, ", %s", named->name);
    buf_printf(why, " and format strings such as %%h %%t \"%%r\" %%>s %%b%s",
               nearest_ask(&nearest, ask, sizeof(ask)));
    return NULL;
}

static bool
compile(struct compiling *c)
{
    struct log_pattern *pattern = c->pattern;

    if (!take_text(c, &pattern->begin))
        return false;
    for (; *c->at; pattern->count++) {
        if (pattern->count == LOG_PATTERN_PARTS) {
            buf_printf(c->why, "it has more than %u directives", LOG_PATTERN_PARTS);
            return false;
        }
        if (!take_part(c, &pattern->parts[pattern->count])) {
            /* It may have an argument, for log_pattern_free(). */
            pattern->count++;
            return false;
        }
    }
    if (pattern->count == 0)
        buf_append_str(c->why, "it has no directive, such as %h");
    return pattern->count && set_stops(pattern, c->why);
}

struct log_pattern *
log_pattern_compile(const char *format, struct buf *why)
{
    const char *text = text_of(format, why);
    struct log_pattern *pattern = text ? calloc(1, sizeof(*pattern)) : NULL;
    struct compiling c = {.pattern = pattern, .at = text, .why = why};
    int error;

    errno = text ? ENOMEM : EINVAL;
    if (pattern)
        pattern->text = c.text = malloc(strlen(text) + 1);
    if (pattern && pattern->text) {
        errno = EINVAL;
        if (compile(&c))
            return pattern;
    }
    error = errno;
    if (error == ENOMEM)
        buf_append_str(why, "out of memory");
    log_pattern_free(pattern);
    errno = error;
    return NULL;
}

void
log_pattern_free(struct log_pattern *pattern)
{
    if (!pattern)
        return;
    for (unsigned i = 0; i < pattern->count; i++)
        free(pattern->parts[i].argument);
    free(pattern->text);
    free(pattern);
}

bool
log_part_applies(const struct log_part *part, unsigned status)
{
    bool named = false;

    for (unsigned i = 0; i < part->status_count; i++)
        named |= part->statuses[i] == status;
    return part->status_count == 0 || named != part->negated;
}
