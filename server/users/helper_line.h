/*
 * Lines of the protocol of Squid's basic authenticators (helpers.h). Pure functions, safe on any
 * thread.
 */
#ifndef SUNPROXY_SERVER_USERS_HELPER_LINE_H
#define SUNPROXY_SERVER_USERS_HELPER_LINE_H

#include <stdbool.h>

#include "base/span.h"
#include "http/basic_credentials.h"

#define HELPER_NO_CHANNEL (~0u)

/* The longest question, with its line feed. */
#define HELPER_QUESTION_MAX \
    (12u + 3u * ((unsigned)HTTP_BASIC_NAME_MAX + (unsigned)HTTP_BASIC_PASSWORD_MAX) + 2u)

/* Writes a question with its line feed into HELPER_QUESTION_MAX bytes; returns its length. */
size_t helper_line_write(char *at, unsigned channel, const char *name, const char *password);

enum helper_reply {
    HELPER_REPLY_OK,
    HELPER_REPLY_ERR,
    HELPER_REPLY_BH,      /* the helper cannot tell */
    HELPER_REPLY_NONSENSE /* no line of the protocol */
};

/*
 * Reads an answer without its line feed. With `has_channel` it begins with a number, which
 * *channel gets. *message is the value of message=, as it stands in the line; without it,
 * all that follows.
 */
enum helper_reply helper_line_read(struct span line, bool has_channel, unsigned *channel,
                                   struct span *message);

#endif
