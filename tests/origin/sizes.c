/* A table of URLs and sizes: sorted once, then searched by halves. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "base/units.h"
#include "tests/origin/origin.h"

struct entry {
    char *url;
    uint64_t bytes;
};

struct sizes {
    struct entry *entries;
    size_t count;
    size_t capacity;
};

uint64_t
origin_hash(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

/* Order by URL, "http://host" and "http://host/" being one: a sole slash at the end counts not. */
static size_t
significant(const char *url)
{
    const char *host = strstr(url, "://");
    size_t len = strlen(url);

    if (host && len && url[len - 1] == '/' && strchr(host + 3, '/') == url + len - 1)
        len--;
    return len;
}

static int
compare_urls(const char *a, const char *b)
{
    size_t a_len = significant(a), b_len = significant(b);
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

    return order ? order : (a_len > b_len) - (a_len < b_len);
}

static int
compare_entries(const void *a, const void *b)
{
    return compare_urls(((const struct entry *)a)->url, ((const struct entry *)b)->url);
}

static bool
add_line(struct sizes *sizes, char *line)
{
    char *tab = strchr(line, '\t');
    uint64_t bytes;

    if (!tab)
        return false;
    *tab = '\0';
    if (!units_parse_uint(tab + 1, 0, UINT64_MAX / 2, &bytes))
        return false;
    if (sizes->count == sizes->capacity) {
        size_t capacity = sizes->capacity ? sizes->capacity * 2 : 1024;
        struct entry *entries = realloc(sizes->entries, capacity * sizeof(*entries));

        if (!entries)
            return false;
        sizes->entries = entries;
        sizes->capacity = capacity;
    }
    sizes->entries[sizes->count].url = strdup(line);
    sizes->entries[sizes->count].bytes = bytes;
    return sizes->entries[sizes->count++].url != NULL;
}

struct sizes *
sizes_load(const char *path, char *why, size_t why_size)
{
    FILE *file = fopen(path, "r");
    struct sizes *sizes = calloc(1, sizeof(*sizes));
    unsigned long number = 0;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t len;

    if (!file || !sizes) {
        snprintf(why, why_size, "%s: %s", path, strerror(errno));
        goto fail;
    }
    while ((len = getline(&line, &capacity, file)) >= 0) {
        number++;
        while (len > 0 && isspace((unsigned char)line[len - 1]))
            line[--len] = '\0';
        if (len == 0 || line[0] == '#')
            continue;
        if (!add_line(sizes, line)) {
            snprintf(why, why_size, "%s:%lu: not URL<TAB>bytes", path, number);
            goto fail;
        }
    }
    if (sizes->count)
        qsort(sizes->entries, sizes->count, sizeof(*sizes->entries), compare_entries);
    free(line);
    fclose(file);
    return sizes;
fail:
    free(line);
    if (file)
        fclose(file);
    sizes_free(sizes);
    return NULL;
}

void
sizes_free(struct sizes *sizes)
{
    if (!sizes)
        return;
    for (size_t i = 0; i < sizes->count; i++)
        free(sizes->entries[i].url);
    free(sizes->entries);
    free(sizes);
}

static const struct entry *
search(const struct sizes *sizes, const char *url)
{
    size_t low = 0, high = sizes->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_urls(url, sizes->entries[middle].url);

        if (order == 0)
            return &sizes->entries[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

bool
sizes_find(const struct sizes *sizes, const char *url, const char *url_without_port,
           uint64_t *bytes)
{
    const struct entry *entry;

    if (!sizes)
        return false;
    entry = search(sizes, url);
    if (!entry)
        entry = search(sizes, url_without_port);
    if (entry)
        *bytes = entry->bytes;
    return entry != NULL;
}
