"""sunproxy explain: what the daemon would do with a request, and why, without doing it."""

import re
import threading

import harness
from http_front import Connection
from raw_origin import RawOrigin
from reload_case import ReloadCase


class ExplainCase(ReloadCase):
    seconds = 10

    def serve(self, *lines, fields=(), http=""):
        self.member_of = self.members[0]
        self.member_of.fields = list(fields)
        self.start(f"origin = site.test/={self.member_of.url}", "purge-net = 127.0.0.0/8", *lines,
                   options=("--http", http) if http else ())

    def explain(self, path, *options, status=0):
        done = self.sunproxy("explain", *options, f"http://site.test{path}", daemon=self.d,
                             expect=status)
        told = {}
        for line in done.stdout.decode().splitlines():
            name, value = line[:14].strip(), line[15:]
            told.setdefault(name, []).append(value)
        return told

    def answer(self, path, *options):
        told = self.explain(path, *options)
        return told["answer"][0], told.get("reason", [""])[0].partition(":")[0]

    def last(self, path):
        return self.explain(path, "--last", "1")["last"][0]

    def get(self, path, *lines, method="GET"):
        self.c.send(f"{method} {path} HTTP/1.1\r\nHost: site.test\r\n"
                    + "".join(f"{line}\r\n" for line in lines) + "\r\n")
        return self.c.receive()


class ExplainTest(ExplainCase):
    def test_nothing_is_done(self):
        self.serve(fields=[("Cache-Control", "max-age=60")])
        before = self.get("/x").status
        self.assertEqual(before, 200)
        for _ in range(3):
            self.assertEqual(self.answer("/x"), ("hit", ""))
            self.assertEqual(self.answer("/y"), ("miss", "uri-miss"))
        self.assertEqual(len(self.member_of.heads), 1)

    def test_what_is_stored(self):
        self.serve(fields=[("Cache-Control", "max-age=60, stale-while-revalidate=5"),
                           ("ETag", '"1"'), ("Cache-Tag", "a b"), ("Vary", "X-Device")])
        self.get("/x", "X-Device: one")
        told = self.explain("/x", "-H", "X-Device: one")
        self.assertEqual(told["key"], ["http://site.test/x"])
        self.assertEqual(told["member"], [self.member_of.url])
        self.assertEqual(told["varies by"], ["x-device"])
        self.assertRegex(told["stored"][0], "status 200, [0-9]+ bytes")
        self.assertEqual(told["lifetime"], ["60.000 s by max-age (RFC 9111 section 5.2.2.1)"])
        self.assertRegex(told["grace"][0], "^5.000 s while")
        self.assertEqual(told["tags"], ["a b"])
        self.assertEqual(told["etag"], ['"1"'])
        self.assertEqual(told["answer"], ["hit"])
        self.assertEqual(self.answer("/x", "-H", "X-Device: two"), ("miss", "vary-miss"))

    def test_rules(self):
        self.serve("[rule]", "remove-parameter = utm_*", "[rule]", "path = /pass", "pass = yes",
                   "[rule]", "path = /deny", "deny = 403", "[rule]", "path = /old",
                   "redirect = 301 /new", "[rule]", "path = /life", "default-lifetime = 1h",
                   "[rule]", "path = /rate", "rate = 1:1")
        told = self.explain("/life?utm_source=1")
        self.assertEqual(told["key"], ["http://site.test/life"])
        self.assertEqual([rule.partition(": ")[2] for rule in told["rule"]],
                         ["remove-parameter=utm_*", "path=/life; default-lifetime=1h"])
        self.get("/life")
        self.assertRegex(self.explain("/life")["lifetime"][0], "^3600[.][0-9]+ s by a rule$")
        self.assertEqual(self.answer("/pass"), ("bypass", "rule"))
        self.assertEqual(self.answer("/deny")[0], "denied, status 403")
        told = self.explain("/old")
        self.assertEqual((told["answer"], told["location"]), (["redirect, status 301"], ["/new"]))
        for _ in range(3):  # no token is taken
            self.assertEqual(self.answer("/rate")[0], "miss")
        self.get("/rate")
        self.assertEqual(self.answer("/rate")[0], "limited, status 429")

    def test_stale_objects(self):
        self.serve(fields=[("Cache-Control", "max-age=0, stale-while-revalidate=600"),
                           ("ETag", '"1"')])
        self.get("/x")
        self.assertEqual(self.answer("/x"), ("stale", "stale-while-revalidate"))
        self.member_of.fields = [("Cache-Control", "max-age=0"), ("ETag", '"1"')]
        self.get("/y")
        self.assertEqual(self.answer("/y"), ("validation", "stale"))
        self.assertEqual(self.answer("/y", "-H", "Cache-Control: max-stale"), ("stale", "max-stale"))

    def test_an_outage(self):
        self.serve(fields=[("Cache-Control", "max-age=60")])
        self.get("/fresh")
        self.member_of.fields = [("Cache-Control", "max-age=0"), ("ETag", '"1"')]
        self.get("/stale")
        self.member_of.fields = [("Cache-Control", "max-age=0, must-revalidate"), ("ETag", '"1"')]
        self.get("/strict")
        url = self.member_of.url
        self.sunproxy("origin", "drain", url, daemon=self.d)
        heads = len(self.member_of.heads)
        for path, answer, said in (("/fresh", ("hit", ""), "; hit"),
                                   ("/stale", ("stale", "disconnected"), "detail=disconnected"),
                                   ("/strict", ("down, status 503", "stale"), None),
                                   ("/new", ("down, status 503", "uri-miss"), None)):
            with self.subTest(path):
                self.assertEqual(self.explain(path)["member"], [f"{url}, drained"])
                self.assertEqual(self.answer(path), answer)
                response = self.get(path)
                self.assertEqual(response.status, 200 if said else 503)
                self.assertIn(said or "detail=down", response.field("cache-status"))
        self.assertEqual(self.answer("/new", "-H", "Cache-Control: only-if-cached"),
                         ("not cached", "uri-miss"))
        self.assertEqual(len(self.member_of.heads), heads)
        self.sunproxy("origin", "enable", url, daemon=self.d)
        self.assertEqual(self.answer("/stale"), ("validation", "stale"))
        self.assertEqual(self.answer("/new"), ("miss", "uri-miss"))
        self.assertEqual(self.explain("/new")["member"], [url])

    def test_others_are_refused(self):
        self.serve()
        done = self.sunproxy("explain", "http://other.test/", daemon=self.d, expect=64)
        self.assertIn("does not serve that host", done.stderr.decode())
        done = self.sunproxy("explain", "http://site.test/", daemon=self.d, tcp=True, expect=None)
        self.assertNotEqual(done.returncode, 0)

    def test_over_http(self):
        self.serve(fields=[("Cache-Control", "no-store")], http=f"unix:{self.dir / 'http'}")
        self.get("/x")
        # Purging clients are no administrators.
        self.assertEqual(self.get("/x", method="EXPLAIN").status, 403)
        self.c = Connection(str(self.dir / "http"))
        self.addCleanup(self.c.close)
        response = self.get("/x", "Explain-Last: 1", method="EXPLAIN")
        self.assertEqual(response.status, 200)
        text = response.body.decode()
        self.assertIn("request: GET http://site.test/x\n", text)
        self.assertIn("answer: bypass\n", text)
        self.assertIn("no-store: the response has no-store (RFC 9111 section 5.2.2.5)", text)
        response = self.get("/x", "Explain-Method: POST", method="EXPLAIN")
        self.assertIn("reason: method: ", response.body.decode())
        self.assertEqual(len(self.member_of.heads), 1)


class ReasonsTest(ExplainCase):
    """Each reason against a hit, as it is told of the last miss of its URL."""

    seconds = 20

    # Not here: what the daemon never does (no-cache, since it validates), what takes a memory that
    # is used up (test_limits), a request that others' responses send back four times (unit test
    # proxy/test_unshared), users whom no check is made of (test_proxy_users), and what is left at a
    # peer (test_cluster).
    ELSEWHERE = {"no-cache", "memory", "request-passes", "user-unchecked", "at-peer"}

    def told(self, path, *lines, fields=(), status=200, times=1, **more):
        """The word of the last miss, after the last of these requests."""
        self.member_of.fields, self.member_of.status = list(fields), status
        for _ in range(times):
            self.get(path, *lines, **more)
        return self.word(path)

    def word(self, path):
        last = self.last(path).partition("; ")[2]
        return last.partition(":")[0]

    def responses(self):
        fresh = ("Cache-Control", "max-age=60")
        yield "malformed", self.told("/1", fields=[("Cache-Control", "=1")])
        for word in ("no-store", "private"):
            yield word, self.told(f"/{word}", fields=[("Cache-Control", word)])
        yield "set-cookie", self.told("/2", fields=[fresh, ("Set-Cookie", "a=1")])
        yield "vary-any", self.told("/3", fields=[fresh, ("Vary", "*")])
        yield "stale-on-arrival", self.told("/4", fields=[("Cache-Control", "max-age=1"),
                                                          ("Age", "9")])
        yield "authorization", self.told("/5", "Authorization: Basic YTpi", fields=[fresh])
        yield "cookie", self.told("/6", "Cookie: a=1", fields=[("ETag", '"1"')])
        yield "partial", self.told("/7", fields=[fresh], status=206)
        yield "status", self.told("/8", fields=[fresh], status=429)
        yield "no-lifetime", self.told("/9")
        yield "tags", self.told("/10", fields=[fresh, ("Cache-Tag", ",".join(map(str, range(70))))])
        yield "fields", self.told("/11", f"X-Long: {'x' * 5000}", fields=[fresh, ("Vary", "X-Long")])
        yield "too-large", self.told(f"/12?{'x' * 3000}", fields=[fresh])
        yield "uri-miss", self.told("/13", fields=[fresh])
        self.told("/14", fields=[fresh, ("Vary", "X-A")])
        yield "miss", self.told("/14", "X-A: 1", fields=[fresh, ("Vary", "X-A")])
        yield "vary-miss", self.answer("/14", "-H", "X-A: 2")[1]

    def requests(self):
        fresh = ("Cache-Control", "max-age=60")
        yield "method", self.told("/20", method="POST")
        yield "request-no-store", self.told("/21", "Cache-Control: no-store", fields=[fresh])
        yield "request-condition", self.told("/22", 'If-Match: "1"', fields=[fresh])
        yield "request-range", self.told("/23", "Range: bytes=5-6", fields=[fresh])
        yield "rule", self.told("/pass", fields=[fresh])
        self.c.send("GET /24 HTTP/1.1\r\nHost: site.test\r\nContent-Length: 1\r\n\r\nx")
        self.c.receive()
        yield "request-body", self.word("/24")
        self.told("/25", fields=[("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")])
        yield "request-user", self.answer("/25", "-H", "Cookie: a=1")[1]
        self.told("/26", fields=[fresh])
        yield "request", self.told("/26", "Cache-Control: no-cache", fields=[fresh])
        self.sunproxy("get", "-H", "X-A: 1", "http://site.test/27", daemon=self.d)
        yield "request-fields", self.word("/27")

    def stale(self):
        old = [("Cache-Control", "max-age=0, stale-if-error=600"), ("ETag", '"1"')]
        self.told("/30", fields=old)
        yield "stale", self.told("/30", fields=old)
        yield "max-stale", self.told("/30", "Cache-Control: max-stale", fields=old)
        yield "stale-if-error", self.told("/30", fields=old, status=503)
        later = [("Cache-Control", "max-age=0, stale-while-revalidate=600"), ("ETag", '"1"')]
        self.told("/31", fields=later)
        yield "stale-while-revalidate", self.told("/31", fields=later)

    def purged(self):
        """While it is fetched."""
        self.member_of.fields, self.member_of.status = [("Cache-Control", "max-age=60")], 200
        self.member_of.silence = threading.Event()
        self.c.send("GET /40 HTTP/1.1\r\nHost: site.test\r\n\r\n")
        harness.wait_until(lambda: self.member_of.heads[-1][1] == "/40", what="the request")
        self.sunproxy("purge", "http://site.test/40", daemon=self.d, expect=None)
        self.member_of.silence.set()
        self.c.receive()
        self.member_of.silence = None
        return self.word("/40")

    def elsewhere(self):
        """What takes a daemon of its own."""
        head = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=%d\r\n"
        origin = RawOrigin(self, {
            "/framing": head % 60 + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
                        b"4\r\nfine\r\n0\r\n\r\n",
            # More than the small queue takes.
            "/policy": head % 60 + b"Content-Length: 3000\r\n\r\n" + b"x" * 3000,
            "/disconnected": head % 0 + b'ETag: "1"\r\nContent-Length: 4\r\n\r\nfine',
        }, closing=("/disconnected",))
        d = self.daemon("--allow-net", "127.0.0.0/8", "--allow-port", "any", "--policy",
                        "s3-fifo", "--capacity-bytes", "20K", "--max-page", "4K")

        def word(url):
            self.sunproxy("get", url, daemon=d)
            done = self.sunproxy("explain", "--last", "1", url, daemon=d)
            return done.stdout.decode().splitlines()[-1].partition("; ")[2].partition(":")[0]

        for name in ("framing", "policy"):
            yield name, word(f"{origin.url}/{name}")
        yield "user-info", word(f"http://user:word@127.0.0.1:{origin.port}/user")
        word(f"{origin.url}/disconnected")
        origin.end()
        yield "disconnected", word(f"{origin.url}/disconnected")
        yield from self.users(origin.url)

    def users(self, url):
        """What a forward proxy says that has users."""
        users = self.dir / "users"
        users.write_text("alice:$5$salt$Gcm6FsVtF/Qa77ZKD.iwsJlCVPY0XSMgLJL0Hnww/c1\n")
        users.chmod(0o600)
        d = self.daemon("--users", str(users))
        for reason, options in (("user-demanded", ()), ("user-refused", ("--user", "bob"))):
            done = self.sunproxy("explain", *options, url, daemon=d)
            yield reason, done.stdout.decode().splitlines()[-1].split()[1].rstrip(":")

    def test_each_reason(self):
        self.serve("max-page = 2K", "heuristic-lifetime = 10", "range-fill-size = 0", "[rule]", "path = /pass", "pass = yes")
        words = []
        for word, told in (*self.responses(), *self.requests(), *self.stale(),
                           ("purged", self.purged()), *self.elsewhere()):
            with self.subTest(word):
                self.assertEqual(told, word)
            words.append(word)
        manual = (harness.TOP / "docs/sunproxyd.8").read_text()
        section = re.search(r"(?ms)^\.Sh REASONS$(.*?)^\.Sh ", manual).group(1)
        listed = {word for line in re.findall(r"(?m)^\.It Li (.*)$", section)
                  for word in line.split(" , ")}
        self.assertEqual(listed - set(words) - self.ELSEWHERE, set())


del ExplainCase, ReloadCase
