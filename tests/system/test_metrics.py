"""The metrics over HTTP, as a monitoring system reads them."""

import re
import shutil
import signal
import socket

import harness
from http_front import Connection, http_address, stored


class MetricsTest(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.o = self.origin()
        self.unix = str(self.dir / "metrics.sock")
        self.d = self.daemon("--metrics", "127.0.0.1:0", "--metrics", f"unix:{self.unix}",
                             "--http", "127.0.0.1:0", "--policy", "fifo", "--capacity-urls", "1",
                             "--shards", "1", origin=self.o)
        address = harness.wait_until(
            lambda: re.search(r"metrics at http://(127\.0\.0\.1):(\d+)/metrics", self.d.err),
            what="the metrics")
        self.address = (address[1], int(address[2]))
        self.c = self.connect(self.address)

    def connect(self, address):
        connection = Connection(address)
        self.addCleanup(connection.close)
        return connection

    def read(self, *lines):
        response = self.c.get("/metrics", *lines)
        self.assertEqual(response.status, 200)
        self.assertTrue(response.whole)
        return response

    def test_counters_follow_requests(self):
        before = self.read().body.decode()
        self.assertIn('\nsunproxy_requests_total{outcome="hit"} 0\n', before)
        for _ in range(3):
            self.sunproxy("get", "-o", "/dev/null", "http://a.test/page", daemon=self.d)
        after = self.read().body.decode()
        self.assertIn('\nsunproxy_requests_total{outcome="miss"} 1\n', after)
        self.assertIn('\nsunproxy_requests_total{outcome="hit"} 2\n', after)
        self.assertIn("\nsunproxy_miss_duration_seconds_count 1\n", after)

    def values(self):
        """The samples by name, without the prefix."""
        lines = self.read().body.decode().splitlines()
        return {name.removeprefix("sunproxy_"): float(value)
                for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}

    def test_requests_over_http(self):
        proxy = self.connect(harness.wait_until(lambda: http_address(self.d), what="the HTTP front"))
        url = stored("http://a.test/page")
        size = len(proxy.get(url).body)
        self.assertGreater(size, 100)
        for _ in range(2):
            self.assertEqual(len(proxy.get(url).body), size)
        self.assertEqual(proxy.get("http://a.test/x?fault=garbage").status, 502)
        self.assertEqual(proxy.get("http://a.test:25/").status, 403)
        self.assertEqual(proxy.get(stored("http://a.test/other")).status, 200)
        self.sunproxy("get", "-o", "/dev/null", "http://a.test/page", daemon=self.d)
        v = self.values()
        found = {name: v[name] for name in v if name.startswith(("front_requests", "http_resp"))}
        self.assertEqual(found, {
            'front_requests_total{front="rpc1"}': 0, 'front_requests_total{front="rpc2"}': 1,
            'front_requests_total{front="http"}': 6, 'http_responses_total{class="1xx"}': 0,
            'http_responses_total{class="2xx"}': 4, 'http_responses_total{class="3xx"}': 0,
            'http_responses_total{class="4xx"}': 1, 'http_responses_total{class="5xx"}': 1})
        self.assertEqual(v["hit_duration_seconds_count"], 2)
        self.assertEqual(v["miss_duration_seconds_count"], 3)
        self.assertEqual(v['served_bytes_total{source="cache"}'], 2 * size)
        self.assertGreater(v['front_body_bytes_total{front="http"}'], 3 * size)
        self.assertEqual(v['origin_fetches_total{result="ok"}'], 3)
        self.assertEqual(v['origin_fetches_total{result="origin_broke"}'], 1)
        self.assertEqual(v["cache_evictions_total"], 2)
        self.assertEqual(v['cache_objects{state="ready"}'], 1)
        self.assertEqual(v['cache_objects{state="busy"}'], 0)

    def test_formats(self):
        prometheus = self.read()
        self.assertEqual(prometheus.field("content-type"),
                         "text/plain; version=0.0.4; charset=utf-8")
        openmetrics = self.read("Accept: application/openmetrics-text;version=1.0.0;q=0.6,"
                                "text/plain;version=0.0.4;q=0.3,*/*;q=0.2")
        self.assertEqual(openmetrics.field("content-type"),
                         "application/openmetrics-text; version=1.0.0; charset=utf-8")
        self.assertTrue(openmetrics.body.endswith(b"# EOF\n"))
        head = self.c.get("/metrics", method="HEAD")
        self.assertEqual((head.status, head.body), (200, b""))
        self.assertGreater(int(head.field("content-length")), 1000)
        self.assertEqual(self.read().status, 200)  # the same connection

    def test_promtool(self):
        if not shutil.which("promtool"):
            self.skipTest("promtool is not installed (Debian's package prometheus)")
        self.sunproxy("get", "-o", "/dev/null", "http://a.test/page", daemon=self.d)
        path = self.dir / "metrics"
        path.write_bytes(self.read().body)
        result = self.run_program(["sh", "-c", f"promtool check metrics < {path}"])
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, b"", b""))

    def test_refusals(self):
        for target, method, status in (("/", "GET", 404), ("/metrics2", "GET", 404),
                                       ("/metrics", "POST", 405), ("/metrics", "DELETE", 405)):
            response = self.c.get(target, method=method)
            self.assertEqual(response.status, status, target)
            self.assertTrue(response.whole)
        self.assertEqual(self.c.get("/metrics?x=1").status, 200)
        self.c.send("GET /metrics HTTP/1.1\r\nContent-Length: 4\r\nHost: a\r\n\r\nbody")
        self.assertEqual(self.c.receive().status, 413)
        self.assertTrue(self.c.is_closed())
        connection = self.connect(self.address)
        connection.send("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n")
        self.assertEqual(connection.receive().status, 404)
        for bad, status in (("GET  /metrics HTTP/1.1\r\n\r\n", 400), ("GET /" + "x" * 10000, 414),
                            ("GET /metrics HTTP/1.1\r\n\r\n", 400)):
            connection = self.connect(self.address)
            connection.send(bad)
            self.assertEqual(connection.receive().status, status, bad[:20])
            self.assertTrue(connection.is_closed())

    def test_health(self):
        response = self.c.get("/healthz")
        self.assertEqual((response.status, response.body), (200, b"serving\n"))
        response = self.c.get("/healthz?x", method="HEAD")
        self.assertEqual((response.status, response.body), (200, b""))
        self.assertEqual(self.c.get("/healthz", method="POST").status, 405)
        self.assertEqual(self.c.get("/healthz").status, 200)

    def test_it_serves_on_while_balancers_are_told_that_it_stops(self):
        path = str(self.dir / "stops.sock")
        d = self.daemon("--metrics", f"unix:{path}", "--stop-delay", "300s", origin=self.o)
        c = self.connect(path)
        self.assertEqual(c.get("/healthz").status, 200)
        d.signal(signal.SIGTERM)
        harness.wait_until(lambda: c.get("/healthz").status == 503, what="that it stops")
        self.assertEqual(self.connect(path).get("/healthz").body, b"stopping\n")
        self.sunproxy("get", "-o", "/dev/null", "http://a.test/page", daemon=d)
        self.assertEqual(d.stop(), 0, d.err)  # by a second signal

    def test_byte_by_byte_over_a_socket(self):
        connection = self.connect(self.unix)
        for byte in "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":
            connection.send(byte)
        response = connection.receive()
        self.assertEqual((response.status, response.whole), (200, True))
        self.assertTrue(connection.is_closed())

    def test_a_client_that_does_not_read_has_one_reply(self):
        reply = len(self.read().body)
        kind = 'memory_bytes{kind="replies"}'
        slow = socket.socket()
        self.addCleanup(slow.close)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(1)
        slow.connect(self.address)
        # Their replies are far more than the buffers of both sockets take.
        try:
            slow.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 2000)
        except TimeoutError:
            pass
        harness.wait_until(lambda: self.values()[kind] >= reply, what="a reply that waits")
        self.assertLess(self.values()[kind], 2 * reply + 16384)

    def test_pipelined(self):
        self.c.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\nGET /no HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual([self.c.receive().status for _ in range(2)], [200, 404])
