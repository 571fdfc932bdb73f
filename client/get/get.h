/*
 * The parts of `sunproxy get`: its options (get_options.c), the URLs (get.c), the fetches in their
 * order (get_run.c) over a transport (get_transport.h), what an answer means (get_answer.c), and
 * its output (get_output.c, get_show.c, get_json.c, get_write_out.c, get_progress.c).
 */
#ifndef SUNPROXY_CLIENT_GET_GET_H
#define SUNPROXY_CLIENT_GET_GET_H

#include <stdio.h>

#include "base/buf.h"
#include "client/connect.h"
#include "client/get/get_data.h"
#include "client/url_list.h"
#include "proxy.h"

struct get_options {
    struct server_options server;
    const char *http; /* the server's HTTP front; NULL: RPC */
    unsigned api;     /* version of the protocol over RPC, 1 or 2 */
    uint64_t jobs;

    /* The request. */
    const char *method; /* NULL: GET, or HEAD, or POST by the other options */
    struct buf headers; /* field lines as given, each ended by CR LF */
    struct get_data data;
    const char *range;   /* "0-99"; NULL: all */
    const char *max_age; /* seconds, as digits; NULL: not given */
    bool only_if_cached;
    bool no_cache;
    bool no_store;

    /* The output. */
    const char *output; /* file or folder; NULL: stdout */
    bool output_is_folder;
    bool any_bytes;        /* to stdout, also if that is a terminal */
    bool include;          /* status line and headers before the body */
    bool head;             /* these only */
    bool location;         /* redirects are followed; over RPC in any case */
    bool remote_name;      /* each page into a file named as the end of its URL's path */
    const char *write_out; /* a format, checked; NULL: none */
    uint64_t retry;        /* times to fetch a URL again after a transient failure */
    bool verbose;
    bool silent;
    bool json;
    bool fail;
};

/* The rows of `sunproxy get`; they are for struct get_options. */
extern const struct option_group get_option_group;

/* Parses a line of --header into a struct buf of field lines; see option_take. */
option_take get_take_header;

/* Takes SUNPROXY_HTTP into account, then complains about options that exclude each other: false. */
bool get_check_options(struct get_options *options);

/* The reason why a URL, or all of them, was not fetched. */
struct get_failure {
    int status; /* to exit with; EX_OK: there is no failure */
    const char *code;
    const char *sentence;
    bool transient; /* --retry repeats it */
    bool lost;      /* the server is gone, so the other URLs cannot be fetched either */
};

#define GET_SOURCE_UNKNOWN (-1)

/* A response, without its body. */
struct get_page {
    unsigned status;      /* 0: version 1 states none */
    struct buf head;      /* status line and field lines, each ended by CR LF; version 1: empty */
    uint64_t head_bytes;  /* of all heads that arrived for it, those of redirects included */
    struct buf final_url; /* after redirects; empty: that of the request */
    struct buf cache_status; /* over HTTP: what the cache says about it (RFC 9211) */
    int64_t length;          /* of the body in bytes; -1: not known */
    int source;              /* enum proxy_source, or GET_SOURCE_UNKNOWN */
    bool stored;
    bool measured; /* the next three are known: RPC, version 2 */
    uint64_t total_us, fetch_us;
    unsigned evicted;
    unsigned age;       /* seconds */
    unsigned redirects; /* that were followed here */
};

struct get_queue;

/* The answer for a URL. */
struct get_answer {
    struct get_queue *queue; /* get_run.c's */
    const char *url;         /* not owned; NULL: none is known, and there is a failure */
    size_t number;           /* from 1 */

    struct get_failure failure; /* its sentence is static or in the next */
    struct buf sentence;
    bool has_page; /* its head is complete */
    struct get_page page;
    uint64_t size; /* bytes of the body that were taken for the output */
    uint64_t sent; /* bytes of the request's body that were sent */

    bool done;
    int64_t us; /* from the first call for it to the last answer, measured here */
    int64_t begun_us;
    int64_t head_us;     /* from the same moment to the head */
    unsigned retries;    /* so far */
    int64_t again_us;    /* when to fetch again; 0: not to */
    bool discards;       /* its body is not for the output */
    bool paused;         /* the transport waits for get_transport's resume() */
    int64_t paused_us;   /* since when */
    bool dropped;        /* it was paused for too long: it is fetched again when it is current */
    struct buf held;     /* of its body, while an earlier answer is written */
    struct buf messages; /* --verbose: its lines, likewise */
    void *fetch;         /* the transport's */
};

void get_page_init(struct get_page *page);
void get_page_free(struct get_page *page);

/* An answer before its fetch, and the end of one. */
void get_answer_init(struct get_answer *answer, const char *url, size_t number);
void get_answer_free(struct get_answer *answer);

/* Forgets a response: the URL is fetched again. */
void get_answer_reset(struct get_answer *answer);

/* Records a failure, with a copy of its sentence. */
void get_answer_fail(struct get_answer *answer, const struct get_failure *failure);

/* True if it has a page, and that is complete so far. */
bool get_answer_ok(const struct get_answer *answer);

/* The field lines of its response, without the status line. */
struct span get_answer_lines(const struct get_answer *answer);

/* The value of the first field of this name; empty if there is none. */
struct span get_answer_field(const struct get_answer *answer, const char *name);

/*
 * True after a transient failure, which --retry repeats. As for curl: no answer in time, or HTTP
 * status 408, 429, 500, 502, 503 or 504; also an overloaded server.
 */
bool get_answer_is_transient(const struct get_answer *answer);

/* True if it has a page with an HTTP status of 400 or more. */
bool get_answer_is_http_error(const struct get_answer *answer);

/* The exit status for this answer alone. */
int get_answer_exit(const struct get_answer *answer, const struct get_options *options);

struct get_transport;

/*
 * Fetches all over the transport, options->jobs at a time, those again that --retry asks for, and
 * writes each in the order of the list, the first unfinished one as it arrives. `server` is for
 * messages. Closes the transport, unless memory runs out before the first fetch, and sets
 * *transport to NULL. Returns the exit status: the first that is not 0, in that order; but a lost
 * server or a failed write ends the run and decides the status.
 */
int get_run(struct get_transport **transport, const char *server, const struct get_options *options,
            const struct url_list *urls);

/*
 * With --json, prints an object with the failure for each URL, or one without a URL for an empty
 * list. Returns the failure's status, EX_IOERR if that cannot be written.
 */
int get_fail(const struct get_failure *failure, const struct get_options *options,
             const struct url_list *urls);

/* The messages on standard error about a finished answer: its failure, or with -v its outcome. */
void get_show(const struct get_answer *answer, const struct get_options *options);

/*
 * Writes the answer with this body as one JSON object on a line (get_json.c). False with errno set
 * if it cannot.
 */
bool get_write_json(const struct get_answer *answer, struct span body,
                    const struct get_options *options, FILE *to);

/* The most bytes of a body that an object of JSON has. */
#define GET_JSON_MAX_BODY ((size_t)PROXY_MAX_PAGE)

/* Parses the format of --write-out; see option_take. */
option_take get_take_write_out;

/* Prints options->write_out for an answer to stdout. Errors show in ferror(). */
void get_write_out(const struct get_answer *answer, const struct get_options *options);

/* Options of curl that get does not have; for struct option_group. */
extern const struct option_hint get_curl_options[];

/* The last segment of the URL's path, for --remote-name; empty if there is none or it is no name
 * for a file. */
struct span get_remote_name(const char *url);

/* The name of a URL's file in the folder of -o: "0001-example.com_a_b". Returns name. */
const char *get_file_name(size_t number, const char *url, char *name, size_t size);

#define GET_FILE_NAME_SIZE 128

#endif
