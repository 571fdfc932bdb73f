/*
 * Base64 (RFC 4648 section 4), for bytes in JSON that are no text.
 */
#ifndef SUNPROXY_BASE_BASE64_H
#define SUNPROXY_BASE_BASE64_H

#include "base/buf.h"

/* Appends the bytes, padded, on one line. A failure shows in buf_failed(). */
void base64_encode(struct buf *out, struct span bytes);

#endif
