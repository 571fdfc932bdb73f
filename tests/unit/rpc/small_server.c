#include "tests/unit/rpc/small_server.h"

struct tiny tiny;

const struct rpc_limits small = {
    .max_record = 4096,
    .max_empty_fragments = 64,
    .net.max_requests = 4,
    .net.max_queued_bytes = 4u << 20,
    .net.max_connections = 16,
};

void
small_start(void)
{
    tiny_start(&tiny, &small, 1);
}

void
small_stop(void)
{
    expect_serving(&tiny);
    ck_assert_uint_eq(tiny_stop(&tiny, 5000000), 0);
}
