#include "server/http/http_user.h"

#include <stdlib.h>

#include "base/hash.h"
#include "server/http/http_exchange.h"
#include "server/http/http_service.h"

struct http_user *
http_user_retain(struct http_user *user)
{
    if (user)
        user->references++;
    return user;
}

void
http_user_release(struct http_user **user)
{
    struct http_user *gone = *user;

    *user = NULL;
    if (!gone || --gone->references)
        return;
    client_release(&gone->client);
    memory_uncharge(gone->account, MEMORY_REQUESTS, sizeof(*gone) + gone->name.len);
    free(gone);
}

/* Of the user's line in the file; 0: there is none, as with helpers. */
static uint64_t
hash_password(const struct config *config, struct span name)
{
    const char *hash = config->users ? user_file_find(config->users, name) : NULL;

    return hash ? hash64_bytes(span_str(hash)) | 1 : 0;
}

bool
http_user_is_known(const struct http_user *user, const struct config *config)
{
    if (user->config == config->rules.generation || !config_asks_users(config))
        return true;
    return user->password == hash_password(config, user->name) &&
           (user->password != 0 || config->options->auth_helper);
}

struct http_user *
http_user_create(struct http_exchange *x, struct span name, uint64_t field, int64_t until_us)
{
    struct memory_account *account = &http_service_of(x)->service->memory;
    const size_t size = sizeof(struct http_user) + name.len;
    struct http_user *user;

    if (!memory_charge(account, MEMORY_REQUESTS, size))
        return NULL;
    user = memory_realloc(account, NULL, size);
    if (!user) {
        memory_uncharge(account, MEMORY_REQUESTS, size);
        return NULL;
    }
    *user = (struct http_user){
        .references = 1,
        .account = account,
        .field = field,
        .password = hash_password(x->config, name),
        .config = x->config->rules.generation,
        .until_us = until_us,
        .name = span_of(user + 1, name.len),
    };
    span_put((char *)(user + 1), name);
    user->client = http_stream_find_named(&x->stream, CLIENT_USER, name);
    if (!user->client)
        http_user_release(&user);
    return user;
}
