"""Bounds and rates of clients that something in front states: a load balancer, a TLS terminator."""

import harness
from http_front import PROXY_SIGNATURE, Connection, http_address, proxy_header

ONE, OTHER = "203.0.113.7", "203.0.113.8"


class StatedTest(harness.SystemTest):
    listener = "--http"
    options = ()

    def setUp(self):
        super().setUp()
        o = self.origin()
        self.d = self.daemon(self.listener, "127.0.0.1:0", "--client-net", "0.0.0.0/0", *self.options, origin=o)
        self.address = harness.wait_until(lambda: http_address(self.d), what="the HTTP front")

    def connect(self, header=b""):
        c = Connection(self.address)
        self.addCleanup(c.close)
        if header:
            c.send(header)
        return c

    def refused_after(self, get):
        """Until one of many fetches is refused: how many were not."""
        for n in range(1000):
            if get(f"http://a.test/{n}").status == 503:
                return n
        return self.fail("no fetch is refused")


class ForwardedTest(StatedTest):
    options = ("--trust-forwarded", "127.0.0.1", "--forwarded-field", "x-forwarded-for",
               "--rate-fetches", "1", "--rate-calls", "1", "--max-connections-per-client", "1")

    def test_the_rate_of_fetches_is_that_of_each_client(self):
        """On one connection of the proxy, of which no rate of calls holds back a client's."""
        c = self.connect()
        first = self.refused_after(lambda url: c.get(url, f"X-Forwarded-For: {ONE}"))
        self.assertGreater(first, 0)
        self.assertEqual(c.get("http://b.test/", f"X-Forwarded-For: {OTHER}").status, 200)

    def test_connections_of_the_proxy_are_not_those_of_a_client(self):
        several = [self.connect() for _ in range(4)]
        for n, c in enumerate(several):
            self.assertEqual(c.get("http://a.test/", f"X-Forwarded-For: 198.51.100.{n}").status, 200)


class ProxyHeaderRateTest(StatedTest):
    listener = "--http-proxied"
    options = ("--rate-fetches", "1")

    def test_the_rate_of_fetches_is_that_of_each_client(self):
        one, again = (self.connect(proxy_header(ONE)) for _ in range(2))
        turns = (c for _ in range(1000) for c in (one, again))
        self.assertGreater(self.refused_after(lambda url: next(turns).get(url)), 0)
        self.assertEqual(self.connect(proxy_header(OTHER)).get("http://b.test/").status, 200)


class ProxyHeaderConnectionsTest(StatedTest):
    listener = "--http-proxied"
    options = ("--max-connections-per-client", "1")

    def test_connections_count_for_the_client(self):
        first = self.connect(proxy_header(ONE))
        self.assertEqual(first.get("http://a.test/").status, 200)
        self.assertTrue(self.connect(proxy_header(ONE)).is_closed())
        for header in (proxy_header(OTHER), PROXY_SIGNATURE + b"\x20\0\0\0", PROXY_SIGNATURE + b"\x20\0\0\0"):
            self.assertEqual(self.connect(header).get("http://a.test/").status, 200)
        first.close()

        def may_connect():
            c = self.connect(proxy_header(ONE))
            try:
                c.send("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
                return not c.is_closed()
            except BrokenPipeError:
                return False

        harness.wait_until(may_connect, what="the place of the first connection")
