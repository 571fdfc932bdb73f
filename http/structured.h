/*
 * Dictionaries of Structured Fields (RFC 8941 section 3.2), the form of CDN-Cache-Control (RFC 9213
 * section 2.1). The parser follows the algorithms of section 4.2: what they reject makes the whole
 * field invalid, so a caller reads a field to its end before it uses any member. Nothing is copied
 * and nothing is allocated. Safe on any thread.
 */
#ifndef SUNPROXY_HTTP_STRUCTURED_H
#define SUNPROXY_HTTP_STRUCTURED_H

#include <stdint.h>

#include "base/span.h"

enum http_item_type {
    HTTP_ITEM_INTEGER,
    HTTP_ITEM_DECIMAL,
    HTTP_ITEM_STRING,
    HTTP_ITEM_TOKEN,
    HTTP_ITEM_BYTES,
    HTTP_ITEM_BOOLEAN,
    HTTP_ITEM_INNER_LIST,
};

struct http_dictionary_member {
    struct span key;
    enum http_item_type type;
    int64_t integer;  /* of HTTP_ITEM_INTEGER: at most 15 digits; of HTTP_ITEM_BOOLEAN: 0 or 1 */
    struct span text; /* of HTTP_ITEM_STRING: between the quotes, escapes kept */
};

enum http_dictionary_step { HTTP_DICTIONARY_MEMBER, HTTP_DICTIONARY_END, HTTP_DICTIONARY_INVALID };

/*
 * Takes the next member off the value of one field line; parameters are checked and dropped. A key
 * may come again, and its last member counts (section 4.2.2), which is the caller's to apply.
 */
enum http_dictionary_step http_dictionary_next(struct span *rest,
                                               struct http_dictionary_member *member);

#endif
