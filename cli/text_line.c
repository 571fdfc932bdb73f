#include "cli/text_line.h"

#include <errno.h>

int
text_line_read(FILE *from, struct buf *line)
{
    int c;

    buf_reset(line);
    errno = 0;
    while ((c = getc_unlocked(from)) != EOF && c != '\n') {
        if (!buf_append_char(line, (char)c)) {
            errno = line->len == line->ceiling ? EMSGSIZE : ENOMEM;
            return -1;
        }
    }
    if (c == EOF && ferror(from)) {
        errno = errno ? errno : EIO;
        return -1;
    }
    return c == '\n' || line->len != 0;
}
