#include "client/url_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "cli/text_line.h"

void
url_list_free(struct url_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->urls[i]);
    free(list->urls);
    *list = (struct url_list){.urls = NULL};
}

bool
url_list_add(struct url_list *list, const char *url)
{
    const char *scheme = strstr(url, "://") ? "" : "http://";
    size_t size = strlen(scheme) + strlen(url) + 1;
    char *copy;

    if (list->count == list->allocated) {
        size_t allocated = list->allocated ? list->allocated * 2 : 16;
        char **grown = realloc(list->urls, allocated * sizeof(*grown));

        if (!grown)
            return false;
        list->urls = grown;
        list->allocated = allocated;
    }
    if (!(copy = malloc(size)))
        return false;
    snprintf(copy, size, "%s%s", scheme, url);
    list->urls[list->count++] = copy;
    return true;
}

static bool
is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

int
url_list_read(struct url_list *list, FILE *from)
{
    struct buf line;
    int error = 0, more;

    buf_init(&line, URL_LIST_MOST_LINE);
    while (!error && (more = text_line_read(from, &line)) != 0) {
        char *begin = line.data, *end = begin + line.len;

        if (more < 0) {
            error = errno;
            continue;
        }
        if (line.len == 0)
            continue;
        while (begin < end && is_space(*begin))
            begin++;
        while (end > begin && is_space(end[-1]))
            end--;
        if (begin == end || *begin == '#')
            continue;
        *end = '\0';
        if (strlen(begin) != (size_t)(end - begin))
            error = EINVAL;
        else if (!url_list_add(list, begin))
            error = ENOMEM;
    }
    buf_free(&line);
    return error;
}
