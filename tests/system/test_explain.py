"""sunproxy explain: what the daemon would do with a request, and why, without doing it."""

from reload_case import ReloadCase


class ExplainCase(ReloadCase):
    seconds = 10

    def serve(self, *lines, fields=()):
        self.member_of = self.members[0]
        self.member_of.fields = list(fields)
        self.start(f"origin = site.test/={self.member_of.url}", "purge-net = 127.0.0.0/8", *lines)

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

    def test_others_are_refused(self):
        self.serve()
        done = self.sunproxy("explain", "http://other.test/", daemon=self.d, expect=64)
        self.assertIn("does not serve that host", done.stderr.decode())
        done = self.sunproxy("explain", "http://site.test/", daemon=self.d, tcp=True, expect=None)
        self.assertNotEqual(done.returncode, 0)

    def test_over_http(self):
        self.serve(fields=[("Cache-Control", "no-store")])
        self.get("/x")
        response = self.get("/x", "Explain-Last: 1", method="EXPLAIN")
        self.assertEqual(response.status, 200)
        text = response.body.decode()
        self.assertIn("request: GET http://site.test/x\n", text)
        self.assertIn("answer: bypass\n", text)
        self.assertIn("no-store: the response has no-store (RFC 9111 section 5.2.2.5)", text)
        response = self.get("/x", "Explain-Method: POST", method="EXPLAIN")
        self.assertIn("reason: method: ", response.body.decode())
        self.assertEqual(len(self.member_of.heads), 1)
        self.reload(f"origin = site.test/={self.member_of.url}")
        self.assertEqual(self.get("/x", method="EXPLAIN").status, 403)


del ExplainCase, ReloadCase
