#include "proxy/verifier.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "http/conditional.h"
#include "http/field.h"

#define FIELDS_MAX ((size_t)1 << 17)
#define CAUSE_SIZE 128

/* What a worker draws its samples from, on a cache line of its own. */
struct sampler {
    _Alignas(64) uint64_t draws;
};

struct verifier {
    struct verifier_config config;
    uint64_t threshold;              /* of 53 random bits */
    struct sampler *samplers;        /* owned; by worker */
    pthread_mutex_t lock;            /* protects what follows */
    uint64_t origins[VERIFIER_MOST]; /* of the fetches under way: hashes; 0: none is */
};

/* One hit; the fetcher's thread's from its submission on. */
struct verification {
    struct verifier *verifier;
    uint64_t *turn;        /* of verifier->origins */
    struct object *object; /* a reference */
    struct object_place place;
    struct span run; /* of the object's body, not compared yet */
    uint64_t compared;
    size_t charged;
    int64_t hit_us;
    bool raw;
    bool differs; /* `cause` says in what */
    bool decided; /* the rest of the response does not matter */
    bool failed;  /* it proves nothing: `cause` */
    char cause[CAUSE_SIZE];
};

/* ---- the verifier ---------------------------------------------------------------------------- */

struct verifier *
verifier_create(const struct verifier_config *config)
{
    struct verifier *verifier = malloc(sizeof(*verifier));
    size_t size = config->workers * sizeof(*verifier->samplers);

    if (!verifier)
        return NULL;
    *verifier = (struct verifier){
        .config = *config,
        .threshold = (uint64_t)(config->share * (double)((uint64_t)1 << 53)),
        .samplers = aligned_alloc(_Alignof(struct sampler), size),
    };
    if (!verifier->samplers) {
        free(verifier);
        return NULL;
    }
    pthread_mutex_init(&verifier->lock, NULL); /* without attributes it cannot fail */
    for (unsigned i = 0; i < config->workers; i++)
        verifier->samplers[i].draws = hash64_uint(i + 1);
    return verifier;
}

void
verifier_destroy(struct verifier *verifier)
{
    if (!verifier)
        return;
    pthread_mutex_destroy(&verifier->lock);
    free(verifier->samplers);
    free(verifier);
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* Of the origin of a URL; not 0. */
static uint64_t
hash_origin(struct span url)
{
    const char *after = memmem(url.ptr, url.len, "://", 3), *end = url.ptr + url.len, *c;

    for (c = after ? after + 3 : url.ptr; c < end && *c != '/' && *c != '?' && *c != '#';)
        c++;
    return hash64_bytes(span_of(url.ptr, (size_t)(c - url.ptr))) | 1;
}

/* NULL if as many are under way, of all or of this origin, as may be. */
static uint64_t *
take_turn(struct verifier *verifier, struct span url)
{
    uint64_t origin = hash_origin(url), *turn = NULL;
    unsigned of_origin = 0;

    pthread_mutex_lock(&verifier->lock);
    for (unsigned i = 0; i < VERIFIER_MOST; i++) {
        if (!verifier->origins[i])
            turn = &verifier->origins[i];
        of_origin += verifier->origins[i] == origin;
    }
    if (of_origin >= VERIFIER_MOST_OF_ORIGIN)
        turn = NULL;
    if (turn)
        *turn = origin;
    pthread_mutex_unlock(&verifier->lock);
    return turn;
}

static void
give_turn_back(struct verifier *verifier, uint64_t *turn)
{
    pthread_mutex_lock(&verifier->lock);
    *turn = 0;
    pthread_mutex_unlock(&verifier->lock);
}

/* ---- the comparison, on the fetcher's thread ------------------------------------------------- */

static void
end(struct verification *v)
{
    struct verifier *verifier = v->verifier;

    object_release(&v->object);
    memory_uncharge(verifier->config.account, MEMORY_REQUESTS, v->charged);
    give_turn_back(verifier, v->turn);
    free(v);
}

static void
begin_fetch(void *context)
{
    static const struct client_key none;
    struct verification *v = context;

    shedding_charge_for(v->verifier->config.shedding, &none, NULL);
}

/* Have both the same ETag, which does not promise equal bytes? */
static bool
is_weakly_equal(const struct verification *v, struct span lines)
{
    struct http_validators stored, received;

    http_validators_read(&stored, object_fields(v->object), 0);
    http_validators_read(&received, lines, 0);
    return stored.etag.ptr && received.etag.ptr &&
           http_etag_matches_weakly(stored.etag, received.etag) &&
           !http_etag_matches_strongly(stored.etag, received.etag);
}

/* Is the length of the body, as it is sent, another one? */
static bool
has_other_length(const struct verification *v, const struct fetch_head *head)
{
    return v->raw && head->content_length >= 0 &&
           (uint64_t)head->content_length != object_length(v->object);
}

static enum fetch_flow
compare_head(void *context, const struct fetch_head *head)
{
    struct verification *v = context;
    /* A 304 or 206 says nothing about the whole, which was asked for. */
    bool fails = head->status >= 500 || head->status == 408 || head->status == 429 ||
                 head->status == 304 || head->status == 206;
    bool weakly_equal = v->raw && is_weakly_equal(v, head->headers);

    if (head->status != 200) {
        v->failed = fails;
        v->differs = !fails;
        snprintf(v->cause, sizeof(v->cause), "the origin's status is %u", head->status);
    } else if (!weakly_equal && has_other_length(v, head)) {
        v->differs = true;
        snprintf(v->cause, sizeof(v->cause), "the origin's body has %lld bytes and not %llu",
                 (long long)head->content_length, (unsigned long long)object_length(v->object));
    }
    v->decided = head->status != 200 || weakly_equal || v->differs;
    return v->decided ? FETCH_ABORT : FETCH_CONTINUE;
}

static enum fetch_flow
differ_here(struct verification *v, const char *how)
{
    v->differs = v->decided = true;
    snprintf(v->cause, sizeof(v->cause), "the origin's body %s %llu bytes", how,
             (unsigned long long)v->compared);
    return FETCH_ABORT;
}

static enum fetch_flow
compare_body(void *context, const void *bytes, size_t len)
{
    struct verification *v = context;
    const char *at = bytes;

    while (len) {
        size_t part;

        if (!v->run.len)
            v->run = object_read(v->object, &v->place);
        if (!v->run.len)
            return differ_here(v, "goes on after");
        part = len < v->run.len ? len : v->run.len;
        if (memcmp(at, v->run.ptr, part) != 0) {
            while (*at == *v->run.ptr) {
                at++;
                v->run.ptr++;
                v->compared++;
            }
            return differ_here(v, "differs after");
        }
        v->run = span_of(v->run.ptr + part, v->run.len - part);
        v->compared += part;
        at += part;
        len -= part;
    }
    return FETCH_CONTINUE;
}

static enum verdict
judge(const struct verification *v, int64_t now_us)
{
    if (v->failed)
        return VERDICT_FAILED;
    if (!v->differs)
        return VERDICT_SAME;
    return object_is_fresh(v->object, now_us) && cache_stores(v->verifier->config.cache, v->object)
               ? VERDICT_STALE
               : VERDICT_CHANGED;
}

_Static_assert((int)METRIC_VERIFICATIONS_FAILED - (int)METRIC_VERIFICATIONS_SAME ==
                   (int)VERDICT_FAILED,
               "each verdict has a row, in its order");

static void
end_fetch(void *context, enum fetch_error error, const char *sentence, int64_t total_us)
{
    struct verification *v = context;
    const struct verifier_config *config = &v->verifier->config;
    int64_t now_us = config->monotonic_us(config->clock_context);
    enum verdict verdict;

    (void)total_us;
    if (!v->decided && error != FETCH_OK) {
        v->failed = true;
        snprintf(v->cause, sizeof(v->cause), "%s", sentence);
    } else if (!v->decided && v->compared < object_length(v->object)) {
        differ_here(v, "ends after");
    }
    verdict = judge(v, now_us);
    metrics_add(config->metrics, metrics_fetcher_slot(config->metrics),
                (enum metric)((unsigned)METRIC_VERIFICATIONS_SAME + (unsigned)verdict), 1);
    if (config->verified)
        config->verified(&(struct verified){
            .url = object_url(v->object),
            .age_us = object_age(v->object, v->hit_us),
            .took_us = now_us - v->hit_us,
            .verdict = verdict,
            .cause = v->cause,
        });
    end(v);
}

static const struct fetch_sink sink = {
    .begin = begin_fetch,
    .head = compare_head,
    .body = compare_body,
    .done = end_fetch,
};

/* ---- hits ------------------------------------------------------------------------------------ */

static bool
is_drawn(struct verifier *verifier, unsigned worker)
{
    struct sampler *sampler = &verifier->samplers[worker];

    sampler->draws += HASH64_STEP;
    return hash64_uint(sampler->draws) >> 11 < verifier->threshold;
}

/*
 * Appends the fields of the request: without its conditions and its range, which concern what the
 * client has, and with a demand that no cache on the way answers. False if it has what identifies a
 * user, for whom no request may be sent that the user has not sent, or without memory.
 */
static bool
write_fields(struct span lines, struct buf *out)
{
    static const char *const dropped[] = {"Range", "Cache-Control", "Pragma", NULL};
    static const char *const personal[] = {"Authorization", "Cookie", NULL};
    struct span line, name, value;

    while (http_next_line(&lines, &line)) {
        if (!http_split_field(line, &name, &value))
            continue;
        if (http_name_is_one_of(name, personal))
            return false;
        if (http_is_condition(name) || http_name_is_one_of(name, dropped))
            continue;
        buf_append(out, line.ptr, line.len);
        buf_append(out, "\r\n", 2);
    }
    buf_append_str(out, "Cache-Control: no-cache\r\n");
    return !buf_failed(out);
}

/* Allocates what the verification takes with its fetch, and charges it. */
static struct verification *
make(struct verifier *verifier, const struct fetch_request *fetch)
{
    struct memory_account *account = verifier->config.account;
    size_t size = sizeof(struct verification) + fetcher_request_bytes(fetch);
    struct verification *v;

    if (!memory_charge(account, MEMORY_REQUESTS, size))
        return NULL;
    v = malloc(sizeof(*v));
    if (!v) {
        memory_uncharge(account, MEMORY_REQUESTS, size);
        return NULL;
    }
    *v = (struct verification){.verifier = verifier, .charged = size};
    return v;
}

/* False if it cannot be, with the turn given back. */
static bool
begin(struct verifier *verifier, uint64_t *turn, const struct verifier_hit *hit, struct span fields)
{
    const struct origin *origin = &verifier->config.origin;
    struct fetch_request fetch = {
        .headers = fields,
        .flags = FETCH_ANY_LENGTH | (hit->raw ? FETCH_UNDECODED | FETCH_NO_REDIRECTS : 0u),
        .limit_us = VERIFIER_LONGEST_US,
    };
    struct origin_route_text text;
    struct verification *v;

    origin_route_set(hit->route, origin_route_first(hit->route), object_url(hit->object), &text,
                     &fetch);
    v = make(verifier, &fetch);

    if (!v) {
        give_turn_back(verifier, turn);
        return false;
    }
    v->turn = turn;
    v->object = object_retain(hit->object);
    v->hit_us = hit->arrived_us;
    v->raw = hit->raw;
    if (origin->ops->submit(origin->context, &fetch, &sink, v, NULL))
        return true;
    end(v);
    return false;
}

void
verifier_offer(struct verifier *verifier, const struct verifier_hit *hit)
{
    bool wanted = true, begun = false;
    struct buf fields;
    uint64_t *turn;

    if (hit->object->status != 200 || !is_drawn(verifier, hit->worker))
        return;
    turn = take_turn(verifier, object_url(hit->object));
    if (turn) {
        buf_init(&fields, FIELDS_MAX);
        wanted = write_fields(hit->fields, &fields);
        if (wanted)
            begun = begin(verifier, turn, hit, buf_span(&fields));
        else
            give_turn_back(verifier, turn);
        buf_free(&fields);
    }
    if (wanted && !begun)
        metrics_add(verifier->config.metrics, hit->worker, METRIC_VERIFICATIONS_SKIPPED, 1);
}
