#include "proxy/outcome.h"

const char *
outcome_word(enum outcome outcome)
{
    switch (outcome) {
    case OUTCOME_HIT:
        return "hit";
    case OUTCOME_MISS:
        return "miss";
    case OUTCOME_COALESCED:
        return "coalesced";
    case OUTCOME_BYPASS:
        return "bypass";
    case OUTCOME_REVALIDATED:
        return "revalidated";
    case OUTCOME_STALE:
        return "stale";
    }
    return "unknown";
}
