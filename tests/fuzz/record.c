/*
 * Record marking (RFC 5531 section 11): a stream cut into pieces gives the same records as the same
 * stream in one piece, and no record is over the bound. The first byte is the size of the pieces.
 */
#include "rpc/record.h"
#include "tests/fuzz/fuzz.h"

enum { MOST_RECORDS = 4096 };

static const struct rpc_limits limits = {.max_record = 1024, .max_empty_fragments = 16};

struct outcome {
    unsigned count;
    size_t bytes;
    uint64_t sum; /* of the records' bytes with their places */
    enum rpc_record_status end;
};

static void
feed(struct span stream, size_t piece_size, struct outcome *outcome)
{
    struct rpc_record r = {0};

    outcome->end = RPC_RECORD_MORE;
    while (stream.len && outcome->count < MOST_RECORDS) {
        struct span piece = fuzz_take(&stream, piece_size), record;
        enum rpc_record_status status = RPC_RECORD_COMPLETE;

        while (piece.len && status == RPC_RECORD_COMPLETE && outcome->count < MOST_RECORDS) {
            status = rpc_record_feed(&r, &limits, &piece, &record);
            FUZZ_CHECK(status != RPC_RECORD_NO_MEMORY);
            if (status != RPC_RECORD_COMPLETE)
                break;
            FUZZ_CHECK(record.len <= limits.max_record);
            for (size_t i = 0; i < record.len; i++)
                outcome->sum = outcome->sum * 31 + (unsigned char)record.ptr[i];
            outcome->bytes += record.len;
            outcome->count++;
            rpc_record_reset(&r);
        }
        outcome->end = status == RPC_RECORD_BAD ? RPC_RECORD_BAD : RPC_RECORD_MORE;
        if (status == RPC_RECORD_BAD)
            break;
        FUZZ_CHECK(piece.len == 0 || outcome->count == MOST_RECORDS);
    }
    rpc_record_reset(&r);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span input = span_of(data, size);
    size_t piece_size = fuzz_byte(&input) + 1;
    struct outcome whole = {0}, pieces = {0};

    feed(input, input.len, &whole);
    feed(input, piece_size, &pieces);
    FUZZ_CHECK(whole.count == pieces.count && whole.bytes == pieces.bytes);
    FUZZ_CHECK(whole.sum == pieces.sum && whole.end == pieces.end);
    return 0;
}
