#include "base/descriptors.h"

#include <sys/resource.h>

bool
descriptors_is_reserved(int fd, unsigned reserve)
{
    struct rlimit limit;

    return reserve && getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
           (rlim_t)fd + reserve >= limit.rlim_cur;
}
