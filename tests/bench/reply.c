#include "tests/bench/reply.h"

#include "proxy.h"

/* The words of an RPC reply, in the order of the wire, and those of its results. */
enum rpc_step {
    STEP_MARK,
    STEP_XID,
    STEP_TYPE,
    STEP_REPLY_STAT,
    STEP_VERIFIER_FLAVOUR,
    STEP_VERIFIER_LEN,
    STEP_ACCEPT_STAT,
    STEP_STATUS,
    STEP_HTTP_STATUS,
    STEP_SOURCE,
    STEP_AGE,
    STEP_TOTAL, /* a hyper: two words */
    STEP_STORED = STEP_TOTAL + 2,
    STEP_FETCH, /* likewise */
    STEP_EVICTED = STEP_FETCH + 2,
    STEP_VICTIMS,
    STEP_FINAL_URL_LEN,
    STEP_HEADERS_LEN,
    STEP_HAS_REST,
    STEP_BODY_LEN,
    STEP_REST /* of the record: nothing more to look at */
};

/* The states of a memcached answer. */
enum text_step {
    TEXT_START,   /* the first letter of a line shows which it is */
    TEXT_VALUE,   /* "VALUE" and the blank behind it */
    TEXT_KEY,     /* up to the blank behind the key */
    TEXT_FLAGS,   /* up to the next */
    TEXT_LEN,     /* digits */
    TEXT_LEN_END, /* the line feed behind them */
    TEXT_DATA,    /* the value and its CR LF, skipped */
    TEXT_LAST     /* the rest of the last line: END, STORED, or an error */
};

/* The states of a response over HTTP (RFC 9112), which has a Content-Length. */
enum http_step {
    HTTP_VERSION, /* up to the blank behind it */
    HTTP_STATUS,  /* digits, up to the next blank or the line's end */
    HTTP_REST,    /* of a line */
    HTTP_NAME,    /* of a field, as far as it is Content-Length; `have` letters of that have come */
    HTTP_LENGTH,  /* its value */
    HTTP_END,     /* the line feed of the empty line */
    HTTP_BODY     /* skipped */
};

static const char length_name[] = "content-length:";

#define MAX_RECORD (32u << 20)

const char *
reply_strflaw(enum reply_flaw flaw)
{
    static const char *const text[] = {
        [REPLY_GOOD] = "good",
        [REPLY_NOT_A_REPLY] = "not a reply of the protocol",
        [REPLY_DENIED] = "denied, or accepted with an RPC error",
        [REPLY_FAILED] = "no page or value",
        [REPLY_NOT_A_HIT] = "a page that does not come from the cache",
        [REPLY_WRONG_LENGTH] = "a body or reply of another length",
        [REPLY_WRONG_NUMBER] = "an xid that was not waited for",
    };

    return text[flaw];
}

static uint32_t
padded(uint32_t len)
{
    return (len + 3) & ~(uint32_t)3;
}

void
reply_skip(struct reply_reader *r, size_t n)
{
    r->skip -= (uint32_t)n;
    r->reply.wire_len += (uint32_t)n;
    if (r->record_left == 0) { /* text has no records; after a body of HTTP nothing comes */
        r->ready = r->has_length && r->skip == 0;
        return;
    }
    r->record_left -= (uint32_t)n;
    r->ready = r->record_left == 0;
}

/* Whatever is left of the record is passed over; the first flaw is the one that is reported. */
static void
end_record(struct reply_reader *r, enum reply_flaw flaw)
{
    if (r->reply.flaw == REPLY_GOOD)
        r->reply.flaw = flaw;
    r->step = STEP_REST;
    r->skip = r->record_left;
    r->ready = r->record_left == 0;
}

/* A counted run of bytes is passed over, if the record holds it and `after` bytes more. */
static bool
skip_counted(struct reply_reader *r, uint32_t len, uint32_t after)
{
    if (len > r->record_left || padded(len) + after > r->record_left) {
        end_record(r, REPLY_WRONG_LENGTH);
        return false;
    }
    r->skip = padded(len);
    return true;
}

static void
take_mark(struct reply_reader *r, const struct reply_expected *expected, uint32_t mark)
{
    /* Our servers answer in one fragment: the last. */
    if (!(mark & 0x80000000u) || (mark & 0x7fffffffu) > MAX_RECORD || (mark & 0x7fffffffu) == 0) {
        r->reply.flaw = REPLY_NOT_A_REPLY;
        r->ready = true;
        return;
    }
    r->record_left = mark & 0x7fffffffu;
    r->step = STEP_XID;
    if (expected->protocol == CALL_BARE)
        end_record(r, r->record_left + 4 == expected->body_len ? REPLY_GOOD : REPLY_WRONG_LENGTH);
}

/* The body ends the record, of version 1 with no word before it but its own length. */
static void
take_body_len(struct reply_reader *r, const struct reply_expected *expected, uint32_t len)
{
    bool right = len == expected->body_len && padded(len) == r->record_left;

    end_record(r, right ? REPLY_GOOD : REPLY_WRONG_LENGTH);
}

static void
take_word(struct reply_reader *r, const struct reply_expected *expected, uint32_t word)
{
    switch ((enum rpc_step)r->step++) {
    case STEP_XID:
        r->reply.xid = word;
        break;
    case STEP_TYPE:
        if (word != REPLY)
            end_record(r, REPLY_NOT_A_REPLY);
        break;
    case STEP_REPLY_STAT:
        if (word != MSG_ACCEPTED)
            end_record(r, REPLY_DENIED);
        break;
    case STEP_VERIFIER_LEN:
        skip_counted(r, word, 4);
        break;
    case STEP_ACCEPT_STAT:
        if (word != SUCCESS)
            end_record(r, REPLY_DENIED);
        else if (expected->protocol == CALL_RPC1)
            r->step = STEP_BODY_LEN;
        break;
    case STEP_STATUS:
        if (word != PROXY_OK)
            end_record(r, REPLY_FAILED);
        break;
    case STEP_HTTP_STATUS:
        if (word != 200)
            end_record(r, REPLY_FAILED);
        break;
    case STEP_SOURCE:
        if (word != PROXY_HIT && !expected->any_source)
            end_record(r, REPLY_NOT_A_HIT);
        break;
    case STEP_VICTIMS: /* none were asked for */
        if (word != 0)
            end_record(r, REPLY_WRONG_LENGTH);
        break;
    case STEP_FINAL_URL_LEN:
        skip_counted(r, word, 12);
        break;
    case STEP_HEADERS_LEN:
        if (skip_counted(r, word, 8))
            r->reply.headers_len = word;
        break;
    case STEP_HAS_REST: /* bodies are small */
        if (word != 0)
            end_record(r, REPLY_WRONG_LENGTH);
        break;
    case STEP_BODY_LEN:
        take_body_len(r, expected, word);
        break;
    default:
        break;
    }
    if (r->record_left == 0 && !r->ready) /* it ended before its body */
        end_record(r, REPLY_WRONG_LENGTH);
}

/* A word of a record, whole or put together from pieces; too short a rest is passed over. */
static void
read_word(struct reply_reader *r, const struct reply_expected *expected, struct span *bytes)
{
    const unsigned char *w;
    uint32_t word;

    if (r->step != STEP_MARK && r->have == 0 && r->record_left < 4) {
        end_record(r, REPLY_WRONG_LENGTH);
        return;
    }
    if (r->have == 0 && bytes->len >= 4) {
        w = (const unsigned char *)bytes->ptr;
        *bytes = span_of(bytes->ptr + 4, bytes->len - 4);
    } else {
        r->word[r->have++] = (unsigned char)bytes->ptr[0];
        *bytes = span_of(bytes->ptr + 1, bytes->len - 1);
        if (r->have < 4)
            return;
        w = r->word;
    }
    r->have = 0;
    r->reply.wire_len += 4;
    word = (uint32_t)w[0] << 24 | (uint32_t)w[1] << 16 | (uint32_t)w[2] << 8 | w[3];
    if (r->step == STEP_MARK) {
        take_mark(r, expected, word);
        return;
    }
    r->record_left -= 4;
    take_word(r, expected, word);
}

static void
take_letter(struct reply_reader *r, const struct reply_expected *expected, char c)
{
    switch ((enum text_step)r->step) {
    case TEXT_START: /* VALUE, END, STORED, or an error */
        r->step = c == 'V' ? TEXT_VALUE : TEXT_LAST;
        r->value = 0;
        if (c != 'V' && c != (expected->protocol == CALL_MEMCACHED_SET ? 'S' : 'E'))
            r->reply.flaw = REPLY_FAILED;
        else if (c == 'E' && r->have == 0)
            r->reply.flaw = REPLY_FAILED; /* END without a VALUE */
        break;
    case TEXT_VALUE:
    case TEXT_KEY:
    case TEXT_FLAGS:
        if (c == ' ')
            r->step++;
        break;
    case TEXT_LEN:
        if (c >= '0' && c <= '9' && r->value < MAX_RECORD) {
            r->value = r->value * 10 + (uint32_t)(c - '0');
        } else if (c == '\r') {
            r->step = TEXT_LEN_END;
        } else {
            r->reply.flaw = REPLY_NOT_A_REPLY;
            r->ready = true;
        }
        break;
    case TEXT_LEN_END:
        if (r->value != expected->body_len)
            r->reply.flaw = REPLY_WRONG_LENGTH;
        r->have = 1; /* a value has come */
        r->skip = r->value + 2;
        r->step = TEXT_DATA;
        break;
    case TEXT_DATA: /* the first letter behind what was skipped */
        r->step = TEXT_LAST;
        if (c != 'E')
            r->reply.flaw = REPLY_NOT_A_REPLY;
        r->ready = c != 'E';
        break;
    case TEXT_LAST:
        r->ready = c == '\n';
        break;
    }
}

static void
lose_stream(struct reply_reader *r)
{
    r->reply.flaw = REPLY_NOT_A_REPLY;
    r->ready = true;
}

static void
end_http_head(struct reply_reader *r, const struct reply_expected *expected)
{
    if (!r->has_length) {
        lose_stream(r);
        return;
    }
    if (r->reply.flaw == REPLY_GOOD && r->value != expected->body_len)
        r->reply.flaw = REPLY_WRONG_LENGTH;
    r->step = HTTP_BODY;
    r->skip = r->value;
    r->ready = r->value == 0;
}

/* The first letters of a line: a field, or the empty line. */
static void
take_http_name(struct reply_reader *r, char c)
{
    char lower = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;

    if (r->have == 0 && c == '\r') {
        r->step = HTTP_END;
    } else if (lower != length_name[r->have]) {
        r->step = HTTP_REST;
    } else if (length_name[++r->have] == '\0') {
        r->step = HTTP_LENGTH;
        r->has_length = true;
        r->value = 0;
    }
}

static void
take_http(struct reply_reader *r, const struct reply_expected *expected, char c)
{
    bool digit = c >= '0' && c <= '9' && r->value < MAX_RECORD;

    switch ((enum http_step)r->step) {
    case HTTP_VERSION:
        if (c == ' ')
            r->step = HTTP_STATUS;
        else if (c < ' ')
            lose_stream(r);
        break;
    case HTTP_STATUS:
        if (digit) {
            r->value = r->value * 10 + (uint32_t)(c - '0');
        } else {
            r->reply.flaw = r->value == 200 ? REPLY_GOOD : REPLY_FAILED;
            r->step = HTTP_REST;
        }
        break;
    case HTTP_LENGTH:
        if (digit)
            r->value = r->value * 10 + (uint32_t)(c - '0');
        else if (c == '\r')
            r->step = HTTP_REST;
        else if (c != ' ')
            lose_stream(r);
        break;
    case HTTP_NAME:
        take_http_name(r, c);
        break;
    case HTTP_END:
        end_http_head(r, expected);
        break;
    case HTTP_BODY:
    case HTTP_REST:
        break;
    }
    if (r->step == HTTP_REST && c == '\n') {
        r->step = HTTP_NAME;
        r->have = 0;
    }
}

bool
reply_read(struct reply_reader *r, const struct reply_expected *expected, struct span *bytes,
           struct reply *reply)
{
    bool http = expected->protocol == CALL_HTTP;
    bool text = expected->protocol == CALL_MEMCACHED || expected->protocol == CALL_MEMCACHED_SET;

    while (!r->ready && bytes->len > 0) {
        if (r->skip > 0) {
            size_t n = r->skip < bytes->len ? r->skip : bytes->len;

            reply_skip(r, n);
            *bytes = span_of(bytes->ptr + n, bytes->len - n);
        } else if (text || http) {
            char c = bytes->ptr[0];

            *bytes = span_of(bytes->ptr + 1, bytes->len - 1);
            r->reply.wire_len++;
            if (http)
                take_http(r, expected, c);
            else
                take_letter(r, expected, c);
        } else {
            read_word(r, expected, bytes);
        }
    }
    if (!r->ready)
        return false;
    *reply = r->reply;
    *r = (struct reply_reader){0};
    return true;
}
