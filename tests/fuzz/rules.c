/*
 * Rules of an operator, and requests and responses that they edit. The input is rules, each up to a
 * line feed; a zero byte; a URL; a zero byte; field lines; a zero byte; and the content of a list of
 * hosts. Edits of cookies and parameters only remove, a URL that has been edited is not edited
 * again, and what has been restored of a response has the origin's control.
 */
#include "rules/rules.h"

#include "http/known_fields.h"
#include "rules/name_list.h"
#include "tests/fuzz/fuzz.h"

static struct span
take(struct span *input)
{
    const char *zero = input->len ? memchr(input->ptr, 0, input->len) : NULL;
    struct span taken = span_of(input->ptr, zero ? (size_t)(zero - input->ptr) : input->len);

    *input = zero ? span_of(zero + 1, input->len - taken.len - 1) : span_of("", 0);
    return taken;
}

static const char *
place(void *context, size_t rule)
{
    (void)context;
    (void)rule;
    return "";
}

/* As many as are good. */
static struct rules *
read_rules(struct span text)
{
    struct rules *rules = rules_create();
    struct buf why, rule;

    FUZZ_CHECK(rules);
    buf_init(&why, 1 << 20);
    buf_init(&rule, 1 << 20);
    while (text.len) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : text.len;

        buf_reset(&rule);
        buf_append(&rule, text.ptr, len);
        if (!rules_add(rules, buf_str(&rule), &why))
            FUZZ_CHECK(why.len);
        text = span_of(text.ptr + len + (end != NULL), text.len - len - (end != NULL));
    }
    (void)rules_finish(rules, place, NULL, &why);
    buf_free(&why);
    buf_free(&rule);
    return rules;
}

/* Lines as a request has them: each with an end. */
static void
write_lines(struct span text, struct buf *lines)
{
    buf_append(lines, text.ptr, text.len);
    if (text.len && text.ptr[text.len - 1] != '\n')
        buf_append_str(lines, "\r\n");
}

static void
check_key(void *context, struct span key)
{
    const struct span *url = context;

    FUZZ_CHECK(key.len <= url->len && !span_equal(key, *url));
}

static void
check_request(const struct rules *rules, struct span url, struct span text)
{
    static char bytes[16384], again[16384];
    struct rules_request request = {.url = url, .lines = text, .has = UINT32_MAX, .now_us = 1};
    struct rules_answer answer;
    struct buf lines;

    rules_peek(rules, &request, again, sizeof(again), &answer);
    rules_apply(rules, &request, bytes, sizeof(bytes), &answer);
    FUZZ_CHECK(answer.verdict != RULES_GO_ON || answer.url.len <= url.len);
    rules_visit_keys(rules, url, bytes, sizeof(bytes), check_key, &url);
    buf_init(&lines, 1 << 20);
    write_lines(text, &lines);
    rules_edit_fields(rules, &request, &lines);
    FUZZ_CHECK(!lines.len || lines.data[lines.len - 1] == '\n');
    buf_free(&lines);
}

static void
check_response(const struct rules *rules, struct span url, struct span text)
{
    struct http_storing_rules storing;
    struct rules_response response = {.url = url, .status = 200};
    struct buf lines, edited, restored;

    buf_init(&lines, 1 << 20);
    buf_init(&edited, 1 << 21);
    buf_init(&restored, 1 << 21);
    write_lines(text, &lines);
    response.lines = buf_span(&lines);
    http_storing_rules_init(&storing);
    rules_set_storing(rules, &response, &storing);
    FUZZ_CHECK(storing.key_count <= HTTP_VARY_MAX + 1);
    (void)rules_error_page(rules, &response);
    if (rules_edit_response(rules, &response, RULES_EDIT_ALL, response.lines, &edited) &&
        rules_restore_response(buf_span(&edited), &restored))
        FUZZ_CHECK(!(http_known_fields(buf_span(&restored)) & HTTP_KNOWN_ORIGIN_CONTROL) ||
                   memmem(text.ptr, text.len, ":", 1));
    (void)rules_concern(rules, 0, SIZE_MAX, HTTP_GET, url);
    buf_free(&lines);
    buf_free(&edited);
    buf_free(&restored);
}

static void
check_list(enum name_list_kind kind, struct span content, struct span name)
{
    struct name_list list;
    struct buf why;

    buf_init(&why, 4096);
    if (name_list_init(&list, kind, content, "list", &why)) {
        FUZZ_CHECK(list.count);
        (void)name_list_has_host(&list, name);
        (void)name_list_has(&list, name);
        name_list_free(&list);
    } else {
        FUZZ_CHECK(why.len);
    }
    buf_free(&why);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span input = span_of(data, size), texts = take(&input), url = take(&input),
                lines = take(&input);
    struct rules *rules;

    if (size > 65536 || url.len > 8192)
        return 0;
    rules = read_rules(texts);
    if (!url.len)
        url = span_str("http://a.test/x?b=1&a=2");
    check_request(rules, url, lines);
    check_response(rules, url, lines);
    check_list(NAME_LIST_HOSTS, input, url);
    check_list(NAME_LIST_USERS, input, url);
    rules_free(rules);
    return 0;
}
