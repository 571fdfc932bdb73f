/*
 * A URL from a client, and behind the first line feed a Location from an origin: what is accepted
 * has a host and a port, and reads the same when it is read again. Where a Location leads can be
 * fetched.
 */
#include "fetch/url.h"
#include "tests/fuzz/fuzz.h"

#include <arpa/inet.h>

static void
check_target(const struct target *target)
{
    struct in_addr number;
    struct target again;
    char why[512];

    FUZZ_CHECK(target->host[0] && strlen(target->host) <= HOST_MAX);
    FUZZ_CHECK(strncmp(target->origin, target->https ? "https://" : "http://",
                       target->https ? 8 : 7) == 0);
    FUZZ_CHECK(!strpbrk(target->text, "\r\n\t "));
    FUZZ_CHECK(target_parse(&again, span_str(target->text), why, sizeof(why)) == FETCH_OK);
    FUZZ_CHECK(again.port == target->port && again.https == target->https);
    /*
     * libcurl looks for numbers before it decodes "%31", so a host may be a number only in the
     * second reading. A resolver reads it as the same number, and the address is checked then.
     */
    if (target->literal || !inet_aton(target->host, &number)) {
        FUZZ_CHECK(strcmp(again.text, target->text) == 0);
        FUZZ_CHECK(strcmp(again.origin, target->origin) == 0);
        FUZZ_CHECK(again.literal == target->literal);
    }
    target_free(&again);
}

static void
check_location(const struct target *from, struct span url, struct span location)
{
    bool same_origin = false;
    struct target to;
    char why[512] = "";
    struct buf next;

    buf_init(&next, URL_MAX);
    if (fetch_follow(url, location, &next, &same_origin, why, sizeof(why)) == FETCH_OK) {
        FUZZ_CHECK(target_parse(&to, buf_span(&next), why, sizeof(why)) == FETCH_OK);
        check_target(&to);
        /* A number may be a name in the first reading (check_target()). */
        if (!to.literal)
            FUZZ_CHECK(same_origin == (strcmp(from->origin, to.origin) == 0));
        target_free(&to);
    } else {
        FUZZ_CHECK(why[0] && next.len == 0);
    }
    buf_free(&next);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span input = span_of(data, size), url;
    const char *end = size ? memchr(input.ptr, '\n', input.len) : NULL;
    struct target target;
    bool has_user = false;
    char why[512] = "";

    url = fuzz_take(&input, end ? (size_t)(end - input.ptr) : input.len);
    if (target_parse(&target, url, why, sizeof(why)) != FETCH_OK) {
        FUZZ_CHECK(why[0]);
        FUZZ_CHECK(fetch_check_url(url, &has_user, why, sizeof(why)) != FETCH_OK);
        return 0;
    }
    FUZZ_CHECK(fetch_check_url(url, &has_user, why, sizeof(why)) == FETCH_OK);
    FUZZ_CHECK(has_user == target.has_user);
    check_target(&target);
    if (input.len > 1)
        check_location(&target, url, span_of(input.ptr + 1, input.len - 1));
    target_free(&target);
    return 0;
}
