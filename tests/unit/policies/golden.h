/*
 * Misses as libCacheSim 0.3.5 counts them (the golden table of the data sets), held against ours.
 */
#ifndef SUNPROXY_TESTS_POLICIES_GOLDEN_H
#define SUNPROXY_TESTS_POLICIES_GOLDEN_H

#include <inttypes.h>
#include <stdio.h>

#include "tests/unit/policies/driven.h"

struct golden_trace {
    uint32_t count, distinct;
    uint32_t *ids; /* numbered by first appearance */
    uint32_t *sizes;
    uint64_t *next;
};

/* An oracleGeneral trace: packed records of u32 time, u64 id, u32 size, i64 next. */
static inline struct golden_trace
golden_read(const char *path)
{
    enum { RECORD = 24 };
    struct golden_trace t = {0};
    unsigned char record[RECORD];
    FILE *file = fopen(path, "rb");
    uint32_t capacity = 1u << 18;
    uint64_t *seen;   /* open addressing: ids ... */
    uint32_t *number; /* ... and their numbers, from 1 */
    uint32_t *last;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    t.count = (uint32_t)(ftell(file) / RECORD);
    ck_assert_uint_lt(t.count, capacity / 2);
    rewind(file);
    t.ids = calloc(t.count, sizeof(*t.ids));
    t.sizes = calloc(t.count, sizeof(*t.sizes));
    t.next = calloc(t.count, sizeof(*t.next));
    seen = calloc(capacity, sizeof(*seen));
    number = calloc(capacity, sizeof(*number));
    last = calloc(t.count, sizeof(*last));
    ck_assert(t.ids && t.sizes && t.next && seen && number && last);
    for (uint32_t i = 0; i < t.count; i++) {
        uint64_t id;
        uint32_t at;

        ck_assert_uint_eq(fread(record, RECORD, 1, file), 1);
        memcpy(&id, record + 4, sizeof(id));
        memcpy(&t.sizes[i], record + 12, sizeof(t.sizes[i]));
        at = (uint32_t)((id * 0x9e3779b97f4a7c15u) >> 40) % capacity;
        while (number[at] && seen[at] != id)
            at = (at + 1) % capacity;
        t.next[i] = POLICY_NEVER;
        if (number[at]) {
            t.next[last[number[at] - 1]] = i;
        } else {
            seen[at] = id;
            number[at] = ++t.distinct;
        }
        t.ids[i] = number[at] - 1;
        last[t.ids[i]] = i;
    }
    fclose(file);
    free(seen);
    free(number);
    free(last);
    return t;
}

static inline void
golden_free(struct golden_trace *t)
{
    free(t->ids);
    free(t->sizes);
    free(t->next);
}

static inline void
golden_check(const struct golden_trace *t, const char *policy, bool in_bytes, uint64_t capacity,
             uint64_t misses, uint64_t miss_bytes)
{
    struct driven d;
    uint64_t missed = 0, missed_bytes = 0;

    driven_begin(&d, policy, t->distinct, in_bytes ? 0 : capacity, in_bytes ? capacity : 0);
    for (uint32_t i = 0; i < t->count; i++) {
        uint64_t bytes = in_bytes ? t->sizes[i] : 1;

        if (!driven_request(&d, t->ids[i],
                            (struct policy_page){.bytes = bytes, .next = t->next[i]})) {
            missed++;
            missed_bytes += bytes;
        }
    }
    ck_assert(d.spec.ops->is_valid(d.policy, d.page_count, d.byte_count));
    ck_assert_msg(missed == misses && missed_bytes == miss_bytes,
                  "%s at %" PRIu64 " %s: %" PRIu64 " misses and %" PRIu64 " bytes, not %" PRIu64
                  " and %" PRIu64,
                  policy, capacity, in_bytes ? "bytes" : "objects", missed, missed_bytes, misses,
                  miss_bytes);
    driven_end(&d);
}

/* Checks every row of the policy that the table calls `theirs`; how many there were. */
static inline unsigned
golden_check_policy(const char *theirs, const char *ours)
{
    struct golden_trace t = golden_read(unit_dataset("traces/cloudPhysicsIO.oracleGeneral.bin"));
    FILE *table = fopen(unit_dataset("golden/cloudphysics.tsv"), "r");
    char line[200], unit[20], policy[20];
    uint64_t capacity, requests, misses, miss_bytes;
    unsigned rows = 0;

    ck_assert_ptr_nonnull(table);
    while (fgets(line, sizeof(line), table)) {
        if (sscanf(line, "%19s %19s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, unit, policy,
                   &capacity, &requests, &misses, &miss_bytes) != 6 ||
            strcmp(policy, theirs) != 0)
            continue;
        ck_assert_uint_eq(requests, t.count);
        golden_check(&t, ours, strcmp(unit, "bytes") == 0, capacity, misses, miss_bytes);
        rows++;
    }
    fclose(table);
    golden_free(&t);
    return rows;
}

#endif
