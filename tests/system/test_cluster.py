"""Daemons that are each other's peers: what they share, and what they refuse."""

import contextlib
import hashlib
import hmac
import json
import os
import re
import signal
import socket
import struct
import threading
import time

import harness
import http_front
from ports import free_port
from test_reverse import Member

KEY = "a key of more than sixteen bytes"


class ClusterTest(harness.SystemTest):
    daemons = 4
    options = ()

    def setUp(self):
        super().setUp()
        self.o = self.origin()
        self.key = self.dir / "peer.key"
        self.key.write_text(f"# shared\n{KEY}\n")
        self.key.chmod(0o600)
        self.ports = [free_port() for _ in range(self.daemons)]
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]
        self.d = [self.start(n) for n in range(self.daemons)]
        self.c = [self.connect(n) for n in range(self.daemons)]
        self.await_peers()

    def await_peers(self):
        """Until each daemon has told each other one that it is there."""
        harness.wait_until(lambda: all(m["state"] in ("up", "this daemon")
                                       for n, d in enumerate(self.d) if d.running()
                                       for m in self.members(n)
                                       if self.d[self.urls.index(m["member"])].running()),
                           what="the peers")

    def members(self, n):
        return [m for m in json.loads(self.sunproxy("origin", "--json", daemon=self.d[n]).stdout)
                if m["row"] == "peers"]

    def start(self, n, *more, name=None):
        return self.daemon("--http", f"127.0.0.1:{self.ports[n]}", "--peers", ",".join(self.urls),
                           "--peer-key-file", self.key, *self.options, *more, origin=self.o,
                           name=name or f"daemon{n}")

    def connect(self, n):
        connection = http_front.Connection(("127.0.0.1", self.ports[n]))
        self.addCleanup(connection.close)
        return connection

    def fetched(self, part):
        """Requests at the origin whose path contains the text."""
        return [r for r in self.o.requests() if part in r[2]]

    def get(self, n, url, *lines):
        response = self.c[n].get(url, *lines)
        while response.status < 200:
            response = self.c[n].receive()
        return response

    def owner(self, url):
        """The number of the daemon that owns a URL."""
        for n, d in enumerate(self.d):
            if d.running():
                told = self.sunproxy("explain", url, daemon=d).stdout.decode()
                peer = next(line for line in told.splitlines() if line.startswith("peer"))
                return self.urls.index(peer.split()[1].rstrip(","))
        raise AssertionError("no daemon runs")

    def url_of(self, n, begin, stored=True):
        """A URL that the daemon of this number owns."""
        for i in range(1000):
            url = f"http://a.test/{begin}/{i}?fault=size:3000"
            url = http_front.stored(url) if stored else url
            if self.owner(url) == n:
                return url
        raise AssertionError("it owns nothing")

    def is_up(self, n, peer):
        return self.members(n)[peer]["state"] == "up"

    def take_over(self, n):
        """A new process takes the place of a daemon; its number."""
        first = self.d[n]
        first.signal(signal.SIGUSR2)
        self.assertEqual(first.wait(), 0)
        pid, = map(int, re.findall(r"process (\d+) serves; this one ends", first.err))
        self.addCleanup(self.end_process, pid)
        other = (n + 1) % self.daemons
        harness.wait_until(lambda: self.is_up(other, n), what="the new process")
        return pid

    @staticmethod
    def end_process(pid):
        os.kill(pid, signal.SIGTERM)
        harness.wait_until(lambda: not os.path.exists(f"/proc/{pid}"), what="its end")

    def check(self, response, url, status=200):
        self.assertEqual(response.status, status, response.body)
        self.assertTrue(response.whole)
        self.assertEqual(response.body, harness.origin_text(url, len(response.body)))


class SharingTest(ClusterTest):
    def test_each_url_is_fetched_once_by_all_of_them(self):
        for i in range(20):
            url = http_front.stored(f"http://a.test/shared/{i}?fault=size:3000")
            for n in range(self.daemons):
                self.check(self.get(n, url), url)
        self.assertEqual(len(self.fetched("/shared/")), 20)
        for d in self.d:
            self.assertNotIn("refused", d.err)

    def test_a_daemon_keeps_what_it_asks_for_often(self):
        url = self.url_of(2, "hot")
        for times in range(5):
            response = self.get(0, url)
            self.check(response, url)
            status = response.field("Cache-Status").split(", sunproxy")[-1]
            self.assertEqual("at-peer" in status, times < 2, status)
        members = self.members(0)
        self.assertEqual([m["requests"] for m in members], [0, 0, 3, 0])
        self.assertTrue(http_front.is_hit(response) or "hit" in status)
        self.assertEqual(len(self.fetched("/hot/")), 1)

    def test_https_is_fetched_once_as_well(self):
        url = http_front.stored("https://a.test/tls?fault=size:3000")
        for n in range(self.daemons):
            self.check(self.get(n, url), url)
        self.assertEqual([r[0] for r in self.fetched("/tls")], ["https"])

    def test_a_response_keeps_its_age_and_its_validators(self):
        url = http_front.stored("http://a.test/old?fault=size:100&fault=header:ETag%3a%20%22v1%22")
        first = self.owner(url)
        self.get(first, url)
        time.sleep(1.1)
        other = (first + 1) % self.daemons
        response = self.get(other, url)
        self.assertGreaterEqual(int(response.field("Age")), 1)
        self.assertEqual(response.field("ETag"), '"v1"')
        self.assertIsNone(response.field("Proxy-Peer"))
        self.assertEqual(self.get(other, url, 'If-None-Match: "v1"').status, 304)
        for _ in range(3):
            self.get(other, url)
        self.assertEqual(self.get(other, url, 'If-None-Match: "v1"').status, 304)
        self.assertEqual(len(self.fetched("/old")), 1)

    def test_what_concerns_a_client_goes_to_no_peer(self):
        url = self.url_of(0, "user", stored=False)
        for lines in (["Cookie: a=b"], ["Authorization: Basic YTpi"], ["Cache-Control: no-store"]):
            before = len(self.fetched("/user/"))
            self.check(self.get(1, url, *lines), url)
            self.assertEqual(len(self.fetched("/user/")), before + 1)
        self.assertEqual(self.c[1].get(url, method="HEAD").status, 200)
        self.c[1].send(f"POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        self.assertEqual(self.c[1].receive().status, 200)
        listed = self.members(1)
        self.assertEqual(sum(m["requests"] for m in listed), 0, listed)

    def test_peers_are_listed(self):
        url = self.url_of(2, "listed")
        self.check(self.get(0, url), url)
        members = self.members(0)
        self.assertEqual([m["member"] for m in members], self.urls)
        self.assertEqual(members[0]["state"], "this daemon")
        self.assertEqual([m["requests"] for m in members], [0, 0, 1, 0])
        self.assertEqual(members[2]["state"], "up")
        stat = json.loads(self.sunproxy("stat", "--json", daemon=self.d[0]).stdout)
        self.assertIn(self.urls[2], json.dumps(stat))

    def test_a_reload_changes_keys_and_peers(self):
        config = self.dir / "reloaded.conf"
        common = (f"http = 127.0.0.1:{self.ports[3]}\nallow-net = 127.0.0.0/8\n"
                  f"connect-to = :80:127.0.0.1:{self.o.http_port}\n")
        config.write_text(common)
        self.d[3].stop()
        self.d[3] = self.daemon("--config", config, name="reloaded")
        self.assertEqual(self.members(3), [])
        key = self.dir / "reloaded.key"
        key.write_text("another key of sixteen bytes\n" + KEY)
        key.chmod(0o600)
        config.write_text(f"{common}peers = {','.join(self.urls)}\npeer-key-file = {key}\n")
        self.d[3].signal(signal.SIGHUP)
        harness.wait_until(lambda: "the configuration was read again" in self.d[3].err, what="it")
        self.assertIn("changed: peers, peer-key-file", self.d[3].err)
        # It sends with a key that the others do not have yet, and they are asked all the same.
        harness.wait_until(lambda: self.members(0)[3]["state"] == "up", what="the new peer")
        url = self.url_of(3, "reloaded")
        self.check(self.get(0, url), url)
        self.assertEqual(self.members(0)[3]["requests"], 1)
        key.write_text(KEY)
        self.d[3].signal(signal.SIGHUP)
        harness.wait_until(lambda: "changed: peer-key-file" in self.d[3].err, what="the key")
        harness.wait_until(lambda: self.members(3)[0]["state"] == "up", what="the peers")


class CountTest(ClusterTest):
    """What the origin is asked for, with other numbers of daemons, with peers and without."""

    daemons = 8
    urls_asked = 24

    def ask_all(self, begin):
        """Each URL at some daemons, in an order of its own; what the origin was asked for."""
        urls = [http_front.stored(f"http://a.test/{begin}/{i}?fault=size:300") for i in range(self.urls_asked)]
        for turn in range(4):
            for i, url in enumerate(urls):
                n = (i * 5 + turn * 3) % self.daemons
                self.check(self.get(n, url), url)
        return len(self.fetched(f"/{begin}/"))

    def test_each_url_is_fetched_once_whatever_their_number(self):
        self.assertEqual(self.ask_all("peers"), self.urls_asked)


class TwoTest(CountTest):
    daemons = 2


class OneTest(CountTest):
    daemons = 1


class NoPeersTest(CountTest):
    def start(self, n, *more, name=None):
        return self.daemon("--http", f"127.0.0.1:{self.ports[n]}", *more, origin=self.o, name=f"daemon{n}")

    def test_each_url_is_fetched_once_whatever_their_number(self):
        """Alone each fetches it for itself: four of them have been asked."""
        self.assertEqual(self.ask_all("alone"), 4 * self.urls_asked)


class ReverseTest(ClusterTest):
    daemons = 2

    def setUp(self):
        self.member = Member(self)
        self.options = ("--origin", f"/={self.member.url}")
        super().setUp()

    def test_a_peer_is_no_client(self):
        """The origin may let in the address of the peer that asks, where it does not the client's."""
        for n in range(20):
            self.assertEqual(self.get(0, f"http://site.test/{n}").status, 200)
        stated = {head[1]: head[2]["X-Forwarded-For"] for head in self.member.heads}
        self.assertEqual(set(stated.values()), {"127.0.0.1", "unknown"}, stated)
        self.assertEqual(sum(m["requests"] for m in self.members(0)),
                         list(stated.values()).count("unknown"))

    def test_what_is_validated_each_time_is_sent_once(self):
        """Those that follow at once ask the owner as well, and are answered by what it has."""
        self.member.fields = [("Cache-Control", "no-cache"), ("ETag", '"a"')]
        self.member.confirming = self.member.fields
        for i in range(8):
            url = f"http://site.test/validated/{i}"
            for n in (0, 0, 1, 0, 1, 1, 0, 1):
                self.assertEqual(self.get(n, url).status, 200)
        sent = [head[1] for head in self.member.heads if "If-None-Match" not in head[2]]
        self.assertEqual(sorted(sent), sorted(set(sent)))


class PermissionTest(ClusterTest):
    daemons = 2

    def start(self, n, *more, name=None):
        allowed = ["--allow-net", "127.0.0.0/8", "--allow-port", "any"] if n else []
        return self.daemon("--http", f"127.0.0.1:{self.ports[n]}", "--peers", ",".join(self.urls),
                           "--peer-key-file", self.key, *allowed)

    def test_what_is_not_allowed_here_is_not_asked_for_elsewhere(self):
        member = Member(self)
        for n in range(20):
            self.assertEqual(self.get(0, f"{member.url}/{n}").status, 403)
        self.assertEqual(self.get(1, f"{member.url}/here").status, 200)
        self.assertEqual(len(member.heads), 1)


class MeaningTest(ClusterTest):
    """What a daemon stores of a peer's response is what it would store of the origin's."""
    daemons = 2
    options = ("--purge-net", "127.0.0.0/8",
               "--rule", "path=/ruled/*; set-response-field=Cache-Control: no-store; lifetime=1h",
               "--rule", "path=/tagged/*; remove-response-field=Surrogate-Key",
               "--rule", "path=/life/*; lifetime=100s")

    def stored_at(self, n, url, *lines):
        return self.get(n, url, "Cache-Control: only-if-cached", *lines).status == 200

    def test_rules_judge_what_the_origin_has_said(self):
        url = self.url_of(0, "ruled")
        for n in (1, 1, 1, 1, 0):
            response = self.get(n, url)
            self.check(response, url)
            self.assertEqual(response.field("Cache-Control"), "no-store")
            self.assertIsNone(response.field("Cache-Origin-Control"))
        self.assertEqual(len(self.fetched("/ruled/")), 1)
        self.assertTrue(self.stored_at(1, url))

    def test_the_lifetime_of_a_rule_counts_once(self):
        url = self.url_of(1, "life")
        self.check(self.get(1, url), url)
        time.sleep(1.1)
        for _ in range(4):
            response = self.get(0, url)
        ttl = re.search(r"ttl=(\d+)$", response.field("Cache-Status"))
        self.assertTrue(ttl and int(ttl.group(1)) < 100, response.field("Cache-Status"))

    def test_tags_that_a_rule_removes(self):
        url = self.url_of(0, "tagged", stored=False) + (
            "&fault=header:Surrogate-Key%3a%20one%20two"
            "&fault=header:Cache-Control%3a%20max-age%3d60")
        if self.owner(url) == 1:
            self.urls.reverse(), self.c.reverse(), self.d.reverse()
        for _ in range(3):
            self.assertIsNone(self.get(1, url).field("Surrogate-Key"))
        self.assertTrue(self.stored_at(1, url))
        response = self.c[1].get("http://a.test/", "Surrogate-Key: two", method="PURGE")
        self.assertEqual(response.status, 200)
        self.assertFalse(self.stored_at(1, url))

    def test_variants(self):
        url = self.url_of(0, "vary", stored=False) + (
            "&fault=header:Vary%3a%20Accept-Language&fault=header:Cache-Control%3a%20max-age%3d60")
        for _ in range(2):
            for n in (1, 0):
                for language in ("de", "en"):
                    self.get(n, url, f"Accept-Language: {language}")
        self.assertEqual(len(self.fetched("/vary/")), 2)


class PurgeTest(ClusterTest):
    options = ("--purge-net", "127.0.0.0/8")

    def fill(self, path, headers="Cache-Control%3a%20max-age%3d600"):
        """A URL that all of them have stored."""
        url = f"http://a.test{path}?fault=size:300&fault=header:{headers}"
        for n in list(range(self.daemons)) * 4:
            self.assertEqual(self.get(n, url).status, 200)
        return url

    def stored(self, url):
        """The daemons that have it, fresh."""
        return [n for n in range(self.daemons)
                if self.get(n, url, "Cache-Control: only-if-cached").status == 200]

    def purge(self, n, url, *lines):
        return self.c[n].get(url, *lines, method="PURGE")

    def test_a_url(self):
        url, other = self.fill("/one"), self.fill("/two")
        self.assertEqual(self.stored(url), [0, 1, 2, 3])
        self.assertEqual(self.purge(1, url).status, 200)
        self.assertEqual(self.stored(url), [])
        self.assertEqual(self.stored(other), [0, 1, 2, 3])

    def test_a_prefix_a_tag_and_all(self):
        url = self.fill("/tagged", "Cache-Tag%3a%20first%20second"
                        "&fault=header:Cache-Control%3a%20max-age%3d600")
        self.purge(2, "http://a.test/", "Cache-Tag: none")
        self.assertEqual(self.stored(url), [0, 1, 2, 3])
        self.purge(2, "http://a.test/", "Cache-Tag: second")
        self.assertEqual(self.stored(url), [])
        url = self.fill("/below/x")
        self.purge(3, "http://a.test/below/", "Purge: prefix")
        self.assertEqual(self.stored(url), [])
        url = self.fill("/all")
        self.sunproxy("purge", "--all", daemon=self.d[0])
        self.assertEqual(self.stored(url), [])

    def test_by_rpc_and_softly(self):
        url = self.fill("/rpc")
        self.sunproxy("purge", url, daemon=self.d[3])
        self.assertEqual(self.stored(url), [])
        url = self.fill("/soft")
        before = len(self.fetched("/soft"))
        self.purge(1, url, "Purge: soft")
        self.assertEqual(self.stored(url), [])
        for n in range(self.daemons):
            self.get(n, url)
        self.assertGreater(len(self.fetched("/soft")), before)

    def test_a_write(self):
        for n in range(self.daemons):
            url = self.fill(f"/write/{n}")
            self.c[n].send(f"POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
            self.assertEqual(self.c[n].receive().status, 200)
            self.assertEqual(self.stored(url), [])

    def test_a_write_concerns_tags_that_the_owner_knows(self):
        tagged = ("?fault=header:Cache-Tag%3a%20shared"
                  "&fault=header:Cache-Control%3a%20max-age%3d600")
        i, url = 0, ""
        while not url or self.owner(url) != 2:
            i, url = i + 1, f"http://a.test/owned/{i}{tagged}"
        self.get(0, url)
        other = self.fill("/shares", tagged[14:])
        self.assertEqual(self.stored(other), [0, 1, 2, 3])
        self.c[0].send(f"POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        self.assertEqual(self.c[0].receive().status, 200)
        self.assertEqual(self.stored(other), [])

    def test_news_are_counted(self):
        url = self.fill("/counted")
        before = [self.stat(d) for d in self.d]
        self.assertEqual([s["peers_reached"] for s in before], [3] * 4)
        self.purge(0, url)
        self.d[3].kill()
        self.purge(0, url)
        after = [self.stat(d) for d in self.d[:3]]
        self.assertEqual([a["peer_news_told"] - b["peer_news_told"] for a, b in zip(after, before)], [2, 0, 0])
        # Told twice each.
        self.assertEqual([a["peer_news_taken"] - b["peer_news_taken"] for a, b in zip(after, before)], [0, 4, 4])
        self.assertGreater(after[0]["peer_news_lost"], before[0]["peer_news_lost"])
        self.assertEqual(after[0]["peers_reached"], 2)
        missed = after[1]["peer_news_missed"]
        self.d[3] = self.start(3, name="counted")
        harness.wait_until(lambda: self.stat(self.d[1])["peer_news_missed"] == missed + 1, what="the start")

    def test_a_restart_makes_others_validate_only_if_it_was_no_end(self):
        url = self.fill("/restarted")
        self.d[1].stop()
        self.d[1] = self.start(1, name="again")
        self.await_peers()
        self.c[1] = self.connect(1)
        self.assertEqual([n for n in self.stored(url) if n != 1], [0, 2, 3])
        self.d[1].kill()
        self.d[1] = self.start(1, name="killed")
        self.c[1] = self.connect(1)
        harness.wait_until(lambda: not self.stored(url), what="the news")

    def test_a_peer_that_missed_news_validates_first(self):
        url, other = self.fill("/missed"), self.fill("/kept")
        before = self.missed()
        self.d[3].signal(signal.SIGSTOP)
        try:
            begun = time.monotonic()
            self.assertEqual(self.purge(0, url).status, 200)
            self.assertLess(time.monotonic() - begun, 10)
            self.assertNotIn("up", [m["state"] for m in self.members(0)
                                    if m["member"] == self.urls[3]])
        finally:
            self.d[3].signal(signal.SIGCONT)
        harness.wait_until(lambda: 3 not in self.stored(url), what="the news")
        # The news that it has got late is followed by what the others know of it.
        harness.wait_until(lambda: 3 not in self.stored(other), what="the validation")
        self.await_peers()
        # On a busy machine others may have missed something as well.
        self.assertEqual(self.stored(other), [n for n, missed in enumerate(self.missed()) if missed == before[n]])

    def missed(self):
        """How often each of them has missed news."""
        return [self.stat(d)["peer_news_missed"] for d in self.d]


class StoreTest(ClusterTest):
    """Each daemon has a store of its own, which it keeps over its ends."""

    daemons = 3

    def setUp(self):
        self.member = Member(self)
        self.member.fields = [("Cache-Control", "max-age=600"), ("ETag", '"a"'), ("Cache-Tag", "red")]
        self.member.confirming = [("Cache-Control", "max-age=600"), ("ETag", '"a"')]
        self.options = ("--purge-net", "127.0.0.0/8", "--store-size", "16M", "--store-admit", "all",
                        "--origin", f"/={self.member.url}")
        super().setUp()

    def start(self, n, *more, name=None):
        d = super().start(n, "--store", self.dir / f"store{n}", *more, name=name)
        harness.wait_until(lambda: self.stat(d)["store_loaded"] == 1, what="the index")
        return d

    def again(self, n, name):
        self.d[n] = self.start(n, name=name)
        self.c[n] = self.connect(n)

    def ask(self, n, path):
        """Whether it was a hit, and what the origin was asked meanwhile: fields If-None-Match."""
        before = len(self.member.heads)
        response = self.get(n, f"http://site.test{path}")
        self.assertEqual((response.status, response.body), (200, f"GET site.test{path} ".encode()))
        status = response.field("Cache-Status").split(", sunproxy")[-1]
        asked = [fields.get("If-None-Match") for _, _, fields in self.member.heads[before:]]
        return "; hit" in status, asked

    def fill(self, *paths):
        """All of them have these on disk."""
        for path in paths:
            for n in list(range(self.daemons)) * 4:
                self.ask(n, path)
            for n in range(self.daemons):
                harness.wait_until(lambda: self.shown(n, path), what="a page on disk")

    def shown(self, n, path):
        """What the files of a daemon have of a URL that a request would get."""
        done = self.sunproxy("store", "list", "--json", "--socket", self.d[n].socket, self.dir / f"store{n}")
        return [row for row in map(json.loads, done.stdout.splitlines())
                if row["url"] == f"http://site.test{path}"]

    def has_fresh(self, n, path):
        return self.get(n, f"http://site.test{path}", "Cache-Control: only-if-cached").status == 200

    def forget(self, n):
        """Has a daemon have nothing in memory."""
        for policy in ("none", "lru"):
            self.sunproxy("set", "--policy", policy, daemon=self.d[n])

    def purge(self, n, path, *lines):
        self.assertEqual(self.c[n].get(f"http://site.test{path}", *lines, method="PURGE").status, 200)

    def write(self, n, path):
        self.c[n].send(f"POST http://site.test{path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        self.assertEqual(self.c[n].receive().status, 200)

    def test_what_was_purged_while_one_was_down(self):
        ways = {"/one": lambda: self.purge(0, "/one"),
                "/prefix/two": lambda: self.purge(1, "/prefix/", "Purge: prefix"),
                "/soft": lambda: self.purge(0, "/soft", "Purge: soft"),
                "/written": lambda: self.write(1, "/written"),
                "/tagged": lambda: self.purge(0, "/", "Cache-Tag: red")}
        self.fill(*ways)
        for number, (path, purge) in enumerate(ways.items()):
            # Ended, or killed, in turns.
            self.d[2].stop() if number % 2 else self.d[2].kill()
            purge()
            for n in (0, 1):
                self.assertFalse(self.has_fresh(n, path), (path, n))
            self.again(2, f"again{number}")
            hit, asked = self.ask(2, path)
            self.assertEqual((hit, len(asked)), (False, 1), path)
            self.await_peers()

    def test_one_that_starts_alone_validates_what_is_on_disk(self):
        self.fill("/alone")
        self.d[2].kill()
        self.purge(0, "/alone")
        for n in (0, 1):
            self.d[n].kill()
        self.again(2, "alone")
        self.assertEqual(self.ask(2, "/alone"), (False, ['"a"']))
        # From then on it is a hit, also from disk.
        self.assertEqual(self.ask(2, "/alone"), (True, []))
        self.forget(2)
        self.assertEqual(self.ask(2, "/alone"), (True, []))

    def test_a_purge_holds_over_a_kill_right_behind_its_answer(self):
        for number in range(3):
            path, kept = f"/killed/{number}", f"/kept/{number}"
            self.fill(path, kept)
            self.purge(number, path)
            for n in range(self.daemons):
                self.d[n].kill()
            for n in range(self.daemons):
                self.assertEqual(self.shown(n, path), [], n)
                self.assertNotEqual(self.shown(n, kept), [], n)
            for n in range(self.daemons):
                self.again(n, f"killed{number}-{n}")
            self.await_peers()
            self.assertEqual(self.ask(number, path), (False, [None]))

    def test_pages_on_disk_outlive_all_of_them(self):
        self.fill("/outlives")
        for n in range(self.daemons):
            self.d[n].stop()
        for n in range(self.daemons):
            self.again(n, f"again{n}")
        self.await_peers()
        # None is sent the body again.
        asked = sum((self.ask(n, "/outlives")[1] for n in range(self.daemons)), [])
        self.assertEqual(set(asked), {'"a"'})

    def test_one_that_takes_over_has_the_store(self):
        self.fill("/taken", "/kept")
        self.take_over(2)
        harness.wait_until(lambda: self.stat(self.d[2])["store_loaded"] == 1, what="the store")
        self.c[2] = self.connect(2)
        self.purge(0, "/taken")
        self.assertEqual(self.shown(2, "/taken"), [])
        self.assertEqual(self.ask(2, "/kept"), (False, ['"a"']))
        self.assertEqual(self.ask(2, "/kept"), (True, []))

    def test_a_page_is_read_from_the_disk_of_its_owner(self):
        paths = [f"/owned/{i}" for i in range(12)]
        for path in paths:
            self.ask(0, path)
            self.ask(0, path)
        asked = len(self.member.heads)
        self.assertEqual(asked, len(paths))
        harness.wait_until(lambda: all(any(self.shown(n, path) for n in range(self.daemons)) for path in paths),
                           what="pages on disk")
        for n in range(self.daemons):
            self.forget(n)
        for path in paths:
            self.ask(1, path)
        self.assertEqual(len(self.member.heads), asked)


class FairnessTest(ClusterTest):
    """A client that floods one daemon does not use up at an owner what that daemon's others get there."""

    daemons = 2
    options = ("--max-fetches", "64", "--max-fetches-waiting", "32", "--max-fetches-per-client", "4",
               "--max-fetches-per-origin", "32")

    def ask_from(self, source, url):
        s = socket.create_connection(("127.0.0.1", self.ports[0]), 60, (source, 0))
        self.addCleanup(s.close)
        s.sendall(f"GET {url} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return s

    def owned(self, begin, count, host, faults):
        urls = (http_front.stored(f"http://{host}/{begin}/{i}{faults}") for i in range(10000))
        return [url for url, _ in zip((url for url in urls if self.owner(url) == 1), range(count))]

    def test_of_the_clients_of_one_daemon(self):
        for url in self.owned("hangs", 12, "slow.test", "?fault=hang-silent"):
            self.ask_from("127.0.0.2", url)
        harness.wait_until(lambda: self.stat(self.d[1])["fetches_queued"] == 8, what="the flood")
        for source in ("127.0.0.3", "127.0.0.4"):
            url, = self.owned(source, 1, "fast.test", "?fault=size:3000")
            s = self.ask_from(source, url)
            self.assertTrue(s.recv(100).startswith(b"HTTP/1.1"), source)
        self.assertEqual(self.stat(self.d[1])["fetches_queued"], 8)


class ClusterLoadTest(ClusterTest):
    """An owner ends, stops or starts again: no wrong byte, and no failure that is not the origin's."""

    seconds = 30
    options = ("--purge-net", "127.0.0.0/8")

    def load(self, clients, until, paths, left=3):
        """Clients that ask the daemons but one, and verify each byte; (requests, what was wrong)."""
        done, wrong, lock = [0], [], threading.Lock()
        ports = [port for n, port in enumerate(self.ports) if n != left]

        def work(number):
            c = http_front.Connection(("127.0.0.1", ports[number % 3]))
            with contextlib.closing(c):
                n = 0
                while not until.is_set():
                    size = 1 + n % paths * 2311
                    url = http_front.stored(f"http://a.test/load/{left}-{number}/{n // 200}?fault=size:{size}"
                                            "&fault=header:ETag%3a%20%22a%22")
                    response = c.get(url)
                    bad = (response.status != 200 or not response.whole or
                           response.body != harness.origin_text(url, size))
                    with lock:
                        done[0] += 1
                        if bad:
                            wrong.append((url, response.status, response.whole, response.body[:60]))
                    n += 1

        threads = [threading.Thread(target=work, args=(n,)) for n in range(clients)]
        for t in threads:
            t.start()
        return threads, done, wrong

    def under_load(self, act, left=3):
        until = threading.Event()
        threads, done, wrong = self.load(3, until, 40, left)
        try:
            harness.wait_until(lambda: done[0] > 100, what="the load")
            act()
            before = done[0]
            harness.wait_until(lambda: done[0] > before + 200, what="the load")
        finally:
            until.set()
            for t in threads:
                t.join()
        self.assertEqual(wrong, [])

    def each(self, n):
        """This daemon, and in the long form each of them."""
        return range(self.daemons) if harness.LONG else (n,)

    def stop_for_a_while(self, n):
        other = (n + 1) % self.daemons
        self.d[n].signal(signal.SIGSTOP)
        try:
            harness.wait_until(lambda: not self.is_up(other, n), what="the failure")
        finally:
            self.d[n].signal(signal.SIGCONT)
        harness.wait_until(lambda: self.is_up(other, n), what="the return")

    def start_again(self, n, end):
        other = (n + 1) % self.daemons
        end()
        harness.wait_until(lambda: not self.is_up(other, n), what="the failure")
        self.d[n] = self.start(n, name=f"again{n}")
        harness.wait_until(lambda: self.is_up(other, n), what="the return")

    def test_one_is_killed_and_started_again(self):
        for n in self.each(0):
            self.under_load(lambda: self.start_again(n, self.d[n].kill), n)

    def test_one_is_stopped_and_goes_on(self):
        for n in self.each(1):
            self.under_load(lambda: self.stop_for_a_while(n), n)

    def test_one_ends_and_is_started_again(self):
        for n in self.each(2):
            self.under_load(lambda: self.start_again(n, self.d[n].stop), n)

    def test_one_is_replaced(self):
        for n in self.each(3):
            self.under_load(lambda: self.take_over(n), n)

    def test_purges_reach_a_process_that_has_taken_over_and_come_from_it(self):
        urls = [http_front.stored(f"http://a.test/taken/{i}?fault=size:300") for i in range(2)]
        for url in urls:
            for n in list(range(self.daemons)) * 4:
                self.assertEqual(self.get(n, url).status, 200)
        self.take_over(3)
        self.c[3] = self.connect(3)
        for purger, url in zip((0, 3), urls):
            self.check(self.get(3, url), url)
            # The purger itself may have nothing of it.
            self.assertIn(self.c[purger].get(url, method="PURGE").status, (200, 404))
            for n in range(self.daemons):
                self.assertNotEqual(self.get(n, url, "Cache-Control: only-if-cached").status, 200, (purger, n))

    def broken_off(self, act, validator="ETag%3a%20%22one%22", later=""):
        """A long response whose owner fails in its middle."""
        i, url = 0, ""
        while not url or self.owner(url) != 3:
            url = (f"http://a.test/long/{i}?fault=size:20000000&fault=header:{validator}"
                   f"&fault=header:Cache-Control%3a%20max-age%3d60{later}")
            i += 1
        self.c[0].socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        self.c[0].send(f"GET {url} HTTP/1.1\r\nHost: x\r\n\r\n")
        harness.wait_until(lambda: self.members(0)[3]["requests"], what="the request")
        time.sleep(0.3)
        act()
        response = self.c[0].receive()
        while response.status < 200:
            response = self.c[0].receive()
        return url, response

    def test_a_response_goes_on_where_its_owner_broke_off(self):
        url, response = self.broken_off(self.d[3].kill)
        self.assertEqual(len(response.body), 20000000, self.d[0].err)
        self.check(response, url)
        self.assertEqual(len(self.fetched("/long/")), 2)

    def test_a_response_goes_on_where_its_owner_stopped(self):
        try:
            url, response = self.broken_off(lambda: self.d[3].signal(signal.SIGSTOP))
        finally:
            self.d[3].signal(signal.SIGCONT)
        self.assertEqual(len(response.body), 20000000)
        self.check(response, url)

    def test_another_response_does_not_go_on(self):
        _, response = self.broken_off(self.d[3].kill, later="&fault=later:header:ETag%3a%20%22two%22",
                                      validator="A%3a%20b")
        self.assertFalse(response.whole)


class ReplacedTest(ClusterTest):
    """A daemon that another process replaces, which serves on until its connections have ended."""

    daemons = 3
    options = ("--purge-net", "127.0.0.0/8")

    def fill(self, path):
        url = http_front.stored(f"http://a.test{path}?fault=size:300")
        for n in list(range(self.daemons)) * 4:
            self.check(self.get(n, url), url)
        return url

    def test_nothing_has_failed(self):
        for i in range(20):
            self.fill(f"/kept/{i}")
        logged = [len(d.err) for d in self.d]
        self.take_over(2)
        # The successor, whose log is that of the first process, was heard of by the others.
        self.await_peers()
        lines = [line for d, before in zip(self.d, logged) for line in d.err[before:].splitlines()
                 if re.search("is down|is up|left for|claims to be|refuse|fetch from", line)]
        self.assertEqual(lines, [])

    def test_what_the_first_process_purges_is_told(self):
        url = self.fill("/purged")
        held = self.connect(2)
        held.send(f"PURGE {url} HTTP/1.1\r\nHost: x\r\n")  # its end is to come
        harness.wait_until(lambda: self.stat(self.d[2])["connections"] >= 2, what="the connection")
        self.d[2].signal(signal.SIGUSR2)
        harness.wait_until(lambda: "this one ends" in self.d[2].err, what="the successor")
        pid, = map(int, re.findall(r"process (\d+) serves; this one ends", self.d[2].err))
        self.addCleanup(self.end_process, pid)
        # Both have been heard of.
        harness.wait_until(lambda: all(self.stat(self.d[n])["peer_news_missed"] for n in (0, 1)),
                           what="the successor")
        for n in (0, 1):
            self.check(self.get(n, url), url)
        held.send("\r\n")
        self.assertEqual(held.receive().status, 200)
        for n in (0, 1):
            self.assertEqual(self.get(n, url, "Cache-Control: only-if-cached").status, 504)
        self.assertEqual(self.d[2].wait(), 0)


class BlameTest(ClusterTest):
    """A peer is not left for what a client or an origin does."""

    daemons = 2
    options = ("--first-byte-timeout", "2s", "--stall-timeout", "1s")

    def test_a_slow_origin(self):
        url = self.url_of(1, "slow", stored=False).replace("fault=size", "fault=delay:30000&fault=size")
        self.assertEqual(self.get(0, url).status, 504)
        self.assertNotIn("left for", self.d[0].err)

    def test_a_head_that_is_too_long_with_what_the_daemon_adds(self):
        url = self.url_of(1, "long")
        for count in range(190, 201):
            self.get(0, url, *(f"X-{n}: a" for n in range(count)))
        self.assertNotIn("left for", self.d[0].err)


class ChainTest(ClusterTest):
    """Daemons behind daemons: each cluster fetches a page once from the other, and nothing goes round."""

    daemons = 4

    def setUp(self):
        super().setUp()
        self.inner = self.ports
        self.outer = [free_port(), free_port()]
        urls = ",".join(f"http://127.0.0.1:{port}" for port in self.outer)
        for port in self.outer:
            self.daemon("--http", f"127.0.0.1:{port}", "--peers", urls, "--peer-key-file", self.key,
                        "--upstream-proxy", f"http://127.0.0.1:{self.inner[1]}",
                        name=f"outer{port}")

    def test_two_clusters(self):
        url = http_front.stored("http://a.test/chained?fault=size:2000")
        connections = [http_front.Connection(("127.0.0.1", port)) for port in self.outer]
        for c in connections * 3:
            self.addCleanup(c.close)
            response = c.get(url)
            self.check(response, url)
        self.assertEqual(len(self.fetched("/chained")), 1)


def proof(key, sender, to, target, number, method="GET", incarnation=None, wall_us=None):
    """The value of Proxy-Peer."""
    wall_us = int(time.time() * 1e6) if wall_us is None else wall_us
    incarnation = wall_us if incarnation is None else incarnation
    stated = struct.pack("=QQQ", incarnation, number, wall_us)
    covered = b""
    for part in (b"sunproxy peer request 1", stated, sender.encode(), to.encode(), method.encode(),
                 target.encode(), b""):
        covered += struct.pack("=Q", len(part)) + part
    code = hmac.new(key.encode(), covered, hashlib.sha256).hexdigest()
    return f"{incarnation:016x} {number:016x} {wall_us:016x} {code} {sender}"


class AuthenticationTest(ClusterTest):
    daemons = 2
    number = 0

    def ask(self, url, key=KEY, to=None, sender=None, target=None, **more):
        """The status of a request to daemon 0 that claims to be one of daemon 1."""
        self.number += 1
        value = proof(key, sender or self.urls[1], to or self.urls[0], target or url,
                      more.pop("number", self.number), **more)
        return self.send(url, value)

    def send(self, url, value):
        with_one = self.connect(0)
        response = with_one.get(url, f"Proxy-Peer: {value}")
        while response.status < 200:
            response = with_one.receive()
        return response

    def test_forged_and_replayed_requests_are_refused(self):
        url = http_front.stored("http://a.test/forged?fault=size:100")
        incarnation = int(time.time() * 1e6)

        def ask(url=url, **more):
            return self.ask(url, incarnation=incarnation, **more).status

        self.assertEqual(ask(), 200)
        self.assertEqual(ask(number=self.number), 403)  # again
        self.assertEqual(ask(key="another key of sixteen bytes"), 403)
        self.assertEqual(ask(to=self.urls[1]), 403)
        self.assertEqual(ask(sender="http://127.0.0.1:1"), 403)
        self.assertEqual(ask(sender=self.urls[0]), 403)
        self.assertEqual(ask(target=url + "x"), 403)
        self.assertEqual(ask(method="HEAD"), 403)
        self.assertEqual(ask(wall_us=int((time.time() - 40) * 1e6)), 403)
        self.assertEqual(ask(wall_us=int((time.time() + 40) * 1e6)), 403)
        self.assertEqual(self.send(url, "x").status, 403)
        self.assertEqual(ask(), 200)
        self.assertEqual(len(self.fetched("/forged")), 1)
        self.assertIn("claims to be a peer's is refused", self.d[0].err)
        self.assertNotIn(KEY, self.d[0].err)

    def test_a_response_says_that_it_is_a_peers(self):
        url = http_front.stored("http://a.test/said?fault=size:100")
        self.assertRegex(self.ask(url).field("Proxy-Peer"), "^s [0-9a-f]{64}$")
        self.assertRegex(self.ask("http://a.test:1/").field("Proxy-Peer"), "^f [0-9a-f]{64}$")

    def test_a_peer_asks_no_other_peer(self):
        url = self.url_of(1, "round")
        self.assertEqual(self.ask(url).status, 200)
        self.assertEqual(len(self.fetched("/round/")), 1)
        self.assertEqual(self.sunproxy("origin", "--json", daemon=self.d[0]).stdout.count(b'"requests":1'), 0)

    def test_another_key_excludes_a_daemon(self):
        other = self.dir / "other.key"
        other.write_text("another key of sixteen bytes\n")
        url = self.url_of(0, "excluded")
        self.d[1].stop()
        self.d[1] = self.start(1, "--peer-key-file", other, name="excluded")
        self.c[1] = self.connect(1)
        self.check(self.get(1, url), url)
        self.assertEqual(len(self.fetched("/excluded/")), 1)
        self.assertIn("is down: it refuses news (status 403)", self.d[1].err)

    def test_without_peers_the_field_is_refused(self):
        d = self.daemon("--http", "127.0.0.1:0", origin=self.o, name="alone")
        address = harness.wait_until(lambda: http_front.http_address(d), what="the HTTP front")
        c = http_front.Connection(address)
        self.addCleanup(c.close)
        self.assertEqual(c.get("http://a.test/", "Proxy-Peer: x").status, 403)


class OptionsTest(harness.SystemTest):
    def test_bad_options_are_explained(self):
        key = self.dir / "key"
        key.write_text("0123456789abcdef\n")
        short = self.dir / "short"
        short.write_text("short\n")
        good = ("--http", "127.0.0.1:3128", "--peers", "http://127.0.0.1:3128,http://b:3128",
                "--peer-key-file", key)
        for more, sentence in (
            (("--peer-key-file", short), "a key has fewer than 16 bytes"),
            (("--peer-key-file", "/nonexistent"), "cannot read /nonexistent"),
            (("--peers", "http://a:3128,https://127.0.0.1:3128"), "a peer is http://HOST:PORT"),
            (("--peers", "http://127.0.0.1:3128/x"), "a peer is http://HOST:PORT"),
            (("--peers", "http://127.0.0.1:3128|max=1"), "it has URLs alone"),
            (("--peers", "http://127.0.0.1:3128 probe=/"), "it has URLs alone"),
            (("--peers", "http://127.0.0.1:3128,http://127.0.0.1:3128"), "in the list twice"),
            (("--peers", "http://a:3128"), "peer-self has to state which"),
            (("--peer-self", "http://c:3128"), "it is none of the URLs of peers"),
            (("--freshness", "off"), "it needs freshness on"),
        ):
            done = self.run_daemon("--check-config", *good, *more)
            self.assertEqual(done.returncode, 78, (more, done.stderr))
            self.assertIn(sentence, done.stderr.decode())
        self.assertEqual(self.run_daemon("--check-config", *good).returncode, 0)
        done = self.run_daemon("--check-config", "--http", "127.0.0.1:1", "--peers", "http://a:1")
        self.assertIn("it needs peer-key-file", done.stderr.decode())


if __name__ == "__main__":
    harness.main()
