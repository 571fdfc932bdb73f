/*
 * The contents of an answer of `sunproxy get`: a page and its body, or the reason for a failure.
 */
#include <sysexits.h>

#include "client/exit_status.h"
#include "client/get.h"

bool
get_answer_ok(const struct get_answer *answer)
{
    return !answer->failure && answer->rpc == RPC_CLIENT_OK &&
           (answer->api == 1 || answer->result.v2.status == PROXY_OK);
}

struct span
get_answer_body(const struct get_answer *answer)
{
    const proxy_page *page = &answer->result.v2.proxy_fetch_result_u.page;

    if (!get_answer_ok(answer))
        return span_of(NULL, 0);
    if (answer->api == 1)
        return span_str(answer->result.v1.webPageContents);
    return span_of(page->body.body_val, page->body.body_len);
}

const char *
get_answer_sentence(const struct get_answer *answer)
{
    if (answer->failure)
        return answer->failure->sentence;
    /* Version 1 carries no reason. */
    if (answer->api == 1 && answer->rpc == RPC_CLIENT_GARBAGE_ARGS)
        return "the server cannot fetch such a URL (--api 2 gives the reason)";
    if (answer->api == 1 && answer->rpc == RPC_CLIENT_SYSTEM_ERR)
        return "the server could not fetch the page (--api 2 gives the reason)";
    if (answer->rpc == RPC_CLIENT_GARBAGE_ARGS)
        return "the URL or the headers are too long";
    if (answer->rpc != RPC_CLIENT_OK)
        return answer->api == 1 ? rpc_client_strstatus(answer->rpc)
                                : rpc_status_sentence(answer->rpc);
    return answer->result.v2.proxy_fetch_result_u.sentence;
}

bool
get_answer_is_transient(const struct get_answer *answer)
{
    static const unsigned statuses[] = {408, 429, 500, 502, 503, 504};

    if (answer->rpc != RPC_CLIENT_OK || answer->api == 1)
        return answer->rpc == RPC_CLIENT_TIMED_OUT;
    if (answer->result.v2.status != PROXY_OK)
        return answer->result.v2.status == PROXY_TIMED_OUT ||
               answer->result.v2.status == PROXY_OVERLOADED;
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        if (answer->result.v2.proxy_fetch_result_u.page.http_status == statuses[i])
            return true;
    return false;
}

bool
get_answer_is_http_error(const struct get_answer *answer)
{
    return answer->api == 2 && get_answer_ok(answer) &&
           answer->result.v2.proxy_fetch_result_u.page.http_status >= 400;
}

int
get_answer_exit(const struct get_answer *answer, const struct get_options *options)
{
    if (answer->failure)
        return answer->failure->status;
    if (answer->rpc != RPC_CLIENT_OK)
        return exit_of_rpc(answer->rpc);
    if (answer->api == 2 && answer->result.v2.status != PROXY_OK)
        return exit_of_proxy(answer->result.v2.status);
    return options->fail && get_answer_is_http_error(answer) ? EXIT_HTTP_ERROR : EX_OK;
}
