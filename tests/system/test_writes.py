"""What makes stored responses invalid in the real daemon: writes and their rules for tags; and the
comparison of stored responses with their origin."""

import http.server
import json
import os
import threading
import time

import harness
from http_front import Connection, http_address, is_hit

CONFIG = """
tag-rule = /* -> $1
tag-rule = /users/*/posts -> posts-of-$1
write-rule = /paths -> users
"""


class Site(harness.PythonOrigin):
    """Pages of one version, which each write raises. Responses can be held."""

    def __init__(self, test):
        self.lock = threading.Condition()
        self.version = 1
        self.failing = False
        self.held = {}  # "METHOD /path" to the number of requests that wait
        super().__init__(test, SiteHandler)

    def hold(self, request):
        with self.lock:
            self.held[request] = 0

    def await_held(self, request, count=1):
        with self.lock:
            assert self.lock.wait_for(lambda: self.held[request] >= count, 30), request

    def release(self, request):
        with self.lock:
            del self.held[request]
            self.lock.notify_all()

    def wait(self, request):
        with self.lock:
            if request in self.held:
                self.held[request] += 1
                self.lock.notify_all()
                self.lock.wait_for(lambda: request not in self.held, 60)


class SiteHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        body = str(self.server.version).encode()
        if "late" in self.path:
            body = None
        if "each" in self.path:
            body = str(time.monotonic_ns()).encode()
        self.wait_and_send(503 if self.server.failing else 200, body)

    def do_PUT(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.version += 1
        self.wait_and_send(500 if "fail" in self.path else 200, b"written")

    def wait_and_send(self, status, body):
        self.server.wait(f"{self.command} {self.path}")
        if body is None:
            body = str(self.server.version).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=60")
        if "key" in self.path:
            self.send_header("Surrogate-Key", self.path.split("key=")[1])
        if "weak" in self.path:
            self.send_header("ETag", 'W/"1"')
        if "vary" in self.path:
            self.send_header("Vary", "Accept-Language")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class SiteTest(harness.SystemTest):
    """A daemon with rules, before a site."""

    forward = False

    def setUp(self):
        super().setUp()
        self.site = Site(self)
        config = self.dir / "sunproxyd.conf"
        config.write_text(CONFIG)
        origin = () if self.forward else ("--origin", f"/={self.site.url}")
        self.d = self.daemon("--http", "127.0.0.1:0", "--config", config, "--allow-net",
                             "127.0.0.0/8", "--purge-net", "127.0.0.0/8", *origin)
        self.address = harness.wait_until(lambda: http_address(self.d), what="the HTTP front")
        self.c = self.connect()

    def connect(self):
        connection = Connection(self.address)
        self.addCleanup(connection.close)
        return connection

    def store(self, *paths):
        for path in paths:
            self.assertFalse(is_hit(self.c.get(path)), path)
            self.assertTrue(is_hit(self.c.get(path)), path)

    def has(self, path):
        return self.c.get(path, "Cache-Control: only-if-cached").status == 200

    def put(self, path):
        return self.c.get(path, "Content-Length: 0", method="PUT").status

    def begin(self, method, path):
        """Sends a request on a connection of its own, which the origin holds."""
        c = self.connect()
        self.site.hold(f"{method} {path}")
        c.send(f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        self.site.await_held(f"{method} {path}")
        return c

    def end(self, c, method, path):
        self.site.release(f"{method} {path}")
        return c.receive()


class WritesTest(SiteTest):
    def test_a_write_invalidates_its_tags_before_and_after(self):
        self.store("/users/1", "/users/2/posts", "/paths/1", "/other")
        write = self.begin("PUT", "/users/9")
        for path, stays in (("/users/1", False), ("/users/2/posts", False), ("/paths/1", True),
                            ("/other", True)):
            self.assertEqual(self.has(path), stays, path)
        # What comes meanwhile may be older than the write.
        self.store("/users/1")
        self.assertEqual(self.end(write, "PUT", "/users/9").status, 200)
        self.assertFalse(self.has("/users/1"))
        self.store("/users/1")
        self.assertTrue(self.has("/paths/1"))

    def test_a_write_invalidates_the_tags_that_a_rule_names(self):
        self.store("/users/1", "/paths/1", "/other")
        self.assertEqual(self.put("/paths/fail"), 500)
        self.assertFalse(self.has("/users/1") or self.has("/paths/1"))
        self.assertTrue(self.has("/other"))

    def test_a_write_invalidates_the_tags_that_its_object_has(self):
        self.store("/a?key=x", "/b?key=x,y", "/c?key=y")
        self.assertEqual(self.put("/a?key=x"), 200)
        self.assertFalse(self.has("/a?key=x") or self.has("/b?key=x,y"))
        self.assertTrue(self.has("/c?key=y"))

    def test_what_was_fetched_during_a_write_is_not_used_after_it(self):
        reader = self.begin("GET", "/users/1")
        self.assertEqual(self.put("/paths/1"), 200)
        joined = self.connect()
        joined.send("GET /users/1 HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual(self.end(reader, "GET", "/users/1").body, b"1")
        self.assertEqual(joined.receive().body, b"2")
        self.assertEqual(self.c.get("/users/1").body, b"2")
        self.assertTrue(is_hit(self.c.get("/users/1")))

    def test_purging_by_a_tag_of_a_rule(self):
        self.store("/users/1", "/users/2/posts", "/paths/1")
        self.assertEqual(self.c.get("/", "Surrogate-Key: posts-of-2", method="PURGE").status, 200)
        self.assertFalse(self.has("/users/2/posts"))
        self.assertTrue(self.has("/users/1"))
        self.assertEqual(self.c.get("/", "Cache-Tag: users", method="PURGE").status, 200)
        self.assertFalse(self.has("/users/1"))
        self.assertTrue(self.has("/paths/1"))


class ConcurrentTest(SiteTest):
    """Readers beside a writer."""

    def test_no_reader_gets_an_older_version_than_the_last_write(self):
        stop, errors, hits = threading.Event(), [], []
        written = [1]

        def read(number):
            try:
                c = self.connect()
                while not stop.is_set():
                    least = written[0]
                    response = c.get(f"/users/{number}")
                    if int(response.body) < least:
                        errors.append((response.body, least))
                    if is_hit(response):
                        hits.append(number)
            except Exception as error:  # of any kind: the test shows it
                errors.append(error)

        readers = [threading.Thread(target=read, args=(n % 3,)) for n in range(4)]
        for reader in readers:
            reader.start()
        self.addCleanup(stop.set)
        for n in range(40):
            before = len(hits)
            harness.wait_until(lambda: len(hits) > before or errors, what="a hit")
            self.assertEqual(self.put("/users/7" if n % 2 else "/paths/7"), 200)
            written[0] = self.site.version
        stop.set()
        for reader in readers:
            reader.join()
        self.assertEqual(errors, [])


class ForwardTest(SiteTest):
    """A forward proxy: tags concern the origin of the write alone."""

    forward = True

    def test_a_write_invalidates_the_tags_of_its_origin_alone(self):
        other = Site(self)
        paths = [f"{site.url}/users/{n}" for site in (self.site, other) for n in (1, 2)]
        self.store(*paths)
        self.assertEqual(self.put(f"{self.site.url}/users/1"), 200)
        self.assertEqual([self.has(path) for path in paths], [False, False, True, True])
        self.store(paths[0])
        self.assertEqual(self.put(f"{self.site.url}/paths/1"), 200)
        self.assertEqual([self.has(path) for path in paths], [False, False, True, True])


class VerifyTest(SiteTest):
    """sunproxy verify: stored responses and an origin that changes without a write through the
    proxy."""

    def verify(self, *paths, options=()):
        """Exit status and results by path."""
        urls = self.dir / "urls"
        urls.write_text("".join(f"http://ignored.test{path}\n" for path in paths))
        done = self.sunproxy("verify", "--http", "{}:{}".format(*self.address), "--json",
                             *options, urls, expect=None)
        self.assertEqual(done.stderr, b"")
        answer = json.loads(done.stdout)
        self.assertEqual(answer["drawn"], len(answer["urls"]))
        self.rows = {row["url"].removeprefix("http://ignored.test"): row for row in answer["urls"]}
        return done.returncode, {path: row["result"] for path, row in self.rows.items()}

    def test_stale_pages_are_found(self):
        self.store("/a", "/b")
        self.assertEqual(self.verify("/a", "/b", "/c", "/a"),
                         (0, {"/a": "same", "/b": "same", "/c": "unstored"}))
        self.site.version = 22
        self.assertEqual(self.verify("/a", "/c"), (1, {"/a": "stale", "/c": "unstored"}))
        self.assertEqual(self.rows["/a"]["cause"], "the origin's body has 2 bytes and not 1")
        self.assertLess(self.rows["/a"]["age"], 60)
        # Neither is a page replaced nor one stored.
        self.assertEqual(self.c.get("/a").body, b"1")
        self.assertFalse(self.has("/c"))
        self.site.version = 1
        self.assertEqual(self.verify("/a", "/b"), (0, {"/a": "same", "/b": "same"}))

    def test_the_text_names_the_stale_ones(self):
        self.store("/a")
        self.site.version = 2
        urls = self.dir / "urls"
        urls.write_text("http://ignored.test/a\nhttp://ignored.test/b\n")
        done = self.sunproxy("verify", urls, expect=1,
                             env={**os.environ, "SUNPROXY_HTTP": "{}:{}".format(*self.address)})
        lines = done.stdout.decode().splitlines()
        self.assertRegex(lines[0], r"^http://ignored.test/a: stale, age \d+ s: the origin's body has other bytes$")
        self.assertEqual(lines[1], "2 of 2 URLs")
        self.assertEqual([line.split()[0] for line in lines[2:]], ["0", "1", "0", "0", "1", "0"])

    def test_a_page_that_is_written_during_the_comparison(self):
        self.store("/late/1")
        self.site.hold("GET /late/1")
        results = []
        thread = threading.Thread(target=lambda: results.append(self.verify("/late/1")))
        thread.start()
        self.site.await_held("GET /late/1")
        self.assertEqual(self.put("/late/1"), 200)
        self.site.release("GET /late/1")
        thread.join()
        self.assertEqual(results, [(0, {"/late/1": "changed"})])

    def test_a_page_that_is_another_one_each_time(self):
        self.store("/each")
        self.assertEqual(self.verify("/each"), (0, {"/each": "dynamic"}))

    def test_a_weak_entity_tag_stands_for_the_body(self):
        self.store("/weak/each")
        self.assertEqual(self.verify("/weak/each"), (0, {"/weak/each": "same"}))

    def test_an_origin_that_fails_or_hangs(self):
        self.store("/a", "/b")
        self.site.failing = True
        self.assertEqual(self.verify("/a"), (0, {"/a": "failed"}))
        self.assertEqual(self.rows["/a"]["cause"], "the origin's status is 503")
        self.site.failing = False
        self.site.hold("GET /b")
        self.assertEqual(self.verify("/b", options=("--timeout", "300ms")), (0, {"/b": "failed"}))
        self.site.release("GET /b")

    def test_the_header_selects_the_variant(self):
        self.assertFalse(is_hit(self.c.get("/vary", "Accept-Language: en")))
        self.assertEqual(self.verify("/vary", options=("-H", "Accept-Language: de")),
                         (0, {"/vary": "unstored"}))
        self.assertEqual(self.verify("/vary", options=("-H", "Accept-Language: en")),
                         (0, {"/vary": "same"}))

    def test_the_access_log_is_a_trace(self):
        log = self.dir / "access.log"
        d = self.daemon("--http", "127.0.0.1:0", "--allow-net", "127.0.0.0/8", "--origin",
                        f"/={self.site.url}", "--access-log", log)
        address = harness.wait_until(lambda: http_address(d), what="the HTTP front")
        c = Connection(address)
        self.addCleanup(c.close)
        for path in ("/a", "/b", "/a"):
            c.get(path)
        self.assertEqual(d.stop(20), 0)
        d = self.daemon("--http", "{}:{}".format(*address), "--allow-net", "127.0.0.0/8",
                        "--origin", f"/={self.site.url}")
        harness.wait_until(lambda: http_address(d), what="the HTTP front")
        done = self.sunproxy("verify", "--http", "{}:{}".format(*address), log)
        self.assertIn(b"2 of 2 URLs\n", done.stdout)

    def test_no_server(self):
        urls = self.dir / "urls"
        urls.write_text("http://ignored.test/a\n")
        done = self.sunproxy("verify", "--http", "unix:/nonexistent", urls,
                             expect=os.EX_UNAVAILABLE)
        self.assertEqual(done.stdout, b"")
        self.assertIn(b"unix:/nonexistent: ", done.stderr)
        done = self.sunproxy("verify", urls, expect=os.EX_USAGE)
        self.assertIn(b"--http HOST:PORT", done.stderr)


class RulesTest(harness.SystemTest):
    def test_rules_that_are_refused(self):
        for option, rule, why in (("tag-field", "a b", "not the name of a field"),
                                  ("tag-field", "Tags:", "not the name of a field"),
                                  ("tag-rule", "/users", "PATTERN -> TAG"),
                                  ("tag-rule", "/users -> $1", "number of a"),
                                  ("write-rule", "users -> users", "does not begin with")):
            for arguments in ((f"--{option}", rule), ("--config", self.config(option, rule))):
                done = self.run_daemon("--check-config", *arguments)
                self.assertEqual(done.returncode, os.EX_CONFIG, arguments)
                self.assertIn(f"{option}: \"{rule}\"", done.stderr.decode())
                self.assertIn(why, done.stderr.decode())

    def config(self, option, rule):
        path = self.dir / "bad.conf"
        path.write_text(f"{option} = {rule}\n")
        return path

    def test_rules_are_printed_as_they_are_read(self):
        rules = ("--tag-rule", "/* -> $1 all", "--write-rule", "/paths -> users")
        done = self.run_daemon("--check-config", *rules)
        self.assertEqual(done.stderr, b"")
        printed = done.stdout.decode()
        self.assertIn("tag-rule = /* -> $1 all\n", printed)
        self.assertIn("write-rule = /paths -> users\n", printed)
