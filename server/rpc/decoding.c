#include "server/rpc/decoding.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "http/known_fields.h"
#include "proxy.h"

#define BLOCK_LEAST ((size_t)16 << 10)   /* bytes of a first block, if as many are wanted */
#define DROPPED ((size_t)16 << 10)       /* bytes that are decoded at once to be passed over */
#define OUTPUT_MOST ((size_t)64 << 10)   /* decoded bytes at once */
#define INPUT_MOST ((size_t)16 << 10)    /* coded bytes at once: br makes what it can of them */
#define DECODER_BYTES ((size_t)64 << 10) /* of a decoder without its window: coding.h */
#define WINDOW_LEAST ((size_t)256 << 10) /* charged at first for a decoder's window */

static const char no_memory[] = "there is no memory for the answer now; try again";

/* ---- memory ---------------------------------------------------------------------------------- */

static bool
charge(struct client_share *share, struct client *client, size_t bytes)
{
    if (!client_share_take(share, client, bytes))
        return false;
    if (memory_charge(share->account, MEMORY_REPLIES, bytes))
        return true;
    client_share_give_back(share, client, bytes);
    return false;
}

static void
uncharge(struct client_share *share, struct client *client, size_t bytes)
{
    memory_uncharge(share->account, MEMORY_REPLIES, bytes);
    client_share_give_back(share, client, bytes);
}

void
content_free_blocks(struct content_block **blocks)
{
    struct content_block *block;

    while ((block = *blocks)) {
        *blocks = block->next;
        uncharge(block->share, block->client, sizeof(*block) + block->size);
        free(block);
    }
}

static void
free_decoder(struct decoding *d)
{
    if (!d->decoder)
        return;
    decoder_destroy(d->decoder);
    d->decoder = NULL;
    uncharge(d->limits.share, d->limits.client, DECODER_BYTES + d->window);
}

/* ---- failures -------------------------------------------------------------------------------- */

void
decoding_break(struct content *content, enum failure why, const char *sentence)
{
    content->stage = CONTENT_BROKEN;
    content->why = why;
    content->sentence = sentence;
    if (content->decoding)
        free_decoder(content->decoding);
}

static void
break_coded(struct content *content, const char *reason)
{
    struct decoding *d = content->decoding;

    snprintf(d->sentence, sizeof(d->sentence), "the answer of the origin is broken: %s", reason);
    decoding_break(content, FAILURE_ORIGIN, d->sentence);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

/* Copies the lines but those of some fields. */
static size_t
copy_fields(char *to, struct span lines, unsigned dropped)
{
    const char *begin = to;
    struct span line;

    while (http_next_whole_line(&lines, &line))
        if (!(http_known_field(line) & dropped))
            to = span_put(to, line);
    return (size_t)(to - begin);
}

/* A block that is in no list. NULL without memory: the content is broken. */
static struct content_block *
make_block(struct content *content, const struct content_limits *limits, size_t size)
{
    struct content_block *block;

    if (!charge(limits->share, limits->client, sizeof(*block) + size)) {
        decoding_break(content, FAILURE_OVERLOADED, no_memory);
        return NULL;
    }
    block = memory_realloc(limits->share->account, NULL, sizeof(*block) + size);
    if (!block) {
        uncharge(limits->share, limits->client, sizeof(*block) + size);
        decoding_break(content, FAILURE_INTERNAL, "out of memory");
        return NULL;
    }
    *block = (struct content_block){.share = limits->share, .client = limits->client, .size = size};
    return block;
}

void
decoding_copy_fields(struct content *content, const struct content_limits *limits)
{
    struct span lines = object_fields(content->object);
    struct content_block *block = make_block(content, limits, lines.len);

    if (block)
        block->len = copy_fields(block->bytes, lines, HTTP_KNOWN_ORIGIN_CONTROL);
    content->fields = block;
}

static struct decoder *
make_decoder(enum coding coding, struct memory_account *account)
{
    struct decoder *decoder = decoder_create(coding);

    return !decoder && memory_reclaim(account, DECODER_BYTES) ? decoder_create(coding) : decoder;
}

void
decoding_begin(struct content *content, enum coding coding, const struct content_limits *limits)
{
    struct memory_account *account = limits->share->account;
    struct span fields = object_fields(content->object);
    size_t size = sizeof(struct decoding) + fields.len;
    struct decoding *d;

    if (!charge(limits->share, limits->client, size + DECODER_BYTES)) {
        decoding_break(content, FAILURE_OVERLOADED, no_memory);
        return;
    }
    d = memory_realloc(account, NULL, size);
    if (d)
        *d = (struct decoding){.limits = *limits,
                               .coding = coding,
                               .decoder = make_decoder(coding, account),
                               .size = size};
    if (!d || !d->decoder) {
        free(d);
        uncharge(limits->share, limits->client, size + DECODER_BYTES);
        decoding_break(content, FAILURE_INTERNAL, "out of memory");
        return;
    }
    d->fields_len =
        copy_fields(d->fields, fields,
                    HTTP_KNOWN_CODING | HTTP_KNOWN_LENGTH | HTTP_KNOWN_ORIGIN_CONTROL);
    content->decoding = d;
    content->stage = CONTENT_CODED;
}

void
decoding_end(struct content *content)
{
    struct decoding *d = content->decoding;

    content_free_blocks(&content->fields);
    content->decoding = NULL;
    if (!d)
        return;
    free_decoder(d);
    content_free_blocks(&d->blocks);
    uncharge(d->limits.share, d->limits.client, d->size);
    free(d);
}

/* ---- decoding -------------------------------------------------------------------------------- */

static size_t
least(size_t a, uint64_t b)
{
    return a < b ? a : (size_t)b;
}

static void
check_bound(struct content *content)
{
    struct decoding *d = content->decoding;
    uint64_t max = d->limits.max_body, by_ratio = content->place.offset * d->limits.ratio;

    if (max < by_ratio)
        max = by_ratio;
    if (d->length <= max)
        return;
    snprintf(d->sentence, sizeof(d->sentence),
             "the body is decoded to more than the bound of %llu bytes", (unsigned long long)max);
    decoding_break(content, FAILURE_TOO_LARGE, d->sentence);
}

/* Charges for what the decoder keeps of the bytes so far, doubling as they become more. */
static void
charge_window(struct content *content)
{
    struct decoding *d = content->decoding;
    size_t window = coding_window(d->coding), grown = d->window;

    while (grown < window && grown < d->length)
        grown = grown ? 2 * grown : WINDOW_LEAST;
    if (grown == d->window)
        return;
    if (charge(d->limits.share, d->limits.client, grown - d->window))
        d->window = grown;
    else
        decoding_break(content, FAILURE_OVERLOADED, no_memory);
}

static void
end_decoding(struct content *content)
{
    struct decoding *d = content->decoding;

    if (!decoder_may_end(d->decoder)) {
        break_coded(content, "it ends within its coded content");
        return;
    }
    content->stage = CONTENT_ENDED;
    free_decoder(d);
}

/*
 * Makes up to `size` bytes at `out`, and lowers the allowance by what that has cost. False: there
 * are none before the object has grown, or none at all.
 */
static bool
decode(struct content *content, void *out, size_t size, size_t *made, size_t *allowance)
{
    struct decoding *d = content->decoding;
    /* Found first: then the bytes that are read are all. */
    bool complete = object_state(content->object) == OBJECT_READY;
    struct span run = object_read(content->object, &content->place);
    struct span input = run.len ? span_of(run.ptr, least(INPUT_MOST, run.len)) : span_of("", 0);
    enum coding_step step;
    const char *reason;
    size_t used;

    *made = 0;
    if (run.len == 0 && !d->unfinished) {
        if (complete)
            end_decoding(content);
        return false;
    }
    used = input.len;
    step = decoder_step(d->decoder, &input, out, least(OUTPUT_MOST, size), made, &reason);
    used -= input.len;
    content->place.offset -= run.len - used;
    *allowance -= least(*allowance, 2 * *made + used + 1);
    d->unfinished = step == CODING_MADE;
    d->length += *made;
    if (step == CODING_BROKEN)
        break_coded(content, reason);
    else
        check_bound(content);
    if (content->stage == CONTENT_CODED)
        charge_window(content);
    return content->stage == CONTENT_CODED;
}

static struct content_block *
add_block(struct content *content, size_t size)
{
    struct decoding *d = content->decoding;
    struct content_block *block = make_block(content, &d->limits, size);

    if (!block)
        return NULL;
    if (d->last)
        d->last->next = block;
    else
        d->blocks = block;
    d->last = block;
    return block;
}

/* The last block, with space in it for the next bytes, of which no more than `most` will come. NULL
 * without memory. */
static struct content_block *
find_space(struct content *content, size_t most)
{
    struct content_block *last = content->decoding->last;
    uint64_t coded = object_length(content->object) - content->place.offset;
    size_t size = BLOCK_LEAST;

    if (last && last->len < last->size)
        return last;
    if (last)
        size = 2 * last->size;
    else if (coded > BLOCK_LEAST / 4)
        size = coded < PROXY_MAX_PIECE ? 4 * (size_t)coded : PROXY_MAX_PIECE;
    return add_block(content, least(least(size, PROXY_MAX_PIECE), most));
}

static bool
has_ahead(const struct decoding *d)
{
    return d->length > d->at + d->made;
}

/* Passes over bytes before the offset. */
static void
pass_decoded(struct content *content, uint64_t offset, size_t *allowance)
{
    struct decoding *d = content->decoding;
    char dropped[DROPPED];
    size_t made;

    if (d->at >= offset)
        return;
    assert(d->made == 0);
    d->at = d->length;
    while (d->at < offset && content->stage == CONTENT_CODED && *allowance &&
           decode(content, dropped, least(sizeof(dropped), offset - d->at), &made, allowance))
        d->at = d->length;
}

/* Adds the byte that is ahead to the blocks. */
static void
use_ahead(struct content *content, size_t want)
{
    struct decoding *d = content->decoding;
    struct content_block *block;

    if (!has_ahead(d) || d->made >= want)
        return;
    block = find_space(content, want);
    if (!block)
        return;
    block->bytes[block->len++] = (char)d->ahead;
    d->made++;
}

/* Decodes what is wanted into blocks, and one byte more. */
static void
decode_wanted(struct content *content, size_t want, size_t *allowance)
{
    struct decoding *d = content->decoding;
    bool goes_on = true;
    size_t made;

    use_ahead(content, want);
    while (goes_on && content->stage == CONTENT_CODED && *allowance && d->made < want) {
        struct content_block *block = find_space(content, want - d->made);

        if (!block)
            return;
        goes_on = decode(content, block->bytes + block->len,
                         least(block->size - block->len, want - d->made), &made, allowance);
        block->len += made;
        d->made += made;
    }
    while (goes_on && content->stage == CONTENT_CODED && *allowance && !has_ahead(d))
        goes_on = decode(content, &d->ahead, 1, &made, allowance);
}

/* ---- seeking --------------------------------------------------------------------------------- */

/* What may still be worked on in this turn; `alone` for a call that is a turn. */
static size_t *
find_allowance(const struct content_limits *limits, size_t *alone)
{
    static _Thread_local struct {
        uint64_t turn;
        size_t left;
    } work = {.turn = UINT64_MAX};

    *alone = CONTENT_TURN;
    if (!limits->turn)
        return alone;
    if (work.turn != *limits->turn) {
        work.turn = *limits->turn;
        work.left = CONTENT_TURN;
    }
    return &work.left;
}

enum content_step
decoding_seek(struct content *content, uint64_t offset, size_t want)
{
    struct decoding *d = content->decoding;
    size_t alone, *allowance;

    if (content->stage == CONTENT_BROKEN)
        return CONTENT_FAILED;
    allowance = find_allowance(&d->limits, &alone);
    if (offset < d->at)
        return CONTENT_PASSED;
    if (want) {
        pass_decoded(content, offset, allowance);
        if (d->at == offset)
            decode_wanted(content, want, allowance);
    }
    if (content->stage == CONTENT_BROKEN)
        return CONTENT_FAILED;
    content->there = d->at == offset ? d->made : 0;
    if (has_ahead(d))
        return CONTENT_THERE;
    if (content->stage == CONTENT_ENDED)
        return CONTENT_LAST;
    return *allowance ? CONTENT_WAITS : CONTENT_BUSY;
}

void
decoding_take(struct content *content, struct content_piece *piece)
{
    struct decoding *d = content->decoding;

    assert(piece->len == d->made);
    piece->blocks = d->blocks;
    d->blocks = d->last = NULL;
    d->at += d->made;
    d->made = 0;
}
