/*
 * A list of ids: one a line, as libCacheSim's txt traces are. If the first id is a whole number,
 * all are, and a line that is none is malformed; otherwise an id is a word, and becomes a path
 * below the site. Numbers are recognised by their content; words only if they repeat, since a text
 * with a word a line need not be a trace.
 */
#include <stdlib.h>

#include "trace/base_url.h"
#include "trace/formats/fields.h"
#include "trace/formats/formats.h"
#include "trace/formats/lines.h"

#define SNIFF_LINES 500u

struct ids {
    bool begun;
    bool numbers;
};

/* Letters, digits and what names of objects consist of, but no URL; not JSON or prose. */
static bool
is_word(struct span word)
{
    for (size_t i = 0; i < word.len; i++) {
        char c = word.ptr[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            (c == '\0' || !strchr("._-/:@%+=~", c)))
            return false;
    }
    return word.len != 0 && base_url_host_port(word).len == 0;
}

static enum line_kind
kind_of(struct ids *ids, struct span word, uint64_t *number)
{
    if (word.len == 0 || word.ptr[0] == '#')
        return LINE_OTHER;
    if (!ids->begun) {
        ids->begun = true;
        ids->numbers = fields_uint(word, number);
    }
    if (ids->numbers)
        return fields_uint(word, number) ? LINE_REQUEST : LINE_BAD;
    return is_word(word) ? LINE_REQUEST : LINE_BAD;
}

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_request *request)
{
    struct ids *ids = (void *)reader->state;
    struct span word = fields_trim(line);
    enum line_kind kind = kind_of(ids, word, &request->number);

    if (kind != LINE_REQUEST || ids->numbers)
        return kind;
    /* Single words among other lines do not make these a list. */
    return reader->sniffing ? LINE_BAD : lines_make_path(reader, word, &request->url);
}

static const struct line_format lines = {.parse = parse};

static int
compare(const void *a, const void *b)
{
    return span_compare(*(const struct span *)a, *(const struct span *)b);
}

/* Is each of the first lines an id of one kind, and does a word repeat? */
static bool
sniff(struct span head)
{
    struct span words[SNIFF_LINES];
    struct ids ids = {0};
    size_t count = 0;
    bool good = true, repeats = false;

    while (good && count < SNIFF_LINES && head.len != 0) {
        struct span word = fields_trim(lines_next(&head));
        uint64_t number;
        enum line_kind kind = kind_of(&ids, word, &number);

        good = kind != LINE_BAD || head.ptr[-1] != '\n';
        if (kind == LINE_REQUEST)
            words[count++] = word;
    }
    if (good && count != 0 && !ids.numbers) {
        qsort(words, count, sizeof(*words), compare);
        for (size_t i = 1; i < count && !repeats; i++)
            repeats = span_equal(words[i - 1], words[i]);
        good = repeats;
    }
    return good && count != 0;
}

const struct trace_format trace_format_ids = {
    .name = "ids",
    .summary = "an id a line: numbers or words, as libCacheSim's txt",
    .is_text = true,
    .lines = &lines,
    .sniff = sniff,
    .sample = "42932745",
};
