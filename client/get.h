/*
 * The parts of `sunproxy get`: the options (get.c), the fetches (get_run.c), what an answer means
 * (get_answer.c), and its output (get_show.c, get_json.c, get_write_out.c).
 */
#ifndef SUNPROXY_CLIENT_GET_H
#define SUNPROXY_CLIENT_GET_H

#include <stdio.h>

#include "base/buf.h"
#include "client/connect.h"
#include "client/url_list.h"
#include "proxy.h"

struct get_options {
    struct server_options server;
    unsigned api; /* version of the protocol, 1 or 2 */
    uint64_t jobs;
    const char *output; /* file or folder; NULL: stdout */
    bool output_is_folder;
    bool any_bytes;        /* to stdout, also if that is a terminal */
    bool include;          /* status line and headers before the body */
    bool head;             /* these only */
    bool location;         /* redirects are followed in any case */
    bool remote_name;      /* each page into a file named as the end of its URL's path */
    const char *write_out; /* a format, checked; NULL: none */
    uint64_t retry;        /* times to fetch a URL again after a transient failure */
    bool verbose;
    bool silent;
    bool json;
    bool fail;
    bool no_store;
    struct buf headers; /* to the origin, each ended by CR LF */
};

/* The reason why no URL was fetched. */
struct get_failure {
    int status; /* to exit with */
    const char *code;
    const char *sentence;
};

struct get_queue;

/* The answer for a URL. */
struct get_answer {
    struct get_queue *queue;           /* get_run.c's */
    const char *url;                   /* not owned; NULL: none is known, and there is a failure */
    size_t number;                     /* from 1 */
    const struct get_failure *failure; /* not owned; NULL: it was fetched */
    bool done;
    int64_t us; /* from the first call for it to the last answer, measured here */
    int64_t begun_us;
    unsigned retries; /* so far */
    int64_t again_us; /* when to fetch again; 0: not to */
    enum rpc_client_status rpc;
    unsigned api;
    union { /* of the version that was called; valid if rpc is RPC_CLIENT_OK */
        proxy_fetch_result v2;
        webpageResponse v1;
    } result;
};

/* True if it has a page. */
bool get_answer_ok(const struct get_answer *answer);

/* The page's body; empty without a page. Valid as long as the answer. */
struct span get_answer_body(const struct get_answer *answer);

/* The reason why it has none, as a sentence. */
const char *get_answer_sentence(const struct get_answer *answer);

/*
 * True after a transient failure, which --retry repeats. As for curl: no answer in time, or HTTP
 * status 408, 429, 500, 502, 503 or 504; also an overloaded server.
 */
bool get_answer_is_transient(const struct get_answer *answer);

/* True if it has a page with an HTTP status of 400 or more. */
bool get_answer_is_http_error(const struct get_answer *answer);

/* The exit status for this answer alone. */
int get_answer_exit(const struct get_answer *answer, const struct get_options *options);

/*
 * Fetches all over one connection, options->jobs at a time, those again that --retry asks for, and
 * shows each with get_show() in the order of the list. Takes *client, which is closed and NULL
 * then, unless memory runs out before the first call. Returns the exit status: the first that is
 * not 0, in that order; but a lost server or a failed write ends the run and decides the status.
 */
int get_run(struct rpc_client **client, const struct server *server,
            const struct get_options *options, const struct url_list *urls);

/*
 * Shows one answer by the options. Returns its exit status, EX_IOERR if it cannot be written,
 * EX_DATAERR if it is a page that is not text (printable.h) and the output is a terminal.
 */
int get_show(const struct get_answer *answer, const struct get_options *options);

/* The same without messages on standard error. */
int get_put(const struct get_answer *answer, const struct get_options *options);

/*
 * With --json, prints an object with the failure for each URL, or one without a URL for an empty
 * list. Returns the failure's status, EX_IOERR if that cannot be written.
 */
int get_fail(const struct get_failure *failure, const struct get_options *options,
             const struct url_list *urls);

/* Writes the answer as one JSON object on a line (get_json.c). False with errno set if it cannot.
 */
bool get_write_json(const struct get_answer *answer, const struct get_options *options, FILE *to);

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
