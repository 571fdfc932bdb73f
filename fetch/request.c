#include "fetch/request.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/container_of.h"
#include "origins/origin_route.h"

struct kept {
    _Atomic unsigned references;
    _Atomic(const struct origin_member *) member; /* request_note_member() */
    _Atomic uint64_t marks[REQUEST_MARKS];        /* request_note_mark() */
    struct memory_account *account;
    size_t charged;
    struct request request; /* its spans are in text */
    char text[];
};

/* Copies a span behind *end. */
static struct span
copy(char **end, struct span from)
{
    char *start = *end;

    if (from.len)
        memcpy(start, from.ptr, from.len);
    *end += from.len;
    return span_of(start, from.len);
}

size_t
request_size(const struct request *request, struct span url)
{
    return sizeof(struct kept) + request->method_name.len + url.len + request->target.len +
           request->fields.len;
}

const struct request *
request_keep(const struct request *request, struct span url, struct client *client,
             struct memory_account *account)
{
    size_t size = request_size(request, url);
    struct kept *kept;
    char *end;

    if (!memory_charge(account, MEMORY_REQUESTS, size)) {
        errno = ENOBUFS;
        return NULL;
    }
    kept = memory_realloc(account, NULL, size);
    if (!kept) {
        memory_uncharge(account, MEMORY_REQUESTS, size);
        errno = ENOMEM;
        return NULL;
    }
    end = kept->text;
    atomic_init(&kept->references, 1);
    atomic_init(&kept->member, NULL);
    for (unsigned i = 0; i < REQUEST_MARKS; i++)
        atomic_init(&kept->marks[i], 0);
    kept->account = account;
    kept->charged = size;
    kept->request = *request;
    kept->request.client = client_retain(client);
    kept->request.rules = shared_retain(request->rules);
    kept->request.method_name = copy(&end, request->method_name);
    kept->request.url = copy(&end, url);
    kept->request.target = copy(&end, request->target);
    kept->request.fields = copy(&end, request->fields);
    return &kept->request;
}

static struct kept *
kept_of(const struct request *request)
{
    return container_of((struct request *)(uintptr_t)request, struct kept, request);
}

const struct request *
request_retain(const struct request *kept)
{
    atomic_fetch_add_explicit(&kept_of(kept)->references, 1, memory_order_relaxed);
    return kept;
}

void
request_note_member(const struct request *request, const struct origin_member *member)
{
    atomic_store_explicit(&kept_of(request)->member, member, memory_order_relaxed);
}

struct span
request_member(const struct request *request)
{
    const struct origin_member *member =
        atomic_load_explicit(&kept_of(request)->member, memory_order_relaxed);

    return member ? member->url : span_of("", 0);
}

void
request_note_mark(const struct request *request, unsigned place, uint64_t number)
{
    _Atomic uint64_t *mark = &kept_of(request)->marks[place];
    uint64_t latest = atomic_load(mark);

    while (latest < number && !atomic_compare_exchange_weak(mark, &latest, number))
        ;
}

uint64_t
request_mark(const struct request *request, unsigned place)
{
    return atomic_load_explicit(&kept_of(request)->marks[place], memory_order_relaxed);
}

void
request_release(const struct request **request)
{
    struct kept *kept = *request ? kept_of(*request) : NULL;

    *request = NULL;
    if (!kept || atomic_fetch_sub_explicit(&kept->references, 1, memory_order_acq_rel) != 1)
        return;
    client_release(&kept->request.client);
    shared_release(&kept->request.rules);
    memory_uncharge(kept->account, MEMORY_REQUESTS, kept->charged);
    free(kept);
}
