#include "server/users/helpers.h"

#include <assert.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/passing.h"
#include "server/commands/keeper.h"
#include "server/logs/log.h"
#include "server/logs/log_limit.h"
#include "server/users/helper_line.h"

#define ANSWER_MAX 4096u   /* bytes of a line */
#define FIRST_PAUSE_MS 100 /* a request waits for it */
#define READS_AT_ONCE 16   /* of one helper, while the others wait */

/* A question that a helper has. */
struct channel {
    bool busy;
    struct helper_job *job; /* NULL: given up */
    int64_t asked_us;
};

struct helper {
    unsigned number;
    enum {
        HELPER_DOWN,     /* it is started at `at_us` */
        HELPER_STARTING, /* the keeper was asked for it */
        HELPER_UP        /* since `at_us` */
    } state;
    int64_t at_us;
    int pause_ms;             /* the last one */
    int fd;                   /* up only */
    const char *fault;        /* why it is to be replaced; NULL: it is not */
    unsigned busy;            /* channels with a question */
    unsigned last;            /* the channel that was used last */
    struct channel *channels;
    bool started; /* once at least */
    size_t in_len, out_len;
    char in[ANSWER_MAX];
    char *out; /* questions that are not sent yet */
};

struct helpers {
    struct helpers_config config; /* constant, but for keeper: -1 when it has ended */
    unsigned channels;            /* of one helper */
    struct log_limit limit;
    _Atomic uint64_t running, restarted;
    struct helper helpers[];
};

/* ---- all of them ----------------------------------------------------------------------------- */

static bool
make_helper(struct helper *helper, unsigned number, unsigned channels)
{
    helper->number = number;
    helper->fd = -1;
    helper->channels = calloc(channels, sizeof(*helper->channels));
    helper->out = calloc(channels, HELPER_QUESTION_MAX);
    return helper->channels && helper->out;
}

static void
free_helpers(struct helpers *helpers)
{
    for (unsigned i = 0; i < helpers->config.count; i++) {
        struct helper *helper = &helpers->helpers[i];

        if (helper->fd >= 0)
            close(helper->fd);
        free(helper->channels);
        free(helper->out);
    }
    log_limit_free(&helpers->limit);
    free(helpers);
}

struct helpers *
helpers_create(const struct helpers_config *config)
{
    struct helpers *helpers = calloc(1, sizeof(*helpers) + config->count * sizeof(struct helper));
    bool made = helpers != NULL;

    if (!made)
        return NULL;
    helpers->config = *config;
    helpers->channels = config->concurrency ? config->concurrency : 1;
    log_limit_init(&helpers->limit);
    for (unsigned i = 0; i < config->count; i++)
        made = make_helper(&helpers->helpers[i], i, helpers->channels) && made;
    if (made)
        return helpers;
    free_helpers(helpers);
    return NULL;
}

void
helpers_destroy(struct helpers *helpers)
{
    if (!helpers)
        return;
    /* First, so that the keeper does not miss those that end. */
    if (helpers->config.keeper >= 0)
        close(helpers->config.keeper);
    free_helpers(helpers);
}

unsigned
helpers_capacity(const struct helpers *helpers)
{
    return helpers->config.count * helpers->channels;
}

void
helpers_get_stats(const struct helpers *helpers, struct helpers_stats *stats)
{
    stats->running = atomic_load(&helpers->running);
    stats->restarted = atomic_load(&helpers->restarted);
}

/* A line about helpers at most once in a minute for each sentence. */
static void
warn(struct helpers *helpers, const struct helper *helper, const char *sentence, struct span detail,
     int64_t now_us)
{
    uint64_t withheld;

    if (!log_limit_take(&helpers->limit, hash64_bytes(span_str(sentence)), now_us, &withheld))
        return;
    log_warning("auth-helper: helper %u %s%s%.*s (%llu more since the last such line)",
                helper->number + 1, sentence, detail.len ? ": " : "", (int)detail.len,
                detail.len ? detail.ptr : "", (unsigned long long)withheld);
}

/* ---- processes ------------------------------------------------------------------------------- */

static void
lose_keeper(struct helpers *helpers)
{
    if (helpers->config.keeper < 0)
        return;
    close(helpers->config.keeper);
    helpers->config.keeper = -1;
    log_error("auth-helper: the process that starts helpers has ended; a restart of the daemon "
              "starts it again");
}

static void
wish(struct helpers *helpers, const struct helper *helper, bool starts)
{
    const struct helper_wish wish = {.number = helper->number, .starts = starts};

    if (helpers->config.keeper >= 0 && send(helpers->config.keeper, &wish, sizeof(wish),
                                            MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof(wish))
        lose_keeper(helpers);
}

static void
pause_start(struct helper *helper, int64_t ran_us, int64_t now_us)
{
    helper->state = HELPER_DOWN;
    helper->at_us =
        now_us + (int64_t)keeper_next_pause(&helper->pause_ms, FIRST_PAUSE_MS, ran_us) * 1000;
}

/* Ends a process, and gives its questions back. */
static void
replace(struct helpers *helpers, struct helper *helper, int64_t now_us)
{
    warn(helpers, helper, helper->fault, span_of(NULL, 0), now_us);
    close(helper->fd);
    helper->fd = -1;
    atomic_fetch_sub(&helpers->running, 1);
    wish(helpers, helper, false);
    pause_start(helper, now_us - helper->at_us, now_us);
    helper->fault = NULL;
    OPENSSL_cleanse(helper->out, helper->out_len);
    helper->in_len = helper->out_len = 0;
    for (unsigned i = 0; i < helpers->channels; i++) {
        struct helper_job *job = helper->channels[i].job;

        helper->channels[i] = (struct channel){.busy = false};
        if (!job)
            continue;
        job->helper = NULL;
        helpers->config.answered(helpers->config.context, job, HELPER_ENDED);
    }
    helper->busy = 0;
}

/* The keeper has started one, or says why not. */
static void
take_helper(struct helpers *helpers, int64_t now_us)
{
    struct helper_begun begun = {.number = HELPERS_MAX};
    int passed[PASSING_MAX];
    unsigned count;
    struct helper *helper;

    if (passing_receive(helpers->config.keeper, &begun, sizeof(begun), passed, &count) <= 0 ||
        begun.number >= helpers->config.count) {
        lose_keeper(helpers);
        return;
    }
    helper = &helpers->helpers[begun.number];
    if (!count) {
        warn(helpers, helper, "cannot be started", span_str(strerror(begun.error)), now_us);
        pause_start(helper, 0, now_us);
        return;
    }
    helper->fd = passed[0];
    helper->state = HELPER_UP;
    helper->at_us = now_us;
    atomic_fetch_add(&helpers->running, 1);
    if (helper->started)
        atomic_fetch_add(&helpers->restarted, 1);
    helper->started = true;
}

/* ---- questions ------------------------------------------------------------------------------- */

static const char unasked[] = "has answered what it was not asked and is replaced";

/* Without a question it has nothing to say: the next question would get that for its answer. */
static bool
is_silent(struct helper *helper)
{
    char byte;

    if (!helper->busy && recv(helper->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
        helper->fault = unasked;
    return !helper->fault;
}

static struct helper *
find_free(struct helpers *helpers)
{
    struct helper *best = NULL;

    for (unsigned i = 0; i < helpers->config.count; i++) {
        struct helper *helper = &helpers->helpers[i];

        if (helper->state == HELPER_UP && !helper->fault && helper->busy < helpers->channels &&
            (!best || helper->busy < best->busy) && is_silent(helper))
            best = helper;
    }
    return best;
}

bool
helpers_are_free(struct helpers *helpers)
{
    return find_free(helpers) != NULL;
}

/* Sends as much as the socket takes now. */
static void
flush(struct helper *helper)
{
    ssize_t n = helper->out_len
                    ? send(helper->fd, helper->out, helper->out_len, MSG_NOSIGNAL | MSG_DONTWAIT)
                    : 0;

    if (n <= 0)
        return; /* an error is found by the next read */
    memmove(helper->out, helper->out + n, helper->out_len - (size_t)n);
    helper->out_len -= (size_t)n;
    OPENSSL_cleanse(helper->out + helper->out_len, (size_t)n);
}

void
helpers_ask(struct helpers *helpers, struct helper_job *job, const char *name, const char *password,
            int64_t now_us)
{
    struct helper *helper = find_free(helpers);

    /* A fault since helpers_are_free(): the question is one that the helper has when it ends. */
    for (unsigned i = 0; !helper; i++) {
        assert(i < helpers->config.count);
        if (helpers->helpers[i].state == HELPER_UP &&
            helpers->helpers[i].busy < helpers->channels)
            helper = &helpers->helpers[i];
    }
    /* The number that was free for the longest time: a late answer is that of no other question. */
    do
        helper->last = (helper->last + 1) % helpers->channels;
    while (helper->channels[helper->last].busy);
    job->channel = helper->last;
    job->helper = helper;
    helper->channels[job->channel] =
        (struct channel){.busy = true, .job = job, .asked_us = now_us};
    helper->busy++;
    helper->out_len += helper_line_write(
        helper->out + helper->out_len,
        helpers->config.concurrency ? job->channel : HELPER_NO_CHANNEL, name, password);
    flush(helper);
}

void
helpers_give_up(struct helper_job *job)
{
    if (job->helper)
        job->helper->channels[job->channel].job = NULL;
    job->helper = NULL;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* One line. False: the helper is to be replaced. */
static bool
take_line(struct helpers *helpers, struct helper *helper, struct span line, int64_t now_us)
{
    static const enum helper_answer answers[] = {
        [HELPER_REPLY_OK] = HELPER_ACCEPTED,
        [HELPER_REPLY_ERR] = HELPER_REFUSED,
        [HELPER_REPLY_BH] = HELPER_CANNOT_TELL,
    };
    struct span message;
    unsigned number;
    enum helper_reply reply =
        helper_line_read(line, helpers->config.concurrency != 0, &number, &message);
    struct channel channel;

    if (reply == HELPER_REPLY_NONSENSE) {
        helper->fault = "has answered something else than OK, ERR or BH and is replaced";
        return false;
    }
    if (number >= helpers->channels || !helper->channels[number].busy) {
        helper->fault = unasked;
        return false;
    }
    channel = helper->channels[number];
    helper->channels[number] = (struct channel){.busy = false};
    helper->busy--;
    if (!channel.job)
        return true;
    if (reply == HELPER_REPLY_BH)
        warn(helpers, helper, "a user that cannot be checked is refused", message, now_us);
    channel.job->helper = NULL;
    helpers->config.answered(helpers->config.context, channel.job, answers[reply]);
    return true;
}

static void
take_lines(struct helpers *helpers, struct helper *helper, int64_t now_us)
{
    size_t begin = 0;
    char *end;

    while ((end = memchr(helper->in + begin, '\n', helper->in_len - begin))) {
        struct span line = span_of(helper->in + begin, (size_t)(end - helper->in) - begin);

        begin += line.len + 1;
        if (!take_line(helpers, helper, line, now_us))
            return;
    }
    memmove(helper->in, helper->in + begin, helper->in_len - begin);
    helper->in_len -= begin;
    if (helper->in_len == sizeof(helper->in))
        helper->fault = "has answered a line that is too long and is replaced";
}

static void
receive(struct helpers *helpers, struct helper *helper, int64_t now_us)
{
    for (int i = 0; i < READS_AT_ONCE && !helper->fault; i++) {
        ssize_t n = recv(helper->fd, helper->in + helper->in_len,
                         sizeof(helper->in) - helper->in_len, MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            helper->fault = "has ended and is started again";
            return;
        }
        helper->in_len += (size_t)n;
        take_lines(helpers, helper, now_us);
    }
}

/* ---- waiting --------------------------------------------------------------------------------- */

unsigned
helpers_get_fds(const struct helpers *helpers, struct pollfd *fds)
{
    fds[0] = (struct pollfd){.fd = helpers->config.keeper, .events = POLLIN};
    for (unsigned i = 0; i < helpers->config.count; i++) {
        const struct helper *helper = &helpers->helpers[i];

        fds[i + 1] = (struct pollfd){.fd = helper->fd,
                                     .events = (short)(POLLIN | (helper->out_len ? POLLOUT : 0))};
    }
    return helpers->config.count + 1;
}

/* When the first of its questions is late. */
static int64_t
late_us(const struct helpers *helpers, const struct helper *helper, int64_t timeout_us)
{
    int64_t us = INT64_MAX;

    for (unsigned i = 0; i < helpers->channels && helper->busy; i++)
        if (helper->channels[i].busy && helper->channels[i].asked_us + timeout_us < us)
            us = helper->channels[i].asked_us + timeout_us;
    return us;
}

int64_t
helpers_next_us(const struct helpers *helpers, int64_t timeout_us)
{
    int64_t us = INT64_MAX, late;

    for (unsigned i = 0; i < helpers->config.count; i++) {
        const struct helper *helper = &helpers->helpers[i];

        if (helper->fault)
            return 0;
        if (helper->state == HELPER_DOWN && helpers->config.keeper >= 0 && helper->at_us < us)
            us = helper->at_us;
        late = late_us(helpers, helper, timeout_us);
        if (late < us)
            us = late;
    }
    return us;
}

static void
work_one(struct helpers *helpers, struct helper *helper, short events, int64_t timeout_us,
         int64_t now_us)
{
    if (helper->state == HELPER_UP && !helper->fault && events) {
        flush(helper);
        if (events & ~POLLOUT)
            receive(helpers, helper, now_us);
    }
    if (!helper->fault && late_us(helpers, helper, timeout_us) <= now_us)
        helper->fault = "has not answered in time and is replaced";
    if (helper->fault)
        replace(helpers, helper, now_us);
    if (helper->state == HELPER_DOWN && helper->at_us <= now_us && helpers->config.keeper >= 0) {
        helper->state = HELPER_STARTING;
        wish(helpers, helper, true);
    }
}

void
helpers_work(struct helpers *helpers, const struct pollfd *fds, int64_t timeout_us, int64_t now_us)
{
    if (helpers->config.keeper >= 0 && fds[0].revents)
        take_helper(helpers, now_us);
    for (unsigned i = 0; i < helpers->config.count; i++)
        work_one(helpers, &helpers->helpers[i], fds[i + 1].revents, timeout_us, now_us);
}
