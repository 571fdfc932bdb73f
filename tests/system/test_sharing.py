"""What one client is given of another's answers: RFC 9111 as far as it is followed, and its limits."""

import http.client
import importlib.util
import itertools
import os
import time

import harness
import rpc

PAST = "Thu, 01 Jan 1970 00:00:00 GMT"
NEVER_SHARED = (
    "Set-Cookie: a=b",
    "Cache-Control: private",
    "Cache-Control: max-age=60, private=\"x-a\"",
    "Cache-Control: no-store",
    "Cache-Control: no-cache",
    "Cache-Control: max-age=0",
    "Cache-Control: max-age='60'",
    "Cache-Control: max-age=60, s-maxage=0",
    "Cache-Control: max-age=60\r\nAge: 61",
    "Cache-Control: max-age=60; private",
    "Cache-Control : private",
    "Connection: Cache-Control\r\nCache-Control: private",
    "Vary: *",
    "Vary: Accept, *",
    f"Expires: {PAST}",
    "Expires: 0",
)
SHARED = (
    "X-Nothing: said",
    "Cache-Control: public",
    "Cache-Control: max-age=3600",
    "Cache-Control: s-maxage=3600, max-age=0",
    f"Cache-Control: max-age=3600\r\nExpires: {PAST}",
    "Expires: Thu, 01 Jan 2099 00:00:00 GMT",
    "Vary: Accept-Language",
    "Pragma: no-cache",
)


def quote(text):
    """As a fault's value in a query."""
    return "".join(c if c.isalnum() else f"%{ord(c):02x}" for c in text)


def with_headers(lines, path="/", host="a.test"):
    faults = "&".join(f"fault=header:{quote(line)}" for line in lines.split("\r\n"))
    return f"http://{host}{path}?{faults}"


def cookies(page):
    return [line for line in page.headers.split("\r\n") if line.lower().startswith("set-cookie:")]


class SharingCase(harness.SystemTest):
    threads = True
    options = ()

    def setUp(self):
        super().setUp()
        self.o = self.origin()
        self.d = self.daemon(*self.options, origin=self.o)

    def get(self, url, **more):
        """By a client of its own, over the one transport and the other."""
        self.clients = getattr(self, "clients", 0) + 1
        with rpc.Connection(self.d.address if self.clients % 2 else self.d.socket) as c:
            return c.get(url, **more)

    def together(self, url, count):
        return rpc.together(self.d, url, count)

    def sources(self, pages):
        return sorted(p.source for p in pages)

    def pages_inside(self):
        return self.stat(self.d)["pages"]


class StoringTest(SharingCase):
    def test_what_is_for_one_client_is_fetched_for_each(self):
        for n, lines in enumerate(NEVER_SHARED):
            url = with_headers(lines, f"/{n}")
            for _ in range(3):
                page = self.get(url)
                self.assertEqual((page.status, page.source, page.stored), ("ok", "miss", False),
                                 lines)
            self.assertEqual(len(self.o.requests()), 3 * (n + 1), lines)
        self.assertEqual(self.pages_inside(), 0)

    def test_what_may_be_shared_is(self):
        for n, lines in enumerate(SHARED):
            url = with_headers(lines, f"/{n}")
            first, second = self.get(url), self.get(url)
            self.assertEqual((first.source, first.stored), ("miss", True), lines)
            self.assertEqual((second.source, second.body), ("hit", first.body), lines)
            self.assertEqual(len(self.o.requests()), n + 1, lines)

    def test_framing_that_can_be_read_in_two_ways(self):
        """Content-Length beside chunks (RFC 9112 section 6.3): passed on, and never stored."""
        length = quote("Content-Length: 3")
        url = f"http://a.test/?fault=chunked&fault=header:{length}"
        for _ in range(2):
            page = self.get(url)
            self.assertEqual((page.status, page.source, page.stored), ("ok", "miss", False))
            self.assertNotIn("content-length", page.headers.lower())
            self.assertGreater(len(page.body), 3)
        self.assertEqual(self.pages_inside(), 0)

    def test_version_1_too(self):
        url = with_headers("Cache-Control: private")
        for _ in range(3):
            with rpc.Connection(self.d.address) as c:
                self.assertIsInstance(c.fetch_v1(url), bytes)
        self.assertEqual(len(self.o.requests()), 3)

    def test_a_redirect_is_stored_or_not_for_itself(self):
        end = "fault=redirect:http://b.test/end"
        self.get("http://b.test/end")
        for n, query in enumerate((
                f"fault=cookie&{end}",
                f"fault=header:{quote('Cache-Control: no-store')}&{end}",
                f"fault=header:{quote('Expires: 0')}&{end}", end)):
            url = f"http://a.test/{n}?{query}"
            pages = [self.get(url), self.get(url)]
            self.assertEqual([(p.status, p.source, p.stored) for p in pages],
                             [("ok", "miss", True)] * 2, query)
        self.assertEqual(len(self.o.requests("/end")), 1)
        for n, user in enumerate(("user:word@b.test/end", "user@b.test/?fault=redirect:/other")):
            pages = [self.get(f"http://a.test/user{n}?fault=redirect:http://{user}")
                     for _ in range(2)]
            self.assertEqual([(p.status, p.source, p.stored) for p in pages],
                             [("ok", "miss", False)] * 2, user)
        url = f"http://a.test/?fault=header:{quote('Cache-Control: max-age=3600')}&{end}"
        self.assertEqual([self.get(url).source, self.get(url).source], ["miss", "hit"])

    def test_user_information_is_never_stored(self):
        for url in ("http://user:word@a.test/", "http://user@a.test/", "http://:word@a.test/"):
            for _ in range(2):
                page = self.get(url)
                self.assertEqual((page.source, page.stored), ("miss", False), url)
        self.assertEqual(len(self.o.requests()), 6)
        self.assertEqual(self.pages_inside(), 0)


class LifetimeTest(SharingCase):
    seconds = 10

    def wait_for_miss(self, url):
        return harness.wait_until(lambda: (p := self.get(url)).source == "miss" and p, 20,
                                  "the page to expire")

    def test_an_expired_page_is_replaced(self):
        url = with_headers("Cache-Control: max-age=2")
        self.assertTrue(self.get(url).stored)
        self.assertTrue(self.wait_for_miss(url).stored)
        self.assertEqual(len(self.o.requests()), 2)
        now = self.stat(self.d)
        self.assertEqual((now["pages"], now["insertions"], now["evictions"]), (1, 2, 0))

    def test_an_expired_page_goes_when_the_new_answer_is_not_stored(self):
        header = quote("Cache-Control: max-age=2")
        for n, later in enumerate(("cookie", "status:404")):
            url = f"http://a.test/{n}?fault=first:header:{header}&fault=later:{later}"
            self.assertTrue(self.get(url).stored)
            self.assertEqual(self.pages_inside(), 1)
            self.assertFalse(self.wait_for_miss(url).stored)
            self.assertEqual(self.pages_inside(), 0)

    def test_the_age_that_it_comes_with_counts(self):
        url = with_headers("Cache-Control: max-age=3600\r\nAge: 3598")
        self.assertTrue(self.get(url).stored)
        self.wait_for_miss(url)

    def test_age_counts_from_the_origin(self):
        url = with_headers("Cache-Control: max-age=3600\r\nAge: 100")
        self.get(url)
        self.assertGreaterEqual(self.get(url).age, 100)
        harness.wait_until(lambda: self.get(url).age >= 102, 20, "the page to become older")


class CoalescingTest(SharingCase):
    seconds = 26
    options = ("--stop-timeout", "100ms")  # some origins here never answer

    def test_no_cookie_reaches_another_client_that_asks_at_the_same_moment(self):
        for query in ("fault=cookie", "fault=cookie&fault=status:404", "fault=cookie&fault=chunked"):
            before = len(self.o.requests())
            pages = self.together(f"http://a.test/?{query}&fault=delay:700ms", 12)
            self.assertEqual({p.status for p in pages}, {"ok"})
            self.assertEqual({len(cookies(p)) for p in pages}, {1})
            self.assertEqual(len({cookies(p)[0] for p in pages}), 12)
            self.assertEqual(self.sources(pages), ["miss"] * 12)
            self.assertEqual(len(self.o.requests()) - before, 12)

    def test_after_a_private_response_each_request_has_the_failure_of_its_own_fetch(self):
        for n, end in enumerate(("fault=redirect:ftp://b.test/SECRET", "fault=loop")):
            pages = self.together(f"http://a.test/{n}/SECRET?fault=cookie&{end}&fault=delay:700ms",
                                  8)
            self.assertEqual(len({p.status for p in pages}), 1)
            self.assertNotIn("ok", {p.status for p in pages})
            asked = [path for _, _, path, _ in self.o.requests() if path.startswith(f"/{n}/SECRET")]
            self.assertGreaterEqual(len(asked), 8)
        pages = self.together("http://a.test/?fault=redirect:ftp://b.test/&fault=delay:700ms", 8)
        self.assertEqual(len({p.sentence for p in pages}), 1)
        self.assertEqual(len(self.o.requests("/?fault=redirect:ftp://b.test/&fault=delay:700ms")),
                         1)

    def test_those_that_waited_fetch_at_once_and_in_parallel(self):
        # The first answer comes late, the others never: all of them are under way together.
        url = ("http://a.test/?fault=first:delay:1s&fault=first:cookie&fault=later:hang-silent")
        connections = [rpc.Connection(self.d.address) for _ in range(8)]
        for c in connections:
            self.addCleanup(c.close)
            c.send(rpc.record(rpc.call(procedure=rpc.V2_GET, arguments=rpc.get_arguments(url))))
        harness.wait_until(lambda: len(self.o.requests()) == 8, 20, "8 requests")
        harness.wait_until(lambda: self.stat(self.d)["fetches_active"] == 7, 20, "7 fetches")
        self.assertEqual(self.stat(self.d)["misses"], 1)

    def test_later_requests_do_not_wait_for_each_other(self):
        url = "http://a.test/?fault=first:cookie&fault=later:hang-silent"
        self.get(url)
        connections = [rpc.Connection(self.d.address) for _ in range(5)]
        for c in connections:
            self.addCleanup(c.close)
            c.send(rpc.record(rpc.call(procedure=rpc.V2_GET, arguments=rpc.get_arguments(url))))
        harness.wait_until(lambda: len(self.o.requests()) == 6, 20, "6 requests")
        self.assertEqual(self.stat(self.d)["fetches_active"], 5)

    def test_an_answer_that_may_be_shared_ends_that(self):
        url = "http://a.test/?fault=first:cookie&fault=delay:700ms"
        self.assertFalse(self.get(url).stored)
        self.assertTrue(self.get(url).stored)
        self.assertEqual(self.get(url).source, "hit")
        self.sunproxy("purge", url, daemon=self.d)
        self.assertEqual(self.sources(self.together(url, 6)), ["coalesced"] * 5 + ["miss"])
        self.assertEqual(len(self.o.requests()), 3)

    def test_a_purge_reaches_fetches_that_no_other_joins(self):
        url = "http://a.test/?fault=first:cookie&fault=later:delay:1500ms"
        self.get(url)
        with rpc.Connection(self.d.address) as c:
            c.send(rpc.record(rpc.call(procedure=rpc.V2_GET, arguments=rpc.get_arguments(url))))
            harness.wait_until(lambda: len(self.o.requests()) == 2, 20, "the fetch")
            self.sunproxy("purge", url, daemon=self.d, expect=1)  # none is stored
            page = rpc.Page(c.receive().results)
        self.assertEqual((page.status, page.stored), ("ok", False))
        self.assertEqual(self.pages_inside(), 0)

    def test_user_information_is_not_waited_for(self):
        url = "http://user:word@a.test/?fault=hang-silent"
        connections = [rpc.Connection(self.d.address) for _ in range(6)]
        for c in connections:
            self.addCleanup(c.close)
            c.send(rpc.record(rpc.call(procedure=rpc.V2_GET, arguments=rpc.get_arguments(url))))
        harness.wait_until(lambda: len(self.o.requests()) == 6, 20, "6 fetches")
        self.assertEqual(self.stat(self.d)["fetches_active"], 6)

    def test_what_may_be_shared_is_still_fetched_once(self):
        for n, lines in enumerate(("X: y", "Cache-Control: max-age=3600")):
            pages = self.together(with_headers(lines, f"/{n}") + "&fault=delay:1s", 12)
            self.assertEqual(self.sources(pages), ["coalesced"] * 11 + ["miss"])
        pages = self.together("http://a.test/?fault=status:404&fault=delay:1s", 12)
        self.assertEqual(self.sources(pages), ["coalesced"] * 11 + ["miss"])
        self.assertEqual(len(self.o.requests()), 3)

    def test_more_than_can_be_fetched_at_once(self):
        # Each of the others waits for its turn at the origin, or is refused for the moment.
        self.d = self.daemon("--max-fetches-per-origin", "2", "--max-fetches-queued", "10",
                             origin=self.o)
        pages = self.together("http://a.test/?fault=cookie&fault=delay:500ms", 20)
        self.assertLessEqual({p.status for p in pages}, {"ok", "overloaded"})
        good = [cookies(p)[0] for p in pages if p.status == "ok"]
        self.assertGreater(len(good), 2)
        self.assertEqual(len(set(good)), len(good))

    def test_such_fetches_count_in_the_rate_of_their_client(self):
        self.d = self.daemon("--rate-fetches", "1:2", origin=self.o)
        url = "http://a.test/?fault=cookie&fault=delay:700ms"
        connections = [rpc.Connection(self.d.address) for _ in range(20)]
        for c in connections:
            self.addCleanup(c.close)
            c.send(rpc.record(rpc.call(procedure=rpc.V2_GET, arguments=rpc.get_arguments(url))))
        pages = [rpc.Page(c.receive().results) for c in connections]
        self.assertEqual({p.status for p in pages}, {"ok"})
        self.assertEqual(connections[0].get("http://a.test/other").status, "overloaded")

    def test_stopping_answers_those_that_fetch_for_themselves(self):
        url = ("http://a.test/?fault=first:delay:1s&fault=first:cookie&fault=later:hang-silent")
        d = self.d
        connections = [rpc.Connection(d.address) for _ in range(6)]
        for c in connections:
            self.addCleanup(c.close)
            c.send(rpc.record(rpc.call(procedure=rpc.V2_GET, arguments=rpc.get_arguments(url))))
        harness.wait_until(lambda: self.stat(d)["fetches_active"] == 5, 20, "5 fetches")
        d.signal(15)
        statuses = sorted(rpc.Page(c.receive().results).status for c in connections)
        self.assertEqual(statuses, ["ok"] + ["stopping"] * 5)
        self.assertEqual(d.wait(), 0)


class OffTest(SharingCase):
    options = ("--freshness", "off")

    def test_every_page_is_stored_and_shared(self):
        for n, lines in enumerate(NEVER_SHARED + SHARED):
            url = with_headers(lines, f"/{n}")
            self.assertEqual([self.get(url).source, self.get(url).source], ["miss", "hit"], lines)
        url = "http://user:word@a.test/"
        self.assertEqual([self.get(url).source, self.get(url).source], ["miss", "hit"])
        pages = self.together("http://a.test/?fault=cookie&fault=delay:1s", 8)
        self.assertEqual(self.sources(pages), ["coalesced"] * 7 + ["miss"])

    def test_nothing_expires(self):
        url = with_headers("Cache-Control: max-age=1")
        self.get(url)
        harness.wait_until(lambda: (p := self.get(url)).age >= 2 and p.source == "hit", 20,
                           "the page to become older than its lifetime")
        self.assertEqual(len(self.o.requests()), 1)

    def test_no_other_word_is_taken(self):
        self.assertEqual(self.run_daemon("--freshness", "maybe").returncode, harness.EX_USAGE)


class MaxAgeTest(SharingCase):
    """--max-age, over RPC and HTTP: with and without a lifetime that the origin states."""

    seconds = 8

    def setUp(self):
        super().setUp()
        self.http = harness.free_port()

    def over_http(self, url):
        """Whether a GET through the forward proxy is a hit."""
        c = http.client.HTTPConnection("127.0.0.1", self.http, timeout=30)
        c.request("GET", url)
        answer = c.getresponse()
        answer.read()
        c.close()
        return "hit" in answer.headers["Cache-Status"].split(";")[1]

    def over_rpc(self, url):
        return self.get(url).source == "hit"

    def test_a_page_is_fetched_again_after_the_time(self):
        """The time counts from the arrival of the response, whose age may be more by then."""
        for freshness in ("off", "on"):
            self.d = self.daemon("--max-age", "1s", "--freshness", freshness,
                                 "--http", f"127.0.0.1:{self.http}", origin=self.o)
            for get, age in itertools.product((self.over_rpc, self.over_http), (0, 100)):
                path = f"/{freshness}/{get.__name__}/{age}"
                url = with_headers(f"Cache-Control: max-age=3600\r\nAge: {age}", path)
                self.assertFalse(get(url))
                arrived = time.monotonic()
                hits = []

                def fetched_again():
                    sent = time.monotonic()
                    if not get(url):
                        return True
                    hits.append(sent - arrived)
                    return False

                harness.wait_until(fetched_again, 30, "another fetch")
                self.assertLess(max(hits, default=0), 1)
                fetches = [r for r in self.o.requests() if r[2].startswith(path)]
                self.assertEqual(len(fetches), 2)
            self.d.stop()


class StudyTest(harness.SystemTest):
    def test_studies_count_every_page_whatever_it_says(self):
        path = harness.TOP / "scripts/harness.py"
        os.environ["SUNPROXY_BUILD"] = str(harness.BUILD)
        os.environ["SUNPROXY_ORIGIN"] = str(harness.ORIGIN)
        spec = importlib.util.spec_from_file_location("study_harness", path)
        study = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(study)
        children = study.Children()
        self.addCleanup(children.stop)
        o = study.Origin(children, self.dir, "--header", "Cache-Control: private, max-age=0")
        d = study.Daemon(children, self.dir, "study", o)
        with rpc.Connection(str(d.path)) as c:
            self.assertEqual([c.get("http://a.test/").source for _ in range(2)], ["miss", "hit"])
