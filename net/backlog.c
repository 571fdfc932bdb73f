#include "net/backlog.h"

#include <stdlib.h>
#include <string.h>

static void
free_bytes(struct memory_account *memory, char *bytes, size_t len)
{
    if (!bytes)
        return;
    memory_uncharge(memory, MEMORY_REQUESTS, len);
    free(bytes);
}

bool
net_backlog_keep(struct net_backlog *backlog, struct memory_account *memory, struct span rest)
{
    backlog->rest = rest;
    if (!rest.len)
        return true;
    if (backlog->begun) {
        backlog->bytes = backlog->begun;
        backlog->begun = NULL;
        return true;
    }
    if (!memory_charge(memory, MEMORY_REQUESTS, rest.len))
        return false;
    backlog->bytes = memory_realloc(memory, NULL, rest.len);
    if (!backlog->bytes) {
        memory_uncharge(memory, MEMORY_REQUESTS, rest.len);
        return false;
    }
    memcpy(backlog->bytes, rest.ptr, rest.len);
    backlog->len = rest.len;
    backlog->rest = span_of(backlog->bytes, rest.len);
    return true;
}

struct span
net_backlog_begin(struct net_backlog *backlog)
{
    backlog->begun = backlog->bytes;
    backlog->bytes = NULL;
    return backlog->rest;
}

void
net_backlog_end(struct net_backlog *backlog, struct memory_account *memory)
{
    free_bytes(memory, backlog->begun, backlog->len);
    backlog->begun = NULL;
}

void
net_backlog_drop(struct net_backlog *backlog, struct memory_account *memory)
{
    free_bytes(memory, backlog->bytes, backlog->len);
    backlog->bytes = NULL;
}
