#include "rules/tag_rules.h"

#include <errno.h>
#include <stdlib.h>

#include "base/ascii.h"
#include "base/word_list.h"
#include "cache/object.h"
#include "origins/origin_route.h"
#include "http/field.h"

/* ---- tags ------------------------------------------------------------------------------------ */

const char *const tags_default_fields[] = {"Surrogate-Key", "Cache-Tag", NULL};

/* The next tag of *rest, the value of a field; false at the end. */
static bool
next_tag(struct span *rest, struct span *word)
{
    const char *end = rest->ptr + rest->len, *from = rest->ptr, *to;

    while (from < end && (*from == ' ' || *from == '\t' || *from == ','))
        from++;
    for (to = from; to < end && *to != ' ' && *to != '\t' && *to != ',';)
        to++;
    *word = span_of(from, (size_t)(to - from));
    *rest = span_of(to, (size_t)(end - to));
    return word->len != 0;
}

/* The visitor of tags for an object, which are `context`. */
static bool
append_tag(void *context, struct span tag)
{
    struct buf *tags = context;

    if (words_have(buf_span(tags), tag))
        return true;
    return words_count(buf_span(tags)) < OBJECT_MAX_TAGS &&
           tags->len + (tags->len != 0) + tag.len <= OBJECT_MAX_TAG_BYTES &&
           (!tags->len || buf_append_char(tags, ' ')) && buf_append(tags, tag.ptr, tag.len);
}

bool
tags_read(struct span lines, const char *const *fields, struct buf *out)
{
    struct span line, name, value, word;

    while (http_next_line(&lines, &line)) {
        if (!http_split_field(line, &name, &value) || !http_name_is_one_of(name, fields))
            continue;
        while (next_tag(&value, &word))
            if (!append_tag(out, word))
                return false;
    }
    return true;
}

#define MOST_STARS 9

struct tag_rule {
    struct buf text;
    struct span pattern; /* normalised, in `text` */
    struct span tags;    /* likewise: words with blanks between them */
};

/* ---- paths ----------------------------------------------------------------------------------- */

static bool
is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

/* Can it stand in a tag as it is? */
static bool
is_plain(char c)
{
    return c > ' ' && c <= '~' && c != ',';
}

static void
append_escape(struct buf *out, char c)
{
    static const char digits[] = "0123456789ABCDEF";

    buf_append(out, (char[]){'%', digits[(c >> 4) & 15], digits[c & 15]}, 3);
}

/*
 * Appends a segment. Escapes of unreserved characters are decoded, those of others are in upper
 * case, and what cannot stand in a tag is escaped.
 */
static void
append_segment(struct buf *out, struct span segment)
{
    for (size_t i = 0; i < segment.len; i++) {
        char c = segment.ptr[i];
        int high = -1, low = -1;

        if (c == '%' && segment.len - i > 2) {
            high = ascii_hex_value(segment.ptr[i + 1]);
            low = ascii_hex_value(segment.ptr[i + 2]);
        }
        if (high >= 0 && low >= 0) {
            c = (char)(high * 16 + low);
            i += 2;
            if (is_unreserved(c))
                buf_append_char(out, c);
            else
                append_escape(out, c);
        } else if (is_plain(c)) {
            buf_append_char(out, c);
        } else {
            append_escape(out, c);
        }
    }
}

/* Takes the next segment that is not empty off *path; false at the end. */
static bool
next_segment(struct span *path, struct span *segment)
{
    const char *from = path->ptr, *end = path->ptr + path->len, *to;

    while (from < end && *from == '/')
        from++;
    for (to = from; to < end && *to != '/';)
        to++;
    *segment = span_of(from, (size_t)(to - from));
    *path = span_of(to, (size_t)(end - to));
    return segment->len != 0;
}

/* Appends the path as it is compared: "/" and a segment, any number of times. */
static bool
append_path(struct buf *out, struct span path)
{
    struct span segment;

    while (next_segment(&path, &segment)) {
        size_t before = out->len;

        if (!buf_append_char(out, '/'))
            return false;
        append_segment(out, segment);
        segment = span_of(out->data + before, out->len - before);
        if (span_equal(segment, span_str("/."))) {
            out->len = before;
        } else if (span_equal(segment, span_str("/.."))) {
            while (before > 0 && out->data[--before] != '/')
                ;
            out->len = before;
        }
    }
    return !buf_failed(out);
}

/*
 * Appends a path, which is normalised, as an origin may take it that decodes slashes before it
 * looks for segments, and drops their parameters (RFC 3986 section 3.3).
 */
static bool
append_loose_path(struct buf *out, struct span path)
{
    struct buf loose;
    bool in_parameters = false;

    buf_init(&loose, path.len);
    for (size_t i = 0; i < path.len; i++) {
        bool slash = path.ptr[i] == '/';

        if (path.len - i > 2 && memcmp(path.ptr + i, "%2F", 3) == 0) {
            slash = true;
            i += 2;
        }
        in_parameters = !slash && (in_parameters || path.ptr[i] == ';');
        if (!in_parameters)
            buf_append_char(&loose, slash ? '/' : path.ptr[i]);
    }
    if (!buf_failed(&loose))
        append_path(out, buf_span(&loose));
    out->failed = out->failed || loose.failed;
    buf_free(&loose);
    return !buf_failed(out);
}

/* The path of a URL, without its query. */
static struct span
path_of(struct span url)
{
    struct span path;

    if (!memmem(url.ptr, url.len, "://", 3))
        return span_of(NULL, 0);
    (void)origin_route_client(url, &path);
    for (size_t i = 0; i < path.len; i++)
        if (path.ptr[i] == '?' || path.ptr[i] == '#')
            path.len = i;
    return path;
}

/* ---- reading rules --------------------------------------------------------------------------- */

static bool
next_word(struct span *rest, struct span *word)
{
    *rest = http_trim(*rest);
    *word = span_of(rest->ptr, 0);
    while (word->len < rest->len && !http_is_blank(rest->ptr[word->len]))
        word->len++;
    *rest = span_of(rest->ptr + word->len, rest->len - word->len);
    return word->len != 0;
}

/* Returns what is wrong with the pattern as it was written, or NULL. */
static const char *
check_pattern(struct span pattern)
{
    struct span segment;

    if (pattern.len == 0 || *pattern.ptr != '/')
        return "the pattern does not begin with \"/\"";
    for (size_t i = 0; i < pattern.len; i++)
        if (pattern.ptr[i] <= ' ' || pattern.ptr[i] > '~' || pattern.ptr[i] == '?' ||
            pattern.ptr[i] == '#')
            return "the pattern is a path: visible ASCII characters without \"?\" and \"#\"";
    while (next_segment(&pattern, &segment))
        if (segment.len > 1 && memchr(segment.ptr, '*', segment.len))
            return "\"*\" can only be a whole segment of the pattern";
    return NULL;
}

/* The stars of a normalised pattern: a dot segment may have removed one. */
static unsigned
count_stars(struct span pattern)
{
    struct span segment;
    unsigned stars = 0;

    while (next_segment(&pattern, &segment))
        stars += span_equal(segment, span_str("*"));
    return stars;
}

static const char *
check_tags(struct span tags, unsigned stars)
{
    struct span word;
    unsigned count = 0;

    while (next_word(&tags, &word)) {
        if (++count > OBJECT_MAX_TAGS)
            return "there are more than 64 tags";
        for (size_t i = 0; i < word.len; i++) {
            char c = word.ptr[i];

            if (c <= ' ' || c > '~' || c == ',')
                return "a tag is a word of visible ASCII characters without commas";
            if (c != '$')
                continue;
            c = i + 1 < word.len ? word.ptr[i + 1] : '0';
            if (c < '1' || c > '9' || (unsigned)(c - '0') > stars)
                return "\"$\" in a tag is followed by the number of a \"*\" of the pattern";
        }
    }
    return count ? NULL : "there is no tag";
}

/* A rule of its own memory, with the pattern normalised; false without memory. */
static bool
make(struct tag_rule *rule, struct span pattern, struct span tags)
{
    struct buf text;
    size_t len;

    buf_init(&text, 3 * pattern.len + tags.len);
    if (!append_path(&text, pattern) || (len = text.len, !buf_append(&text, tags.ptr, tags.len))) {
        buf_free(&text);
        return false;
    }
    rule->text = text;
    rule->pattern = span_of(text.data, len);
    rule->tags = span_of(text.data + len, tags.len);
    return true;
}

/* Returns what is wrong with the rule, or NULL: then it has been added. */
static const char *
add(struct tag_rules *rules, struct span pattern, struct span tags)
{
    struct tag_rule *all = realloc(rules->rules, (rules->count + 1) * sizeof(*all)), *rule;
    const char *wrong;
    unsigned stars;

    if (!all)
        return strerror(ENOMEM);
    rules->rules = all;
    rule = &all[rules->count];
    if (!make(rule, pattern, tags))
        return strerror(ENOMEM);
    stars = count_stars(rule->pattern);
    wrong = stars > MOST_STARS ? "the pattern has more than 9 \"*\"" : check_tags(tags, stars);
    if (wrong)
        buf_free(&rule->text);
    else
        rules->count++;
    return wrong;
}

bool
tag_rules_add(struct tag_rules *rules, const char *text, struct buf *why)
{
    const char *arrow = strstr(text, "->"), *wrong;
    struct span pattern;

    if (!arrow) {
        buf_printf(why, "\"%s\" is not of the form \"PATTERN -> TAG...\"", text);
        return false;
    }
    pattern = http_trim(span_of(text, (size_t)(arrow - text)));
    wrong = check_pattern(pattern);
    if (!wrong)
        wrong = add(rules, pattern, http_trim(span_str(arrow + 2)));
    if (wrong)
        buf_printf(why, "\"%s\": %s", text, wrong);
    return !wrong;
}

void
tag_rules_free(struct tag_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++)
        buf_free(&rules->rules[i].text);
    free(rules->rules);
    *rules = (struct tag_rules){0};
}

/* ---- applying them --------------------------------------------------------------------------- */

/* Does the path begin with the pattern? Then `stars` has what its stars match. */
static bool
matches(struct span pattern, struct span path, struct span stars[MOST_STARS])
{
    struct span wanted, segment;
    unsigned count = 0;

    while (next_segment(&pattern, &wanted)) {
        if (!next_segment(&path, &segment))
            return false;
        if (span_equal(wanted, span_str("*")))
            stars[count++] = segment;
        else if (!span_equal(wanted, segment))
            return false;
    }
    return true;
}

/* The bytes of a tag. */
static size_t
word_length(struct span word, const struct span stars[MOST_STARS])
{
    size_t length = 0;

    for (size_t i = 0; i < word.len; i++)
        length += word.ptr[i] == '$' ? stars[word.ptr[++i] - '1'].len : 1;
    return length;
}

static bool
append_word(struct buf *out, struct span word, const struct span stars[MOST_STARS])
{
    for (size_t i = 0; i < word.len; i++) {
        if (word.ptr[i] == '$') {
            const struct span *star = &stars[word.ptr[++i] - '1'];

            buf_append(out, star->ptr, star->len);
        } else {
            buf_append_char(out, word.ptr[i]);
        }
    }
    return !buf_failed(out);
}

/* Where tags go. */
struct visitor {
    bool (*visit)(void *context, struct span tag);
    void *context;
    bool skips; /* tags that no object can have; otherwise they end the visit */
    bool loose; /* the path is also taken as append_loose_path() has it */
};

static bool
apply(const struct tag_rule *rule, struct span path, struct buf *word,
      const struct visitor *visitor)
{
    struct span stars[MOST_STARS] = {{NULL, 0}}, rest = rule->tags, template;

    if (!matches(rule->pattern, path, stars))
        return true;
    while (next_word(&rest, &template)) {
        buf_reset(word);
        if (word_length(template, stars) > OBJECT_MAX_TAG_BYTES && visitor->skips)
            continue;
        if (!append_word(word, template, stars) ||
            !visitor->visit(visitor->context, buf_span(word)))
            return false;
    }
    return true;
}

static bool
apply_all(const struct tag_rules *rules, struct span url, const struct visitor *visitor)
{
    struct buf path, loose, word;
    bool ok, both;

    if (!rules->count)
        return true;
    buf_init(&path, 3 * url.len + 1); /* all of it may be escaped */
    buf_init(&loose, 3 * url.len + 1);
    buf_init(&word, OBJECT_MAX_TAG_BYTES);
    ok = append_path(&path, path_of(url)) &&
         (!visitor->loose || append_loose_path(&loose, buf_span(&path)));
    both = visitor->loose && !span_equal(buf_span(&path), buf_span(&loose));
    for (size_t i = 0; ok && i < rules->count; i++)
        ok = apply(&rules->rules[i], buf_span(&path), &word, visitor) &&
             (!both || apply(&rules->rules[i], buf_span(&loose), &word, visitor));
    buf_free(&path);
    buf_free(&loose);
    buf_free(&word);
    return ok;
}

bool
tag_rules_apply(const struct tag_rules *rules, struct span url, struct buf *tags)
{
    return apply_all(rules, url, &(struct visitor){.visit = append_tag, .context = tags});
}

bool
tag_rules_visit(const struct tag_rules *rules, struct span url,
                bool (*visit)(void *context, struct span tag), void *context)
{
    return apply_all(
        rules, url,
        &(struct visitor){.visit = visit, .context = context, .skips = true, .loose = true});
}
