#include "policies/list.h"

bool
list_is_valid(const struct list *list, uint64_t (*bytes_of)(const void *node))
{
    const struct list_node *node = &list->ends;
    uint64_t pages = 0, bytes = 0;

    do {
        if (!node->next || node->next->prev != node)
            return false;
        node = node->next;
        if (node == &list->ends)
            break;
        if (bytes_of)
            bytes += bytes_of(node);
    } while (++pages <= list->pages);
    return pages == list->pages && bytes == list->bytes;
}
