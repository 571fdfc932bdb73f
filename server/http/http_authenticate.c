#include "server/http/http_authenticate.h"

#include "base/container_of.h"
#include "http/basic_credentials.h"
#include "http/field.h"
#include "server/http/http_client.h"
#include "server/http/http_connection.h"
#include "server/http/http_exchange.h"
#include "server/http/http_page.h"
#include "server/http/http_route.h"
#include "server/http/http_rules.h"
#include "server/http/http_service.h"
#include "server/http/http_user.h"

static const struct span credentials_field = {"Proxy-Authorization",
                                              sizeof("Proxy-Authorization") - 1};

/* ---- pages ----------------------------------------------------------------------------------- */

static enum http_asked
answer(struct http_exchange *x, unsigned status, struct span lines, const char *sentence)
{
    if (http_stream_awaits_body(&x->stream) || http_stream_is_draining(&x->stream))
        x->persistent = false;
    http_rules_make_page(x, http_route_url_again(x),
                         &(struct http_page){.status = status,
                                             .reason = span_str(sentence),
                                             .detail = http_reason_word(x->reason),
                                             .lines = lines});
    http_exchange_send_made(x);
    return HTTP_USER_ANSWERED;
}

/* RFC 7617 section 2. */
static enum http_asked
demand(struct http_exchange *x, enum http_reason reason, const char *sentence)
{
    const char *realm = x->config->options->auth_realm;
    char bytes[HTTP_PAGE_LINES / 2];
    struct http_writer lines = http_writer_of(bytes, sizeof(bytes));

    http_write_text(&lines, "Proxy-Authenticate: Basic realm=\"");
    for (; *realm; realm++) {
        if (*realm == '"' || *realm == '\\')
            http_write_text(&lines, "\\");
        http_write(&lines, span_of(realm, 1));
    }
    http_write_text(&lines, "\", charset=\"UTF-8\"\r\n");
    x->reason = reason;
    return answer(x, 407, http_written(&lines), sentence);
}

static enum http_asked
apologize(struct http_exchange *x)
{
    static const char sentence[] = "the proxy cannot check its users now; try again";

    if (x->config->options->auth_failure == AUTH_FAILURE_407)
        return demand(x, HTTP_REASON_USER_UNCHECKED, sentence);
    x->reason = HTTP_REASON_USER_UNCHECKED;
    return answer(x, 503, span_str("Retry-After: 1\r\n"), sentence);
}

static enum http_asked
refuse(struct http_exchange *x)
{
    return demand(x, HTTP_REASON_USER_REFUSED, "the proxy does not accept this user and password");
}

/* ---- checks ---------------------------------------------------------------------------------- */

/*
 * A user as rules, logs and shares know it: by the file's name. Directories that helpers ask ignore
 * case and outer blanks, so that another spelling is no other user.
 */
static struct span
identify(const struct config *config, struct span name, char bytes[HTTP_BASIC_NAME_MAX])
{
    if (config->users)
        return name;
    name = http_trim(name);
    for (size_t i = 0; i < name.len; i++)
        bytes[i] = (char)(name.ptr[i] >= 'A' && name.ptr[i] <= 'Z' ? name.ptr[i] - 'A' + 'a'
                                                                   : name.ptr[i]);
    return span_of(bytes, name.len);
}

static uint64_t
hash_field(const struct http_exchange *x, struct span value)
{
    return keyed_hash(&http_service_of(x)->user_key, value);
}

/* The connection and the request have this user, of whom the caller has a reference, from now on. */
static void
take(struct http_exchange *x, struct http_user *user)
{
    struct http_connection *c = x->stream.connection;

    http_user_release(&c->user);
    c->user = user;
    x->user = http_user_retain(user);
}

/* The value was accepted; a reload may have changed the users meanwhile. */
static enum http_asked
accept_user(struct http_exchange *x, struct span name, struct span value, int64_t until_us)
{
    char bytes[HTTP_BASIC_NAME_MAX];
    struct span known_as = identify(x->config, name, bytes);
    struct http_user *user;

    if (!known_as.len)
        return refuse(x);
    user = http_user_create(x, known_as, hash_field(x, value), until_us);
    if (!user)
        return apologize(x);
    if (!http_user_is_known(user, service_config(http_service_of(x)->service))) {
        http_user_release(&user);
        return refuse(x);
    }
    take(x, user);
    return HTTP_USER_SETTLED;
}

/* Is it the value of an earlier request of the connection, which is still valid? */
static bool
is_remembered(struct http_exchange *x, struct span value)
{
    struct http_user *user = x->stream.connection->user;

    if (!user || x->arrived_us >= user->until_us || hash_field(x, value) != user->field ||
        !http_user_is_known(user, x->config))
        return false;
    user->config = x->config->rules.generation;
    x->user = http_user_retain(user);
    return true;
}

/* For a thread of the checks. */
static void
done(struct user_check *check)
{
    struct http_exchange *x = container_of(check, struct http_exchange, check);

    http_stream_post(&x->stream, &x->task);
}

static bool
give_up(struct http_exchange *x)
{
    users_cancel(http_service_of(x)->service->users, &x->check);
    return x->check.answer == USER_PENDING;
}

static enum http_asked
settle(struct http_exchange *x, enum user_answer given, struct span name, struct span value)
{
    switch (given) {
    case USER_ACCEPTED:
        return accept_user(x, name, value, x->check.until_us);
    case USER_REFUSED:
        return refuse(x);
    case USER_UNAVAILABLE:
        return apologize(x);
    case USER_PENDING:
        break;
    }
    http_exchange_await(x, give_up);
    return HTTP_USER_AWAITED;
}

/* The check is over. */
static void
checked(struct net_task *task)
{
    struct http_exchange *x = container_of(task, struct http_exchange, task);
    char bytes[HTTP_BASIC_BYTES];
    struct http_basic basic;
    struct span value;
    bool whole;

    if (!http_exchange_end_wait(x))
        return;
    whole = http_credentials_find(x->request.fields, credentials_field, &value) ==
                HTTP_CREDENTIALS_ONE &&
            http_basic_read(value, bytes, &basic);
    if (settle(x, whole ? x->check.answer : USER_REFUSED, basic.name, value) == HTTP_USER_SETTLED)
        x->resume(x);
    explicit_bzero(bytes, sizeof(bytes));
}

static enum http_asked
check(struct http_exchange *x, struct span value)
{
    struct service *service = http_service_of(x)->service;
    char bytes[HTTP_BASIC_BYTES];
    struct http_basic basic;
    enum http_asked asked;

    if (!http_basic_read(value, bytes, &basic)) {
        explicit_bzero(bytes, sizeof(bytes));
        return demand(x, HTTP_REASON_USER_REFUSED,
                      "the proxy reads names and passwords in UTF-8, as RFC 7617 has them");
    }
    x->task.run = checked;
    x->check.done = done;
    asked = settle(x,
                   users_check(service->users,
                               &(struct user_request){
                                   .name = basic.name,
                                   .password = basic.password,
                                   .file = x->config->users,
                                   .keeps = &x->config->rules.shared,
                                   .client = http_client(x),
                               },
                               x->arrived_us, &x->check),
                   basic.name, value);
    explicit_bzero(bytes, sizeof(bytes));
    return asked;
}

enum http_asked
http_authenticate(struct http_exchange *x, struct span url, void (*resume)(struct http_exchange *))
{
    const struct config *config = x->config;
    struct span value;

    if (!config_asks_users(config) || config->origins.count || x->peer ||
        http_peer(x)->has_uid || !http_rules_demand_user(x, url))
        return HTTP_USER_SETTLED;
    x->resume = resume;
    switch (http_credentials_find(x->request.fields, credentials_field, &value)) {
    case HTTP_CREDENTIALS_ONE:
        return is_remembered(x, value) ? HTTP_USER_SETTLED : check(x, value);
    case HTTP_CREDENTIALS_SEVERAL:
        return demand(x, HTTP_REASON_USER_REFUSED, "the request has several users");
    case HTTP_CREDENTIALS_NONE:
        break;
    }
    return demand(x, HTTP_REASON_USER_DEMANDED, "the proxy needs a user and a password");
}
