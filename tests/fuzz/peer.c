/*
 * What peers say: the field that proves who sends a request, the one of a response, the files of
 * keys, and messages with news. The input is the kind, a byte, and the text. Nothing that is not
 * written under the key is accepted, and news are read as they are written.
 */
#include "origins/peer_auth.h"
#include "server/peers/peer_item.h"
#include "server/peers/peer_message.h"
#include "tests/fuzz/fuzz.h"

static void
check_proofs(struct span input)
{
    const struct peer_keys keys = {.count = 1, .keys = {span_str("0123456789abcdef")}};
    const struct peer_words words = {.to = span_str("http://a"),
                                     .method = span_str("GET"),
                                     .target = span_str("http://b/")};
    struct peer_auth *auth = peer_auth_create(1);
    struct peer_code code = {.key = 0};
    uint64_t incarnation;

    FUZZ_CHECK(auth);
    (void)peer_auth_sender(input);
    FUZZ_CHECK(peer_auth_check(auth, &keys, input, &words, 1700000000000000, &code,
                               &incarnation) != PEER_ACCEPTED);
    FUZZ_CHECK(peer_response_read(&keys, &code, input) == PEER_NONE);
    peer_auth_destroy(auth);
}

static void
check_keys(struct span input)
{
    struct peer_keys keys;
    struct buf why;

    buf_init(&why, 4096);
    if (peer_keys_read(&keys, input, &why)) {
        FUZZ_CHECK(keys.count && keys.count <= PEER_KEYS);
        for (unsigned i = 0; i < keys.count; i++)
            FUZZ_CHECK(keys.keys[i].len >= PEER_KEY_LEAST && keys.keys[i].len <= PEER_KEY_MOST);
    } else {
        FUZZ_CHECK(why.len);
    }
    buf_free(&why);
}

static void
check_news(struct span input)
{
    struct peer_message_head head;
    struct peer_item item, again;
    struct buf bytes, bytes_again, text;

    if (!peer_message_read(&input, &head))
        return;
    FUZZ_CHECK(head.before <= head.last);
    (void)peer_message_is_leave(input);
    buf_init(&bytes, 1 << 20);
    buf_init(&bytes_again, 1 << 20);
    buf_init(&text, 4 << 20);
    while (peer_item_read(&input, &item, &bytes)) {
        struct span written;

        buf_reset(&text);
        peer_item_write(&item, &text);
        written = buf_span(&text);
        FUZZ_CHECK(!buf_failed(&text) && peer_item_read(&written, &again, &bytes_again));
        FUZZ_CHECK(!written.len && again.kind == item.kind && again.soft == item.soft &&
                   again.written == item.written && span_equal(again.name, item.name) &&
                   span_equal(again.scope, item.scope));
    }
    buf_free(&bytes);
    buf_free(&bytes_again);
    buf_free(&text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span rest;

    if (!size)
        return 0;
    rest = span_of(data + 1, size - 1);
    switch (data[0]) {
    case 'p':
        check_proofs(rest);
        break;
    case 'k':
        check_keys(rest);
        break;
    default:
        check_news(rest);
        break;
    }
    return 0;
}
