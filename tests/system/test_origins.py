"""Hostile origins: each failure is reported by its type, nothing wrong is stored, and others are served."""

import re
import socket
import threading
import time

import harness
import rpc

MEBI = 1 << 20


class OriginsTest(harness.SystemTest):
    options = ("--max-redirects", "5")

    def setUp(self):
        super().setUp()
        self.o = self.origin()
        self.d = self.daemon(*self.options, origin=self.o)
        self.c = rpc.Connection(self.d.socket)
        self.addCleanup(self.c.close)

    def fails(self, url, *statuses):
        """Fails with one of these statuses and a sentence; v1 says SYSTEM_ERR; nothing is stored."""
        page = self.c.get(url)
        self.assertIn(page.status, statuses, (url, page.sentence))
        self.assertGreater(len(page.sentence), 5)
        self.assertEqual(self.c.fetch_v1(url), "SYSTEM_ERR", url)
        self.assertEqual(self.c.stat().pages, 0, url)
        return page

    def text(self, page, url):
        self.assertEqual(page.status, "ok", page.sentence)
        self.assertEqual(page.body, harness.origin_text(url, len(page.body)))


class TimeTest(OriginsTest):
    seconds = 18
    options = ("--first-byte-timeout", "1500ms", "--stall-timeout", "1500ms", "--connect-timeout",
               "1500ms", "--resolve-timeout", "1500ms")

    def served_meanwhile(self, url, *statuses):
        """A request that hangs fails in time; meanwhile another client is served, on one worker."""
        results = []

        def hang():
            with rpc.Connection(self.d.address) as c:
                results.append(c.get(url))

        t = threading.Thread(target=hang)
        t.start()
        n = 0
        while t.is_alive():
            self.assertEqual(self.c.get(f"http://good.test/{n % 5}").status, "ok")
            n += 1
        t.join()
        self.assertGreater(n, 3)
        self.assertIn(results[0].status, statuses, results[0].sentence)

    def test_it_hangs_before_the_headers(self):
        self.served_meanwhile("http://a.test/fault/hang-silent", "timed_out")

    def test_it_hangs_in_the_headers(self):
        self.served_meanwhile("http://a.test/fault/hang", "timed_out")

    def test_it_hangs_in_the_body(self):
        self.served_meanwhile("http://a.test/fault/hang-body:100", "timed_out")
        self.served_meanwhile("https://a.test/fault/hang-body:0", "timed_out")

    def test_it_hangs_in_the_tls_handshake(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen(16)
            self.served_meanwhile(f"https://127.0.0.1:{s.getsockname()[1]}/", "timed_out",
                                  "tls_failed", "connect_failed")

    def test_it_hangs_in_connect(self):
        # A listener whose queue is full drops whoever knocks: connect() waits.
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen(0)
            fillers = []
            for _ in range(3):
                f = socket.socket()
                f.setblocking(False)
                f.connect_ex(s.getsockname())
                fillers.append(f)
            try:
                time.sleep(0.2)
                self.served_meanwhile(f"http://127.0.0.1:{s.getsockname()[1]}/", "timed_out",
                                      "connect_failed")
            finally:
                for f in fillers:
                    f.close()

    def test_it_drips(self):
        # A byte every 100 ms is no stall: the limit on a fetch ends it, but for version 2, whose
        # bodies may have any size, not in the body.
        d = self.daemon("--fetch-timeout", "2s", origin=self.o)
        with rpc.Connection(d.socket) as c:
            self.assertEqual(c.fetch_v1("http://a.test/fault/drip:100"), "SYSTEM_ERR")
            url = "http://a.test/?fault=size:30&fault=drip:100"
            self.text(c.get(url), url)
            self.assertEqual(c.get("http://a.test/fault/drip-head:100").status, "timed_out")
            self.text(c.get("http://b.test/"), "http://b.test/")

    def test_a_dead_nameserver_stalls_no_other_request(self):
        ns = harness.Namespace(self, "nameserver 127.0.0.9\noptions timeout:2 attempts:2\n")
        deaf = ("import socket,time; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);"
                "s.bind(('127.0.0.9',53)); print('ready',flush=True); time.sleep(600)")
        p = harness.Process(self, "deaf", ns.enter(["python3", "-c", deaf]), expect=None)
        harness.wait_until(lambda: "ready" in p.out, what="the dead nameserver")
        o = self.origin(namespace=ns, name="inner")
        # A name that needs a look-up as well, and no nameserver.
        d = self.daemon(*self.options, "--allow-net", "127.0.0.0/8", "--dns-ttl", "0",
                        namespace=ns)
        results = []

        def lost(n):
            with rpc.Connection(d.socket) as c:
                results.append(c.get(f"http://nowhere{n}.test/"))

        threads = [threading.Thread(target=lost, args=(n,)) for n in range(30)]
        for t in threads:
            t.start()
        served = 0
        with rpc.Connection(d.socket) as c:
            while any(t.is_alive() for t in threads):
                self.assertEqual(c.get(f"http://localhost:{o.http_port}/{served}").status, "ok")
                served += 1
        for t in threads:
            t.join()
        self.assertGreater(served, 3)
        self.assertEqual({p.status for p in results} - {"timed_out", "resolve_failed"}, set())
        # Threads still in the resolver are given up at the end, not waited for.
        self.assertEqual(d.stop(), 0, d.err)


class OwnAddressTest(harness.SystemTest):
    def test_public_addresses_of_the_host(self):
        """Refused unless allowed, whether they were there at the start or came later."""
        ns = harness.Namespace(self)
        self.assertEqual(ns.run(["ip", "addr", "add", "8.8.8.8/32", "dev", "lo"]).returncode, 0)
        d = self.daemon("--allow-net", "9.9.9.9", namespace=ns)
        self.assertEqual(ns.run(["ip", "addr", "add", "8.8.4.4/32", "dev", "lo"]).returncode, 0)
        self.assertEqual(ns.run(["ip", "addr", "add", "9.9.9.9/32", "dev", "lo"]).returncode, 0)
        with rpc.Connection(d.socket) as c:
            for address in ("8.8.8.8", "8.8.4.4"):
                page = c.get(f"http://{address}:8080/")
                self.assertEqual(page.status, "denied", page.sentence)
                self.assertIn("may not fetch", page.sentence)
                harness.wait_until(lambda: f"refused: {address} is an address of this host (allow it "
                                           f"with --allow-net {address})" in d.err, what="the line")
            self.assertEqual(c.get("http://9.9.9.9:8080/").status, "connect_failed")


class LieTest(OriginsTest):
    def test_it_is_down(self):
        port = harness.free_port()
        self.fails(f"http://127.0.0.1:{port}/", "connect_failed")
        self.fails(f"https://127.0.0.1:{port}/", "connect_failed")

    def test_less_than_it_states(self):
        self.fails("http://a.test/fault/short:100", "origin_broke")
        self.fails("https://a.test/fault/short:1", "origin_broke")

    def test_more_than_it_states(self):
        # Seen with the answer it is an error; seen later it belongs to no answer.
        url = "http://a.test/fault/long:50"
        page = self.c.get(url)
        if page.status == "ok":
            length = int(re.search(r"(?i)content-length: (\d+)", page.headers)[1])
            self.assertEqual(page.body, harness.origin_text(url, length))
        else:
            self.assertEqual(page.status, "origin_broke")
        # Surplus bytes belong to no answer.
        self.text(self.c.get("http://a.test/next"), "http://a.test/next")

    def test_two_lengths(self):
        # RFC 9112 section 6.3: a message with differing Content-Length is invalid.
        page = self.c.get("http://a.test/fault/two-lengths")
        if page.status == "ok":
            self.assertIn(len(page.body), (7,))
        else:
            self.assertEqual(page.status, "origin_broke")
        self.text(self.c.get("http://a.test/next"), "http://a.test/next")

    def test_impossible_lengths(self):
        for length in ("-1", "1e3", "99999999999999999999999"):
            page = self.c.get(f"http://a.test/fault/length:{length}")
            self.assertIn(page.status, ("origin_broke", "too_large"), (length, page.sentence))

    def test_broken_chunks(self):
        self.fails("http://a.test/fault/bad-chunk", "origin_broke")
        self.fails("http://a.test/fault/cut-chunk:500", "origin_broke")

    def test_framings_that_are_right(self):
        for fault in ("chunked", "no-length", "interim:3"):
            for scheme in ("http", "https"):
                url = f"{scheme}://a.test/fault/{fault}"
                page = self.c.get(url)
                self.text(page, url)
                self.assertGreaterEqual(len(page.body), 1024)
        page = self.c.get("http://a.test/fault/empty")
        self.assertEqual((page.status, page.body), ("ok", b""))
        self.assertEqual(self.c.fetch_v1("http://a.test/fault/empty"), b"")

    def test_it_cuts_and_resets(self):
        for fault in ("cut", "cut:100", "reset", "reset:100", "close"):
            self.fails(f"http://a.test/fault/{fault}", "origin_broke", "connect_failed")

    def test_it_cuts_a_body_without_a_length_over_tls(self):
        page = self.fails("https://a.test/x?fault=no-length&fault=cut:100", "origin_broke")
        self.assertIn("not sent a valid response", page.sentence)
        harness.wait_until(lambda: "without ending TLS" in self.d.err, what="the reason in the log")

    def test_it_speaks_no_http(self):
        self.fails("http://a.test/fault/garbage", "origin_broke")
        self.fails(f"http://127.0.0.1:{self.o.https_port}/", "origin_broke")

    def test_it_speaks_no_tls(self):
        self.fails(f"https://127.0.0.1:{self.o.http_port}/", "tls_failed")

    def test_certificates_that_do_not_hold(self):
        for host in ("expired.test", "wrong.test", "selfsigned.test"):
            page = self.fails(f"https://{host}/", "tls_failed")
            self.assertNotIn(host, page.sentence)
            harness.wait_until(lambda: f"fetch from https://{host}:443: tls_failed: TLS with {host} "
                                       "failed: " in self.d.err, what="the reason in the log")

    def test_an_authority_that_is_not_known(self):
        d = self.daemon("--allow-net", "127.0.0.0/8")
        with rpc.Connection(d.socket) as c:
            page = c.get(f"https://127.0.0.1:{self.o.https_port}/")
            self.assertEqual(page.status, "tls_failed", page.sentence)

    def test_gzip_is_unfolded(self):
        page = self.c.get("http://a.test/fault/gzip")
        self.text(page, "http://a.test/fault/gzip")
        self.assertNotIn("content-encoding", page.headers.lower())

    def test_a_gzip_bomb(self):
        # Version 1 bounds it; version 2 makes no more of it than is read.
        before = self.d.rss()
        url = "http://a.test/fault/gzip-bomb:1073741824"
        self.assertEqual(self.c.fetch_v1(url), "SYSTEM_ERR")
        with rpc.Connection(self.d.socket) as c:
            page = c.get_first(url)
            self.assertEqual(page.status, "ok", page.sentence)
            offset = len(page.body)
            while offset < 64 * MEBI:
                piece = c.read(page.object, offset)
                self.assertEqual(piece.status, "ok", piece.sentence)
                offset += len(piece.bytes)
        self.assertLess(self.d.rss() - before, 150 * MEBI)

    def test_false_and_unknown_codings(self):
        # An unknown coding is stored for clients of HTTP; what does not decode is fetched anew.
        for path, fetches in (("/fault/gzip-garbage", 2), ("/fault/encoding", 1)):
            for _ in range(2):
                page = self.c.get(f"http://a.test{path}")
                self.assertEqual(page.status, "origin_broke", (path, page.sentence))
            self.assertEqual(len(self.o.requests(path)), fetches)

    def test_headers_without_measure(self):
        for fault in ("huge-headers:2000000", "long-header:90000", "interim:100000"):
            page = self.c.get(f"http://a.test/fault/{fault}")
            self.assertIn(page.status, ("too_large", "origin_broke"), (fault, page.sentence))
        # One line over 100 KB is too long for libcurl, which says that it is out of memory.
        page = self.c.get("http://a.test/fault/long-header:2000000")
        self.assertIn(page.status, ("too_large", "origin_broke", "internal"), page.sentence)
        self.fails("http://a.test/fault/header-zero", "origin_broke")

    def test_bodies_over_the_cap(self):
        # Stated, counted, and to the byte.
        for url in ("http://a.test/fault/size:20971521",
                    "http://a.test/x?fault=size:20971521&fault=chunked",
                    "http://a.test/x?fault=size:20971521&fault=no-length"):
            self.assertEqual(self.c.fetch_v1(url), "SYSTEM_ERR", url)
            self.assertEqual(self.c.stat().pages, 0, url)
            self.text(self.c.get(url), url)
            self.assertEqual(self.c.fetch_v1(url), "SYSTEM_ERR", url)
            self.c.ask(procedure=rpc.V2_PURGE, arguments=rpc.purge_arguments(rpc.PURGE_ALL))
        url = "http://a.test/fault/size:20971520"
        page = self.c.get(url)
        self.text(page, url)
        self.assertEqual(len(page.body), 20971520)
        self.assertEqual(len(self.c.fetch_v1(url)), 20971520)

    def test_a_body_with_a_zero_byte(self):
        url = "http://a.test/fault/zero"
        page = self.c.get(url)
        self.assertEqual(page.status, "ok")
        size = len(page.body)
        expected = bytearray(harness.origin_text(url, size))
        expected[size // 2] = 0
        self.assertEqual(page.body, bytes(expected))
        self.assertEqual(self.c.fetch_v1(url), "SYSTEM_ERR")  # a string cannot carry it
        self.assertEqual(self.c.get(url).source, "hit")


class RedirectTest(OriginsTest):
    def test_followed_to_the_end(self):
        page = self.c.get("http://a.test/fault/redirect?https://b.test/c?d=e")
        self.text(page, "https://b.test/c?d=e")
        self.assertEqual(page.final_url, "https://b.test/c?d=e")
        self.assertEqual(self.c.get("http://a.test/fault/chain:5").status, "ok")
        self.assertEqual(self.c.get("http://a.test/fault/redirect?http://b.test/").http_status, 200)

    def test_too_many(self):
        self.fails("http://a.test/fault/chain:6", "bad_redirect")

    def test_to_itself_for_ever(self):
        self.fails("http://a.test/fault/loop", "bad_redirect")
        self.assertLess(len(self.o.requests("/fault/loop")), 20)

    def test_to_schemes_that_are_not_allowed(self):
        secret = self.dir / "secret"
        secret.write_text("this is secret")
        for target in (f"file://{secret}", "ftp://a.test/", "gopher://a.test/", "dict://a.test/x",
                       "javascript:alert(1)", "data:text/plain,x"):
            page = self.c.get(f"http://a.test/fault/redirect?{target}")
            self.assertIn(page.status, ("bad_redirect", "ok"), target)
            if page.status == "ok":  # a relative reference, after all
                self.assertNotIn(b"secret", page.body)
                self.assertIn(page.final_url[:13], ("http://a.test",))

    def test_to_nothing(self):
        for line in ("Location: http://", "Location: http://[", "Location: //"):
            fault = "fault=status:302&fault=header:" + line.replace(" ", "%20")
            page = self.c.get(f"http://a.test/?{fault}")
            self.assertIn(page.status, ("bad_redirect", "ok", "origin_broke", "bad_url"))

    def test_to_loopback_where_only_the_public_may_be_asked(self):
        # The first hop is where the operator leads it; the second goes nowhere it may.
        d = self.daemon("--connect-to", f":80:127.0.0.1:{self.o.http_port}", *self.options)
        with rpc.Connection(d.socket) as c:
            self.assertEqual(c.get("http://a.test/").status, "ok")
            before = len(self.o.requests())
            inner = f"http://127.0.0.1:{self.o.http_port}/"
            targets = [inner.replace("127.0.0.1", host) for host in (
                "127.0.0.1", "localhost", "[::1]", "2130706433", "[::ffff:127.0.0.1]", "0")]
            for target in targets:
                page = c.get(f"http://a.test/fault/redirect?{target}")
                self.assertIn(page.status, ("denied", "bad_redirect"), (target, page.sentence))
            self.assertEqual(len(self.o.requests()), before + len(targets))


class StatusTest(OriginsTest):
    def test_http_errors_are_answers(self):
        for status in (404, 500, 503, 418):
            url = f"http://a.test/fault/status:{status}"
            page = self.c.get(url)
            self.text(page, url)
            self.assertEqual(page.http_status, status)
            self.assertEqual(self.c.fetch_v1(url), page.body)

    def test_no_content(self):
        page = self.c.get("http://a.test/fault/status:204")
        self.assertEqual((page.status, page.http_status, page.body), ("ok", 204, b""))

    def test_what_the_origin_sees(self):
        page = self.c.get("http://a.test/fault/echo")
        lines = page.body.decode().split("\r\n")
        self.assertEqual(lines[0], "GET /fault/echo HTTP/1.1")
        names = [line.split(":")[0].lower() for line in lines[1:] if line]
        self.assertEqual(names.count("host"), 1)
        self.assertIn("user-agent: sunproxy/", page.body.decode().lower())

    def test_request_headers_reach_it_and_bypass_the_cache(self):
        for _ in range(2):
            page = self.c.get("http://a.test/fault/echo", b"Accept-Language: la\r\nX-A: b c\r\n")
            self.assertEqual((page.status, page.source, page.stored), ("ok", "bypass", False))
            self.assertIn(b"Accept-Language: la\r\n", page.body)
            self.assertIn(b"X-A: b c\r\n", page.body)
        self.assertEqual(len(self.o.requests()), 2)

    def test_headers_that_no_client_may_set(self):
        for header in (b"Host: evil.test\r\n", b"Connection: close\r\n", b"Content-Length: 5\r\n",
                       b"Transfer-Encoding: chunked\r\n", b"TE: trailers\r\n", b"X: a\0b\r\n",
                       b"Upgrade: websocket\r\n", b"Proxy-Authorization: x\r\n", b"X : y\r\n",
                       b"no colon\r\n", b": empty\r\n", b"X: y", b"X: y\n", b"X: a\r\n\r\nGET /",
                       b" folded\r\n", b"X: y\r\n folded\r\n", b"X: y\rZ: w\r\n"):
            page = self.c.get("http://a.test/", header)
            self.assertEqual(page.status, "bad_headers", header)
        self.assertEqual(self.o.requests(), [])

    def test_the_answers_headers(self):
        url = "http://a.test/?fault=header:X-A:%20b&fault=header:Keep-Alive:%20timeout=5"
        page = self.c.get(url)
        self.assertRegex(page.headers, r"(?m)^X-A: b\r$")
        self.assertRegex(page.headers, r"(?mi)^content-type: text/plain\r$")
        self.assertIsNone(re.search(r"(?mi)^(keep-alive|connection|transfer-encoding):",
                                    page.headers))
        self.assertTrue(page.headers.endswith("\r\n"))

    def test_no_store_passes_by(self):
        url = "http://a.test/x"
        page = self.c.get(url, flags=rpc.FLAG_NO_STORE)
        self.assertEqual((page.source, page.stored), ("bypass", False))
        self.assertEqual(self.c.get(url).source, "miss")
        self.assertEqual(self.c.get(url, flags=rpc.FLAG_NO_STORE).source, "bypass")
        self.assertEqual(len(self.o.requests("/x")), 3)

    def test_an_origin_with_http_2(self):
        import shutil
        import subprocess

        if not shutil.which("nghttpd"):
            self.skipTest("nghttpd (package nghttp2-server) is not installed")
        key, cert = self.dir / "key.pem", self.dir / "cert.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert, "-days",
                        "2", "-subj", "/CN=h2.test", "-addext", "subjectAltName=DNS:h2.test"],
                       check=True, capture_output=True)
        root = self.dir / "root"
        root.mkdir()
        body = harness.origin_text("http://h2/", 100000)
        (root / "page").write_bytes(body)
        port = harness.free_port()
        harness.Process(self, "nghttpd", ["nghttpd", "-a", "127.0.0.1", "-d", root, port, key, cert],
                        expect=None)
        d = self.daemon("--cacert", cert, "--allow-net", "127.0.0.0/8", "--connect-to",
                        f":443:127.0.0.1:{port}")
        harness.wait_until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0,
                           what="nghttpd")
        with rpc.Connection(d.socket) as c:
            # By version 1: bodies of any size, which may have to pause, come over HTTP/1.1.
            self.assertEqual(c.fetch_v1("https://h2.test/page"), body)
            self.assertEqual(c.get("https://h2.test/page").source, "hit")
            self.assertIn(b"404", c.fetch_v1("https://h2.test/none"))


class UpstreamTest(harness.SystemTest):
    def test_through_an_upstream_proxy(self):
        o = self.origin()  # answers absolute-form targets as a proxy is asked
        d = self.daemon("--upstream-proxy", f"http://127.0.0.1:{o.http_port}", "--allow-net",
                        "127.0.0.0/8")
        with rpc.Connection(d.socket) as c:
            page = c.get("http://far.test/x?y")
            self.assertEqual(page.status, "ok", page.sentence)
            self.assertEqual(page.body, harness.origin_text("http://far.test/x?y", len(page.body)))
        self.assertEqual(o.requests(), [("http", "far.test", "/x?y", 200)])

    def test_the_environments_proxy_is_not_asked(self):
        o = self.origin()
        trap = f"http://127.0.0.1:{harness.free_port()}"
        d = self.daemon(origin=o, env={"http_proxy": trap, "https_proxy": trap, "ALL_PROXY": trap})
        with rpc.Connection(d.socket) as c:
            for url in ("http://a.test/", "https://a.test/"):
                self.assertEqual(c.get(url).status, "ok")
