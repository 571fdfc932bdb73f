#include "fetch/answer.h"

static enum answer_state
find_next(enum answer_state state, enum answer_part part)
{
    switch (part) {
    case ANSWER_STATUS_LINE:
        return state == ANSWER_AWAITED ? ANSWER_HEAD : ANSWER_BROKEN;
    case ANSWER_FIELD_LINE:
        return state == ANSWER_HEAD ? ANSWER_HEAD : ANSWER_BROKEN;
    case ANSWER_END_OF_INTERIM:
        return state == ANSWER_HEAD ? ANSWER_AWAITED : ANSWER_BROKEN;
    case ANSWER_END_OF_HEAD:
        return state == ANSWER_HEAD ? ANSWER_BODY : ANSWER_BROKEN;
    case ANSWER_END_OF_BODILESS:
        return state == ANSWER_HEAD ? ANSWER_NO_BODY : ANSWER_BROKEN;
    case ANSWER_BYTES:
        return state == ANSWER_BODY ? ANSWER_BODY : ANSWER_BROKEN;
    case ANSWER_TRAILER_LINE:
        if (state == ANSWER_NO_BODY)
            return ANSWER_NO_BODY;
        return answer_has_head(state) ? ANSWER_TRAILERS : ANSWER_BROKEN;
    }
    return ANSWER_BROKEN;
}

bool
answer_advance(enum answer_state *state, enum answer_part part)
{
    *state = find_next(*state, part);
    return *state != ANSWER_BROKEN;
}
