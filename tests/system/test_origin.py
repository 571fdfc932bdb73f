"""The origin itself: what other tests rest on must be as scripted."""

import http.client
import re
import socket
import ssl
import subprocess

import harness


def strict_context(origin):
    """What a client trusts that also verifies the form of certificates, as Python 3.13 does by default."""
    context = ssl.create_default_context(cafile=str(origin.cacert))
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


class OriginTest(harness.SystemTest):
    needs = (harness.ORIGIN,)

    def origin(self, *options, **more):
        """The build under test."""
        return super().origin(*options, program=harness.ORIGIN, **more)

    def ask(self, origin, path, method="GET", host="a.test"):
        c = http.client.HTTPConnection("127.0.0.1", origin.http_port, timeout=10)
        try:
            c.request(method, path, headers={"Host": host})
            answer = c.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            c.close()

    def raw(self, origin, request, end=True):
        with socket.create_connection(("127.0.0.1", origin.http_port), 10) as s:
            s.sendall(request)
            pieces = []
            while piece := s.recv(65536):
                pieces.append(piece)
            return b"".join(pieces)

    def test_bodies_follow_from_the_url(self):
        sizes = self.dir / "sizes"
        sizes.write_text("http://a.test\t100\nhttps://b.test/x\t5\nhttp://c.test:81/y\t70000\n")
        o = self.origin("--sizes", sizes, "--size-min", "50", "--size-max", "60")
        _, headers, body = self.ask(o, "/")
        self.assertEqual(body, harness.origin_text("http://a.test/", 100))
        self.assertEqual(headers["Content-Length"], "100")
        self.assertEqual(len(self.ask(o, "/", host="a.test:8080")[2]), 100)
        self.assertEqual(self.ask(o, "/y", host="c.test:81")[2],
                         harness.origin_text("http://c.test/y", 70000))
        _, _, body = self.ask(o, "/z?q")
        self.assertIn(len(body), range(50, 61))
        self.assertEqual(body, harness.origin_text("http://a.test/z?q", len(body)))
        self.assertNotIn(b"\0", body)
        self.assertEqual(o.requests()[0], ("http", "a.test", "/", 200))

    def test_latency_is_drawn_once_for_a_url(self):
        # Not a clock's word: whatever is drawn, the program takes the distribution or refuses it.
        for good in ("20ms", "lognormal:1ms:0.5"):
            self.ask(self.origin("--latency", good, name=good.replace(":", "-")), "/")
        for bad in ("x", "lognormal:1ms", "lognormal:1ms:x"):
            done = self.run_program([harness.ORIGIN, "--latency", bad])
            self.assertEqual(done.returncode, 64)

    def test_a_bounded_bandwidth_loses_nothing_over_http_and_https(self):
        o = self.origin("--bandwidth", "500K", "--size-min", "60000", "--size-max", "60000")
        self.assertEqual(len(self.ask(o, "/")[2]), 60000)
        context = strict_context(o)
        c = http.client.HTTPSConnection("localhost", o.https_port, timeout=10, context=context)
        try:
            c.request("GET", "/")
            self.assertEqual(len(c.getresponse().read()), 60000)
        finally:
            c.close()

    def test_pipelined_requests_are_answered_in_order(self):
        o = self.origin()
        answer = self.raw(o, b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n"
                             b"HEAD /2 HTTP/1.1\r\nHost: a\r\n\r\n"
                             b"GET /3 HTTP/1.0\r\nHost: a\r\n\r\n")
        self.assertEqual(answer.count(b"HTTP/1.1 200 OK"), 3)
        self.assertEqual([r[2] for r in o.requests()], ["/1", "/2", "/3"])

    def test_faults(self):
        o = self.origin()
        self.assertEqual(self.ask(o, "/fault/status:404")[0], 404)
        self.assertEqual(self.ask(o, "/x?fault=status:503&fault=empty")[::2], (503, b""))
        self.assertEqual(self.ask(o, "/fault/redirect?http://b/?c&d")[1]["Location"], "http://b/?c&d")
        self.assertEqual(self.ask(o, "/fault/loop")[1]["Location"], "/fault/loop")
        self.assertEqual(self.ask(o, "/fault/chain:2")[1]["Location"], "/fault/chain:1")
        self.assertEqual(self.ask(o, "/fault/chain:0")[0], 200)
        self.assertIn(b"\0", self.ask(o, "/fault/zero")[2])
        self.assertEqual(len(self.ask(o, "/fault/size:3M")[2]), 3 << 20)
        self.assertEqual(self.ask(o, "/fault/header:X-A:%20b%20c")[1]["X-A"], "b c")
        self.assertIn(b"Host: a.test", self.ask(o, "/fault/echo")[2])
        with self.assertRaises(http.client.IncompleteRead):
            self.ask(o, "/fault/short:7")
        with self.assertRaises(http.client.IncompleteRead):
            self.ask(o, "/fault/cut-chunk:7")
        with self.assertRaises(ConnectionResetError):
            self.ask(o, "/fault/reset:7")
        with self.assertRaises(http.client.BadStatusLine):
            self.ask(o, "/fault/garbage")
        with self.assertRaises(http.client.RemoteDisconnected):
            self.ask(o, "/fault/close")
        self.assertEqual(self.ask(o, "/fault/unheard-of")[0], 501)

    def test_drop_idle_closes_all_that_wait(self):
        o = self.origin()
        waiting = [http.client.HTTPConnection("127.0.0.1", o.http_port, timeout=10) for _ in range(3)]
        for c in waiting:
            c.request("GET", "/")
            c.getresponse().read()
        self.assertEqual(self.ask(o, "/fault/drop-idle")[0], 200)
        for c in waiting:
            self.assertEqual(c.sock.recv(1), b"", "closed")
            c.close()
        self.assertEqual(self.ask(o, "/")[0], 200)

    def test_long_sends_more_than_it_states(self):
        o = self.origin("--size-min", "500", "--size-max", "500")
        answer = self.raw(o, b"GET /fault/long:9 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        head, body = answer.split(b"\r\n\r\n", 1)
        stated = int(re.search(rb"Content-Length: (\d+)", head)[1])
        self.assertEqual(len(body), stated + 9)

    def test_gzip_is_gzip(self):
        import gzip

        o = self.origin()
        _, headers, body = self.ask(o, "/fault/gzip")
        self.assertEqual(headers["Content-Encoding"], "gzip")
        text = gzip.decompress(body)
        self.assertEqual(text, harness.origin_text("http://a.test/fault/gzip", len(text)))
        _, _, bomb = self.ask(o, "/fault/gzip-bomb:3000000")
        self.assertLess(len(bomb), 30000)
        self.assertGreaterEqual(len(gzip.decompress(bomb)), 3000000)

    def test_any_https_host_has_a_certificate(self):
        o = self.origin()
        context = strict_context(o)

        def shake(name):
            with socket.create_connection(("127.0.0.1", o.https_port), 10) as s:
                with context.wrap_socket(s, server_hostname=name) as tls:
                    return tls.getpeercert()["subjectAltName"]

        self.assertEqual(shake("www.example.org"), (("DNS", "www.example.org"),))
        self.assertEqual(shake("b.test"), (("DNS", "b.test"),))
        self.assertIn(("IP Address", "127.0.0.1"), shake("127.0.0.1"))
        for bad in ("expired.test", "wrong.test", "selfsigned.test"):
            with self.assertRaises(ssl.SSLCertVerificationError):
                shake(bad)

    def test_help_lists_every_fault(self):
        done = self.run_program([harness.ORIGIN, "--help"])
        self.assertEqual(done.returncode, 0)
        for word in (b"--http-port", b"gzip-bomb", b"hang-silent", b"selfsigned"):
            self.assertIn(word, done.stdout)

    def test_it_ends_by_itself(self):
        done = subprocess.run([harness.ORIGIN, "--max-seconds", "1", "--quiet"], timeout=30)
        self.assertEqual(done.returncode, 0)

    def test_connections_whose_input_is_not_read_are_freed_at_its_end(self):
        o = self.origin()  # the build for memory errors fails with leaks
        head = b"POST /?fault=hang-silent HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000000\r\n\r\n"
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", o.http_port), 10) as s:
                s.sendall(head + bytes(1000000))
