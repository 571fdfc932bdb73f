/*
 * Base64 (RFC 4648 section 4), for bytes in JSON that are no text, and for credentials.
 */
#ifndef SUNPROXY_BASE_BASE64_H
#define SUNPROXY_BASE_BASE64_H

#include "base/buf.h"

/* Appends the bytes, padded, on one line. A failure shows in buf_failed(). */
void base64_encode(struct buf *out, struct span bytes);

/*
 * Writes the bytes that a text encodes, at most `size`, and sets *len to their number. False if it
 * is not the one text that base64_encode() makes of them: padding, digits or unused bits are wrong;
 * or if they are more.
 */
bool base64_decode(struct span text, char *bytes, size_t size, size_t *len);

#endif
