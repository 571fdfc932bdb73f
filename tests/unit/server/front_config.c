#include "tests/unit/server/front_config.h"

#include "tests/unit/proxy/scene.h"

struct config *
front_make_config(const struct options *options)
{
    struct config *config;
    struct shared shared;
    struct buf why;

    buf_init(&why, 1024);
    config = config_create(options, &why);
    ck_assert_msg(config != NULL, "%s", buf_str(&why));
    shared = config->rules.shared;
    config->rules = scene.proxy_rules;
    config->rules.shared = shared;
    return config;
}
