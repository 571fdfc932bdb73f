"""The main path: a page over every transport, protocol version and scheme; then from the cache."""

import threading

import harness
import rpc


class PathTest(harness.SystemTest):
    threads = True

    def test_every_way_to_a_page(self):
        o = self.origin()
        d = self.daemon(origin=o)
        for name, address in (("tcp", d.address), ("unix", d.socket)):
            for scheme in ("http", "https"):
                with self.subTest(transport=name, scheme=scheme), rpc.Connection(address) as c:
                    url = f"{scheme}://{name}.test/page"
                    page = c.get(url)
                    text = harness.origin_text(url, len(page.body))
                    self.assertEqual((page.status, page.http_status), ("ok", 200), page.sentence)
                    self.assertEqual((page.source, page.stored), ("miss", True))
                    self.assertEqual(page.body, text)
                    self.assertEqual(page.final_url, url)
                    page = c.get(url)
                    self.assertEqual((page.source, page.stored), ("hit", True))
                    self.assertEqual(page.body, text)
                    self.assertEqual(c.fetch_v1(url), text)
                    self.assertEqual(len(o.requests()), 1)
                    one = f"{scheme}://{name}.one/page"
                    body = c.fetch_v1(one)
                    self.assertEqual(body, harness.origin_text(one, len(body)))
                    self.assertEqual(c.get(one).source, "hit")
                o.log.write_text("")

    def test_bodies_of_many_sizes(self):
        o = self.origin()
        d = self.daemon(origin=o)
        with rpc.Connection(d.address) as c:
            for size in (1, 2, 3, 4, 5, 511, 512, 513, 4095, 65535, 65536, 65537, 1 << 20,
                         (1 << 20) + 1, 7654321):
                url = f"http://a.test/fault/size:{size}"
                for source in ("miss", "hit"):
                    page = c.get(url)
                    self.assertEqual((page.source, len(page.body)), (source, size))
                    self.assertEqual(page.body, harness.origin_text(url, size))
                self.assertEqual(c.fetch_v1(url), page.body)

    def test_statistics_add_up(self):
        o = self.origin()
        d = self.daemon("--policy", "lru", "--capacity-urls", "3", "--shards", "1", origin=o)
        served = 0
        with rpc.Connection(d.socket) as c:
            for n in (1, 2, 3, 3, 4, 1, 1):
                served += len(c.get(f"http://a.test/{n}").body)
            c.get("ftp://a.test/")
            c.get("http://a.test/5", flags=rpc.FLAG_NO_STORE)
            s = c.stat()
        self.assertEqual((s.policy, s.workers, s.shards, s.capacity_urls), ("lru", 2, 1, 3))
        self.assertEqual((s.hits, s.misses, s.failures, s.bypasses), (2, 5, 1, 1))
        self.assertEqual((s.requests, s.pages, s.insertions, s.evictions), (9, 3, 5, 2))
        self.assertGreaterEqual(s.bytes_served, served)
        self.assertGreater(s.uptime_us, 0)
        self.assertEqual(s.fetches_active, 0)

    def test_victims_are_named_to_administrators(self):
        d = self.daemon("--policy", "fifo", "--capacity-urls", "2", "--shards", "1",
                        origin=self.origin())
        with rpc.Connection(d.socket) as c:
            for n in range(2):
                self.assertEqual(c.get(f"http://a.test/{n}", flags=rpc.FLAG_WANT_VICTIMS).evicted, 0)
            page = c.get("http://a.test/2", flags=rpc.FLAG_WANT_VICTIMS)
            self.assertEqual((page.evicted, page.victims), (1, ["http://a.test/0"]))
            self.assertEqual(c.get("http://a.test/3").victims, [])
        with rpc.Connection(d.address) as c:
            page = c.get("http://a.test/4", flags=rpc.FLAG_WANT_VICTIMS)
            self.assertEqual((page.evicted, page.victims), (1, []))

    def test_no_cache_at_all(self):
        o = self.origin()
        d = self.daemon("--policy", "none", origin=o)
        with rpc.Connection(d.address) as c:
            for _ in range(3):
                page = c.get("http://a.test/")
                self.assertEqual((page.status, page.stored), ("ok", False))
        self.assertEqual(len(o.requests()), 3)

    def test_a_page_larger_than_the_cache(self):
        o = self.origin()
        d = self.daemon("--capacity-bytes", "100K", "--shards", "1", origin=o)
        with rpc.Connection(d.address) as c:
            small = c.get("http://a.test/small?fault=size:1000")
            big = c.get("http://a.test/fault/size:200000")
            self.assertEqual((small.stored, big.stored, len(big.body)), (True, False, 200000))
            self.assertEqual(c.get("http://a.test/small?fault=size:1000").source, "hit")
            self.assertEqual(c.stat().evictions, 0)


class CoalesceTest(harness.SystemTest):
    seconds = 7
    threads = True

    def test_many_ask_and_one_is_fetched(self):
        o = self.origin()
        d = self.daemon(origin=o)
        url = "http://a.test/?fault=delay:1500ms"
        pages = rpc.together(d, url, 40)
        self.assertEqual(len(o.requests()), 1)
        sources = sorted(p.source for p in pages)
        self.assertEqual(sources, ["coalesced"] * 39 + ["miss"])
        self.assertEqual({p.body for p in pages}, {harness.origin_text(url, len(pages[0].body))})
        with rpc.Connection(d.socket) as c:
            s = c.stat()
            self.assertEqual((s.misses, s.coalesced), (1, 39))
            self.assertEqual(c.get(url).source, "hit")

    def test_a_failure_is_told_to_all(self):
        o = self.origin()
        d = self.daemon(origin=o)
        pages = rpc.together(d, "http://a.test/?fault=delay:700ms&fault=short", 20)
        self.assertEqual({p.status for p in pages}, {"origin_broke"})
        self.assertLessEqual(len(o.requests()), 2)  # one, and curl's own second try at most

    def test_both_versions_share_a_flight(self):
        o = self.origin()
        d = self.daemon(origin=o)
        url = "http://a.test/?fault=delay:2s"
        pages = []

        def one():
            with rpc.Connection(d.address) as c:
                pages.append(c.get(url))

        # Version 1 joins the fetch of version 2, which bounds no body.
        t = threading.Thread(target=one)
        t.start()
        harness.wait_until(lambda: o.requests(), 20, "the fetch")
        with rpc.Connection(d.socket) as c:
            body = c.fetch_v1(url)
        t.join()
        self.assertEqual([page.body for page in pages], [body])
        self.assertEqual(len(o.requests()), 1)

    def test_more_than_may_wait(self):
        d = self.daemon("--max-waiters", "5", origin=self.origin())
        pages = rpc.together(d, "http://a.test/?fault=delay:1s", 15)
        self.assertEqual(sorted({p.status for p in pages}), ["ok", "overloaded"])
        self.assertEqual(sum(p.status == "ok" for p in pages), 5)

    def test_more_fetches_than_may_be(self):
        d = self.daemon("--max-fetches", "2", "--max-fetches-waiting", "2", "--max-fetches-queued", "3",
                        origin=self.origin())
        with rpc.Connection(d.address) as c:
            for n in range(12):
                c.send(rpc.record(rpc.call(xid=n, procedure=rpc.V2_GET, arguments=rpc.get_arguments(
                    f"http://h{n}.test/?fault=delay:700ms"))))
            statuses = [rpc.Page(c.receive().results).status for _ in range(12)]
        self.assertEqual(set(statuses), {"ok", "overloaded"})
        self.assertEqual(statuses.count("ok"), 5)
