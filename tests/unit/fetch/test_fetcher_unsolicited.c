/*
 * Answers that no request asked for, on a connection that is kept: none may pass for the answer to
 * a later request. Over TCP and over TLS, where tickets are no answers.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/fetch/fixture.h"

#define OK "HTTP/1.1 200 OK\r\n"
#define FORGED OK "Content-Length: 6\r\n\r\nforged"

/* An origin with one connection at a time. What it sends and when, the test says. */
struct speaker {
    int listener;
    uint16_t port;
    SSL_CTX *tls; /* NULL: TCP */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned connections;
    unsigned answered; /* requests */
    bool speak;        /* it is to send FORGED now */
    bool spoken;
    bool at_once; /* it sends FORGED with each answer, in one piece */
    bool breaks;  /* instead of FORGED it sends the first bytes of a TLS record and a reset */
    bool stopping;
};

static bool
speaker_write(SSL *ssl, int fd, const char *text)
{
    if (ssl)
        return SSL_write(ssl, text, (int)strlen(text)) > 0;
    scripted_send(fd, text, strlen(text));
    return true;
}

/* Answers a request with its own path, which is 5 characters long. */
static bool
speaker_answer(struct speaker *s, SSL *ssl, int fd)
{
    char request[2048], answer[256];
    size_t len = 0;

    while (len < 4 || memcmp(request + len - 4, "\r\n\r\n", 4) != 0) {
        ssize_t got = len + 1 == sizeof(request) ? 0
                      : ssl                      ? SSL_read(ssl, request + len, 1)
                                                 : recv(fd, request + len, 1, 0);

        if (got <= 0)
            return false;
        len += (size_t)got;
    }
    snprintf(answer, sizeof(answer), OK "Content-Length: 5\r\n\r\n%.5s%s", request + 4,
             s->at_once ? FORGED : "");
    pthread_mutex_lock(&s->lock);
    s->answered++;
    pthread_mutex_unlock(&s->lock);
    return speaker_write(ssl, fd, answer);
}

/*
 * After its first answer a connection waits for the test, and sends what the test gives it. False
 * if it is to be closed then.
 */
static bool
speaker_wait(struct speaker *s, SSL *ssl, int fd)
{
    bool going = true;

    pthread_mutex_lock(&s->lock);
    while (!s->speak && !s->stopping)
        pthread_cond_wait(&s->changed, &s->lock);
    if (s->speak && !s->spoken) {
        if (s->breaks) {
            scripted_send(fd, "\x17\x03\x03", 3);
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
                       sizeof(struct linger));
            going = false;
        } else {
            speaker_write(ssl, fd, FORGED);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return going;
}

static void
speaker_has_spoken(struct speaker *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->speak)
        s->spoken = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void *
speaker_run(void *context)
{
    struct speaker *s = context;

    for (;;) {
        int fd = accept(s->listener, NULL, NULL);
        SSL *ssl = NULL;
        bool going = fd >= 0;

        if (fd < 0)
            return NULL;
        /* What is sent has arrived when the call returns. */
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        pthread_mutex_lock(&s->lock);
        s->connections++;
        pthread_mutex_unlock(&s->lock);
        if (s->tls) {
            ssl = SSL_new(s->tls);
            SSL_set_fd(ssl, fd);
            going = SSL_accept(ssl) == 1;
        }
        for (bool first = true; going; first = false) {
            going = speaker_answer(s, ssl, fd);
            if (going && first && !s->at_once) {
                going = speaker_wait(s, ssl, fd);
                if (going)
                    speaker_has_spoken(s);
            }
        }
        SSL_free(ssl);
        close(fd);
        speaker_has_spoken(s);
    }
}

static void
speaker_start(struct speaker *s, SSL_CTX *tls, bool at_once, bool breaks)
{
    *s = (struct speaker){.tls = tls, .at_once = at_once, .breaks = breaks};
    s->listener = scripted_listen(&s->port, 8);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    ck_assert_int_eq(pthread_create(&s->thread, NULL, speaker_run, s), 0);
}

/* Has it send what no request asked for, or nothing, and then go on. */
static void
speaker_go_on(struct speaker *s, bool forge)
{
    pthread_mutex_lock(&s->lock);
    s->spoken = !forge;
    s->speak = true;
    pthread_cond_broadcast(&s->changed);
    while (!s->spoken)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static void
speaker_stop(struct speaker *s)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
}

/* ---- TLS ----------------------------------------------------------------------------- */

static char cert_path[] = "/tmp/sunproxy-unsolicited-XXXXXX";

/* A server's context, with a certificate for 127.0.0.1, which is then in cert_path. */
static SSL_CTX *
make_tls(void)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_EXTENSION *names = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "IP:127.0.0.1");
    FILE *file;
    int fd;

    ck_assert(tls && key && cert && names);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_set_version(cert, 2);
    X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(cert), 86400);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                               (const unsigned char *)"sunproxy test", -1, -1, 0);
    X509_set_issuer_name(cert, X509_get_subject_name(cert));
    X509_add_ext(cert, names, -1);
    X509_set_pubkey(cert, key);
    ck_assert_int_gt(X509_sign(cert, key, EVP_sha256()), 0);
    ck_assert_int_eq(SSL_CTX_use_certificate(tls, cert), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey(tls, key), 1);
    strcpy(cert_path + strlen(cert_path) - 6, "XXXXXX");
    fd = mkstemp(cert_path);
    ck_assert_int_ge(fd, 0);
    file = fdopen(fd, "w");
    ck_assert_int_eq(PEM_write_X509(file, cert), 1);
    fclose(file);
    X509_EXTENSION_free(names);
    X509_free(cert);
    EVP_PKEY_free(key);
    return tls;
}

/* ---- tests --------------------------------------------------------------------------- */

enum between { NOTHING, FORGED_WITH_ANSWERS, FORGED_AFTERWARDS, BROKEN_OFF };

/* Two requests, and what the origin sends between them. How many connections it took. */
static unsigned
two_requests(SSL_CTX *tls, enum between between)
{
    const char *scheme = tls ? "https" : "http";
    struct fetcher *fetcher;
    struct speaker speaker;
    unsigned connections;

    if (tls)
        config.cacert = cert_path;
    fetcher = start_fetcher(&config);
    speaker_start(&speaker, tls, between == FORGED_WITH_ANSWERS, between == BROKEN_OFF);
    expect_page(fetcher, "/one1", "%s://127.0.0.1:%u/one1", scheme, speaker.port);
    speaker_go_on(&speaker, between == FORGED_AFTERWARDS || between == BROKEN_OFF);
    expect_page(fetcher, "/two2", "%s://127.0.0.1:%u/two2", scheme, speaker.port);
    ck_assert_uint_eq(speaker.answered, 2);
    connections = speaker.connections;
    fetcher_destroy(fetcher);
    speaker_stop(&speaker);
    return connections;
}

START_TEST(over_tcp)
{
    ck_assert_uint_eq(two_requests(NULL, NOTHING), 1);
    ck_assert_uint_eq(two_requests(NULL, FORGED_AFTERWARDS), 2);
    ck_assert_uint_eq(two_requests(NULL, FORGED_WITH_ANSWERS), 2);
    ck_assert_uint_eq(two_requests(NULL, BROKEN_OFF), 2);
}
END_TEST

/* TLS 1.3 sends tickets after the handshake: they are no reason for a new connection. */
START_TEST(over_tls)
{
    SSL_CTX *tls = make_tls();

    ck_assert_uint_eq(two_requests(tls, NOTHING), 1);
    ck_assert_uint_eq(two_requests(tls, FORGED_AFTERWARDS), 2);
    ck_assert_uint_eq(two_requests(tls, FORGED_WITH_ANSWERS), 2);
    ck_assert_uint_eq(two_requests(tls, BROKEN_OFF), 2);
    SSL_CTX_set_max_proto_version(tls, TLS1_2_VERSION);
    ck_assert_uint_eq(two_requests(tls, NOTHING), 1);
    ck_assert_uint_eq(two_requests(tls, FORGED_AFTERWARDS), 2);
    unlink(cert_path);
    SSL_CTX_free(tls);
}
END_TEST

Suite *
unit_suite(void)
{
    TCase *tc;
    Suite *suite = fixture_suite("fetch/unsolicited", &tc);

    tcase_add_test(tc, over_tcp);
    tcase_add_test(tc, over_tls);
    return suite;
}
