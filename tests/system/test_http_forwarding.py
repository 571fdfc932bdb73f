"""What the HTTP front changes in messages that it passes on: request targets, Via, Connection."""

import http.server
import threading

import harness
import http_front


class Recorder(harness.PythonOrigin):
    """An origin that records request lines and the fields Via, and responds in HTTP/1.0."""

    def __init__(self, test):
        self.lines = []
        self.vias = []
        self.released = threading.Event()
        super().__init__(test, RecordingHandler)


class RecordingHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.lines.append(self.requestline)
        self.server.vias.append(self.headers["Via"])
        if self.path == "/waits":
            self.server.released.wait(20)
        self.send_response(304 if self.headers["If-None-Match"] else 200)
        self.send_header("Cache-Control", "max-age=60")
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", "2")
        self.end_headers()
        if self.command == "GET" and not self.headers["If-None-Match"]:
            self.wfile.write(b"ok")

    do_OPTIONS = do_GET


class RecordedTest(http_front.HttpTest):
    def setUp(self):
        super().setUp()
        self.recorder = Recorder(self)

    def restart(self, *options):
        self.c.close()
        self.d.stop()
        self.d = self.http_daemon(*options)
        self.c = self.connect()


class OptionsTest(RecordedTest):
    """OPTIONS for a server as a whole: RFC 9110, section 9.3.7, and RFC 9112, section 3.2.4."""

    def ask(self, target):
        # Until the connection ends: the origin states the length of a body that it does not send.
        c = self.connect()
        c.send(f"OPTIONS {target} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
        return c.receive(head_only=True).status

    def test_the_origin_gets_an_asterisk(self):
        url = self.recorder.url
        for target in (url, url + "/", url + "?a"):
            self.ask(target)
        self.assertEqual(self.recorder.lines, [f"OPTIONS {target} HTTP/1.1"
                                               for target in ("*", "/", "/?a")])

    def test_an_upstream_proxy_gets_the_url_without_a_path(self):
        self.c.close()
        self.d.stop()
        d = self.daemon("--http", "127.0.0.1:0", "--upstream-proxy", self.recorder.url,
                        "--allow-net", "2001:db8::/32")
        self.address = harness.wait_until(lambda: http_front.http_address(d), what="the HTTP front")
        for target in ("http://a.test:81", "http://a.test:81/", "http://[2001:db8::1]"):
            self.ask(target)
        self.assertEqual(self.recorder.lines, [
            f"OPTIONS {target} HTTP/1.1"
            for target in ("http://a.test:81", "http://a.test:81/", "http://[2001:db8::1]")])

    def test_a_reverse_proxy_is_the_server(self):
        self.restart("--origin", f"/={self.recorder.url}/below")
        for target in ("*", "http://a.test"):
            self.assertEqual(self.ask(target), 204)
        self.ask("http://a.test/")
        self.assertEqual(self.recorder.lines, ["OPTIONS /below/ HTTP/1.1"])


class ViaTest(RecordedTest):
    """Via has the version in which a message was received: RFC 9110, section 7.6.3."""

    def get(self, *lines, version="1.1"):
        c = self.connect()
        return c.get(self.recorder.url + "/page", "Connection: close", *lines, version=version)

    def test_of_requests(self):
        for version in ("1.0", "1.1"):
            self.get("Cache-Control: no-store", version=version)
        self.assertRegex(self.recorder.vias[0], r"\A1\.0 sunproxy-\w+\Z")
        self.assertRegex(self.recorder.vias[1], r"\A1\.1 sunproxy-\w+\Z")

    def test_of_responses(self):
        for lines, state in (((), "sunproxy; fwd=uri-miss"), ((), "sunproxy; hit; ttl="),
                             (("Cache-Control: no-cache",), "sunproxy; fwd=request; fwd-status=304"),
                             ((), "sunproxy; hit; ttl=")):
            response = self.get(*lines)
            self.assertTrue(response.field("Cache-Status").startswith(state), response.fields)
            self.assertRegex(response.field("Via"), r"\A1\.0 sunproxy-\w+\Z")
            self.assertEqual(response.body, b"ok")


class UnaskedHandler(http.server.BaseHTTPRequestHandler):
    """Answers each request with a 304 or a 206, by its path."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        part = self.path == "/part"
        self.send_response(206 if part else 304)
        self.send_header("ETag", '"1"')
        self.send_header("Cache-Control", "max-age=60")
        if part:
            self.send_header("Content-Range", "bytes 2-6/9")
            self.send_header("Content-Length", "5")
        self.end_headers()
        if part:
            self.wfile.write(b"hello")


class UnaskedTest(http_front.HttpTest):
    """A 304 without a condition and a 206 without a range: passed on, and never stored."""

    def setUp(self):
        super().setUp()
        self.url = harness.PythonOrigin(self, UnaskedHandler).url

    def test_they_are_passed_on_as_they_are(self):
        # All on one connection, which stays in step.
        for _ in range(2):
            response = self.c.get(self.url + "/same")
            self.assertEqual((response.status, response.body), (304, b""))
            self.assertEqual(response.field("ETag"), '"1"')
            self.assertRegex(response.field("Cache-Status"), r"\Asunproxy; fwd=.*; detail=status\Z")
            response = self.c.get(self.url + "/part")
            self.assertEqual((response.status, response.body), (206, b"hello"))
            self.assertEqual(response.field("Content-Range"), "bytes 2-6/9")
            self.assertRegex(response.field("Cache-Status"),
                             r"\Asunproxy; fwd=.*; detail=partial\Z")

    def test_clients_of_rpc_get_an_error(self):
        for path in ("/same", "/part"):
            done = self.sunproxy("get", self.url + path, daemon=self.d, expect=None)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stdout, b"")
            self.assertIn(b"the origin has not sent a valid response", done.stderr)


class StopTest(RecordedTest):
    def test_the_last_response_says_that_the_connection_ends(self):
        self.c.send(f"GET {self.recorder.url}/waits HTTP/1.1\r\nHost: a.test\r\n\r\n")
        harness.wait_until(lambda: self.recorder.lines, what="the request")
        self.d.signal(harness.signal.SIGTERM)
        # From then on there is no listener any more.
        harness.wait_until(self.is_refused, what="the stop")
        self.recorder.released.set()
        response = self.c.receive()
        self.assertEqual((response.status, response.body), (200, b"ok"))
        self.assertEqual(response.field("Connection"), "close")
        self.assertTrue(self.c.is_closed())

    def is_refused(self):
        try:
            self.connect().close()
        except OSError:
            return True
        return False


if __name__ == "__main__":
    harness.sys.exit("run tests/system/run.py")
