"""Administration: over the AF_UNIX socket, by permitted users, and never over TCP."""

import os
import socket
import threading

import harness
import rpc


class AdminTest(harness.SystemTest):
    threads = True

    def setUp(self):
        super().setUp()
        self.o = self.origin()
        self.d = self.daemon("--capacity-urls", "100", "--shards", "1", "--policy", "lru",
                             origin=self.o)
        self.c = rpc.Connection(self.d.socket)
        self.addCleanup(self.c.close)

    def fill(self, count=6):
        for n in range(count):
            self.c.get(f"http://h{n % 2}.test/{n}")

    def sources(self, count=6):
        return [self.c.get(f"http://h{n % 2}.test/{n}").source for n in range(count)]

    def test_purge_one(self):
        self.fill()
        self.assertEqual(self.c.purge(rpc.PURGE_URL, "http://h1.test/1"), ("ok", 1))
        self.assertEqual(self.c.purge(rpc.PURGE_URL, "http://h1.test/1"), ("ok", 0))
        self.assertEqual(self.sources(), ["hit", "miss", "hit", "hit", "hit", "hit"])

    def test_purge_by_prefix(self):
        self.fill()
        self.assertEqual(self.c.purge(rpc.PURGE_PREFIX, "http://h0.test/"), ("ok", 3))
        self.assertEqual(self.sources(), ["miss", "hit"] * 3)

    def test_purge_all(self):
        self.fill()
        self.assertEqual(self.c.purge(rpc.PURGE_ALL), ("ok", 6))
        self.assertEqual(self.c.stat().pages, 0)
        self.assertEqual(set(self.sources()), {"miss"})

    def while_fetching(self, url, act):
        """What the fetch of a slow page came to, during which something was done."""
        answers = []

        def ask():
            with rpc.Connection(self.d.socket) as c:
                answers.append(c.get(url))

        other = threading.Thread(target=ask)
        other.start()
        harness.wait_until(lambda: self.c.stat().fetches_active, what="the fetch")
        act()
        other.join()
        return answers[0].source, answers[0].stored

    def test_what_is_on_its_way_is_purged_as_well(self):
        url = "http://h.test/?fault=delay:500ms"
        for purge in (lambda: self.c.purge(rpc.PURGE_URL, url),
                      lambda: self.c.purge(rpc.PURGE_PREFIX, "http://h."),
                      lambda: self.c.purge(rpc.PURGE_ALL), lambda: self.c.set(cold=True)):
            self.assertEqual(self.while_fetching(url, purge), ("miss", False))
            self.assertEqual(self.c.stat().pages, 0)

    def test_what_others_purge_has_no_bearing(self):
        url = "http://h.test/?fault=delay:500ms"
        self.assertEqual(
            self.while_fetching(url, lambda: self.c.purge(rpc.PURGE_PREFIX, "http://h.test/1")),
            ("miss", True))
        self.assertEqual(self.c.get(url).source, "hit")

    def test_after_a_purge_no_client_gets_what_was_requested_before(self):
        url = "http://h.test/?fault=delay:500ms"
        after = []

        def purge_and_ask():
            self.c.purge(rpc.PURGE_URL, url)
            after.append(self.c.get(url))

        self.assertEqual(self.while_fetching(url, purge_and_ask), ("miss", False))
        self.assertEqual((after[0].source, after[0].stored), ("miss", True))
        self.assertEqual(self.c.get(url).source, "hit")

    def test_not_over_tcp(self):
        self.fill()
        with rpc.Connection(self.d.address) as c:
            for kind, url in ((rpc.PURGE_URL, "http://h1.test/1"), (rpc.PURGE_PREFIX, "http://"),
                              (rpc.PURGE_ALL, b"")):
                self.assertEqual(c.purge(kind, url)[0], "denied")
            self.assertEqual(c.set(policy="fifo")[0], "denied")
            # AUTH_SYS proves nothing.
            reply = c.ask(procedure=rpc.V2_PURGE, arguments=rpc.purge_arguments(rpc.PURGE_ALL),
                          credential=(rpc.AUTH_SYS, rpc.auth_sys(uid=0)))
            self.assertEqual(rpc.Reader(reply.results).uint(), rpc.STATUSES.index("denied"))
        self.assertEqual(self.c.stat().pages, 6)
        self.assertEqual(self.c.stat().policy, "lru")

    def test_not_by_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("to become another user needs root")
        os.chmod(self.dir, 0o711)
        answer, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            words = "nothing"
            try:
                os.setgid(65534)
                os.setuid(65534)
                c = rpc.Connection(self.d.socket)
                words = " ".join([c.purge(rpc.PURGE_ALL)[0], c.set(policy="fifo")[0],
                                  c.get("http://a.test/").status])
            finally:
                os.write(theirs, words.encode())
                os._exit(0)
        os.close(theirs)
        words = os.read(answer, 100).decode()
        os.waitpid(child, 0)
        os.close(answer)
        self.assertEqual(words, "denied denied ok")

    def test_set_keeps_the_pages(self):
        self.fill()
        for policy in ("fifo", "lfu", "rand", "maxs", "clock", "sieve", "2q", "s3-fifo", "arc",
                       "rand:draw=each", "lru-k", "lru-k:k=3", "lru"):
            self.assertEqual(self.c.set(policy=policy), ("ok", 6))
            self.assertEqual(self.c.stat().policy, policy)
            self.assertEqual(set(self.sources()), {"hit"})

    def test_parameters_are_printed_as_they_are(self):
        for typed, shown in (("LRU-K:K=2", "lru-k"), ("lruk:k=4", "lru-k:k=4"), ("S3FIFO", "s3-fifo"),
                            ("rand:draw=once", "rand")):
            self.assertEqual(self.c.set(policy=typed)[0], "ok")
            self.assertEqual(self.c.stat().policy, shown)

    def test_a_wrong_policy_is_answered_with_the_right_one(self):
        for typed, sentence in (("lur", "did you mean lru?"), ("lru-k:q=3", "did you mean k=?"),
                                ("lru-k:k=9", "a whole number from 1 to 4, not \"9\""),
                                ("rand:draw=eech", "did you mean draw=each?"),
                                ("opt", "which only a simulation does")):
            status, shown = self.c.set(policy=typed)
            self.assertEqual(status, "bad_value", typed)
            self.assertIn(sentence, shown)
        self.assertEqual(self.c.stat().policy, "lru")

    def test_set_a_smaller_capacity(self):
        self.fill()
        self.c.get("http://h0.test/0")
        self.assertEqual(self.c.set(set_capacity=True, urls=2), ("ok", 2))
        s = self.c.stat()
        self.assertEqual((s.capacity_urls, s.pages, s.policy), (2, 2, "lru"))

    def test_set_shards(self):
        self.fill()
        self.assertEqual(self.c.set(shards=4), ("ok", 6))
        self.assertEqual(self.c.stat().shards, 4)
        self.assertEqual(set(self.sources()), {"hit"})

    def test_set_none_and_back(self):
        self.fill()
        self.assertEqual(self.c.set(policy="none"), ("ok", 0))
        self.assertEqual(self.c.stat().policy, "none")
        self.assertNotIn("hit", self.sources(2) + self.sources(2))
        self.assertEqual(self.c.set(policy="lru", set_capacity=True, urls=10)[0], "ok")
        self.fill(2)
        self.assertEqual(self.sources(2), ["hit", "hit"])

    def test_set_cold(self):
        self.fill()
        self.assertEqual(self.c.set(cold=True), ("ok", 0))
        s = self.c.stat()
        self.assertEqual((s.pages, s.requests, s.hits, s.misses, s.insertions), (0,) * 5)

    def test_values_that_cannot_be(self):
        self.fill()
        for values in ({"policy": "nonsense"}, {"shards": 65}, {"shards": 4000000000},
                       {"policy": "lru:no=such"}, {"set_capacity": True, "urls": 2, "shards": 8}):
            status, sentence = self.c.set(**values)
            self.assertEqual(status, "bad_value", values)
            self.assertGreater(len(sentence), 5)
        s = self.c.stat()
        self.assertEqual((s.policy, s.shards, s.capacity_urls, s.pages), ("lru", 1, 100, 6))

    def test_a_refused_cold_start_leaves_the_cache_as_it_was(self):
        self.fill()
        status, _ = self.c.set(set_capacity=True, urls=2, shards=8, cold=True)
        self.assertEqual(status, "bad_value")
        s = self.c.stat()
        self.assertEqual((s.pages, s.requests), (6, 6))

    def test_change_under_load(self):
        import threading

        stop = threading.Event()
        bad = []

        def load(which):
            with rpc.Connection(self.d.address) as c:
                n = 0
                while not stop.is_set():
                    url = f"http://h{n % 2}.test/{n % 150}"
                    page = c.get(url)
                    if page.status != "ok" or page.body != harness.origin_text(url, len(page.body)):
                        bad.append((url, page.status, page.sentence))
                    n += which + 1

        threads = [threading.Thread(target=load, args=(n,)) for n in range(3)]
        for t in threads:
            t.start()
        for n in range(40):
            policy = ("lru", "s3-fifo", "lfu", "rand", "arc", "2q", "gdsf", "slru")[n % 8]
            values = {"policy": policy, "shards": 1 + n % 4}
            values.update(set_capacity=True, urls=20 + 13 * (n % 7))
            self.assertEqual(self.c.set(**values)[0], "ok")
            if n % 7 == 3:
                self.c.purge(rpc.PURGE_PREFIX, "http://h1.")
            if n % 11 == 5:
                self.c.set(cold=True)
        stop.set()
        for t in threads:
            t.join()
        self.assertEqual(bad, [])
        s = self.c.stat()
        self.assertLessEqual(s.pages, s.capacity_urls)

    def test_the_sockets_name_goes_with_the_daemon(self):
        self.assertTrue(os.path.exists(self.d.socket))
        self.assertEqual(self.d.stop(), 0)
        self.assertFalse(os.path.exists(self.d.socket))
        with self.assertRaises(OSError):
            socket.socket(socket.AF_UNIX).connect(self.d.socket)
