"""The HTTP front of the real daemon: forward proxy, framing, limits."""

import re
import shutil
import socket
import time

import harness


class Response:
    def __init__(self, status, fields, body, whole):
        self.status = status
        self.fields = fields  # list of (name in lower case, value)
        self.body = body
        self.whole = whole  # it ended as its framing announced

    def field(self, name):
        return ", ".join(value for key, value in self.fields if key == name.lower()) or None


class Connection:
    """A raw connection: what is sent is what the test says."""

    def __init__(self, address):
        if isinstance(address, str):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(address)
        else:
            self.socket = socket.create_connection(address, 20)
        self.socket.settimeout(30)
        self.rest = b""

    def close(self):
        self.socket.close()

    def send(self, text):
        self.socket.sendall(text if isinstance(text, bytes) else text.encode("latin-1"))

    def _more(self):
        data = self.socket.recv(65536)
        self.rest += data
        return bool(data)

    def _line(self):
        while b"\r\n" not in self.rest:
            if not self._more():
                return None
        line, self.rest = self.rest.split(b"\r\n", 1)
        return line

    def _bytes(self, count):
        while len(self.rest) < count and self._more():
            pass
        data, self.rest = self.rest[:count], self.rest[count:]
        return data

    def receive(self, head_only=False):
        """The next response; None at the end of the connection."""
        line = self._line()
        if line is None:
            return None
        status = int(line.split()[1])
        fields = []
        while line := self._line():
            name, value = line.decode("latin-1").split(":", 1)
            fields.append((name.lower(), value.strip()))
        response = Response(status, fields, b"", True)
        if head_only or status < 200 or status in (204, 304):
            return response
        if response.field("transfer-encoding") == "chunked":
            while True:
                line = self._line()
                size = int(line, 16) if line else -1
                data = self._bytes(size + 2) if line else b""
                response.whole = len(data) == size + 2 and data.endswith(b"\r\n")
                response.body += data[:-2]
                if not response.whole or size == 0:
                    return response
        length = response.field("content-length")
        if length is not None:
            response.body = self._bytes(int(length))
            response.whole = len(response.body) == int(length)
        else:
            while self._more():
                pass
            response.body, self.rest = self.rest, b""
        return response

    def get(self, url, *lines, version="1.1", method="GET"):
        host = "" if version == "1.0" else "Host: ignored.test\r\n"
        self.send(f"{method} {url} HTTP/{version}\r\n{host}" + "".join(f"{l}\r\n" for l in lines)
                  + "\r\n")
        return self.receive(head_only=method == "HEAD")

    def is_closed(self):
        try:
            return not self.rest and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


class HttpTest(harness.SystemTest):
    options = ()

    def setUp(self):
        super().setUp()
        self.o = self.origin()
        self.unix = str(self.dir / "http.sock")
        self.d = self.http_daemon(*self.options)
        self.c = self.connect()

    def http_daemon(self, *options, **more):
        d = self.daemon("--http", "127.0.0.1:0", "--http", f"unix:{self.unix}", *options,
                        origin=self.o, **more)
        self.address = harness.wait_until(lambda: http_address(d), what="the HTTP front")
        return d

    def connect(self, address=None):
        connection = Connection(address or self.address)
        self.addCleanup(connection.close)
        return connection


def http_address(daemon):
    match = re.search(r"serving HTTP on (127\.0\.0\.1):(\d+)", daemon.err)
    return match and (match[1], int(match[2]))


def stored(url):
    """A URL whose response may be stored: the origin states a lifetime."""
    return url + ("&" if "?" in url else "?") + "fault=header:Cache-Control%3a%20max-age%3d60"


def is_hit(response):
    return response.field("Cache-Status").startswith("sunproxy; hit")


class ForwardTest(HttpTest):
    def test_a_miss_then_hits(self):
        url = stored("http://a.test/page?bytes=3000")
        first = self.c.get(url)
        self.assertEqual(first.status, 200)
        self.assertTrue(first.field("Cache-Status").startswith("sunproxy; fwd=uri-miss"))
        self.assertEqual(first.body, harness.origin_text(url, len(first.body)))
        for connection in (self.c, self.connect(), self.connect(self.unix)):
            again = connection.get(url)
            self.assertEqual((again.status, again.body), (200, first.body))
            self.assertTrue(is_hit(again))
            self.assertIsNotNone(again.field("Age"))
        self.assertEqual(len(self.o.requests()), 1)

    def test_https_is_cached_without_a_tunnel(self):
        url = stored("https://a.test/page")
        first = self.c.get(url)
        again = self.c.get(url)
        self.assertEqual((first.status, again.status), (200, 200))
        self.assertEqual(again.body, first.body)
        self.assertTrue(is_hit(again))
        self.assertEqual([row[0] for row in self.o.requests()], ["https"])

    def test_by_curl(self):
        if not shutil.which("curl"):
            self.skipTest("curl is not installed")
        proxy = "%s:%d" % self.address
        for _ in range(2):
            result = self.run_program(["curl", "-sS", "-i", "-x", proxy,
                                       stored("http://a.test/a"), stored("http://a.test/b")])
            self.assertEqual((result.returncode, result.stderr), (0, b""))
            self.assertEqual(result.stdout.count(b"HTTP/1.1 200 OK\r\n"), 2)
        self.assertEqual(len(self.o.requests()), 2)
        self.assertEqual(result.stdout.count(b"Cache-Status: sunproxy; hit"), 2)

    def test_addresses_are_refused_as_for_fetches(self):
        response = self.c.get("http://10.0.0.1:8080/")
        self.assertEqual(response.status, 403)
        self.assertIn(b"--allow-net", response.body)
        self.assertEqual(self.c.get("http://a.test:25/").status, 403)

    def test_bad_requests_are_refused_and_the_connection_closed(self):
        for text in ("GET http://a.test/ HTTP/1.1\r\n\r\n", "nonsense\r\n\r\n",
                     "GET http://a.test/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                     "POST http://a.test/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
                     "Transfer-Encoding: chunked\r\n\r\n"):
            c = self.connect()
            c.send(text)
            self.assertEqual(c.receive().status, 400, text)
            self.assertTrue(c.is_closed(), text)
        self.assertEqual(self.o.requests(), [])

    def test_the_daemon_ends_with_connections_open(self):
        self.c.get("http://a.test/page")
        idle = self.connect()
        begun = self.connect()
        begun.send("GET http://a.test/page HT")
        self.assertEqual(self.d.stop(20), 0)
        self.assertTrue(idle.is_closed())
        self.assertTrue(begun.is_closed())


class TimeoutTest(HttpTest):
    options = ("--record-timeout", "300ms", "--idle-timeout", "600ms")

    def test_a_head_that_does_not_come(self):
        begun = self.connect()
        begun.send("GET http://a.test/ HTTP/1.1\r\n")
        started = time.monotonic()
        self.assertTrue(begun.is_closed())
        self.assertLess(time.monotonic() - started, 20)

    def test_a_head_that_trickles_in(self):
        c = self.connect()
        with self.assertRaises((BrokenPipeError, ConnectionResetError)):
            for byte in "GET http://a.test/ HTTP/1.1\r\n" + "X: y\r\n" * 1000:
                c.send(byte)
                time.sleep(0.01)

    def test_an_idle_connection(self):
        self.assertEqual(self.c.get("http://a.test/").status, 200)
        self.assertTrue(self.c.is_closed())

