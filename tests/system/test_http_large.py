"""Large bodies over HTTP: stored up to --max-page, and passed on in little memory beyond it."""

import http.client
import http.server
import socket
import time

import harness
import rpc
import http_front

MEBI = 1 << 20


class LargeTest(http_front.HttpTest):
    options = ("--capacity-bytes", "64M", "--shards", "1")  # bodies up to 8 MiB are stored

    def setUp(self):
        super().setUp()
        self.admin = rpc.Connection(self.d.socket)
        self.addCleanup(self.admin.close)

    def url(self, size, *faults):
        """A body of this size, which may be stored for a minute."""
        faults = (f"size:{size}", *faults)
        return http_front.stored("http://a.test/?" + "&".join(f"fault={f}" for f in faults))

    def slow_reader(self):
        """A connection whose peer can send little that is not read."""
        s = socket.socket()
        self.addCleanup(s.close)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        s.settimeout(60)
        s.connect(self.address)
        return s

    def fetched(self):
        return self.admin.stat().value("fetched_bytes")

    def begin(self, url):
        s = self.slow_reader()
        s.sendall(f"GET {url} HTTP/1.1\r\nHost: a.test\r\n\r\n".encode())
        return s

    def wait_for_pause(self):
        """Waits until no more is received from the origin; returns what was."""
        before = -1
        while (now := self.fetched()) != before or now < MEBI:
            before = now
            time.sleep(0.3)
        return now

    def test_the_largest_stored_body_is_an_eighth_of_the_capacity(self):
        for size, hits in ((8 * MEBI, True), (8 * MEBI + 1, False)):
            url = self.url(size)
            text = harness.origin_text(url, size)
            for again in (False, True):
                response = self.c.get(url)
                self.assertEqual(response.body, text)
                self.assertEqual(http_front.is_hit(response), hits and again)

    def test_a_slow_client_takes_little_memory_and_gets_all(self):
        size = 100 * MEBI
        for faults in ((), ("no-length",)):
            url = self.url(size, *faults)
            before = self.fetched()
            s = self.begin(url)
            received = self.wait_for_pause() - before
            self.assertLess(received, 50 * MEBI)
            # Without a length, up to 8 MiB are kept, since they might have been stored.
            self.assertLess(self.admin.stat().memory_pages, (10 if faults else 3) * MEBI)
            self.assertEqual(self.read_all(s, most=3 * MEBI), size)
            self.assertEqual(self.admin.stat().pages, 0)

    def read_all(self, s, most):
        """The length of the body, of which each line has its own number."""
        response = http.client.HTTPResponse(s)
        response.begin()
        total, lines = 0, 256 * 1024 // harness.LINE
        while data := response.read(lines * harness.LINE):
            first = total // harness.LINE
            expected = b"".join(b"%s %014x\n" % (data[:16], first + i) for i in range(lines))
            self.assertTrue(expected.startswith(data))
            total += len(data)
            if total % (8 * MEBI) == 0:
                self.assertLess(self.admin.stat().memory_pages, most)
        return total

    def test_the_fetch_ends_with_its_only_client(self):
        s = self.begin(self.url(100 * MEBI))
        self.wait_for_pause()
        self.assertEqual(self.admin.stat().fetches_active, 1)
        s.close()
        harness.wait_until(lambda: self.admin.stat().fetches_active == 0, what="the fetch's end")
        self.assertLess(self.admin.stat().memory_pages, MEBI)


class RefusingHandler(http.server.BaseHTTPRequestHandler):
    """Answers before it reads the body, which it then reads to its end."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.send_response(403)
        self.send_header("Content-Length", "7")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"refused")
        self.wfile.flush()
        left = int(self.headers["Content-Length"])
        while left and (data := self.rfile.read1(min(left, 65536))):
            left -= len(data)


class RefusedUploadTest(harness.SystemTest):
    """A connection that is closed while its client sends would be reset, and sending fails."""

    body = bytes(4 * MEBI)

    def setUp(self):
        super().setUp()
        origin = harness.PythonOrigin(self, RefusingHandler)
        d = self.daemon("--http", "127.0.0.1:0", "--origin", f"/={origin.url}")
        self.address = harness.wait_until(lambda: http_front.http_address(d),
                                          what="the HTTP front")

    def begin(self):
        c = http_front.Connection(self.address)
        self.addCleanup(c.close)
        c.send(f"POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: {len(self.body)}\r\n\r\n")
        return c

    def assert_refused(self, c):
        response = c.receive()
        self.assertEqual((response.status, response.body), (403, b"refused"))

    def test_a_client_that_still_sends_gets_the_response(self):
        """If all it sends is taken before the response is complete, its connection is kept."""
        for _ in range(20):
            c = self.begin()
            c.send(self.body)
            self.assert_refused(c)
            c.close()

    def test_the_rest_of_a_refused_body_is_taken_before_the_end(self):
        half = len(self.body) // 2
        for _ in range(5):
            c = self.begin()
            c.send(self.body[:half])
            self.assert_refused(c)
            c.send(self.body[half:])
            self.assertTrue(c.is_closed())
            c.close()

    def test_the_rest_of_what_cannot_be_read_is_taken_before_the_end(self):
        head = "POST /x HTTP/1.1\r\nHost: a.test\r\n"
        for status, begun in ((431, head + "X: " + "x" * 100000),
                              (400, head + "Content-Length: 1x\r\n\r\n"),
                              (400, head + "Transfer-Encoding: chunked\r\n\r\nz\r\n")):
            with self.subTest(begun=begun[:80]):
                c = http_front.Connection(self.address)
                self.addCleanup(c.close)
                c.send(begun)
                self.assertEqual(c.receive().status, status)
                c.send(self.body)
                self.assertTrue(c.is_closed())
