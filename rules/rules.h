/*
 * Rules: what an operator decides about requests and responses. A rule has conditions and actions,
 * which rules_keys() lists with their values; as text it is
 *
 *     KEY = VALUE; KEY = VALUE...
 *
 * where a backslash stands before a ";" or a backslash that belongs to a value.
 *
 * A rule matches if each key that is a condition holds; of several values of one key any will do.
 * "*" in a pattern is any bytes. Hosts and names of fields are compared without regard to case. All
 * rules that match apply: edits add up, in the order of the rules. Of an action with one value
 * (pass, deny, redirect, authenticate, sort-parameters, lifetime, default-lifetime, grace,
 * error-page) the first rule that matches and has it decides.
 *
 * What responses are made of must not depend on what is not in the key of their object, so a rule
 * with an action on responses has conditions on URL, method and response alone. What a rule sets or
 * removes under a condition on a field, a cookie, a network, the time or a user is a field of the
 * key (key-field) by another rule; a request for a URL whose key lacks it passes.
 *
 * Made by one thread; then constant but for the rates, and safe on any thread.
 */
#ifndef SUNPROXY_RULES_RULES_H
#define SUNPROXY_RULES_RULES_H

#include <stdint.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/section_key.h"
#include "base/span.h"
#include "http/method.h"
#include "http/storing.h"

#define RULES_MAX 4096u

struct rule;
struct rules;

/* The keys of a rule, ended by one without a name. */
const struct section_key *rules_keys(void);

/* Is this a value of the key, which is one of those? False with a sentence in `why`. */
bool rules_check_value(const struct section_key *key, const char *text, struct buf *why);

/* None, which is to be freed; NULL without memory. */
struct rules *rules_create(void);
void rules_free(struct rules *rules);

/* Adds a rule, of which a copy is kept. False with a sentence in `why` for each error. */
bool rules_add(struct rules *rules, const char *text, struct buf *why);

/*
 * All rules are there. False with a sentence in `why` for each rule that contradicts the others;
 * `place` is asked for what precedes the sentence on a rule, by its number.
 */
bool rules_finish(struct rules *rules, const char *(*place)(void *context, size_t rule),
                  void *context, struct buf *why);

/* Has a rule a condition on users, or the action authenticate? */
bool rules_know_users(const struct rules *rules);

/* Appends the content of a file of a rule, up to the buffer's ceiling. False with a sentence. */
typedef bool rules_reader(void *context, const char *path, struct buf *content, struct buf *why);

/* Has the files of the rules read, in their order. False with a sentence for each that cannot be
 * read, or is not what it should be. */
#define RULES_PAGE_MAX ((size_t)256 << 10)
#define RULES_LIST_MAX ((size_t)48 << 20)
bool rules_load(struct rules *rules, rules_reader *read, void *context, struct buf *why);

/* ---- requests -------------------------------------------------------------------------------- */

struct rules_request {
    enum http_method method;
    struct span url;               /* http or https, as http_write_url() spells it */
    struct span lines;             /* field lines, each ended by CR LF */
    uint32_t has;                  /* of enum http_request_field: what they may have */
    int64_t now_us;                /* of the monotonic clock */
    const struct sockaddr *client; /* its address; NULL: it has none, and is in no network */
    struct span user;              /* that has sent it; a NULL pointer: no user is known */
};

enum rules_verdict {
    RULES_GO_ON,
    RULES_DENY,     /* with `status` */
    RULES_REDIRECT, /* with `status`, to `location` */
    RULES_LIMIT,    /* the rate of the requests of a rule is used up */
};

struct rules_answer {
    enum rules_verdict verdict;
    const struct rule *by; /* the rule of the verdict; NULL: none */
    unsigned status;
    struct span reason; /* that the rule states for a person; empty: none */
    bool passes;     /* the response is neither stored nor another request's */
    struct span url; /* to be used instead; that of the request, or in `bytes` */
    struct span location;
    uint32_t has; /* of enum http_request_field: what the lines may have once they are edited */
    bool edits;   /* rules_edit_fields() changes the lines */
};

/*
 * Applies the rules to a request. `bytes` are for what is rewritten: at least the length of the URL
 * and RULES_LOCATION_MAX. Nothing is allocated. Takes a token of each rate that concerns the
 * request.
 */
#define RULES_LOCATION_MAX 2048u
void rules_apply(const struct rules *rules, const struct rules_request *request, char *bytes,
                 size_t size, struct rules_answer *answer);

/* The same, without a token. */
void rules_peek(const struct rules *rules, const struct rules_request *request, char *bytes,
                size_t size, struct rules_answer *answer);

/*
 * Does the request need a user, where users are asked for? The first rule decides whose conditions
 * hold and that has the action authenticate, and without one it does. The user of the request does
 * not count.
 */
bool rules_demand_user(const struct rules *rules, const struct rules_request *request);

/* The URL that rules_apply() has in its answer, without all else. */
struct span rules_edit_url(const struct rules *rules, const struct rules_request *request,
                           char *bytes, size_t size);

/*
 * Calls visit() once with each spelling that requests with GET for the URL may have by the rules,
 * whatever else they have, but for its own: the other keys of a page that is purged. At most
 * RULES_SWITCHES_MAX rules that spell URLs under conditions on that concern one URL; rules_finish()
 * refuses more. `bytes` are for a spelling: at least the length of the URL.
 */
#define RULES_SWITCHES_MAX 6u
void rules_visit_keys(const struct rules *rules, struct span url, char *bytes, size_t size,
                      void (*visit)(void *context, struct span key), void *context);

/*
 * Edits the lines that go on to the origin, of a request that has answer.edits, as the rules say.
 * `request` is as for rules_apply(). The buffer says if an append failed.
 */
void rules_edit_fields(const struct rules *rules, const struct rules_request *request,
                       struct buf *lines);

/* Calls visit() with the number of each rule whose conditions on requests hold, in their order. */
void rules_visit(const struct rules *rules, const struct rules_request *request,
                 void (*visit)(void *context, size_t rule), void *context);

/* ---- responses ------------------------------------------------------------------------------- */

struct rules_response {
    enum http_method method; /* of the request, */
    struct span url;         /* and its URL, as it was used */
    unsigned status;
    struct span lines; /* field lines, each ended by CR LF */
};

/* Sets what the rules decide about the storing of a response. */
void rules_set_storing(const struct rules *rules, const struct rules_response *response,
                       struct http_storing_rules *storing);

/* Fields that say how a response is stored are the origin's to say, whatever clients get. */
enum rules_edit {
    RULES_EDIT_ALL,
    RULES_EDIT_BUT_CONTROL, /* Cache-Control, Expires, Pragma and CDN-Cache-Control stay */
};

/*
 * A response whose Cache-Control, Expires, Pragma or CDN-Cache-Control rules have changed keeps the
 * origin's in lines of the name HTTP_ORIGIN_CONTROL, which no client gets. Appends the lines with
 * the origin's in place of the changed ones. False: there are none, and nothing has been appended.
 */
bool rules_restore_response(struct span lines, struct buf *out);

/*
 * Appends lines as the rules for the response have them: those of the response, or of a 304 that
 * has updated it. False: the rules change nothing, and nothing has been appended. The buffer says
 * if an append failed.
 */
bool rules_edit_response(const struct rules *rules, const struct rules_response *response,
                         enum rules_edit purpose, struct span lines, struct buf *out);

/* What clients get in place of the body of a response. */
struct rules_page {
    struct span body; /* NULL pointer: the response's own */
    const char *type; /* its Content-Type, by the name of the file */
};

struct rules_page rules_error_page(const struct rules *rules,
                                   const struct rules_response *response);

/* ---- changes --------------------------------------------------------------------------------- */

/* Are the rules of these numbers the same, with what their files have? Other than their texts. */
bool rules_have_same_files(const struct rules *a, size_t number_a, const struct rules *b,
                           size_t number_b);

/* A digest of what the files of a rule have, the same in each process. */
uint64_t rules_digest_of_files(const struct rules *rules, size_t number);

/* What a response to this URL owes to rules that have come or gone. */
enum rules_concern {
    RULES_CONCERN_NOT,
    RULES_CONCERN_STORING, /* how long it is used */
    RULES_CONCERN_CONTENT, /* for which requests it is, what the origin was sent, or its fields: a
                              304 gives back none that a rule has changed */
};

/* Does a rule let in what is one client's otherwise, of the URL? A change of others may take that
 * away. */
bool rules_let_in(const struct rules *rules, struct span url);

/* By the rules from one number up to another, which have come or gone; to a request with a method.
 */
enum rules_concern rules_concern(const struct rules *rules, size_t from, size_t to,
                                 enum http_method method, struct span url);

#endif
