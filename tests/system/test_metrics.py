"""The metrics over HTTP, as a monitoring system reads them."""

import re
import shutil

import harness
from test_http import Connection


class MetricsTest(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.o = self.origin()
        self.unix = str(self.dir / "metrics.sock")
        self.d = self.daemon("--metrics", "127.0.0.1:0", "--metrics", f"unix:{self.unix}", origin=self.o)
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
        for bad, status in (("GET  /metrics HTTP/1.1\r\n\r\n", 400), ("GET /" + "x" * 10000, 414),
                            ("GET /metrics HTTP/1.1\r\n\r\n", 400)):
            connection = self.connect(self.address)
            connection.send(bad)
            self.assertEqual(connection.receive().status, status, bad[:20])
            self.assertTrue(connection.is_closed())

    def test_byte_by_byte_over_a_socket(self):
        connection = self.connect(self.unix)
        for byte in "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":
            connection.send(byte)
        response = connection.receive()
        self.assertEqual((response.status, response.whole), (200, True))
        self.assertTrue(connection.is_closed())

    def test_pipelined(self):
        self.c.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\nGET /no HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual([self.c.receive().status for _ in range(2)], [200, 404])
