#!/usr/bin/env python3
"""Writes the seed corpus of the fuzz targets: small valid inputs of each kind that a target reads.

    tests/fuzz/seeds.py [FOLDER]        default: tests/fuzz/corpus

What is there already under other names (findings) stays.
"""
import bz2
import gzip
import os
import sqlite3
import struct
import sys
import tempfile
import zlib
from pathlib import Path

PROGRAM = 0x23451111


def words(*values):
    return b"".join(struct.pack(">I", v & 0xFFFFFFFF) for v in values)


def opaque(data):
    return words(len(data)) + data + b"\0" * (-len(data) % 4)


def hyper(value):
    return struct.pack(">Q", value)


def fragment(data, last=True):
    return words(len(data) | (0x80000000 if last else 0)) + data


def call(version, procedure, arguments=b"", credential=None, program=PROGRAM):
    return words(7, 0, 2, program, version, procedure) + (credential or words(0, 0)) + words(0, 0) + arguments


def auth_sys():
    body = words(1) + opaque(b"host") + words(1000, 1000, 2, 4, 24)
    return words(1) + opaque(body)


URL = b"http://example.com/a"
FETCH = opaque(URL) + opaque(b"Accept: text/html\r\n") + words(3)
CALLS = {
    "v1-null": call(1, 0),
    "v1-fetch": call(1, 1, opaque(URL)),
    "v2-get": call(2, 1, FETCH),
    "v2-get-auth-sys": call(2, 1, FETCH, auth_sys()),
    "v2-stat": call(2, 2),
    "v2-purge": call(2, 3, words(1) + opaque(URL)),
    "v2-set": call(2, 4, opaque(b"lru-k:k=3") + words(1) + hyper(100) + hyper(0) + words(2, 1)),
    "auth-tls": call(2, 2, b"", words(7, 0)),
    "other-program": call(1, 0, program=100000),
}

PAGE = (words(200, 1, 1, 0) + hyper(10) + hyper(5) + words(1) + words(1) + opaque(URL) + opaque(URL)
        + opaque(b"Content-Type: text/html\r\n") + opaque(b"<html></html>"))
ACCEPTED = words(7, 1, 0, 0, 0, 0)
REPLIES = {
    "page-v1": (0, ACCEPTED + opaque(b"<html></html>")),
    "page-v2": (1, ACCEPTED + words(0) + PAGE),
    "failure": (1, ACCEPTED + words(7) + opaque(b"timed out")),
    "stats": (2, ACCEPTED + words(2) + opaque(b"software") + opaque(b"sunproxyd") + opaque(b"policy")
              + opaque(b"lru") + words(2) + opaque(b'requests{outcome="hit"}') + words(0) + hyper(1)
              + opaque(b"cache_pages") + words(1) + hyper(2)),
    "purge": (3, ACCEPTED + words(0) + hyper(3)),
    "set": (4, ACCEPTED + words(0) + hyper(3)),
    "mismatch": (5, words(7, 1, 1, 0, 2, 2)),
    "auth-error": (5, words(7, 1, 1, 1, 5)),
    "prog-mismatch": (5, words(7, 1, 0, 0, 0, 2, 1, 2)),
    "framed": (1, fragment(ACCEPTED + words(0)[:2], last=False) + fragment(words(0)[2:] + PAGE)),
}

URLS = {
    "plain": b"http://example.com/",
    "port-query": b"https://example.com:8443/a/b?c=d&e#f",
    "user": b"http://user:password@example.com/",
    "ipv6": b"http://[2001:db8::1%25eth0]:80/",
    "numbers": b"http://0x7f.1/",
    "idn": "http://bücher.example/".encode(),
    "location-relative": b"http://example.com/a/b\n../c?d",
    "location-absolute": b"http://example.com/\nhttps://other.example/x",
    "location-network": b"https://example.com/\n//other.example:81/x",
    "location-number": b"http://example.com/\nhttp://%31%30.0.0.1/",
    "file": b"file:///etc/passwd",
}

HEADERS = {
    "request": b"\1Accept: */*\r\nCookie: a=b\r\nAuthorization: Basic x\r\n",
    "request-host": b"\1Host: example.com\r\n",
    "answer": b"\0Content-Type: text/html\r\nContent-Length: 5\r\nConnection: close, x-hop\r\nX-Hop: 1\r\n",
    "answer-folded": b"\0Set-Cookie: a=b;\r\n path=/\r\nLocation: /next\r\n",
    "answer-coded": b"\0Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
    "answer-twice": b"\0Content-Length: 5\r\nContent-Length: 6\r\n",
}

CONFIGS = {
    "small": b"# a comment\nport = 4711\npolicy = lru-k:k=3\ncapacity-bytes = 512M\n",
    "lists": b"allow-net = 10.0.0.0/8\nallow-net = fd00::/8\nlisten = 127.0.0.1\nadmin-uid = 1000\n",
    "times": b"idle-timeout = 5m\nfetch-timeout=500ms\nsocket-mode = 0660\nlog-format = json\n",
    "bad-key": b"colour = blue\n",
    "bad-value": b"port = 70000\n",
}

COMBINED = (b'192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a.gif HTTP/1.0" 200 2326 "-" "x"\n'
            b'192.0.2.1 - - [10/Oct/2000:13:55:37 -0700] "GET /b.gif HTTP/1.0" 304 0 "-" "x"\n')
SQUID = (b"1066036250.603   310 129.188.154.200 TCP_MISS/200 8000 GET http://www.example.com/ - "
         b"DIRECT/192.0.2.1 text/html\n"
         b"1066036251.603     1 129.188.154.200 TCP_HIT/200 8000 GET http://www.example.com/ - NONE/- text/html\n")
HAR = (b'{"log":{"version":"1.2","entries":[{"startedDateTime":"2020-01-01T00:00:00.000Z","time":1,'
       b'"request":{"method":"GET","url":"http://a.example/"},"response":{"status":200,'
       b'"bodySize":10,"content":{"size":10,"mimeType":"text/html"}}}]}}')
ZEEK = (b"#separator \\x09\n#fields\tts\tmethod\thost\turi\tresponse_body_len\tstatus_code\n"
        b"#types\ttime\tstring\tstring\tstring\tcount\tcount\n"
        b"1.5\tGET\ta.example\t/x\t10\t200\n2.5\tGET\ta.example\t/x\t10\t200\n")
TABLE = b"time,url,size\n1,http://a.example/,10\n2,http://b.example/,20\n"
LIST = b"http://a.example/\nhttp://b.example/\nhttp://a.example/\n"
ORACLE = b"".join(struct.pack("<IQIq", i, i % 3, 100 + i, i + 4 if i < 3 else -1) for i in range(6))
WC98 = b"".join(struct.pack(">IIIIBBBB", 894000000 + i, 1, i % 3, 500, 0, 2, 1, 0) for i in range(6))
CACHE2K = b"".join(struct.pack(">I", i % 5 + 1) for i in range(13))
SUNPROXYD = (b"2024-05-31T12:30:00.123Z\t192.0.2.1\thttp://a.example/\\x20x\thit\t200\t1024\t57\thttp://b.example/\n"
             b"2024-05-31T12:30:01.123Z\tunix:1000\thttp://c.example/\ttimed_out\t-\t0\t57\t-\n")
SUNPROXYD_JSON = (b'{"time":"2024-05-31T12:30:00.123Z","client":"192.0.2.1","url":"http://a.example/\\u00e9",'
                  b'"outcome":"miss","status":200,"bytes":10,"us":5,"victims":["http://b.example/"]}\n')
CADDY = (b'{"level":"info","ts":1646861401.52,"logger":"http.log.access","request":{"method":"GET",'
         b'"host":"a.example","uri":"/x?y","tls":{"version":772}},"size":10900,"status":200}\n')
TRAEFIK = (b'{"DownstreamContentSize":2,"DownstreamStatus":200,"RequestHost":"a.example","RequestMethod":"GET",'
           b'"RequestPath":"/x","RequestPort":"-","RequestScheme":"http","StartUTC":"2021-08-03T15:09:40.9453Z"}\n')
NGINX_JSON = (b'{"time_local":"31/May/2024:12:30:00 +0200","remote_addr":"192.0.2.1","request":"GET /a?b HTTP/1.1",'
              b'"status":"200","body_bytes_sent":"612"}\n'
              b'{"msec":"1717158600.5","http_host":"a.example","scheme":"https","request_method":"GET","uri":"/x",'
              b'"args":"q=1","status":200,"upstream_cache_status":"HIT"}\n')
LTSV = (b"time:[28/Feb/2013:12:00:00 +0900]\thost:192.0.2.1\treq:GET /list HTTP/1.1\tstatus:200\tsize:5316\t"
        b"vhost:a.example\tcache:HIT\n")
W3C = (b"#Version: 1.0\n#Fields: date time cs-method cs-uri-stem cs-uri-query s-port cs-host sc-status sc-bytes\n"
       b"2024-05-31 12:30:00 GET /a.htm q=1 443 a.example 200 15\n2024-05-31 12:30:01 GET /b - 80 - 404 -\n")
S3 = (b'79a59 bucket [06/Feb/2019:00:00:38 +0000] 192.0.2.3 - 3E57 REST.GET.OBJECT a.png "GET /a.png HTTP/1.1" '
      b'200 - 113 113 7 6 "-" "agent" - s9 SigV4 ECDHE AuthHeader bucket.s3.example TLSv1.2 - -\n')
ALB = (b'https 2018-07-02T22:23:00.186641Z app/lb/50dc 192.0.2.1:2817 10.0.0.1:80 0.000 0.001 0.000 200 200 34 366 '
       b'"GET https://a.example:443/x HTTP/1.1" "curl/7.46.0" - -\n')
HAPROXY = (b'Feb  6 12:14:14 h haproxy[1]: 192.0.2.2:33317 [06/Feb/2009:12:14:14.655] in static/srv1 10/0/30/69/109 200 '
           b'2750 - - ---- 1/1/1/1/0 0/0 {a.example|x} {} "GET /index.html HTTP/1.1"\n')
IDS = b"42932745\n42932746\n42932745\n"
ADAPTSIZE = b"1 5 100\n2 6 200\n3 5 100\n"


def database(*statements):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "db")
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA page_size = 512")
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()
        return Path(path).read_bytes()


CHROME = database(
    "CREATE TABLE urls(id INTEGER PRIMARY KEY, url LONGVARCHAR, title LONGVARCHAR, hidden INTEGER)",
    "CREATE TABLE visits(id INTEGER PRIMARY KEY, url INTEGER NOT NULL, visit_time INTEGER NOT NULL,"
    " from_visit INTEGER, transition INTEGER DEFAULT 0)",
    "INSERT INTO urls VALUES (1, 'http://a.example/', 'A', 0), (2, 'http://b.example/', 'B', 0)",
    "INSERT INTO visits VALUES (1, 1, 13000000000000000, 0, 0), (2, 2, 13000000001000000, 1, 0),"
    " (3, 1, 13000000002000000, 0, 0)")
FIREFOX = database(
    "CREATE TABLE moz_places(id INTEGER PRIMARY KEY, url LONGVARCHAR)",
    "CREATE TABLE moz_historyvisits(id INTEGER PRIMARY KEY, from_visit INTEGER, place_id INTEGER,"
    " visit_date INTEGER, visit_type INTEGER)",
    "INSERT INTO moz_places VALUES (1, 'http://a.example/')",
    "INSERT INTO moz_historyvisits VALUES (1, 0, 1, 1300000000000000, 1), (2, 0, 1, 1300000001000000, 1)")
SAFARI = database(
    "CREATE TABLE history_items(id INTEGER PRIMARY KEY, url TEXT)",
    "CREATE TABLE history_visits(id INTEGER PRIMARY KEY, history_item INTEGER, visit_time REAL,"
    " redirect_source INTEGER, redirect_destination INTEGER)",
    "INSERT INTO history_items VALUES (1, 'http://a.example/')",
    "INSERT INTO history_visits VALUES (1, 1, 700000000.5, NULL, 2), (2, 1, 700000001.5, 1, NULL)")

REQUEST_DB = database(
    "CREATE TABLE requests(id INTEGER PRIMARY KEY, time_us INTEGER, method TEXT, url TEXT, outcome TEXT,"
    " status INTEGER, bytes INTEGER)",
    "INSERT INTO requests VALUES (1, 1300000000000002, 'GET', 'http://a.example/\\x20', 'miss', 200, 9),"
    " (2, 1300000000000001, 'GET', 'http://b.example/', 'timeout', NULL, 0)",
    "PRAGMA application_id = 0x73756e70", "PRAGMA user_version = 1")

# The number of formats in trace/formats/formats.c.
FORMATS = 24

# By content (first byte 0), with default options and with all of them.
TRACES = {name: b"\0\0" + data for name, data in {
    "combined": COMBINED, "squid": SQUID, "har": HAR, "zeek": ZEEK, "table": TABLE, "urls": LIST,
    "oracle": ORACLE, "wc98": WC98, "cache2k": CACHE2K, "adaptsize": ADAPTSIZE, "chrome": CHROME,
    "firefox": FIREFOX, "safari": SAFARI, "request-db": REQUEST_DB, "sunproxyd": SUNPROXYD, "sunproxyd-json": SUNPROXYD_JSON, "caddy": CADDY,
    "traefik": TRAEFIK, "nginx-json": NGINX_JSON, "ltsv": LTSV, "w3c": W3C, "s3": S3, "alb": ALB, "haproxy": HAPROXY,
    "ids": IDS, "urls-gzip": gzip.compress(LIST, mtime=0), "urls-bzip2": bz2.compress(LIST)}.items()}
TRACES.update({"%s-all" % name: b"\0\x0b" + data for name, data in {
    "combined": COMBINED, "squid": SQUID, "chrome": CHROME}.items()})
# Each format by its number, on the same table.
TRACES.update({"format-%02d" % i: bytes([i, 0]) + TABLE for i in range(1, FORMATS + 1)})
TRACES["table-columns"] = bytes([FORMATS + 1, 0]) + TABLE
# The format strings of tests/fuzz/trace.c.
TRACES.update({"pattern-%d" % i: bytes([FORMATS + 2 + i, 3]) + text for i, text in enumerate((
    b'[::1]:8080 192.0.2.1 - - [01/Jan/2024:00:00:01 +0000] "GET /a\\"b HTTP/1.1" 200 7 "x \\x22"\n'
    b'a.test:443 ::1 - - [01/Jan/2024:00:00:02 +0000] "-" 408 - "-"\n',
    b"2024-01-01T00:00:01.250000|GET|http://a.test/\\x7c\\xff|hit|200|5\n"
    b"2024-01-01T00:00:02.000000|CONNECT|b.test:443|tunnel|-|6\n",
    b"1704067201500 a.test /x?y=\\x20 -\n1704067201500 [::1] /x http://a.test/\n"))})

STORING = {
    "max-age": b"Date: Sun, 09 Sep 2001 01:46:40 GMT\r\nAge: 5\r\nCache-Control: public, max-age=60, s-maxage=\"9\"\r\n",
    "expires": b"Date: Sun, 09 Sep 2001 01:46:40 GMT\r\nExpires: Sunday, 09-Sep-01 02:46:40 GMT\r\n",
    "private": b'Cache-Control: private="set-cookie", no-cache="a, b"\r\n',
    "cookie": b"Set-Cookie: a=b; path=/\r\nVary: *\r\n",
    "vary": b"Vary: Accept-Encoding,, *\r\nExpires: 0\r\n",
    "none": b"Content-Type: text/html\r\n",
}

CACHE_CONTROLS = {
    "response": b'Cache-Control: public, max-age=60, no-cache="a, b", stale-while-revalidate=5\r\n'
                b'Cache-Control: s-maxage="9", private=x, must-understand\r\n',
    "request": b"Cache-Control: max-age=0, min-fresh=5, max-stale, only-if-cached\r\nPragma: no-cache\r\n",
    "cdn": b'CDN-Cache-Control: max-age=60;x="y", no-store=?0, a=(1 2.5 :YQ==:);b\r\nCDN-Cache-Control: private\r\n',
    "cdn-invalid": b'CDN-Cache-Control: max-age="60"\r\nCache-Control: max-age=\'60\'\r\n',
}

CONDITIONS = {
    "etag": b'If-None-Match: "a", W/"b"\r\n\0ETag: W/"b"\r\nContent-Type: text/html\r\n',
    "date": b"If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\nCache-Control: max-age=5\r\n"
            b"\0Last-Modified: Sunday, 06-Nov-94 08:49:37 GMT\r\nDate: Sun, 06 Nov 1994 09:49:37 GMT\r\n",
    "origin": b'If-Match: *\r\nIf-Unmodified-Since: x\r\nIf-Range: "a"\r\n\0ETag: "a"\r\n',
    "odd": b'If-None-Match: "a\\", "b,c"\r\nConnection: x, etag\r\nX: 1\r\n\0ETag: a, "b"\r\nAge: 5\r\nX: 2\r\n',
}

RANGES = {
    "one": b"\x0a\x00bytes=0-1\nbytes 0-1/10\n",
    "several": b"\xff\x05bytes=0-0, 5-9 ,-1\nbytes=5-\nbytes=-5\n",
    "overlapping": b"\xff\x01bytes=0-5,3-9\nbytes */5\nbytes 0-5/*\n",
    "large": b"\xff\x36bytes=9223372036854775806-9223372036854775807\nbytes 0-9223372036854775806/*\n",
}

VARIANTS = {
    "encoding": b"Accept-Encoding: gzip;q=0.5, x-gzip, br;q=0, *\r\n\0Vary: Accept-Encoding\r\n",
    "language": b"Accept-Language: en-US, de;q=0.250\r\naccept-language: *;q=0\r\n\0Vary: accept-language, Foo\r\n",
    "unknown": b'Foo: 1 , 2\r\nBar: "a , b"\r\nFoo: 3\r\n\0Vary: foo\r\nVary: Bar, BAZ\r\n',
    "any": b"Foo: 1\r\n\0Vary: Foo, Other:\r\n",
}

DATES = {
    "preferred": b"Sun, 06 Nov 1994 08:49:37 GMT",
    "rfc850": b"Sunday, 06-Nov-94 08:49:37 GMT",
    "asctime": b"Sun Nov  6 08:49:37 1994",
    "leap-second": b"Sat, 31 Dec 2016 23:59:60 GMT",
    "leap-day": b"Thu, 29 Feb 2024 00:00:00 GMT",
}

TEXT = b"A page of some length. " * 12
BROTLI_HELLO = b"\x0f\x06\x80hello brotli\n\x03"  # `brotli -c` of "hello brotli\n"
RAW_BLOCK = struct.pack("<I", 1 | len(TEXT) << 3)[:3] + TEXT  # the last one, RFC 8878 section 3.1.1.2
ZSTD_FRAME = b"\x28\xb5\x2f\xfd\x60" + struct.pack("<H", len(TEXT) - 256) + RAW_BLOCK
ZSTD_SKIPPED = b"\x50\x2a\x4d\x18" + struct.pack("<I", 3) + b"abc"


def deflate_raw(data):
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(data) + compressor.flush()


CODINGS = {name: bytes([coding, 6]) + data for name, (coding, data) in {
    "gzip": (0, gzip.compress(TEXT, mtime=0)),
    "gzip-members": (0, gzip.compress(TEXT, mtime=0) * 2 + b"behind"),
    "deflate": (1, zlib.compress(TEXT)),
    "deflate-raw": (1, deflate_raw(TEXT)),
    "brotli": (2, BROTLI_HELLO),
    "zstd": (3, ZSTD_FRAME),
    "zstd-frames": (3, ZSTD_FRAME + ZSTD_SKIPPED + ZSTD_FRAME + b"behind"),
}.items()}

CHUNKED = {
    "body": b"\1\4a body of some bytes",
    "body-extended": b"\3\4a body of some bytes",
    "body-empty": b"\1\0",
    "plain": b"\0\2" + b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n",
    "extensions": b"\0\2" + b"5 ;a=b;c=\"d\"\r\nhello\r\n00\r\nX: y\r\n\r\n",
    "trailers": b"\0\2" + b"0\r\n" + b"A: b\r\n" * 5 + b"\r\n",
    "bare-lf": b"\0\2" + b"5\nhello\r\n0\r\n\r\n",
    "large": b"\0\2" + b"FFFFFFFFFFFFFFFF\r\nhello",
    "too-large": b"\0\2" + b"00000000000000001\r\nhello",
}

HOST = b"Host: example.com\r\n"
REQUEST_HEADS = {
    "get": b"\0GET /a?b HTTP/1.1\r\n" + HOST + b"\r\n",
    "pieces": b"\3GET /a HTTP/1.1\r\nhost: [::1]:8080\r\nAccept: */*\r\n\r\n",
    "old": b"\0GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "absolute": b"\0GET https://Example.com:8443?a HTTP/1.1\r\n" + HOST + b"Proxy-Connection: keep-alive\r\n\r\n",
    "connect": b"\0CONNECT example.com:443 HTTP/1.1\r\n" + HOST + b"\r\n",
    "options": b"\0OPTIONS * HTTP/1.1\r\n" + HOST + b"Max-Forwards: 3\r\n\r\n",
    "post": b"\0POST /a HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
    "chunked": b"\0PUT /a HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n5\r\n",
    "upgrade": b"\0GET / HTTP/1.1\r\n" + HOST + b"Connection: upgrade, x\r\nUpgrade: websocket\r\nX: y\r\n\r\n",
    "both": b"\0POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    "two": b"\7\r\nGET / HTTP/1.1\r\n" + HOST + b"\r\nGET /b HTTP/1.1\r\n" + HOST + b"\r\n",
    "raw-octets": b"\20GET /\xc3\xa4?\xff HTTP/1.1\r\n" + HOST + b"\r\n",
    "listed": b"\20GET / HTTP/1.1\r\n" + HOST + b"Connection: a, B.c, Host\r\nA: 1\r\nB.C: 2\r\nb_c: 3\r\n\r\n",
    "long": b"\20GET /" + b"a" * 600 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
}

PROXY_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
PROXY_INET = b"\xcb\0\x71\x07\x0a\0\0\x01\xd4\x31\x01\xbb"
PROXY_HEADERS = {
    "inet": PROXY_SIGNATURE + b"\x21\x11\0\x0c" + PROXY_INET + b"GET / HTTP/1.1\r\n",
    "inet6": PROXY_SIGNATURE + b"\x21\x21\0\x24" + bytes(range(36)),
    "tlv": PROXY_SIGNATURE + b"\x21\x11\0\x14" + PROXY_INET + b"\x01\0\x02h2\x04\0\0",
    "local": PROXY_SIGNATURE + b"\x20\0\0\0",
    "unix": PROXY_SIGNATURE + b"\x21\x31\0\xd8" + bytes(216),
    "tls": PROXY_SIGNATURE + b"\x21\x11\0\x1c" + PROXY_INET + b"\x20\0\x0d\1\0\0\0\0\x21\0\x05TLSv1",
    "version-1": b"PROXY TCP4 203.0.113.7 10.0.0.1 54321 443\r\nGET / HTTP/1.1\r\n",
    "version-1-inet6": b"PROXY TCP6 2001:db8::1 2001:db8::2 54321 443\r\n",
    "version-1-unknown": b"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n",
    "version-1-too-long": b"PROXY TCP4 " + b"1" * 100,
}



def answers(flags, second, first, *rest):
    """For `answer`: flags, the fields of the second request, and what the origin sends."""
    return bytes([flags, second]) + struct.pack("<H", len(first)) + first + b"".join(rest)


HTTP, WHOLE, HEAD, POST, KEEP, BYTES, OWNED = (1 << n for n in range(7))
OK = b"HTTP/1.1 200 OK\r\n"
FIVE = b"Content-Length: 5\r\n\r\nhello"
FRESH = b"Cache-Control: max-age=60\r\nETag: \"a\"\r\n"
STALE = b"Cache-Control: no-cache\r\nETag: \"a\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
CHUNKS = b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n"
SAME = b"HTTP/1.1 304 Same\r\nETag: \"a\"\r\nX: y\r\n\r\n"
EARLY = b"HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n"
GZIP = gzip.compress(b"hello" * 50, 9, mtime=0)
CODED = b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(GZIP) + GZIP
MOVED = b"HTTP/1.1 302 F\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"
ANSWERS = {
    "hit": answers(HTTP | KEEP, 0, OK + FRESH + FIVE),
    "rpc": answers(0, 0, OK + FRESH + FIVE),
    "rpc-whole": answers(WHOLE, 0, OK + FRESH + FIVE),
    "rpc-gzip": answers(0, 0, OK + FRESH + CODED),
    "rpc-redirect": answers(KEEP, 0, MOVED, OK + FRESH + FIVE),
    "validated": answers(HTTP | KEEP, 0, OK + STALE + FIVE, SAME),
    "changed": answers(HTTP, 3, OK + STALE + FIVE, OK + STALE.replace(b"a", b"b") + CHUNKS),
    "chunks": answers(HTTP | KEEP, 0, EARLY + OK + CHUNKS, OK + CHUNKS),
    "to-the-end": answers(HTTP, 0, OK + FRESH + b"\r\nhello"),
    "vary": answers(HTTP, 5, OK + FRESH + b"Vary: Accept-Language, Cookie\r\n" + FIVE,
                    OK + FRESH + FIVE),
    "head": answers(HTTP | HEAD, 0, OK + FRESH + b"Content-Length: 5\r\n\r\n", OK + FRESH + FIVE),
    "post": answers(HTTP | POST, 0, OK + FRESH + b"Content-Location: /a\r\n" + FIVE),
    "condition": answers(HTTP, 1, OK + b"Cache-Control: private\r\n" + FIVE, SAME),
    "part": answers(HTTP | OWNED, 2, OK + b"CDN-Cache-Control: max-age=9\r\nSet-Cookie: a\r\n" + FIVE,
                    b"HTTP/1.1 206 P\r\nContent-Range: bytes 1-2/5\r\nContent-Length: 2\r\n\r\nel"),
    "unavailable": answers(HTTP | BYTES, 0, OK + STALE + FIVE,
                           b"HTTP/1.1 503 No\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"),
    "bad-cr": answers(HTTP, 0, OK + b"Content-Length: 5\r\n\rX\r\nhello"),
    "bad-cr-rpc": answers(0, 0, OK + b"Content-Length: 5\r\n\r\r\nhello"),
    "bad-interim": answers(HTTP, 0, b"HTTP/1.1 103 Early\r\n\r\r\n" + OK + FIVE),
    "bad-nothing": answers(HTTP, 0, b""),
    "bad-two-lengths": answers(HTTP, 0, OK + b"Content-Length: 6\r\n" + FIVE),
}

FORWARDED = {
    "x": b"6.6.6.6, [2001:db8::1]:4711, unknown",
    "x-lines": b"X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https, http\r\nX-Forwarded-Host: a:81\r\n",
    "standard": b"for=\"[2001:db8::1]:_x\";proto=https;host=\"a:81\" ; by=_b, for=unknown",
    "standard-lines": b"Forwarded: for=6.6.6.6;proto=https\r\nForwarded: host=b\r\n",
    "open-string": b"for=6.6.6.6;x=\"",
    "escape": b"for=\"6.6.6.6\\",
}

CREDENTIALS = {
    "one": b"Basic dGVzdDoxMjPCow==",
    "empty-password": b"basic  YTo=",
    "lines": b"A: b\r\nProxy-Authorization: Basic YTpiOmM=\r\n",
    "two-lines": b"Proxy-Authorization: Basic YTpi\r\nproxy-authorization: Basic YTpj\r\n",
    "bad-bits": b"Basic YTp=",
    "bad-control": b"Basic YcKFOmI=",
}

BCRYPT = b"$2b$05$A753hO9ArnQDrjjLF1BReeZiPD9Qoi0y3qoCJo2B87wOnmnKbnd7y"
YESCRYPT = b"$y$j9T$75Ag9C9zUz93GKDlSiZ5E.$5VwBCOuJ8J3actQ9oL1e7iGYq87PTVtQMziOwZ0dzs."
USERS = {
    "good-one": b"anna:" + BCRYPT,
    "good-several": b"# office\n\nanna:" + BCRYPT + b"\r\nb\xc3\xa4r t:" + YESCRYPT + b"\n#c:d\n",
    "bad-doubled": b"bert:" + BCRYPT + b"\nanna:" + BCRYPT + b"\nbert:" + YESCRYPT + b"\n",
    "bad-cut": b"bert:" + BCRYPT[:-1] + b"\nanna:" + YESCRYPT[:-30] + b"\ncleo",
    "bad-method": b"anna:$apr1$4u8tHYLv$x2ZgfCDM.aNPKcs5oDCsj0\nbert:$6$rounds=999999999$x$y\n:\n",
}

HELPER_ANSWERS = {
    "one": b"\0OK\nERR message=\"no such user\"\nBH Success\r\n",
    "channels": b"\0011 OK user=anna\n0 ERR\n65 BH message=away log=x\n",
    "nonsense": b"\0GET / HTTP/1.1\nOKAY\n OK\nok",
    "bad-channels": b"\001OK\n-1 OK\n1OK\n99999999999999 OK\n7 \n",
}

TIER = {
    "replies": b"\0HD c17\r\nVA 3 c9 X W\r\nabc\r\nVA 0 c1 Z\r\n\r\nEN\r\nNS\r\nEX\r\nNF\r\nMN\r\n"
               b"STAT time 1700000000\r\nEND\r\nSERVER_ERROR out of memory\r\n",
    "bad-reply": b"\0VA 99999999 c1\r\n",
    "journal": b"\1" + struct.pack("=5Q", 1, 1, 1, 5, 9)
               + struct.pack("=QQqBBHI", 3, 9, 1, 2, 0, 3, 14) + b"redhttp://a.test/",
    "bad-journal": b"\1" + struct.pack("=5Q", 1, 1, 1, 5, 9),
    "bad-record": b"\2" + b"1UPR" * 30,
    "bad-value": b"\3SPT1" + b"\1\0\0\0" + b"x" * 68,
}

RULES = {
    "parameters": b"remove-parameter=utm_*; keep-parameter=*; sort-parameters=yes\0"
                  b"http://a.test/x?b=1&utm_a=2&a=3&&=\0\0",
    "cookies": b"remove-cookie=_ga*; keep-cookie=s\nkey-cookie=lang; default-lifetime=1h\0"
               b"http://a.test/\0Cookie:_ga=1;s=2; lang=de\r\nA: b\nCookie: s\r\n",
    "fields": b"field=A: *b*; set-field=X: y; remove-field=A\nkey-field=X; key-field=A\0"
              b"https://u:p@a.test:81/%61/./b//c/..?q\0A: abc\r\nX: 1\r\n",
    "verdicts": b"host=*.a.test; port=80-81; path=/x*; redirect=301 https://{host}{path}{query}\n"
                b"path=*.php; deny=403\nmethod=GET; rate=1:2\0http://b.a.test/x?y\0\0",
    "responses": b"set-response-field=Cache-Control: no-store\\; a; remove-response-field=X; "
                 b"remove-response-cookie=_*; lifetime=1h; override=private; grace=1s\n"
                 b"status=404; error-page=/a.html\0http://a.test/\0"
                 b"Cache-Control: private\r\nX: y\r\nSet-Cookie: _a=1; Path=/\r\n",
    "hosts": b"network=10.0.0.0/8; time=mon-fri 08:00-18:00; pass=yes\0http://a.test/\0\0"
             b"# a list\nA.test\n*.b.test\n.c.test # d\n=e.test\n",
}

PEERS = {
    "proof": b"p000000000000000100000000000000020000000000000003".replace(b"01", b"01 ", 1)
             + b" " + b"a" * 64 + b" http://a",
    "proof-whole": b"p0000000000000001 0000000000000002 00060a24181e4000 " + b"0" * 64 + b" http://a:3128",
    "response": b"ps " + b"0" * 64,
    "keys": b"k# keys\n0123456789abcdef\n\nfedcba9876543210 \r\nshort\n",
    "news": b"n0000000000000001 0000000000000004 uhhttp://h/a%2cb pshttp://h/ ah thone,http://h/ "
            b"whhttp://h/w,http://h/ .",
    "none": b"n0000000000000007 0000000000000007 .",
    "bye": b"n0000000000000007 0000000000000007 bye.",
}

CORPUS = {
    "rules": RULES,
    "peer": PEERS,
    "forwarded": FORWARDED,
    "basic_credentials": CREDENTIALS,
    "user_file": USERS,
    "helper_answer": HELPER_ANSWERS,
    "tier": TIER,
    "answer": {name if name.startswith("bad-") else f"good-{name}": data
               for name, data in ANSWERS.items()},
    "chunked": CHUNKED,
    "coding": CODINGS,
    "storing": STORING,
    "cache_control": CACHE_CONTROLS,
    "conditional": CONDITIONS,
    "range": RANGES,
    "variant": VARIANTS,
    "date": DATES,
    "proxy_header": PROXY_HEADERS,
    "record": {
        "one": b"\0" + fragment(CALLS["v2-stat"]),
        "pieces": b"\2" + fragment(CALLS["v2-get"][:10], False) + fragment(CALLS["v2-get"][10:]),
        "empty-fragments": b"\0" + fragment(b"", False) * 8 + fragment(CALLS["v1-null"]),
        "two": b"\6" + fragment(CALLS["v1-null"]) + fragment(CALLS["v1-fetch"]),
        "too-long": b"\0" + words(0xFFFFFFFF) + b"abc",
    },
    "call": CALLS,
    "request_head": REQUEST_HEADS,
    "url": URLS,
    "headers": HEADERS,
    "reply": {name: bytes([which]) + data for name, (which, data) in REPLIES.items()},
    "trace": TRACES,
    "config": CONFIGS,
}


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "corpus"
    for target, inputs in CORPUS.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for name, data in inputs.items():
            (folder / target / name).write_bytes(data)


if __name__ == "__main__":
    main()
