/*
 * The bytes of a trace, wherever they come from: a regular file, a FIFO, or standard input under
 * the name "-"; plain or compressed (decompressor.h), as its first bytes show.
 *
 * They pass through a buffer of some hundred kilobytes, read with read(2). A file is not mapped
 * into memory: when another program truncates a mapped file, a process that reads the missing end
 * is killed.
 *
 * A reader takes lines or records until there are no more; input_finish() then reports errors, also
 * that the file changed meanwhile. An input belongs to one thread.
 */
#ifndef SUNPROXY_TRACE_INPUT_H
#define SUNPROXY_TRACE_INPUT_H

#include "trace/trace.h"

struct input;

/*
 * TRACE_CANNOT_OPEN with a sentence, TRACE_NO_MEMORY, TRACE_STOPPED, or TRACE_OK and *in, to be
 * closed. As soon as stop_fd can be read (nothing is read from it; 0: there is none), the input
 * ends with TRACE_STOPPED.
 */
enum trace_error input_open(const char *path, int stop_fd, struct input **in, char *why,
                            size_t why_size);
void input_close(struct input *in);

/* Reports from now on how many bytes were read: as `progress` of struct trace_options. */
void input_report(struct input *in, void (*progress)(void *context, uint64_t done, uint64_t total),
                  void *context);

/* As it is called in sentences: as it was named, or "standard input" for "-". */
const char *input_name(const struct input *in);

/* Has it ended because of stop_fd? */
bool input_was_stopped(const struct input *in);

/* Can stop_fd be read by now? For a reader of other files; the input then ends as if by stop_fd. */
bool input_should_stop(struct input *in);

/* Are these the bytes of a regular file, the one at input_name()? */
bool input_is_plain_file(const struct input *in);

/*
 * What lies ahead: at least `need` bytes, unless the input ends before or something is wrong. Good
 * until the next call. Nothing is taken.
 */
struct span input_peek(struct input *in, size_t need);

/* Takes bytes that were seen with input_peek(). */
void input_take(struct input *in, size_t len);

/*
 * Takes the next line, without its "\n" or "\r\n"; good until the next call. False: there are no
 * more. Of a line of more than `longest` bytes, the beginning comes back, with *too_long.
 */
bool input_line(struct input *in, size_t longest, struct span *line, bool *too_long);

/*
 * What went wrong, if anything did: TRACE_OK; TRACE_CANNOT_OPEN when it could not be read or
 * changed meanwhile, TRACE_NOT_A_TRACE when compressed data are damaged, break off, need too much
 * memory, or stand for more than 1 GiB and for more than a thousand times their own size. With
 * `whole`, the end should have been reached.
 */
enum trace_error input_finish(struct input *in, bool whole, char *why, size_t why_size);

#endif
