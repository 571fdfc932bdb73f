/*
 * What comes from a server of the shared tier. The first byte chooses: replies, as they arrive in
 * pieces, a journal, or a record, both as if their code had been verified.
 */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tier/tier_journal.h"
#include "tier/tier_meta.h"
#include "tier/tier_value.h"

static bool
is_within(struct span part, struct span whole)
{
    return part.len == 0 || (part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len);
}

/* Each reply is the same, however little more than it has come. */
static void
check_replies(struct span input)
{
    struct tier_meta reply, again;
    size_t used, least;

    while (tier_meta_read(input, &reply, &used) == TIER_META_READ) {
        FUZZ_CHECK(used > 0 && used <= input.len);
        FUZZ_CHECK(is_within(reply.value, input) && reply.value.len <= TIER_META_VALUE);
        FUZZ_CHECK(tier_meta_read(span_of(input.ptr, used), &again, &least) == TIER_META_READ);
        FUZZ_CHECK(least == used && again.code == reply.code && again.cas == reply.cas);
        FUZZ_CHECK(tier_meta_read(span_of(input.ptr, used - 1), &again, &least) == TIER_META_MORE);
        input = span_of(input.ptr + used, input.len - used);
    }
}

/* A journal that is read is written as it was, unless it is too long. */
static void
check_journal(struct span input)
{
    struct tier_journal journal, again;
    struct span entries, rest;
    struct tier_entry entry;
    struct buf text;

    if (!tier_journal_read(input, &journal, &entries))
        return;
    buf_init(&text, (size_t)1 << 24);
    for (rest = entries; tier_entry_next(&rest, &entry);) {
        FUZZ_CHECK(is_within(entry.name, input) && is_within(entry.scope, input));
        tier_entry_write(&text, &entry);
    }
    buf_reset(&text);
    tier_journal_write(&text, &journal, entries);
    FUZZ_CHECK(tier_journal_read(buf_span(&text), &again, &rest));
    FUZZ_CHECK(rest.len <= TIER_JOURNAL_BYTES && again.number == journal.number);
    FUZZ_CHECK(entries.len > TIER_JOURNAL_BYTES || span_equal(rest, entries));
    buf_free(&text);
}

static void
check_record(struct span input)
{
    struct disk_record record;
    struct span body;

    if (!tier_record_read(input, &record, &body))
        return;
    FUZZ_CHECK(is_within(record.url, input) && is_within(record.fields, input));
    FUZZ_CHECK(is_within(record.tags, input) && is_within(body, input));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct peer_keys keys = {1, {{"a key of sixteen bytes", 22}}};
    const struct tier_key key = tier_key_of_journal();
    struct span input = span_of(data, size), content;
    enum tier_kind kind;

    switch (fuzz_byte(&input) % 4) {
    case 0:
        check_replies(input);
        break;
    case 1:
        check_journal(input);
        break;
    case 2:
        check_record(input);
        break;
    default:
        FUZZ_CHECK(!tier_value_open(input, &keys, &key, &kind, &content) || fuzz_seed);
    }
    return 0;
}
