"""URLs and addresses: what is refused, how it is said, and that nothing is fetched then."""

import socket
import sys
import urllib.parse

import harness
import rpc
from http_front import http_address, stored


class UrlTest(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.o = self.origin()
        self.d = self.daemon(origin=self.o)
        self.c = rpc.Connection(self.d.address)
        self.addCleanup(self.c.close)

    def refused(self, url, by_version_1=True):
        page = self.c.get(url)
        self.assertEqual(page.status, "bad_url", url[:80])
        self.assertGreater(len(page.sentence), 5)
        if by_version_1:
            self.assertEqual(self.c.fetch_v1(url), "GARBAGE_ARGS", url[:80])
        self.assertEqual(self.o.requests(), [], url[:80])

    def test_over_8192_bytes(self):
        base = "http://a.test/"
        self.refused(base + "x" * (8193 - len(base)))
        self.refused(base + "x" * 60000)

    def test_8192_bytes(self):
        url = "http://a.test/" + "x" * (8192 - len("http://a.test/"))
        self.assertEqual(self.c.get(url).status, "ok")
        self.assertEqual(self.c.get(url).source, "hit")

    def test_a_zero_byte(self):
        self.refused(b"http://a.test/\0b")
        self.refused(b"http://a.test\0.evil.test/")
        self.refused(b"http://a.test/\0")
        self.refused(b"\0")

    def test_other_schemes(self):
        for url in ("ftp://a.test/", "file:///etc/passwd", "gopher://a.test/", "dict://a.test/",
                    "ldap://a.test/", "smb://a.test/x", "telnet://a.test", "httpx://a.test/",
                    "ws://a.test/"):
            self.refused(url)
        # Without "//" these are a host and a port, and a user, where http is the default.
        for url in ("javascript:1", "mailto:a@a.test"):
            self.refused(url, by_version_1=False)

    def test_unparsable(self):
        for url in ("", " ", "http://", "https://:80/", "http://a.test:99999/",
                    "http://a.test:x/", "http://[::1/", "http://[zz]/", "http://a b/", "http://a.test/ b",
                    "http://a.test/\r\nX: y", "\x7f", "http://a\\b/"):
            self.refused(url)
        for url in ("http://a.test/\n", " http://a.test/", "a.test/"):
            self.refused(url, by_version_1=False)

    def test_version_1_reads_urls_as_the_papers_server_does(self):
        body = self.c.fetch_v1("http://a.test/page")
        self.assertIsInstance(body, bytes)
        for url in ("http://a.test/page\n", "http://a.test/page\r\n", " \thttp://a.test/page \n",
                    "a.test/page", "a.test/page\n", "\va.test/page\f"):
            self.assertEqual(self.c.fetch_v1(url), body, url)
        # Every spelling is the same page of the cache.
        self.assertEqual(len(self.o.requests()), 1)
        self.assertEqual(self.c.stat().hits, 6)
        # A URL in the query is no scheme, and a port is none.
        for url in ("a.test/?of=http://b.test/", "a.test:80/port"):
            self.assertIsInstance(self.c.fetch_v1(url), bytes, url)
        self.assertEqual([row[1:3] for row in self.o.requests()[1:]],
                         [("a.test", "/?of=http://b.test/"), ("a.test", "/port")])

    def test_the_longest_url_of_version_1_includes_its_scheme(self):
        rest = 8192 - len("http://a.test/")
        self.assertIsInstance(self.c.fetch_v1("a.test/" + "x" * rest), bytes)
        self.assertEqual(self.c.fetch_v1("a.test/" + "x" * (rest + 1)), "GARBAGE_ARGS")
        self.assertIsInstance(self.c.fetch_v1("http://a.test/" + "x" * rest + "\n"), bytes)

    def test_bytes_of_all_kinds(self):
        for byte in list(range(1, 33)) + [127]:
            page = self.c.get(b"http://a.test/" + bytes([byte]))
            self.assertIn(page.status, ("bad_url", "ok"), byte)
            if byte in (10, 13):
                self.assertEqual(page.status, "bad_url")
        for row in self.o.requests():
            self.assertTrue(row[2].isprintable() or not row[2].isascii(), row)

    def test_userinfo_does_not_reach_another_host(self):
        page = self.c.get("http://a.test@b.test/x")
        if page.status == "ok":
            self.assertEqual(self.o.requests()[0][1], "b.test")
        else:
            self.assertEqual(page.status, "bad_url")

    def test_a_fragment_is_not_sent(self):
        page = self.c.get("http://a.test/x#y")
        if page.status == "ok":
            self.assertEqual(self.o.requests()[0][2], "/x")

    def test_path_and_port_as_they_came(self):
        for url, path in (("http://a.test", "/"), ("http://a.test?q=1", "/?q=1"),
                          ("http://A.Test/%7Eb/../c", None), ("http://a.test:80/d", "/d")):
            self.assertEqual(self.c.get(url).status, "ok", url)
            if path:
                self.assertEqual(self.o.requests()[-1][2], path)


class SpellingTest(harness.SystemTest):
    """A spelling is refused, or is a hit of what the normal one has stored, until that is purged."""

    FOLDED = ("http:/a.test/p", "http:///a.test/p", "HTTP://A.TEST:80/p", "http://%61.te%73t/p",
              "http://a.test./p", "http://a.test.:80/p", "http://a.test:080/p", "http://a。test/p",
              "http://a.test/p#q")
    REFUSED = ("http:////a.test/p", "http:a.test/p", "http://a.test../p", "http://a..test/p",
               "http://.a.test/p", "http:\\\\a.test\\p", "http://a.test\\p", "http://a\t.test/p",
               "http://a.test/\tp", "\thttp://a.test/p", "http://a.1/p", "http://a.0x1/p",
               "http://127.0.0.1.1/p", "http://127.1./p", "http://[::1%25lo]/p")
    LOOPBACK = ("127.1", "2130706433", "0x7f.1", "017700000001", "%31%32%37.0.0.1", "127.0.0.1.",
                "127。0。0。1")

    def setUp(self):
        super().setUp()
        self.o = self.origin()
        self.d = self.daemon("--http", "127.0.0.1:0", "--allow-net", "127.0.0.1", origin=self.o)
        self.address = harness.wait_until(lambda: http_address(self.d), what="the HTTP front")
        self.c = rpc.Connection(self.d.socket)
        self.addCleanup(self.c.close)

    def over_http(self, url, method="GET"):
        """Status and answer; the target is sent as it is."""
        with socket.create_connection(self.address, 20) as s:
            s.sendall(f"{method} {url} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
                      "Connection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: s.recv(65536), b"")).decode("latin-1")
        return int(answer.split()[1]), answer

    def sources(self, urls):
        pages = [self.c.get(url) for url in urls]
        for url, page in zip(urls, pages):
            self.assertEqual(page.status, "ok", (url, page.sentence))
        return {page.source for page in pages}

    def test_over_rpc(self):
        local = [f"http://{host}:{self.o.http_port}/p" for host in self.LOOPBACK]
        for urls, normal in ((self.FOLDED, "http://a.test/p"),
                             (local, f"http://127.0.0.1:{self.o.http_port}/p")):
            self.assertEqual(self.c.get(normal).source, "miss")
            self.assertEqual(self.sources(urls), {"hit"})
            for url in urls:
                self.sunproxy("purge", url, daemon=self.d)
                self.assertEqual(self.c.get(normal).source, "miss", url)
                self.sunproxy("purge", normal, daemon=self.d)
                self.assertEqual(self.c.get(url).source, "miss", url)
        self.assertEqual(len(self.o.requests()), 2 * (1 + len(self.FOLDED) + len(self.LOOPBACK)))
        for url in self.REFUSED:
            page = self.c.get(url)
            self.assertEqual(page.status, "bad_url", url)
            self.assertTrue(page.sentence.startswith("invalid URL: "), page.sentence)

    def test_over_http(self):
        normal = stored("http://a.test/p")
        self.assertEqual(self.over_http(normal)[0], 200)
        fetched = len(self.o.requests())
        for url in self.FOLDED[:-1] + self.REFUSED:
            status, answer = self.over_http(stored(url))
            self.assertIn(status, (200, 400), url)
            if status == 200:
                self.assertIn("; hit", answer[:1000], url)
        self.assertEqual(len(self.o.requests()), fetched)
        for host in self.LOOPBACK:
            status, answer = self.over_http(f"http://{host}:{self.o.http_port}/p")
            self.assertEqual(status, 200 if host == "127.0.0.1." else 400, (host, answer[:1000]))
        # A write to any spelling that is accepted invalidates the page.
        for url in ("HTTP://A.TEST:80/p", "http://a.test./p", "http://a.test.:080/p"):
            self.assertIn("; hit", self.over_http(normal)[1][:1000])
            self.assertLess(self.over_http(stored(url), "POST")[0], 300, url)
            self.assertNotIn("; hit", self.over_http(normal)[1][:1000], url)

    def test_the_rules_for_addresses_hold_for_each(self):
        d = self.daemon("--http", "127.0.0.1:0", "--resolve-timeout", "2s", name="strict")
        before = len(self.o.requests())
        with rpc.Connection(d.socket) as c:
            for host in self.LOOPBACK + ("[0:0::0:1]", "[::ffff:7f00:1]", "localhost."):
                for start in ("http://", "http:/", "http:///", "HTTP://"):
                    page = c.get(f"{start}{host}:{self.o.http_port}/p")
                    self.assertEqual(page.status, "denied", (start, host, page.sentence))
        self.assertEqual(len(self.o.requests()), before)

    def test_the_rules_for_addresses_hold_behind_a_proxy_and_after_a_redirect(self):
        proxy = f"http://127.0.0.1:{self.o.http_port}"
        hosts = self.LOOPBACK + ("127.0.0.1%2e", "[0:0::0:1]", "[::ffff:7f00:1]")
        for number, freshness in enumerate(("on", "off")):
            d = self.daemon("--upstream-proxy", proxy, "--freshness", freshness, name=f"p{number}")
            before = len(self.o.requests())
            with rpc.Connection(d.socket) as c:
                for host in hosts:
                    page = c.get(f"http://{host}/p")
                    self.assertEqual(page.status, "denied", (host, page.sentence))
                self.assertEqual(len(self.o.requests()), before)
                for i, host in enumerate(hosts):
                    to = urllib.parse.quote(f"http://{host}/secret", safe="")
                    page = c.get(f"http://a.test/{i}?fault=redirect:{to}")
                    self.assertIn(page.status, ("bad_redirect", "denied"), (host, page.sentence))
            self.assertNotIn("/secret", [request[2] for request in self.o.requests()])


class AddressTest(harness.SystemTest):
    """Loopback is refused in every spelling; what the operator allows is opened, and no more."""

    SPELLINGS = ("127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "017700000001",
                 "0177.0.0.1", "127.0.0.2", "127.255.255.254", "0.0.0.0", "0", "localhost",
                 "localhost.", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]",
                 "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
                 "%31%32%37.0.0.1", "127。0。0。1", "①②⑦.0.0.1")
    PRIVATE = ("10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
               "192.0.2.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "[fe80::1]", "[fc00::1]",
               "[fec0::1]", "[ff02::1]", "[2001:db8::1]", "[::ffff:10.0.0.1]", "[2001::1]")

    def setUp(self):
        super().setUp()
        self.o = self.origin()

    def test_refused_by_default(self):
        d = self.daemon("--resolve-timeout", "2s", "--connect-timeout", "2s")
        with rpc.Connection(d.socket) as c:
            for host in self.SPELLINGS + self.PRIVATE:
                for scheme, port in (("http", self.o.http_port), ("https", self.o.https_port)):
                    page = c.get(f"{scheme}://{host}:{port}/")
                    # A spelling that is no address is a name that does not resolve, or no URL.
                    self.assertIn(page.status, ("denied", "bad_url", "resolve_failed", "timed_out"),
                                  (host, page.sentence))
                    if host[0] in "0127" and host.isascii() and "%" not in host:
                        self.assertEqual(page.status, "denied", host)
                self.assertIn(c.fetch_v1(f"http://{host}:{self.o.http_port}/"),
                              ("SYSTEM_ERR", "GARBAGE_ARGS"))
        self.assertEqual(self.o.requests(), [])

    def test_where_the_operator_leads_it_needs_no_leave(self):
        d = self.daemon("--connect-to", f":80:127.0.0.1:{self.o.http_port}")
        with rpc.Connection(d.socket) as c:
            self.assertEqual(c.get("http://a.test/").status, "ok")
            self.assertEqual(c.get(f"http://127.0.0.1:{self.o.http_port}/").status, "denied")
        self.assertEqual(len(self.o.requests()), 1)

    def test_allowed_block_and_no_more(self):
        d = self.daemon("--allow-net", "127.0.0.1/32")
        with rpc.Connection(d.socket) as c:
            port = self.o.http_port
            for host in ("127.0.0.1", "2130706433", "0x7f.1"):
                self.assertEqual(c.get(f"http://{host}:{port}/").status, "ok", host)
            for host in ("127.0.0.2", "[::1]"):
                self.assertEqual(c.get(f"http://{host}:{port}/").status, "denied", host)

    def test_allowed_ipv6(self):
        d = self.daemon("--allow-net", "::1")
        with rpc.Connection(d.socket) as c:
            page = c.get(f"http://[::1]:{self.o.http_port}/")
            if page.status == "connect_failed":
                self.skipTest("no IPv6 on this loopback")
            self.assertEqual(page.status, "ok", page.sentence)
            self.assertEqual(c.get(f"http://127.0.0.1:{self.o.http_port}/").status, "denied")

    def test_what_a_name_resolves_to_is_checked(self):
        ns = harness.Namespace(self, "nameserver 127.0.0.9\n")
        p = harness.Process(self, "nameserver", ns.enter(
            [sys.executable, "-B", harness.TOP / "tests/system/nameserver.py", "127.0.0.9"]),
            expect=None)
        harness.wait_until(lambda: "ready" in p.out, what="the nameserver")
        o = self.origin(namespace=ns, name="inner")
        d = self.daemon(namespace=ns)
        with rpc.Connection(d.socket) as c:
            for name in ("127-0-0-1.a.test", "10-0-0-1.a.test", "169-254-169-254.a.test",
                         "0-0-0-0.a.test", "127-0-0-1.rebind.test", "0-0-0-0-0-0-0-1.aaaa.test",
                         "0-0-0-0-0-ffff-7f00-1.aaaa.test"):
                for _ in range(3):
                    page = c.get(f"http://{name}:{o.http_port}/")
                    # Elsewhere, where the public addresses of rebind.test are, there is no way.
                    self.assertIn(page.status, ("denied", "connect_failed"), (name, page.sentence))
            self.assertEqual(c.get(f"http://none.test:{o.http_port}/").status, "resolve_failed")
        self.assertEqual(o.requests(), [])
        d = self.daemon("--allow-net", "127.0.0.1", namespace=ns)
        with rpc.Connection(d.socket) as c:
            page = c.get(f"http://127-0-0-1.a.test:{o.http_port}/")
            self.assertEqual(page.status, "ok", page.sentence)
            self.assertEqual(c.get(f"http://10-0-0-1.a.test:{o.http_port}/").status, "denied")

    def test_the_log_alone_names_the_address(self):
        d = self.daemon()
        with rpc.Connection(d.socket) as c:
            self.assertEqual(c.get(f"http://localhost:{self.o.http_port}/").sentence,
                             "the proxy may not fetch from this address or port (its operator "
                             "allows it with --allow-net or --allow-port)")
        harness.wait_until(lambda: ": denied: refused: localhost is at " in d.err, what="the line")
        self.assertIn("(allow it with --allow-net ", d.err)
