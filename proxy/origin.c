#include "proxy/origin.h"

static bool
submit(void *context, const struct fetch_request *request, const struct fetch_sink *sink,
       void *sink_context, uint64_t *id)
{
    return fetcher_submit(context, request, sink, sink_context, id);
}

static void
resume(void *context, uint64_t id)
{
    fetcher_resume(context, id);
}

static void
cancel(void *context, uint64_t id)
{
    fetcher_cancel(context, id);
}

const struct origin_ops origin_fetcher = {.submit = submit, .resume = resume, .cancel = cancel};
