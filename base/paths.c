#include "base/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool
paths_default_socket(char *path, size_t size)
{
    const char *folder = getenv("XDG_RUNTIME_DIR");
    int len;

    if (folder && folder[0] == '/')
        len = snprintf(path, size, "%s/sunproxy.sock", folder);
    else if (geteuid() == 0)
        len = snprintf(path, size, PATHS_SYSTEM_SOCKET);
    else
        len = snprintf(path, size, "/tmp/sunproxy-%lu/sunproxy.sock", (unsigned long)geteuid());
    return len > 0 && (size_t)len < size;
}

bool
paths_folder_is_safe(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct stat st;
    char *folder;
    bool safe;

    if (!slash)
        return false;
    folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
    safe = folder && lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) &&
           (st.st_uid == geteuid() || st.st_uid == 0 || strcmp(path, PATHS_SYSTEM_SOCKET) == 0);
    free(folder);
    return safe;
}
