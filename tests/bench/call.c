#include "tests/bench/call.h"

#include "proxy.h"

#define MEMCACHED_MAX_KEY 250u
#define MAX_VALUE (1u << 20)

static const char zeros[CALL_KEY_DIGITS + 1] = "00000000";

static void
append_word(struct buf *b, uint32_t word)
{
    unsigned char bytes[4] = {(unsigned char)(word >> 24), (unsigned char)(word >> 16),
                              (unsigned char)(word >> 8), (unsigned char)word};

    buf_append(b, bytes, sizeof(bytes));
}

static void
put_word(char *at, uint32_t word)
{
    at[0] = (char)(word >> 24);
    at[1] = (char)(word >> 16);
    at[2] = (char)(word >> 8);
    at[3] = (char)word;
}

static void
append_key(struct call_template *call, struct span prefix, struct span suffix)
{
    buf_append(&call->bytes, prefix.ptr, prefix.len);
    call->key_at = call->bytes.len;
    buf_append(&call->bytes, zeros, CALL_KEY_DIGITS);
    buf_append(&call->bytes, suffix.ptr, suffix.len);
}

/* Record mark (RFC 5531, section 11), call header with AUTH_NONE, and the URL as counted bytes. */
static void
encode_rpc(struct call_template *call, uint32_t version, struct span prefix, struct span suffix)
{
    struct buf *b = &call->bytes;

    append_word(b, 0);
    call->xid_at = b->len;
    append_word(b, 0); /* xid */
    append_word(b, 0); /* CALL */
    append_word(b, 2); /* of RPC version 2 */
    append_word(b, PROXY_FETCHPROG);
    append_word(b, version);
    append_word(b, version == PROXY_VERS2 ? PROXY_GET : PROXY_FETCH);
    append_word(b, 0); /* credential: AUTH_NONE, empty */
    append_word(b, 0);
    append_word(b, 0); /* verifier: likewise */
    append_word(b, 0);
    append_word(b, (uint32_t)call->key_len);
    append_key(call, prefix, suffix);
    for (size_t n = call->key_len; n % 4 != 0; n++)
        buf_append_char(b, 0);
    if (version == PROXY_VERS2) {
        append_word(b, 0); /* no headers */
        append_word(b, 0); /* no flags */
    }
    if (!buf_failed(b))
        put_word(b->data, 0x80000000u | (uint32_t)(b->len - 4));
}

static void
encode_set(struct call_template *call, struct span prefix, struct span suffix, size_t value_len)
{
    buf_append_str(&call->bytes, "set ");
    append_key(call, prefix, suffix);
    buf_printf(&call->bytes, " 0 0 %zu\r\n", value_len);
    for (size_t i = 0; i < value_len; i++)
        buf_append_char(&call->bytes, (char)('a' + i % 26));
    buf_append_str(&call->bytes, "\r\n");
}

bool
call_begin(struct call_template *call, enum call_protocol protocol, struct span prefix,
           struct span suffix, size_t value_len)
{
    bool memcached = protocol == CALL_MEMCACHED || protocol == CALL_MEMCACHED_SET;

    *call = (struct call_template){.xid_at = SIZE_MAX};
    call->key_len = prefix.len + CALL_KEY_DIGITS + suffix.len;
    buf_init(&call->bytes, MAX_VALUE + 2 * PROXY_MAX_URL);
    if (call->key_len > (memcached ? MEMCACHED_MAX_KEY : PROXY_MAX_URL) || value_len > MAX_VALUE)
        return false;
    switch (protocol) {
    case CALL_RPC2:
    case CALL_BARE:
        encode_rpc(call, PROXY_VERS2, prefix, suffix);
        break;
    case CALL_RPC1:
        encode_rpc(call, PROXY_FETCHVERS, prefix, suffix);
        break;
    case CALL_MEMCACHED:
        buf_append_str(&call->bytes, "get ");
        append_key(call, prefix, suffix);
        buf_append_str(&call->bytes, "\r\n");
        break;
    case CALL_MEMCACHED_SET:
        encode_set(call, prefix, suffix, value_len);
        break;
    case CALL_HTTP:
        buf_append_str(&call->bytes, "GET ");
        append_key(call, prefix, suffix);
        buf_append_str(&call->bytes, " HTTP/1.1\r\nHost: bench.test\r\n\r\n");
        break;
    }
    if (!buf_failed(&call->bytes))
        return true;
    call_free(call);
    return false;
}

bool
call_add_field(struct call_template *call, struct span line)
{
    buf_truncate(&call->bytes, call->bytes.len - 2);
    buf_append(&call->bytes, line.ptr, line.len);
    buf_append_str(&call->bytes, "\r\n\r\n");
    return !buf_failed(&call->bytes);
}

void
call_set(struct call_template *call, uint32_t xid, uint32_t key)
{
    char *digits = call->bytes.data + call->key_at;

    if (call->xid_at != SIZE_MAX)
        put_word(call->bytes.data + call->xid_at, xid);
    for (unsigned i = CALL_KEY_DIGITS; i-- > 0; key /= 10)
        digits[i] = (char)('0' + key % 10);
}

void
call_free(struct call_template *call)
{
    buf_free(&call->bytes);
}
