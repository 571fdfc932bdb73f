#include "http/coding_choice.h"

#include "http/field.h"

#define NOT_OFFERED (-1)

/* ---- observing -------------------------------------------------------------------------------
 */

static bool
is_same_coding(struct span a, struct span b)
{
    unsigned bit = http_coding_bit(a);

    return bit ? bit == http_coding_bit(b) : http_same_name(a, b);
}

/* The largest weight that the list states for a coding by its name, or NOT_OFFERED. */
static int
weight_of(const struct http_preferences *offered, struct span coding)
{
    int weight = NOT_OFFERED;

    for (size_t i = 0; i < offered->count; i++)
        if (is_same_coding(offered->of[i].range, coding) && (int)offered->of[i].weight > weight)
            weight = (int)offered->of[i].weight;
    return weight;
}

/* What a response has in Content-Encoding. */
struct codings {
    unsigned bits;
    bool any;   /* a coding, with or without a bit */
    int weight; /* the smallest that the client gave to one of them */
};

static void
add_coding(struct codings *codings, const struct http_preferences *offered, struct span coding)
{
    int weight = offered ? weight_of(offered, coding) : NOT_OFFERED;

    if (http_name_is(coding, "identity"))
        return;
    if (!codings->any || weight < codings->weight)
        codings->weight = weight;
    codings->any = true;
    codings->bits |= http_is_token(coding) ? http_coding_bit(coding) : HTTP_CODINGS_ALL;
}

static struct codings
read_codings(const struct http_preferences *offered, struct span lines)
{
    const struct span name = span_str("Content-Encoding");
    struct codings codings = {0};
    struct span line, value, coding;

    while (http_next_line(&lines, &line)) {
        if (!http_line_is(line, name, &value))
            continue;
        while (http_next_member(&value, &coding))
            add_coding(&codings, offered, coding);
    }
    return codings;
}

void
http_coding_choice_observe(struct http_coding_choice *choice,
                           const struct http_preferences *offered, unsigned status,
                           struct span response_lines)
{
    struct codings got = read_codings(offered, response_lines);
    struct http_coding_choice seen = {.used = got.bits};

    /* Without a mention identity is the last choice. */
    if (!got.any && offered && (got.weight = weight_of(offered, span_str("identity"))) < 0)
        got.weight = 0;
    if (offered && status == 200 && got.weight != NOT_OFFERED) {
        for (size_t i = 0; i < offered->count; i++) {
            int weight = (int)offered->of[i].weight;

            if (weight > 0 && weight >= got.weight)
                seen.unused |= http_coding_bit(offered->of[i].range);
        }
    }
    http_coding_choice_merge(choice, &seen);
}

void
http_coding_choice_merge(struct http_coding_choice *choice, const struct http_coding_choice *other)
{
    choice->used |= other->used;
    choice->unused = (choice->unused | other->unused) & ~choice->used;
}

/* ---- as text ---------------------------------------------------------------------------------
 */

void
http_coding_choice_write(const struct http_coding_choice *choice, struct buf *out)
{
    for (unsigned i = 0; i < HTTP_CODINGS; i++) {
        unsigned bit = 1u << i;

        if ((choice->used | choice->unused) & bit)
            buf_printf(out, ";%s=%c", http_coding_name(bit), choice->used & bit ? '1' : '0');
    }
}

/* One parameter without its semicolon. */
static bool
parse_parameter(struct http_coding_choice *choice, struct span text)
{
    unsigned bit;

    if (text.len < 3 || text.ptr[text.len - 2] != '=')
        return false;
    bit = http_coding_bit(span_of(text.ptr, text.len - 2));
    if (!bit || ((choice->used | choice->unused) & bit))
        return false;
    switch (text.ptr[text.len - 1]) {
    case '0':
        choice->unused |= bit;
        return true;
    case '1':
        choice->used |= bit;
        return true;
    default:
        return false;
    }
}

bool
http_coding_choice_parse(struct http_coding_choice *choice, struct span text)
{
    while (text.len) {
        const char *next;
        size_t len;

        if (text.ptr[0] != ';')
            return false;
        next = memchr(text.ptr + 1, ';', text.len - 1);
        len = next ? (size_t)(next - text.ptr) : text.len;
        if (!parse_parameter(choice, span_of(text.ptr + 1, len - 1)))
            return false;
        text = span_of(text.ptr + len, text.len - len);
    }
    return true;
}
