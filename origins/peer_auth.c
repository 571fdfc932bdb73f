#include "origins/peer_auth.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/keyed_hash.h"

_Static_assert(PEER_WINDOW % 64 == 0, "it is kept in words");

/* The requests of one process of a sender. */
struct window {
    uint64_t sender; /* hash of its URL; 0: the place is free */
    uint64_t incarnation;
    uint64_t highest;    /* of the numbers that have come */
    int64_t accepted_us; /* the last one, by our clock */
    uint64_t *seen;      /* owned; a bit for each of the last PEER_WINDOW numbers */
};

struct peer_auth {
    uint64_t incarnation;
    struct hash_key names;
    _Atomic uint64_t number; /* of the last request that was sent */
    pthread_mutex_t lock;
    struct window windows[PEER_SENDERS]; /* protected by lock */
};

/* ---- keys ------------------------------------------------------------------------------------ */

static bool
refuse(struct buf *why, const char *sentence)
{
    buf_append_str(why, sentence);
    return false;
}

bool
peer_keys_read(struct peer_keys *keys, struct span text, struct buf *why)
{
    *keys = (struct peer_keys){.count = 0};
    while (text.len) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : text.len;
        struct span line = span_of(text.ptr, len);

        text = span_of(text.ptr + len + (end != NULL), text.len - len - (end != NULL));
        while (line.len && strchr(" \t\r", line.ptr[line.len - 1]))
            line.len--;
        if (!line.len || line.ptr[0] == '#')
            continue;
        if (line.len < PEER_KEY_LEAST || line.len > PEER_KEY_MOST)
            return refuse(why, "a key has fewer than 16 bytes, or more than 256");
        if (keys->count == PEER_KEYS)
            return refuse(why, "there are more than 4 keys");
        keys->keys[keys->count++] = line;
    }
    return keys->count || refuse(why, "there is no key");
}

/* ---- codes ----------------------------------------------------------------------------------- */

#define MOST_COVERED ((size_t)1 << 20) /* bytes that a code is over */

/* Each part behind its length, so that no two lists of parts are the same bytes. */
static void
append_part(struct buf *text, struct span part)
{
    uint64_t len = part.len;

    buf_append(text, &len, sizeof(len));
    buf_append(text, part.ptr, part.len);
}

static bool
compute(struct span key, const struct buf *text, struct peer_code *code)
{
    unsigned len = 0;

    return !buf_failed(text) &&
           HMAC(EVP_sha256(), key.ptr, (int)key.len, (const unsigned char *)text->data, text->len,
                code->bytes, &len) &&
           len == sizeof(code->bytes);
}

static bool
are_equal(const struct peer_code *a, const struct peer_code *b)
{
    return CRYPTO_memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

static void
write_hex(struct buf *text, const struct peer_code *code)
{
    static const char digits[] = "0123456789abcdef";

    for (unsigned i = 0; i < PEER_CODE; i++) {
        buf_append_char(text, digits[code->bytes[i] >> 4]);
        buf_append_char(text, digits[code->bytes[i] & 15]);
    }
}

static int
digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool
read_hex(struct span text, struct peer_code *code)
{
    if (text.len != 2 * (size_t)PEER_CODE)
        return false;
    for (unsigned i = 0; i < PEER_CODE; i++) {
        int high = digit_of(text.ptr[2 * i]), low = digit_of(text.ptr[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        code->bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* What the field states in the open. */
struct stated {
    uint64_t incarnation;
    uint64_t number;
    uint64_t wall_us;
};

static void
cover(struct buf *text, const struct peer_words *words, const struct stated *stated)
{
    buf_init(text, MOST_COVERED);
    append_part(text, span_str("sunproxy peer request 1"));
    append_part(text, span_of((const char *)stated, sizeof(*stated)));
    append_part(text, words->from);
    append_part(text, words->to);
    append_part(text, words->method);
    append_part(text, words->target);
    append_part(text, words->says);
}

struct peer_auth *
peer_auth_create(int64_t wall_us)
{
    struct peer_auth *auth = calloc(1, sizeof(*auth));

    if (!auth)
        return NULL;
    auth->incarnation = (uint64_t)wall_us;
    (void)hash_key_init(&auth->names);
    pthread_mutex_init(&auth->lock, NULL);
    return auth;
}

void
peer_auth_destroy(struct peer_auth *auth)
{
    if (!auth)
        return;
    for (unsigned i = 0; i < PEER_SENDERS; i++)
        free(auth->windows[i].seen);
    pthread_mutex_destroy(&auth->lock);
    free(auth);
}

uint64_t
peer_auth_incarnation(const struct peer_auth *auth)
{
    return auth->incarnation;
}

void
peer_auth_name(const struct peer_auth *auth, struct span bytes, char name[PEER_NAME_SIZE])
{
    snprintf(name, PEER_NAME_SIZE, "%016llx",
             (unsigned long long)keyed_hash(&auth->names, bytes));
}

bool
peer_auth_write(struct peer_auth *auth, const struct peer_keys *keys,
                const struct peer_words *words, int64_t wall_us, struct buf *value,
                struct peer_code *code)
{
    const struct stated stated = {.incarnation = auth->incarnation,
                                  .number = atomic_fetch_add(&auth->number, 1) + 1,
                                  .wall_us = (uint64_t)wall_us};
    struct buf covered;
    bool ok;

    cover(&covered, words, &stated);
    code->key = 0;
    ok = keys->count && compute(keys->keys[0], &covered, code);
    buf_free(&covered);
    if (!ok)
        return false;
    buf_printf(value, "%016llx %016llx %016llx ", (unsigned long long)stated.incarnation,
               (unsigned long long)stated.number, (unsigned long long)stated.wall_us);
    write_hex(value, code);
    buf_printf(value, " %.*s", (int)words->from.len, words->from.ptr);
    return !buf_failed(value);
}

/* Takes a number of 16 digits and the blank behind it off the text. */
static bool
take_number(struct span *text, uint64_t *number)
{
    *number = 0;
    if (text->len < 17 || text->ptr[16] != ' ')
        return false;
    for (unsigned i = 0; i < 16; i++) {
        int digit = digit_of(text->ptr[i]);

        if (digit < 0)
            return false;
        *number = *number << 4 | (unsigned)digit;
    }
    *text = span_of(text->ptr + 17, text->len - 17);
    return true;
}

static bool
split(struct span value, struct stated *stated, struct peer_code *code, struct span *from)
{
    const size_t hex = 2 * (size_t)PEER_CODE;

    if (!take_number(&value, &stated->incarnation) || !take_number(&value, &stated->number) ||
        !take_number(&value, &stated->wall_us) || value.len < hex + 2 || value.ptr[hex] != ' ')
        return false;
    *from = span_of(value.ptr + hex + 1, value.len - hex - 1);
    return read_hex(span_of(value.ptr, hex), code);
}

struct span
peer_auth_sender(struct span value)
{
    struct stated stated;
    struct peer_code code;
    struct span from;

    return split(value, &stated, &code, &from) ? from : span_of(NULL, 0);
}

/* ---- windows --------------------------------------------------------------------------------- */

/* What was sent so long ago is refused by its time. */
static bool
is_forgotten(const struct window *window, int64_t wall_us)
{
    const int64_t since_us = wall_us - window->accepted_us;

    return since_us > 2 * PEER_TIME_US || since_us < -2 * PEER_TIME_US;
}

static struct window *
find_known(struct peer_auth *auth, uint64_t sender, uint64_t incarnation)
{
    for (unsigned i = 0; i < PEER_SENDERS; i++)
        if (auth->windows[i].sender == sender && auth->windows[i].incarnation == incarnation)
            return &auth->windows[i];
    return NULL;
}

/*
 * A place for another process of the sender: a free one, or that of its earliest one. NULL: there
 * is none, or a later one is known. An earlier one than that, which is not known itself, is a
 * recording, or that of a clock that was set back, which is accepted once the later one is
 * forgotten.
 */
static struct window *
find_place(struct peer_auth *auth, uint64_t sender, uint64_t incarnation, int64_t wall_us)
{
    struct window *free_one = NULL, *earliest = NULL;
    unsigned processes = 0;

    for (unsigned i = 0; i < PEER_SENDERS; i++) {
        struct window *window = &auth->windows[i];

        if (!window->sender || is_forgotten(window, wall_us)) {
            free_one = window;
        } else if (window->sender == sender) {
            if (window->incarnation > incarnation)
                return NULL;
            processes++;
            if (!earliest || window->incarnation < earliest->incarnation)
                earliest = window;
        }
    }
    return free_one && processes < PEER_PROCESSES ? free_one : earliest;
}

/* That of the sender's process; NULL: there is none, or no memory. */
static struct window *
find_window(struct peer_auth *auth, uint64_t sender, uint64_t incarnation, int64_t wall_us)
{
    struct window *found = find_known(auth, sender, incarnation);

    if (found)
        return found;
    found = find_place(auth, sender, incarnation, wall_us);
    if (!found)
        return NULL;
    if (!found->seen)
        found->seen = malloc(PEER_WINDOW / 8);
    found->sender = found->seen ? sender : 0;
    if (!found->seen)
        return NULL;
    found->incarnation = incarnation;
    found->accepted_us = wall_us;
    found->highest = 0;
    memset(found->seen, 0, PEER_WINDOW / 8);
    return found;
}

static bool
take_bit(struct window *window, uint64_t number)
{
    const uint64_t place = number % PEER_WINDOW, bit = (uint64_t)1 << (place % 64);
    const bool had = window->seen[place / 64] & bit;

    window->seen[place / 64] |= bit;
    return !had;
}

/* The number is higher than all before: forgets the ones that it displaces. */
static void
advance(struct window *window, uint64_t number)
{
    if (number - window->highest >= PEER_WINDOW) {
        memset(window->seen, 0, PEER_WINDOW / 8);
    } else {
        for (uint64_t i = window->highest + 1; i <= number; i++)
            window->seen[i % PEER_WINDOW / 64] &= ~((uint64_t)1 << (i % 64));
    }
    window->highest = number;
}

/* Under auth->lock. */
static bool
take_number_once(struct peer_auth *auth, struct span from, const struct stated *stated,
                 int64_t wall_us)
{
    struct window *window =
        find_window(auth, hash64_bytes(from) | 1, stated->incarnation, wall_us);

    if (!window)
        return false;
    if (stated->number > window->highest)
        advance(window, stated->number);
    else if (window->highest - stated->number >= PEER_WINDOW)
        return false;
    if (!take_bit(window, stated->number))
        return false;
    window->accepted_us = wall_us;
    return true;
}

static bool
is_in_time(uint64_t sent_us, int64_t wall_us)
{
    return sent_us < INT64_MAX && (int64_t)sent_us >= wall_us - PEER_TIME_US &&
           (int64_t)sent_us <= wall_us + PEER_TIME_US;
}

/* By one of the keys. */
static bool
has_code(const struct peer_keys *keys, const struct buf *covered, struct peer_code *code)
{
    struct peer_code computed;

    for (code->key = 0; code->key < keys->count; code->key++)
        if (compute(keys->keys[code->key], covered, &computed) && are_equal(&computed, code))
            return true;
    return false;
}

enum peer_verdict
peer_auth_check(struct peer_auth *auth, const struct peer_keys *keys, struct span value,
                const struct peer_words *words, int64_t wall_us, struct peer_code *code,
                uint64_t *incarnation)
{
    struct peer_words covers = *words;
    struct stated stated;
    struct buf covered;
    bool ok;

    if (!split(value, &stated, code, &covers.from))
        return PEER_MALFORMED;
    cover(&covered, &covers, &stated);
    ok = has_code(keys, &covered, code);
    buf_free(&covered);
    if (!ok)
        return PEER_FORGED;
    if (!is_in_time(stated.wall_us, wall_us))
        return PEER_LATE;
    if (stated.wall_us < auth->incarnation)
        return wall_us - (int64_t)auth->incarnation < PEER_START_US ? PEER_EARLY : PEER_LATE;
    *incarnation = stated.incarnation;
    pthread_mutex_lock(&auth->lock);
    ok = take_number_once(auth, covers.from, &stated, wall_us);
    pthread_mutex_unlock(&auth->lock);
    return ok ? PEER_ACCEPTED : PEER_AGAIN;
}

const char *
peer_verdict_text(enum peer_verdict verdict)
{
    switch (verdict) {
    case PEER_ACCEPTED:
        break;
    case PEER_MALFORMED:
        return "the field is malformed";
    case PEER_FORGED:
        return "the code is not that of a shared key";
    case PEER_LATE:
        return "it was not sent within the last 30 s, by its sender's clock, or before this daemon "
               "has started";
    case PEER_EARLY:
        return "it was sent before this daemon has started";
    case PEER_AGAIN:
        return "it has come before";
    }
    return "";
}

/* ---- responses ------------------------------------------------------------------------------- */

/* Under the key by number. */
static bool
compute_response(struct span key, const struct peer_code *request, enum peer_outcome outcome,
                 struct peer_code *code)
{
    struct buf covered;
    bool ok;

    buf_init(&covered, 256);
    append_part(&covered, span_str("sunproxy peer response 1"));
    append_part(&covered, span_str(outcome == PEER_SERVED ? "s" : "f"));
    append_part(&covered, span_of((const char *)request->bytes, PEER_CODE));
    ok = compute(key, &covered, code);
    buf_free(&covered);
    return ok;
}

struct span
peer_response_write(const struct peer_keys *keys, const struct peer_code *request,
                    enum peer_outcome outcome, char text[PEER_RESPONSE_SIZE])
{
    struct peer_code code;
    struct buf value;

    if (request->key >= keys->count ||
        !compute_response(keys->keys[request->key], request, outcome, &code))
        return span_of(NULL, 0);
    buf_init(&value, PEER_RESPONSE_SIZE);
    buf_append_str(&value, outcome == PEER_SERVED ? "s " : "f ");
    write_hex(&value, &code);
    memcpy(text, value.data, value.len);
    buf_free(&value);
    return span_of(text, PEER_RESPONSE_SIZE);
}

enum peer_outcome
peer_response_read(const struct peer_keys *keys, const struct peer_code *request, struct span value)
{
    struct peer_code stated, computed;
    enum peer_outcome outcome;

    if (value.len != PEER_RESPONSE_SIZE || !strchr("sf", value.ptr[0]) || !value.ptr[0] ||
        value.ptr[1] != ' ' || !read_hex(span_of(value.ptr + 2, value.len - 2), &stated))
        return PEER_NONE;
    outcome = value.ptr[0] == 's' ? PEER_SERVED : PEER_FAILED;
    for (unsigned i = 0; i < keys->count; i++)
        if (compute_response(keys->keys[i], request, outcome, &computed) &&
            are_equal(&stated, &computed))
            return outcome;
    return PEER_NONE;
}
