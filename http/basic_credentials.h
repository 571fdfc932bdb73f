/*
 * Credentials of the scheme Basic (RFC 7617), as a request to a proxy states them in
 * Proxy-Authorization (RFC 9110 section 11.7.2). Pure.
 */
#ifndef SUNPROXY_HTTP_BASIC_CREDENTIALS_H
#define SUNPROXY_HTTP_BASIC_CREDENTIALS_H

#include "base/span.h"

enum http_credentials_found {
    HTTP_CREDENTIALS_NONE, /* there is no such field */
    HTTP_CREDENTIALS_ONE,
    HTTP_CREDENTIALS_SEVERAL, /* recipients may read different ones */
};

/* The value of the field with this name among the lines, without blanks at its ends. */
enum http_credentials_found http_credentials_find(struct span lines, struct span name,
                                                  struct span *value);

enum { HTTP_BASIC_BYTES = 768 }; /* of a name and a password, with the colon */

struct http_basic {
    struct span name; /* at least one byte */
    struct span password;
};

/* Bytes of a name and of a password, at most; crypt(3) takes as many. */
enum { HTTP_BASIC_NAME_MAX = 255, HTTP_BASIC_PASSWORD_MAX = 511 };

/*
 * Can a user have this name, or this password? Each is UTF-8 without control characters, and has at
 * least one byte; a name has no colon.
 */
bool http_basic_is_name(struct span name);
bool http_basic_is_password(struct span password);

/*
 * Reads such a value into `bytes`, to which the spans point. False: the scheme is another one, or
 * the value is not base64 of a name, a colon and a password, in UTF-8 without control characters
 * (RFC 7617 section 2), or it is too long.
 */
bool http_basic_read(struct span value, char bytes[HTTP_BASIC_BYTES], struct http_basic *basic);

#endif
