"""Users and strangers of an application that says less than it should: what the proxy gives to whom.

The origin answers as WordPress 6 does for feeds: `no-cache`, no Vary, and an entity tag of the site's
latest change, which all users get, whatever their pages show."""

import concurrent.futures
import http.server
import itertools

import harness
from http_front import Connection, http_address

ETAG = '"5d8c72a5edda8d6a"'
USERS = ("", "alice", "bob")  # "": a stranger
ORDERS = set(itertools.permutations((*USERS, *USERS[:2])))


def page(path, user):
    """What a user sees."""
    return f"{path}: public post" + (f", private post of {user}" if user else "")


class WordPressHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def user(self):
        for pair in self.headers.get("Cookie", "").split("; "):
            name, _, value = pair.partition("=")
            if name == "wordpress_logged_in":
                return value
        return ""

    def do_GET(self):
        self.server.seen.append((self.path, self.user(), self.headers.get("If-None-Match")))
        if self.headers.get("If-None-Match") == ETAG:
            self.send_response(304)
            self.send_header("ETag", ETAG)
            self.send_header("Cache-Control", "no-cache, must-revalidate, max-age=0")
            self.end_headers()
            return
        body = page(self.path, self.user()).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/rss+xml; charset=UTF-8")
        self.send_header("Last-Modified", "Tue, 01 Sep 2026 08:49:37 GMT")
        self.send_header("ETag", ETAG)
        if not self.path.startswith("/quiet"):
            self.send_header("Expires", "Wed, 11 Jan 1984 05:00:00 GMT")
            self.send_header("Cache-Control", "no-cache, must-revalidate, max-age=0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class WordPressOrigin(harness.PythonOrigin):
    request_queue_size = 128

    def __init__(self, test):
        self.seen = []
        super().__init__(test, WordPressHandler)


class UsersTest(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.o = WordPressOrigin(self)
        self.d = self.daemon("--http", "127.0.0.1:0", "--origin", f"/={self.o.url}",
                             "--allow-net", "127.0.0.0/8")
        self.address = harness.wait_until(lambda: http_address(self.d), what="the HTTP front")

    def get(self, path, user, *lines):
        connection = Connection(self.address)
        try:
            cookie = (f"Cookie: theme=dark; wordpress_logged_in={user}",) if user else ()
            return connection.get(path, *cookie, *lines)
        finally:
            connection.close()

    def check(self, path, user):
        response = self.get(path, user)
        self.assertEqual((response.status, response.body.decode()), (200, page(path, user)),
                         response.fields)
        return response

    def test_in_all_orders(self):
        for kind in ("feed", "quiet"):
            for number, order in enumerate(sorted(ORDERS)):
                for user in order:
                    self.check(f"/{kind}/{number}", user)

    def test_a_cold_start_in_parallel(self):
        requests = [(f"/feed/{number}", user) for number in range(15) for user in USERS * 2]
        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            for _ in range(3):
                list(pool.map(lambda request: self.check(*request), requests))

    def test_strangers_share_a_page_that_is_validated(self):
        self.check("/feed/", "")
        self.assertTrue(
            self.check("/feed/", "alice").field("Cache-Status").endswith("; detail=cookie"))
        again = self.check("/feed/", "")
        self.assertIn("fwd-status=304", again.field("Cache-Status"))
        # No validator of the proxy's goes with a user's request, and the user's own one does.
        self.assertEqual(self.o.seen, [("/feed/", "", None), ("/feed/", "alice", None),
                                       ("/feed/", "", ETAG)])
        self.assertEqual(self.get("/feed/", "alice", f"If-None-Match: {ETAG}").status, 304)
        self.assertEqual(self.o.seen[-1], ("/feed/", "alice", ETAG))

    def test_a_heuristic_lifetime_is_for_strangers(self):
        self.check("/quiet", "")
        self.assertIn("sunproxy; hit", self.check("/quiet", "").field("Cache-Status"))
        self.assertNotIn("hit", self.check("/quiet", "alice").field("Cache-Status"))
        self.assertIn("sunproxy; hit", self.check("/quiet", "").field("Cache-Status"))


if __name__ == "__main__":
    harness.main()
