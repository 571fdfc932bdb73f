/*
 * The system calls that serving takes, as a seccomp filter: an allow list. A call that is not on it
 * fails and does nothing.
 *
 * It fails with EPERM if it is known to have no place in a daemon, such as execve(), and with
 * ENOSYS otherwise: a C library that tries a call newer than this list then takes the older one, as
 * it would on an older kernel. The process is not killed, since a look-up module of the system may
 * try such a call in vain and go on.
 */
#ifndef SUNPROXY_SERVER_CONFINE_SYSCALL_FILTER_H
#define SUNPROXY_SERVER_CONFINE_SYSCALL_FILTER_H

/*
 * Puts the calling thread and those that it starts under the filter, for good. Before any other
 * thread starts. 0, or an errno: EINVAL or ENOSYS where the kernel has no such filters. It
 * allows the calls of `more` as well, a list that NULL ends.
 */
int syscall_filter_load(const char *const *more);

#endif
