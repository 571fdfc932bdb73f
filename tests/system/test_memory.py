"""One account for memory: floods of each kind within a small --max-transit, and no memory at all.

The release build is measured, since the sanitizers' allocators keep what has been freed; every test
runs against the build under test too, where the account itself is looked at.
"""

import resource
import time

import harness
import rpc

MEBI = 1 << 20
LIMIT = 32 * MEBI
WAITING_SHARE = CALLS_SHARE = LIMIT // 8
FETCHING_SHARE = LIMIT - 2 * (LIMIT // 8)


def memory_in_all(stats):
    return (stats.memory_pages + stats.memory_fetches + stats.memory_records +
            stats.memory_requests + stats.memory_replies)


class MemoryTest(harness.SystemTest):
    options = ()
    program = harness.SUNPROXYD

    def setUp(self):
        super().setUp()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 4096:
            self.skipTest(f"only {hard} descriptors may be had")
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        if not self.program.exists():
            self.skipTest(f"{self.program} is not built")
        self.o = self.origin()
        self.d = self.start()
        self.good = self.connect()
        self.good.get("http://good.test/")

    def start(self):
        return self.daemon("--max-transit", str(LIMIT), "--stop-timeout", "1s",
                           *self.options, origin=self.o,
                           program=self.program)

    def connect(self, **more):
        c = rpc.Connection(self.d.address, **more)
        self.addCleanup(c.close)
        return c

    def measures(self):
        return self.program == harness.RELEASE_SUNPROXYD

    def tearDown(self):
        if self.good:
            self.assertEqual(self.good.get("http://good.test/").source, "hit")


def call(url, xid=1):
    return rpc.record(rpc.call(xid=xid, procedure=rpc.V2_GET, arguments=rpc.get_arguments(url)))


class HalfRecordTest(MemoryTest):
    threads = True
    COUNT = 2000
    HALF = 100000

    def is_served_in_pieces(self, xid):
        """False where the daemon still reads the flood, of which this is a part then."""
        c = self.connect()
        try:
            c.send(rpc.record(rpc.call(xid=xid), size=4))
            return c.receive().status == "SUCCESS"
        except (EOFError, OSError):
            return False

    def test_half_received_records_stay_within_their_share(self):
        before = self.d.rss()
        half = b"\x80\x01\xff\xff" + bytes(self.HALF)
        flood = []
        most = 0
        for n in range(self.COUNT):
            c = rpc.Connection(self.d.address)
            flood.append(c)
            try:
                c.send(half)
            except OSError:
                pass  # one that was closed for another
            if n % 100 == 99:
                stats = self.good.stat()
                self.assertLessEqual(stats.memory_records, CALLS_SHARE)
                most = max(most, stats.memory_records)
                # Whoever calls now is served: in one piece, and in many.
                self.assertEqual(self.good.get(f"http://good.test/{n}").status, "ok")
                harness.wait_until(lambda xid=n: self.is_served_in_pieces(xid), what="a call in many pieces")
        self.assertGreater(most, CALLS_SHARE // 2)
        self.assertGreater(self.good.stat().memory_refusals, 0)
        if self.measures():
            # 200 MB were sent; beside the share there are the connections themselves.
            self.assertLess(self.d.rss() - before, CALLS_SHARE + 8 * MEBI)
        for c in flood:
            c.close()
        harness.wait_until(lambda: self.good.stat().memory_records == 0, what="all given back")


class MeasuredHalfRecordTest(HalfRecordTest):
    threads = False
    program = harness.RELEASE_SUNPROXYD


class WaitingTest(MemoryTest):
    threads = True
    options = ("--max-fetches", "4")
    CONNECTIONS = 32
    CALLS = 200

    def flood(self, url_of):
        before = self.d.rss()
        # One client would get a part of the share only.
        crowd = [self.connect(source=f"127.0.0.{2 + n}") for n in range(self.CONNECTIONS)]
        for n, c in enumerate(crowd):
            c.send(b"".join(call(url_of(n * self.CALLS + i), i) for i in range(self.CALLS)))
        harness.wait_until(lambda: self.good.stat().calls >= self.CONNECTIONS * self.CALLS,
                           what="the calls")
        stats = self.good.stat()
        self.assertGreater(stats.memory_requests, WAITING_SHARE // 2)
        # Requests that are answered at once are made beyond the share: one a connection.
        self.assertLessEqual(stats.memory_requests + stats.memory_replies, WAITING_SHARE + 64 * 1024)
        self.assertGreater(stats.failures, 500)
        self.assertEqual(self.good.get("http://good.test/").source, "hit")
        if self.measures():
            self.assertLess(self.d.rss() - before, WAITING_SHARE + 8 * MEBI)
        refused = 0
        c = crowd[-1]
        while refused < 10:
            page = rpc.Page(c.receive().results)
            self.assertEqual(page.status, "overloaded", page.sentence)
            self.assertRegex(page.sentence, "too many requests (of this client )?wait")
            refused += 1
        for c in crowd:
            c.reset()
        return stats

    def test_waiting_requests_stay_within_their_share(self):
        self.flood(lambda n: f"http://slow.test/{n}?fault=hang-silent")

    def test_waiters_for_one_page_stay_within_their_share(self):
        self.flood(lambda n: "http://slow.test/?fault=hang-silent")


class MeasuredWaitingTest(WaitingTest):
    threads = False
    program = harness.RELEASE_SUNPROXYD


class SlowReaderTest(MemoryTest):
    options = ("--max-requests", "4096")

    def test_replies_that_are_not_read_stay_within_their_share(self):
        crowd = [self.connect(receive_buffer=4096) for _ in range(16)]
        page = "http://good.test/?fault=size:8K"
        self.good.get(page)
        for c in crowd:
            c.socket.settimeout(1)
            try:
                c.send(call(page) * 4000)
            except OSError:
                pass  # it is read no more
        stats = self.good.stat()
        # A connection that writes nothing more holds one request beyond the share.
        self.assertLess(stats.memory_requests + stats.memory_replies, WAITING_SHARE + 256 * 1024)
        self.assertEqual(self.good.get(page).source, "hit")


class StallTest(MemoryTest):
    seconds = 9
    threads = True
    options = ("--stall-timeout", "90s", "--fetch-timeout", "90s")

    def stall(self, n, held):
        c = self.connect()
        c.send(call(f"http://stall{n}.test/?fault=size:20M&fault=hang-body:{held}"))
        return c

    def wait_for_a_stall(self):
        """A stall is a second without growth."""
        pages, since = None, 0

        def stalled():
            nonlocal pages, since
            now = self.good.stat().memory_pages
            if now != pages:
                pages, since = now, time.monotonic()
            return time.monotonic() - since > 1.5

        harness.wait_until(stalled, what="the stall")

    def test_stalled_bodies_make_place_for_others(self):
        stalled = [self.stall(n, 19 * MEBI) for n in range(2)]
        harness.wait_until(lambda: self.good.stat().memory_pages > 18 * MEBI, what="the bodies")
        self.assertLessEqual(memory_in_all(self.good.stat()), LIMIT)
        self.wait_for_a_stall()
        page = self.good.get("http://good.test/other?fault=size:20M")
        self.assertEqual(page.status, "ok", page.sentence)
        self.assertEqual(len(page.body), 20 * MEBI)
        self.assertLessEqual(memory_in_all(self.good.stat()), LIMIT)
        for c in stalled:
            # Answered now, not at the time-out.
            page = c.get_rest(rpc.Page(c.receive().results))
            self.assertEqual(page.status, "overloaded", page.sentence)
        self.assertEqual(self.good.stat().fetches_active, 0)

    def test_the_client_that_holds_most_makes_place_at_once(self):
        greedy = self.connect(source="127.0.0.2")
        greedy.send(call(f"http://greedy.test/?fault=size:20M&fault=hang-body:{19 * MEBI}"))
        harness.wait_until(lambda: self.good.stat().memory_pages > 18 * MEBI, what="the body")
        # Before it has stalled.
        page = self.good.get("http://good.test/other?fault=size:5M")
        self.assertEqual(page.status, "ok", page.sentence)
        page = greedy.get_rest(rpc.Page(greedy.receive().results))
        self.assertEqual(page.status, "overloaded", page.sentence)

    def test_bodies_that_are_held_and_not_read_give_way(self):
        """Their client calls for no bytes of them; they are in no cache any more."""
        greedy = self.connect(source="127.0.0.2")
        names = []
        for n in range(40):
            page = greedy.get_first(f"http://greedy.test/{n}?fault=size:5M")
            if page.status != "ok":
                break
            names.append(page.object)
            while not greedy.read(page.object, 5 * MEBI - 1, 1).ending:
                pass
        with rpc.Connection(self.d.socket) as admin:
            admin.purge(rpc.PURGE_PREFIX, b"http://greedy.test/")
        self.assertGreater(self.good.stat().memory_pages, 3 * FETCHING_SHARE // 4)
        fetched = iter(range(1000))

        def is_fetched():
            for name in names:
                greedy.read(name, 5 * MEBI, 0)
            url = f"http://good.test/large{next(fetched)}?fault=size:12M"
            return self.good.get(url).status == "ok"

        self.assertFalse(is_fetched())
        harness.wait_until(is_fetched, what="memory for a fetch")
        stats = self.good.stat()
        self.assertGreater(stats.value('cursors_ended{reason="displaced"}'), 0)

    def test_stat_shows_memory_by_kind(self):
        self.stall(0, MEBI)
        harness.wait_until(lambda: self.good.stat().memory_pages > MEBI, what="the body")
        numbers = self.stat(self.d)
        self.assertEqual(numbers["memory_limit"], LIMIT)
        self.assertGreater(numbers["memory_pages"], MEBI)
        self.assertEqual(numbers["memory_fetches"], 160 * 1024)
        self.assertEqual(numbers["memory_records"], 0)
        self.assertGreater(numbers["memory_requests"], 1000)
        self.assertEqual(numbers["memory_refusals"], 0)
        self.assertEqual(numbers["memory_reclaimed"], 0)
        table = self.sunproxy("stat", daemon=self.d).stdout.decode()
        self.assertRegex(table, r"(?m)^memory limit +32\.0 MiB\n- pages outside +1\.\d MiB\n"
                                r"- fetches +160 KiB$")

    def test_pages_are_fetched_all_the_while(self):
        self.stall(0, 19 * MEBI)
        harness.wait_until(lambda: self.good.stat().memory_pages > 18 * MEBI, what="the body")
        # Of a MiB each, until there is no memory for another.
        for n in range(1, 8):
            self.stall(n, MEBI // 2)
        harness.wait_until(lambda: self.good.stat().memory_refusals > 0, what="the limit")
        self.wait_for_a_stall()
        for n in range(20):
            page = self.good.get(f"http://good.test/small{n}?fault=size:3M")
            self.assertEqual(page.status, "ok", page.sentence)


class NoMemoryTest(MemoryTest):
    """The address space is used up: pages are evicted, and fetches go on."""

    program = harness.RELEASE_SUNPROXYD
    options = ("--capacity-bytes", "4G", "--workers", "1", "--shards", "4")

    def test_pages_are_evicted_where_malloc_fails(self):
        # What the daemon has now, and 300 MiB.
        with open(f"/proc/{self.d.pid}/statm") as f:
            size = int(f.read().split()[0]) * resource.getpagesize()
        bound = size + 300 * MEBI
        resource.prlimit(self.d.pid, resource.RLIMIT_AS, (bound, bound))
        failed = []
        for n in range(1200):
            page = self.good.get(f"http://good.test/{n}?fault=size:512K")
            if page.status != "ok":
                failed.append((n, page.status, page.sentence))
        self.assertEqual(failed, [])
        stats = self.good.stat()
        self.assertGreater(stats.evictions, 100)
        self.assertGreater(stats.pages, 100)
        self.assertGreater(stats.memory_reclaimed, 50 * MEBI)
        self.assertIn("out of memory: ", self.d.err)
        lines = self.d.err.count("out of memory: ")
        self.assertLess(lines, 20, "one in ten seconds")
        self.assertEqual(self.good.get("http://good.test/1199?fault=size:512K").source, "hit")
        self.good.get("http://good.test/")


class PeakTest(MemoryTest):
    """The pages that stay are the newest, which lie behind what has been freed."""

    program = harness.RELEASE_SUNPROXYD
    options = ("--capacity-bytes", "200M", "--workers", "1", "--shards", "1")

    def resident(self):
        with open(f"/proc/{self.d.pid}/statm") as f:
            return int(f.read().split()[1]) * resource.getpagesize()

    def looks(self):
        with open(f"/proc/{self.d.pid}/task/{self.d.pid}/status") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("voluntary"))

    def test_what_a_peak_has_taken_is_returned(self):
        small = self.resident()
        for n in range(3000):
            self.good.get(f"http://good.test/{n}?fault=size:40K")
        peak = self.resident()
        self.assertGreater(peak, small + 110 * MEBI)
        # The main thread does nothing but look every two seconds.
        looked = self.looks()
        harness.wait_until(lambda: self.looks() > looked + 1, what="a look at the peak")
        with rpc.Connection(self.d.socket) as admin:
            self.assertEqual(admin.set(set_capacity=True, size=10 * MEBI)[0], "ok")
        harness.wait_until(lambda: self.resident() < small + 40 * MEBI, what="less resident memory")
        self.good.get("http://good.test/")
