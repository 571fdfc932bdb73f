#include "server/config/sections.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/section_key.h"
#include "server/config/options_table.h"
#include "server/http/http_origins.h"
#include "rules/rules.h"

struct section_kind {
    const char *name;
    const char *help;
    bool named; /* "[KIND NAME]" */
    const struct section_key *keys; /* NULL: those of a rule */
    /* Is it a value of the key? False with a sentence in `why`. NULL: apply() says so. */
    bool (*check)(const struct section_key *key, const char *text, struct buf *why);
    /* Sets an option from a section. False with a sentence in `why`. NULL: others refer to it. */
    bool (*apply)(const struct sections *sections, const struct section *section,
                  struct options *options, struct buf *why);
};

struct value {
    TAILQ_ENTRY(value) link;
    const struct section_key *key;
    char *text;
    char *place;
};

struct section {
    TAILQ_ENTRY(section) link;
    const struct section_kind *kind;
    char *name; /* NULL: none */
    char *place;
    bool refused; /* what it says has been explained already */
    TAILQ_HEAD(, value) values;
};

static bool apply_row(const struct sections *sections, const struct section *section,
                      struct options *options, struct buf *why);
static bool apply_listener(const struct sections *sections, const struct section *section,
                           struct options *options, struct buf *why);

static bool apply_rule(const struct sections *sections, const struct section *section,
                       struct options *options, struct buf *why);

static const struct section_key origin_keys[] = {
    {"member", "URL [weight=N] [max=N] [backup]", "a member; may be repeated", true, SECTION_WORDS},
    {"balance", "first|round-robin|least|hash", "without it, first", false, SECTION_WORD},
    {"probe", "/PATH", "what members are asked for, to know whether they serve", false,
     SECTION_WORD},
    {"probe-interval", "TIME", "without it, 5s", false, SECTION_WORD},
    {"probe-status", "N", "without it, any from 200 to 299", false, SECTION_WORD},
    {"probe-fall", "N", "failures before a member is down; without it, 3", false, SECTION_WORD},
    {"probe-rise", "N", "successes before it is used again; without it, 2", false, SECTION_WORD},
    {"errors", "N", "responses in succession with status 5xx after which a member is left", false,
     SECTION_WORD},
    {"slow", "TIME", "a member with longer responses is left; without it, 0: none", false,
     SECTION_WORD},
    {"queue", "TIME", "longest wait for a member with max=; without it, 1s", false, SECTION_WORD},
    {.name = NULL},
};

static const struct section_key row_keys[] = {
    {"host", "NAME", "host of the requests; without it, any host", false, SECTION_WORD},
    {"path", "PREFIX", "what their paths begin with; without it, /", false, SECTION_WORD},
    {"origin", "NAME|URL", "a section [origin NAME], or a member; may be repeated", true,
     SECTION_WORD},
    {"balance", "first|round-robin|least|hash", "without it, that of the origin", false,
     SECTION_WORD},
    {"send-host", "client|origin|NAME[:PORT]", "Host that the origin is sent", false,
     SECTION_WORD},
    {.name = NULL},
};

static const struct section_key listener_keys[] = {
    {"address", "ADDRESS:PORT|unix:PATH", "as that of --http", false, SECTION_WORD},
    {"protocol", "http|http-proxied|metrics", "without it, http", false, SECTION_WORD},
    {.name = NULL},
};

static const struct section_kind kinds[] = {
    {.name = "origin",
     .named = true,
     .help = "The members of an origin, for the rows that name it.",
     .keys = origin_keys},
    {.name = "row",
     .help = "Requests that a reverse proxy serves, and where they lead: --origin.",
     .keys = row_keys,
     .apply = apply_row},
    {.name = "listener",
     .help = "An address where the daemon listens for HTTP.",
     .keys = listener_keys,
     .apply = apply_listener},
    {.name = "rule",
     .help = "What is decided about requests and responses: sunproxyd.rules(5).",
     .check = rules_check_value,
     .apply = apply_rule},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* ---- reading --------------------------------------------------------------------------------- */

void
sections_init(struct sections *sections)
{
    TAILQ_INIT(&sections->list);
    sections_end_file(sections);
}

void
sections_end_file(struct sections *sections)
{
    sections->begun = false;
    sections->open = NULL;
}

static const struct section_key *
keys_of(const struct section_kind *kind)
{
    return kind->keys ? kind->keys : rules_keys();
}

static const struct section_kind *
find_kind(struct span name)
{
    for (size_t i = 0; i < KINDS; i++)
        if (span_equal(span_str(kinds[i].name), name))
            return &kinds[i];
    return NULL;
}

static const struct section *
find_named(const struct sections *sections, const char *kind, const char *name)
{
    const struct section *section;

    TAILQ_FOREACH(section, &sections->list, link)
    if (section->name && strcmp(section->kind->name, kind) == 0 && strcmp(section->name, name) == 0)
        return section;
    return NULL;
}

static void
explain_kind(const char *place, struct span name, struct buf *why)
{
    char text[64], ask[80];
    struct nearest nearest;

    snprintf(text, sizeof(text), "%.*s", (int)name.len, name.ptr);
    nearest = NEAREST_TO(text);
    for (size_t i = 0; i < KINDS; i++)
        nearest_offer(&nearest, kinds[i].name);
    buf_printf(why, "%s[%s] is no section%s", place, text,
               nearest_ask(&nearest, ask, sizeof(ask)));
}

/* Takes a word off the text, and the blanks behind it. */
static struct span
take_word(const char **text, const char *end)
{
    const char *begin = *text;
    struct span word;

    while (*text < end && !isspace((unsigned char)**text))
        ++*text;
    word = span_of(begin, (size_t)(*text - begin));
    while (*text < end && isspace((unsigned char)**text))
        ++*text;
    return word;
}

/* NULL without memory; what was made is freed with the others. */
static struct section *
add_section(struct sections *sections, const struct section_kind *kind, struct span name,
            const char *place)
{
    struct section *section = calloc(1, sizeof(*section));

    if (!section)
        return NULL;
    section->kind = kind;
    section->name = name.len ? strndup(name.ptr, name.len) : NULL;
    section->place = strdup(place);
    TAILQ_INIT(&section->values);
    TAILQ_INSERT_TAIL(&sections->list, section, link);
    return section->place && (section->name || !name.len) ? section : NULL;
}

/* What stands in the brackets; false if nothing follows them but a comment. */
static bool
read_header(const char *line, struct span *kind, struct span *name)
{
    const char *end = strchr(line, ']'), *at = line + 1;

    if (!end)
        return false;
    at += strspn(at, " \t");
    *kind = take_word(&at, end);
    *name = span_of(at, (size_t)(end - at));
    while (name->len && isspace((unsigned char)name->ptr[name->len - 1]))
        name->len--;
    at = end + 1 + strspn(end + 1, " \t\r\n");
    return *at == '\0' || *at == '#';
}

bool
sections_open(struct sections *sections, const char *place, const char *line, struct buf *why)
{
    const struct section_kind *kind;
    struct span word, name;

    sections->begun = true;
    sections->open = NULL;
    if (!read_header(line, &word, &name)) {
        buf_printf(why, "%s\"%s\" is not of the form [SECTION]", place, line);
        return false;
    }
    kind = find_kind(word);
    if (!kind) {
        explain_kind(place, word, why);
        return false;
    }
    if (kind->named != (name.len != 0)) {
        buf_printf(why, "%s[%s] %s", place, kind->name,
                   kind->named ? "has a name: [origin NAME]" : "has no name");
        return false;
    }
    sections->open = add_section(sections, kind, name, place);
    if (!sections->open) {
        buf_append_str(why, "out of memory");
        return false;
    }
    if (!kind->named || find_named(sections, kind->name, sections->open->name) == sections->open)
        return true;
    buf_printf(why, "%s[%s %s]: an earlier section has that name", place, kind->name,
               sections->open->name);
    return false;
}

static const struct section_key *
find_key(const struct section_kind *kind, const char *name)
{
    for (const struct section_key *key = keys_of(kind); key->name; key++)
        if (strcmp(key->name, name) == 0)
            return key;
    return NULL;
}

static const struct value *
find_value(const struct section *section, const char *name)
{
    const struct value *value;

    TAILQ_FOREACH(value, &section->values, link)
    if (strcmp(value->key->name, name) == 0)
        return value;
    return NULL;
}

static void
explain_key(const struct section_kind *kind, const char *place, const char *name, struct buf *why)
{
    struct nearest nearest = NEAREST_TO(name);
    char ask[80];

    if (option_row_named(name)) {
        buf_printf(why, "%s%s is no key of [%s]; options stand before the first section", place,
                   name, kind->name);
        return;
    }
    for (const struct section_key *key = keys_of(kind); key->name; key++)
        nearest_offer(&nearest, key->name);
    buf_printf(why, "%s%s is no key of [%s]%s", place, name, kind->name,
               nearest_ask(&nearest, ask, sizeof(ask)));
}

static bool
check_value(const struct section_kind *kind, const struct section_key *key, const char *place,
            const char *text, struct buf *why)
{
    size_t before = why->len;

    buf_append_str(why, place);
    if (kind->check && !kind->check(key, text, why))
        return false;
    buf_truncate(why, before);
    return true;
}

static bool
has_value(const struct section *section, const struct section_key *key, const char *text)
{
    const struct value *value;

    TAILQ_FOREACH(value, &section->values, link)
    if (value->key == key && strcmp(value->text, text) == 0)
        return true;
    return false;
}

bool
sections_set(struct sections *sections, const char *place, const char *name, const char *text,
             struct buf *why)
{
    struct section *section = sections->open;
    const struct section_key *key = section ? find_key(section->kind, name) : NULL;
    struct value *value;

    if (!section)
        return true;
    if (!key) {
        explain_key(section->kind, place, name, why);
        return false;
    }
    if (*text == '\0' || (key->value != SECTION_TEXT &&
                          strpbrk(text, key->value == SECTION_WORDS ? "," : " \t,"))) {
        buf_printf(why, "%s%s: \"%s\" is not one word", place, name, text);
        return false;
    }
    if (key->repeats ? has_value(section, key, text) : find_value(section, name) != NULL) {
        buf_printf(why, "%s%s is there already in this section", place, name);
        return false;
    }
    if (!check_value(section->kind, key, place, text, why))
        return false;
    value = calloc(1, sizeof(*value));
    if (!value || !(value->text = strdup(text)) || !(value->place = strdup(place))) {
        buf_append_str(why, "out of memory");
        free(value ? value->text : NULL);
        free(value);
        return false;
    }
    value->key = key;
    TAILQ_INSERT_TAIL(&section->values, value, link);
    return true;
}

void
sections_free(struct sections *sections)
{
    struct section *section;
    struct value *value;

    while ((section = TAILQ_FIRST(&sections->list))) {
        TAILQ_REMOVE(&sections->list, section, link);
        while ((value = TAILQ_FIRST(&section->values))) {
            TAILQ_REMOVE(&section->values, value, link);
            free(value->text);
            free(value->place);
            free(value);
        }
        free(section->name);
        free(section->place);
        free(section);
    }
    sections->open = NULL;
}

/* ---- taking effect --------------------------------------------------------------------------- */

static const char *
text_of(const struct section *section, const char *key, const char *otherwise)
{
    const struct value *value = find_value(section, key);

    return value ? value->text : otherwise;
}

static size_t
count_values(const struct section *section, const char *name)
{
    const struct value *value;
    size_t count = 0;

    TAILQ_FOREACH(value, &section->values, link)
    count += strcmp(value->key->name, name) == 0;
    return count;
}

/* The section has to have a value of this key. */
static bool
require(const struct section *section, const char *key, struct buf *why)
{
    if (find_value(section, key))
        return true;
    buf_printf(why, "%s[%s] has no %s", section->place, section->kind->name, key);
    return false;
}

/* Appends a member to the text of a row, with a bar before each of its words but the first. */
static void
add_member(struct buf *text, size_t *count, const char *words)
{
    const char *rest = words, *end = words + strlen(words);

    for (const char *between = (*count)++ ? "," : ""; rest < end; between = "|") {
        struct span word = take_word(&rest, end);

        buf_printf(text, "%s%.*s", between, (int)word.len, word.ptr);
    }
}

static void
explain_origin(const struct sections *sections, const struct value *value, struct buf *why)
{
    struct nearest nearest = NEAREST_TO(value->text);
    const struct section *section;
    char ask[80];

    TAILQ_FOREACH(section, &sections->list, link)
    if (section->name && strcmp(section->kind->name, "origin") == 0)
        nearest_offer(&nearest, section->name);
    buf_printf(why, "%sorigin: \"%s\" is neither a URL nor the name of an [origin]%s", value->place,
               value->text, nearest_ask(&nearest, ask, sizeof(ask)));
}

/* Appends the members of an origin. */
static void
add_members(struct buf *text, size_t *count, const struct section *origin)
{
    const struct value *member;

    TAILQ_FOREACH(member, &origin->values, link)
    if (strcmp(member->key->name, "member") == 0)
        add_member(text, count, member->text);
}

/* Appends the members that a row names: by URLs, or one section. */
static bool
add_origin(const struct sections *sections, const struct section *row, const struct value *named,
           struct buf *text, size_t *count, struct buf *why)
{
    const struct section *origin = find_named(sections, "origin", named->text);

    if (!origin && !strstr(named->text, "://")) {
        explain_origin(sections, named, why);
        return false;
    }
    if (!origin) {
        add_member(text, count, named->text);
        return true;
    }
    if (count_values(row, "origin") > 1) {
        buf_printf(why, "%sorigin: a row that names an [origin] has no other", named->place);
        return false;
    }
    add_members(text, count, origin);
    return !origin->refused;
}

static bool
set_option(struct options *options, const char *name, const struct section *section,
           const struct buf *text, struct buf *why)
{
    if (!buf_failed(text))
        return option_set(options, option_row_named(name), section->place, buf_str(text), why);
    buf_append_str(why, "out of memory");
    return false;
}

/* The row's own, or that of the first origin that it names; NULL: there is none. */
static const char *
find_balance(const struct sections *sections, const struct section *row)
{
    const struct section *origin = find_named(sections, "origin", text_of(row, "origin", ""));

    return text_of(row, "balance", origin ? text_of(origin, "balance", NULL) : NULL);
}

/* Appends the keys of the origin that rows have from it. NULL: there is no such section. */
static void
add_common(struct buf *text, const struct section *origin)
{
    const struct value *value;

    if (!origin)
        return;
    TAILQ_FOREACH(value, &origin->values, link)
    if (strcmp(value->key->name, "member") != 0 && strcmp(value->key->name, "balance") != 0)
        buf_printf(text, " %s=%s", value->key->name, value->text);
}

/* Host and path are written one behind the other, so neither may look like the other. */
static bool
check_pattern(const struct section *row, struct buf *why)
{
    const struct value *host = find_value(row, "host"), *path = find_value(row, "path");

    if (host && strpbrk(host->text, "/=")) {
        buf_printf(why, "%shost: \"%s\" is not the name of a host", host->place, host->text);
        return false;
    }
    if (path && (path->text[0] != '/' || strchr(path->text, '='))) {
        buf_printf(why, "%spath: \"%s\" does not begin with a slash, or has a \"=\"", path->place,
                   path->text);
        return false;
    }
    return true;
}

static bool
apply_row(const struct sections *sections, const struct section *section, struct options *options,
          struct buf *why)
{
    const struct value *value;
    size_t count = 0;
    struct buf text;
    bool ok = require(section, "origin", why) && check_pattern(section, why);

    buf_init(&text, 65536);
    buf_printf(&text, "%s%s=", text_of(section, "host", ""), text_of(section, "path", "/"));
    TAILQ_FOREACH(value, &section->values, link)
    if (ok && strcmp(value->key->name, "origin") == 0)
        ok = add_origin(sections, section, value, &text, &count, why);
    if (find_value(section, "send-host"))
        buf_printf(&text, " host=%s", text_of(section, "send-host", ""));
    if (find_balance(sections, section))
        buf_printf(&text, " balance=%s", find_balance(sections, section));
    add_common(&text, find_named(sections, "origin", text_of(section, "origin", "")));
    ok = ok && set_option(options, "origin", section, &text, why);
    buf_free(&text);
    return ok;
}

static bool
apply_listener(const struct sections *sections, const struct section *section,
               struct options *options, struct buf *why)
{
    static const char *const protocols[] = {"http", "http-proxied", "metrics"};
    const char *protocol = text_of(section, "protocol", "http");
    struct nearest nearest = NEAREST_TO(protocol);
    char ask[80];

    (void)sections;
    if (!require(section, "address", why))
        return false;
    for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++) {
        if (strcmp(protocol, protocols[i]) == 0)
            return option_set(options, option_row_named(protocol), section->place,
                              text_of(section, "address", ""), why);
        nearest_offer(&nearest, protocols[i]);
    }
    buf_printf(why, "%sprotocol: \"%s\" is not one of http, http-proxied and metrics%s",
               find_value(section, "protocol")->place, protocol,
               nearest_ask(&nearest, ask, sizeof(ask)));
    return false;
}

/* The values of its keys, one behind the other, with a backslash before what would end one. */
static bool
apply_rule(const struct sections *sections, const struct section *section, struct options *options,
           struct buf *why)
{
    const struct value *value;
    const char *between = "";
    struct buf text;
    bool ok;

    (void)sections;
    buf_init(&text, 65536);
    TAILQ_FOREACH(value, &section->values, link)
    {
        buf_printf(&text, "%s%s=", between, value->key->name);
        for (const char *at = value->text; *at; at++) {
            if (*at == ';' || *at == '\\')
                buf_append_char(&text, '\\');
            buf_append_char(&text, *at);
        }
        between = "; ";
    }
    ok = set_option(options, "rule", section, &text, why);
    buf_free(&text);
    return ok;
}

/* As a row would read it, also if none names it. */
static bool
check_origin(const struct section *section, struct buf *why)
{
    struct http_origins origins;
    struct option_list list = {.count = 1};
    struct buf text;
    size_t count = 0;
    bool ok = require(section, "member", why);
    char *items[2] = {NULL}, *places[2] = {section->place};

    buf_init(&text, 65536);
    buf_append_str(&text, "/=");
    add_members(&text, &count, section);
    if (find_value(section, "balance"))
        buf_printf(&text, " balance=%s", text_of(section, "balance", ""));
    add_common(&text, section);
    items[0] = text.data;
    list.items = items;
    list.places = places;
    if (ok && buf_failed(&text))
        buf_append_str(why, "out of memory");
    ok = ok && !buf_failed(&text) && http_origins_init(&origins, &list, why);
    if (ok)
        http_origins_free(&origins);
    buf_free(&text);
    return ok;
}

static bool
check_origins(const struct sections *sections, struct buf *why)
{
    struct section *section;
    bool ok = true;

    TAILQ_FOREACH(section, &sections->list, link)
    if (!section->kind->apply) {
        buf_end_line(why);
        section->refused = !check_origin(section, why);
        ok = ok && !section->refused;
    }
    return ok;
}

bool
sections_apply(const struct sections *sections, struct options *options, struct buf *why)
{
    const struct section *section;
    bool ok = check_origins(sections, why);

    TAILQ_FOREACH(section, &sections->list, link)
    {
        buf_end_line(why);
        if (section->kind->apply)
            ok = section->kind->apply(sections, section, options, why) && ok;
    }
    return ok;
}

/* ---- printing -------------------------------------------------------------------------------- */

void
sections_print_defaults(FILE *out)
{
    for (size_t i = 0; i < KINDS; i++) {
        fprintf(out, "\n# %s\n#[%s%s]\n", kinds[i].help, kinds[i].name,
                kinds[i].named ? " NAME" : "");
        for (const struct section_key *key = keys_of(&kinds[i]); key->name; key++)
            fprintf(out, "#  %-22s = %-28s # %s\n", key->name, key->argument, key->help);
    }
}
