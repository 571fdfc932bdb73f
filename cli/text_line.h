/*
 * Lines of text from a stream, each in bounded memory: a stream without line ends, such as a
 * device, would else be read until memory is out.
 */
#ifndef SUNPROXY_CLI_TEXT_LINE_H
#define SUNPROXY_CLI_TEXT_LINE_H

#include <stdio.h>

#include "base/buf.h"

/*
 * Reads the next line, without its end, in place of what the buffer had. 1; 0 at the end; -1 with
 * errno: EMSGSIZE if the line is longer than the buffer may be, ENOMEM, or the stream's.
 */
int text_line_read(FILE *from, struct buf *line);

#endif
