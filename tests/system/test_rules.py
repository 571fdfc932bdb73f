"""Sections [rule]: what they make of requests and responses, as clients and members of a row see it."""

import json
import os
import time

import harness
import rpc
from http_front import Connection, http_address
from reload_case import ReloadCase


class RuleCase(ReloadCase):
    def serve(self, *lines):
        self.member_of = self.members[0]
        self.start(f"origin = /={self.member_of.url}", *lines)

    def get(self, path, *lines, method="GET", connection=None):
        c = connection or self.c
        c.send(f"{method} {path} HTTP/1.1\r\nHost: site.test\r\n"
               + "".join(f"{line}\r\n" for line in lines) + "\r\n")
        return c.receive(method == "HEAD")

    def state(self, *arguments):
        return self.get(*arguments).field("cache-status").removeprefix("sunproxy; ")

    def hits(self, *arguments):
        return self.state(*arguments).startswith("hit")

    def sent(self):
        """Fields of the last request that the member has seen."""
        return self.member_of.heads[-1][2]


class RequestsTest(RuleCase):
    seconds = 10

    def test_parameters(self):
        self.serve("[rule]", "remove-parameter = utm_*", "remove-parameter = fbclid",
                   "sort-parameters = yes")
        self.get("/x?b=2&utm_source=a&a=1&fbclid=3")
        self.assertEqual(self.member_of.heads[-1][1], "/x?a=1&b=2")
        self.assertTrue(self.hits("/x?a=1&b=2"))
        self.assertTrue(self.hits("/x?utm_medium=b&b=2&a=1"))
        self.get("/y?utm_source=a")
        self.assertEqual(self.member_of.heads[-1][1], "/y")

    def test_a_purge_names_any_spelling(self):
        self.serve("purge-net = 127.0.0.0/8", "[rule]", "remove-parameter = utm_*")
        self.get("/x?utm_source=a")
        self.assertEqual(self.get("/x?utm_source=b", method="PURGE").status, 200)
        self.assertFalse(self.hits("/x"))

    def test_purges_and_writes_reach_each_key(self):
        self.serve("purge-net = 127.0.0.0/8", "[rule]", "method = GET", "field = X-A",
                   "remove-parameter = utm_*", "[rule]", "method = GET", "sort-parameters = yes")
        url = "/x?b=1&utm_source=1&a=2"
        for _ in range(2):
            self.get(url)
            self.get(url, "X-A: 1")
            self.assertTrue(self.hits("/x?a=2&b=1"))
            self.assertEqual(self.get(url, method="PURGE").status, 200)
            for path in ("/x?a=2&b=1", "/x?a=2&b=1&utm_source=1"):
                self.assertFalse(self.hits(path), path)
        self.assertTrue(self.hits("/x?a=2&b=1"))
        self.get(url, "Content-Length: 0", method="POST")
        self.assertFalse(self.hits("/x?a=2&b=1"))
        self.assertFalse(self.hits("/x?a=2&b=1&utm_source=1"))
        # Two rules with conditions of their own.
        self.reload("purge-net = 127.0.0.0/8", f"origin = /={self.member_of.url}",
                    "[rule]", "field = X-A", "remove-parameter = a",
                    "[rule]", "field = X-B", "remove-parameter = b")
        url = "/y?a=1&b=2&c=3"
        for method in ("PURGE", "POST"):
            for lines in ((), ("X-A: 1",), ("X-B: 1",), ("X-A: 1", "X-B: 1")):
                self.get(url, *lines)
            self.assertTrue(self.hits("/y?c=3"))
            self.get(url, "Content-Length: 0", method=method)
            for path in (url, "/y?b=2&c=3", "/y?a=1&c=3", "/y?c=3"):
                self.assertFalse(self.hits(path), path)
        # A prefix is what it is.
        self.get("/shop")
        self.get("/shop/a?a=1&b=2")
        self.assertEqual(self.get("/shop/a?b=2", "Purge: prefix", method="PURGE").status, 404)

    def test_cookies(self):
        self.member_of = self.members[0]
        self.member_of.fields = []
        self.serve("[rule]", "remove-cookie = _ga*", "default-lifetime = 1h")
        self.get("/x", "Cookie: _ga=1; _ga_2=3")
        self.assertNotIn("Cookie", self.sent())
        self.assertTrue(self.hits("/x", "Cookie: _ga=7"))
        self.assertTrue(self.hits("/x"))
        # A cookie that is still sent may be a user's.
        self.assertIn("detail=cookie", self.state("/x", "Cookie: _ga=7; sid=1"))
        self.assertEqual(self.sent()["Cookie"], "sid=1")
        self.assertTrue(self.hits("/x"))
        self.assertIn("detail=", self.state("/x", "Authorization: Basic YTpi"))

    def test_cookies_of_the_key(self):
        self.member_of = self.members[0]
        self.member_of.fields = []
        self.serve("[rule]", "key-cookie = lang", "default-lifetime = 1h")
        for lang in ("de", "fr"):
            self.get("/x", f"Cookie: a=1; lang={lang}; b=2")
            self.assertEqual(self.sent()["Cookie"], f"lang={lang}")
        self.assertTrue(self.hits("/x", "Cookie: lang=de"))
        self.assertTrue(self.hits("/x", "Cookie: c=4; lang=fr"))
        self.assertFalse(self.hits("/x", "Cookie: lang=it"))
        self.assertFalse(self.hits("/x"))
        self.assertTrue(self.hits("/x", "Cookie: other=1"))
        self.assertIn("detail=", self.state("/x", "Cookie: lang=de", "Authorization: Basic YTpi"))

    def test_fields_of_the_key(self):
        self.serve("[rule]", "field = User-Agent: *mobile*", "set-field = X-Device: mobile",
                   "[rule]", "key-field = X-Device")
        agents = ("User-Agent: Mobile/1", "User-Agent: Desktop/1")
        self.get("/x", agents[0])
        self.assertEqual(self.sent()["X-Device"], "mobile")
        self.get("/x", agents[1])
        self.assertNotIn("X-Device", self.sent())
        for agent in agents:
            self.assertTrue(self.hits("/x", agent))
        self.assertTrue(self.hits("/x", "User-Agent: another mobile"))
        self.assertEqual(len(self.member_of.heads), 2)

    def test_fields_that_do_not_count(self):
        self.member_of = self.members[0]
        self.member_of.fields = [("Cache-Control", "max-age=60"), ("Vary", "User-Agent")]
        self.serve("[rule]", "remove-field = User-Agent", "remove-field = Cache-Control")
        self.get("/x", "User-Agent: a")
        self.assertNotIn("User-Agent", self.sent())
        self.assertTrue(self.hits("/x", "User-Agent: b", "Cache-Control: no-cache"))

    def test_conditions_that_do_not_count(self):
        self.members[0].fields = [("Cache-Control", "max-age=600"), ("ETag", '"1"'),
                                  ("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")]
        self.serve("[rule]", "remove-field = If-None-Match", "[rule]", "path = /r",
                   "remove-field = Range")
        since = "If-Modified-Since: Mon, 01 Jan 20%02d 00:00:00 GMT"
        for _ in range(2):
            self.assertEqual(self.get("/x", 'If-None-Match: "1"', since % 1).status, 200)
            self.assertEqual(self.get("/x", 'If-None-Match: "2"', since % 25).status, 304)
            self.assertEqual(self.get("/r", "Range: bytes=0-1").status, 200)

    def test_pass(self):
        self.serve("[rule]", "path = /admin/open/*", "pass = no",
                   "[rule]", "path = /admin/*", "cookie = user", "pass = yes")
        for _ in range(2):
            self.assertEqual(self.state("/admin/x", "Cookie: user=1"), "fwd=bypass; detail=rule")
        self.assertIn("stored", self.state("/admin/x"))
        self.assertIn("stored", self.state("/admin/open/x", "Cookie: user=1"))

    def test_denied(self):
        self.serve("[rule]", "path = */xmlrpc.php", "deny = 403",
                   "[rule]", "method = DELETE", "deny = 405")
        self.assertEqual(self.get("/blog/xmlrpc.php?x").status, 403)
        self.assertEqual(self.get("/x", method="DELETE").status, 405)
        self.assertEqual(self.get("/x").status, 200)
        self.assertEqual(len(self.member_of.heads), 1)

    def test_redirects(self):
        self.serve("[rule]", "path = /old/*", "redirect = 301 https://{host}/new{path}{query}",
                   "[rule]", "path = /loop*", "redirect = /loop")
        response = self.get("/old/x?y=1")
        self.assertEqual((response.status, response.field("location")),
                         (301, "https://site.test/new/old/x?y=1"))
        self.assertEqual(self.get("/loop/2").field("location"), "/loop")
        # A redirect does not apply to where it leads.
        self.assertEqual(self.get("/loop").status, 200)

    def test_a_rate(self):
        self.serve("[rule]", "path = /search*", "rate = 1:3")
        statuses = [self.get(f"/search?{n}").status for n in range(6)]
        self.assertEqual(statuses.count(200), 3)
        self.assertEqual(statuses.count(429), 3)
        self.assertEqual(self.get("/x").status, 200)


class ResponsesTest(RuleCase):
    seconds = 10

    def serve(self, *lines, fields=()):
        self.members[0].fields = list(fields)
        super().serve(*lines)

    def test_lifetimes(self):
        self.serve("[rule]", "path = /default/*", "default-lifetime = 1h",
                   "[rule]", "path = /short/*", "lifetime = 0",
                   "[rule]", "type = image/*", "lifetime = 1h")
        self.get("/default/1")
        self.assertTrue(self.hits("/default/1"))
        self.member_of.fields = [("Cache-Control", "max-age=0")]
        self.get("/default/2")
        self.assertFalse(self.hits("/default/2"))
        self.member_of.fields = [("Cache-Control", "max-age=60")]
        self.get("/short/1")
        self.assertFalse(self.hits("/short/1"))
        self.member_of.fields = [("Content-Type", "image/png"), ("Cache-Control", "max-age=0")]
        self.get("/x")
        self.assertTrue(self.hits("/x"))

    def test_errors_last_only_where_a_rule_names_them(self):
        self.serve("[rule]", "path = /named/*", "status = 404", "lifetime = 1h",
                   "[rule]", "path = *", "lifetime = 1h")
        self.member_of.status = 404
        for path, hits in (("/named/x", True), ("/x", False)):
            self.get(path)
            self.assertEqual(self.hits(path), hits, path)

    def test_redirects_of_one_request_last_only_where_a_rule_names_them(self):
        self.serve("[rule]", "path = /named/*", "status = 302", "lifetime = 1h",
                   "[rule]", "path = *", "lifetime = 1h", "[rule]", "default-lifetime = 1h")
        for status, path, hits in ((302, "/named/x", True), (302, "/x", False), (307, "/y", False),
                                   (301, "/z", True), (308, "/w", True)):
            self.member_of.status = status
            self.get(path)
            self.assertEqual(self.hits(path), hits, path)

    def test_nothing_is_overridden_that_is_not_named(self):
        self.serve("[rule]", "path = /some/*", "lifetime = 1h",
                   "[rule]", "path = /all/*", "lifetime = 1h", "override = no-store",
                   "override = private", "override = set-cookie", "override = no-cache")
        for fields in ([("Cache-Control", "no-store")], [("Cache-Control", "private")],
                       [("Cache-Control", "no-cache")], [("Set-Cookie", "a=1")]):
            self.member_of.fields = fields
            for path, hits in (("/some/", False), ("/all/", True)):
                path += fields[0][1]
                self.get(path)
                self.assertEqual(self.hits(path), hits, path)

    def test_fields(self):
        self.serve("[rule]", "path = /x", "remove-response-field = X-Powered-By",
                   "set-response-field = Cache-Control: no-cache; x, y", "lifetime = 1h",
                   fields=[("X-Powered-By", "php"), ("Cache-Control", "max-age=5")])
        for _ in range(2):
            response = self.get("/x")
            self.assertIsNone(response.field("x-powered-by"))
            self.assertEqual(response.field("cache-control"), "no-cache; x, y")
        self.assertTrue(self.hits("/x"))
        self.assertEqual(self.get("/y").field("x-powered-by"), "php")

    def test_fields_that_control_are_the_origins(self):
        self.serve("[rule]", "path = *", "remove-response-field = Cache-Control",
                   "default-lifetime = 1h", fields=[("Cache-Control", "private")])
        self.assertIsNone(self.get("/x").field("cache-control"))
        self.assertFalse(self.hits("/x"))

    def test_cookies(self):
        self.serve("[rule]", "path = *", "remove-response-cookie = lang*",
                   fields=[("Cache-Control", "max-age=60"), ("Set-Cookie", "lang=de; Path=/")])
        self.assertIsNone(self.get("/x").field("set-cookie"))
        self.assertTrue(self.hits("/x"))
        self.member_of.fields.append(("Set-Cookie", "sid=1"))
        self.assertEqual(self.get("/y").field("set-cookie"), "sid=1")
        self.assertFalse(self.hits("/y"))

    def test_an_overridden_cookie_is_not_for_others(self):
        self.serve("[rule]", "path = /default", "default-lifetime = 1h", "override = set-cookie",
                   "[rule]", "path = *", "lifetime = 1h", "override = set-cookie")
        for path in ("/x", "/default"):
            for n in range(3):
                self.member_of.fields = [("Set-Cookie", f"sid={n}"), ("ETag", '"1"')]
                response = self.get(path)
                self.assertIsNone(response.field("set-cookie"))
            self.assertIn("; hit", response.field("cache-status"))
        self.member_of.status = 304
        response = self.get("/x", "Cache-Control: no-cache")
        self.assertIn("fwd-status=304; stored", response.field("cache-status"))
        self.assertIsNone(response.field("set-cookie"))
        self.assertIsNone(self.get("/x").field("set-cookie"))
        # It stays where the response is one client's for another reason.
        self.member_of.status = 200
        self.member_of.fields = [("Set-Cookie", "sid=9"), ("Cache-Control", "private")]
        self.assertEqual(self.get("/y").field("set-cookie"), "sid=9")
        self.assertEqual(self.get("/z", "Content-Length: 0", method="POST").field("set-cookie"),
                         "sid=9")

    def test_edits_outlast_a_validation(self):
        self.serve("purge-net = 127.0.0.0/8", "[rule]", "path = *", "lifetime = 0",
                   "remove-response-field = Cache-Tag", "remove-response-cookie = c",
                   "set-response-field = A: b",
                   fields=[("ETag", '"1"'), ("Cache-Tag", "t"), ("Set-Cookie", "c=1")])
        self.get("/x")
        self.member_of.status = 304
        self.member_of.fields = [("ETag", '"1"'), ("Set-Cookie", "c=2"), ("A", "c")]
        response = self.get("/x")
        self.assertEqual(response.field("cache-status"),
                         "sunproxy; fwd=stale; fwd-status=304; stored; ttl=0")
        self.assertEqual((response.field("a"), response.field("set-cookie")), ("b", None))
        self.assertIsNone(response.field("cache-tag"))
        self.assertEqual(self.get("/x", "Cache-Tag: t", method="PURGE").status, 200)

    def test_grace(self):
        self.serve("[rule]", "path = *", "lifetime = 0", "grace = 1h",
                   fields=[("Cache-Control", "max-age=60, must-revalidate")])
        self.get("/x")
        self.member_of.status = 503
        response = self.get("/x")
        self.assertEqual(response.status, 200)

    def test_users_do_not_get_what_is_for_visitors(self):
        """Nor the other way round, whatever is stored first."""
        self.serve("[rule]", "path = *", "default-lifetime = 1h", "grace = 1h")
        self.get("/x")
        for _ in range(2):
            self.assertFalse(self.hits("/x", "Cookie: sid=1"))
        self.get("/y", "Cookie: sid=1")
        self.assertFalse(self.hits("/y"))
        self.assertTrue(self.hits("/y"))

    def test_what_the_origin_says_counts_after_a_validation(self):
        """Whatever Cache-Control clients get instead."""
        self.serve("[rule]", "path = /set", "set-response-field = Cache-Control: public, max-age=9",
                   "[rule]", "path = /remove", "remove-response-field = Cache-Control",
                   "default-lifetime = 1h", "[rule]", "path = /browser", "lifetime = 1h",
                   "set-response-field = Cache-Control: no-store")
        for path in ("/set", "/remove"):
            self.member_of.status = 200
            self.member_of.fields = [("ETag", '"1"'), ("Cache-Control", "no-cache")]
            self.get(path)
            self.member_of.status, self.member_of.fields = 304, [("ETag", '"1"')]
            for _ in range(3):
                self.assertIn("fwd-status=304", self.state(path))
            self.assertFalse(self.hits(path, "Cookie: user=1"))
            self.assertIsNone(self.get(path).field("cache-origin-control"))
        self.member_of.status = 200
        self.member_of.fields = [("ETag", '"1"'), ("Cache-Control", "max-age=60")]
        self.get("/browser")
        self.assertEqual(self.get("/browser").field("cache-control"), "no-store")
        self.member_of.status, self.member_of.fields = 304, [("ETag", '"1"')]
        self.assertIn("stored", self.state("/browser", "Cache-Control: max-age=0"))
        self.assertTrue(self.hits("/browser"))

    def test_an_origin_does_not_say_what_it_has_said(self):
        """The lines that keep the origin's control are no way into a response."""
        self.serve("[rule]", "path = /ruled", "set-response-field = Cache-Control: max-age=1")
        for path in ("/plain", "/ruled"):
            self.member_of.status = 200
            self.member_of.fields = [("Cache-Control", "max-age=0"), ("ETag", '"1"'),
                                     ("Cache-Origin-Control", "Content-Length: 5"),
                                     ("Cache-Origin-Control", "X-Forged: yes")]
            self.get(path)
            self.member_of.status = 304
            for _ in range(2):
                response = self.get(path)
                self.assertEqual(response.status, 200)
                for name in ("x-forged", "cache-origin-control"):
                    self.assertIsNone(response.field(name))
                self.assertTrue(response.whole)
        got = self.sunproxy("get", "-i", "http://site.test/ruled", daemon=self.d, expect=None)
        self.assertNotIn(b"Cache-Origin-Control", got.stdout)

    def test_answers_over_rpc_have_their_own_fields(self):
        """Two that are answered in one turn, with fields that are sent from where they are."""
        self.serve("[rule]", "set-response-field = Cache-Control: max-age=1")
        pages = {name: [("Cache-Control", "max-age=600"), ("X-Name", name), ("X-Long", name * 400)]
                 for name in ("one", "two!")}
        for name, self.member_of.fields in pages.items():
            self.get(f"/{name}")
        with rpc.Connection(self.d.address) as c:
            c.send(b"".join(rpc.record(rpc.call(procedure=rpc.V2_GET, arguments=rpc.get_arguments(
                f"http://site.test/{name}"))) for name in pages))
            for name in pages:
                headers = rpc.Page(c.receive().results).headers
                self.assertIn(f"X-Name: {name}\r\nX-Long: {name * 400}\r\n", headers)
                self.assertNotIn("Origin-Control", headers)

    def test_what_passes_is_one_clients(self):
        self.serve("[rule]", "cookie = session", "pass = yes")
        self.member_of.fields = [("Cache-Control", "max-age=600"), ("Content-Location", "/x")]
        self.get("/x", "Cookie: session=1", "Content-Length: 0", method="POST")
        self.assertFalse(self.hits("/x"))

    def test_terms_for_users_stay(self):
        """No lifetime and no grace of a rule extends what others may have of a user's page."""
        self.serve("[rule]", "path = /grace/*", "grace = 1h",
                   "[rule]", "path = /life/*", "lifetime = 1h")
        terms = {"Authorization: Basic YTpi": "max-age=1, must-revalidate", "Cookie: a=1": "max-age=1"}
        for n, (user, control) in enumerate(terms.items()):
            self.member_of.fields = [("Cache-Control", control)]
            for folder in ("grace", "life"):
                for asker in range(2):
                    self.get(f"/{folder}/{n}/{asker}", user)
        time.sleep(1.1)
        for n, user in enumerate(terms):
            for folder in ("grace", "life"):
                for asker, line in enumerate(((), (user,))):
                    self.assertNotIn("hit", self.state(f"/{folder}/{n}/{asker}", *line),
                                     (folder, user))
        # A lifetime of zero is one that is stated.
        self.member_of.fields = [("Cache-Control", "public, max-age=0")]
        self.get("/life/zero", "Cookie: a=1")
        self.assertFalse(self.hits("/life/zero", "Cookie: a=2"))
        # Nor is a user given a visitor's page for longer than the origin says.
        for path in ("/grace/v", "/life/v"):
            self.member_of.fields = [("Cache-Control", "max-age=1")]
            self.get(path)
        time.sleep(1.1)
        for path in ("/grace/v", "/life/v"):
            self.assertNotIn("hit", self.state(path, "Cookie: a=2"), path)
        self.assertTrue(self.hits("/life/v"))

    def test_an_override_is_its_rules_own(self):
        self.serve("[rule]", "path = /1", "default-lifetime = 1h", "override = private",
                   "[rule]", "path = /2", "lifetime = 1h", "[rule]", "path = /2", "lifetime = 1s",
                   "override = private")
        self.member_of.fields = [("Cache-Control", "private, max-age=60")]
        for path in ("/1", "/2"):
            self.get(path)
            self.assertFalse(self.hits(path), path)
        self.member_of.fields = [("Cache-Control", "private")]
        self.get("/1")
        self.assertTrue(self.hits("/1"))

    def test_edits_that_the_key_lacks(self):
        """A request passes whose response another request for the key would not have got."""
        self.serve("[rule]", "parameter = preview", "set-field = X-Preview: yes",
                   "[rule]", "remove-parameter = preview",
                   "[rule]", "path = /m/*", "key-field = X-Device",
                   "[rule]", "field = User-Agent: *mobile*", "set-field = X-Device: mobile")
        self.member_of.fields = [("Cache-Control", "max-age=60")]
        self.assertIn("fwd=bypass", self.state("/a?preview=1"))
        self.assertFalse(self.hits("/a"))
        self.assertIn("fwd=bypass", self.state("/b", "User-Agent: mobile"))
        self.assertFalse(self.hits("/b"))
        self.assertIn("stored", self.state("/m/b", "User-Agent: mobile"))
        self.assertFalse(self.hits("/m/b"))

    def test_a_response_to_post_is_not_kept_as_rules_have_made_it(self):
        rules = (("method = POST", "set-field = X-Role: admin"),
                 ("method = GET", "remove-response-field = X-Secret"),
                 ("method = POST", "set-response-field = A: b"))
        self.serve(*(line for number, rule in enumerate(rules)
                     for line in ("[rule]", f"path = /{number}", *rule)))
        for number, kept in enumerate((False, False, False, True)):
            path = f"/{number}"
            self.member_of.fields = [("Cache-Control", "max-age=60"), ("Content-Location", path),
                                     ("X-Secret", "1")]
            self.get(path, "Content-Length: 0", method="POST")
            self.assertEqual(self.hits(path), kept, path)

    def test_a_cookie_that_is_overridden(self):
        self.serve("[rule]", "path = *", "default-lifetime = 1h", "override = cookie")
        self.get("/x", "Cookie: sid=1")
        self.assertTrue(self.hits("/x", "Cookie: sid=2"))
        self.assertFalse(self.hits("/x", "Authorization: Basic YTpi"))


class AccessTest(RuleCase):
    """What clients of a forward proxy may fetch, and where tunnels may lead."""

    seconds = 10

    def serve(self, *lines):
        self.list = self.dir / "list"
        self.list.write_text("# games\nplay.test\n=127.0.0.1\n")
        self.member_of = self.members[0]
        self.port = self.member_of.server_address[1]
        self.start("allow-net = 127.0.0.0/8", "allow-port = any", "connect-port = any", *lines)

    def connect(self, port):
        c = Connection(self.address)
        self.addCleanup(c.close)
        c.send(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: x\r\n\r\n")
        return c.receive(True).status

    def status(self, url):
        return self.ask(url, host="x").status

    def test_lists_of_hosts(self):
        rule = ("[rule]", f"host-list = {self.dir / 'list'}", "deny = 403")
        self.serve(*rule)
        url = f"http://127.0.0.1:{self.port}/x"
        self.assertEqual(self.status(url), 403)
        self.assertEqual(self.status("http://www.play.test/"), 403)
        self.assertEqual(self.connect(self.port), 403)
        options = ("allow-net = 127.0.0.0/8", "allow-port = any", "connect-port = any")
        self.list.write_text("other.test\n")
        self.reload(*options, *rule)
        self.assertEqual(self.status(url), 200)
        self.assertEqual(self.connect(self.port), 200)
        self.list.write_text("other.test\nanother")
        self.assertIn("list:2: the last line has no end", self.refused(*options, *rule))
        self.assertEqual(self.status(url), 200)

    def test_networks_ports_and_times(self):
        self.serve("[rule]", "network = 10.0.0.0/8", "deny = 403",
                   "[rule]", "time = 00:00-00:00", "deny = 403",
                   "[rule]", "method = CONNECT", "port = 1-1023", "deny = 403")
        url = f"http://127.0.0.1:{self.port}/x"
        self.assertEqual(self.status(url), 200)
        self.assertEqual(self.connect(443), 403)
        self.assertEqual(self.connect(self.port), 200)
        self.reload("allow-net = 127.0.0.0/8", "allow-port = any", "connect-port = any", "[rule]",
                    "network = 127.0.0.0/8", "time = mon-sun 00:00-24:00", "deny = 429")
        self.assertEqual(self.status(url), 429)
        self.assertEqual(self.connect(self.port), 429)


class ErrorPageTest(RuleCase):
    sandboxed = True
    seconds = 10

    def setUp(self):
        super().setUp()
        self.page = self.dir / "error.html"
        self.text = "<p>Sorry</p>" * 3000
        self.page.write_text(self.text)
        self.rule = ("[rule]", "path = /x*", "status = 404", "status = 5xx", "status = 403",
                     f"error-page = {self.page}")

    def is_own(self, response, *statuses):
        self.assertIn(response.status, statuses)
        own = response.field("content-type") == "text/html; charset=utf-8"
        if own:
            self.assertEqual(response.body.decode(), self.text)
        return own

    def test_errors_of_the_origin(self):
        self.serve(*self.rule)
        self.member_of.status = 404
        self.member_of.fields = [("Retry-After", "7"), ("Cache-Control", "max-age=60")]
        for _ in range(2):  # from the cache, too
            response = self.get("/x")
            self.assertTrue(self.is_own(response, 404))
            self.assertEqual(response.field("retry-after"), "7")
        self.assertEqual(len(self.member_of.heads), 1)
        self.assertFalse(self.is_own(self.get("/y"), 404))
        head = self.get("/x", method="HEAD")
        self.assertEqual(head.field("content-length"), str(len(self.text)))
        self.member_of.status = 410
        self.assertFalse(self.is_own(self.get("/x2"), 410))
        # The connection goes on.
        self.member_of.status = 200
        self.assertEqual(self.get("/x3").status, 200)

    def test_errors_of_the_daemon(self):
        self.serve(*self.rule, "[rule]", "path = /xd", "deny = 403")
        self.assertTrue(self.is_own(self.get("/xd"), 403))
        self.member_of.shutdown()
        self.member_of.server_close()
        self.reload(f"origin = /=http://127.0.0.1:{harness.free_port()}", *self.rule)
        self.assertTrue(self.is_own(self.get("/x"), 502))
        self.assertFalse(self.is_own(self.get("/y"), 502, 503))

    def test_ranges_and_conditions(self):
        self.serve("[rule]", "status = 416", "status = 412", f"error-page = {self.page}")
        self.member_of.fields = [("Cache-Control", "max-age=60"), ("Accept-Ranges", "bytes"),
                                 ("Access-Control-Allow-Origin", "*")]
        self.get("/x")
        response = self.get("/x", "Range: bytes=1000-")
        self.assertTrue(self.is_own(response, 416))
        self.assertRegex(response.field("content-range"), r"^bytes \*/\d+$")
        self.assertEqual(response.field("access-control-allow-origin"), "*")
        self.assertEqual(self.get("/x").status, 200)

    def test_tunnels(self):
        self.start("allow-net = 127.0.0.0/8", "connect-port = any", "[rule]", "host = 127.0.0.1", "status = 5xx",
                   f"error-page = {self.page}")
        self.c.send(f"CONNECT 127.0.0.1:{harness.free_port()} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        self.assertTrue(self.is_own(self.c.receive(), 502, 503, 504))

    def test_fields_that_stay(self):
        self.serve("[rule]", "status = 401", f"error-page = {self.page}")
        self.member_of.status = 401
        for size in (500, 1500):
            self.member_of.fields = [("Retry-After", "7"), ("WWW-Authenticate", "a" * size)]
            response = self.get("/x")
            self.assertEqual(response.field("www-authenticate"), "a" * size)
            self.assertEqual(self.is_own(response, 401), size == 500)

    def test_a_file_that_changes(self):
        self.serve(*self.rule)
        self.member_of.status = 500
        self.assertTrue(self.is_own(self.get("/x"), 500))
        self.page.write_text("<p>Another page</p>")
        self.assertTrue(self.is_own(self.get("/x"), 500))
        self.text = "<p>Another page</p>"
        self.assertIn("changed: rule", self.reload(f"origin = /={self.member_of.url}", *self.rule))
        self.assertTrue(self.is_own(self.get("/x"), 500))
        self.page.unlink()
        said = self.refused(f"origin = /={self.member_of.url}", *self.rule)
        self.assertIn(f":2: rule: cannot read {self.page}", said)


class ReloadTest(RuleCase):
    """A reload outdates the pages that changed rules concern, and no others."""

    seconds = 10

    def again(self, *lines):
        return self.reload(f"origin = /={self.member_of.url}", *lines)

    def test_what_is_outdated(self):
        first = ("[rule]", "path = /a/*", "lifetime = 1h")
        self.members[0].fields = [("Cache-Control", "max-age=600"), ("ETag", '"1"')]
        self.serve(*first)
        for path in ("/a/1", "/b/1"):
            self.get(path)
            self.assertTrue(self.hits(path))
        # A rule that passes requests changes no page.
        self.again(*first, "[rule]", "path = /b/*", "cookie = user", "pass = yes")
        for path in ("/a/1", "/b/1"):
            self.assertTrue(self.hits(path))
        # A page with other fields is fetched again, and can still be validated.
        self.again("[rule]", "path = /a/*", "lifetime = 2h")
        self.assertTrue(self.hits("/b/1"))
        self.member_of.status = 304
        self.assertIn("fwd-status=304", self.state("/a/1"))
        self.member_of.status = 200
        # One with another key is another page.
        self.again("[rule]", "path = /a/*", "lifetime = 2h", "[rule]", "path = /b/*",
                   "key-field = X-Device")
        self.assertTrue(self.hits("/a/1"))
        self.assertIn("fwd=uri-miss", self.state("/b/1", "X-Device: 1"))
        self.assertFalse(self.hits("/b/1", "X-Device: 2"))
        self.again()
        self.assertFalse(self.hits("/a/1"))
        self.assertFalse(self.hits("/b/1"))

    def test_edits_go_with_their_rule(self):
        """A 304 has neither the fields that a rule has removed nor those in place of set ones."""
        origin = ("purge-net = 127.0.0.0/8",)
        self.members[0].fields = [("Cache-Control", "max-age=600"), ("ETag", '"1"'),
                                  ("Content-Security-Policy", "a"), ("Cache-Tag", "t")]
        self.serve(*origin, "[rule]", "set-response-field = Access-Control-Allow-Origin: *",
                   "remove-response-field = Content-Security-Policy",
                   "remove-response-field = Cache-Tag")
        response = self.get("/a")
        self.assertEqual(response.field("access-control-allow-origin"), "*")
        self.assertIsNone(response.field("content-security-policy"))
        self.again(*origin)
        self.member_of.confirming = [("ETag", '"1"')]
        response = self.get("/a")
        self.assertIsNone(response.field("access-control-allow-origin"))
        self.assertEqual(response.field("content-security-policy"), "a")
        self.assertEqual(self.get("/a", "Cache-Tag: t", method="PURGE").status, 200)
        self.assertFalse(self.hits("/a"))

    def test_what_an_override_let_in_before_another_rule(self):
        rule = ("[rule]", "path = *", "lifetime = 1h", "override = cookie")
        self.members[0].fields = [("ETag", '"1"')]
        self.serve(*rule)
        self.get("/x", "Cookie: user=1")
        self.again("[rule]", "lifetime = 30s", *rule)
        self.assertIn("fwd=uri-miss", self.state("/x"))

    def test_lists_of_hosts_that_come_change_and_go(self):
        hosts = self.dir / "hosts"
        hosts.write_text("site.test\n")
        rule = ("[rule]", f"host-list = {hosts}", "lifetime = 1h", "override = private")
        self.members[0].fields = [("Cache-Control", "private")]
        self.serve()
        self.get("/x")
        self.again(*rule)
        self.get("/x")
        self.assertTrue(self.hits("/x"))
        hosts.write_text("other.test\n")
        self.again(*rule)
        self.assertFalse(self.hits("/x"))
        hosts.unlink()
        os.mkfifo(hosts)
        self.assertIn("cannot read", self.refused(f"origin = /={self.member_of.url}", *rule))
        self.again()
        self.assertFalse(self.hits("/x"))

    def test_what_an_override_let_in(self):
        rule = ("[rule]", "path = *", "lifetime = 1h", "override = private", "override = cookie")
        self.members[0].fields = [("Cache-Control", "private"), ("ETag", '"1"')]
        self.serve(*rule)
        self.get("/x", "Cookie: user=1")
        self.assertTrue(self.hits("/x"))
        self.again()
        self.assertIn("fwd=uri-miss", self.state("/x"))
        self.get("/y", "Cookie: user=1")
        self.assertNotIn("hit", self.state("/y", "Cache-Control: max-stale"))

    def test_rules_that_are_refused_change_nothing(self):
        self.serve("[rule]", "path = /a/*", "lifetime = 1h")
        self.get("/a/1")
        self.refused(f"origin = /={self.member_of.url}", "[rule]", "path = /a/*", "lifetime = x")
        self.assertTrue(self.hits("/a/1"))


class RpcTest(RuleCase):
    """Requests over RPC have the same rules."""

    seconds = 10

    def fetch(self, path, expect=0):
        done = self.sunproxy("get", "--json", f"http://site.test{path}", daemon=self.d, expect=None)
        self.assertEqual(done.returncode != 0, bool(expect), done.stderr)
        return json.loads(done.stdout)

    def test_rules(self):
        self.members[0].fields = [("Cache-Control", "max-age=600"), ("X-Powered-By", "php")]
        self.serve("[rule]", "remove-parameter = utm_*", "set-field = X-Via: rule",
                   "remove-field = Accept", "remove-response-field = X-Powered-By",
                   "[rule]", "path = /pass", "pass = yes",
                   "[rule]", "path = /deny", "deny = 403",
                   "[rule]", "path = /old", "redirect = /new",
                   "[rule]", "path = /rate", "rate = 1:1")
        self.assertEqual(self.fetch("/x?utm_source=1&a=1")["source"], "miss")
        self.assertEqual(self.member_of.heads[-1][1], "/x?a=1")
        self.assertEqual(self.sent()["X-Via"], "rule")
        self.assertNotIn("Accept", self.sent())
        # One key, whatever the protocol.
        self.assertTrue(self.hits("/x?a=1&utm_medium=2"))
        self.assertIsNone(self.get("/x?a=1").field("x-powered-by"))
        self.assertEqual(self.fetch("/pass")["source"], "bypass")
        self.assertEqual(self.fetch("/x")["source"], "miss")
        for path, error in (("/deny", "this server refuses such requests"),
                            ("/old", "the resource is at another URL: /new"), ("/rate", None),
                            ("/rate?2", "there are too many such requests; try again")):
            self.assertEqual(self.fetch(path, error).get("error"), error, path)
        self.sunproxy("purge", "http://site.test/x?utm_source=3&a=1", daemon=self.d)
        self.assertFalse(self.hits("/x?a=1"))


class FileTest(RuleCase):
    seconds = 5

    def check(self, *lines):
        self.write(*lines)
        done = self.run_program([harness.SUNPROXYD, "--config", self.file, "--check-config"])
        return done.returncode, done.stderr.decode()

    def test_errors_have_their_lines(self):
        status, said = self.check("[rule]", "path = /a", "pas = yes", "lifetime = long",
                                  "[rule]", "path = /b", "[rule]", "status = 404", "pass = yes")
        self.assertEqual(status, 78)
        for text in (":3: pas is no key of [rule]; did you mean pass?",
                     ':4: lifetime: "long" is not a time', ":5: rule: the rule has no action",
                     ":7: rule: a condition on the response"):
            self.assertIn(text, said)

    def test_the_configuration_is_printed_and_read_back(self):
        self.write("[rule]", 'set-response-field = A: b; \\c "d" # e', "path = /a,b")
        printed = self.run_program([harness.SUNPROXYD, "--config", self.file, "--check-config"])
        self.assertEqual(printed.returncode, 0, printed.stderr)
        line = [text for text in printed.stdout.decode().splitlines() if text.startswith("rule")]
        self.write(*line)
        again = self.run_program([harness.SUNPROXYD, "--config", self.file, "--check-config"])
        self.assertEqual(again.stdout, printed.stdout)

    def test_a_rule_of_the_command_line(self):
        self.members[0].fields = []
        self.d = self.daemon("--http", "127.0.0.1:0", "--origin", f"/={self.members[0].url}",
                             "--rule", "path=/x; deny=410")
        self.address = harness.wait_until(lambda: http_address(self.d), what="the HTTP front")
        self.c = Connection(self.address)
        self.addCleanup(self.c.close)
        self.assertEqual(self.get("/x").status, 410)


del RuleCase, ReloadCase
