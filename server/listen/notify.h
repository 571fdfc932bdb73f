/*
 * Notification of the service manager by the protocol of sd_notify(3): a datagram to the socket in
 * NOTIFY_SOCKET. Without that variable nothing is sent.
 */
#ifndef SUNPROXY_SERVER_LISTEN_NOTIFY_H
#define SUNPROXY_SERVER_LISTEN_NOTIFY_H

/* `state` is e.g. "READY=1" or "STOPPING=1"; lines separated by newlines. */
void notify_manager(const char *state);

/* Reports the begin of a reload, with the time that Type=notify-reload needs; READY=1 ends it. */
void notify_reloading(void);

#endif
