#include "tests/unit/tier/model.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "tests/unit/unit.h"

static struct model_item *
find(struct model *m, const char *key, bool makes)
{
    for (unsigned i = 0; i < m->count; i++)
        if (strcmp(m->items[i].key, key) == 0)
            return &m->items[i];
    if (!makes)
        return NULL;
    ck_assert_uint_lt(m->count, 64);
    m->items[m->count] = (struct model_item){.cas = ++m->cas};
    snprintf(m->items[m->count].key, sizeof(m->items[0].key), "%s", key);
    return &m->items[m->count++];
}

static void
drop(struct model *m, struct model_item *item)
{
    free(item->value);
    free(item->first);
    *item = m->items[--m->count];
}

void
model_flush(struct model *model)
{
    pthread_mutex_lock(&model->lock);
    while (model->count)
        drop(model, &model->items[0]);
    pthread_mutex_unlock(&model->lock);
}

void
model_drop(struct model *model, const char *key)
{
    struct model_item *item = find(model, key, false);

    if (item)
        drop(model, item);
}

static void
say(int fd, const void *bytes, size_t len)
{
    (void)!send(fd, bytes, len, MSG_NOSIGNAL);
}

static void
say_text(int fd, const char *text)
{
    say(fd, text, strlen(text));
}

static bool
has_flag(const char *line, const char *flag)
{
    const char *at = line;

    while ((at = strstr(at, flag)) != NULL) {
        if (at[-1] == ' ')
            return true;
        at++;
    }
    return false;
}

static uint64_t
cas_of(const char *line)
{
    const char *at = strstr(line, " C");

    return at ? strtoull(at + 2, NULL, 10) : 0;
}

static void
get(struct model *m, int fd, const char *key, const char *line)
{
    struct model_item *item = find(m, key, false);
    const bool is_new = !item && has_flag(line, "N");
    const enum model_fault fault = m->fault;
    char head[128], *value;
    size_t len, n;
    bool wins;

    m->gets++;
    if (fault == MODEL_PROMISES && has_flag(line, "N")) {
        say_text(fd, "VA 0 c7 Z\r\n\r\n");
        return;
    }
    if (is_new)
        item = find(m, key, true);
    if (!item) {
        say_text(fd, "EN\r\n");
        return;
    }
    if (!has_flag(line, "v")) {
        snprintf(head, sizeof(head), "HD c%llu\r\n", (unsigned long long)item->cas);
        say_text(fd, head);
        return;
    }
    wins = is_new || (item->is_stale && !item->is_leased);
    len = fault == MODEL_ROLLS_BACK ? item->first_len : item->len;
    value = malloc(len + 1);
    if (len)
        memcpy(value, fault == MODEL_ROLLS_BACK ? item->first : item->value, len);
    if (fault == MODEL_CORRUPTS && len)
        value[len / 2] = (char)(value[len / 2] ^ 1);
    m->leases += wins;
    n = (size_t)snprintf(head, sizeof(head), "VA %zu c%llu t%d%s%s\r\n", len,
                         (unsigned long long)item->cas, len ? -1 : 30 - (int)m->age_s,
                         item->is_stale ? " X" : "",
                         wins                            ? " W"
                         : !item->len || item->is_leased ? " Z"
                                                         : "");
    item->is_leased = is_new || item->is_stale || item->is_leased;
    if (fault == MODEL_CUTS) {
        say(fd, head, n / 2);
        shutdown(fd, SHUT_RDWR);
    } else {
        say(fd, head, n);
        say(fd, value, len);
        say(fd, "\r\n", 2);
    }
    free(value);
}

static void
set(struct model *m, int fd, const char *key, const char *line, const char *value, size_t len)
{
    struct model_item *item = find(m, key, false);
    const uint64_t cas = cas_of(line);

    m->sets++;
    if (m->fault == MODEL_IS_FULL) {
        say_text(fd, "SERVER_ERROR out of memory storing object\r\n");
    } else if (cas && !item) {
        say_text(fd, "NF\r\n");
    } else if (cas && item->cas != cas) {
        m->conflicts++;
        say_text(fd, "EX\r\n");
    } else if (has_flag(line, "ME") && item) {
        say_text(fd, "NS\r\n");
    } else {
        item = find(m, key, true);
        free(item->value);
        item->value = malloc(len + 1);
        memcpy(item->value, value, len);
        item->len = (uint32_t)len;
        if (!item->first) {
            item->first = malloc(len + 1);
            memcpy(item->first, value, len);
            item->first_len = (uint32_t)len;
        }
        item->cas = ++m->cas;
        item->is_stale = item->is_leased = false;
        say_text(fd, "HD\r\n");
    }
}

static void delete (struct model *m, int fd, const char *key, const char *line)
{
    struct model_item *item = find(m, key, false);
    const uint64_t cas = cas_of(line);

    if (!item || (cas && item->cas != cas)) {
        say_text(fd, item ? "EX\r\n" : "NF\r\n");
        return;
    }
    if (has_flag(line, "I")) {
        item->is_stale = true;
        item->is_leased = false;
        item->cas = ++m->cas;
    } else {
        drop(m, item);
    }
    say_text(fd, "HD\r\n");
}

static void
pause_for(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

static void
tell_time(const struct model *m, int fd)
{
    char text[96];

    snprintf(text, sizeof(text), "STAT pid 1\r\nSTAT time %lld\r\nEND\r\n",
             (long long)time(NULL) + (m->fault == MODEL_IS_APART ? 60 : 0));
    if (m->fault == MODEL_TELLS_LATE)
        pause_for(m->pause_ms);
    say_text(fd, text);
}

/* Handles a command if it is all there: how many bytes it has. */
static size_t
handle(struct model *m, int fd, char *text, size_t len)
{
    char *end = memchr(text, '\n', len), key[40] = "";
    size_t used, size = 0;

    if (!end)
        return 0;
    used = (size_t)(end + 1 - text);
    end[-1] = '\0';
    if (sscanf(text, "ms %39s %zu", key, &size) == 2 && used + size + 2 > len) {
        end[-1] = '\r';
        return 0;
    }
    while (m->fault == MODEL_IS_STOPPED && !m->stops)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    m->pages += has_flag(text, "N30");
    pthread_mutex_lock(&m->lock);
    switch (atomic_load(&m->fault)) {
    case MODEL_SILENT:
        break;
    case MODEL_CLOSES:
        shutdown(fd, SHUT_RDWR);
        break;
    case MODEL_GARBAGE:
        say_text(fd, "HTTP/1.1 400 Bad Request\r\n\r\n");
        break;
    case MODEL_IS_OLD:
        say_text(fd, "ERROR\r\n");
        break;
    case MODEL_STRANGE:
        say_text(fd, "VA 2 c1\r\nhi\r\n");
        break;
    default:
        if (m->fault == MODEL_IS_SLOW && (strncmp(text, "mn", 2) == 0 || has_flag(text, "N30")))
            pause_for(m->pause_ms);
        if (strncmp(text, "mn", 2) == 0) {
            m->probes++;
            say_text(fd, "MN\r\n");
        } else if (strncmp(text, "stats", 5) == 0) {
            tell_time(m, fd);
        } else if (strncmp(text, "ms", 2) == 0) {
            set(m, fd, key, text, text + used, size);
        } else {
            ck_assert_int_eq(sscanf(text, "m%*c %39s", key), 1);
            (text[1] == 'g' ? get : delete)(m, fd, key, text);
        }
    }
    pthread_mutex_unlock(&m->lock);
    return used + (size ? size + 2 : 0);
}

#define MOST_BYTES ((size_t)1 << 20)

/* What a connection has sent that is not handled. False: it has ended. */
static bool
serve(struct model *m, struct model_connection *c)
{
    const ssize_t n = recv(c->fd, c->text + c->len, MOST_BYTES - c->len, 0);
    size_t used;

    if (n <= 0)
        return false;
    c->len += (size_t)n;
    while ((used = handle(m, c->fd, c->text, c->len)) != 0) {
        memmove(c->text, c->text + used, c->len - used);
        c->len -= used;
    }
    return true;
}

static void
leave(struct model_connection *c)
{
    close(c->fd);
    free(c->text);
    *c = (struct model_connection){.fd = -1};
}

static void
admit(struct model *m)
{
    for (unsigned i = 0; i < MODEL_CONNECTIONS; i++)
        if (m->connections[i].fd < 0) {
            m->connections[i].fd = accept(m->listener, NULL, NULL);
            m->connections[i].text = malloc(MOST_BYTES);
            return;
        }
}

static void *
run(void *context)
{
    struct model *m = context;

    while (!m->stops) {
        struct pollfd ready[MODEL_CONNECTIONS + 1];

        for (unsigned i = 0; i < MODEL_CONNECTIONS; i++)
            ready[i] = (struct pollfd){.fd = m->connections[i].fd, .events = POLLIN};
        ready[MODEL_CONNECTIONS] = (struct pollfd){.fd = m->listener, .events = POLLIN};
        if (poll(ready, MODEL_CONNECTIONS + 1, 10) <= 0)
            continue;
        for (unsigned i = 0; i < MODEL_CONNECTIONS; i++)
            if (ready[i].revents && !serve(m, &m->connections[i]))
                leave(&m->connections[i]);
        if (ready[MODEL_CONNECTIONS].revents)
            admit(m);
    }
    for (unsigned i = 0; i < MODEL_CONNECTIONS; i++)
        if (m->connections[i].fd >= 0)
            leave(&m->connections[i]);
    return NULL;
}

void
model_start(struct model *model)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);

    *model = (struct model){.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    for (unsigned i = 0; i < MODEL_CONNECTIONS; i++)
        model->connections[i].fd = -1;
    pthread_mutex_init(&model->lock, NULL);
    ck_assert_int_eq(bind(model->listener, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(listen(model->listener, 16), 0);
    ck_assert_int_eq(getsockname(model->listener, (struct sockaddr *)&address, &len), 0);
    model->port = ntohs(address.sin_port);
    ck_assert_int_eq(thread_start(&model->thread, run, model), 0);
}

void
model_stop(struct model *model)
{
    model->stops = true;
    pthread_join(model->thread, NULL);
    model_flush(model);
    pthread_mutex_destroy(&model->lock);
    close(model->listener);
}
