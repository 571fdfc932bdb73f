#include "server/users/users.h"

#include <openssl/crypto.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "base/thread.h"
#include "base/fair_queue.h"
#include "http/basic_credentials.h"
#include "server/users/helpers.h"
#include "server/users/user_cache.h"
#include "server/users/user_hash.h"

/* Questions that are given up wait for the thread beside those that are queued. */
#define MOST_PENDING (2u * USERS_MAX_QUEUED)

/* A check that is pending. All members are protected by the lock, but for those of a running one
 * that its thread only reads. */
struct user_question {
    TAILQ_ENTRY(user_question) arrival;
    struct queue_item turn;
    struct user_check *check; /* NULL: given up by its owner */
    int64_t asked_us;         /* INT64_MIN: the queue was full */
    struct shared *keeps;
    struct client *client;
    struct helper_job job;
    bool asked_before; /* a helper that ended then */
    const char *hash;  /* that is compared; NULL: helpers are asked */
    bool known;        /* the user has this hash */
    struct user_key key;
    char name[HTTP_BASIC_NAME_MAX + 1];
    char password[HTTP_BASIC_PASSWORD_MAX + 1];
};

TAILQ_HEAD(question_list, user_question);

struct users {
    pthread_mutex_t lock;
    pthread_cond_t called; /* `calling` has changed */
    int wake_fd;           /* an eventfd; any thread */

    /* the thread's */
    pthread_t thread;
    struct user_hasher *hasher;
    int64_t rests_until_us;
    struct helpers *helpers; /* NULL: none */

    /* protected by lock */
    struct users_config config;
    bool started;
    bool stopping;
    struct queue *queue;
    struct question_list pending; /* in the order of arrival, those that are over first */
    size_t count;                 /* of pending */
    struct user_cache *cache;
    struct user_check *calling; /* whose done() runs; NULL: none */
    struct users_stats stats;
};

/* ---- questions ------------------------------------------------------------------------------- */

/* A user that is not there is compared with the hash of another one, which is always the same. */
static const char *
choose_hash(const struct user_request *request, bool *known)
{
    const char *hash = user_file_find(request->file, request->name);

    *known = hash != NULL;
    return hash ? hash : user_file_pick(request->file, request->name);
}

/* To a directory an empty password is the wish to be nobody, which it grants (RFC 4513 section
 * 5.1.2): http_basic_is_password() refuses it. */
static bool
may_be_right(const struct user_request *request)
{
    return http_basic_is_name(request->name) && http_basic_is_password(request->password);
}

static struct user_question *
make_question(const struct users *users, const struct user_request *request, int64_t now_us)
{
    struct user_question *question = calloc(1, sizeof(*question));
    struct span hash;

    if (!question)
        return NULL;
    if (request->file)
        question->hash = choose_hash(request, &question->known);
    hash = question->hash ? span_str(question->hash) : span_of(NULL, 0);
    if (!user_cache_key(users->cache, request->name, request->password, hash, &question->key)) {
        free(question);
        return NULL;
    }
    question->asked_us = now_us;
    question->keeps = shared_retain(request->keeps);
    question->client = client_retain(request->client);
    *span_put(question->name, request->name) = '\0';
    *span_put(question->password, request->password) = '\0';
    return question;
}

/* Not under the lock: it may be the last reference to a configuration. */
static void
free_question(struct user_question *question)
{
    if (!question)
        return;
    shared_release(&question->keeps);
    client_release(&question->client);
    OPENSSL_cleanse(question, sizeof(*question));
    free(question);
}

/* [lock] */
static void
take_out(struct users *users, struct user_question *question)
{
    queue_remove(users->queue, &question->turn);
    TAILQ_REMOVE(&users->pending, question, arrival);
    users->count--;
}

/* [lock] False: the queue is full, or there is no memory. */
static bool
enter_queue(struct users *users, struct user_question *question)
{
    struct user_question *last;

    if (users->count == MOST_PENDING ||
        !queue_add(users->queue, &question->turn, question->client, ""))
        return false;
    TAILQ_INSERT_TAIL(&users->pending, question, arrival);
    users->count++;
    if (queue_queued(users->queue) <= USERS_MAX_QUEUED)
        return true;
    last = container_of(queue_last_of_longest(users->queue), struct user_question, turn);
    if (last == question) {
        take_out(users, question);
        return false;
    }
    /* The thread gives the answer. */
    queue_remove(users->queue, &last->turn);
    last->asked_us = INT64_MIN;
    TAILQ_REMOVE(&users->pending, last, arrival);
    TAILQ_INSERT_HEAD(&users->pending, last, arrival);
    return true;
}

/* ---- answers --------------------------------------------------------------------------------- */

static int64_t
keep_us(const struct users *users, bool accepted)
{
    const int64_t ttl_us = users->config.ttl_us;

    return !accepted && ttl_us > USERS_REFUSED_US ? USERS_REFUSED_US : ttl_us;
}

static void
count(struct users *users, enum user_answer answer)
{
    users->stats.accepted += answer == USER_ACCEPTED;
    users->stats.refused += answer == USER_REFUSED;
    users->stats.unavailable += answer == USER_UNAVAILABLE;
}

/* [lock] Sets the answer of a check if the cache has it. */
static bool
find_in_cache(struct users *users, const struct user_key *key, int64_t now_us,
              struct user_check *check)
{
    bool accepted;

    if (!user_cache_find(users->cache, key, now_us, &accepted, &check->until_us))
        return false;
    check->answer = accepted ? USER_ACCEPTED : USER_REFUSED;
    users->stats.cached++;
    return true;
}

/* [lock, which is released meanwhile] Answers a question and frees it. */
static void
answer(struct users *users, struct user_question *question, enum user_answer answer,
       int64_t until_us)
{
    struct user_check *check = question->check;

    take_out(users, question);
    if (check) {
        check->question = NULL;
        check->answer = answer;
        check->until_us = until_us;
        users->calling = check;
    }
    pthread_mutex_unlock(&users->lock);
    free_question(question);
    if (check)
        check->done(check);
    pthread_mutex_lock(&users->lock);
    users->calling = NULL;
    pthread_cond_broadcast(&users->called);
}

/* ---- the thread; under the lock, which is released where it says so ----------------------------
 */

/* Counts an answer and gives it. The lock is released meanwhile. */
static void
settle(struct users *users, struct user_question *question, enum user_answer said, int64_t until_us)
{
    count(users, said);
    answer(users, question, said, until_us);
}

/* Keeps an answer, and gives it. Likewise. */
static void
settle_and_keep(struct users *users, struct user_question *question, bool accepted, int64_t now_us)
{
    const int64_t until_us = now_us + keep_us(users, accepted);

    user_cache_add(users->cache, &question->key, accepted, until_us);
    settle(users, question, accepted ? USER_ACCEPTED : USER_REFUSED, until_us);
}

/* Ends questions whose time is over. */
static void
expire(struct users *users, int64_t now_us)
{
    struct user_question *first;

    while ((first = TAILQ_FIRST(&users->pending)) && first->asked_us < now_us &&
           now_us - users->config.timeout_us >= first->asked_us) {
        if (users->helpers)
            helpers_give_up(&first->job);
        settle(users, first, USER_UNAVAILABLE, now_us);
    }
}

/* Compares one with its hash. The lock is released meanwhile. */
static void
check_by_file(struct users *users, struct user_question *question)
{
    int64_t began_us, now_us;
    bool accepted;

    pthread_mutex_unlock(&users->lock);
    began_us = clock_read_us(CLOCK_THREAD_CPUTIME_ID);
    accepted = user_hasher_check(users->hasher, question->hash, question->password);
    accepted = accepted && question->known;
    now_us = clock_monotonic_us();
    users->rests_until_us = now_us + clock_read_us(CLOCK_THREAD_CPUTIME_ID) - began_us;
    pthread_mutex_lock(&users->lock);
    settle_and_keep(users, question, accepted, now_us);
}

/* Begins the check of one whose turn it is. The lock is released meanwhile. */
static void
check(struct users *users, struct user_question *question, int64_t now_us)
{
    struct user_check found;

    /* Another question of the same user may have been answered since this one was queued. */
    if (find_in_cache(users, &question->key, now_us, &found))
        answer(users, question, found.answer, found.until_us);
    else if (question->hash)
        check_by_file(users, question);
    else if (users->helpers)
        helpers_ask(users->helpers, &question->job, question->name, question->password, now_us);
    else
        settle(users, question, USER_UNAVAILABLE, now_us);
}

/* A question that has ended two helpers is not for a third one. */
static bool
ask_again(struct users *users, struct user_question *question)
{
    if (!question->check || question->asked_before)
        return false;
    question->asked_before = true;
    queue_remove(users->queue, &question->turn);
    return queue_add(users->queue, &question->turn, question->client, "");
}

/* Of helpers_work(), without the lock. */
static void
take_answer(void *context, struct helper_job *job, enum helper_answer said)
{
    struct user_question *question = container_of(job, struct user_question, job);
    const int64_t now_us = clock_monotonic_us();
    struct users *users = context;

    pthread_mutex_lock(&users->lock);
    if (said == HELPER_ACCEPTED || said == HELPER_REFUSED)
        settle_and_keep(users, question, said == HELPER_ACCEPTED, now_us);
    else if (said == HELPER_CANNOT_TELL)
        settle(users, question, USER_REFUSED, now_us);
    else if (!ask_again(users, question))
        settle(users, question, USER_UNAVAILABLE, now_us);
    pthread_mutex_unlock(&users->lock);
}

/* The next one whose turn has come; NULL: none may be checked now. */
static struct user_question *
take_next(struct users *users, int64_t now_us)
{
    const bool free =
        users->helpers ? helpers_are_free(users->helpers) : now_us >= users->rests_until_us;
    struct queue_item *item = free ? queue_next(users->queue) : NULL;

    return item ? container_of(item, struct user_question, turn) : NULL;
}

static int64_t
sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Until when nothing happens by itself. */
static int64_t
next_us(const struct users *users)
{
    const struct user_question *first = TAILQ_FIRST(&users->pending);
    int64_t us =
        users->helpers ? helpers_next_us(users->helpers, users->config.timeout_us) : INT64_MAX;

    if (first && first->asked_us == INT64_MIN)
        return 0;
    if (first)
        us = sooner(us, first->asked_us + users->config.timeout_us);
    if (!users->helpers && queue_queued(users->queue))
        us = sooner(us, users->rests_until_us);
    return us;
}

/* Waits for that, for a wake-up, or for helpers, and lets these work. The lock is released
 * meanwhile. */
static void
rest(struct users *users, int64_t now_us)
{
    const int64_t until_us = next_us(users), timeout_us = users->config.timeout_us;
    const struct timespec time = clock_timespec(until_us > now_us ? until_us - now_us : 0);
    struct pollfd fds[1 + HELPERS_FDS] = {{.fd = users->wake_fd, .events = POLLIN}};
    unsigned count = 1;
    uint64_t wakes;

    if (users->helpers)
        count += helpers_get_fds(users->helpers, fds + 1);
    pthread_mutex_unlock(&users->lock);
    if (ppoll(fds, count, until_us == INT64_MAX ? NULL : &time, NULL) > 0 && fds[0].revents)
        (void)!read(users->wake_fd, &wakes, sizeof(wakes));
    if (users->helpers)
        helpers_work(users->helpers, fds + 1, timeout_us, clock_monotonic_us());
    pthread_mutex_lock(&users->lock);
}

static void *
run(void *context)
{
    struct users *users = context;

    pthread_mutex_lock(&users->lock);
    while (!users->stopping) {
        const int64_t now_us = clock_monotonic_us();
        struct user_question *question;

        expire(users, now_us);
        question = take_next(users, now_us);
        if (!question)
            rest(users, now_us);
        else
            check(users, question, now_us);
    }
    pthread_mutex_unlock(&users->lock);
    return NULL;
}

static void
wake(struct users *users)
{
    const uint64_t one = 1;

    (void)!write(users->wake_fd, &one, sizeof(one));
}

/* [lock] */
static bool
start(struct users *users)
{
    if (!users->hasher)
        users->hasher = user_hasher_create();
    if (!users->started && users->hasher)
        users->started = thread_start(&users->thread, run, users) == 0;
    return users->started;
}

/* ---- interface ------------------------------------------------------------------------------- */

/* The connection to the keeper is the helpers', whether they can be made or not. */
static bool
make_helpers(struct users *users, const struct users_config *config)
{
    const struct helpers_config helpers = {
        .keeper = config->keeper,
        .count = config->helpers,
        .concurrency = config->concurrency,
        .answered = take_answer,
        .context = users,
    };

    if (!config->helpers)
        return true;
    users->helpers = helpers_create(&helpers);
    if (!users->helpers)
        close(config->keeper);
    return users->helpers != NULL;
}

static bool
make_parts(struct users *users)
{
    struct queue_limits limits = {.opening = 1};

    if (users->helpers)
        limits.opening = helpers_capacity(users->helpers);
    users->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    users->queue = queue_create(&limits, CLIENT_CHECKS);
    users->cache = user_cache_create();
    return users->wake_fd >= 0 && users->queue && users->cache;
}

struct users *
users_create(const struct users_config *config)
{
    struct users *users = calloc(1, sizeof(*users));
    bool made;

    if (!users) {
        if (config->helpers)
            close(config->keeper);
        return NULL;
    }
    users->config = *config;
    users->wake_fd = -1;
    pthread_mutex_init(&users->lock, NULL);
    pthread_cond_init(&users->called, NULL);
    TAILQ_INIT(&users->pending);
    made = make_helpers(users, config) && make_parts(users);
    if (made && (!users->helpers || start(users)))
        return users;
    users_destroy(users);
    return NULL;
}

void
users_destroy(struct users *users)
{
    struct user_question *question;

    if (!users)
        return;
    pthread_mutex_lock(&users->lock);
    users->stopping = true;
    pthread_mutex_unlock(&users->lock);
    if (users->started) {
        wake(users);
        pthread_join(users->thread, NULL);
    }
    while ((question = TAILQ_FIRST(&users->pending))) {
        take_out(users, question);
        free_question(question);
    }
    helpers_destroy(users->helpers);
    queue_destroy(users->queue);
    user_cache_free(users->cache);
    user_hasher_free(users->hasher);
    if (users->wake_fd >= 0)
        close(users->wake_fd);
    pthread_cond_destroy(&users->called);
    pthread_mutex_destroy(&users->lock);
    free(users);
}

void
users_configure(struct users *users, const struct users_config *config)
{
    pthread_mutex_lock(&users->lock);
    users->config.timeout_us = config->timeout_us;
    users->config.ttl_us = config->ttl_us;
    pthread_mutex_unlock(&users->lock);
    wake(users);
}

/* [lock] Of a question, which may be NULL and is kept only if it is pending then. */
static enum user_answer
begin(struct users *users, struct user_question *question, int64_t now_us, struct user_check *check)
{
    if (question && find_in_cache(users, &question->key, now_us, check))
        return check->answer;
    if (question && start(users) && enter_queue(users, question)) {
        question->check = check;
        check->question = question;
        check->answer = USER_PENDING;
    } else {
        count(users, USER_UNAVAILABLE);
        check->answer = USER_UNAVAILABLE;
    }
    return check->answer;
}

enum user_answer
users_check(struct users *users, const struct user_request *request, int64_t now_us,
            struct user_check *check)
{
    struct user_question *question;
    enum user_answer answer;

    check->question = NULL;
    check->answer = USER_REFUSED;
    check->until_us = now_us;
    if (!may_be_right(request))
        return USER_REFUSED;
    if (!request->client) { /* without memory */
        check->answer = USER_UNAVAILABLE;
        return check->answer;
    }
    question = make_question(users, request, now_us);
    pthread_mutex_lock(&users->lock);
    answer = begin(users, question, now_us, check);
    pthread_mutex_unlock(&users->lock);
    /* The check may be over by now. */
    if (answer == USER_PENDING)
        wake(users);
    else
        free_question(question);
    return answer;
}

void
users_cancel(struct users *users, struct user_check *check)
{
    struct user_question *question, *gone = NULL;

    pthread_mutex_lock(&users->lock);
    question = check->question;
    check->question = NULL;
    if (question) {
        question->check = NULL;
        if (!question->turn.flow || question->turn.state == ITEM_QUEUED) {
            take_out(users, question);
            gone = question;
        }
    }
    while (users->calling == check)
        pthread_cond_wait(&users->called, &users->lock);
    pthread_mutex_unlock(&users->lock);
    free_question(gone);
}

void
users_get_stats(struct users *users, struct users_stats *stats)
{
    struct helpers_stats helpers;

    pthread_mutex_lock(&users->lock);
    *stats = users->stats;
    stats->pending = users->count;
    pthread_mutex_unlock(&users->lock);
    if (users->helpers) {
        helpers_get_stats(users->helpers, &helpers);
        stats->helpers = helpers.running;
        stats->helpers_restarted = helpers.restarted;
    }
}
