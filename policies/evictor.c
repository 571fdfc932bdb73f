#include "policies/evictor.h"

static void
evictor_limit(struct evictor *evictor, const struct policy_config *config)
{
    evictor->max_pages = config->capacity_pages ? config->capacity_pages : UINT64_MAX;
    evictor->max_bytes = config->capacity_bytes ? config->capacity_bytes : UINT64_MAX;
}

bool
evictor_init(struct evictor *evictor, const struct policy_spec *spec,
             const struct policy_config *config)
{
    struct policy_config with_params = *config;

    *evictor = (struct evictor){.ops = spec->ops};
    evictor_limit(evictor, config);
    with_params.params = spec->params;
    evictor->policy = spec->ops->create(spec->ops, &with_params);
    if (evictor->policy)
        return true;
    *evictor = (struct evictor){0};
    return false;
}

void
evictor_free(struct evictor *evictor)
{
    if (evictor->ops)
        evictor->ops->destroy(evictor->policy);
    *evictor = (struct evictor){0};
}

void
evictor_resize(struct evictor *evictor, const struct policy_config *config)
{
    evictor_limit(evictor, config);
    if (evictor->ops->resize)
        evictor->ops->resize(evictor->policy, config);
    evictor_check(evictor);
}

bool
evictor_is_valid(const struct evictor *evictor)
{
    return !evictor_is_full(evictor) &&
           evictor->ops->is_valid(evictor->policy, evictor->pages, evictor->bytes);
}
