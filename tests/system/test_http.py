"""The HTTP front of the real daemon: forward and reverse proxy, framing, bodies, limits."""

import contextlib
import hashlib
import json
import pathlib
import shutil
import socket
import struct
import sys
import time

import harness
from http_front import (PROXY_SIGNATURE, Connection, EchoOrigin, HttpTest, http_address, is_hit,
                        proxy_header, stored)

STARTER = pathlib.Path(__file__).resolve().parent / "pass_sockets.py"


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

    def test_the_origin_is_asked_for_the_url_that_is_stored(self):
        dots = stored("http://a.test/a/../b")
        self.assertFalse(is_hit(self.c.get(dots)))
        self.assertTrue(is_hit(self.c.get(dots)))
        self.assertFalse(is_hit(self.c.get(stored("http://a.test/b"))))
        self.assertEqual([row[2].split("?")[0] for row in self.o.requests()], ["/a/../b", "/b"])

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
    POST = ("POST http://a.test/x?fault=hang-silent HTTP/1.1\r\nHost: x\r\n"
            "Content-Length: 9000\r\n\r\n")

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

    def test_a_body_that_does_not_come(self):
        c = self.connect()
        c.send(f"{self.POST}begun")
        self.assertTrue(c.is_closed())

    def test_a_body_that_trickles_in(self):
        c = self.connect()
        c.send(self.POST)
        with self.assertRaises((BrokenPipeError, ConnectionResetError)):
            for _ in range(9000):
                c.send("x")
                time.sleep(0.01)

    def test_a_client_that_does_not_read(self):
        c = self.connect()
        c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.send("GET http://a.test/x?fault=size:20000000 HTTP/1.1\r\nHost: x\r\n\r\n")

        def cut():
            try:
                c.socket.send(b"x")
            except (BrokenPipeError, ConnectionResetError):
                return True
        harness.wait_until(cut, what="the end of the connection")

    def test_an_idle_connection(self):
        self.assertEqual(self.c.get("http://a.test/").status, 200)
        self.assertTrue(self.c.is_closed())


class ProxyProtocolTest(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.echo = EchoOrigin(self)
        self.log = self.dir / "access.log"
        self.d = self.daemon("--http-proxied", "127.0.0.1:0", "--origin", f"/={self.echo.url}",
                             "--allow-net", "127.0.0.0/8", "--access-log", self.log,
                             "--record-timeout", "300ms", "--purge-net", "203.0.113.0/24")
        self.address = harness.wait_until(lambda: http_address(self.d), what="the HTTP front")

    def connect(self, header):
        connection = Connection(self.address)
        self.addCleanup(connection.close)
        connection.send(header)
        return connection

    def test_the_client_of_the_header(self):
        c = self.connect(proxy_header("203.0.113.7"))
        self.assertEqual(c.get("/a").status, 200)
        self.assertEqual(self.echo.heads[0][2]["X-Forwarded-For"], "203.0.113.7")
        self.assertEqual(c.get("/a", method="PURGE").status, 200)
        other = self.connect(proxy_header("198.51.100.1"))
        self.assertEqual(other.get("/a", method="PURGE").status, 403)
        lines = harness.wait_until(lambda: len(self.log.read_text().splitlines()) == 3
                                   and self.log.read_text().splitlines(), what="the log")
        # Two connections may have two workers, whose lines come in either order.
        self.assertCountEqual([line.split()[0] for line in lines],
                              ["203.0.113.7", "203.0.113.7", "198.51.100.1"])

    def test_the_load_balancer_itself(self):
        c = self.connect(PROXY_SIGNATURE + b"\x20\0\0\0")
        self.assertEqual(c.get("/a").status, 200)
        self.assertEqual(self.echo.heads[0][2]["X-Forwarded-For"], "127.0.0.1")

    def test_version_1_and_tls(self):
        c = self.connect(b"PROXY TCP6 2001:db8::1 2001:db8::2 54321 443\r\n")
        self.assertEqual(c.get("/v1").status, 200)
        plain = proxy_header("203.0.113.7")
        tls = plain[:14] + (12 + 8).to_bytes(2, "big") + plain[16:] + b"\x20\0\x05\1\0\0\0\0"
        self.assertEqual(self.connect(tls).get("/tls").status, 200)
        told = [(h[2]["X-Forwarded-For"], h[2]["X-Forwarded-Proto"]) for h in self.echo.heads]
        self.assertEqual(told, [("2001:db8::1", "http"), ("203.0.113.7", "https")])

    def test_connections_without_a_whole_header(self):
        for beginning in (b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n", b"PROXY TCP4 1.2.3.4 5.6.7.8 9\r\n",
                          proxy_header("203.0.113.7")[:20], b""):
            self.assertTrue(self.connect(beginning).is_closed(), beginning)
        self.assertEqual(self.echo.heads, [])


class ReverseTest(HttpTest):
    seconds = 11

    def setUp(self):
        super().setUp()
        self.echo = EchoOrigin(self)
        self.c.close()
        self.d.stop()
        dead = f"http://127.0.0.1:{harness.free_port()}"
        self.d = self.http_daemon("--origin", f"/={self.echo.url}",
                                  "--origin", f"two.test/api={dead},{self.echo.url}/v2")
        self.c = self.connect()

    def request(self, path, *lines, method="GET", host="one.test", body=b""):
        self.c.send(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n"
                    + "".join(f"{line}\r\n" for line in lines) + "\r\n")
        self.c.send(body)
        return self.c.receive()

    def test_hosts_and_paths(self):
        for _ in range(2):
            response = self.request("/a?b", "X-Forwarded-For: 1.2.3.4")
            self.assertEqual((response.status, response.body),
                             (200, f"{self.echo.url}/a?b".encode()))
        self.assertTrue(is_hit(response))
        method, path, fields = self.echo.heads[0]
        self.assertEqual((method, path, fields["X-Forwarded-For"]), ("GET", "/a?b", "127.0.0.1"))
        self.assertEqual((fields["Host"], fields["X-Forwarded-Host"]), ("one.test", "one.test"))
        self.assertTrue(fields["Via"].startswith("1.1 sunproxy-"))
        self.assertEqual(len(self.echo.heads), 1)

    def test_paths_do_not_leave_the_row(self):
        for path in ("/api/..%2fsecret", "/api/..;/secret", "/api/%2e%2e%5csecret"):
            self.assertEqual(self.request(path, host="two.test").status, 400, path)
        self.assertEqual(self.echo.heads, [])
        self.assertEqual(self.request("/api/..x", host="two.test").status, 200)
        # Below the other row, for any host.
        self.assertEqual(self.request("/api/%2e%2e/x", host="two.test").status, 200)
        self.assertEqual([path for _, path, _ in self.echo.heads], ["/v2/..x", "/x"])

    def test_the_next_url_if_no_connection_can_be_made(self):
        response = self.request("/api/x", host="two.test")
        self.assertEqual((response.status, response.body),
                         (200, f"{self.echo.url}/v2/x".encode()))
        self.assertEqual(self.echo.heads[0][2]["X-Forwarded-Host"], "two.test")

    def test_the_next_url_if_connecting_takes_too_long(self):
        # A listener whose backlog is full: its host neither accepts nor refuses a connection.
        with socket.socket() as full, contextlib.ExitStack() as fillers:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            for _ in range(4):
                filler = fillers.enter_context(socket.socket())
                filler.setblocking(False)
                filler.connect_ex(full.getsockname())
            self.c.close()
            self.d.stop()
            self.d = self.http_daemon(
                "--connect-timeout", "500ms", "--log-level", "debug",
                "--origin", f"/=http://127.0.0.1:{full.getsockname()[1]},{self.echo.url}/v2")
            self.c = self.connect()
            for path in ("/x", "/y"):
                response = self.request(path)
                self.assertEqual((response.status, response.body),
                                 (200, f"{self.echo.url}/v2{path}".encode()))
        # The second request has begun with the URL that has worked.
        self.assertEqual(str(self.d.err).count("us: timed_out, "), 1, self.d.err)

    def test_redirects_to_the_origin_lead_to_the_proxy(self):
        self.assertEqual(self.request("/moved").field("Location"), "/v2/target?x")
        self.c.close()
        self.d.stop()
        self.d = self.http_daemon("--origin", f"/={self.echo.url}", "--rewrite-location", "off")
        self.c = self.connect()
        self.assertEqual(self.request("/moved").field("Location"), f"{self.echo.url}/v2/target?x")

    def test_bodies(self):
        body = bytes(range(256)) * 8192
        expected = f"{hashlib.sha256(body).hexdigest()} {len(body)}".encode()
        response = self.request("/p", f"Content-Length: {len(body)}", method="POST", body=body)
        self.assertEqual((response.status, response.body), (200, expected))
        chunks = b"".join(b"%x\r\n" % 70000 + body[at:at + 70000] + b"\r\n"
                          for at in range(0, 2100000 // 70000 * 70000 - 70000, 70000))
        size = (2100000 // 70000 - 1) * 70000
        expected = f"{hashlib.sha256(body[:size]).hexdigest()} {size}".encode()
        response = self.request("/p", "Transfer-Encoding: chunked", method="PUT",
                                body=chunks + b"0\r\n\r\n")
        self.assertEqual((response.status, response.body), (200, expected))
        response = self.request("/p", "Content-Length: 0", method="POST")
        self.assertEqual(response.status, 200)

    def test_a_slow_origin_slows_an_upload_down(self):
        self.echo.slow = 5
        self.c.send("POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 104857600\r\n\r\n")
        self.c.socket.settimeout(1)
        sent = 0
        try:
            while sent < 100 << 20:
                sent += self.c.socket.send(self.echo.BLOCK)
        except TimeoutError:
            pass
        # What the buffers of the kernel take, and the relay's.
        self.assertLess(sent, 40 << 20)

    def test_an_upload_by_curl(self):
        if not shutil.which("curl"):
            self.skipTest("curl is not installed")
        path = self.dir / "body"
        path.write_bytes(self.echo.BLOCK * 3)
        url = "http://%s:%d/upload" % self.address
        for extra in ([], ["-H", "Transfer-Encoding: chunked"]):
            done = self.run_program(["curl", "-sS", *extra, "--data-binary", f"@{path}", url])
            digest = hashlib.sha256(self.echo.BLOCK * 3).hexdigest()
            self.assertEqual((done.stderr, done.stdout),
                             (b"", f"{digest} {3 * len(self.echo.BLOCK)}".encode()))

    def test_continue_is_answered_by_the_proxy(self):
        self.c.send("POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
                    "Expect: 100-continue\r\n\r\n")
        self.assertEqual(self.c.receive().status, 100)
        self.c.send("ok")
        self.assertEqual(self.c.receive().status, 200)
        self.assertNotIn("Expect", self.echo.heads[0][2])

    def test_a_large_response_takes_little_memory(self):
        if not harness.RELEASE_SUNPROXYD.exists():
            self.skipTest(f"{harness.RELEASE_SUNPROXYD} is not built")
        self.d.stop()
        self.d = self.http_daemon("--origin", f"/={self.echo.url}",
                                  program=harness.RELEASE_SUNPROXYD)
        self.c = self.connect()
        self.request("/large?1")
        before = self.d.rss()
        self.c.send("GET /large?200 HTTP/1.1\r\nHost: x\r\n\r\n")
        most = before
        while self.c.socket.recv(1 << 20):
            most = max(most, self.d.rss())
            if self.echo.sent >= 201 << 20:
                break
        self.assertLess(most - before, 8 << 20)

    def test_a_client_that_does_not_read_slows_the_origin_down(self):
        self.c.send("GET /large?500 HTTP/1.1\r\nHost: x\r\n\r\n")
        harness.wait_until(lambda: self.echo.sent)
        last = -1
        while last != self.echo.sent:
            last = self.echo.sent
            time.sleep(0.5)
        self.assertLess(last, 60 << 20)
        # Other clients are served, and its end ends the fetch.
        other = self.connect()
        self.assertEqual(other.get("/x").status, 200)
        self.c.close()
        self.assertEqual(other.get("/y").status, 200)

    def test_purging(self):
        self.assertFalse(is_hit(self.request("/a", host="ignored.test")))
        self.assertEqual(self.request("/a", method="PURGE", host="ignored.test").status, 403)
        local = self.connect(self.unix)
        self.assertTrue(is_hit(local.get("/a")))
        self.assertEqual(local.get("/a", method="PURGE").status, 200)
        self.assertFalse(is_hit(local.get("/a")))

    def test_a_request_that_comes_back_is_refused(self):
        port = harness.free_port()
        loop = self.daemon("--http", f"127.0.0.1:{port}", "--origin", f"/=http://127.0.0.1:{port}",
                           "--allow-net", "127.0.0.0/8")
        harness.wait_until(lambda: http_address(loop))
        self.assertEqual(self.connect(("127.0.0.1", port)).get("/a").status, 508)


class LogTest(HttpTest):
    def restart(self, *options):
        self.c.close()
        self.d.stop()
        self.log = self.dir / "access.log"
        self.d = self.http_daemon("--access-log", self.log, *options)
        self.c = self.connect()

    def lines(self, count):
        return harness.wait_until(
            lambda: self.log.exists() and len(self.log.read_text().splitlines()) >= count
            and self.log.read_text().splitlines(), what="the log")

    def test_the_combined_format(self):
        self.restart()
        url = "http://a.test/page"
        body = self.c.get(url, 'Referer: http://b.test/"x', "User-Agent: tester/1").body
        self.c.get(url, version="1.1", method="HEAD")
        self.c.get("http://a.test:25/")
        self.c.send("nonsense\r\n\r\n")
        self.c.receive()
        rest = r' - - \[\d\d/[A-Z][a-z][a-z]/\d{4}:\d\d:\d\d:\d\d \+0000\] '
        expected = [
            rf'"GET {url} HTTP/1\.1" 200 {len(body)} "http://b\.test/\\x22x" "tester/1" no-lifetime',
            rf'"HEAD {url} HTTP/1\.1" 200 0 "-" "-" method',
            r'"GET http://a\.test:25/ HTTP/1\.1" 403 \d+ "-" "-" "denied: .* --allow-port 25\)"',
            r'"-" 400 \d+ "-" "-" -',
        ]
        lines = self.lines(4)
        self.assertEqual(len(lines), 4)
        for line, form in zip(lines, expected):
            self.assertRegex(line, r"^127\.0\.0\.1" + rest + form + "$")

    def test_json(self):
        self.restart("--log-format", "json")
        for _ in range(2):
            self.c.get(stored("http://a.test/page"), "User-Agent: tester/1")
        rows = [json.loads(line) for line in self.lines(2)]
        self.assertEqual([row["outcome"] for row in rows], ["miss", "hit"])
        for row in rows:
            self.assertEqual((row["method"], row["url"], row["protocol"], row["status"],
                              row["agent"], row["client"]),
                             ("GET", stored("http://a.test/page"), "HTTP/1.1", 200, "tester/1",
                              "127.0.0.1"))
            self.assertGreater(row["bytes"], 0)

    def test_a_client_that_goes_is_499(self):
        self.restart()
        self.c.send("GET http://a.test/x?fault=hang-silent HTTP/1.1\r\nHost: x\r\n\r\n")
        harness.wait_until(self.o.requests)
        self.c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.c.close()
        self.assertIn('" 499 0 "', self.lines(1)[0])


    def test_bytes_that_were_not_sent_are_not_logged(self):
        """All of a hit is queued at once; its client reads nothing and goes."""
        self.restart("--log-format", "json")
        url = stored(f"http://a.test/fault/size:{1 << 20}")
        self.assertEqual(len(self.c.get(url).body), 1 << 20)
        c = self.connect()
        c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # else it may take all
        c.send(f"GET {url} HTTP/1.1\r\nHost: x\r\n\r\n")
        c.socket.recv(1, socket.MSG_PEEK)
        c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.close()
        rows = [json.loads(line) for line in self.lines(2)]
        self.assertEqual([row["outcome"] for row in rows], ["miss", "hit"])
        self.assertEqual(rows[0]["bytes"], 1 << 20)
        self.assertGreater(rows[1]["bytes"], 0)
        self.assertLess(rows[1]["bytes"], 1 << 20)


class FramingTest(HttpTest):
    def url(self, fault):
        return f"http://a.test/x?fault={fault}"

    def test_bodies_of_unknown_length(self):
        for fault in ("chunked", "no-length"):
            response = self.c.get(self.url(fault))
            self.assertEqual((response.status, response.whole), (200, True), fault)
            old = self.connect().get(self.url(fault), version="1.0")
            self.assertEqual((old.status, old.body), (200, response.body), fault)

    def test_responses_that_break_off(self):
        for fault in ("cut-chunk:100", "short", "cut:100", "reset:100", "bad-chunk"):
            c = self.connect()
            response = c.get(self.url(fault))
            if response.status == 200:
                self.assertFalse(response.whole, fault)
                self.assertTrue(c.is_closed(), fault)
            else:
                self.assertEqual(response.status, 502, fault)

    def test_a_body_without_a_length_that_is_cut_over_tls(self):
        url = stored("https://a.test/x?fault=no-length&fault=first:cut%3a100")
        response = self.c.get(url)
        self.assertIn((response.status, response.whole), ((200, False), (502, True)))
        response = self.connect().get(url)
        self.assertFalse(is_hit(response))
        self.assertTrue(response.whole)
        self.assertEqual(response.body, harness.origin_text(url, len(response.body)))
        self.assertTrue(is_hit(self.connect().get(url)))

    def test_interim_responses(self):
        self.c.send(f"GET {self.url('interim:2')} HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual([self.c.receive().status for _ in range(3)], [103, 103, 200])
        self.assertEqual(self.connect().get(self.url("interim:1"), version="1.0").status, 200)

    def test_head_and_pipelining(self):
        url = "http://a.test/page"
        body = self.c.get(url).body
        head = self.c.get(url, method="HEAD")
        self.assertEqual((head.status, head.field("Content-Length")), (200, str(len(body))))
        self.c.send(f"GET {url} HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
        for _ in range(20):
            self.assertEqual(self.c.receive().body, body)


    def test_a_pipelined_request_is_judged_when_it_begins(self):
        fresh = "http://a.test/page?fault=header:Cache-Control%3a%20max-age%3d1"
        slow = "http://a.test/slow?fault=delay:1500ms"
        self.c.get(fresh)
        self.c.send("".join(f"GET {url} HTTP/1.1\r\nHost: x\r\n\r\n" for url in (slow, fresh)))
        self.assertEqual(self.c.receive().status, 200)
        self.assertFalse(is_hit(self.c.receive()))


class PassedSocketTest(harness.SystemTest):
    def test_a_socket_with_the_name_http(self):
        origin = self.origin()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            d = self.daemon(origin=origin, pass_fds=[listener.fileno()],
                            launcher=[sys.executable, STARTER, f"{listener.fileno()}=http"])
        harness.wait_until(lambda: http_address(d))
        self.assertIn(f"127.0.0.1:{port}, passed by the service manager", d.err)
        c = Connection(("127.0.0.1", port))
        self.assertEqual(c.get("http://a.test/page").status, 200)
        c.close()
