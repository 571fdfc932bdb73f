"""`sunproxy get` over HTTP, against the real daemon's front on TCP and on an AF_UNIX socket."""

import json
import os
import re
import shutil
import time

import harness

FRESH = "fault=header:Cache-Control:%20max-age%3d60"


class GetHttpTest(harness.SystemTest):
    needs = (harness.ORIGIN, harness.SUNPROXYD, harness.SUNPROXY)
    options = ()

    def setUp(self):
        super().setUp()
        self.o = self.origin()
        self.unix = f"unix:{self.dir}/http.sock"
        self.d = self.daemon("--http", "127.0.0.1:0", "--http", self.unix, *self.options,
                             origin=self.o)
        match = harness.wait_until(
            lambda: re.search(r"serving HTTP on (127\.0\.0\.1:\d+)", self.d.err), what="HTTP")
        self.tcp = match[1]

    def get(self, *arguments, via=None, **more):
        return self.sunproxy("get", "--http", via or self.tcp, *arguments, **more)

    def out(self, *arguments, **more):
        return self.get(*arguments, **more).stdout.decode("latin-1")

    def echo(self, *arguments):
        """The head of the request that the origin gets."""
        head = self.out(*arguments, "http://a.test/?fault=echo").split("\r\n")
        return {line.split(":")[0].lower(): line.split(":", 1)[1].strip()
                for line in head[1:] if ":" in line}


class ProtocolTest(GetHttpTest):
    seconds = 20

    def test_a_miss_and_hits_over_each_way_to_the_server(self):
        url = f"https://a.test/page?fault=size:3000&{FRESH}"
        form = "|%{source} %{http_code} %{size_download} %{cache_status}"
        seen = self.out("-w", form, url)
        body, said = seen.split("|")
        self.assertEqual(len(body), 3000)
        self.assertTrue(said.startswith("miss 200 3000 sunproxy; fwd="), said)
        for via in (self.unix, self.tcp, f"http://{self.tcp}/"):
            with self.subTest(via=via):
                out, said = self.out("-w", form, url, via=via).split("|")
                self.assertEqual(out, body)
                self.assertTrue(said.startswith("hit 200 3000 sunproxy; hit; ttl="), said)
        # https was fetched once, by the daemon; there was no tunnel.
        self.assertEqual([r[0] for r in self.o.requests()], ["https"])

    def test_the_environment_names_the_front(self):
        url = f"http://a.test/?{FRESH}"
        form = "%{source}|%{cache_status}"
        environment = {"SUNPROXY_HTTP": self.tcp}
        done = self.sunproxy("get", "-I", "-w", form, url, env=environment)
        self.assertIn(b"|sunproxy; fwd=", done.stdout)
        # Options that name a server of RPC count more.
        done = self.sunproxy("get", "-I", "-w", form, url, daemon=self.d, env=environment)
        self.assertTrue(done.stdout.endswith(b"miss|"), done.stdout)

    def test_the_order_is_that_of_the_urls(self):
        urls = [f"http://a.test/{n}?fault=size:{700000 - 50000 * n}" +
                ("&fault=delay:300ms" if n == 0 else "") for n in range(12)]
        one_by_one = b"".join(self.get(url).stdout for url in urls)
        self.assertEqual(self.get("-j", "12", *urls).stdout, one_by_one)
        self.assertEqual(self.get("-j", "1", *urls).stdout, one_by_one)
        self.get("-o", f"{self.dir}/pages/", *urls)
        files = sorted((self.dir / "pages").iterdir())
        self.assertEqual(b"".join(f.read_bytes() for f in files), one_by_one)

    def test_a_page_that_waits_for_an_earlier_one_is_held_in_part(self):
        slow = "http://a.test/slow?fault=size:30&fault=drip:40"
        large = f"http://a.test/large?fault=size:{40 << 20}"
        out = self.get(slow, large).stdout
        self.assertEqual(len(out), 30 + (40 << 20))
        self.assertEqual(out[30:], self.get(large).stdout)
        self.assertEqual(len(self.o.requests("/large?fault=size:%d" % (40 << 20))), 2)

    def test_a_page_that_waits_for_long_is_fetched_again(self):
        # 12 seconds for the first one; the second one is paused most of the time.
        slow = "http://a.test/slow?fault=size:120&fault=drip:100"
        path = f"/large?fault=size:{20 << 20}"
        large = f"http://a.test{path}"
        # While it is paused, its time limit does not count.
        out = self.get("--timeout", "3s", "-j", "2", slow, large, "http://a.test/third").stdout
        self.assertEqual(len(self.o.requests(path)), 2)
        # Requests are logged when they end: the third one was not begun in the time between.
        paths = [r[2] for r in self.o.requests()]
        self.assertGreater(paths.index("/third"), paths.index("/slow?fault=size:120&fault=drip:100"))
        self.assertEqual(out[120:], self.get("--no-store", large, "http://a.test/third").stdout)

    def test_verbose_shows_both_heads(self):
        done = self.get("-v", "-H", "X-Mine: 5", f"https://a.test/?{FRESH}")
        said = done.stderr.decode().splitlines()
        self.assertEqual(said[0], f"> GET https://a.test/?{FRESH} HTTP/1.1")
        self.assertIn("> Host: a.test", said)
        self.assertIn("> X-Mine: 5", said)
        self.assertIn("< HTTP/1.1 200 OK", said)
        self.assertIn("< Cache-Control: max-age=60", said)
        self.assertRegex(said[-1], r"\A\* https://a\.test/.*: HTTP 200, miss, (stored, )?\S+ \S+ in ")
        done = self.get("-v", f"https://a.test/?{FRESH}")
        self.assertRegex(done.stderr, rb"HTTP 200, hit, .* in .*, age \d s\n\Z")
        self.assertEqual(self.get("-v", "-s", "http://a.test/").stderr, b"")

    def test_json(self):
        url = f"http://a.test/?fault=size:10&{FRESH}"
        page = json.loads(self.out("--json", url))
        self.assertEqual((page["status"], page["source"], page["exit_status"]), (200, "miss", 0))
        self.assertEqual((page["final_url"], page["total_us"], page["evicted"]), (url, None, None))
        self.assertEqual(len(page["body"]), 10)
        self.assertIn({"name": "Cache-Control", "value": "max-age=60"}, page["headers"])
        self.assertEqual(json.loads(self.out("--json", url))["source"], "hit")
        done = self.get("--json", "--only-if-cached", "http://a.test/other", url, expect=79)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([row.get("error_code") for row in rows], ["not_cached", None])
        done = self.get("--json", f"http://a.test/?fault=size:{30 << 20}", expect=76)
        self.assertEqual(json.loads(done.stdout)["error_code"], "too_large")


class RequestTest(GetHttpTest):
    def test_methods(self):
        for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS", "M-SEARCH"):
            with self.subTest(method=method):
                out = self.out("-X", method, "-w", "|%{method}", "http://a.test/?fault=echo")
                self.assertTrue(out.startswith(f"{method} /?fault=echo HTTP/1.1"), out)
                self.assertTrue(out.endswith(f"|{method}"))

    def test_head(self):
        url = f"http://a.test/head?fault=size:5000&{FRESH}"
        out = self.out("-I", "-w", "|%{size_download} %{size_header} %{method}", url)
        head, said = out.split("|")
        self.assertTrue(head.startswith("HTTP/1.1 200 OK\r\n"), head)
        self.assertTrue(head.endswith("\r\n\r\n"))
        self.assertIn("\r\nContent-Length: 5000\r\n", head)
        self.assertEqual(said, f"0 {len(head)} HEAD")
        self.get("-I", "-o", self.dir / "head", url)
        self.assertIn(b"Content-Length: 5000", (self.dir / "head").read_bytes())
        # Beside -I another method is sent as it is.
        out = self.out("-I", "-X", "GET", "-w", "|%{method} %{size_download}", url)
        self.assertTrue(out.endswith("\r\n\r\n|GET 0"), out)
        whole = self.out("-i", url)
        self.assertEqual(len(whole.split("\r\n\r\n", 1)[1]), 5000)

    def test_headers(self):
        fields = self.echo()
        self.assertEqual(fields["accept"], "*/*")
        self.assertEqual(fields["host"], "a.test")
        self.assertRegex(fields["user-agent"], r"\Asunproxy/\d")
        fields = self.echo("-H", "Accept:", "-H", "X-One: 1", "-H", "X-Empty;", "-H",
                           "User-Agent: mine", "-H", "X-One: 2")
        self.assertNotIn("accept", fields)
        self.assertEqual(fields["user-agent"], "mine")
        self.assertEqual(fields["x-empty"], "")
        self.assertEqual(fields["x-one"], "2")
        out = self.out("http://user%40:p%3aw@a.test/?fault=echo")
        self.assertIn("Authorization: Basic dXNlckA6cDp3\r\n", out)

    def test_urls_beyond_ascii(self):
        url = "http://b\u00fccher.test/\u00fc?\u00fc&fault=echo"
        for way in (("--http", self.tcp), ("--socket", self.d.socket)):
            with self.subTest(way=way[0]):
                out = self.sunproxy("get", *way, url).stdout.decode()
                self.assertTrue(out.startswith("GET /%c3%bc?%c3%bc&fault=echo HTTP/1.1\r\n"
                                               "Host: xn--bcher-kva.test\r\n"), out)

    def test_ranges(self):
        url = f"http://a.test/r?fault=size:10000&{FRESH}"
        whole = self.get(url).stdout
        for asked, part in (("0-9", whole[:10]), ("9990-", whole[9990:]), ("-7", whole[-7:])):
            with self.subTest(range=asked):
                done = self.get("-r", asked, "-w", "|%{http_code} %{source}", url)
                self.assertEqual(done.stdout, part + b"|206 hit")
        out = self.get("-r", "0-4,10-14", "-i", url).stdout
        self.assertIn(b"multipart/byteranges", out)
        self.get("-f", "-r", "20000-", url, expect=22)

    def test_cache_directives(self):
        url = f"http://a.test/c?{FRESH}"
        form = "%{http_code} %{source} %{exitcode}"
        self.assertRegex(self.out("-s", "--only-if-cached", "-w", form, url, expect=79),
                         r"\A504 .* 79\Z")
        done = self.get("--only-if-cached", url, expect=79)
        self.assertEqual(done.stdout, b"")
        self.assertRegex(done.stderr, rb"the cache has no response .*--only-if-cached")
        self.assertEqual(self.o.requests(), [])
        self.assertEqual(self.out("-o", os.devnull, "-w", form, url), "200 miss 0")
        self.assertEqual(self.out("--only-if-cached", "-o", os.devnull, "-w", form, url), "200 hit 0")
        self.assertEqual(len(self.o.requests()), 1)
        self.assertEqual(self.out("--max-age", "50", "-o", os.devnull, "-w", form, url), "200 hit 0")
        time.sleep(1.1)
        # It is older than that, so the origin is asked.
        self.assertIn(self.out("--max-age", "0", "-o", os.devnull, "-w", form, url),
                      ("200 miss 0", "200 revalidated 0"))
        self.assertEqual(len(self.o.requests()), 2)
        self.assertIn(self.out("--no-cache", "-o", os.devnull, "-w", form, url),
                      ("200 miss 0", "200 revalidated 0"))
        self.assertEqual(len(self.o.requests()), 3)
        self.assertEqual(self.echo("--no-cache", "--no-store", "--max-age", "7")["cache-control"],
                         "max-age=7, no-cache, no-store")
        self.out("--no-store", "http://a.test/never?" + FRESH)
        self.out("--only-if-cached", "http://a.test/never?" + FRESH, expect=79)

    def test_a_stored_504_is_no_failure_of_only_if_cached(self):
        url = f"http://a.test/s?fault=status:504&{FRESH}"
        self.get(url)
        done = self.get("--only-if-cached", "-o", os.devnull, "-w", "%{http_code} %{source}", url)
        self.assertEqual(done.stdout, b"504 hit")

    def test_variables_have_curls_values(self):
        if not shutil.which("curl"):
            self.skipTest("curl is not installed")
        form = (r"%{http_code} %{response_code} %{size_download} %{size_header} %{size_upload} "
                r"%{method} %{content_type} %{num_redirects} %{url} %{url_effective} %{urlnum} "
                r"%{exitcode} 100%% \t|")
        moved = "http://a.test/?fault=redirect:http:%2F%2Fb.test%2Fnext%3Ffault%3Dempty"
        for arguments in ((f"http://a.test/v?fault=size:3000&{FRESH}",), ("http://a.test/fault/status:404",),
                          ("-f", "http://a.test/fault/status:404"), ("-L", moved), (moved,),
                          ("-d", "x=1", "http://a.test/?fault=size:9"), ("-X", "DELETE", "http://a.test/"),
                          ("-r", "0-9", f"http://a.test/v?fault=size:3000&{FRESH}"),
                          (f"http://a.test/?fault=chunked&fault=size:70000&{FRESH}",)):
            with self.subTest(arguments=arguments):
                # Both get the same answer of the cache, at the same age.
                self.get("-o", os.devnull, "-s", *arguments, expect=None)
                for _ in range(3):
                    ours = self.get("-o", os.devnull, "-s", "-w", form, *arguments, expect=None)
                    theirs = self.run_program(["curl", "-o", os.devnull, "-s", "-x", self.tcp, "-w",
                                               form, *arguments])
                    if ours.stdout == theirs.stdout:
                        break
                self.assertEqual(ours.stdout, theirs.stdout)
                self.assertEqual(ours.returncode, theirs.returncode)

    def test_redirects(self):
        url = "http://a.test/?fault=redirect:http:%2F%2Fb.test%2Fnext%3Ffault%3Decho"
        self.assertIn("302", self.out("-i", url).split("\r\n")[0])
        form = "|%{http_code} %{num_redirects} %{url_effective}"
        out = self.out("-L", "-H", "Authorization: secret", "-H", "X-Mine: 1", "-w", form, url)
        head, said = out.split("|")
        self.assertTrue(head.startswith("GET /next?fault=echo HTTP/1.1\r\nHost: b.test\r\n"), head)
        self.assertNotIn("secret", head)
        self.assertIn("X-Mine: 1", head)
        self.assertEqual(said, "200 1 http://b.test/next?fault=echo")
        # POST becomes GET after 302, without its body.
        self.assertTrue(self.out("-L", "-d", "x=1", url).startswith("GET /next"))
        done = self.get("-L", "http://a.test/?fault=loop", expect=76)
        self.assertIn(b"more than 50 redirects", done.stderr)
        done = self.get("-L", "http://a.test/?fault=redirect:ftp:%2F%2Fb.test%2F", expect=76)
        self.assertIn(b"only http and https", done.stderr)


if __name__ == "__main__":
    harness.sys.exit("run tests/system/run.py")
