/* The configuration of a service over a scene's proxy (tests/unit/proxy/scene.h). */
#ifndef SUNPROXY_TESTS_SERVER_FRONT_CONFIG_H
#define SUNPROXY_TESTS_SERVER_FRONT_CONFIG_H

#include "server/config/config.h"

/* One of these options, which must stay, with the rules of the scene's proxy. */
struct config *front_make_config(const struct options *options);

#endif
