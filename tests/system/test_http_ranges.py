"""What requests for ranges and with conditions cost the origin, by the bytes that it counts."""

import http.server
import re
import threading

import harness
import http_front

SIZE = 8 << 20
PART = 100
BODY = bytes(i * 7 % 251 for i in range(251)) * (SIZE // 251 + 1)
# What a socket takes of a response that its reader gives up: the kernels' buffers on both sides.
BUFFERED = SIZE


class Files(harness.PythonOrigin):
    """An origin of files of 8 MiB that serves ranges and answers conditions."""

    request_queue_size = 64

    def __init__(self, test):
        self.lock = threading.Lock()
        self.sent = 0
        self.requests = []
        self.going = 0
        super().__init__(test, FileHandler)

    def is_idle(self):
        with self.lock:
            return self.going == 0


class FileHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    LINES = {"stored": ("Cache-Control", "max-age=60"), "private": ("Cache-Control", "no-store"),
             "unstated": ("X-A", "b")}

    def log_message(self, *_):
        pass

    def do_GET(self):
        server, asked = self.server, self.headers["Range"]
        with server.lock:
            server.going += 1
            server.requests.append(asked)
        try:
            self.respond(re.match(r"bytes=(\d+)-(\d*)$", asked or ""))
        finally:
            with server.lock:
                server.going -= 1

    def respond(self, part):
        if self.headers["If-None-Match"] == '"one"':
            self.send_response(304)
            self.send_header("ETag", '"one"')
            self.end_headers()
            return
        first = int(part[1]) if part else 0
        last = int(part[2]) if part and part[2] else SIZE - 1
        self.send_response(206 if part else 200)
        if part:
            self.send_header("Content-Range", f"bytes {first}-{last}/{SIZE}")
        self.send_header(*self.LINES[self.path.split("/")[1]])
        self.send_header("ETag", '"one"')
        self.send_header("Content-Length", str(last + 1 - first))
        self.end_headers()
        for at in range(first, last + 1, 16384):
            piece = BODY[at:min(at + 16384, last + 1)]
            self.wfile.write(piece)
            with self.server.lock:
                self.server.sent += len(piece)


class CostTest(http_front.HttpTest):
    def setUp(self):
        super().setUp()
        self.files = Files(self)

    def part(self, path, first, count=PART):
        c = self.connect()
        response = c.get(self.files.url + path, f"Range: bytes={first}-{first + count - 1}")
        self.assertEqual(response.status, 206)
        self.assertEqual(response.field("Content-Range"),
                         f"bytes {first}-{first + count - 1}/{SIZE}")
        self.assertEqual(response.body, BODY[first:first + count])
        self.assertNotIn("fwd=miss", response.field("Cache-Status"))
        c.close()
        return response

    def settle(self):
        harness.wait_until(self.files.is_idle, what="the end of the fetches")

    def test_parts_of_a_file_cost_it_once(self):
        for path, first in (("/stored/near", 0), ("/stored/middle", SIZE // 2)):
            sent = self.files.sent
            for _ in range(6):
                self.part(path, first)
            self.settle()
            # The whole, and each part that it had not reached.
            parts = range(7 if first else 1)
            self.assertIn(self.files.sent - sent, [SIZE + n * PART for n in parts])
            harness.wait_until(lambda: http_front.is_hit(self.part(path, SIZE - PART)),
                               what="a hit")

    def test_parts_of_what_is_not_stored_cost_themselves(self):
        self.part("/private", 0)
        self.settle()
        sent = self.files.sent
        self.assertLessEqual(sent, BUFFERED)
        for i in range(20):
            self.part("/private", i * 1000)
        self.settle()
        self.assertEqual(self.files.sent - sent, 20 * PART)
        self.assertEqual(self.files.requests[0], None)
        self.assertTrue(all(self.files.requests[1:]))

    def test_conditions_cost_nothing_or_the_file_once(self):
        url = self.files.url + "/stored"
        for _ in range(3):
            self.assertEqual(self.c.get(url, 'If-None-Match: "one"').status, 304)
        self.assertEqual(self.files.sent, 0)
        self.assertEqual(self.c.get(url, 'If-None-Match: "two"').body, BODY[:SIZE])
        self.assertEqual(self.c.get(url, 'If-None-Match: "one"').status, 304)
        self.assertTrue(http_front.is_hit(self.c.get(url)))
        self.assertEqual(self.files.sent, SIZE)


class SmallFillTest(CostTest):
    """With a bound below the file's size its parts are the origin's."""

    options = ("--range-fill-size", "4M")

    def test_parts_of_a_file_cost_it_once(self):
        for path in ("/stored", "/private"):
            self.part(path, 0)
            self.settle()
            sent = self.files.sent
            for i in range(5):
                self.part(path, i * 1000000)
            self.settle()
            self.assertEqual(self.files.sent - sent, 5 * PART)


if __name__ == "__main__":
    harness.sys.exit("run tests/system/run.py")
