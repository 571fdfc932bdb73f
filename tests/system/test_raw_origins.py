"""Origins that send bytes which no server would: the daemon answers 502, and the next request."""

import gzip

import harness
import rpc
from raw_origin import RawOrigin
from http_front import Connection


def serve(test, origin, *options):
    """A daemon before the origin, over HTTP on test.http and over RPC."""
    return serve_with(test, "--origin", f"/={origin.url}", *options)


def serve_with(test, *options):
    test.http = str(test.dir / f"http{len(test.processes)}.sock")
    daemon = test.daemon("--http", f"unix:{test.http}", "--allow-net", "127.0.0.0/8", *options)
    harness.wait_until(lambda: " serves with " in daemon.err, what="both fronts")
    return daemon


def connect(test):
    c = Connection(test.http)
    test.addCleanup(c.close)
    return c


HEADS = {
    "cr-and-text": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\rX\r\nhello",
    "cr-cr-lf": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\r\nhello",
    "cr-cr-lf-and-an-empty-line": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\r\n\r\nhello",
    "cr-in-an-interim-head": b"HTTP/1.1 103 Early\r\n\r\r\nHTTP/1.1 200 OK\r\n"
                             b"Content-Length: 5\r\n\r\nhello",
    "cr-before-chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\r\n"
                        b"5\r\nhello\r\n0\r\n\r\n",
    "cr-before-the-status-line": b"\rHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "an-empty-head": b"\r\n\r\nhello",
}


class HeadTest(harness.SystemTest):
    """Lines at which libcurl ends the head, and no other reader does."""

    needs = (harness.SUNPROXYD,)

    def setUp(self):
        super().setUp()
        # A length of 0 needs no body to end the answer.
        answers = {f"/{name}": head for name, head in HEADS.items()}
        answers["/no-body"] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\r\n"
        self.o = RawOrigin(self, answers, closing=answers)
        self.d = serve(self, self.o)
        self.paths = list(answers)

    def test_over_http(self):
        for path in self.paths:
            for method in ("GET", "HEAD", "POST"):
                c = connect(self)
                length = "Content-Length: 0\r\n" if method == "POST" else ""
                c.send(f"{method} {path} HTTP/1.1\r\nHost: a.test\r\n{length}\r\n")
                self.assertEqual(c.receive(head_only=method == "HEAD").status, 502, (method, path))
        c = connect(self)
        c.send("GET /fine HTTP/1.1\r\nHost: a.test\r\n\r\n")
        self.assertEqual(c.receive().body, b"fine")

    def test_over_rpc(self):
        with rpc.Connection(self.d.socket) as c:
            for path in self.paths:
                page = c.get(self.o.url + path)
                self.assertEqual(page.status, "origin_broke", path)
                self.assertEqual(c.fetch_v1(self.o.url + path), "SYSTEM_ERR", path)
            self.assertEqual(c.get(f"{self.o.url}/fine").body, b"fine")
            self.assertEqual(c.stat().pages, 1)


class WriteTest(harness.SystemTest):
    """Writes over HTTP share connections to the origin, and none is sent twice."""

    needs = (harness.SUNPROXYD,)

    def start(self, *options, **more):
        self.o = RawOrigin(self, {"/closing": b""}, closing=("/closing",), **more)
        self.d = serve(self, self.o, *options)
        return connect(self)

    def write(self, c, method="POST", path="/", body="hello"):
        c.send(f"{method} {path} HTTP/1.1\r\nHost: a.test\r\nContent-Length: {len(body)}\r\n\r\n{body}")
        return c.receive().status

    def test_many_in_sequence_leave_few_connections(self):
        c = self.start()
        for n in range(300):
            self.assertEqual(self.write(c, ("POST", "PUT", "PATCH", "DELETE")[n % 4]), 200)
        self.assertEqual(len(self.o.arrivals), 300)
        self.assertLessEqual(self.o.connections, 4)

    def test_an_origin_with_few_workers(self):
        """Each keeps a connection, as long as that is open."""
        c = self.start(workers=8)
        for _ in range(20):
            self.assertEqual(self.write(c), 200)
        # All eight at once, and as many again.
        clients = [connect(self) for _ in range(8)]
        for _ in range(2):
            for client in clients:
                client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n")
            for client in clients:
                self.assertEqual(client.receive().status, 200)
        self.assertEqual(self.write(c), 200)
        self.assertLessEqual(self.o.connections, 8)

    def test_few_are_kept(self):
        c = self.start("--max-idle-per-origin", "2")
        clients = [connect(self) for _ in range(8)]
        for client in clients:
            client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n")
        for client in clients:
            self.assertEqual(client.receive().status, 200)
        harness.wait_until(lambda: self.o.open <= 2, what="the end of the other connections")
        self.assertEqual(self.write(c), 200)

    def test_an_origin_that_reads_a_write_and_closes(self):
        c = self.start()
        for n, method in enumerate(("POST", "PUT", "PATCH", "DELETE")):
            self.assertEqual(self.write(c), 200)
            kept = self.o.connections
            self.assertEqual(self.write(c, method, "/closing"), 502)
            self.assertEqual(self.o.arrivals.count((method, "/closing")), 1)
            self.assertEqual(self.o.connections, kept, "it was sent on the kept connection")
            self.assertEqual(len(self.o.arrivals), 2 * n + 2)
        self.assertEqual(self.write(c), 200)
        c.send("DELETE /closing HTTP/1.1\r\nHost: a.test\r\n\r\n")
        self.assertEqual(c.receive().status, 502)
        self.assertEqual(self.o.arrivals.count(("DELETE", "/closing")), 2, "one of each")


def zstd_of_zeros(blocks):
    """RFC 8878: blocks that repeat a byte 131,072 times, of 4 bytes each."""
    repeat = (131072 << 3) | (1 << 1)
    last = repeat | 1
    return (b"\x28\xb5\x2f\xfd\x00\x50" + (repeat.to_bytes(3, "little") + b"\0") * (blocks - 1)
            + last.to_bytes(3, "little") + b"\0")


class CodedTest(harness.SystemTest):
    """Bodies that decode to more than version 1 of RPC carries."""

    needs = (harness.SUNPROXYD,)
    decoded = 22 << 20

    def test_any_length_over_version_2(self):
        def answer(coding, body):
            return (f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {len(body)}"
                    "\r\n\r\n").encode() + body

        text = b"".join(b"%d," % n for n in range(self.decoded // 7))
        o = RawOrigin(self, {
            "/zeros": answer("gzip", gzip.compress(bytes(self.decoded))),
            "/text": answer("gzip", gzip.compress(text, 1)),
            "/bomb": answer("zstd", zstd_of_zeros(320)),
            "/small": answer("zstd", zstd_of_zeros(2)),
        })
        d = serve(self, o)
        with rpc.Connection(d.socket) as c:
            for path, body in (("/zeros", bytes(self.decoded)), ("/text", text),
                               ("/small", bytes(262144))):
                page = c.get(o.url + path)
                self.assertEqual(page.status, "ok", page.sentence)
                self.assertTrue(page.body == body, path)
            # More than 1,100 bytes of each, and more than 20 MiB.
            page = c.get(o.url + "/bomb")
            self.assertEqual(page.status, "too_large")
            self.assertLessEqual(len(page.body), 20 << 20)
            self.assertEqual(c.fetch_v1(o.url + "/bomb"), "SYSTEM_ERR")


class ChallengeTest(harness.SystemTest):
    """A 407 of an origin."""

    needs = (harness.SUNPROXYD,)

    def setUp(self):
        super().setUp()
        self.o = RawOrigin(self, {
            "/407": b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"a\"\r\n"
                    b"Cache-Control: max-age=60\r\nContent-Length: 5\r\n\r\nhello"})

    def test_in_front_of_a_server_it_is_passed_on(self):
        serve(self, self.o)
        c = connect(self)
        for _ in range(2):
            response = c.get("/407")
            self.assertEqual(response.status, 407)
            self.assertEqual(response.field("Proxy-Authenticate"), 'Basic realm="a"')
            self.assertEqual(response.body, b"hello")
        self.assertEqual(len(self.o.arrivals), 2, "it is not stored")

    def test_a_forward_proxy_asks_for_no_credentials(self):
        serve_with(self)
        response = connect(self).get(f"{self.o.url}/407")
        self.assertEqual(response.status, 502)
        self.assertIsNone(response.field("Proxy-Authenticate"))
