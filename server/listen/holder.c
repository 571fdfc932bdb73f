#include "server/listen/holder.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define TCP_LISTEN_STATE 0x0A

/* The inode of the socket that listens on the port by one of the kernel's tables; 0: none. */
static unsigned long long
listening_inode(const char *table, uint16_t port)
{
    FILE *file = fopen(table, "re");
    unsigned long long inode = 0;
    char line[512];

    if (!file)
        return 0;
    while (!inode && fgets(line, sizeof(line), file)) {
        unsigned local_port, state;
        unsigned long long found;

        if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*s %*s %llu",
                   &local_port, &state, &found) == 3 &&
            local_port == port && state == TCP_LISTEN_STATE)
            inode = found;
    }
    fclose(file);
    return inode;
}

static bool
process_has_inode(const char *pid, unsigned long long inode)
{
    char path[300], wanted[64], link[64];
    bool found = false;
    struct dirent *entry;
    DIR *folder;

    snprintf(path, sizeof(path), "/proc/%s/fd", pid);
    snprintf(wanted, sizeof(wanted), "socket:[%llu]", inode);
    folder = opendir(path);
    if (!folder)
        return false;
    while (!found && (entry = readdir(folder))) {
        ssize_t len = readlinkat(dirfd(folder), entry->d_name, link, sizeof(link) - 1);

        if (len > 0) {
            link[len] = '\0';
            found = strcmp(link, wanted) == 0;
        }
    }
    closedir(folder);
    return found;
}

void
holder_describe(pid_t pid, struct buf *out)
{
    char path[64], name[64] = "";
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%ld/comm", (long)pid);
    file = fopen(path, "re");
    if (file) {
        if (fgets(name, sizeof(name), file))
            name[strcspn(name, "\n")] = '\0';
        fclose(file);
    }
    buf_printf(out, "process %ld", (long)pid);
    if (name[0])
        buf_printf(out, " (%s)", name);
}

bool
holder_of_port(uint16_t port, struct buf *out)
{
    unsigned long long inode = listening_inode("/proc/net/tcp", port);
    bool found = false;
    struct dirent *entry;
    DIR *processes;

    if (!inode)
        inode = listening_inode("/proc/net/tcp6", port);
    processes = inode ? opendir("/proc") : NULL;
    if (!processes)
        return false;
    while (!found && (entry = readdir(processes))) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (process_has_inode(entry->d_name, inode)) {
            holder_describe((pid_t)atol(entry->d_name), out);
            found = true;
        }
    }
    closedir(processes);
    return found;
}

void
holder_describe_user(uid_t uid, struct buf *out)
{
    const struct passwd *user = getpwuid(uid);

    if (user)
        buf_printf(out, "user %s", user->pw_name);
    else
        buf_printf(out, "user %lu", (unsigned long)uid);
}

bool
holder_of_lock(int fd, struct buf *out)
{
    FILE *file = fopen("/proc/locks", "re");
    struct stat st;
    char line[512];
    bool found = false;

    if (!file)
        return false;
    /* "1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF"; "->" in front marks one that waits. */
    while (!found && fstat(fd, &st) == 0 && fgets(line, sizeof(line), file)) {
        unsigned long long inode;
        unsigned high, low;
        char kind[16];
        long pid;

        if (sscanf(line, "%*u: %15s %*s %*s %ld %x:%x:%llu", kind, &pid, &high, &low, &inode) ==
                5 &&
            strcmp(kind, "FLOCK") == 0 && pid > 0 && makedev(high, low) == st.st_dev &&
            inode == st.st_ino) {
            holder_describe((pid_t)pid, out);
            found = true;
        }
    }
    fclose(file);
    return found;
}
