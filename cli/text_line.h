/*
 * Lines of text from a stream in bounded memory: a stream without line ends, such as a device,
 * would otherwise use up the memory.
 */
#ifndef SUNPROXY_CLI_TEXT_LINE_H
#define SUNPROXY_CLI_TEXT_LINE_H

#include <stdio.h>

#include "base/buf.h"

/*
 * Reads the next line, without its end, into the buffer. Returns 1; 0 at the end; -1 with
 * errno: EMSGSIZE if the line is longer than the buffer may be, ENOMEM, or the stream's.
 */
int text_line_read(FILE *from, struct buf *line);

#endif
