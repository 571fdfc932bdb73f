/* What came of a transfer: the reason of its end, and the sentence for a person. */
#include "fetch/transfer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

void
sentence_format(char *sentence, size_t size, const char *format, va_list args)
{
    vsnprintf(sentence, size, format, args);
    for (char *c = sentence; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
}

const char *
sentence_refuse(char *sentence, size_t size, const struct address_policy *policy, const char *host,
                const union address *address)
{
    char text[INET6_ADDRSTRLEN], why[128] = "";

    address_policy_check(policy, &address->any, why, sizeof(why));
    if (strcmp(address_format(address, text, sizeof(text)), host) == 0)
        snprintf(sentence, size, "refused: %s is %s", host, why);
    else
        snprintf(sentence, size, "refused: %s is at %s, which is %s", host, text, why);
    return sentence;
}

void
transfer_fail(struct transfer *t, enum fetch_error error, const char *format, ...)
{
    va_list args;

    if (t->error)
        return;
    t->error = error;
    va_start(args, format);
    sentence_format(t->sentence, sizeof(t->sentence), format, args);
    va_end(args);
}

static const char *
reason(const struct transfer *t, CURLcode code)
{
    return t->error_text[0] ? t->error_text : curl_easy_strerror(code);
}

static bool
is_tls_failure(CURLcode code)
{
    switch (code) {
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_ENGINE_SETFAILED:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_USE_SSL_FAILED:
    case CURLE_SSL_ENGINE_INITFAILED:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_SSL_INVALIDCERTSTATUS:
        return true;
    default:
        return false;
    }
}

static void
fail_connecting(struct transfer *t, CURLcode code)
{
    if (code == CURLE_OPERATION_TIMEDOUT)
        transfer_fail(t, FETCH_CONNECT_TIMED_OUT, "connecting to %s took too long",
                      t->target->host);
    else if (is_tls_failure(code))
        transfer_fail(t, FETCH_TLS_FAILED, "TLS with %s failed: %s", t->target->host,
                      reason(t, code));
    else if (code == CURLE_COULDNT_CONNECT && t->no_socket)
        t->error = t->no_socket;
    else if (code == CURLE_OUT_OF_MEMORY)
        transfer_fail(t, FETCH_INTERNAL, "out of memory");
    else if (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY)
        transfer_fail(t, FETCH_RESOLVE_FAILED, "%s cannot be resolved", t->target->host);
    else
        transfer_fail(t, FETCH_CONNECT_FAILED, "cannot connect to %s: %s", t->target->host,
                      reason(t, code));
}

/* What libcurl says when a single line of a head is over its own bound; before 8.6 it is the first.
 */
static bool
is_over_libcurls_bound(const struct transfer *t, CURLcode code)
{
#if LIBCURL_VERSION_NUM >= 0x080600
    if (code == CURLE_TOO_LARGE)
        return t->stage < TRANSFER_BODY;
#endif
    return code == CURLE_OUT_OF_MEMORY && t->stage < TRANSFER_BODY;
}

/* Does libcurl show what TLS receives? With other libraries it reports a missing end itself. */
static bool
shows_tls(void)
{
    static const char *const libraries[] = {"OpenSSL/", "LibreSSL/", "BoringSSL", "quictls/"};
    const char *library = curl_version_info(CURLVERSION_NOW)->ssl_version;

    for (size_t i = 0; library && i < sizeof(libraries) / sizeof(libraries[0]); i++)
        if (strncmp(library, libraries[i], strlen(libraries[i])) == 0)
            return true;
    return false;
}

/*
 * A body that the end of the connection ends may have been cut off on the way, unless TLS has ended
 * before: RFC 9112 sections 8 and 9.8. libcurl 7.88 takes either end for the body's, 8.14 fails to
 * receive at an end of the connection alone, with "errno 0" for a reason. To an upstream
 * proxy over TLS there are two layers, whose ends are not told apart: either counts.
 */
static void
check_tls_end(struct transfer *t)
{
    bool ends_with_connection = answer_has_body(t->answer) && t->status.version < 20 &&
                                !t->head.chunked && t->head.content_length < 0;

    if (t->target->https && ends_with_connection && !t->tls_ended && shows_tls())
        transfer_fail(t, FETCH_ORIGIN_BROKE,
                      "%s closed the connection without ending TLS: the answer may be cut off",
                      t->target->host);
}

enum fetch_error
transfer_evaluate(struct transfer *t, CURLcode code)
{
    if (t->error || (code == CURLE_OK && t->request->flags & REQUEST_CONNECT_ONLY))
        return t->error;
    if (code == CURLE_OK && answer_has_head(t->answer)) {
        const char *lack = body_end(&t->body);

        if (lack)
            transfer_fail(t, FETCH_ORIGIN_BROKE, "the answer of %s is broken: %s", t->target->host,
                          lack);
        check_tls_end(t);
        if (!t->error)
            t->stage = TRANSFER_ENDED;
        return t->error;
    }
    if (code == CURLE_RECV_ERROR && answer_has_head(t->answer))
        check_tls_end(t);
    if (t->stage == TRANSFER_CONNECTING && code != CURLE_OK)
        fail_connecting(t, code);
    else if (is_tls_failure(code) || code == CURLE_SSL_CLIENTCERT)
        transfer_fail(t, FETCH_TLS_FAILED, "TLS with %s failed: %s", t->target->host,
                      reason(t, code));
    else if (is_over_libcurls_bound(t, code))
        transfer_fail(t, FETCH_TOO_LARGE, "a header of %s is too large", t->target->host);
    else if (code == CURLE_OUT_OF_MEMORY || code == CURLE_ABORTED_BY_CALLBACK)
        transfer_fail(t, FETCH_INTERNAL, "fetching has failed: %s", curl_easy_strerror(code));
    else if (code == CURLE_OPERATION_TIMEDOUT)
        transfer_fail(t, FETCH_TIMED_OUT, "%s took too long", t->target->host);
    else if (code == CURLE_OK)
        transfer_fail(t, FETCH_ORIGIN_BROKE, "%s ended without an answer", t->target->host);
    else
        transfer_fail(t, FETCH_ORIGIN_BROKE, "the answer of %s is broken: %s", t->target->host,
                      reason(t, code));
    return t->error;
}
