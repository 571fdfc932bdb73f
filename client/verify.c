/*
 * sunproxy verify: compares what the cache of a running server has stored with the origins.
 */
#include <curl/curl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/digest.h"
#include "base/json.h"
#include "cli/output.h"
#include "cli/trace_options.h"
#include "client/address.h"
#include "client/commands.h"
#include "client/get/get_cache_status.h"
#include "client/get/get_request.h"
#include "http/conditional.h"
#include "http/field.h"
#include "trace/random.h"

enum { STALE_FOUND = 1 }; /* an exit status */

#define CAUSE_SIZE 320
#define JSON_MAX ((size_t)1 << 30)

struct verify_options {
    const char *http; /* NULL: not given */
    uint64_t sample;
    uint64_t seed;
    int64_t timeout_us; /* of each response */
    bool json;
    struct get_options request; /* its headers and Cache-Control */
};

#define AT(field) offsetof(struct verify_options, field)

static const struct option_row rows[] = {
    {"http", 0, "ADDRESS", option_text, AT(http), 0, 0, NULL,
     "the server's HTTP front: HOST:PORT or unix:PATH (default: the environment variable "
     "SUNPROXY_HTTP)"},
    {"number", 'n', "N", option_uint, AT(sample), 1, 10000000, "100",
     "number of URLs. Requests are drawn at random, so a popular URL is drawn sooner"},
    {"seed", 0, "N", option_uint, AT(seed), 0, UINT64_MAX, "1", "seed of the random numbers"},
    {"header", 'H', "LINE", get_take_header, AT(request.headers), 0, 0, NULL,
     "send 'Name: value', such as 'Accept-Encoding: gzip, br', to select a variant"},
    {"timeout", 0, "TIME", option_duration, AT(timeout_us), 0, 0, "60s",
     "longest time that a response takes"},
    {"json", 0, NULL, option_flag, AT(json), 0, 0, NULL, "print one JSON object"},
    {0},
};

static const struct option_group own = {.rows = rows};

/* In the order in which they are printed. */
enum verdict {
    VERDICT_SAME,
    VERDICT_STALE,    /* the server sends it again, and the origin sends another one again */
    VERDICT_CHANGED,  /* they differed, and the server does not send it again */
    VERDICT_DYNAMIC,  /* the origin sends another one each time */
    VERDICT_UNSTORED, /* the cache has no fresh response */
    VERDICT_FAILED,   /* the origin fails, or the URL cannot be fetched */
    VERDICTS,
};

static const struct {
    const char *name; /* in JSON */
    const char *what;
} verdicts[VERDICTS] = {
    [VERDICT_SAME] = {"same", "same as the origin's"},
    [VERDICT_STALE] = {"stale", "stale"},
    [VERDICT_CHANGED] = {"changed", "changed during the comparison"},
    [VERDICT_DYNAMIC] = {"dynamic", "another one each time"},
    [VERDICT_UNSTORED] = {"unstored", "not stored, or not fresh"},
    [VERDICT_FAILED] = {"failed", "not compared: a failure"},
};

/* One run. */
struct verifier {
    struct verify_options *options;
    struct http_address server;
    CURL *easy;
    uint64_t counts[VERDICTS];
    struct json json; /* of --json: the array of URLs is open */
    bool lost;        /* the server: `cause` says why */
    char cause[CAUSE_SIZE];
};

struct response {
    struct verifier *verifier;
    struct get_page page;
    bool has_head;
    struct digest body;
};

/* ---- a response ------------------------------------------------------------------------------ */

static size_t
take_header(char *bytes, size_t size, size_t count, void *context)
{
    struct response *response = context;
    struct span rest = span_of(bytes, size * count), line = span_of("", 0);
    struct buf *head = &response->page.head;
    long status = 0;

    if (response->has_head) /* a trailer */
        return size * count;
    http_next_line(&rest, &line);
    if (line.len != 0)
        return buf_append(head, line.ptr, line.len) && buf_append_str(head, "\r\n") ? size * count
                                                                                    : 0;
    curl_easy_getinfo(response->verifier->easy, CURLINFO_RESPONSE_CODE, &status);
    response->has_head = status >= 200;
    response->page.status = (unsigned)status;
    if (!response->has_head)
        buf_reset(head);
    return size * count;
}

static size_t
take_body(char *bytes, size_t size, size_t count, void *context)
{
    struct response *response = context;

    digest_add(&response->body, span_of(bytes, size * count));
    return size * count;
}

#define SET(option, value) (curl_easy_setopt(verifier->easy, option, value) == CURLE_OK)

static bool
set_server(struct verifier *verifier)
{
    return SET(CURLOPT_URL, verifier->server.url) && SET(CURLOPT_PROXY, "") &&
           SET(CURLOPT_PROTOCOLS_STR, "http") && SET(CURLOPT_NOSIGNAL, 1L) &&
           SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) &&
           SET(CURLOPT_TIMEOUT_MS, (long)(verifier->options->timeout_us / 1000)) &&
           SET(CURLOPT_HEADERFUNCTION, take_header) && SET(CURLOPT_WRITEFUNCTION, take_body) &&
           (!verifier->server.socket || SET(CURLOPT_UNIX_SOCKET_PATH, verifier->server.socket));
}

static bool
is_server_lost(CURLcode code)
{
    return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST;
}

/* Fetches from the cache alone, or past it. False with verifier->cause set. */
static bool
fetch(struct verifier *verifier, const struct get_target *target, bool cached,
      struct response *response)
{
    struct get_options *request = &verifier->options->request;
    struct curl_slist *lines;
    CURLcode code = CURLE_OUT_OF_MEMORY;

    *response = (struct response){.verifier = verifier};
    get_page_init(&response->page);
    request->only_if_cached = cached;
    request->no_cache = request->no_store = !cached;
    lines = get_request_lines(request, &(struct get_fields){.target = target});
    if (lines && SET(CURLOPT_REQUEST_TARGET, target->url) && SET(CURLOPT_HTTPHEADER, lines) &&
        SET(CURLOPT_HEADERDATA, response) && SET(CURLOPT_WRITEDATA, response))
        code = curl_easy_perform(verifier->easy);
    curl_slist_free_all(lines);
    if (code == CURLE_OK)
        get_read_cache_status(&response->page);
    else
        snprintf(verifier->cause, sizeof(verifier->cause), "%s", curl_easy_strerror(code));
    verifier->lost = is_server_lost(code);
    return code == CURLE_OK;
}

static void
free_response(struct response *response)
{
    get_page_free(&response->page);
}

/* ---- comparisons ----------------------------------------------------------------------------- */

static struct http_validators
validators_of(const struct response *response)
{
    struct span lines = buf_span(&response->page.head), status_line;
    struct http_validators validators;

    http_next_line(&lines, &status_line);
    http_validators_read(&validators, lines, 0);
    return validators;
}

/* Have both the same ETag, which does not promise equal bytes? */
static bool
are_weakly_equal(const struct response *a, const struct response *b)
{
    struct http_validators of_a = validators_of(a), of_b = validators_of(b);

    return of_a.etag.ptr && of_b.etag.ptr && http_etag_matches_weakly(of_a.etag, of_b.etag) &&
           !http_etag_matches_strongly(of_a.etag, of_b.etag);
}

static bool
are_equal(const struct response *a, const struct response *b)
{
    return a->page.status == b->page.status &&
           (digest_equal(&a->body, &b->body) || are_weakly_equal(a, b));
}

/* Says in verifier->cause how the origin's response differs. */
static void
explain(struct verifier *verifier, const struct response *stored, const struct response *origin)
{
    char *cause = verifier->cause;

    if (stored->page.status != origin->page.status)
        snprintf(cause, CAUSE_SIZE, "the origin's status is %u and not %u", origin->page.status,
                 stored->page.status);
    else if (stored->body.length != origin->body.length)
        snprintf(cause, CAUSE_SIZE, "the origin's body has %" PRIu64 " bytes and not %" PRIu64,
                 origin->body.length, stored->body.length);
    else
        snprintf(cause, CAUSE_SIZE, "the origin's body has other bytes");
}

/* Does it say nothing about the page? Statuses 206 and 304 were not asked for. */
static bool
is_no_page(const struct response *origin)
{
    unsigned status = origin->page.status;

    return status >= 500 || status == 408 || status == 429 || status == 304 || status == 206;
}

/* After a difference: are both the same once more? */
static enum verdict
look_again(struct verifier *verifier, const struct get_target *target,
           const struct response *stored, const struct response *origin)
{
    enum verdict verdict = VERDICT_FAILED;
    struct response again;

    if (fetch(verifier, target, true, &again))
        verdict = again.page.source == PROXY_HIT && are_equal(&again, stored) ? VERDICT_STALE
                                                                              : VERDICT_CHANGED;
    free_response(&again);
    if (verdict != VERDICT_STALE)
        return verdict;
    if (!fetch(verifier, target, false, &again) || is_no_page(&again))
        verdict = VERDICT_FAILED;
    else if (!are_equal(&again, origin))
        verdict = VERDICT_DYNAMIC;
    free_response(&again);
    return verdict;
}

static enum verdict
compare_with_origin(struct verifier *verifier, const struct get_target *target,
                    const struct response *stored)
{
    enum verdict verdict = VERDICT_FAILED;
    struct response origin;

    if (fetch(verifier, target, false, &origin)) {
        if (is_no_page(&origin)) {
            snprintf(verifier->cause, CAUSE_SIZE, "the origin's status is %u", origin.page.status);
        } else if (are_equal(stored, &origin)) {
            verdict = VERDICT_SAME;
        } else {
            verdict = look_again(verifier, target, stored, &origin);
            if (verdict == VERDICT_STALE || verdict == VERDICT_DYNAMIC)
                explain(verifier, stored, &origin);
        }
    }
    free_response(&origin);
    return verdict;
}

static enum verdict
compare(struct verifier *verifier, const struct get_target *target, unsigned *age)
{
    enum verdict verdict = VERDICT_FAILED;
    struct response stored;

    if (fetch(verifier, target, true, &stored)) {
        *age = stored.page.age;
        verdict = stored.page.source != PROXY_HIT ? VERDICT_UNSTORED
                                                  : compare_with_origin(verifier, target, &stored);
    }
    free_response(&stored);
    return verdict;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* Prints what is not as it should be; in JSON everything. */
static void
report(struct verifier *verifier, const char *url, enum verdict verdict, unsigned age)
{
    bool compared = verdict != VERDICT_FAILED && verdict != VERDICT_UNSTORED;

    if (verifier->options->json) {
        json_open_object(&verifier->json, NULL);
        json_cstring(&verifier->json, "url", url);
        json_cstring(&verifier->json, "result", verdicts[verdict].name);
        compared ? json_uint(&verifier->json, "age", age) : json_null(&verifier->json, "age");
        json_cstring(&verifier->json, "cause", verifier->cause);
        json_close_object(&verifier->json);
    } else if (verdict == VERDICT_STALE || verdict == VERDICT_FAILED) {
        output_put(url);
        printf(": %s", verdicts[verdict].name);
        if (compared)
            printf(", age %u s", age);
        printf(": %s\n", verifier->cause);
    }
}

static void
verify_url(struct verifier *verifier, const char *url)
{
    struct get_target target;
    const char *sentence = get_target_parse(&target, url);
    enum verdict verdict = VERDICT_FAILED;
    unsigned age = 0;

    *verifier->cause = '\0';
    if (sentence) {
        snprintf(verifier->cause, CAUSE_SIZE, "%s", sentence);
    } else {
        verdict = compare(verifier, &target, &age);
    }
    if (!verifier->lost) {
        verifier->counts[verdict]++;
        report(verifier, sentence ? url : target.url, verdict, age);
    }
    get_target_free(&target);
}

/*
 * The numbers of the URLs of up to `most` requests that are drawn at random, each once, in the
 * order in which they are drawn. *count becomes their number. NULL without memory.
 */
static uint32_t *
draw(const struct trace *trace, uint64_t seed, uint64_t most, size_t *count)
{
    uint32_t *ids = malloc(trace->request_count * sizeof(*ids));
    bool *drawn = calloc(trace->url_count, sizeof(*drawn));
    struct random_numbers random;

    *count = 0;
    if (ids && drawn) {
        random_seed(&random, seed);
        memcpy(ids, trace->ids, trace->request_count * sizeof(*ids));
        for (size_t i = 0; i < trace->request_count && *count < most; i++) {
            size_t at = i + (size_t)random_below(&random, trace->request_count - i);
            uint32_t id = ids[at];

            ids[at] = ids[i];
            if (!drawn[id])
                ids[(*count)++] = id;
            drawn[id] = true;
        }
    } else {
        free(ids);
        ids = NULL;
    }
    free(drawn);
    return ids;
}

static int
print_counts(const struct verifier *verifier, const struct trace *trace, size_t count)
{
    printf("%zu of %zu URLs\n", count, trace->url_count);
    for (unsigned i = 0; i < VERDICTS; i++)
        printf("%10" PRIu64 "  %s\n", verifier->counts[i], verdicts[i].what);
    return EX_OK;
}

static int
print_json(struct verifier *verifier, const struct trace *trace, size_t count)
{
    json_close_array(&verifier->json);
    json_uint(&verifier->json, "urls_of_trace", trace->url_count);
    json_uint(&verifier->json, "drawn", count);
    for (unsigned i = 0; i < VERDICTS; i++)
        json_uint(&verifier->json, verdicts[i].name, verifier->counts[i]);
    json_close_object(&verifier->json);
    return output_json(verifier->json.out);
}

static int
verify_all(struct verifier *verifier, const struct trace *trace)
{
    const struct verify_options *options = verifier->options;
    size_t count;
    uint32_t *ids = draw(trace, options->seed, options->sample, &count);
    int status;

    if (!ids) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    for (size_t i = 0; i < count && !verifier->lost; i++) {
        verify_url(verifier, trace->urls[ids[i]].ptr);
        if (!options->json && output_flush() != EX_OK) {
            free(ids);
            return EX_IOERR;
        }
    }
    free(ids);
    if (verifier->lost) {
        output_complain("%s: %s", verifier->server.name, verifier->cause);
        return EX_UNAVAILABLE;
    }
    status =
        options->json ? print_json(verifier, trace, count) : print_counts(verifier, trace, count);
    return status == EX_OK && verifier->counts[VERDICT_STALE] != 0 ? STALE_FOUND : status;
}

static int
run(struct verify_options *options, const struct trace *trace)
{
    struct verifier verifier = {.options = options};
    struct buf json;
    int status = EX_SOFTWARE;

    if (!http_address_parse(&verifier.server, options->http))
        return EX_USAGE;
    buf_init(&json, JSON_MAX);
    json_init(&verifier.json, &json);
    json_open_object(&verifier.json, NULL);
    json_open_array(&verifier.json, "urls");
    if (curl_global_init(CURL_GLOBAL_NOTHING) == CURLE_OK) {
        verifier.easy = curl_easy_init();
        if (verifier.easy && set_server(&verifier))
            status = verify_all(&verifier, trace);
        else
            output_complain("out of memory");
        curl_easy_cleanup(verifier.easy);
        curl_global_cleanup();
    }
    buf_free(&json);
    return status;
}

static int
verify_trace(struct verify_options *options, const struct trace_options *trace_options,
             const char *path)
{
    struct trace *trace = NULL;
    int status = trace_open(path, trace_options, &trace);

    if (status != EX_OK)
        return status;
    if (trace->urls) {
        status = run(options, trace);
    } else {
        output_complain("%s: the format %s has numbers instead of URLs, which cannot be fetched",
                        path, trace->format);
        status = EX_DATAERR;
    }
    trace_free(trace);
    return status;
}

static int
verify(int argc, char **argv)
{
    struct verify_options options = {.json = false};
    struct trace_options trace_options = TRACE_OPTIONS_DEFAULT;
    void *const into[] = {&options, &trace_options};
    int status;

    buf_init(&options.request.headers, PROXY_MAX_HEADERS);
    status = command_read(&command_verify, into, argc, argv);
    if (!options.http)
        options.http = getenv("SUNPROXY_HTTP");
    if (status == COMMAND_GO_ON && options.http && *options.http) {
        status = verify_trace(&options, &trace_options, argv[optind]);
    } else if (status == COMMAND_GO_ON) {
        output_complain("name the server's HTTP front with --http HOST:PORT or --http unix:PATH");
        status = command_usage(&command_verify);
    }
    buf_free(&options.request.headers);
    return status;
}

const struct command command_verify = {
    .name = "verify",
    .summary = "compare stored pages with their origins",
    .about = "usage: sunproxy verify [OPTION...] TRACE\n\n"
             "Draws URLs from a trace, such as the server's access log or request database,\n"
             "fetches each from the cache alone and then from the origin past the cache, one\n"
             "at a time, and compares status and body. Nothing that is stored changes. A page\n"
             "is stale if the server sends it once more and the origin sends the other one\n"
             "once more. 'sunproxy trace --help' lists the formats of traces.\n",
    .options = {&own, &trace_option_group},
    .after = "Exit status: 0 no page is stale; 1 a page is; 64 wrong usage;\n" TRACE_EXIT_HELP
             "69 no server; 70 internal; 74 output could not be written.\n",
    .argument = "trace",
    .least = 1,
    .most = 1,
    .run = verify,
};
