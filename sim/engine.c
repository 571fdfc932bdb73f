/*
 * The run itself. Nodes of the pages inside stand in one array, packed: its places are handed out
 * from the lowest and used again at once, so that what is touched is as small as the cache, however
 * many pages the trace has. By page there are only the 4 bytes that say where its node is.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "sim/estimate.h"

#define BLOCK 32768u   /* requests between two looks at the watch */
#define FAR_AHEAD 24u  /* how far ahead of the request its page's place is fetched, */
#define NEAR_AHEAD 10u /* and then the node there */
#define HUGE_PAGE (2u << 20)
#define UNIT 8u /* places are counted in these, the alignment of a node */

/* In front of each policy node. */
struct resident {
    uint32_t bytes; /* that it entered with; of a free place, the next free one */
    uint32_t id;
};

_Static_assert(sizeof(struct resident) == UNIT, "the policy's node behind it is aligned");

struct run {
    const struct sim_trace *trace;
    const struct sim_config *config;
    const struct policy_ops *ops;
    struct policy *policy;
    uint64_t capacity_pages; /* UINT64_MAX: not bounded */
    uint64_t capacity_bytes;

    uint32_t *places; /* by page: where its node is; 0: not inside */
    uint64_t *nodes;  /* in UNITs; the first place is nobody's */
    uint32_t stride;  /* UNITs from one place to the next */
    uint32_t fresh;   /* the lowest place that was never used */
    uint32_t room;    /* UNITs in nodes */
    uint32_t free;    /* the first of those that were left; 0: none */

    uint64_t pages;
    uint64_t bytes;

    uint32_t *victims; /* ids, of the request under way; only when somebody is told */
    size_t victim_count;
    size_t victim_room;

    struct estimate estimate; /* of a sample */
    bool sampled;
    bool holds_all; /* nobody ever leaves: there is neither a policy nor a node */

    struct sim_result *result;
};

const char *
sim_strerror(enum sim_error error)
{
    switch (error) {
    case SIM_OK:
        return "no error";
    case SIM_NO_MEMORY:
        return "out of memory";
    case SIM_STOPPED:
        return "stopped";
    case SIM_NEEDS_SIZES:
        return "a capacity in bytes needs a trace with sizes";
    case SIM_NEEDS_NEXT:
        return "the policy needs to know the future";
    case SIM_TOO_MANY:
        return "more than 4294967294 requests";
    }
    return "unknown error";
}

/* ---- places ---------------------------------------------------------------------------------- */

static inline struct resident *
resident_at(const struct run *run, uint32_t place)
{
    return (struct resident *)(void *)(run->nodes + place);
}

static inline void *
node_of(struct resident *resident)
{
    return resident + 1;
}

/* A place with a zeroed node. There is always one: never are more inside than there are pages. */
static uint32_t
take_place(struct run *run)
{
    uint32_t place = run->free;

    if (place) {
        run->free = resident_at(run, place)->bytes;
    } else {
        place = run->fresh;
        run->fresh += run->stride;
    }
    for (uint32_t i = 0; i < run->stride; i++)
        run->nodes[place + i] = 0;
    return place;
}

static void
leave_place(struct run *run, uint32_t place)
{
    resident_at(run, place)->bytes = run->free;
    run->free = place;
}

/* ---- misses ---------------------------------------------------------------------------------- */

static bool
note_victim(struct run *run, uint32_t id)
{
    if (run->victim_count == run->victim_room) {
        size_t room = run->victim_room ? 2 * run->victim_room : 64;
        uint32_t *victims = realloc(run->victims, room * sizeof(*victims));

        if (!victims)
            return false;
        run->victims = victims;
        run->victim_room = room;
    }
    run->victims[run->victim_count++] = id;
    return true;
}

/* After each step, in a build that does so. */
static inline void
check_policy(const struct run *run)
{
    (void)run;
    POLICY_CHECK(run->ops, run->policy, run->pages, run->bytes);
}

/* The policy's next victim leaves; gives its page. */
static inline uint32_t
evict(struct run *run)
{
    void *node = run->ops->victim(run->policy);
    struct resident *resident = (struct resident *)node - 1;
    uint32_t id = resident->id;

    check_policy(run);
    run->ops->remove(run->policy, node, true);
    run->pages--;
    run->bytes -= resident->bytes;
    check_policy(run);
    if (run->sampled)
        estimate_left(&run->estimate, id);
    run->places[id] = 0;
    leave_place(run, (uint32_t)((uint64_t *)(void *)resident - run->nodes));
    return id;
}

/* Those that a hit has pushed out: counted, and as in the server not named. */
static void
evict_surplus(struct run *run)
{
    while (run->ops->has_surplus(run->policy)) {
        evict(run);
        run->result->evictions++;
    }
}

/* How a page that is to enter fares. */
enum entry { ENTERED, TURNED_AWAY, LEFT_AT_ONCE, TOO_LARGE, NO_MEMORY };

static enum entry
enter(struct run *run, uint32_t id, const struct policy_page *page, bool telling)
{
    const struct policy_ops *ops = run->ops;
    uint64_t bytes = page->bytes;
    struct resident *resident;
    uint32_t place, victim;

    if (bytes > run->capacity_bytes)
        return TOO_LARGE;
    if (ops->admit) {
        bool enters = ops->admit(run->policy, page);

        check_policy(run);
        if (!enters)
            return TURNED_AWAY;
    }
    if (!ops->enters_first)
        while (run->pages >= run->capacity_pages || run->bytes + bytes > run->capacity_bytes) {
            victim = evict(run);
            run->result->evictions++;
            if (telling && !note_victim(run, victim))
                return NO_MEMORY;
        }
    place = take_place(run);
    resident = resident_at(run, place);
    if (ops->insert(run->policy, node_of(resident), page) < 0) {
        leave_place(run, place);
        return NO_MEMORY;
    }
    resident->bytes = (uint32_t)bytes;
    resident->id = id;
    run->places[id] = place;
    if (run->sampled)
        estimate_entered(&run->estimate, id);
    run->pages++;
    run->bytes += bytes;
    check_policy(run);
    if (ops->enters_first)
        while (run->pages > run->capacity_pages || run->bytes > run->capacity_bytes) {
            victim = evict(run);
            if (victim == id)
                return LEFT_AT_ONCE;
            run->result->evictions++;
            if (telling && !note_victim(run, victim))
                return NO_MEMORY;
        }
    return ENTERED;
}

static enum sim_error
miss(struct run *run, uint32_t id, const struct policy_page *page, bool telling,
     enum sim_outcome *outcome)
{
    struct sim_result *result = run->result;

    *outcome = SIM_UNCACHED;
    if (!run->policy)
        return SIM_OK;
    switch (enter(run, id, page, telling)) {
    case ENTERED:
        result->insertions++;
        *outcome = run->victim_count ? SIM_EVICTED : SIM_MISS;
        break;
    case TURNED_AWAY:
    case LEFT_AT_ONCE:
        result->not_admitted++;
        break;
    case TOO_LARGE:
        result->too_large++;
        break;
    case NO_MEMORY:
        return SIM_NO_MEMORY;
    }
    return SIM_OK;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Both steps of the way to a node are in the processor's cache when its request comes. */
static inline void
look_ahead(const struct run *run, size_t number)
{
    const struct sim_trace *trace = run->trace;
    size_t last = trace->request_count - 1;
    size_t far = number + FAR_AHEAD, near = number + NEAR_AHEAD;

    if (far > last)
        return;
    __builtin_prefetch(&run->places[trace->ids[far]]);
    __builtin_prefetch(&run->nodes[run->places[trace->ids[near]]], 1);
}

/*
 * Requests from `first` to before `end`. Inlined into each of its uses, where `sized` and `extra`
 * (somebody is told, or the trace is a sample) are constants.
 */
static inline __attribute__((always_inline)) enum sim_error
run_block(struct run *run, size_t first, size_t end, bool sized, bool extra)
{
    const struct sim_trace *trace = run->trace;
    const struct policy_ops *ops = run->ops;
    const bool future = ops && ops->needs_future;
    const bool surplus = ops && ops->has_surplus;
    const bool telling = extra && run->config->tell;
    struct policy_page page = {.bytes = 1, .next = POLICY_NEVER};
    uint64_t hits = 0, asked = 0, hit_bytes = 0;
    enum sim_error error = SIM_OK;
    size_t number;

    for (number = first; number < end && error == SIM_OK; number++) {
        uint32_t id = trace->ids[number];
        uint32_t bytes = sized ? trace->sizes[number] : 1;
        uint32_t place = run->places[id];
        enum sim_outcome outcome = SIM_HIT;

        look_ahead(run, number);
        asked += bytes;
        page.key = trace->keys ? trace->keys[id] : id;
        if (future)
            page.next = trace->next[number] == UINT32_MAX ? POLICY_NEVER : trace->next[number];
        if (place) {
            struct resident *resident = resident_at(run, place);

            hits++;
            hit_bytes += bytes;
            page.bytes = resident->bytes;
            ops->access(run->policy, node_of(resident), &page);
            check_policy(run);
            if (surplus)
                evict_surplus(run);
        } else {
            page.bytes = bytes;
            error = miss(run, id, &page, telling, &outcome);
            if (extra && run->sampled)
                estimate_missed(&run->estimate, id, bytes);
        }
        if (telling && error == SIM_OK) {
            struct sim_event event = {number, id, bytes, outcome, run->victims, run->victim_count};

            if (!run->config->tell(run->config->context, &event))
                error = SIM_STOPPED;
            run->victim_count = 0;
        }
    }
    run->result->requests += number - first;
    run->result->hits += hits;
    run->result->bytes += asked;
    run->result->bytes_hit += hit_bytes;
    return error;
}

/* Where nobody ever leaves, a page's place only tells that it is inside. */
static enum sim_error
run_block_of_all(struct run *run, size_t first, size_t end)
{
    const struct sim_trace *trace = run->trace;
    struct sim_result *result = run->result;
    bool goes_on = true;
    size_t number;

    for (number = first; number < end && goes_on; number++) {
        uint32_t id = trace->ids[number], bytes = trace->sizes ? trace->sizes[number] : 1;
        struct sim_event event = {.number = number, .id = id, .bytes = bytes, .outcome = SIM_HIT};

        if (number + FAR_AHEAD < trace->request_count)
            __builtin_prefetch(&run->places[trace->ids[number + FAR_AHEAD]], 1);
        result->bytes += bytes;
        if (run->places[id]) {
            result->hits++;
            result->bytes_hit += bytes;
        } else {
            event.outcome = SIM_MISS;
            run->places[id] = 1;
            run->pages++;
            run->bytes += bytes;
            result->insertions++;
            if (run->sampled)
                estimate_missed(&run->estimate, id, bytes);
        }
        if (run->config->tell)
            goes_on = run->config->tell(run->config->context, &event);
    }
    result->requests += number - first;
    return goes_on ? SIM_OK : SIM_STOPPED;
}

static enum sim_error
run_requests(struct run *run, size_t first, size_t end)
{
    bool extra = run->config->tell || run->sampled;

    if (run->holds_all)
        return run_block_of_all(run, first, end);
    if (run->trace->sizes)
        return extra ? run_block(run, first, end, true, true)
                     : run_block(run, first, end, true, false);
    return extra ? run_block(run, first, end, false, true)
                 : run_block(run, first, end, false, false);
}

static enum sim_error
run_blocks(struct run *run, size_t first, size_t end, struct sim_watch *watch)
{
    enum sim_error error = SIM_OK;

    while (first < end && error == SIM_OK) {
        size_t to = end - first < BLOCK ? end : first + BLOCK;

        if (watch && atomic_load_explicit(&watch->stop, memory_order_relaxed))
            return SIM_STOPPED;
        error = run_requests(run, first, to);
        if (watch)
            atomic_fetch_add_explicit(&watch->done, to - first, memory_order_relaxed);
        first = to;
    }
    return error;
}

/* The warm-up counts for nothing but what it left inside. */
static void
forget_counts(struct run *run)
{
    *run->result = (struct sim_result){.memory = run->result->memory};
    if (run->sampled)
        estimate_forget(&run->estimate, run->trace->page_count);
}

/* ---- ratios ---------------------------------------------------------------------------------- */

static void
reckon_ratios(struct run *run)
{
    struct sim_result *result = run->result;

    result->pages = run->pages;
    result->bytes_inside = run->bytes;
    /* Without a policy nothing hits, and no sample is needed to know that. */
    if (run->sampled && (run->policy || run->holds_all)) {
        estimate_reckon(&run->estimate, run->trace, run->config, result);
        return;
    }
    if (result->requests)
        result->hit_ratio = (double)result->hits / (double)result->requests;
    if (result->bytes)
        result->byte_hit_ratio = (double)result->bytes_hit / (double)result->bytes;
}

/* ---- making and ending ----------------------------------------------------------------------- */

/* Memory of the nodes; the system gives what is touched only, in large pages where it has them. */
static bool
make_nodes(struct run *run)
{
    uint64_t count = run->trace->page_count;
    uint64_t units, bytes;

    if (run->capacity_pages < count)
        count = run->capacity_pages + 1; /* one that enters before another leaves */
    run->stride = (uint32_t)(1 + (run->ops->node_size + UNIT - 1) / UNIT);
    units = (count + 1) * run->stride;
    if (units > UINT32_MAX)
        return false;
    bytes = units * UNIT;
    if (bytes >= 2 * HUGE_PAGE) {
        bytes = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
        run->nodes = aligned_alloc(HUGE_PAGE, bytes);
        if (run->nodes)
            madvise(run->nodes, bytes, MADV_HUGEPAGE);
    } else {
        run->nodes = malloc(bytes);
    }
    run->fresh = run->stride;
    run->result->memory = units * UNIT + run->trace->page_count * sizeof(*run->places);
    return run->nodes != NULL;
}

static enum sim_error
check(const struct sim_trace *trace, const struct sim_config *config)
{
    if (trace->request_count >= SIM_MAX_REQUESTS)
        return SIM_TOO_MANY;
    if (config->capacity_bytes && !trace->sizes)
        return SIM_NEEDS_SIZES;
    if (config->spec.ops && config->spec.ops->needs_future && !trace->next)
        return SIM_NEEDS_NEXT;
    return SIM_OK;
}

/* Room for whatever the trace asks for, and a policy that neither turns away nor pushes out. */
static bool
can_hold_all(const struct run *run)
{
    const struct sim_trace *trace = run->trace;
    bool bounded = run->capacity_bytes != UINT64_MAX;

    return !run->ops->admit && !run->ops->has_surplus && run->capacity_pages >= trace->page_count &&
           (!bounded || (trace->distinct_bytes && run->capacity_bytes >= trace->distinct_bytes));
}

static enum sim_error
run_begin(struct run *run)
{
    const struct sim_config *config = run->config;
    struct policy_config policy = {.capacity_pages = config->capacity_pages,
                                   .capacity_bytes = config->capacity_bytes,
                                   .seed = config->seed,
                                   .params = config->spec.params};
    size_t count = run->trace->page_count;

    run->places = calloc(count ? count : 1, sizeof(*run->places));
    if (!run->places)
        return SIM_NO_MEMORY;
    if (run->sampled && !estimate_begin(&run->estimate, count))
        return SIM_NO_MEMORY;
    /* Nothing is ever stored: no policy is needed for that. */
    if (!run->ops || (!config->capacity_pages && !config->capacity_bytes))
        return SIM_OK;
    run->capacity_pages = config->capacity_pages ? config->capacity_pages : UINT64_MAX;
    run->capacity_bytes = config->capacity_bytes ? config->capacity_bytes : UINT64_MAX;
    run->holds_all = can_hold_all(run);
    if (run->holds_all) {
        run->result->memory = count * sizeof(*run->places);
        return SIM_OK;
    }
    if (!make_nodes(run))
        return SIM_NO_MEMORY;
    run->policy = run->ops->create(run->ops, &policy);
    return run->policy ? SIM_OK : SIM_NO_MEMORY;
}

static void
run_end(struct run *run)
{
    if (run->policy)
        run->ops->destroy(run->policy);
    free(run->nodes);
    free(run->places);
    free(run->victims);
    estimate_end(&run->estimate);
}

static int64_t
thread_cpu_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

enum sim_error
sim_run(const struct sim_trace *trace, const struct sim_config *config, struct sim_watch *watch,
        struct sim_result *result)
{
    struct run run = {.trace = trace,
                      .config = config,
                      .ops = config->spec.ops,
                      .sampled = config->sampling != NULL,
                      .result = result};
    size_t warmup = config->warmup < trace->request_count ? config->warmup : trace->request_count;
    int64_t begun_us = thread_cpu_us();
    enum sim_error error = check(trace, config);

    *result = (struct sim_result){0};
    if (error != SIM_OK)
        return error;
    error = run_begin(&run);
    if (error == SIM_OK)
        error = run_blocks(&run, 0, warmup, watch);
    if (error == SIM_OK) {
        if (warmup)
            forget_counts(&run);
        error = run_blocks(&run, warmup, trace->request_count, watch);
    }
    if (error == SIM_OK || error == SIM_STOPPED)
        reckon_ratios(&run);
    run_end(&run);
    result->cpu_us = thread_cpu_us() - begun_us;
    return error;
}
