#include "sim/sim.h"

const char *
sim_strerror(enum sim_error error)
{
    switch (error) {
    case SIM_OK:
        return "no error";
    case SIM_NO_MEMORY:
        return "out of memory";
    case SIM_STOPPED:
        return "stopped";
    case SIM_NEEDS_SIZES:
        return "a capacity in bytes needs a trace with sizes";
    case SIM_NEEDS_TIMES:
        return "pages that expire need a trace with times";
    case SIM_NEEDS_NEXT:
        return "the policy needs to know the future";
    case SIM_TOO_MANY:
        return "more than 4294967294 requests";
    }
    return "unknown error";
}
