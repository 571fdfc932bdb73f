#include "base/load.h"

#include <errno.h>
#include <stdio.h>

#define PIECE 65536u

int
load_file(const char *path, struct buf *content)
{
    FILE *file = fopen(path, "re");
    char piece[PIECE];
    size_t got;
    int error = 0;

    if (!file)
        return errno;
    while ((got = fread(piece, 1, sizeof(piece), file)) > 0 && buf_append(content, piece, got))
        continue;
    if (got > 0)
        error = content->ceiling - content->len < got ? EFBIG : ENOMEM;
    else if (ferror(file))
        error = errno ? errno : EIO;
    fclose(file);
    return error;
}
