/*
 * Where `sunproxy get` writes pages: standard output, a file, or a file for each page in a folder;
 * one page at a time, while it arrives. With --json an object for each page is written at its end.
 */
#ifndef SUNPROXY_CLIENT_GET_GET_OUTPUT_H
#define SUNPROXY_CLIENT_GET_GET_OUTPUT_H

#include "base/save.h"
#include "client/get/get_transport.h"

struct get_output {
    const struct get_options *options;
    /* Called every GET_KEEP_US while standard output is slow to take what there is, with `context`;
     * or NULL. */
    void (*blocked)(void *context);
    void *context;
    int64_t keep_us; /* monotonic: when it is called next */
    size_t at_once; /* bytes for which standard output does not block once poll() says that it takes
                       some; 0: it never blocks for long, as a file */
    bool begun;     /* a page is being written */
    bool saves;     /* `save` is open */
    struct save save;
    struct buf path;
    struct buf body;  /* --json: all of it; on a terminal: what was not checked yet */
    bool on_terminal; /* which may obey bytes of a page: only text is written */
    bool shown_part;  /* some of it was written there */
    bool unfit;       /* and some of it is no text */
    bool failed;      /* it cannot be written, which was reported: the run ends */
};

void get_output_init(struct get_output *output, const struct get_options *options);

/* Gives up what is being written: a file is not created. */
void get_output_free(struct get_output *output);

/* Opens the output for the answer's page and writes its head, if that is wanted. */
void get_output_begin(struct get_output *output, const struct get_answer *answer);

/* Writes a piece of its body: GET_TAKEN, or GET_STOP. */
enum get_take get_output_body(struct get_output *output, struct get_answer *answer,
                              struct span piece);

/*
 * The answer is done: prints the messages, completes the page or gives it up, and prints what
 * --write-out asks for. Returns the answer's exit status, EX_IOERR if it could not be written,
 * EX_DATAERR if it is a page that is not text (printable.h) and the output is a terminal.
 */
int get_output_end(struct get_output *output, struct get_answer *answer);

/* Prints what --write-out asks for, for an answer without get_output_end(): the server was lost. */
void get_output_write_out(struct get_output *output, const struct get_answer *answer);

/* With --json, writes the object of an answer with this body, without messages. As
 * get_output_end(). */
int get_output_put(struct get_output *output, const struct get_answer *answer, struct span body);

#endif
