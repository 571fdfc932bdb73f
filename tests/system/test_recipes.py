"""The configurations of packaging/recipes: each is accepted, and does to requests what docs/RULES.md
says. What the applications themselves make of them is seen by `make app-hits`."""

import re

import harness
from reload_case import ReloadCase

RECIPES = harness.TOP / "packaging/recipes"
GA = ("Cookie: _ga=1", "Cookie: _ga=2; _gid=3")
TOKEN = ("Authorization: Bearer a", "Authorization: Bearer b")


class RecipeCase(ReloadCase):
    def recipe(self, name, fields=()):
        """Starts the daemon with it, before a member of this test in place of the origin that it names."""
        text = (RECIPES / f"{name}.conf").read_text()
        self.origin = self.members[0]
        self.origin.fields = list(fields)
        self.start(re.sub(r"http://[a-z0-9.]+(:\d+)?", self.origin.url, text))

    def ask(self, path, *lines, method="GET"):
        self.c.send(f"{method} {path} HTTP/1.1\r\nHost: site.test\r\n"
                    + "".join(f"{line}\r\n" for line in lines)
                    + ("Content-Length: 0\r\n" if method != "GET" else "") + "\r\n")
        return self.c.receive()

    def hits(self, path, *lines):
        return self.ask(path, *lines).field("cache-status").startswith("sunproxy; hit")

    def check_hit(self, path, first=(), second=(), third=()):
        """The first request is no hit, the next two are."""
        self.assertFalse(self.hits(path, *first), path)
        self.assertTrue(self.hits(path, *second), path)
        self.assertTrue(self.hits(path, *third), path)

    def check_miss(self, path, *lines):
        for _ in range(3):
            self.assertFalse(self.hits(path, *lines), path)

    def sent(self):
        """Path and fields of the last request that the member has seen."""
        return self.origin.heads[-1][1:]


class SitesTest(RecipeCase):
    seconds = 10

    def test_wordpress(self):
        self.recipe("wordpress")
        self.check_hit("/", GA[:1], GA[1:])
        self.assertTrue(self.hits("/?utm_source=a&fbclid=b"))
        self.assertTrue(self.hits("/", "Cache-Control: no-cache", "Pragma: no-cache"))
        self.check_hit("/?s=words", GA[:1], GA[1:])
        for cookie in ("wordpress_logged_in_1=a", "wp-postpass_1=a", "comment_author_1=a"):
            self.check_miss("/", f"Cookie: {cookie}; _ga=1")
            self.assertEqual(self.sent()[1]["Cookie"], cookie)
        self.check_miss("/wp-admin/x")
        self.check_miss("/wp-login.php")
        self.check_hit("/wp-content/a.css", ["Cookie: wordpress_logged_in_1=a"])
        self.assertTrue(self.hits("/"))
        self.ask("/wp-json/wp/v2/posts", "Cookie: wordpress_logged_in_1=a", method="POST")
        self.assertFalse(self.hits("/"))

    def test_mediawiki(self):
        self.recipe("mediawiki", [("Cache-Control", "s-maxage=60, must-revalidate, max-age=0"),
                                  ("Vary", "Accept-Encoding, Cookie"), ("Content-Type", "text/html")])
        path = "/index.php/Main_Page"
        self.check_hit(path, GA[:1], GA[1:], ["Cookie: wikiUserID=1; wikiUserName=Alice"])
        self.assertEqual(self.ask(path).field("cache-control"), "private, max-age=0, must-revalidate")
        self.assertFalse(self.hits(path, "Cookie: wiki_session=a; _ga=1"))
        self.assertFalse(self.hits(path, "Cookie: wikiToken=a; wikiUserID=1; _ga=1"))
        self.assertEqual(self.sent()[1]["Cookie"], "wikiToken=a; wikiUserID=1")
        self.assertEqual(self.ask(path, method="PURGE").status, 200)
        self.assertFalse(self.hits(path))

    def test_django(self):
        self.recipe("django", [("Cache-Control", "max-age=60"), ("Vary", "Cookie")])
        self.check_hit("/", GA[:1], GA[1:])
        self.assertFalse(self.hits("/", "Cookie: sessionid=a; _ga=1"))
        self.assertFalse(self.hits("/", "Cookie: csrftoken=a"))
        self.origin.fields = []
        self.check_hit("/static/a.css", ["Cookie: sessionid=a"])
        self.check_miss("/undated/")

    def test_dokuwiki(self):
        self.recipe("dokuwiki", [("Cache-Control", "max-age=60"), ("Vary", "Cookie")])
        self.check_hit("/lib/exe/css.php?t=a", ["Cookie: DokuWiki=a; DW1=b"], GA[1:])
        self.check_hit("/lib/exe/fetch.php?media=a", GA[:1], GA[1:])
        self.assertFalse(self.hits("/lib/exe/fetch.php?media=a", "Cookie: DokuWiki=a; DW1=b"))
        self.origin.fields += [("Set-Cookie", "DokuWiki=new"), ("Set-Cookie", "DW1=deleted")]
        self.check_hit("/lib/exe/fetch.php?media=b", GA[:1], GA[1:], ["Cookie: DokuWiki=a"])
        self.ask("/doku.php?id=start", "Cookie: DokuWiki=a; _ga=1")
        self.assertEqual(self.sent()[1]["Cookie"], "DokuWiki=a")
        self.ask("/lib/exe/fetch.php?media=c", "Cookie: DokuWiki=a; _ga=1; DW1=b")
        self.assertEqual(self.sent()[1]["Cookie"], "DokuWiki=a; DW1=b")
        self.origin.fields = [("Cache-Control", "no-store, no-cache"), ("Set-Cookie", "DW1=deleted")]
        self.check_miss("/doku.php?id=start")


class ServicesTest(RecipeCase):
    seconds = 10

    def test_rest(self):
        self.recipe("rest")
        self.check_hit("/api/users?b=2&a=1")
        self.assertTrue(self.hits("/api/users?a=1&b=2"))
        self.check_hit("/api/customers/7")
        self.ask("/api/users/7", method="PUT")
        self.assertFalse(self.hits("/api/users?a=1&b=2"))
        self.assertTrue(self.hits("/api/customers/7"))
        self.ask("/api/orders", method="POST")
        self.assertFalse(self.hits("/api/customers/7"))
        self.ask("/api/search?q=a")
        self.c.send("GET /api/search?q=a HTTP/1.1\r\nHost: site.test\r\n\r\n" * 400)
        self.assertIn(429, [self.c.receive().status for _ in range(400)])

    def test_static(self):
        self.recipe("static", [("Set-Cookie", "balancer=1")])
        self.check_hit("/assets/a.js", ["Cookie: sid=1"], ["Cookie: sid=2"])
        self.assertEqual(self.ask("/assets/a.js").field("cache-control"),
                         "public, max-age=31536000, immutable")
        self.check_hit("/page.html?x=1&v=2", [], GA[:1])
        self.assertTrue(self.hits("/page.html?v=2&y=3"))
        self.assertFalse(self.hits("/page.html?v=3"))
        self.assertEqual([self.ask(path).status for path in ("/.git/config", "/a/.env")], [404, 404])
        response = self.ask("/favicon.png")
        self.assertEqual((response.status, response.field("location")), (301, "/assets/favicon.png"))

    def test_images(self):
        self.recipe("images", [("Content-Type", "image/webp")])
        chrome = "Accept: image/avif,image/webp,image/apng,*/*;q=0.8"
        firefox = "Accept: image/avif,image/webp,*/*"
        safari = "Accept: image/webp,image/png,*/*;q=0.8"
        path = "/images/a.jpg?w=100&h=50"
        self.check_hit(path, [chrome], [firefox], ["Cookie: sid=1", firefox])
        self.assertEqual(self.sent()[1]["Accept"], "image/avif, image/webp")
        self.assertTrue(self.hits("/images/a.jpg?h=50&utm_source=a&w=100", chrome))
        self.check_hit(path, [safari], ["Accept: image/webp"], [safari])
        self.assertEqual(self.sent()[1]["Accept"], "image/webp")
        self.check_hit(path, [], ["Accept: */*"], ["Accept: image/png"])
        self.assertEqual(self.sent()[1]["Accept"], "image/jpeg, image/png")
        self.assertFalse(self.hits("/images/a.jpg?w=200&h=50", chrome))

    def test_keys_of_an_api(self):
        self.recipe("api-keys")
        self.check_hit("/v1/items", TOKEN[:1], TOKEN[:1], TOKEN[:1])
        self.check_hit("/v1/items", TOKEN[1:], TOKEN[1:], TOKEN[1:])
        self.check_hit("/v1/items", ["X-API-Key: c"], ["X-API-Key: c"], ["X-API-Key: c"])
        self.assertFalse(self.hits("/v1/items"))
        self.check_miss("/v1/account", TOKEN[0])
        # A session is no key.
        self.check_miss("/v1/items", TOKEN[0], "Cookie: sid=1")


class MirrorsTest(RecipeCase):
    seconds = 10

    def test_pip(self):
        self.recipe("pip")
        html, json = "Accept: text/html", "Accept: application/vnd.pypi.simple.v1+json"
        self.check_hit("/root/pypi/+f/1/a-1-py3-none-any.whl")
        self.check_hit("/simple/a/", [html], [html], [html, "Cache-Control: max-age=0"])
        self.check_hit("/simple/a/", [json], [json], [json])
        self.check_miss("/simple/b/", html, TOKEN[0])

    def test_npm(self):
        self.recipe("npm")
        self.check_hit("/a/-/a-1.0.0.tgz", GA[:1], GA[1:])
        self.check_miss("/a/-/a-1.0.0.tgz", TOKEN[0])
        self.check_hit("/a", ["Accept: application/json"], ["Accept: application/json"],
                       ["Accept: application/json"])
        self.ask("/a", *TOKEN[:1], method="PUT")
        self.assertFalse(self.hits("/a", "Accept: application/json"))
        self.check_miss("/-/whoami")

    def test_apt(self):
        self.recipe("apt", [("Cache-Control", "max-age=120"), ("ETag", '"a"')])
        self.check_hit("/debian/pool/main/a/a_1_all.deb")
        self.check_hit("/debian/dists/stable/main/binary-amd64/by-hash/SHA256/abc", [],
                       ["Cache-Control: max-age=0"])
        self.assertEqual(self.sent()[0], "/debian/dists/stable/main/binary-amd64/by-hash/SHA256/abc")
        self.check_miss("/debian/dists/stable/InRelease")

    def test_registry(self):
        self.recipe("registry")
        blob = "/v2/library/a/blobs/sha256:" + "0" * 64
        list_, one = "Accept: application/vnd.oci.image.index.v1+json", "Accept: application/json"
        self.check_hit(blob)
        self.check_miss(blob, TOKEN[0])
        self.check_hit("/v2/library/a/manifests/1", [list_], [list_], [list_])
        self.check_hit("/v2/library/a/manifests/1", [one], [one], [one])
        self.ask("/v2/library/a/manifests/1", method="PUT")
        self.assertFalse(self.hits("/v2/library/a/manifests/1", one))
        self.check_miss("/v2/")


class FilesTest(harness.SystemTest):
    """The files themselves, and what docs/RULES.md says of them."""

    needs = (harness.SUNPROXYD,)
    seconds = 10

    def setUp(self):
        super().setUp()
        self.page = (harness.TOP / "docs/RULES.md").read_text()

    def test_each_is_accepted(self):
        recipes = sorted(RECIPES.glob("*.conf"))
        self.assertEqual(len(recipes), 12)
        for recipe in recipes:
            done = self.run_program([harness.SUNPROXYD, "--config", recipe, "--check-config"])
            self.assertEqual(done.returncode, 0, (recipe.name, done.stderr))
            self.assertIn(b"\nrule = ", done.stdout, recipe.name)

    def test_the_page_has_each(self):
        self.assertEqual(sorted(re.findall(r"`recipes/([a-z-]+\.conf)`", self.page)),
                         sorted(recipe.name for recipe in RECIPES.glob("*.conf")))

    def test_the_page_has_each_key(self):
        printed = self.run_program([harness.SUNPROXYD, "--default-config"]).stdout.decode()
        keys = re.findall(r"(?m)^#  ([a-z-]+) +=", printed[printed.index("#[rule]"):])
        rows = re.findall(r"(?m)^\| `([a-z-]+) = ", self.page)
        self.assertIn("pass", keys)
        self.assertEqual(set(keys), set(rows))


del RecipeCase, ReloadCase
