#include "study/simulate/simulate_sizes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/hash.h"
#include "base/units.h"
#include "cli/output.h"
#include "cli/text_line.h"

#define UNKNOWN TRACE_SIZE_UNKNOWN

struct entry {
    uint64_t key; /* of the URL */
    uint32_t bytes;
};

/* The longest URL of a trace, and a number. */
#define LINE_MOST (2u * 1024u * 1024u + 64u)

struct entries {
    struct entry *entries; /* owned */
    size_t count;
    size_t capacity;
    size_t large; /* more than is kept */
};

static int
compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    return x->key < y->key ? -1 : x->key > y->key;
}

/*
 * Without the fragment, which a trace's URLs lack; "http://host/" without its slash: it is the same
 * as "http://host".
 */
static struct span
significant(struct span url)
{
    const char *fragment = url.len ? memchr(url.ptr, '#', url.len) : NULL;
    const char *host;

    if (fragment)
        url.len = (size_t)(fragment - url.ptr);
    host = memmem(url.ptr, url.len, "://", 3);
    if (host && url.ptr[url.len - 1] == '/') {
        size_t from = (size_t)(host - url.ptr) + 3;

        if (memchr(url.ptr + from, '/', url.len - from) == url.ptr + url.len - 1)
            url.len--;
    }
    return url;
}

static bool
add_entry(struct entries *entries, struct span url, uint64_t bytes)
{
    if (entries->count == entries->capacity) {
        size_t capacity = entries->capacity ? 2 * entries->capacity : 256;
        struct entry *grown = realloc(entries->entries, capacity * sizeof(*grown));

        if (!grown)
            return false;
        entries->entries = grown;
        entries->capacity = capacity;
    }
    entries->entries[entries->count++] =
        (struct entry){hash64_bytes(significant(url)),
                       bytes <= TRACE_SIZE_MOST ? (uint32_t)bytes : TRACE_SIZE_MOST};
    entries->large += bytes > TRACE_SIZE_MOST;
    return true;
}

static int
read_lines(const char *path, FILE *file, struct entries *entries)
{
    struct buf text;
    size_t number = 0;
    int status = EX_OK, more;

    buf_init(&text, LINE_MOST);
    while (status == EX_OK && (more = text_line_read(file, &text)) != 0) {
        char *line = text.data, *tab;
        uint64_t bytes;

        number++;
        if (more < 0) {
            output_complain("%s: line %zu: %s", path, number, strerror(errno));
            status = errno == EMSGSIZE ? EX_DATAERR : errno == ENOMEM ? EX_SOFTWARE : EX_IOERR;
            continue;
        }
        if (text.len == 0 || *line == '#')
            continue;
        tab = memchr(line, '\t', text.len);
        line[strcspn(line, "\r")] = '\0';
        if (*line == '\0')
            continue;
        if (!tab || !units_parse_uint(tab + 1, 0, UINT64_MAX, &bytes)) {
            output_complain("%s: line %zu is not a URL, a tab and a number of bytes", path, number);
            status = EX_DATAERR;
        } else if (!add_entry(entries, span_of(line, (size_t)(tab - line)), bytes)) {
            output_complain("out of memory");
            status = EX_SOFTWARE;
        }
    }
    buf_free(&text);
    return status;
}

static void
apply(const struct entries *entries, const struct trace *trace, uint32_t *by_url)
{
    for (size_t id = 0; id < trace->url_count; id++) {
        char text[TRACE_URL_TEXT];
        struct entry wanted = {
            .key = hash64_bytes(significant(trace_url_text(trace, (uint32_t)id, text)))};
        const struct entry *found =
            bsearch(&wanted, entries->entries, entries->count, sizeof(wanted), compare_entries);

        by_url[id] = found ? found->bytes : UNKNOWN;
    }
}

int
simulate_sizes_read(const char *path, const struct trace *trace, uint32_t *sizes)
{
    struct entries entries = {0};
    uint32_t *by_url;
    FILE *file = fopen(path, "re");
    int status;

    if (!file) {
        output_complain("%s: %s", path, strerror(errno));
        return EX_NOINPUT;
    }
    by_url = malloc((trace->url_count + 1) * sizeof(*by_url));
    status = by_url ? read_lines(path, file, &entries) : EX_SOFTWARE;
    if (!by_url)
        output_complain("out of memory");
    fclose(file);
    if (entries.large != 0)
        output_complain("%s: %zu sizes are larger than %u bytes and count as that", path,
                        entries.large, TRACE_SIZE_MOST);
    if (status == EX_OK && entries.count != 0) {
        qsort(entries.entries, entries.count, sizeof(*entries.entries), compare_entries);
        apply(&entries, trace, by_url);
        for (size_t i = 0; i < trace->request_count; i++)
            if (by_url[trace->ids[i]] != UNKNOWN)
                sizes[i] = by_url[trace->ids[i]];
    }
    free(entries.entries);
    free(by_url);
    return status;
}

static int
compare_sizes(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* The known sizes, each URL's once, into `each`. */
static void
gather(const struct trace *trace, const uint32_t *sizes, bool *seen, uint32_t *each,
       struct simulate_sizes_known *count)
{
    *count = (struct simulate_sizes_known){0};
    for (size_t i = 0; i < trace->request_count; i++) {
        if (seen[trace->ids[i]])
            continue;
        seen[trace->ids[i]] = true;
        if (sizes[i] == UNKNOWN)
            count->unknown++;
        else
            each[count->known++] = sizes[i];
    }
}

int
simulate_sizes_complete(const char *path, const struct trace *trace, uint32_t *sizes,
                        struct simulate_sizes_known *count)
{
    bool *seen = calloc(trace->url_count + 1, sizeof(*seen));
    uint32_t *each = calloc(trace->url_count + 1, sizeof(*each));
    uint32_t median = 0;
    int status = EX_SOFTWARE;

    if (seen && each) {
        gather(trace, sizes, seen, each, count);
        status = count->known < count->unknown ? EX_DATAERR : EX_OK;
    } else {
        output_complain("out of memory");
    }
    if (status == EX_OK && count->unknown != 0) {
        qsort(each, count->known, sizeof(*each), compare_sizes);
        median = count->median = each[(count->known - 1) / 2];
        for (size_t i = 0; i < trace->request_count; i++)
            if (sizes[i] == UNKNOWN)
                sizes[i] = median;
        output_complain("%s: the size of %" PRIu64 " of %" PRIu64
                        " URLs is unknown and taken to be the median of the others, %" PRIu32
                        " bytes",
                        path, count->unknown, count->known + count->unknown, median);
    }
    free(seen);
    free(each);
    return status;
}
