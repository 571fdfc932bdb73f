"""The rows of a reverse proxy: what members of an origin get, and what follows when they fail."""

import http.server
import json
import re
import threading
import time

import harness
import rpc
from http_front import Connection, http_address


class Member(harness.PythonOrigin):
    """A member of an origin, which answers with what it was asked for, in the way that is set."""

    def __init__(self, test):
        self.status = 200
        self.fields = []
        self.confirming = None  # fields of a 304 to a request with If-None-Match
        self.silence = None  # an event that ends it
        self.delay = 0
        self.health = 200  # the status of /probe
        self.hangs = None  # an event that ends that
        self.probes = []
        self.heads = []
        super().__init__(test, MemberHandler)


class MemberHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        if self.path == "/probe":
            self.server.probes.append(self.headers["Host"])
            if self.server.hangs:
                self.server.hangs.wait(60)
            self.send_response(self.server.health)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.server.heads.append((self.command, self.path, dict(self.headers)))
        request = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if self.server.silence:
            self.server.silence.wait(60)
        time.sleep(self.server.delay)
        body = f"{self.command} {self.headers['Host']}{self.path} {request}".encode()
        status, fields = self.server.status, self.server.fields
        if self.server.confirming and self.headers["If-None-Match"]:
            status, fields = 304, self.server.confirming
        self.send_response(status)
        for field in fields:
            self.send_header(*field)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status != 304:
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = answer


class RowTest(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.first, self.second = Member(self), Member(self)

    def start(self, *options):
        # No private address is allowed but those of the rows.
        self.d = self.daemon("--http", "127.0.0.1:0", *options)
        self.c = Connection(harness.wait_until(lambda: http_address(self.d), what="the HTTP front"))
        self.addCleanup(self.c.close)

    def ask(self, path, *lines, method="GET", host="site.test", body=""):
        self.c.send(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n"
                    + "".join(f"{line}\r\n" for line in lines)
                    + (f"Content-Length: {len(body)}\r\n" if body else "") + "\r\n" + body)
        return self.c.receive()

    def text(self, *arguments, **more):
        return self.ask(*arguments, **more).body.decode().strip()

    def both(self):
        return f"/={self.first.url},{self.second.url}/v2"

    def dead(self):
        """A URL that nothing listens at."""
        return f"http://127.0.0.1:{harness.free_port()}"


class ReverseTest(RowTest):
    seconds = 10

    def test_the_host_of_the_client(self):
        named, own = Member(self), Member(self)
        self.start("--origin", f"/={self.first.url}",
                   "--origin", f"named.test/ = {named.url} host=other.test:81",
                   "--origin", f"own.test/={own.url} host=origin")
        for host, told, member in (("site.test", "site.test", self.first),
                                   ("Site.Test:81", "site.test:81", self.first),
                                   ("[::1]:82", "[::1]:82", self.first),
                                   ("named.test", "other.test:81", named),
                                   ("own.test", own.url.removeprefix("http://"), own)):
            self.assertEqual(self.text("/x", host=host), f"GET {told}/x")
            fields = member.heads[-1][2]
            self.assertEqual((fields["X-Forwarded-Host"], fields["X-Forwarded-Proto"]),
                             (host.lower(), "http"))

    def test_hosts_share_no_page(self):
        self.first.fields = [("Cache-Control", "max-age=60")]
        self.start("--origin", f"a.test/={self.first.url}", "--origin", f"b.test/={self.first.url}")
        for _ in range(2):
            for host in ("a.test", "b.test", "a.test:81"):
                self.assertEqual(self.text("/x", host=host), f"GET {host}/x")
        self.assertEqual(len(self.first.heads), 3)

    def test_a_post_that_was_not_sent(self):
        self.start("--origin", f"/={self.dead()},{self.second.url}/v2")
        for method, body in (("POST", "a=b"), ("PUT", 100000 * "x"), ("POST", "")):
            self.assertEqual(self.text("/x", method=method, body=body),
                             f"{method} site.test/v2/x {body}".strip())
        self.assertEqual(len(self.second.heads), 3)

    def test_a_member_that_does_not_serve(self):
        self.first.status = 503
        self.start("--origin", self.both())
        for path in ("/a", "/b"):
            self.assertEqual(self.text(path), f"GET site.test/v2{path}")
        self.assertEqual(len(self.first.heads), 1)
        # A write is not repeated, and the last answer is what there is.
        self.second.status = 502
        self.assertEqual(self.ask("/c", method="POST", body="x").status, 502)
        self.assertEqual(len(self.first.heads), 1)
        self.assertEqual(self.ask("/d").status, 502)
        self.assertEqual((len(self.first.heads), len(self.second.heads)), (1, 4))

    def test_all_members_are_down(self):
        self.second.fields = [("Cache-Control", "max-age=0, stale-if-error=100")]
        self.first.status = 503
        self.start("--origin", self.both())
        self.assertEqual(self.text("/a"), "GET site.test/v2/a")
        self.second.status = 503
        # The last one is asked until it has failed five times.
        for n in range(5):
            self.assertEqual(self.ask(f"/b{n}").status, 503)
        asked = len(self.first.heads) + len(self.second.heads)
        self.sunproxy("origin", "drain", self.first.url, daemon=self.d)
        self.sunproxy("origin", "drain", f"{self.second.url}/v2", daemon=self.d)
        self.assertEqual(self.text("/a"), "GET site.test/v2/a")
        refused = self.ask("/c")
        self.assertEqual((refused.status, refused.field("Retry-After")), (503, "10"))
        self.assertIn("detail=down", refused.field("Cache-Status"))
        self.assertEqual(len(self.first.heads) + len(self.second.heads), asked)
        self.sunproxy("origin", "enable", f"{self.second.url}/v2", daemon=self.d)
        self.second.status = 200
        harness.wait_until(lambda: self.ask("/d").status == 200, what="the member")
        # The only member of a row is asked each time.
        self.start("--origin", f"/={self.first.url}")
        asked = len(self.first.heads)
        for n in range(10):
            self.assertEqual(self.ask(f"/{n}").status, 503)
        self.assertEqual(len(self.first.heads), asked + 10)

    def test_a_member_that_hangs(self):
        self.first.silence = threading.Event()
        self.addCleanup(self.first.silence.set)
        self.start("--first-byte-timeout", "300ms", "--origin", self.both())
        for path in ("/a", "/b"):
            self.assertEqual(self.text(path), f"GET site.test/v2{path}")
        self.assertEqual(len(self.first.heads), 1)

    def test_members_share_their_pages(self):
        self.first.fields = [("Cache-Control", "max-age=60")]
        self.start("--origin", self.both())
        self.assertEqual(self.text("/x"), "GET site.test/x")
        self.first.status = 503
        self.assertEqual(self.text("/y"), "GET site.test/v2/y")
        self.assertEqual(self.text("/x"), "GET site.test/x")
        self.assertEqual((len(self.first.heads), len(self.second.heads)), (2, 1))
        # It is purged by the URL of the client, over RPC, too.
        done = self.sunproxy("purge", f"{self.first.url}/x", daemon=self.d, expect=1)
        self.assertIn(b"no page with such a URL", done.stderr)
        self.sunproxy("purge", "http://site.test/x", daemon=self.d)
        self.assertEqual(self.text("/x"), "GET site.test/v2/x")

    def test_rpc_serves_what_the_rows_match(self):
        self.first.fields = [("Cache-Control", "max-age=60")]
        self.start("--origin", f"site.test/a/={self.first.url}/")
        with rpc.Connection(self.d.address) as c:
            page = c.get("http://site.test/a/x")
            self.assertEqual((page.status, bytes(page.body).strip()), ("ok", b"GET site.test/x"))
            self.assertEqual(c.get("http://SITE.test:80/a/b/%2e%2e/x").source, "hit")
            for url in (f"{self.first.url}/x", "http://site.test/b", "http://site.test/a/..%2fb",
                        "http://site.test/a/../b", "http://127.0.0.1/"):
                self.assertEqual(c.get(url).status, "denied", url)
        self.assertEqual(len(self.first.heads), 1)

    def test_a_redirect_leads_rpc_to_no_other_address(self):
        self.first.status = 302
        self.start("--origin", f"/={self.first.url}")
        with rpc.Connection(self.d.address) as c:
            self.first.fields = [("Location", f"{self.second.url}/inside")]
            self.assertEqual(c.get("http://site.test/x").status, "bad_redirect")
        self.assertEqual(self.second.heads, [])

    def test_a_redirect_to_another_host_leaves_a_row_for_any_host(self):
        self.first.status = 302
        self.first.fields = [("Location", "http://login.test/page")]
        self.start("--origin", f"/={self.first.url}")
        with rpc.Connection(self.d.address) as c:
            self.assertEqual(c.get("http://site.test/x").status, "resolve_failed")
        self.assertEqual(len(self.first.heads), 1)

    def test_dot_segments(self):
        self.start("--origin", f"/={self.first.url}", "--origin", f"/a={self.second.url}/v2")
        for path, seen in (("/x/../y", "/y"), ("/x/%2e%2E/y?../z", "/y?../z"), ("/..", "/"),
                           ("/a/../y", "/y"), ("/x/../a/y", "/v2/y"), ("/./y", "/./y")):
            self.assertEqual(self.text(path), f"GET site.test{seen}")
        for path in ("/a/..%2fy", "/a/..;/y", "/a/..%5cy"):
            self.assertEqual(self.ask(path).status, 400, path)

    def test_rows_that_are_checked(self):
        done = self.run_daemon("--check-config", "--http", "127.0.0.1:0",
                               "--origin", "/=http://a/ host=x/y", "--origin", "/b=ftp://a/",
                               "--origin", "/c = http://10.0.0.1:6000, http://b/")
        text = done.stderr.decode()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("host=client, host=origin or host=NAME", text)
        self.assertIn("ftp://a/", text)
        self.assertNotIn("10.0.0.1", text)


class BalanceTest(RowTest):
    seconds = 13

    def setUp(self):
        super().setUp()
        self.third = Member(self)

    def start_with(self, keys, *attributes):
        members = zip((self.first, self.second, self.third), attributes)
        row = ",".join(member.url + more for member, more in members)
        self.start("--origin", f"/={row} {keys}")

    def counts(self):
        return [len(member.heads) for member in (self.first, self.second, self.third)]

    def test_round_robin(self):
        self.start_with("balance=round-robin", "|weight=2", "", "|backup")
        for n in range(30):
            self.assertEqual(self.ask(f"/{n}").status, 200)
        self.assertEqual(self.counts(), [20, 10, 0])

    def test_a_member_that_fails(self):
        self.start_with("balance=round-robin", "", "", "|backup")
        self.second.status = 503
        for n in range(10):
            self.assertEqual(self.ask(f"/a{n}").status, 200)
        self.assertEqual(self.counts(), [10, 1, 0])
        self.first.status = 503
        for n in range(10):
            self.assertEqual(self.ask(f"/b{n}").status, 200)
        self.assertEqual(self.counts()[2], 10)

    def test_the_least_busy_member(self):
        self.start_with("balance=least", "", "", "")
        self.first.silence = threading.Event()
        others = [Connection(http_address(self.d)) for _ in range(2)]
        for n, other in enumerate(others):
            self.addCleanup(other.close)
            other.send(f"GET /busy{n} HTTP/1.1\r\nHost: site.test\r\n\r\n")
        harness.wait_until(lambda: sum(self.counts()) == 2, what="the requests")
        busy = len(self.first.heads)
        for n in range(20):
            self.assertEqual(self.ask(f"/{n}").status, 200)
        self.assertEqual(len(self.first.heads), busy)
        self.assertGreaterEqual(busy, 1)
        self.first.silence.set()
        for other in others:
            self.assertEqual(other.receive().status, 200)

    def test_limits(self):
        self.start_with("balance=round-robin queue=200ms", "|max=2", "|max=1", "|backup|max=1")
        self.first.silence = self.second.silence = self.third.silence = threading.Event()
        others = [Connection(http_address(self.d)) for _ in range(4)]
        for n, other in enumerate(others):
            self.addCleanup(other.close)
            other.send(f"GET /busy{n} HTTP/1.1\r\nHost: site.test\r\n\r\n")
            harness.wait_until(lambda: sum(self.counts()) == n + 1, what="the request")
        # The backup has got one that could not wait longer.
        self.assertEqual(self.counts(), [2, 1, 1])
        refused = self.ask("/none")
        self.assertEqual((refused.status, refused.field("Retry-After")), (503, "1"))
        self.assertIn("detail=overloaded", refused.field("Cache-Status"))
        self.assertEqual(self.counts(), [2, 1, 1])
        self.first.silence.set()
        for other in others:
            self.assertEqual(other.receive().status, 200)
        self.assertEqual(self.ask("/none").status, 200)
        self.assertIn("it has as many as its max= allows", str(self.d.err))

    def test_a_member_with_errors(self):
        self.start_with("balance=round-robin errors=3", "", "", "")
        self.second.status = 500
        statuses = [self.ask(f"/{n}").status for n in range(30)]
        self.assertEqual((len(self.second.heads), statuses.count(500)), (3, 3))
        self.assertIn("is left for 10 s: its status is 500 time after time", str(self.d.err))

    def test_a_slow_member(self):
        self.start_with("balance=round-robin slow=10ms", "", "", "")
        self.second.delay = 0.05
        for n in range(30):
            self.assertEqual(self.ask(f"/{n}").status, 200)
        self.assertEqual(len(self.second.heads), 5)
        self.assertIn("and is left for 10 s: its responses take more than 10 ms", str(self.d.err))

    def test_the_hash_of_the_url(self):
        self.start_with("balance=hash", "", "", "")
        first = {}
        for again in range(3):
            for n in range(30):
                text = self.ask(f"/{n}", "Cache-Control: no-cache").body
                counts = tuple(self.counts())
                if again:
                    self.assertEqual([a - b for a, b in zip(counts, before)], first[n])
                else:
                    first[n] = [a - b for a, b in zip(counts, before)] if n else list(counts)
                before = counts
                self.assertIn(f"/{n} ".encode(), text)
        self.assertGreater(min(self.counts()), 0)


class CommandTest(RowTest):
    """sunproxy origin."""

    def command(self, *words, expect=0):
        return self.sunproxy("origin", *words, daemon=self.d, expect=expect)

    def members(self):
        return {m["member"]: m for m in json.loads(self.command("--json").stdout)}

    def test_draining(self):
        self.start("--origin", f"site.test/={self.first.url},{self.second.url} balance=round-robin")
        self.assertEqual(self.ask("/1").status, 200)
        self.command("drain", self.first.url)
        for n in range(4):
            self.assertEqual(self.ask(f"/a{n}").status, 200)
        found = self.members()[self.first.url]
        self.assertEqual((found["row"], found["state"], found["in_flight"], found["requests"]),
                         ("site.test/", "drained", 0, 1))
        self.assertEqual(self.members()[self.second.url]["requests"], 4)
        self.command("enable", self.first.url)
        for n in range(4):
            self.assertEqual(self.ask(f"/b{n}").status, 200)
        self.assertEqual(len(self.first.heads), 3)
        self.command("drain", "http://other.test", expect=64)
        self.sunproxy("origin", daemon=self.d, tcp=True, expect=77)

    def test_a_member_that_fails(self):
        self.first.status = 503
        self.start("--origin", self.both())
        self.assertEqual(self.ask("/1").status, 200)
        text = self.command().stdout.decode()
        self.assertRegex(text, self.first.url + r" +1 +0 +1 +1( +\d+\.\d){3} left for \d+ s "
                         r"\(its status is 503; failed \d+ s ago\)")
        self.assertRegex(text, self.second.url + r"/v2 +1 +0 +1 +0( +\d+\.\d){3} up\n")

    def test_rows_share_their_members(self):
        self.first.status = 503
        row = f"{self.first.url},{self.second.url}"
        self.start("--origin", f"a.test/={row}", "--origin", f"b.test/={row}",
                   "--origin", f"c.test/={self.first.url}/c")
        for host in ("a.test", "b.test"):
            self.assertEqual(self.ask("/1", host=host).status, 200)
        self.assertEqual(len(self.first.heads), 1)
        # It is the only one of the third row.
        self.assertEqual(self.ask("/1", host="c.test").status, 503)
        listed = json.loads(self.command("--json").stdout)
        self.assertEqual([(m["requests"], m["state"].split(" for ")[0]) for m in listed
                          if m["member"].startswith(self.first.url)],
                         [(2, "left"), (2, "left"), (2, "up")])
        self.command("drain", self.first.url)
        self.assertEqual(self.ask("/2", host="c.test").status, 503)
        self.assertEqual(len(self.first.heads), 2)

    def test_without_rows(self):
        self.start()
        self.assertEqual(json.loads(self.command("--json").stdout), [])


class NameTest(RowTest):
    def test_a_name_that_does_not_resolve(self):
        """A warning; the member is left, and the others serve."""
        self.start("--origin", f"/=http://name.invalid:81,{self.first.url}", "--resolve-timeout", "2s")
        harness.wait_until(lambda: "http://name.invalid:81 fails and is left for 10 s: name.invalid"
                           in str(self.d.err), what="the warning")
        self.assertEqual(self.text("/1"), "GET site.test/1")
        member = json.loads(self.sunproxy("origin", "--json", daemon=self.d).stdout)[0]
        self.assertEqual((member["state"].split(" for ")[0], member["requests"]), ("left", 0))

    def test_a_name_that_is_checked(self):
        done = self.run_program([harness.SUNPROXYD, "--check-config", "--origin",
                                 f"/=http://name.invalid:81,{self.first.url},http://localhost:81"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(b"http://name.invalid:81: name.invalid cannot be resolved: ", done.stderr)


class ProbeTest(RowTest):
    seconds = 15
    threads = True

    def start_with_probes(self, more="", limit=""):
        self.start("--origin", f"{self.both().replace('/v2', '')}{limit} balance=round-robin probe=/probe "
                   f"probe-interval=1s probe-fall=2 probe-rise=1{more}")

    def shares(self, requests=6):
        before = [len(member.heads) for member in (self.first, self.second)]
        for n in range(requests):
            self.assertEqual(self.ask(f"/{n}", "Cache-Control: no-store").status, 200)
        return [len(m.heads) - b for m, b in zip((self.first, self.second), before)]

    def test_a_member_is_down_and_up_again(self):
        self.start_with_probes()
        self.assertEqual(self.shares(), [3, 3])
        self.first.health = 500
        harness.wait_until(lambda: f"{self.first.url} is down: the status of a probe is 500"
                           in str(self.d.err), what="the log's line")
        self.assertEqual(self.shares(), [0, 6])
        self.first.health = 204
        harness.wait_until(lambda: f"{self.first.url} responds and is used again"
                           in str(self.d.err), what="the log's line")
        # It begins with a part of its requests.
        first, second = self.shares(20)
        self.assertTrue(0 < first < second, (first, second))
        self.assertEqual(self.first.probes[0], self.first.url.split("/")[2])

    def test_a_member_of_several_rows(self):
        row = f"{self.both()[2:].replace('/v2', '')} probe=/probe probe-interval=1s"
        self.start(*(f"--origin=h{n}.test/={row}" for n in range(50)))
        harness.wait_until(lambda: len(self.second.probes) >= 3, what="the probes")
        self.assertLess(len(self.second.probes), 10)

    def test_a_member_that_hangs(self):
        self.second.hangs = threading.Event()
        self.start_with_probes()
        harness.wait_until(lambda: f"{self.second.url} is down: a probe had no response in time"
                           in str(self.d.err), what="the log's line")
        self.assertEqual(self.shares(), [6, 0])
        self.second.hangs.set()

    def test_probes_beside_a_limit(self):
        """A probe takes no place of a request, and waits for none."""
        self.second.hangs = threading.Event()
        self.start_with_probes(limit="|max=1")
        harness.wait_until(lambda: self.second.probes, what="a probe")
        self.assertEqual(self.shares(), [3, 3])
        self.second.silence = threading.Event()
        self.c.send("GET /busy HTTP/1.1\r\nHost: site.test\r\nCache-Control: no-store\r\n\r\n")
        harness.wait_until(lambda: f"{self.second.url} is down: a probe had no response in time"
                           in str(self.d.err), what="the log's line")
        self.second.silence.set()
        self.second.hangs.set()
        self.c.receive()

    def test_a_member_that_passes_and_fails_requests(self):
        self.first.status = 503
        self.start_with_probes()
        harness.wait_until(lambda: len(self.first.probes) > 1, what="the probes")
        self.assertEqual(self.shares(), [1, 6])
        self.assertNotIn("is down", str(self.d.err))


class OutageTest(harness.SystemTest):
    seconds = 10

    def test_the_measurement(self):
        """tests/bench/outage.py, of sunproxyd alone: no request fails while one of three members does."""
        done = self.run_program([harness.TOP / "tests/bench/outage.py", "--build", harness.BUILD, "--only",
                                 "sunproxyd", "--kind", "503", "--seconds", "1", "--rate", "40"])
        self.assertEqual(done.returncode, 0, done.stderr)
        cells = done.stdout.decode().splitlines()[-1].split(" | ")
        self.assertEqual(cells[:2] + cells[3:4], ["| 503", "sunproxyd", "0"], done.stdout)


class RecoveryTest(RowTest):
    seconds = 12

    def test_the_first_member_is_returned_to(self):
        self.first.status = 503
        self.start("--origin", self.both())
        self.assertEqual(self.text("/a"), "GET site.test/v2/a")
        self.first.status = 200
        self.assertEqual(self.text("/b"), "GET site.test/v2/b")
        harness.wait_until(lambda: self.text("/c") == "GET site.test/c", 100, "the first member")
        self.assertEqual(self.text("/d"), "GET site.test/d")
        self.assertEqual(len(self.first.heads), 3)
        log = str(self.d.err)
        self.assertIn(f"{self.first.url} fails and is left for 10 s: its status is 503", log)
        self.assertIn(f"{self.first.url} responds and is used again", log)
        self.assertEqual(len(re.findall(rf" {self.first.url} (?:fails|responds) ", log)), 2, log)
