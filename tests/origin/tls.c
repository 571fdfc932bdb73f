/*
 * A throw-away authority, and a leaf certificate for whatever name a client asks for (SNI, RFC 6066
 * section 3). Names that begin with "expired." get one that has run out, with "wrong." one for
 * another name, with "selfsigned." one that the authority did not sign.
 */
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "tests/origin/origin.h"

#define CACHE_BUCKETS 1024u
#define CACHE_MAX 65536u /* names remembered; more than that are minted each time */

struct leaf {
    struct leaf *next;
    SSL_CTX *ctx;
    char name[];
};

struct authority {
    EVP_PKEY *ca_key;
    X509 *ca;
    EVP_PKEY *leaf_key; /* one for all leaves: what counts here is speed */
    SSL_CTX *default_ctx;
    struct leaf *leaves[CACHE_BUCKETS];
    unsigned leaf_count;
    uint64_t serial;
};

static bool
add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509_EXTENSION *extension;
    bool added;

    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    if (!extension)
        return false;
    added = X509_add_ext(cert, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return added;
}

/* A certificate without extensions or signature yet; valid from yesterday for `days`. */
static X509 *
new_certificate(uint64_t serial, const char *name, EVP_PKEY *key, long days)
{
    X509 *cert = X509_new();
    X509_NAME *subject;
    char common[65];

    if (!cert)
        return NULL;
    /* A common name ends at 64 characters (RFC 5280); clients read the alternative name anyhow. */
    snprintf(common, sizeof(common), "%.64s", name);
    subject = X509_get_subject_name(cert);
    if (X509_set_version(cert, 2) != 1 ||
        ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), serial) != 1 ||
        !X509_gmtime_adj(X509_getm_notBefore(cert), -2 * 86400L) ||
        !X509_gmtime_adj(X509_getm_notAfter(cert), days * 86400L) ||
        X509_set_pubkey(cert, key) != 1 ||
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)common, -1,
                                   -1, 0) != 1) {
        X509_free(cert);
        return NULL;
    }
    return cert;
}

static X509 *
make_ca(struct authority *a)
{
    X509 *cert = new_certificate(a->serial++, "sunproxy test authority", a->ca_key, 30);

    if (!cert)
        return NULL;
    if (X509_set_issuer_name(cert, X509_get_subject_name(cert)) != 1 ||
        !add_extension(cert, cert, NID_basic_constraints, "critical,CA:TRUE") ||
        !add_extension(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign") ||
        !add_extension(cert, cert, NID_subject_key_identifier, "hash") ||
        !add_extension(cert, cert, NID_authority_key_identifier, "keyid:always") ||
        !X509_sign(cert, a->ca_key, EVP_sha256())) {
        X509_free(cert);
        return NULL;
    }
    return cert;
}

static X509 *
make_leaf(struct authority *a, const char *name, const char *alternatives, long days, bool own)
{
    X509 *cert = new_certificate(a->serial++, name, a->leaf_key, days);
    X509 *issuer = own ? cert : a->ca;

    if (!cert)
        return NULL;
    if (X509_set_issuer_name(cert, X509_get_subject_name(issuer)) != 1 ||
        !add_extension(cert, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
        !add_extension(cert, issuer, NID_ext_key_usage, "serverAuth") ||
        !add_extension(cert, issuer, NID_subject_alt_name, alternatives) ||
        !add_extension(cert, cert, NID_subject_key_identifier, "hash") ||
        !add_extension(cert, issuer, NID_authority_key_identifier, "keyid:always") ||
        !X509_sign(cert, own ? a->leaf_key : a->ca_key, EVP_sha256())) {
        X509_free(cert);
        return NULL;
    }
    return cert;
}

static bool
is_host_name(const char *name)
{
    size_t len = strlen(name);

    if (len == 0 || len > 253)
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == len;
}

static SSL_CTX *
make_context(struct authority *a, const char *name)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    bool expired = strncmp(name, "expired.", 8) == 0;
    bool own = strncmp(name, "selfsigned.", 11) == 0;
    char alternatives[300];
    X509 *cert = NULL;
    bool made;

    if (!*name)
        snprintf(alternatives, sizeof(alternatives), "DNS:localhost,IP:127.0.0.1,IP:::1");
    else
        snprintf(alternatives, sizeof(alternatives), "DNS:%s",
                 strncmp(name, "wrong.", 6) == 0 ? "another.test" : name);
    if (ctx)
        cert = make_leaf(a, *name ? name : "localhost", alternatives, expired ? -1 : 20, own);
    made = cert && SSL_CTX_use_certificate(ctx, cert) == 1 &&
           SSL_CTX_use_PrivateKey(ctx, a->leaf_key) == 1;
    if (made) {
        SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    } else {
        SSL_CTX_free(ctx);
        ctx = NULL;
    }
    X509_free(cert);
    return ctx;
}

/* The context for a name: from the cache, or minted. NULL if it cannot be made. */
static SSL_CTX *
find_context(struct authority *a, const char *name, bool *owned)
{
    struct leaf **bucket = &a->leaves[origin_hash(name) % CACHE_BUCKETS];
    struct leaf *leaf;
    SSL_CTX *ctx;

    *owned = false;
    for (leaf = *bucket; leaf; leaf = leaf->next)
        if (strcmp(leaf->name, name) == 0)
            return leaf->ctx;
    ctx = make_context(a, name);
    if (!ctx)
        return NULL;
    leaf = a->leaf_count < CACHE_MAX ? malloc(sizeof(*leaf) + strlen(name) + 1) : NULL;
    if (!leaf) {
        *owned = true;
        return ctx;
    }
    strcpy(leaf->name, name);
    leaf->ctx = ctx;
    leaf->next = *bucket;
    *bucket = leaf;
    a->leaf_count++;
    return ctx;
}

static int
on_server_name(SSL *ssl, int *alert, void *arg)
{
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    SSL_CTX *ctx;
    bool owned;

    if (!name)
        return SSL_TLSEXT_ERR_NOACK;
    ctx = is_host_name(name) ? find_context(arg, name, &owned) : NULL;
    if (!ctx) {
        *alert = SSL_AD_UNRECOGNIZED_NAME;
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    SSL_set_SSL_CTX(ssl, ctx); /* takes a reference of its own */
    if (owned)
        SSL_CTX_free(ctx);
    return SSL_TLSEXT_ERR_OK;
}

static bool
write_ca(const struct authority *a, const char *folder, char *why, size_t why_size)
{
    char path[4096];
    FILE *file;
    bool written;

    snprintf(path, sizeof(path), "%s/ca.pem", folder);
    file = fopen(path, "w");
    written = file && PEM_write_X509(file, a->ca) == 1;
    if (file && fclose(file) != 0)
        written = false;
    if (!written)
        snprintf(why, why_size, "cannot write %s", path);
    return written;
}

struct authority *
authority_create(const char *folder, char *why, size_t why_size)
{
    struct authority *a = calloc(1, sizeof(*a));

    if (!a) {
        snprintf(why, why_size, "no memory");
        return NULL;
    }
    a->serial = ((uint64_t)time(NULL) << 20) + 1;
    a->ca_key = EVP_EC_gen("P-256");
    a->leaf_key = EVP_EC_gen("P-256");
    if (a->ca_key && a->leaf_key)
        a->ca = make_ca(a);
    if (a->ca)
        a->default_ctx = make_context(a, "");
    if (!a->default_ctx) {
        snprintf(why, why_size, "OpenSSL: %s", ERR_reason_error_string(ERR_peek_last_error()));
        authority_free(a);
        return NULL;
    }
    SSL_CTX_set_tlsext_servername_callback(a->default_ctx, on_server_name);
    SSL_CTX_set_tlsext_servername_arg(a->default_ctx, a);
    if (folder && !write_ca(a, folder, why, why_size)) {
        authority_free(a);
        return NULL;
    }
    return a;
}

void
authority_free(struct authority *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < CACHE_BUCKETS; i++) {
        while (a->leaves[i]) {
            struct leaf *leaf = a->leaves[i];

            a->leaves[i] = leaf->next;
            SSL_CTX_free(leaf->ctx);
            free(leaf);
        }
    }
    SSL_CTX_free(a->default_ctx);
    X509_free(a->ca);
    EVP_PKEY_free(a->ca_key);
    EVP_PKEY_free(a->leaf_key);
    free(a);
}

SSL *
authority_accept(struct authority *a)
{
    return SSL_new(a->default_ctx);
}
