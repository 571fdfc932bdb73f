"""HTTP clients that leave: nothing is fetched for them any more, however silent the origin is."""

import http.server
import threading
import time

import harness
import http_front

FETCHES = 16  # at a time, of one origin


class Streams(harness.PythonOrigin):
    """An origin whose /events, /silent and /talks end with their connections."""

    request_queue_size = 64

    def __init__(self, test):
        self.lock = threading.Lock()
        self.open = 0
        self.begun = 0
        self.ended = threading.Event()
        test.addCleanup(self.ended.set)
        super().__init__(test, StreamHandler)

    def count(self, difference):
        with self.lock:
            self.open += difference
            self.begun += difference > 0


class StreamHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path == "/page":
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")
            return
        self.close_connection = True
        self.server.count(1)
        try:
            if not self.path.startswith("/silent"):
                self.send_response(200)
                self.send_header("Cache-Control",
                                 "max-age=60" if "stored" in self.path else "no-store")
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(b"data: 1\n\n")
            if self.path.startswith("/talks"):
                while not self.server.ended.is_set():
                    self.wfile.write(b"data: 2\n\n")
                    time.sleep(0.01)
            else:
                self.connection.recv(1)  # until the proxy closes it
        except OSError:
            pass
        finally:
            self.server.count(-1)


class LeavingTest(http_front.HttpTest):
    options = ("--max-fetches-per-origin", str(2 * FETCHES), "--stall-timeout", "10m",
               "--first-byte-timeout", "10m", "--fetch-timeout", "10m")

    def setUp(self):
        super().setUp()
        self.streams = Streams(self)

    def leave(self, target, pipelined=b""):
        """As many clients as there may be fetches ask, read what has come, and close."""
        connections = [self.connect() for _ in range(FETCHES)]
        for i, connection in enumerate(connections):
            connection.send(f"GET {self.streams.url}{target}?{i} HTTP/1.1\r\n"
                            "Host: a.test\r\n\r\n".encode() + pipelined)
        harness.wait_until(lambda: self.streams.begun == FETCHES, what="the requests")
        for connection in connections:
            if target != "/silent":
                while b"data: 1" not in connection.rest:
                    self.assertTrue(connection._more())
            connection.close()
        harness.wait_until(lambda: self.streams.open == 0, seconds=60,
                           what="the end of the connections to the origin")
        self.assertEqual(self.c.get(self.streams.url + "/page").body, b"ok")

    def test_after_the_first_event(self):
        self.leave("/events")

    def test_before_the_head(self):
        self.leave("/silent")

    def test_with_a_byte_of_another_request(self):
        self.leave("/events", b"G")


class UncachedTest(LeavingTest):
    """Without a cache a response that could be stored is of no use to others either."""

    options = (*LeavingTest.options, "--policy", "none")

    def test_while_the_origin_talks(self):
        self.leave("/talks-stored")


class HalfCloseTest(http_front.HttpTest):
    """A client that has ended its side has what is there, and nothing that the origin has yet to
    send."""

    def test_hits_are_sent_and_misses_are_not(self):
        streams = Streams(self)
        hit = http_front.stored("http://a.test/page?bytes=300")
        self.assertEqual(self.c.get(hit).status, 200)
        for target, statuses in ((hit, [200]), (streams.url + "/silent", [])):
            c = self.connect()
            c.send(f"GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n")
            if not statuses:
                harness.wait_until(lambda: streams.begun, what="the request")
            c.socket.shutdown(http_front.socket.SHUT_WR)
            for status in statuses:
                self.assertEqual(c.receive().status, status)
            self.assertTrue(c.is_closed())
        harness.wait_until(lambda: streams.open == 0, what="the end of the connection")


if __name__ == "__main__":
    harness.sys.exit("run tests/system/run.py")
