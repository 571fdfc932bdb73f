/*
 * Where the daemon and its clients meet when nobody says where.
 */
#ifndef SUNPROXY_BASE_PATHS_H
#define SUNPROXY_BASE_PATHS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The default AF_UNIX socket of this user: $XDG_RUNTIME_DIR/sunproxy.sock if that variable is an
 * absolute path, else /run/sunproxy/sunproxy.sock for root, else /tmp/sunproxy-UID/sunproxy.sock.
 * False if it does not fit into `size` bytes.
 */
bool paths_default_socket(char *path, size_t size);

/*
 * May what stands under this path be trusted to be this user's or root's? True if its folder is
 * one of theirs, and no link. In /tmp anybody may make a folder of any name.
 */
bool paths_folder_is_safe(const char *path);

#endif
