/*
 * Telling the service manager, by the protocol of sd_notify(3): a datagram to the socket named in
 * NOTIFY_SOCKET. Nothing happens without that variable.
 */
#ifndef SUNPROXY_SERVER_NOTIFY_H
#define SUNPROXY_SERVER_NOTIFY_H

/* `state` is e.g. "READY=1" or "STOPPING=1"; lines separated by newlines. */
void notify_manager(const char *state);

/* Says that a reload begins, with the time as Type=notify-reload wants it; READY=1 ends it. */
void notify_reloading(void);

#endif
