/*
 * Ctrl-C (SIGINT) and SIGTERM for commands that print what is finished. Between interrupt_catch()
 * and interrupt_release() they are noticed and kill nobody. Of the process; for its main thread,
 * before it starts others, which inherit the mask.
 */
#ifndef SUNPROXY_CLI_INTERRUPT_H
#define SUNPROXY_CLI_INTERRUPT_H

#include <stdbool.h>

/*
 * A descriptor that can be read when a signal has come and interrupt_came() has not been asked yet.
 * Harmless while they are caught. 0 if there is none to be had: then nothing is caught.
 */
int interrupt_catch(void);

/* Has one come since the first catch? */
bool interrupt_came(void);

/* From now on they do again what they did before. Harmless while they are not caught. */
void interrupt_release(void);

#endif
