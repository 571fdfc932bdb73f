"""What makes stored responses invalid in the real daemon: writes and their rules for tags, HEAD; and
the comparison of hits with their origin."""

import http.server
import os
import threading

import harness
from test_http import Connection, http_address, is_hit

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
        self.wait_and_send(200, body)

    def do_HEAD(self):
        self.wait_and_send(200, b"1")

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
        if "etag" in self.path:
            self.send_header("ETag", f'"{self.server.version if "new" in self.path else 0}"')
            self.send_header("X-Version", str(self.server.version))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class SiteTest(harness.SystemTest):
    """A daemon with rules, before a site."""

    verified = "0"
    forward = False

    def setUp(self):
        super().setUp()
        self.site = Site(self)
        config = self.dir / "sunproxyd.conf"
        config.write_text(CONFIG)
        origin = () if self.forward else ("--origin", f"/={self.site.url}")
        self.d = self.daemon("--http", "127.0.0.1:0", "--config", config, "--allow-net",
                             "127.0.0.0/8", "--purge-net", "127.0.0.0/8", "--verify",
                             self.verified, *origin)
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

    def test_a_response_to_head_updates_or_expires_what_is_stored(self):
        self.store("/same/etag", "/new/etag")
        self.site.version = 2
        for path in ("/same/etag", "/new/etag"):
            head = self.c.get(path, "Cache-Control: no-cache", method="HEAD")
            self.assertEqual((head.status, head.field("X-Version")), (200, "2"))
        updated = self.c.get("/same/etag")
        self.assertTrue(is_hit(updated))
        self.assertEqual((updated.body, updated.field("X-Version")), (b"1", "2"))
        fetched = self.c.get("/new/etag")
        self.assertFalse(is_hit(fetched))
        self.assertEqual((fetched.body, fetched.field("X-Version")), (b"2", "2"))

    def test_purging_by_a_tag_of_a_rule(self):
        self.store("/users/1", "/users/2/posts", "/paths/1")
        self.assertEqual(self.c.get("/", "Surrogate-Key: posts-of-2", method="PURGE").status, 200)
        self.assertFalse(self.has("/users/2/posts"))
        self.assertTrue(self.has("/users/1"))
        self.assertEqual(self.c.get("/", "Cache-Tag: users", method="PURGE").status, 200)
        self.assertFalse(self.has("/users/1"))
        self.assertTrue(self.has("/paths/1"))


class ConcurrentTest(SiteTest):
    """Readers beside a writer, with hits compared with the origin."""

    verified = "100%"

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
        stat = self.stat(self.d)
        self.assertGreater(stat["verified_same"], 0)
        self.assertEqual(stat["verified_stale"], 0)


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


class VerifyTest(harness.SystemTest):
    """Hits that are compared with an origin which changes without a write through the proxy."""

    def setUp(self):
        super().setUp()
        self.site = Site(self)
        self.d = self.daemon("--http", "127.0.0.1:0", "--allow-net", "127.0.0.0/8",
                             "--origin", f"/={self.site.url}", "--verify", "100%",
                             "--log-level", "debug")
        address = harness.wait_until(lambda: http_address(self.d), what="the HTTP front")
        self.c = Connection(address)
        self.addCleanup(self.c.close)

    def results(self):
        """The counts that are not 0."""
        return {name.removeprefix("verified_"): value for name, value in self.stat(self.d).items()
                if name.startswith("verified_") and value}

    def hit(self, path):
        response = self.c.get(path)
        self.assertTrue(is_hit(response))
        return response.body

    def test_a_stale_hit_is_logged(self):
        self.c.get("/users/1")
        self.hit("/users/1")
        harness.wait_until(lambda: self.results() == {"same": 1}, what="the comparison")
        self.site.version = 2
        self.assertEqual(self.hit("/users/1"), b"1")
        harness.wait_until(lambda: self.results() == {"same": 1, "stale": 1},
                           what="the comparison")
        self.assertRegex(self.d.err, r"hit of http://ignored\.test/users/1: stale, age \d+\.\d{3} "
                                     r"s, compared \d+\.\d{3} s later: the origin's body differs "
                                     r"after 0 bytes")
        self.assertEqual(self.hit("/users/1"), b"1")

    def test_a_write_between_a_hit_and_its_comparison(self):
        self.c.get("/late/1")
        self.site.hold("GET /late/1")
        self.hit("/late/1")
        self.site.await_held("GET /late/1")
        self.assertEqual(self.c.get("/late/1", "Content-Length: 0", method="PUT").status, 200)
        self.site.release("GET /late/1")
        harness.wait_until(lambda: self.results() == {"changed": 1}, what="the comparison")

    def test_an_origin_that_does_not_answer_delays_no_client(self):
        self.c.get("/users/1")
        self.site.hold("GET /users/1")
        for _ in range(20):
            self.hit("/users/1")
        self.site.await_held("GET /users/1", 2)
        self.assertEqual(self.results(), {"skipped": 18})
        self.site.release("GET /users/1")
        harness.wait_until(lambda: self.results() == {"same": 2, "skipped": 18},
                           what="the comparisons")

    def test_the_daemon_ends_while_hits_are_compared(self):
        self.c.get("/users/1")
        self.site.hold("GET /users/1")
        self.hit("/users/1")
        self.site.await_held("GET /users/1")
        self.assertEqual(self.d.stop(20), 0)


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
