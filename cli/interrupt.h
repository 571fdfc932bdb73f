/*
 * Ctrl-C (SIGINT), SIGTERM and, unless it is ignored as by nohup(1), SIGHUP for commands that print
 * finished results. Between interrupt_catch() and interrupt_release() they do not end the process.
 * For the main thread, before it starts others, which inherit the mask.
 */
#ifndef SUNPROXY_CLI_INTERRUPT_H
#define SUNPROXY_CLI_INTERRUPT_H

#include <stdbool.h>

/*
 * A descriptor that is readable from a signal to the next interrupt_came(); the same one until
 * interrupt_release(). 0 with errno set if it cannot be made: then no signal is caught.
 */
int interrupt_catch(void);

/* True if one has arrived since the first catch. */
bool interrupt_came(void);

/* Restores their previous actions. Harmless while they are not caught. */
void interrupt_release(void);

#endif
