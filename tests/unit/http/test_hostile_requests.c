/*
 * Ambiguous, malformed and oversized request heads, each with the section of the RFC that decides
 * and the outcome that it must have. 9110, 9112 and 3986 are RFCs; "strict" marks what the RFC
 * permits to repair and this parser refuses.
 */
#include "http/request_head.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define BYTES(text) (text), sizeof(text) - 1

/* A head with the fields given, in HTTP/1.1 with a Host. */
#define GET(fields) BYTES("GET /a HTTP/1.1\r\nHost: h\r\n" fields "\r\n")
#define POST(fields) BYTES("POST /a HTTP/1.1\r\nHost: h\r\n" fields "\r\n")
#define LINE(line) BYTES(line "\r\nHost: h\r\n\r\n")

struct row {
    const char *what;
    const char *section;
    const char *bytes;
    size_t len;
    unsigned status; /* of the refusal; 0: accepted, with ... */
    int64_t length;  /* ... this Content-Length; -1: none; CHUNKED */
};

#define NONE (-1)
#define CHUNKED (-2)

/* clang-format off */
static const struct row rows[] = {
    /* Content-Length and Transfer-Encoding */
    {"CL and TE", "9112 6.3 strict",
     POST("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), 400, 0},
    {"TE and CL", "9112 6.3 strict",
     POST("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), 400, 0},
    {"CL twice, different", "9112 6.3", POST("Content-Length: 5\r\nContent-Length: 6\r\n"), 400, 0},
    {"CL twice, equal", "9110 8.6 strict",
     POST("Content-Length: 5\r\nContent-Length: 5\r\n"), 400, 0},
    {"CL list, equal", "9110 8.6 strict", POST("Content-Length: 5, 5\r\n"), 400, 0},
    {"CL list, different", "9110 8.6", POST("Content-Length: 5, 6\r\n"), 400, 0},
    {"CL with a comma behind it", "9110 8.6", POST("Content-Length: 5,\r\n"), 400, 0},
    {"CL empty", "9110 8.6", POST("Content-Length:\r\n"), 400, 0},
    {"CL of blanks", "9110 8.6", POST("Content-Length: \t \r\n"), 400, 0},
    {"CL empty, then a number", "9110 8.6",
     POST("Content-Length:\r\nContent-Length: 5\r\n"), 400, 0},
    {"CL +5", "9110 8.6", POST("Content-Length: +5\r\n"), 400, 0},
    {"CL -5", "9110 8.6", POST("Content-Length: -5\r\n"), 400, 0},
    {"CL 0x5", "9110 8.6", POST("Content-Length: 0x5\r\n"), 400, 0},
    {"CL 5_0", "9110 8.6", POST("Content-Length: 5_0\r\n"), 400, 0},
    {"CL 5a", "9110 8.6", POST("Content-Length: 5a\r\n"), 400, 0},
    {"CL 5 5", "9110 8.6", POST("Content-Length: 5 5\r\n"), 400, 0},
    {"CL 5.0", "9110 8.6", POST("Content-Length: 5.0\r\n"), 400, 0},
    {"CL \"5\"", "9110 8.6", POST("Content-Length: \"5\"\r\n"), 400, 0},
    {"CL with a form feed", "9110 8.6", POST("Content-Length: \f5\r\n"), 400, 0},
    {"CL with a byte over 127", "9110 8.6", POST("Content-Length: 5\xa0\r\n"), 400, 0},
    {"CL 2^63", "9110 8.6", POST("Content-Length: 9223372036854775808\r\n"), 400, 0},
    {"CL 2^64 + 5", "9110 8.6", POST("Content-Length: 18446744073709551621\r\n"), 400, 0},
    {"CL 2^63 - 1", "9110 8.6", POST("Content-Length: 9223372036854775807\r\n"), 0, INT64_MAX},
    {"CL 010", "9110 8.6", POST("Content-Length: 010\r\n"), 0, 10},
    {"CL between blanks", "9110 5.5", POST("Content-Length: \t 5 \t\r\n"), 0, 5},
    {"CL 0", "9110 8.6", POST("Content-Length: 0\r\n"), 0, 0},
    {"CL with an underscore", "none", POST("Content_Length: 5\r\n"), 0, NONE},
    {"TE with an underscore", "none",
     POST("Transfer_Encoding: chunked\r\nContent-Length: 5\r\n"), 0, 5},
    {"TE in HTTP/1.0", "9112 6.1 strict",
     BYTES("POST /a HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"), 400, 0},
    {"TE and CL in HTTP/1.0", "9112 6.1",
     BYTES("POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"), 400, 0},
    {"TE gzip, chunked", "9112 6.1", POST("Transfer-Encoding: gzip, chunked\r\n"), 501, 0},
    {"TE gzip, then chunked", "9112 6.1",
     POST("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"), 501, 0},
    {"TE chunked, gzip", "9112 6.3", POST("Transfer-Encoding: chunked, gzip\r\n"), 400, 0},
    {"TE chunked, then gzip", "9112 6.3",
     POST("Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n"), 400, 0},
    {"TE gzip", "9112 6.3", POST("Transfer-Encoding: gzip\r\n"), 400, 0},
    {"TE identity", "9112 6.3", POST("Transfer-Encoding: identity\r\n"), 400, 0},
    {"TE chunked, identity", "9112 6.3", POST("Transfer-Encoding: chunked, identity\r\n"), 400, 0},
    {"TE ,chunked", "9112 6.1 strict", POST("Transfer-Encoding: ,chunked\r\n"), 400, 0},
    {"TE chunked,", "9112 6.1 strict", POST("Transfer-Encoding: chunked,\r\n"), 400, 0},
    {"TE empty", "9112 6.1 strict", POST("Transfer-Encoding:\r\n"), 400, 0},
    {"TE empty, then chunked", "9112 6.1 strict",
     POST("Transfer-Encoding:\r\nTransfer-Encoding: chunked\r\n"), 400, 0},
    {"TE chunked, chunked", "9112 6.1", POST("Transfer-Encoding: chunked, chunked\r\n"), 400, 0},
    {"TE chunked twice", "9112 6.1",
     POST("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400, 0},
    {"TE xchunked", "9112 7", POST("Transfer-Encoding: xchunked\r\n"), 400, 0},
    {"TE chunkedx", "9112 7", POST("Transfer-Encoding: chunkedx\r\n"), 400, 0},
    {"TE with a parameter", "9112 7", POST("Transfer-Encoding: chunked;a=b\r\n"), 400, 0},
    {"TE \"chunked\"", "9112 7", POST("Transfer-Encoding: \"chunked\"\r\n"), 400, 0},
    {"TE with VT", "9112 7", POST("Transfer-Encoding: \vchunked\r\n"), 400, 0},
    {"TE with FF", "9112 7", POST("Transfer-Encoding: chunked\f\r\n"), 400, 0},
    {"TE with A0", "9112 7", POST("Transfer-Encoding: chunked\xa0\r\n"), 400, 0},
    {"TE with NUL", "9112 7", POST("Transfer-Encoding: chunked\0\r\n"), 400, 0},
    {"TE chunked split by a blank", "9112 7", POST("Transfer-Encoding: chu nked\r\n"), 400, 0},
    {"TE Chunked between blanks", "9112 7", POST("transfer-ENCODING: \tChunKed \r\n"), 0, CHUNKED},

    /* lines */
    {"a blank before the colon", "9112 5.1", GET("A : b\r\n"), 400, 0},
    {"a tab before the colon", "9112 5.1", POST("Transfer-Encoding\t: chunked\r\n"), 400, 0},
    {"a folded line", "9112 5.2 strict", GET("A: b\r\n c\r\n"), 400, 0},
    {"a folded Transfer-Encoding", "9112 5.2 strict",
     POST("Transfer-Encoding:\r\n chunked\r\n"), 400, 0},
    {"a line that only folds", "9112 5.2 strict", GET("A: b\r\n \r\n"), 400, 0},
    {"a blank before the first field", "9112 2.2",
     BYTES("GET /a HTTP/1.1\r\n Host: h\r\n\r\n"), 400, 0},
    {"a tab before the first field", "9112 2.2",
     BYTES("GET /a HTTP/1.1\r\n\tA: b\r\nHost: h\r\n\r\n"), 400, 0},
    {"a line without colon", "9112 5", GET("Abc\r\n"), 400, 0},
    {"an empty name", "9112 5", GET(": b\r\n"), 400, 0},
    {"a name with a blank", "9110 5.1", GET("A b: c\r\n"), 400, 0},
    {"a name with a slash", "9110 5.1", GET("A/b: c\r\n"), 400, 0},
    {"a name with a byte over 127", "9110 5.1", GET("A\xe4: c\r\n"), 400, 0},
    {"a name with NUL", "9110 5.1", GET("A\0: c\r\n"), 400, 0},
    {"NUL in a value", "9110 5.5", GET("A: b\0c\r\n"), 400, 0},
    {"CR in a value", "9110 5.5", GET("A: b\rc\r\n"), 400, 0},
    {"CR at the end of a value", "9110 5.5", GET("A: b\r\r\n"), 400, 0},
    {"a field behind a bare CR", "9110 5.5", GET("A: b\rContent-Length: 5\r\n"), 400, 0},
    {"DEL in a value", "9110 5.5 strict", GET("A: b\x7f\r\n"), 400, 0},
    {"DEL in a long value", "9110 5.5 strict", GET("A: 0123\x7f" "56789012345\r\n"), 400, 0},
    {"ESC in a value", "9110 5.5 strict", GET("A: \x1b[2J\r\n"), 400, 0},
    {"bytes over 127 in a value", "9110 5.5", GET("A: \xc3\xa4\xff\r\n"), 0, NONE},
    {"an empty value", "9110 5.5", GET("A:\r\n"), 0, NONE},
    {"LF ends a field", "9112 2.2 strict", GET("A: b\n"), 400, 0},
    {"LF ends the request line", "9112 2.2 strict",
     BYTES("GET /a HTTP/1.1\nHost: h\r\n\r\n"), 400, 0},
    {"a blank and LF end the request line", "9112 2.2 strict",
     BYTES("GET /a HTTP/1.1 \nHost: h\r\n\r\n"), 400, 0},
    {"LF LF ends the head", "9112 2.2 strict", BYTES("GET /a HTTP/1.1\r\nHost: h\n\n"), 400, 0},
    {"LF ends the head", "9112 2.2 strict", BYTES("GET /a HTTP/1.1\r\nHost: h\r\n\n"), 400, 0},
    {"CR ends the head", "9112 2.2", BYTES("GET /a HTTP/1.1\r\nHost: h\r\n\rx"), 400, 0},
    {"CR ends the request line", "9112 2.2", BYTES("GET /a HTTP/1.1\rHost: h\r\n\r\n"), 400, 0},

    /* Host and authorities */
    {"no Host", "9112 3.2", BYTES("GET /a HTTP/1.1\r\nA: b\r\n\r\n"), 400, 0},
    {"no field", "9112 3.2", BYTES("GET /a HTTP/1.1\r\n\r\n"), 400, 0},
    {"no Host with a URL", "9112 3.2", BYTES("GET http://h/ HTTP/1.1\r\n\r\n"), 400, 0},
    {"no Host in HTTP/1.0", "9112 3.2", BYTES("GET /a HTTP/1.0\r\n\r\n"), 0, NONE},
    {"Host twice", "9112 3.2", GET("Host: i\r\n"), 400, 0},
    {"Host twice, equal", "9112 3.2", GET("host: h\r\n"), 400, 0},
    {"Host twice in HTTP/1.0", "9112 3.2",
     BYTES("GET /a HTTP/1.0\r\nHost: h\r\nHost: h\r\n\r\n"), 400, 0},
    {"Host with a comma", "9112 3.2", BYTES("GET /a HTTP/1.1\r\nHost: h, i\r\n\r\n"), 400, 0},
    {"Host empty", "9112 3.2", BYTES("GET /a HTTP/1.1\r\nHost:\r\n\r\n"), 400, 0},
    {"Host empty with a URL", "9112 3.2",
     BYTES("GET http://h/ HTTP/1.1\r\nHost:\r\n\r\n"), 0, NONE},
    {"Host with user information", "9110 4.2.4",
     BYTES("GET /a HTTP/1.1\r\nHost: u@h\r\n\r\n"), 400, 0},
    {"Host with a path", "9112 3.2", BYTES("GET /a HTTP/1.1\r\nHost: h/b\r\n\r\n"), 400, 0},
    {"Host with a blank", "9112 3.2", BYTES("GET /a HTTP/1.1\r\nHost: h i\r\n\r\n"), 400, 0},
    {"Host with a query", "9112 3.2", BYTES("GET /a HTTP/1.1\r\nHost: h?x\r\n\r\n"), 400, 0},
    {"Host with a byte over 127", "3986 3.2.2",
     BYTES("GET /a HTTP/1.1\r\nHost: \xc3\xa4\r\n\r\n"), 400, 0},
    {"Host with an escape", "3986 3.2.2 strict",
     BYTES("GET /a HTTP/1.1\r\nHost: h%61\r\n\r\n"), 400, 0},
    {"Host with port 0", "9112 3.2", BYTES("GET /a HTTP/1.1\r\nHost: h:0\r\n\r\n"), 400, 0},
    {"Host with port 65536", "9112 3.2", BYTES("GET /a HTTP/1.1\r\nHost: h:65536\r\n\r\n"), 400, 0},
    {"Host with port 000080", "9112 3.2 strict",
     BYTES("GET /a HTTP/1.1\r\nHost: h:000080\r\n\r\n"), 400, 0},
    {"Host with port x", "9112 3.2", BYTES("GET /a HTTP/1.1\r\nHost: h:x\r\n\r\n"), 400, 0},
    {"Host with port +80", "9112 3.2", BYTES("GET /a HTTP/1.1\r\nHost: h:+80\r\n\r\n"), 400, 0},
    {"Host with two ports", "9112 3.2", BYTES("GET /a HTTP/1.1\r\nHost: h:80:80\r\n\r\n"), 400, 0},
    {"Host of a port alone", "9112 3.2", BYTES("GET /a HTTP/1.1\r\nHost: :80\r\n\r\n"), 400, 0},
    {"Host with an open bracket", "3986 3.2.2",
     BYTES("GET /a HTTP/1.1\r\nHost: [::1\r\n\r\n"), 400, 0},
    {"Host with a zone", "3986 3.2.2",
     BYTES("GET /a HTTP/1.1\r\nHost: [fe80::1%25lo]\r\n\r\n"), 400, 0},
    {"Host with a name in brackets", "3986 3.2.2",
     BYTES("GET /a HTTP/1.1\r\nHost: [h]\r\n\r\n"), 400, 0},
    {"Host malformed beside a URL", "9112 3.2",
     BYTES("GET http://h/ HTTP/1.1\r\nHost: a b\r\n\r\n"), 400, 0},
    {"another Host beside a URL", "9112 3.2.2",
     BYTES("GET http://i/ HTTP/1.1\r\nHost: h\r\n\r\n"), 0, NONE},

    /* targets */
    {"a URL with user information", "9110 4.2.4", LINE("GET http://u:w@h/ HTTP/1.1"), 400, 0},
    {"a URL without host", "9110 4.2.1", LINE("GET http:///a HTTP/1.1"), 400, 0},
    {"a URL of a port alone", "9110 4.2.1", LINE("GET http://:80/a HTTP/1.1"), 400, 0},
    {"a URL with a bad port", "9110 4.2", LINE("GET http://h:80x/ HTTP/1.1"), 400, 0},
    {"a URL with a backslash", "3986 3.2", LINE("GET http://h\\@i/ HTTP/1.1"), 400, 0},
    {"a URL with one slash", "9112 3.2.2", LINE("GET http:/h/a HTTP/1.1"), 400, 0},
    {"a URL of another scheme", "9112 3.2.2", LINE("GET ftp://h/ HTTP/1.1"), 400, 0},
    {"a file", "9112 3.2.2", LINE("GET file:///etc/passwd HTTP/1.1"), 400, 0},
    {"a URL with a fragment", "9112 3.2", LINE("GET http://h/a#b HTTP/1.1"), 400, 0},
    {"a path with a fragment", "9112 3.2", LINE("GET /a#b HTTP/1.1"), 400, 0},
    {"a relative path", "9112 3.2", LINE("GET a HTTP/1.1"), 400, 0},
    {"a query alone", "9112 3.2", LINE("GET ?a HTTP/1.1"), 400, 0},
    {"a host and port with GET", "9112 3.2.3", LINE("GET h:80 HTTP/1.1"), 400, 0},
    {"* with GET", "9112 3.2.4", LINE("GET * HTTP/1.1"), 400, 0},
    {"* with OPTIONS", "9112 3.2.4", LINE("OPTIONS * HTTP/1.1"), 0, NONE},
    {"*a with OPTIONS", "9112 3.2.4", LINE("OPTIONS *a HTTP/1.1"), 400, 0},
    {"a target with NUL", "9112 3.2", LINE("GET /a\0b HTTP/1.1"), 400, 0},
    {"a target with a tab", "9112 3.2", LINE("GET /a\tb HTTP/1.1"), 400, 0},
    {"a target with CR", "9112 3.2", LINE("GET /a\rb HTTP/1.1"), 400, 0},
    {"a target with DEL", "9112 3.2", LINE("GET /a\x7f HTTP/1.1"), 400, 0},
    {"a target with bytes over 127", "9112 3.2 lax: they are encoded",
     LINE("GET /\xc3\xa4?\xff HTTP/1.1"), 0, NONE},
    {"a URL with bytes over 127 in its path", "9112 3.2 lax: they are encoded",
     LINE("GET http://h/\xc3\xa4 HTTP/1.1"), 0, NONE},
    {"a URL with bytes over 127 in its host", "9112 3.2.2", LINE("GET http://\xc3\xa4/ HTTP/1.1"),
     400, 0},
    {"CONNECT with bytes over 127", "9112 3.2.3", LINE("CONNECT \xc3\xa4:443 HTTP/1.1"), 400, 0},
    {"bytes over 127 in front of a path", "9112 3.2", LINE("GET \xc3\xa4/ HTTP/1.1"), 400, 0},
    {"a target with a blank", "9112 3.2", LINE("GET /a b HTTP/1.1"), 400, 0},
    {"CONNECT without port", "9110 9.3.6", LINE("CONNECT h HTTP/1.1"), 400, 0},
    {"CONNECT with an empty port", "9110 9.3.6", LINE("CONNECT h: HTTP/1.1"), 400, 0},
    {"CONNECT to port 0", "9110 9.3.6", LINE("CONNECT h:0 HTTP/1.1"), 400, 0},
    {"CONNECT with a path", "9110 9.3.6", LINE("CONNECT h:443/ HTTP/1.1"), 400, 0},
    {"CONNECT with a URL", "9110 9.3.6", LINE("CONNECT http://h:443 HTTP/1.1"), 400, 0},
    {"CONNECT with user information", "9110 9.3.6", LINE("CONNECT u@h:443 HTTP/1.1"), 400, 0},
    {"CONNECT with CL", "9110 9.3.6 strict",
     BYTES("CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\nContent-Length: 1\r\n\r\n"), 400, 0},
    {"CONNECT with a CL of 0", "9110 9.3.6: it states no content",
     BYTES("CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\nContent-Length: 0\r\n\r\n"), 0, 0},
    {"CONNECT with TE", "9110 9.3.6 strict",
     BYTES("CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\nTransfer-Encoding: chunked\r\n\r\n"), 400, 0},
    {"CONNECT", "9112 3.2.3", LINE("CONNECT h:443 HTTP/1.1"), 0, NONE},
    {"connect, another method", "9110 9.1", LINE("connect h:443 HTTP/1.1"), 400, 0},

    /* request lines */
    {"no method", "9112 3", LINE(" /a HTTP/1.1"), 400, 0},
    {"a method with a colon", "9110 9.1", LINE("GE:T /a HTTP/1.1"), 400, 0},
    {"a method with NUL", "9110 9.1", LINE("GET\0 /a HTTP/1.1"), 400, 0},
    {"a tab behind the method", "9112 3 strict", LINE("GET\t/a HTTP/1.1"), 400, 0},
    {"two blanks behind the method", "9112 3 strict", LINE("GET  /a HTTP/1.1"), 400, 0},
    {"two blanks behind the target", "9112 3 strict", LINE("GET /a  HTTP/1.1"), 400, 0},
    {"a blank behind the version", "9112 3 strict", LINE("GET /a HTTP/1.1 "), 400, 0},
    {"a method alone", "9112 3", LINE("GET"), 400, 0},
    {"HTTP/0.9", "9112 2.3", BYTES("GET /a\r\n"), 400, 0},
    {"a blank and no version", "9112 3", LINE("GET /a "), 400, 0},
    {"HTTP/0.9 by name", "9112 2.3", LINE("GET /a HTTP/0.9"), 400, 0},
    {"HTTP/1.1x", "9112 2.3", LINE("GET /a HTTP/1.1x"), 400, 0},
    {"HTTP/01.1", "9112 2.3", LINE("GET /a HTTP/01.1"), 400, 0},
    {"HTTP/1.10", "9112 2.3", LINE("GET /a HTTP/1.10"), 400, 0},
    {"HTTP/1", "9112 2.3", LINE("GET /a HTTP/1"), 400, 0},
    {"HTTP/1,1", "9112 2.3", LINE("GET /a HTTP/1,1"), 400, 0},
    {"http/1.1", "9112 2.3", LINE("GET /a http/1.1"), 400, 0},
    {"ICY/1.1", "9112 2.3", LINE("GET /a ICY/1.1"), 400, 0},
    {"HTTP/1.2", "9110 2.5", LINE("GET /a HTTP/1.2"), 0, NONE},
    {"HTTP/2.0", "9110 15.6.6", LINE("GET /a HTTP/2.0"), 505, 0},
    {"HTTP/3.0", "9110 15.6.6", LINE("GET /a HTTP/3.0"), 505, 0},
    {"the preface of HTTP/2", "9113 3.4", BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505, 0},
    {"a handshake of TLS", "9112 3", BYTES("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), 400, 0},
    {"a call of RPC", "9112 3", BYTES("\x80\x00\x00\x28\x00\x00\x00\x01"), 400, 0},
    {"one empty line first", "9112 2.2", LINE("\r\nGET /a HTTP/1.1"), 0, NONE},
    {"two empty lines first", "9112 2.2 strict", LINE("\r\n\r\nGET /a HTTP/1.1"), 400, 0},
    {"LF first", "9112 2.2 strict", LINE("\nGET /a HTTP/1.1"), 400, 0},
    {"CR first", "9112 2.2", LINE("\rGET /a HTTP/1.1"), 400, 0},
    {"an unknown method", "9110 9.1", LINE("M-SEARCH /a HTTP/1.1"), 0, NONE},
    {"a method of 65 bytes", "9112 3",
     LINE("ABCDEFGHIJABCDEFGHIJABCDEFGHIJABCDEFGHIJABCDEFGHIJABCDEFGHIJABCDE /a HTTP/1.1"), 501, 0},

    /* bodies and expectations */
    {"POST in HTTP/1.0 without CL", "9110 15.5.12", BYTES("POST /a HTTP/1.0\r\n\r\n"), 411, 0},
    {"PUT in HTTP/1.0 without CL", "9110 15.5.12", BYTES("PUT /a HTTP/1.0\r\n\r\n"), 411, 0},
    {"POST in HTTP/1.0 with CL", "9112 6.3",
     BYTES("POST /a HTTP/1.0\r\nContent-Length: 5\r\n\r\n"), 0, 5},
    {"POST without body", "9112 6.3", POST(""), 0, NONE},
    {"GET with CL", "9110 9.3.1", GET("Content-Length: 5\r\n"), 0, 5},
    {"GET chunked", "9110 9.3.1", GET("Transfer-Encoding: chunked\r\n"), 0, CHUNKED},
    {"Expect of something else", "9110 10.1.1",
     POST("Expect: 200-ok\r\nContent-Length: 5\r\n"), 417, 0},
    {"Expect of something else, too", "9110 10.1.1",
     POST("Expect: 100-continue, x\r\nContent-Length: 5\r\n"), 417, 0},
    {"Expect 100-continue", "9110 10.1.1",
     POST("Expect: 100-Continue\r\nContent-Length: 5\r\n"), 0, 5},
};
/* clang-format on */

static void
check_row(const struct row *row, enum http_head_step step, const struct http_request *request,
          const struct http_refusal *refusal, const char *how)
{
    if (row->status) {
        ck_assert_msg(step == HTTP_HEAD_REFUSED && refusal->status == row->status,
                      "%s (%s, %s): step %d, status %u (%s)", row->what, row->section, how, step,
                      refusal->status, refusal->reason ? refusal->reason : "");
        ck_assert(refusal->reason && refusal->reason[0]);
        return;
    }
    ck_assert_msg(step == HTTP_HEAD_COMPLETE, "%s (%s, %s): step %d, %u %s", row->what,
                  row->section, how, step, refusal->status, refusal->reason ? refusal->reason : "");
    ck_assert_msg(request->content_length == (row->length == CHUNKED ? -1 : row->length), "%s",
                  row->what);
    ck_assert_msg(request->chunked == (row->length == CHUNKED), "%s", row->what);
    ck_assert_uint_eq(request->head_len, row->len);
}

START_TEST(each_has_its_outcome)
{
    struct http_head_limits limits;

    http_head_limits_default(&limits);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_refusal refusal = {0};
        struct http_request request;
        size_t searched = 0;
        /* In memory of exactly its size, so that a sanitizer sees a byte read too far. */
        char *bytes = malloc(rows[i].len);

        ck_assert_ptr_nonnull(bytes);
        memcpy(bytes, rows[i].bytes, rows[i].len);
        check_row(&rows[i],
                  http_request_head_read(&request, span_of(bytes, rows[i].len), &searched, &limits,
                                         &refusal),
                  &request, &refusal, "at once");
        free(bytes);
    }
}
END_TEST

/* However the bytes arrive, and whatever the bytes behind them. */
START_TEST(the_outcome_does_not_depend_on_the_pieces)
{
    struct http_head_limits limits;

    http_head_limits_default(&limits);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        for (size_t step = 1; step < 9; step++) {
            enum http_head_step result = HTTP_HEAD_PARTIAL;
            struct http_refusal refusal = {0};
            struct http_request request;
            size_t searched = 0, len = 0;
            char how[32];

            while (result == HTTP_HEAD_PARTIAL && len < rows[i].len) {
                len = len + step < rows[i].len ? len + step : rows[i].len;
                result = http_request_head_read(&request, span_of(rows[i].bytes, len), &searched,
                                                &limits, &refusal);
            }
            if (result == HTTP_HEAD_PARTIAL) {
                /* It was begun before its fault showed, and its end has not come: the next one. */
                char *more = malloc(rows[i].len + 4);

                ck_assert_msg(rows[i].status, "%s", rows[i].what);
                memcpy(more, rows[i].bytes, rows[i].len);
                memcpy(more + rows[i].len, "\r\n\r\n", 4);
                result = http_request_head_read(&request, span_of(more, rows[i].len + 4), &searched,
                                                &limits, &refusal);
                free(more);
            }
            snprintf(how, sizeof(how), "in pieces of %zu", step);
            check_row(&rows[i], result, &request, &refusal, how);
        }
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/request_head: hostile requests");
    TCase *tests = tcase_create("hostile");

    tcase_add_test(tests, each_has_its_outcome);
    tcase_add_test(tests, the_outcome_does_not_depend_on_the_pieces);
    suite_add_tcase(suite, tests);
    return suite;
}
