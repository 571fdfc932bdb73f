#include "tests/unit/server/front_config.h"

#include "tests/unit/proxy/scene.h"

struct config *
front_make_config(const struct options *options)
{
    static char plain[] = "plain";
    struct options given = *options;
    struct config *config;
    struct shared shared;
    struct buf why;

    if (!given.log_format)
        given.log_format = plain;
    buf_init(&why, 1024);
    config = config_create(&given, &why);
    ck_assert_msg(config != NULL, "%s", buf_str(&why));
    config->options = options;
    shared = config->rules.shared;
    config->rules = scene.proxy_rules;
    config->rules.shared = shared;
    return config;
}
