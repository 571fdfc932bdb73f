/*
 * Logs of servers and load balancers, lists of ids, and the access logs of sunproxyd: what is read
 * of realistic lines, what is malformed, and that no damage is fatal.
 */
#include "tests/unit/trace/loading.h"
#include "trace/formats/formats.h"

/* Text of a format, with every method and status, and its requests. */
static const struct {
    const char *format;
    const char *text;
    const char *requests;
    unsigned bad, orphans;
} texts[] = {
    /* Clients of each kind, every outcome that has a page, failures, escapes, victims. */
    {"sunproxyd",
     "1970-01-01T00:00:01.5Z\t192.0.2.1\thttp://a.test/\tmiss\t200\t1270\t5012\t-\n"
     "1970-01-01T00:00:02Z\t2001:db8::1\thttp://a.test/\thit\t200\t1270\t31\t-\n"
     "1970-01-01T00:00:03Z\tunix:1000\thttp://a.test/\\x20\\x5c\\xc3\\xa9\tmiss\t200\t7\t1\t"
     "http://a.test/ http://b.test/\\x20\n"
     "1970-01-01T00:00:04Z\t-\thttp://b.test/\tcoalesced\t404\t9\t88\t-\n"
     "1970-01-01T00:00:05Z\t192.0.2.1\thttp://c.test/\tresolve-failed\t-\t0\t90\t-\t-\n"
     "1970-01-01T00:00:06Z\t192.0.2.1\t-\tbad-url\t-\t0\t2\t-\n"
     "1970-01-01T00:00:07Z\t192.0.2.1\thttp://c.test/\\x2\thit\t200\t1\t1\t-\n"
     "1970-01-01T00:00:07Z\t192.0.2.1\thttp://c.test/\\q20\thit\t200\t1\t1\t-\n"
     "1970-01-01T00:00:07Z\tsomewhere\thttp://c.test/\thit\t200\t1\t1\t-\n"
     "1970-01-01T00:00:07Z\tunix:x\thttp://c.test/\thit\t200\t1\t1\t-\n"
     "1970-01-01T00:00:07Z\t192.0.2.1\thttp://c.test/\tHit!\t200\t1\t1\t-\n"
     "1970-01-01T00:00:07Z\t192.0.2.1\thttp://c.test/\thit\t200\t1\t1\n"
     "1970-01-01T00:00:07Z\t192.0.2.1\thttp://c.test/\thit\t200\t1\t1\t-\t-\t-\n"
     "1970-01-01T00:00:07Z\t192.0.2.1\thttp://c.test/\thit\t200\t1\tsoon\t-\n",
     "http://a.test/@1.5=1270/200 http://a.test/@2=1270/200 http://a.test/ \\\xc3\xa9@3=7/200 "
     "http://b.test/@4=9/404 http://c.test/@5/1",
     8, 1},
    {"sunproxyd",
     "{\"time\":\"1970-01-01T00:00:01.5Z\",\"client\":\"192.0.2.1\",\"url\":\"http://a.test/\","
     "\"outcome\":\"miss\",\"status\":200,\"bytes\":1270,\"us\":5012,\"victims\":[]}\n"
     "{\"time\":\"1970-01-01T00:00:02Z\",\"client\":\"unix:0\",\"url\":\"http://a.test/\\\"\\\\"
     "\\u00e9\",\"outcome\":\"hit\",\"status\":200,\"bytes\":3,\"us\":5,"
     "\"victims\":[\"http://b.test/\"]}\n"
     "{\"time\":\"1970-01-01T00:00:03Z\",\"client\":\"-\",\"url\":\"http://b.test/\","
     "\"outcome\":\"timed_out\",\"status\":null,\"bytes\":0,\"us\":5,\"victims\":[]}\n"
     "{\"time\":\"1970-01-01T00:00:04Z\",\"client\":\"-\",\"url\":\"http://b.test/\\u0000x\","
     "\"outcome\":\"hit\",\"status\":200,\"bytes\":0,\"us\":5,\"victims\":[]}\n"
     "{\"time\":\"1970-01-01T00:00:05Z\",\"client\":\"-\",\"url\":\"http://b.test/\n",
     "http://a.test/@1.5=1270/200 http://a.test/\"\\\xc3\xa9@2=3/200 http://b.test/@3/1", 2, 0},
    /* Requests over HTTP, in the forms of both formats of the log. */
    {"sunproxyd",
     "192.0.2.1 - - [01/Jan/1970:00:00:01 +0000] \"GET http://a.test/x\\x22y HTTP/1.1\" 200 7 \"-\" "
     "\"tester/1 \\x22\"\n"
     "1970-01-01T00:00:02Z\t192.0.2.1\thttp://a.test/\tmiss\t200\t1270\t5012\t-\n"
     "192.0.2.1 - - [01/Jan/1970:00:00:03 +0000] \"CONNECT b.test:443 HTTP/1.1\" 200 9 \"-\" \"-\"\n"
     "192.0.2.1 - - [01/Jan/1970:00:00:04 +0000] \"-\" 400 90 \"-\" \"-\"\n"
     "unix:0 - - [01/Jan/1970:00:00:05 +0000] \"GET /path HTTP/1.0\" 499 0 \"-\" \"-\"\n"
     "nonsense\n",
     "http://a.test/x\"y@1=7/200 http://a.test/@2=1270/200 https://b.test@3=9/200 "
     "http://localhost/path@5=0/499",
     1, 1},
    {"sunproxyd",
     "{\"time\":\"1970-01-01T00:00:01Z\",\"client\":\"192.0.2.1\",\"url\":\"http://a.test/\\\"\","
     "\"outcome\":\"revalidated\",\"status\":200,\"bytes\":7,\"us\":5,\"method\":\"GET\","
     "\"protocol\":\"HTTP/1.1\",\"referer\":\"\",\"agent\":\"x\",\"victims\":[]}\n"
     "{\"time\":\"1970-01-01T00:00:02Z\",\"client\":\"-\",\"url\":\"b.test:443\",\"outcome\":"
     "\"tunnel\",\"status\":200,\"bytes\":9,\"us\":5,\"method\":\"CONNECT\",\"victims\":[]}\n"
     "{\"time\":\"1970-01-01T00:00:03Z\",\"client\":\"-\",\"url\":\"\",\"outcome\":\"local\","
     "\"status\":400,\"bytes\":9,\"us\":5,\"method\":\"\",\"victims\":[]}\n"
     "{\"time\":\"1970-01-01T00:00:04Z\",\"client\":\"-\",\"url\":\"/path\",\"outcome\":"
     "\"timed_out\",\"status\":504,\"bytes\":9,\"us\":5,\"method\":\"GET\",\"victims\":[]}\n",
     "http://a.test/\"@1=7/200 https://b.test@2=9/200 http://localhost/path@4=9/504", 0, 1},
    /* As syslog and the journal have them, with the messages of the daemon between. */
    {"sunproxyd",
     "-- Journal begins at Sat 2026-11-28 14:00:00 UTC. --\n"
     "Nov 28 14:00:00 vm sunproxyd[12]: 1970-01-01T00:00:02Z\t192.0.2.1\thttp://a.test/\tmiss\t200\t1270\t5\t-\n"
     "<30>Nov  8 14:00:00 sunproxyd[12]: 1970-01-01T00:00:03Z\t192.0.2.1\thttp://b.test/\thit\t200\t7\t5\t-\n"
     "<30>1 2026-11-28T14:00:00.123Z vm sunproxyd 12 access - 1970-01-01T00:00:04Z\t-\thttp://c.test/\thit\t200\t8\t5\t-\n"
     "2026-11-28T14:00:00+01:00 vm sunproxyd[12]: 192.0.2.1 - - [01/Jan/1970:00:00:05 +0000] \"GET http://d.test/ HTTP/1.1\" 200 9 \"-\" \"-\" -\n"
     "Nov 28 14:00:00 vm sunproxyd[12]: stopped\n"
     "Nov 28 14:00:00 vm sunproxyd: 1970-01-01T00:00:02Z\t192.0.2.1\thttp://a.test/\tmiss\t200\t1270\t5\t-\n",
     "http://a.test/@2=1270/200 http://b.test/@3=7/200 http://c.test/@4=8/200 http://d.test/@5=9/200", 3, 0},
    {"access",
     "Nov 28 14:00:00 vm sunproxyd[12]: 192.0.2.1 - - [01/Jan/1970:00:00:05 +0000] \"GET http://d.test/ HTTP/1.1\" 200 9\n",
     "http://d.test/@5=9/200", 0, 0},
    {"caddy",
     "{\"level\":\"info\",\"ts\":1.5,\"logger\":\"http.log.access.log0\",\"msg\":\"handled "
     "request\",\"request\":{\"remote_ip\":\"192.0.2.1\",\"remote_port\":\"41342\",\"client_ip\":"
     "\"192.0.2.1\",\"proto\":\"HTTP/2.0\",\"method\":\"GET\",\"host\":\"a.test\",\"uri\":\"/x?y=z\","
     "\"headers\":{\"Accept\":[\"*/*\"]},\"tls\":{\"resumed\":false,\"version\":772}},"
     "\"bytes_read\":0,\"user_id\":\"\",\"duration\":0.0009,\"size\":10900,\"status\":200,"
     "\"resp_headers\":{\"Server\":[\"Caddy\"]}}\n"
     "{\"level\":\"info\",\"ts\":\"1970/01/01 00:00:02.250\",\"logger\":\"http.log.access\",\"request\":"
     "{\"method\":\"POST\",\"host\":\"a.test:8080\",\"uri\":\"/\"},\"size\":0,\"status\":204}\n"
     "{\"level\":\"info\",\"ts\":\"1970-01-01T00:00:03.5Z\",\"logger\":\"http.log.access\","
     "\"request\":{\"method\":\"GET\",\"host\":\"a.test:8443\",\"uri\":\"/\",\"tls\":{}},"
     "\"size\":1,\"status\":0}\n"
     "{\"level\":\"warn\",\"ts\":2,\"logger\":\"tls\",\"msg\":\"stapling OCSP\"}\n"
     "{\"ts\":1,\"request\":7}\n{\"ts\":\"x\",\"request\":{\"uri\":\"/\"}}\n"
     "{\"ts\":1,\"size\":-5,\"request\":{\"uri\":\"/\"}}\nnot json\n",
     "https://a.test/x?y=z@1.5=10900/200 http://a.test:8080/@2.25=0/204 "
     "https://a.test:8443/@3.5=1/1",
     4, 0},
    {"traefik",
     "{\"ClientAddr\":\"192.0.2.1:1234\",\"ClientHost\":\"192.0.2.1\",\"ClientPort\":\"1234\","
     "\"DownstreamContentSize\":2,\"DownstreamStatus\":200,\"Duration\":2000000,\"RequestAddr\":"
     "\"a.test\",\"RequestContentSize\":0,\"RequestCount\":1,\"RequestHost\":\"a.test\","
     "\"RequestMethod\":\"GET\",\"RequestPath\":\"/x?y=1\",\"RequestPort\":\"-\","
     "\"RequestProtocol\":\"HTTP/1.1\",\"RequestScheme\":\"https\",\"StartUTC\":"
     "\"1970-01-01T00:00:01.25Z\",\"level\":\"info\",\"msg\":\"\",\"time\":\"1970-01-01T00:00:09Z\"}\n"
     "{\"DownstreamContentSize\":19,\"DownstreamStatus\":404,\"RequestHost\":\"b.test\","
     "\"RequestMethod\":\"GET\",\"RequestPath\":\"/\",\"RequestPort\":\"8080\","
     "\"RequestScheme\":\"http\",\"level\":\"info\",\"msg\":\"\",\"time\":\"1970-01-01T00:00:02Z\"}\n"
     "{\"level\":\"info\",\"msg\":\"Configuration loaded\",\"time\":\"1970-01-01T00:00:02Z\"}\n"
     "{\"RequestMethod\":\"GET\",\"level\":\"info\",\"time\":\"1970-01-01T00:00:02Z\"}\n"
     "{\"RequestPath\":\"/\",\"RequestPort\":\"99999\",\"time\":\"1970-01-01T00:00:02Z\"}\n[]\n",
     "https://a.test/x?y=1@1.25=2/200 http://b.test:8080/@2=19/404", 2, 1},
    /* The recipes of many tutorials: a request line, or its parts; numbers as strings. */
    {"nginx-json",
     "{\"time_local\":\"01/Jan/1970:00:00:01 +0000\",\"remote_addr\":\"192.0.2.1\",\"remote_user\":"
     "\"\",\"request\":\"GET /a?b HTTP/1.1\",\"status\": \"200\",\"body_bytes_sent\":\"612\","
     "\"request_time\":\"0.000\",\"http_referrer\":\"\",\"http_user_agent\":\"curl\\/7.88\"}\n"
     "{\"time_local\":\"01/Jan/1970:00:00:02 +0000\",\"remote_addr\":\"192.0.2.1\",\"request\":\"\","
     "\"status\":\"400\",\"body_bytes_sent\":\"0\"}\n"
     "{\"time_local\":\"01/Jan/1970:00:00:03 +0000\",\"remote_addr\":\"192.0.2.1\",\"request\":"
     "\"\\\\x16\\\\x03\",\"status\":\"400\",\"body_bytes_sent\":\"157\"}\n"
     "{\"time_local\":\"yesterday\",\"remote_addr\":\"1\",\"request\":\"GET / HTTP/1.1\"}\n"
     "{\"status\":\"2x\",\"remote_addr\":\"1\",\"request\":\"GET / HTTP/1.1\"}\n",
     "http://localhost/a?b@1=612/200", 2, 2},
    {"nginx-json",
     "{\"time_iso8601\":\"1970-01-01T01:00:01+01:00\",\"scheme\":\"https\",\"http_host\":\"a.test\","
     "\"request_method\":\"GET\",\"request_uri\":\"/x?q=1\",\"status\":200,\"bytes_sent\":800,"
     "\"body_bytes_sent\":612,\"upstream_cache_status\":\"HIT\"}\n"
     "{\"msec\":\"2.250\",\"scheme\":\"http\",\"server_name\":\"_\",\"host\":\"b.test\","
     "\"server_port\":\"8080\",\"request_method\":\"GET\",\"uri\":\"/y\",\"args\":\"z=1\","
     "\"status\":304,\"body_bytes_sent\":0,\"upstream_cache_status\":\"-\"}\n"
     "{\"@timestamp\":\"1970-01-01T00:00:03Z\",\"request_method\":\"GET\",\"uri\":\"/y\","
     "\"args\":\"\",\"status\":200,\"body_bytes_sent\":5}\n",
     "https://a.test/x?q=1@1=612/200 http://b.test:8080/y?z=1@2.25/304 http://localhost/y@3=5/200",
     0, 0},
    {"ltsv",
     "time:[01/Jan/1970:09:00:01 +0900]\thost:192.0.2.1\tforwardedfor:-\treq:GET /a HTTP/1.1\t"
     "status:200\tsize:5316\treferer:-\tua:Mozilla/5.0\treqtime:0.5\tvhost:a.test\tcache:HIT\n"
     "host:192.0.2.1\ttime:1970-01-01T00:00:02Z\tmethod:HEAD\turi:/b?c:d\tstatus:200\tsize:-\t"
     "scheme:https\tvhost:a.test\r\n"
     "time:[01/Jan/1970:00:00:03 +0000]\treq:-\tstatus:400\tsize:0\n"
     "time:then\treq:GET / HTTP/1.1\tstatus:200\ntime:1\tgreeting:hello\nno labels here\n"
     "time:1\treq:GET / HTTP/1.1\tstatus:200\tsize:99999999999999999999\n",
     "http://a.test/a@1=5316/200 https://a.test/b?c:d@2/200", 4, 1},
    {"w3c",
     "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) "
     "cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type "
     "x-edge-request-id x-host-header cs-protocol cs-bytes time-taken sc-content-type "
     "sc-content-len\n"
     "1970-01-01\t00:00:01\tLAX1\t2390282\t192.0.2.202\tGET\td1.cloudfront.net\t/i/x.jpg\t200\t"
     "https://a.test/\tMozilla/5.0%20(X11)\t-\t-\tHit\tSOX4x==\twww.a.test\thttps\t23\t0.001\t"
     "image/jpeg\t2389000\n"
     "1970-01-01\t00:00:02\tLAX1\t500\t192.0.2.202\tGET\td1.cloudfront.net\t/y\t200\t-\tx\ta=b\t-\t"
     "Miss\tS\t-\thttp\t23\t0.001\t-\t-\n"
     "1970-01-01\t00:00:02\tLAX1\t500\n",
     "https://www.a.test/i/x.jpg@1=2389000/200 http://d1.cloudfront.net/y?a=b@2=500/200", 1, 0},
    {"w3c",
     "#Software: Microsoft Internet Information Services 10.0\n#Version: 1.0\n"
     "#Date: 1970-01-01 00:00:00\n#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port "
     "cs-username c-ip cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status "
     "time-taken\n"
     "1970-01-01 00:00:01 192.0.2.10 GET /a.htm - 80 - 192.0.2.1 Mozilla/5.0+(X11) - 200 0 0 15\n"
     "1970-01-01 00:00:02 192.0.2.10 GET /a.htm q=1&r=2 80 - 192.0.2.1 - - 404 0 2 15\n"
     "1970-01-01 00:00:61 192.0.2.10 GET /a.htm - 80 - 192.0.2.1 - - 404 0 2 15\n"
     "#Fields: date time cs-host cs-uri-stem s-port sc-bytes sc-status\n"
     "1970-01-01 00:00:03 b.test /c 443 77 200\n1970-01-01 00:00:03 b.test - 443 77 400\n",
     "http://localhost/a.htm@1/200 http://localhost/a.htm?q=1&r=2@2/404 https://b.test/c@3=77/200",
     1, 1},
    {"w3c",
     "#Version: 1.0\n#Date: 1970-01-02 00:00:00\n#Fields: time cs-method cs-uri\n"
     "00:00:21 GET /foo/bar.html\n12:45 GET http://a.test/\n#Date: someday\nnoon GET /\n",
     "http://localhost/foo/bar.html@86421 http://a.test/@132300", 1, 0},
    {"s3",
     "79a59 bucket [01/Jan/1970:00:00:01 +0000] 192.0.2.3 79a59 3E57 REST.GET.VERSIONING - "
     "\"GET /bucket?versioning HTTP/1.1\" 200 - 113 - 7 - \"-\" \"S3Console/0.4\" - s9lz= SigV4 "
     "ECDHE-RSA-AES128-GCM-SHA256 AuthHeader bucket.s3.us-west-1.amazonaws.com TLSV1.2 - -\n"
     "79a59 bucket [01/Jan/1970:00:00:02 +0000] 192.0.2.3 - 3E58 REST.GET.OBJECT a.png "
     "\"GET /a.png?x=y HTTP/1.1\" 200 - 4406 4406 16 15 \"http://a.test/\" \"Mozilla/5.0 \"x\" y\" -\n"
     "79a59 bucket [01/Jan/1970:00:00:03 +0000] 192.0.2.3 - 3E58 REST.GET.OBJECT a.png "
     "\"GET /a.png HTTP/1.1\" 304 - - 4406 16 15 \"-\" \"Mozilla/5.0\" -\n"
     "79a59 bucket [01/Jan/1970:00:00:04 +0000] - AmazonS3 5E6 S3.EXPIRE.OBJECT old - - - - 5 - - - "
     "- - - - - - - -\n"
     "79a59 bucket [now] 192.0.2.3 - 3E58 REST.GET.OBJECT a \"GET /a HTTP/1.1\" 200 - 1 1 1 1\n"
     "79a59 bucket [01/Jan/1970:00:00:03 +0000] 192.0.2.3 - 3E58 REST.GET.OBJECT a \"GET /a\n",
     "https://bucket.s3.us-west-1.amazonaws.com/bucket?versioning@1=113/200 "
     "http://bucket.s3.amazonaws.com/a.png?x=y@2=4406/200 "
     "http://bucket.s3.amazonaws.com/a.png@3/304",
     2, 1},
    {"alb",
     "http 1970-01-01T00:00:01.186641Z app/lb/50dc 192.0.2.39:2817 10.0.0.1:80 0.000 0.001 0.000 200 "
     "200 34 366 \"GET http://a.test:80/x HTTP/1.1\" \"curl/7.46.0\" - - arn:aws:x \"Root=1-5\" \"-\" "
     "\"-\" 0 1970-01-01T00:00:01.0Z \"forward\" \"-\" \"-\" \"10.0.0.1:80\" \"200\" \"-\" \"-\"\n"
     "h2 1970-01-01T00:00:02Z app/lb/50dc [2001:db8::9]:2817 10.0.0.66:9 0.000 0.002 0.000 304 304 5 "
     "257 \"GET https://a.test:443/y HTTP/2.0\" \"-\" ECDHE TLSv1.2 a \"R\" \"a.test\" \"c\" 1 "
     "1970-01-01T00:00:02Z \"forward\" \"-\" \"-\"\n"
     "https 1970-01-01T00:00:03Z app/lb/50dc 192.0.2.39:2817 - -1 -1 -1 400 - 0 150 \"- "
     "http://a.test:80- -\" \"-\" - - - \"-\" \"-\" \"-\" - 1970-01-01T00:00:03Z \"-\" \"-\" \"-\"\n"
     "1970-01-01T00:00:04Z my-elb 192.0.2.39:2817 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 "
     "29 \"GET http://b.test:8080/ HTTP/1.1\" \"curl/7.38.0\" - -\n"
     "http then app/lb/50dc 192.0.2.39:2817 10.0.0.1:80 0.000 0.001 0.000 200 200 34 366 \"GET "
     "http://a.test:80/ HTTP/1.1\"\nhttp 1970-01-01T00:00:05Z app/lb/50dc 192.0.2.39\n",
     "http://a.test/x@1.18664=366/200 https://a.test/y@2/304 http://b.test:8080/@4=29/200", 2, 1},
    {"haproxy",
     "Feb  6 12:14:14 localhost haproxy[14389]: 192.0.2.2:33317 [01/Jan/1970:00:00:01.655] http-in "
     "static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {a.test|curl} {} \"GET /index.html "
     "HTTP/1.1\"\n"
     "[2001:db8::2]:33317 [01/Jan/1970:00:00:02.000] in~ s/srv1 10/0/30/69/+109 200 +2750 - - --NI "
     "+1/1/1/1/0 0/0 \"GET https://b.test/x HTTP/2.0\"\n"
     "192.0.2.2:33317 [01/Jan/1970:00:00:03.000] in s/<NOSRV> -1/-1/-1/-1/5000 408 212 - - cR-- "
     "1/1/0/0/0 0/0 {|} \"<BADREQ>\"\n"
     "192.0.2.2:33317 [01/Jan/1970:00:00:04.000] in s/srv1 0/0/0/1/1 200 7 - - ---- 1/1/0/0/0 0/0 "
     "{192.0.2.99} \"GET /c HTTP/1.1\" 0/0000/0/0/0 - TLSv1.3\n"
     "192.0.2.2:33317 [01/Jan/1970:00:00:05.000] in s/srv1 0/0/0/1/1 200 7 - - ---- 1/1/0/0/0 0/0 "
     "\"GET /cut-by-syslog\n"
     "192.0.2.2:33317 [01/Jan/1970:00:00:05.000] in s/srv1 0/0/5000 212 -- 0/0/0/0/0 0/0\n"
     "Feb  6 12:14:14 localhost haproxy[14389]: Proxy in started.\n",
     "http://a.test/index.html@1.655=2750/200 https://b.test/x@2/200 http://localhost/c@4=7/200", 3,
     1},
    {"ids",
     "42932745\n42932746\n42932745\n\n# a comment\nx\n18446744073709551615\n"
     "18446744073709551616\n",
     "42932745 42932746 42932745 18446744073709551615", 2, 0},
    {"ids", "user:1\nuser:2\r\nuser:1\n42\n",
     "http://localhost/user:1 http://localhost/user:2 http://localhost/user:1 http://localhost/42",
     0, 0},
    /* As libCacheSim's own traces are. */
    {"table", "version,time,op,size,lbn\n1,33898,2a,512,42932745\n1,33899,2a,6656,40409911\n",
     "42932745@33898=512 40409911@33899=6656", 0, 0},
    {"table", "# time, object, size, next_access_vtime\n1, 7, 10, -2\n2, 8, 20, 5\n",
     "7@1=10 8@2=20", 0, 0},
    {"squid",
     "1.5 1 192.0.2.1 TCP_MISS/200 1000 GET cache_object://localhost/info - NONE/- text/plain\n"
     "2 1 192.0.2.1 TCP_MISS/200 -1 GET http://a.test/ - NONE/- text/plain\n"
     "3 1 192.0.2.1 TCP_MISS/200 -2 GET http://a.test/ - NONE/- text/plain\n"
     "4 1 192.0.2.1 NONE/400 3860 NONE error:invalid-request - HIER_NONE/- text/html\n",
     "http://a.test/@2/200", 1, 0},
};

#define TEXTS ((int)(sizeof(texts) / sizeof(texts[0])))

START_TEST(lines)
{
    struct trace_counts counts =
        loading_expect(texts[_i].text, texts[_i].format, texts[_i].requests);

    ck_assert_uint_eq(counts.skipped_bad, texts[_i].bad);
    ck_assert_uint_eq(counts.skipped_orphan, texts[_i].orphans);
}
END_TEST

/* A file that is cut anywhere, or has a byte changed, is read or refused with a sentence. */
START_TEST(damage_is_survived)
{
    struct trace_options options = loading_all();
    size_t len = strlen(texts[_i].text);
    char *bytes = malloc(len + 1);

    options.format = texts[_i].format;
    for (size_t step = 0; step < 2 * len; step += 1 + len / 50) {
        size_t at = step % len;
        struct trace *t = NULL;
        enum trace_error error;

        memcpy(bytes, texts[_i].text, len);
        bytes[at] = (char)(bytes[at] ^ (1 + (int)(step % 255)));
        scratch_write("trace", bytes, step < len ? at + 1 : len);
        loading_why[0] = '\0';
        error = trace_load(scratch_path("trace"), &options, &t, loading_why, sizeof(loading_why));
        if (error == TRACE_OK)
            ck_assert_uint_ne(t->request_count, 0);
        else
            ck_assert_msg(!t && loading_why[0], "%d", (int)error);
        trace_free(t);
    }
    free(bytes);
}
END_TEST

/* Long lines, numbers without end, deep nesting, binary: malformed, but for a line of its own. */
START_TEST(hostile_lines)
{
    struct trace_options options = loading_all();
    struct buf text;

    options.format = texts[_i].format;
    bool built = true;

    buf_init(&text, 16U << 20U);
    built = buf_append_str(&text, texts[_i].text) && buf_append_char(&text, '\n');
    for (int i = 0; i < 20000; i++)
        built = buf_append_str(&text, "{\"request\":[") && built;
    built = buf_append_str(&text, "\n") && built;
    for (int i = 0; i < 5000; i++)
        built = buf_append_str(&text, "9/[\t\" ") && built;
    built =
        buf_append_str(&text, "\n\x80\xff\xfe\x01\x7f\x1b[2J\n{\"ts\":1e999,\"status\":1e308}\n") &&
        built;
    for (int i = 0; i < 3 * 1024 * 1024; i++)
        built = buf_append_char(&text, 'x') && built;
    ck_assert(buf_append_str(&text, "\n") && built);
    {
        struct trace *t = loading_bytes(text.data, text.len, options);

        /* A line of a list of ids may be any word. */
        ck_assert_uint_ge(t->counts.skipped_bad, texts[_i].bad + 4);
        ck_assert_str_eq(loading_picture(t), texts[_i].requests);
        trace_free(t);
    }
    buf_free(&text);
}
END_TEST

/* What the log says of hits is counted over the requests that are kept. */
START_TEST(logged_outcomes)
{
    static const char log[] = "1970-01-01T00:00:01Z\t-\thttp://a.test/\tmiss\t200\t1\t1\t-\n"
                              "1970-01-01T00:00:02Z\t-\thttp://a.test/\thit\t200\t1\t1\t-\n"
                              "1970-01-01T00:00:02Z\t-\thttp://a.test/\tstale\t200\t1\t1\t-\n"
                              "1970-01-01T00:00:02Z\t-\thttp://a.test/\tcoalesced\t200\t1\t1\t-\n"
                              "1970-01-01T00:00:03Z\t-\thttp://b.test/\tdenied\t-\t0\t1\t-\n";
    struct trace *t = loading_text(log, TRACE_OPTIONS_DEFAULT);

    ck_assert_uint_eq(t->request_count, 4);
    ck_assert_uint_eq(t->counts.skipped_status, 1);
    ck_assert_uint_eq(t->counts.logged_outcomes, 4);
    ck_assert_uint_eq(t->counts.logged_hits, 2);
    trace_free(t);
    t = loading_text("1 1 192.0.2.1 TCP_MEM_HIT/200 1 GET http://a.test/ - - -\n"
                     "2 1 192.0.2.1 TCP_MISS/200 1 GET http://a.test/ - - -\n",
                     TRACE_OPTIONS_DEFAULT);
    ck_assert_uint_eq(t->counts.logged_outcomes, 2);
    ck_assert_uint_eq(t->counts.logged_hits, 1);
    trace_free(t);
    t = loading_text("http://a.test/\n", TRACE_OPTIONS_DEFAULT);
    ck_assert_uint_eq(t->counts.logged_outcomes, 0);
    trace_free(t);
}
END_TEST

/* A guess is reported. */
START_TEST(captured_host_is_remarked)
{
    static const char line[] =
        "192.0.2.2:1 [01/Jan/1970:00:00:04.000] in s/srv1 0/0/0/1/1 200 7 - - "
        "---- 1/1/0/0/0 0/0 {%s} \"GET /c HTTP/1.1\"\n";
    char text[256];
    struct trace *t;

    snprintf(text, sizeof(text), line, "a.test");
    t = loading_text(text, TRACE_OPTIONS_DEFAULT);
    ck_assert_uint_eq(t->counts.remark_count, 1);
    ck_assert_ptr_nonnull(strstr(t->counts.remarks[0], "taken for the Host header"));
    trace_free(t);
    snprintf(text, sizeof(text), line, "192.0.2.7");
    t = loading_text(text, TRACE_OPTIONS_DEFAULT);
    ck_assert_uint_eq(t->counts.remark_count, 0);
    trace_free(t);
}
END_TEST

/* A log that has no request yet is a log. */
START_TEST(empty_logs)
{
    static const char *const logs[][2] = {
        {"zeek", "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n"
                 "#path\thttp\n#open\t2024-01-01-00-00-00\n#fields\tts\tuid\thost\turi\n"
                 "#types\ttime\tstring\tstring\tstring\n#close\t2024-01-01-01-00-00\n"},
        {"w3c", "#Version: 1.0\n#Fields: date time cs-method cs-uri-stem sc-status\n"},
    };

    for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++) {
        char expected[64];

        scratch_write("trace", logs[i][1], strlen(logs[i][1]));
        ck_assert_int_eq(loading_refused(scratch_path("trace"), TRACE_OPTIONS_DEFAULT),
                         TRACE_EMPTY);
        snprintf(expected, sizeof(expected), "read as %s", logs[i][0]);
        ck_assert_msg(strstr(loading_why, expected) != NULL, "%s", loading_why);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("logs");
    TCase *tcase = tcase_create("logs");

    tcase_add_checked_fixture(tcase, scratch_make, scratch_remove);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, lines, 0, TEXTS);
    tcase_add_loop_test(tcase, damage_is_survived, 0, TEXTS);
    tcase_add_loop_test(tcase, hostile_lines, 0, TEXTS);
    tcase_add_test(tcase, logged_outcomes);
    tcase_add_test(tcase, captured_host_is_remarked);
    tcase_add_test(tcase, empty_logs);
    suite_add_tcase(suite, tcase);
    return suite;
}
