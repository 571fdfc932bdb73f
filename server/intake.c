#include "server/intake.h"

#define LEAST_GROWTH 64 /* a body moves when it has grown by this part of itself */

void
intake_init(struct intake *intake)
{
    TAILQ_INIT(&intake->bodies);
    intake->growing = NULL;
}

void
intake_add(struct intake *intake, struct intake_body *body, int64_t now_us)
{
    body->moved_us = now_us;
    body->moved_at = 0;
    body->listed = true;
    TAILQ_INSERT_TAIL(&intake->bodies, body, link);
}

void
intake_remove(struct intake *intake, struct intake_body *body)
{
    if (!body->listed)
        return;
    body->listed = false;
    TAILQ_REMOVE(&intake->bodies, body, link);
}

int
intake_append(struct intake *intake, struct intake_body *body, const void *bytes, size_t len,
              int64_t now_us)
{
    size_t size;
    int error;

    intake->growing = body;
    error = page_append(&body->builder, bytes, len);
    intake->growing = NULL;
    if (error)
        return error;
    size = body->builder.page->body_len;
    if (size - body->moved_at <= body->moved_at / LEAST_GROWTH)
        return 0;
    body->moved_at = size;
    body->moved_us = now_us;
    TAILQ_REMOVE(&intake->bodies, body, link);
    TAILQ_INSERT_TAIL(&intake->bodies, body, link);
    return 0;
}

/* The largest of the stalled bodies; NULL if none is stalled. */
static struct intake_body *
find_stalled(struct intake *intake, int64_t now_us)
{
    struct intake_body *body, *largest = NULL;
    size_t most = 0;

    TAILQ_FOREACH(body, &intake->bodies, link)
    {
        size_t size = page_builder_size(&body->builder);

        if (now_us - body->moved_us <= INTAKE_STALL_US)
            break;
        if (body != intake->growing && size > most) {
            largest = body;
            most = size;
        }
    }
    return largest;
}

size_t
intake_shed(struct intake *intake, size_t bytes, int64_t now_us)
{
    struct intake_body *body;
    size_t freed = 0;

    while (freed < bytes && (body = find_stalled(intake, now_us))) {
        freed += page_builder_size(&body->builder);
        intake_remove(intake, body);
        page_abandon(&body->builder);
        body->give_up(body);
    }
    return freed;
}
