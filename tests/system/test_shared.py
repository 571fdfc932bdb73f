"""Daemons that share small pages in memcached: --shared."""

import contextlib
import http.server
import os
import random
import re
import shutil
import signal
import subprocess
import threading
import time
import unittest

import harness
import http_front
from ports import free_port

KEY = "a key of more than sixteen bytes"
MEMCACHED = shutil.which("memcached") or shutil.which("memcached", path="/usr/bin:/usr/sbin")


class Server:
    """A memcached server."""

    def __init__(self, test):
        self.port = free_port()
        self.process = None
        test.addCleanup(self.kill)
        self.start()

    @property
    def url(self):
        return f"memcached://127.0.0.1:{self.port}"

    def start(self, *options):
        self.process = harness.start_with_parent(
            [MEMCACHED, "-u", "nobody", "-l", "127.0.0.1", "-p", str(self.port), *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        harness.wait_until(self.answers, what="memcached")

    def answers(self):
        try:
            return self.ask(b"mn\r\n").startswith(b"MN")
        except OSError:
            return False

    def ask(self, command, end=b"\r\n"):
        """Sends a command; what comes up to the end."""
        with contextlib.closing(http_front.socket.create_connection(("127.0.0.1", self.port), 5)) as s:
            s.settimeout(5)
            s.sendall(command)
            answer = b""
            while not answer.endswith(end):
                more = s.recv(65536)
                if not more:
                    break
                answer += more
            return answer

    def keys(self):
        """Those that are there."""
        lines = self.ask(b"lru_crawler metadump all\r\n", b"END\r\n").decode().split("\n")
        return [line.split()[0].removeprefix("key=") for line in lines if line.startswith("key=")]

    def read(self, key):
        head, _, rest = self.ask(b"mg %s v\r\n" % key.encode()).partition(b"\r\n")
        size = int(head.split()[1])
        value = self.ask(b"get %s\r\n" % key.encode(), b"END\r\n")
        return value.partition(b"\r\n")[2][:size] if size else rest[:0]

    def write(self, key, value):
        answer = self.ask(b"ms %s %d\r\n%s\r\n" % (key.encode(), len(value), value))
        assert answer.startswith(b"HD"), answer

    def signal(self, number):
        harness.send_signal(self.process, number)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()


@unittest.skipUnless(MEMCACHED, "memcached is not installed")
class SharedTest(harness.SystemTest):
    daemons = 3
    servers = 3
    options = ("--shared-timeout", "2s", "--shared-wait", "20s", "--shared-poll", "50ms")

    def setUp(self):
        super().setUp()
        self.o = self.origin()
        self.key = self.dir / "shared.key"
        self.key.write_text(f"{KEY}\n")
        self.key.chmod(0o600)
        self.s = [Server(self) for _ in range(self.servers)]
        self.d = [self.start(n) for n in range(self.daemons)]
        self.await_servers()

    def start(self, n, *more, name=None, key=None):
        return self.daemon("--http", "127.0.0.1:0", "--shared", ",".join(s.url for s in self.s),
                           "--shared-key-file", key or self.key, "--purge-net", "127.0.0.0/8",
                           *self.options, *more, origin=self.o, name=name or f"daemon{n}")

    def stats(self, daemon):
        return self.stat(daemon)

    def await_servers(self, count=None, daemons=None):
        """Until the daemons use that many servers."""
        count = self.servers if count is None else count
        harness.wait_until(lambda: all(self.stats(d)["shared_servers_up"] == count
                                       for d in daemons or self.d), what="the servers")

    def get(self, daemon, url, *lines, method="GET"):
        address = harness.wait_until(lambda: http_front.http_address(daemon), what="the HTTP front")
        with contextlib.closing(http_front.Connection(address)) as connection:
            return connection.get(url, *lines, method=method)

    def fetched(self, part):
        return [r for r in self.o.requests() if part in r[2]]

    def check(self, response, url, status=200):
        self.assertEqual(response.status, status, response.body)
        self.assertTrue(response.whole)
        self.assertEqual(response.body, harness.origin_text(url, len(response.body)))

    @staticmethod
    def url(path, *faults):
        more = "".join(f"&fault={f}" for f in faults)
        return http_front.stored(f"http://a.test/{path}?fault=size:3000{more}")


class PagesTest(SharedTest):
    def test_a_page_is_fetched_once_by_all_of_them(self):
        for i in range(10):
            url = self.url(f"once/{i}")
            for d in self.d:
                response = self.get(d, url)
                self.check(response, url)
        self.assertEqual(len(self.fetched("/once/")), 10)
        self.assertTrue(http_front.is_hit(response))
        stat = self.stats(self.d[1])
        self.assertEqual(stat["shared_reads_hit"], 10)
        self.assertEqual(stat["shared_invalid"], 0)

    def test_of_many_that_miss_at_once_one_fetches(self):
        url = self.url("crowd", "delay:0.4")
        responses = []

        def ask(d):
            responses.append(self.get(d, url))

        threads = [threading.Thread(target=ask, args=(d,)) for d in self.d * 4]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(responses), len(threads))
        for response in responses:
            self.check(response, url)
        self.assertEqual(len(self.fetched("/crowd")), 1)

    def test_the_pages_outlive_the_daemons(self):
        url = self.url("later")
        self.check(self.get(self.d[0], url), url)
        for d in self.d:
            d.stop()
        self.d = [self.start(0, name="again")]
        self.await_servers()
        response = self.get(self.d[0], url)
        self.check(response, url)
        self.assertTrue(http_front.is_hit(response))
        self.assertEqual(len(self.fetched("/later")), 1)

    def test_age_and_validators_hold(self):
        url = self.url("old", "header:ETag%3a%20%22v1%22")
        self.get(self.d[0], url)
        time.sleep(1.2)
        response = self.get(self.d[1], url)
        self.check(response, url)
        self.assertIn(int(response.field("Age")), range(1, 20))
        self.assertEqual(response.field("ETag"), '"v1"')
        self.assertEqual(self.get(self.d[1], url, 'If-None-Match: "v1"').status, 304)
        self.assertEqual(len(self.fetched("/old")), 1)

    def test_what_has_expired_is_validated_by_one_of_them(self):
        url = ("http://a.test/short?fault=size:3000&fault=header:ETag%3a%20%22v1%22"
               "&fault=header:Cache-Control%3a%20max-age%3d1")
        self.get(self.d[0], url)
        time.sleep(1.3)
        for d in self.d[1:]:
            self.check(self.get(d, url), url)
        self.assertLessEqual(len(self.fetched("/short")), 3)

    def test_variants_are_told_apart(self):
        url = self.url("vary", "header:Vary%3a%20Accept-Language")
        for number, language in enumerate(("de", "en")):
            for d in self.d:
                self.check(self.get(d, url, f"Accept-Language: {language}"), url)
                # The variant and the names may be on two servers.
                harness.wait_until(lambda: self.stats(self.d[0])["shared_writes_written"] == 2 * number + 2,
                                   what="both values")
        self.assertEqual(len(self.fetched("/vary")), 2)

    def test_servers_may_have_names(self):
        named = self.daemon("--http", "127.0.0.1:0", "--shared",
                            ",".join(f"memcached://localhost:{s.port}" for s in self.s),
                            "--shared-key-file", self.key, *self.options, origin=self.o, name="named")
        self.await_servers(daemons=[named])
        url = self.url("named")
        for _ in range(2):
            self.check(self.get(named, url), url)
        self.assertNotIn("it is not used", named.err)

    def test_what_is_not_for_all_is_not_shared(self):
        for name, line in (("cookie", "Set-Cookie%3a%20a%3db"),
                           ("private", "Cache-Control%3a%20private"),
                           ("nostore", "Cache-Control%3a%20no-store")):
            url = f"http://a.test/{name}?fault=size:3000&fault=header:{line}"
            for d in self.d:
                self.check(self.get(d, url), url)
            self.assertEqual(len(self.fetched(f"/{name}")), self.daemons)
        url = self.url("user")
        for d in self.d:
            self.check(self.get(d, url, "Authorization: Basic YTpi"), url)
        self.assertEqual(len(self.fetched("/user")), self.daemons)
        large = http_front.stored("http://a.test/large?fault=size:300000")
        for d in self.d:
            self.check(self.get(d, large), large)
        self.assertEqual(len(self.fetched("/large")), self.daemons)

    def test_a_fetch_that_fails_lets_another_daemon_fetch(self):
        url = self.url("fails", "status:503")
        begun = time.monotonic()
        for d in self.d:
            self.assertEqual(self.get(d, url).status, 503)
        self.assertLess(time.monotonic() - begun, 15)  # a lease lasts 20 s here


class FirstHangs(http.server.BaseHTTPRequestHandler):
    """The first response for each path does not end; the others do."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        with self.server.lock:
            self.server.asked.append(self.path)
            first = self.server.asked.count(self.path) == 1
        if first:
            self.server.ends.wait(60)
            self.close_connection = True
            return
        body = self.path.encode() * 100
        self.send_response(200)
        self.send_header("Cache-Control", "max-age=60")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class LeaseTest(SharedTest):
    """A daemon is killed while others may wait for what it fetches."""

    options = ("--shared-timeout", "2s", "--shared-wait", "2s")
    paths = [f"/{n}" for n in range(12)]

    def setUp(self):
        super().setUp()
        self.web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), FirstHangs)
        self.web.daemon_threads = True
        self.web.asked, self.web.lock, self.web.ends = [], threading.Lock(), threading.Event()
        threading.Thread(target=self.web.serve_forever, daemon=True).start()
        self.addCleanup(self.web.server_close)
        self.addCleanup(self.web.shutdown)
        self.addCleanup(self.web.ends.set)
        self.site = f"http://127.0.0.1:{self.web.server_address[1]}"

    def fetch(self, daemon, path):
        response = self.get(daemon, self.site + path)
        self.assertEqual((response.status, response.body), (200, path.encode() * 100))

    def test_its_leases_delay_nothing_later(self):
        address = http_front.http_address(self.d[0])
        for path in self.paths:
            s = http_front.socket.create_connection(address, 20)
            self.addCleanup(s.close)
            s.sendall(f"GET {self.site}{path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        harness.wait_until(lambda: len(self.web.asked) == len(self.paths), what="the fetches")
        self.d[0].kill()
        # Within the time for which a request waits.
        self.fetch(self.d[1], self.paths[0])
        waited = [self.stats(d)["shared_waits_given_up"] for d in self.d[1:]]
        self.assertLessEqual(waited[0], 1)
        # Until the leases are older than that by a second, as the servers count.
        time.sleep(3)
        for path in self.paths[1:]:
            for d in self.d[1:]:
                self.fetch(d, path)
        self.assertEqual([self.stats(d)["shared_waits_given_up"] for d in self.d[1:]], waited)
        # The one that had the lease taken over has written.
        self.assertEqual(len(self.web.asked), 2 * len(self.paths))


class HeadTest(SharedTest):
    """The head of a response says that no other daemon can have it."""

    daemons = 2
    servers = 1
    options = ("--shared-timeout", "2s", "--shared-wait", "1h")

    def begin(self, daemon, url):
        """Sends a request, and waits for the first bytes of the response."""
        s = http_front.socket.create_connection(http_front.http_address(daemon), 20)
        self.addCleanup(s.close)
        s.sendall(f"GET {url} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n".encode())
        self.assertTrue(s.recv(12).startswith(b"HTTP/1.1 200"))

    def test_others_do_not_wait_for_its_body(self):
        for name, line in (("big", "Cache-Control%3a%20max-age%3d600"),
                           ("mine", "Cache-Control%3a%20private")):
            url = (f"http://a.test/{name}?fault=size:3000000&fault=hang-body:500000"
                   f"&fault=header:{line}")
            for d in self.d:
                self.begin(d, url)
            self.assertEqual(len(self.fetched(f"/{name}")), 2)


class PurgeTest(SharedTest):
    def purged(self, url, *lines, method="PURGE", at=None):
        """Purges at the last daemon, and waits until the others have taken that."""
        before = [self.stats(d)["shared_purges_taken"] for d in self.d]
        response = self.get(self.d[-1], at or url, *lines, method=method)
        self.assertLess(response.status, 500)
        harness.wait_until(lambda: all(self.stats(d)["shared_purges_taken"] > n
                                       for d, n in zip(self.d[:-1], before)), what="the purge")

    def everywhere(self, url, fetches):
        for d in self.d:
            self.check(self.get(d, url), url)
        part = url.removeprefix("http://a.test").partition("?")[0]
        self.assertEqual(len(self.fetched(part)), fetches)

    def test_by_url(self):
        url, other = self.url("one"), self.url("two")
        self.everywhere(url, 1)
        self.everywhere(other, 1)
        self.purged(url)
        self.everywhere(url, 2)
        self.everywhere(other, 1)

    def test_by_prefix(self):
        url, other = self.url("begin/one"), self.url("else/two")
        self.everywhere(url, 1)
        self.everywhere(other, 1)
        self.purged(url, "Purge: prefix", at="http://a.test/begin/")
        self.everywhere(url, 2)
        self.everywhere(other, 1)

    def test_by_tag(self):
        url = self.url("tagged", "header:Cache-Tag%3a%20red%2c%20blue")
        other = self.url("plain", "header:Cache-Tag%3a%20green")
        self.everywhere(url, 1)
        self.everywhere(other, 1)
        self.purged(url, "Cache-Tag: blue")
        self.everywhere(url, 2)
        self.everywhere(other, 1)

    def test_over_a_daemon_that_has_nothing(self):
        url = self.url("elsewhere")
        self.check(self.get(self.d[0], url), url)
        response = self.get(self.d[1], url, method="PURGE")
        self.assertEqual(response.status, 200)
        self.assertIn(b"those of the shared tier", response.body)
        harness.wait_until(lambda: self.stats(self.d[0])["shared_purges_taken"], what="the purge")
        self.everywhere(url, 2)

    def test_softly(self):
        url = self.url("soft", "header:ETag%3a%20%22v1%22")
        self.everywhere(url, 1)
        self.purged(url, "Purge: soft")
        for d in self.d:
            self.check(self.get(d, url), url)
        self.assertGreater(len(self.fetched("/soft")), 1)

    def test_a_write(self):
        url = self.url("written")
        self.everywhere(url, 1)
        self.purged(url, "Content-Length: 0", method="POST")
        fetched = len(self.fetched("/written"))
        for d in self.d:
            self.check(self.get(d, url), url)
        self.assertEqual(len(self.fetched("/written")), fetched + 1)

    def test_other_rules_of_one_daemon_purge_nothing_elsewhere(self):
        config = self.dir / "rules.conf"
        config.write_text("")
        changed = self.start(8, "--config", config, name="changed")
        self.await_servers(daemons=[changed])
        url = self.url("kept")
        self.everywhere(url, 1)
        config.write_text("[rule]\nhost = other.test\nlifetime = 5m\n")
        changed.popen.send_signal(signal.SIGHUP)
        harness.wait_until(lambda: "was read again" in changed.err,
                           what="the reload")
        # A purge behind it has been taken by all: there was none before it.
        self.get(changed, self.url("else"), method="PURGE")
        for d in self.d:
            harness.wait_until(lambda: self.stats(d)["shared_purges_taken"], what="the purge")
            self.assertEqual(self.stats(d)["shared_purges_taken"], 1)
        self.everywhere(url, 1)

    def test_what_the_options_of_one_daemon_allow_others_do_not_use(self):
        allows = self.start(8, "--store-cookies", name="allows")
        self.await_servers(daemons=[allows])
        url = http_front.stored("http://a.test/cookie?fault=header:Set-Cookie%3a%20session%3done")
        for d in (allows, *self.d):
            self.get(d, url)
        self.assertEqual(len(self.fetched("/cookie")), 1 + self.daemons)
        self.assertTrue(http_front.is_hit(self.get(allows, url)))

    def test_that_it_is_asked_is_explained(self):
        told = self.sunproxy("explain", "http://a.test/asked", daemon=self.d[0]).stdout.decode()
        self.assertIn("asks the tier", told)
        self.assertNotIn("reason", told)

    def test_each_daemon_bounds_the_lifetimes(self):
        bounds = self.start(8, "--max-age", "1ms", name="bounds")
        self.await_servers(daemons=[bounds])
        url = self.url("bound")
        self.everywhere(url, 1)
        harness.wait_until(lambda: not http_front.is_hit(self.get(bounds, url)), what="the bound")
        self.assertEqual(len(self.fetched("/bound")), 2)

    def test_writes_to_long_urls_outdate_nothing_else(self):
        url = self.url("kept")
        self.everywhere(url, 1)
        for i in range(40):
            self.get(self.d[0], f"http://a.test/{'x' * 8000}{i}?fault=size:10", "Content-Length: 0",
                     method="POST")
        harness.wait_until(lambda: all(self.stats(d)["shared_purges_taken"] >= 40 for d in self.d[1:]),
                           what="the purges")
        self.assertEqual([self.stats(d)["shared_lost"] for d in self.d], [0] * self.daemons)
        self.everywhere(url, 1)

    def test_purges_hold_for_daemons_that_start_later(self):
        url = self.url("restart")
        self.everywhere(url, 1)
        self.d[0].stop()
        self.get(self.d[-1], url, method="PURGE")
        self.d[0] = self.start(0, name="later")
        self.await_servers()
        self.check(self.get(self.d[0], url), url)
        self.assertEqual(len(self.fetched("/restart")), 2)

    def test_many_purges_at_once_by_all_of_them(self):
        urls = [self.url(f"many/{i}") for i in range(60)]
        for url in urls:
            self.check(self.get(self.d[0], url), url)

        def purge(n):
            for url in urls[n::3]:
                self.assertEqual(self.get(self.d[n], url, method="PURGE").status // 100 in (2, 4), True)

        threads = [threading.Thread(target=purge, args=(n,)) for n in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        harness.wait_until(lambda: all(self.stats(d)["shared_purges_taken"] >= 40 for d in self.d),
                           what="the purges")
        for url in urls:
            self.check(self.get(self.d[1], url), url)
        self.assertEqual(len(self.fetched("/many/")), 120)


class FailureTest(SharedTest):
    # A server on a busy machine is not to be passed by as slow.
    options = ("--shared-timeout", "400ms", "--shared-wait", "300ms", "--shared-poll", "50ms")

    def everywhere(self, name, count=6):
        for i in range(count):
            url = self.url(f"{name}/{i}")
            for d in self.d:
                self.check(self.get(d, url), url)

    def test_servers_that_are_killed_stopped_and_started_again(self):
        self.everywhere("before")
        self.s[0].kill()
        self.everywhere("killed")
        self.s[1].signal(signal.SIGSTOP)
        self.everywhere("stopped")
        self.await_servers(1)
        self.s[2].kill()
        self.everywhere("none")
        for d in self.d:
            self.assertIn("it is not used until it answers", d.err)
            # A failure of a later trial is logged once, too, though it is tried each half second.
            refused = f"127.0.0.1:{self.s[0].port}: Connection refused"
            harness.wait_until(lambda: refused in d.err, what="the trial")
            self.assertEqual(d.err.count(refused), 1)
        self.s[1].signal(signal.SIGCONT)
        self.s[0].start()
        self.s[2].start()
        self.await_servers()
        self.everywhere("after")

    def test_a_stopped_server_delays_one_request(self):
        self.everywhere("before")
        self.s[0].signal(signal.SIGSTOP)
        self.everywhere("during", 20)
        for d in self.d:
            harness.wait_until(lambda: "it does not answer in time" in d.err, what="the failure")
            # None, if the server was found so when its journal was asked for.
            self.assertLessEqual(self.stats(d)["shared_reads_late"], 1)
        self.s[0].signal(signal.SIGCONT)
        self.await_servers()

    def test_a_purge_is_obeyed_though_servers_are_away(self):
        url = self.url("away")
        for d in self.d:
            self.check(self.get(d, url), url)
        self.s[0].kill()
        self.s[1].signal(signal.SIGSTOP)
        self.await_servers(1)
        self.assertEqual(self.get(self.d[2], url, method="PURGE").status, 200)
        harness.wait_until(lambda: self.stats(self.d[0])["shared_purges_taken"], what="the purge")
        self.s[1].signal(signal.SIGCONT)
        self.s[0].start()
        self.await_servers()
        before = len(self.fetched("/away"))
        for d in self.d[:2]:
            self.check(self.get(d, url), url)
        self.assertGreater(len(self.fetched("/away")), before)

    def test_a_purge_is_obeyed_though_its_server_and_daemons_are_away(self):
        urls = [self.url(f"gone/{i}") for i in range(12)]
        for url in urls:
            self.check(self.get(self.d[0], url), url)
        for s in self.s[1:]:
            s.signal(signal.SIGSTOP)
        self.await_servers(1, self.d[:1])
        for url in urls:
            self.get(self.d[0], url, method="PURGE")
        for d in self.d:
            d.stop()
        self.s[0].kill()
        for s in self.s[1:]:
            s.signal(signal.SIGCONT)
        self.d = [self.start(0, name="again")]
        self.await_servers(self.servers - 1)
        for url in urls:
            self.check(self.get(self.d[0], url), url)
        self.assertEqual(len(self.fetched("/gone/")), 2 * len(urls))

    def test_a_purge_of_a_minority_holds_over_its_restart_while_a_daemon_knows_it(self):
        """One server of three takes it, and restarts; the one that has purged is not there."""
        def away():
            self.s[0].kill()
            self.s[0].start()
            harness.wait_until(lambda: self.stats(self.d[0])["shared_servers_up"] == 1, what="the restart")
            for s in self.s[1:]:
                s.signal(signal.SIGCONT)

        def back():
            for s in self.s[1:]:
                s.signal(signal.SIGCONT)
            self.await_servers()
            self.s[0].kill()
            self.await_servers(2)
            self.s[0].start()

        def meanwhile():
            self.s[0].kill()
            for s in self.s[1:]:
                s.signal(signal.SIGCONT)
            self.s[0].start()

        for restart in (away, back, meanwhile):
            with self.subTest(restart.__name__):
                urls = [self.url(f"{restart.__name__}/{i}") for i in range(12)]
                for url in urls:
                    self.check(self.get(self.d[-1], url), url)
                for s in self.s[1:]:
                    s.signal(signal.SIGSTOP)
                self.await_servers(1)
                taken = [self.stats(d)["shared_purges_taken"] for d in self.d[:-1]]
                for url in urls:
                    self.assertEqual(self.get(self.d[-1], url, method="PURGE").status, 200)
                harness.wait_until(lambda: all(self.stats(d)["shared_purges_taken"] - n == len(urls)
                                               for d, n in zip(self.d, taken)), what="the purges")
                self.d.pop().kill()
                restart()
                # None that starts finds what was purged, nor does one that was there.
                self.d.append(self.start(0, name=f"{restart.__name__}-again"))
                self.await_servers()
                for d in reversed(self.d):
                    for url in urls:
                        self.check(self.get(d, url), url)
                    self.assertGreaterEqual(len(self.fetched(f"/{restart.__name__}/")), 2 * len(urls))

    def test_a_server_that_has_lost_all(self):
        url = self.url("flushed")
        for d in self.d:
            self.check(self.get(d, url), url)
        for s in self.s:
            s.ask(b"flush_all\r\n")
        for d in self.d:
            harness.wait_until(lambda: self.stats(d)["shared_lost"], what="the loss")
            self.check(self.get(d, url), url)
        self.assertIn("it is not known what was purged there", self.d[0].err)

    def test_the_restart_of_one_server_removes_nothing(self):
        urls = [self.url(f"kept/{i}") for i in range(9)]
        purged = self.url("kept/purged")
        for url in [*urls, purged]:
            for d in self.d:
                self.check(self.get(d, url), url)
        self.assertEqual(self.get(self.d[0], purged, method="PURGE").status, 200)
        harness.wait_until(lambda: all(self.stats(d)["shared_purges_taken"] for d in self.d[1:]), what="the purge")
        # The daemon that has purged is not there to write it again.
        self.d.pop(0).kill()
        for s in self.s:
            s.kill()
            self.await_servers(2)
            s.start()
            self.await_servers()
        self.assertIn("which was written back", "".join(d.err for d in self.d))
        for d in self.d:
            self.assertEqual(self.stats(d)["shared_lost"], 0)
            for url in urls:
                response = self.get(d, url)
                self.check(response, url)
                self.assertTrue(http_front.is_hit(response))
        # A daemon that starts knows the purge: nothing of the page is left that it would use.
        self.d.append(self.start(0, name="again"))
        self.await_servers()
        fetched = len(self.fetched("/kept/purged"))
        self.check(self.get(self.d[-1], purged), purged)
        self.assertEqual(len(self.fetched("/kept/purged")), fetched + 1)

    def test_a_purge_that_no_server_has_is_answered_so(self):
        urls = [self.url(f"untold/{i}") for i in range(4)]
        for url in urls:
            for d in self.d:
                self.check(self.get(d, url), url)
        for s in self.s:
            s.kill()
        self.await_servers(0)
        response = self.get(self.d[0], urls[0], method="PURGE")
        self.assertEqual(response.status, 202)
        self.assertIn(b"at this daemon alone", response.body)
        done = self.sunproxy("purge", *urls[1:3], daemon=self.d[0], expect=75)
        self.assertEqual(done.stdout, b"")
        self.assertEqual(done.stderr.count(b"at this daemon alone"), 2)
        for s in self.s:
            s.start()
        self.await_servers()
        self.assertEqual(self.get(self.d[0], urls[3], method="PURGE").status, 200)
        self.assertEqual(self.sunproxy("purge", "--all", daemon=self.d[0]).stderr, b"")

    def test_garbage_is_not_used(self):
        urls = [self.url(f"garbage/{i}") for i in range(12)]
        for url in urls:
            self.check(self.get(self.d[0], url), url)
        for s in self.s:
            for n, key in enumerate(s.keys()):
                value = bytearray(s.read(key))
                if n % 4 == 0:
                    value = b"garbage"
                elif n % 4 == 1:
                    value[len(value) // 2] ^= 1
                elif n % 4 == 2:
                    value = value[:-7]
                else:
                    value += b"more"
                s.write(key, bytes(value))
        for url in urls:
            for d in self.d[1:]:
                self.check(self.get(d, url), url)
        self.assertGreater(self.stats(self.d[1])["shared_invalid"], 0)

    def test_a_value_under_another_key_is_not_used(self):
        urls = [self.url(f"copied/{i}") for i in range(9)]
        for url in urls:
            self.check(self.get(self.d[0], url), url)
        for s in self.s:
            keys = [k for k in s.keys() if k != f"sp{'0' * 32}"]
            values = [s.read(k) for k in keys]
            for key, value in zip(keys, values[1:] + values[:1]):
                s.write(key, value)
        for url in urls:
            self.check(self.get(self.d[1], url), url)

    def test_a_daemon_with_another_key_shares_nothing(self):
        other = self.dir / "other.key"
        other.write_text("another key of more than sixteen bytes\n")
        other.chmod(0o600)
        url = self.url("secret")
        self.check(self.get(self.d[0], url), url)
        stranger = self.start(9, key=other, name="stranger")
        harness.wait_until(lambda: "daemons with another key use it" in stranger.err, what="the refusal")
        self.check(self.get(stranger, url), url)
        stat = self.stats(stranger)
        self.assertEqual((stat["shared_reads_hit"], stat["shared_servers_up"]), (0, 0))
        # The others go on.
        fetched = len(self.fetched("/secret"))
        self.check(self.get(self.d[1], url), url)
        self.assertEqual(len(self.fetched("/secret")), fetched)
        self.assertEqual(self.stats(self.d[1])["shared_lost"], 0)


class VersionedHandler(http.server.BaseHTTPRequestHandler):
    """A page is its path and its version, which a POST makes another one."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body):
        self.send_response(200)
        self.send_header("Cache-Control", "max-age=60")
        self.send_header("ETag", f'"{hash(body)}"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        version = self.server.versions.get(self.path, 0)
        self.answer(f"{self.path} {version} ".encode() * 50)

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.versions[self.path] = self.server.versions.get(self.path, 0) + 1
        self.answer(b"done")


class SharedLoadTest(SharedTest):
    """Under load each server and each daemon is stopped, killed and started again."""

    daemons = 4
    options = ("--shared-timeout", "40ms", "--shared-wait", "300ms", "--shared-poll", "50ms",
               "--capacity-urls", "15")
    pages = 40
    rounds = 12 if harness.LONG else 1

    def setUp(self):
        super().setUp()
        self.web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), VersionedHandler)
        self.web.versions = {}
        self.web.daemon_threads = True
        threading.Thread(target=self.web.serve_forever, daemon=True).start()
        self.addCleanup(self.web.server_close)
        self.addCleanup(self.web.shutdown)
        self.site = f"http://127.0.0.1:{self.web.server_address[1]}"
        self.wrong = []
        self.answers = 0
        self.away = [0] * self.daemons  # odd: a daemon is stopped, or was killed
        self.oldest = {}  # of a page, that a request may be answered with
        self.ends = threading.Event()

    def page(self, n, number):
        """The version that a daemon serves of a page, whose bytes are verified."""
        response = self.get(self.d[n], f"{self.site}/{number}")
        words = response.body.split()
        if (response.status != 200 or not response.whole or len(words) != 100
                or response.body != f"/{number} {int(words[1])} ".encode() * 50):
            raise ValueError(response.status, response.body)
        self.answers += 1
        return int(words[1])

    def read(self, seed):
        generator = random.Random(seed)
        while not self.ends.is_set():
            n, number = generator.randrange(self.daemons), generator.randrange(self.pages)
            away, oldest = self.away[n], self.oldest.get(number, 0)
            if away % 2:
                continue
            try:
                version = self.page(n, number)
                wrong = version < oldest and (n, number, version, oldest)
            except Exception as error:  # pylint: disable=broad-except
                wrong = (n, number, error)
            if wrong and self.away[n] == away:
                self.wrong.append(wrong)

    def write(self, number, by=0):
        """A write over a daemon: that serves nothing older, and the others soon do not either."""
        version = self.web.versions.get(f"/{number}", 0) + 1
        response = self.get(self.d[by], f"{self.site}/{number}", "Content-Length: 0", method="POST")
        self.assertEqual(response.status, 200)
        self.assertGreaterEqual(self.page(by, number), version)
        here = [n for n in range(self.daemons) if self.away[n] % 2 == 0]
        for n in here:
            harness.wait_until(lambda: self.page(n, number) >= version, what="the purge")
        self.oldest[number] = version

    def await_others(self, count):
        self.await_servers(count, [d for n, d in enumerate(self.d) if self.away[n] % 2 == 0])

    def server_comes_and_goes(self, n):
        s = self.s[n]
        s.signal(signal.SIGSTOP)
        self.write(3 * n)
        self.await_others(2)
        self.write(3 * n + 1, 1)
        s.signal(signal.SIGCONT)
        self.write(3 * n, 2)
        self.await_others(3)
        s.kill()
        self.write(3 * n + 2)
        self.await_others(2)
        self.write(3 * n, 3)
        s.start()
        self.write(3 * n + 1)
        self.await_others(3)
        self.write(3 * n + 2, 2)

    def daemon_comes_and_goes(self, n):
        other = (n + 1) % self.daemons
        self.away[n] += 1
        self.d[n].signal(signal.SIGSTOP)
        self.write(3 * n, other)
        self.d[n].signal(signal.SIGCONT)
        # What it has missed, and what follows.
        harness.wait_until(lambda: self.page(n, 3 * n) >= self.oldest[3 * n], what="the purge")
        self.away[n] += 1
        self.write(3 * n + 1, n)
        self.away[n] += 1
        self.d[n].kill()
        self.write(3 * n + 2, other)
        self.d[n] = self.start(n, name=f"daemon{n}.{self.away[n]}")
        self.await_servers(3, [self.d[n]])
        self.away[n] += 1
        self.write(3 * n, n)

    def under_load(self, act, count):
        threads = [threading.Thread(target=self.read, args=(n,)) for n in range(3)]
        for t in threads:
            t.start()
        try:
            for _ in range(self.rounds):
                for n in range(count):
                    act(n)
                    self.assertEqual(self.wrong, [])
        finally:
            self.ends.set()
            for t in threads:
                t.join()
        self.assertEqual(self.wrong, [])
        self.assertGreater(self.answers, 100)
        self.assertGreater(sum(self.stats(d)["shared_reads_hit"] for d in self.d), 0)

    def test_servers(self):
        self.under_load(self.server_comes_and_goes, self.servers)

    def test_daemons(self):
        self.under_load(self.daemon_comes_and_goes, self.daemons)


# A clock that is ahead, for a daemon alone.
SHIM = """
#include <dlfcn.h>
#include <time.h>

int
clock_gettime(clockid_t id, struct timespec *ts)
{
    static int (*next)(clockid_t, struct timespec *);
    int result;

    if (!next)
        next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    result = next(id, ts);
    if (id == CLOCK_REALTIME)
        ts->tv_sec += 3600;
    return result;
}
"""


@unittest.skipUnless(shutil.which("cc"), "there is no compiler for the shim of a clock")
class ClockTest(SharedTest):
    daemons = 2
    servers = 1

    def test_a_daemon_whose_clock_is_ahead_leaves(self):
        program = harness.release_build(harness.RELEASE_SUNPROXYD, harness.SUNPROXYD)
        if program == harness.SUNPROXYD and harness.BUILD.name in ("asan", "tsan"):
            self.skipTest("the shim of a clock needs a build without sanitizers, and there is no release build")
        source, library = self.dir / "shim.c", self.dir / "shim.so"
        source.write_text(SHIM)
        subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        url = self.url("clock")
        self.check(self.get(self.d[0], url), url)
        ahead = self.daemon("--http", "127.0.0.1:0", "--shared", self.s[0].url, "--shared-key-file", self.key,
                            "--purge-net", "127.0.0.0/8", *self.options, origin=self.o, name="ahead",
                            env={"LD_PRELOAD": str(library)}, program=program)
        harness.wait_until(lambda: self.stats(ahead)["shared_clock_differs"], what="the clock")
        self.assertIn("ahead of those of the servers", ahead.err)
        self.check(self.get(ahead, url), url)
        self.assertEqual(self.stats(ahead)["shared_reads_hit"], 0)
        # What it purges is purged, and pages are shared by the others afterwards.
        self.get(ahead, url, method="PURGE")
        harness.wait_until(lambda: all(self.stats(d)["shared_purges_taken"] for d in self.d),
                           what="the purge")
        fetched = len(self.fetched("/clock"))
        for d in self.d:
            self.check(self.get(d, url), url)
        self.assertEqual(len(self.fetched("/clock")), fetched + 1)


class StoreTest(SharedTest):
    daemons = 2
    servers = 1

    def start(self, n, *more, **others):
        return super().start(n, "--store", self.dir / f"store{n}", "--store-size", "16M", *more, **others)

    def await_stored(self, daemon, url):
        """Requests the page until the daemon's store has it."""
        def is_stored():
            self.check(self.get(daemon, url), url)
            return self.stats(daemon)["store_objects"]

        harness.wait_until(is_stored, what="the store")

    def test_a_page_of_the_tier_is_written_to_disk_as_well(self):
        url = self.url("disk")
        self.check(self.get(self.d[0], url), url)
        for _ in range(3):
            self.check(self.get(self.d[1], url), url)
        self.await_stored(self.d[1], url)
        self.assertEqual(len(self.fetched("/disk")), 1)

    def purge_without_a_server(self):
        """Purges at one daemon what all of them have; the number of purges."""
        urls = [self.url(f"untold/{i}") for i in range(3)]
        for url in urls:
            for d in self.d:
                self.check(self.get(d, url), url)
        self.s[0].signal(signal.SIGSTOP)
        self.await_servers(0)
        for url in urls:
            self.assertEqual(self.get(self.d[0], url, method="PURGE").status, 202)
        return len(urls)

    def test_purges_that_no_server_has_are_told_after_the_next_start(self):
        count = self.purge_without_a_server()
        self.d[0].stop()
        self.assertIn("is told by the next daemon that has the store", self.d[0].err)
        kept, = (self.dir / "store0").glob("untold-*")
        self.assertEqual(kept.stat().st_mode & 0o777, 0o600)
        self.s[0].kill()  # and with it what was sent to it
        self.s[0].start()
        self.await_servers(daemons=self.d[1:])
        taken = self.stats(self.d[1])["shared_purges_taken"]
        self.d[0] = self.start(0, name="again")
        harness.wait_until(lambda: self.stats(self.d[1])["shared_purges_taken"] == taken + count, what="them")
        harness.wait_until(lambda: not kept.exists(), what="the end of the file")
        self.d[0].stop()
        self.assertEqual(list((self.dir / "store0").glob("untold-*")), [])

    def test_purges_that_no_server_has_are_told_by_a_successor(self):
        count = self.purge_without_a_server()
        before = len(self.d[0].err)
        self.d[0].signal(signal.SIGUSR2)
        self.assertEqual(self.d[0].wait(), 0)
        pid = int(re.search(r"process (\d+) serves; this one ends", self.d[0].err[before:])[1])
        self.addCleanup(self.end_successor, pid)
        taken = self.stats(self.d[1])["shared_purges_taken"]
        self.s[0].kill()  # and with it what was sent to it
        self.s[0].start()
        harness.wait_until(lambda: self.stats(self.d[1])["shared_purges_taken"] == taken + count, what="them")
        harness.wait_until(lambda: not list((self.dir / "store0").glob("untold-*")), what="the end of the file")

    @staticmethod
    def end_successor(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        harness.wait_until(lambda: not os.path.exists(f"/proc/{pid}"), what="its end")

    def test_purges_of_others_hold_on_disk(self):
        url = self.url("purged")
        for _ in range(3):
            for d in self.d:
                self.check(self.get(d, url), url)
        for d in self.d:
            self.await_stored(d, url)
        self.d[1].stop()
        self.get(self.d[0], url, method="PURGE")
        self.d[1] = self.start(1, name="again")
        self.await_servers()
        self.check(self.get(self.d[1], url), url)
        self.assertEqual(len(self.fetched("/purged")), 2)


class ReloadTest(SharedTest):
    daemons = 1
    servers = 1

    def test_keys_are_replaced_and_servers_are_not(self):
        config, key = self.dir / "sunproxyd.conf", self.dir / "own.key"
        key.write_text(f"{KEY}\n")
        key.chmod(0o600)
        config.write_text(f"shared = {self.s[0].url}\nshared-key-file = {key}\nshared-poll = 50ms\n")
        other = self.daemon("--http", "127.0.0.1:0", "--config", config, origin=self.o, name="other")
        self.await_servers(daemons=[other])
        for number, keys, hits in ((1, "another key of sixteen bytes\n", False),
                                   (2, f"{KEY}\na third key of sixteen bytes\n", True)):
            key.write_text(keys)
            other.signal(signal.SIGHUP)
            harness.wait_until(lambda: other.err.count("changed: shared-key-file") == number, what="the key")
            if hits:
                self.await_servers(daemons=[other])
            url = self.url(f"keys/{number}")
            self.check(self.get(self.d[0], url), url)
            response = self.get(other, url)
            self.check(response, url)
            self.assertEqual(http_front.is_hit(response), hits)
        config.write_text(config.read_text() + "shared-wait = 5s\n")
        other.signal(signal.SIGHUP)
        harness.wait_until(lambda: "changed by a restart only: shared-wait" in other.err, what="the reload")


@unittest.skipUnless(MEMCACHED, "memcached is not installed")
class OptionsTest(harness.SystemTest):
    def test_what_is_refused(self):
        key = self.dir / "key"
        key.write_text(f"{KEY}\n")
        key.chmod(0o600)
        server = "memcached://127.0.0.1:1"
        for options, sentence in (
                (("--shared", server), "it needs shared-key-file"),
                (("--shared", "http://a:1", "--shared-key-file", key), "a server is memcached://HOST"),
                (("--shared", f"{server},{server}", "--shared-key-file", key), "twice"),
                (("--shared", "memcached://a:0", "--shared-key-file", key), "the port of a server"),
                (("--shared", server, "--shared-key-file", "/nonexistent"), "cannot read"),
                (("--shared", server, "--shared-key-file", key, "--freshness", "off"), "freshness")):
            done = self.run_daemon("--check-config", "--http", "127.0.0.1:0", *options)
            self.assertEqual(done.returncode, 78, options)
            self.assertIn(sentence, done.stderr.decode())
        done = self.run_daemon("--check-config", "--shared", "memcached://name.invalid:1",
                               "--shared-key-file", key)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"shared: name.invalid cannot be resolved: ", done.stderr)
