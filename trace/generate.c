#include "trace/generate.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/nearest.h"
#include "trace/builder.h"
#include "trace/random.h"

#define THRIFT_SETS 5u
#define TIMES_EACH 6u
#define LONGEST_SCAN 100u
#define SIZE_MOST 4294967294.0
#define PI 3.14159265358979323846

struct generate_state {
    const struct generate_options *options;
    struct random_numbers random;
    struct zipf zipf;
    uint64_t inserted; /* pages that there are so far, of a workload that inserts */
    uint64_t *set;     /* the requests of one of the Thrift study's sets, shuffled */
    uint64_t set_at;   /* the request that it begins at */
    bool write;        /* the request that was drawn writes */
    uint64_t next;     /* the page that a scan, or a modification, goes on with */
    uint64_t left;     /* requests of it */
};

/* ---- workloads ----------------------------------------------------------------------------- */

/* Settles whether an operation reads or writes. */
static bool
draw_write(struct generate_state *s)
{
    double reads = s->options->reads;

    s->write = reads < 1 && random_unit(&s->random) >= reads;
    return s->write;
}

static uint64_t
draw_zipf(struct generate_state *s, uint64_t i)
{
    (void)i;
    draw_write(s);
    return zipf_draw(&s->zipf, &s->random) - 1;
}

static uint64_t
draw_uniform(struct generate_state *s, uint64_t i)
{
    (void)i;
    draw_write(s);
    return random_below(&s->random, s->options->urls);
}

/* Five sets of pages, one after the other; within one, each page as often, in random order. */
static uint64_t
draw_repeated(struct generate_state *s, uint64_t i)
{
    uint64_t pages = s->options->urls / THRIFT_SETS;
    uint64_t requests = s->options->requests / THRIFT_SETS;
    uint64_t set = i / requests < THRIFT_SETS ? i / requests : THRIFT_SETS - 1;

    draw_write(s);
    if (i == 0 || i - s->set_at == requests) {
        s->set_at = i;
        for (uint64_t k = 0; k < requests; k++)
            s->set[k] = k % pages;
        for (uint64_t k = requests; k > 1; k--) {
            uint64_t other = random_below(&s->random, k);
            uint64_t swapped = s->set[k - 1];

            s->set[k - 1] = s->set[other];
            s->set[other] = swapped;
        }
    }
    return set * pages + s->set[i - s->set_at];
}

/* YCSB's "latest": the newest of the pages is the most popular; an operation that is no read
 * inserts a page. */
static uint64_t
draw_latest(struct generate_state *s, uint64_t i)
{
    uint64_t back;

    (void)i;
    if (draw_write(s))
        return s->inserted++;
    do
        back = zipf_draw(&s->zipf, &s->random);
    while (back > s->inserted);
    return s->inserted - back;
}

/*
 * Scans of pages that stand in a row, as many as YCSB's maxscanlength at most. Where they begin is
 * Zipf's law's, but scattered, or all popular pages would be neighbours. A request that does not
 * scan inserts.
 */
static uint64_t
draw_scan(struct generate_state *s, uint64_t i)
{
    (void)i;
    if (s->left == 0) {
        if (draw_write(s))
            return s->inserted++;
        s->next = hash64_uint(zipf_draw(&s->zipf, &s->random)) % s->options->urls;
        s->left = 1 + random_below(&s->random, LONGEST_SCAN);
        if (s->left > s->inserted - s->next)
            s->left = s->inserted - s->next;
    }
    s->left--;
    return s->next++;
}

/* A request that does not only read reads a page and then writes it. */
static uint64_t
draw_modify(struct generate_state *s, uint64_t i)
{
    (void)i;
    s->write = s->left != 0;
    if (s->write) {
        s->left = 0;
        return s->next;
    }
    s->left = draw_write(s);
    s->write = false;
    s->next = zipf_draw(&s->zipf, &s->random) - 1;
    return s->next;
}

#define YCSB(share)                                   \
    .defaults = {.requests = 100000,                  \
                 .urls = 10000,                       \
                 .constant = 0.99,                    \
                 .reads = (share),                    \
                 .sizes = {GENERATE_FIXED, 1000, 0}}, \
    .has_constant = true
#define THRIFT .defaults = {.urls = 25, .reads = 1, .sizes = {GENERATE_LOGNORMAL, 45000, 0.8}}

const struct generate_workload generate_workloads[] = {
    {.name = "zipf",
     .summary = "independent requests for pages by Zipf's law",
     .defaults = {.requests = 100000, .urls = 10000, .constant = 1, .reads = 1},
     .has_constant = true,
     .draw = draw_zipf},
    {.name = "uniform",
     .summary = "all pages equally likely",
     .defaults = {.requests = 100000, .urls = 10000, .reads = 1},
     .draw = draw_uniform},
    {.name = "thrift-random",
     .summary = "the Thrift study's: 150 draws from 25 pages",
     THRIFT,
     .draw = draw_uniform},
    {.name = "thrift-repeated",
     .summary = "the Thrift study's: five sets of five pages, each six times",
     THRIFT,
     .draw = draw_repeated},
    {.name = "ycsb-a",
     .summary = "YCSB A: half reads, half updates, by Zipf's law",
     YCSB(0.5),
     .draw = draw_zipf},
    {.name = "ycsb-b", .summary = "YCSB B: 95 % reads, 5 % updates", YCSB(0.95), .draw = draw_zipf},
    {.name = "ycsb-c", .summary = "YCSB C: reads only", YCSB(1), .draw = draw_zipf},
    {.name = "ycsb-d",
     .summary = "YCSB D: 95 % reads of the newest pages, 5 % inserts",
     YCSB(0.95),
     .draw = draw_latest},
    {.name = "ycsb-e",
     .summary = "YCSB E: 95 % scans of up to 100 pages in a row, 5 % inserts",
     YCSB(0.95),
     .draw = draw_scan},
    {.name = "ycsb-f",
     .summary = "YCSB F: half reads, half reads followed by a write",
     YCSB(0.5),
     .draw = draw_modify},
    {.name = NULL},
};

const struct generate_workload *
generate_find(const char *name)
{
    for (const struct generate_workload *w = generate_workloads; w->name; w++) {
        if (strcmp(w->name, name) == 0)
            return w;
    }
    return NULL;
}

/* ---- sizes --------------------------------------------------------------------------------- */

struct size_law {
    const char *name;
    const char *form;
    enum generate_law law;
    int numbers;
};

static const struct size_law laws[] = {
    {"none", "none", GENERATE_NO_SIZES, 0},
    {"fixed", "fixed:BYTES", GENERATE_FIXED, 1},
    {"uniform", "uniform:LOW:HIGH", GENERATE_UNIFORM, 2},
    {"lognormal", "lognormal:MEDIAN:SIGMA", GENERATE_LOGNORMAL, 2},
    {"pareto", "pareto:LEAST:SHAPE", GENERATE_PARETO, 2},
};
#define LAWS (sizeof(laws) / sizeof(laws[0]))

/* The numbers behind the law's name, each behind a colon. */
static bool
parse_law(const struct size_law *law, const char *at, struct generate_sizes *sizes)
{
    double numbers[2] = {0, 0};

    for (int k = 0; k < law->numbers; k++) {
        char *end;

        if (*at != ':' || ((at[1] < '0' || at[1] > '9') && at[1] != '.'))
            return false;
        numbers[k] = strtod(at + 1, &end);
        if (!isfinite(numbers[k]) || numbers[k] > SIZE_MOST)
            return false;
        at = end;
    }
    *sizes = (struct generate_sizes){law->law, numbers[0], numbers[1]};
    return *at == '\0' && (law->law != GENERATE_UNIFORM || numbers[0] <= numbers[1]) &&
           (law->law != GENERATE_PARETO || numbers[1] > 0);
}

bool
generate_parse_sizes(const char *text, struct generate_sizes *sizes, char *why, size_t why_size)
{
    char name[16];
    struct nearest nearest = NEAREST_TO(name);
    const char *form = NULL;
    size_t len = strcspn(text, ":");

    snprintf(name, sizeof(name), "%.*s", (int)(len < sizeof(name) ? len : sizeof(name)), text);
    for (size_t i = 0; i < LAWS && !form; i++) {
        if (strcmp(laws[i].name, name) == 0) {
            if (parse_law(&laws[i], text + len, sizes))
                return true;
            form = laws[i].form;
        }
        nearest_offer(&nearest, laws[i].name);
    }
    for (size_t i = 0; i < LAWS && !form; i++)
        if (laws[i].name == nearest.best)
            form = laws[i].form;
    snprintf(why, why_size, "'%.80s' is no law of sizes; did you mean %s?", text, form);
    return false;
}

/* The same for a page however often and in whatever order it is asked. */
static int64_t
size_of(const struct generate_options *o, uint64_t page)
{
    const struct generate_sizes *sizes = &o->sizes;
    struct random_numbers random;
    double size = sizes->a;
    double u, v;

    if (sizes->law == GENERATE_NO_SIZES)
        return -1;
    random_seed(&random, hash64_uint(o->seed) ^ hash64_uint(page));
    u = 1 - random_unit(&random); /* not 0 */
    v = random_unit(&random);
    if (sizes->law == GENERATE_UNIFORM)
        size = floor(sizes->a + v * (sizes->b - sizes->a + 1));
    else if (sizes->law == GENERATE_LOGNORMAL) /* Box and Muller */
        size = sizes->a * exp(sizes->b * sqrt(-2 * log(u)) * cos(2 * PI * v));
    else if (sizes->law == GENERATE_PARETO)
        size = sizes->a * pow(u, -1 / sizes->b);
    return (int64_t)(size > SIZE_MOST ? SIZE_MOST : size);
}

/* ---- the whole ----------------------------------------------------------------------------- */

static bool
check(const struct generate_workload *w, const struct generate_options *o, char *why,
      size_t why_size)
{
    bool repeated = w->draw == draw_repeated;

    if (o->urls == 0 || o->urls >= UINT32_MAX)
        snprintf(why, why_size, "there must be from 1 to %" PRIu32 " URLs", UINT32_MAX - 1);
    else if (!(o->constant >= 0 && o->constant <= 10))
        snprintf(why, why_size, "the constant of Zipf's law is from 0 to 10");
    else if (!(o->reads >= 0 && o->reads <= 1))
        snprintf(why, why_size, "the share of reads is from 0 to 1");
    else if (!(o->rate >= 0 && o->rate <= 1e9))
        snprintf(why, why_size, "the rate is from 0 to 1000000000 requests a second");
    else if (repeated && (o->urls % THRIFT_SETS != 0 || o->requests % THRIFT_SETS != 0))
        snprintf(why, why_size, "%s has five sets: URLs and requests must be multiples of five",
                 w->name);
    else
        return true;
    return false;
}

static bool
add_all(const struct generate_workload *w, struct generate_state *s, struct trace_builder *builder,
        uint8_t *writes)
{
    const struct generate_options *o = s->options;

    for (uint64_t i = 0; i < o->requests; i++) {
        struct trace_request request = TRACE_REQUEST_EMPTY;
        uint64_t page = w->draw(s, i);

        request.number = page + 1;
        request.size = size_of(o, page);
        if (o->rate > 0)
            request.time_us = (int64_t)((double)i * 1e6 / o->rate);
        if (writes)
            writes[i] = s->write;
        if (!trace_add(builder, &request))
            return false;
    }
    return true;
}

enum trace_error
generate_trace(const struct generate_workload *workload, const struct generate_options *options,
               struct trace **trace, uint8_t **writes, char *why, size_t why_size)
{
    static const struct trace_options everything = {.since_us = INT64_MIN, .until_us = INT64_MAX};
    struct generate_options settled = *options;
    struct generate_state state = {.options = &settled, .inserted = options->urls};
    struct trace_builder *builder;
    bool good;

    *trace = NULL;
    *writes = NULL;
    if (settled.requests == 0)
        settled.requests = settled.urls * TIMES_EACH;
    if (!check(workload, &settled, why, why_size))
        return TRACE_BAD_OPTION;
    random_seed(&state.random, settled.seed);
    zipf_init(&state.zipf, settled.urls, settled.constant);
    builder = trace_builder_create(&everything);
    if (settled.reads < 1)
        *writes = malloc(settled.requests);
    if (workload->draw == draw_repeated)
        state.set = calloc(settled.requests / THRIFT_SETS, sizeof(*state.set));
    good = builder && (*writes || !(settled.reads < 1)) &&
           (state.set || workload->draw != draw_repeated);
    if (good && add_all(workload, &state, builder, *writes))
        *trace = trace_builder_finish(builder, workload->name);
    trace_builder_destroy(builder);
    free(state.set);
    if (*trace)
        return TRACE_OK;
    free(*writes);
    *writes = NULL;
    snprintf(why, why_size, "not enough memory for %" PRIu64 " requests", settled.requests);
    return TRACE_NO_MEMORY;
}
