/*
 * The default paths by which clients find the daemon.
 */
#ifndef SUNPROXY_BASE_PATHS_H
#define SUNPROXY_BASE_PATHS_H

#include <stdbool.h>
#include <stddef.h>

/* Where a daemon of the system has its socket; only root can make its folder. */
#define PATHS_SYSTEM_SOCKET "/run/sunproxy/sunproxy.sock"

/*
 * The default AF_UNIX socket of this user: $XDG_RUNTIME_DIR/sunproxy.sock if that variable is an
 * absolute path, else PATHS_SYSTEM_SOCKET for root, else /tmp/sunproxy-UID/sunproxy.sock.
 * False if it does not fit into `size` bytes.
 */
bool paths_default_socket(char *path, size_t size);

/*
 * May what stands under this path be trusted to be this user's or the system's? True if its folder
 * is this user's or root's, or that of PATHS_SYSTEM_SOCKET, which may be the daemon's user's; a
 * link is not trusted. In /tmp any user may make a folder of any name.
 */
bool paths_folder_is_safe(const char *path);

#endif
