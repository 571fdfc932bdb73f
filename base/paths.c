#include "base/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool
paths_default_socket(char *path, size_t size)
{
    const char *folder = getenv("XDG_RUNTIME_DIR");
    int len;

    if (folder && folder[0] == '/')
        len = snprintf(path, size, "%s/sunproxy.sock", folder);
    else if (geteuid() == 0)
        len = snprintf(path, size, "/run/sunproxy/sunproxy.sock");
    else
        len = snprintf(path, size, "/tmp/sunproxy-%lu/sunproxy.sock", (unsigned long)geteuid());
    return len > 0 && (size_t)len < size;
}
