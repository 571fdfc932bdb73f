"""Every policy that a daemon can run, in the real one, while many use and change its cache."""

import collections
import random
import re
import threading

import harness
import rpc

URLS = 60
CAPACITY = 24  # pages
BATCH = 12  # calls of one client under way at once
ROUNDS = 3  # looks at a policy while it is used; between them,
REQUESTS = 120  # at least this number of requests


class Client(threading.Thread):
    """Asks for pages in batches, the first ones most, until it is stopped."""

    def __init__(self, address, seed, stop):
        super().__init__(daemon=True)
        self.connection = rpc.Connection(address)
        self.dice = random.Random(seed)
        self.stop = stop
        self.sources = collections.Counter()
        self.error = None

    def run(self):
        try:
            while not self.stop.is_set():
                self.batch()
        except Exception as error:  # reported in the test's own thread
            self.error = error
        finally:
            self.connection.close()

    def batch(self):
        asked = {}
        for xid in range(BATCH):
            asked[xid] = f"http://h.test/{int(URLS * self.dice.random() ** 2)}"
        self.connection.send(b"".join(
            rpc.record(rpc.call(xid=xid, procedure=rpc.V2_GET, arguments=rpc.get_arguments(url)))
            for xid, url in asked.items()))
        for _ in range(BATCH):
            reply = self.connection.receive()
            page, url = rpc.Page(reply.results), asked.pop(reply.xid)
            if page.body != harness.origin_text(url, len(page.body)) or not page.body:
                raise AssertionError(f"{url} has the body of another")
            self.sources[page.source] += 1


class UnderLoadTest(harness.SystemTest):
    seconds = 8
    threads = True

    def policies(self):
        """Each by itself, and once more for each parameter, at an end of its range."""
        shown = self.run_program([harness.SUNPROXYD, "--policy", "help"]).stdout.decode()
        specs = []
        for line in shown.splitlines():
            name = re.match(r"([a-z0-9-]+) ", line)
            value = re.match(r" +([a-z]+)=(?:.*\.\.([0-9.]+)|.*\|(\w+)):", line)
            if name and name[1] != "none":
                specs.append(name[1])
                plain = name[1]
            elif value:
                specs.append(f"{plain}:{value[1]}={value[2] or value[3]}")
        return specs

    def use(self, policy):
        """Clients are at work; a purge and a change of shards now and then."""
        self.assertEqual(self.c.set(policy=policy)[0], "ok", policy)
        before = now = self.c.stat()
        self.assertEqual(now.policy, policy)
        for look in range(ROUNDS):
            enough = now.requests + REQUESTS
            kind, url = [(rpc.PURGE_URL, "http://h.test/0"), (rpc.PURGE_PREFIX, "http://h.test/1"),
                         (rpc.PURGE_ALL, "")][look % 3]
            self.assertEqual(self.c.purge(kind, url)[0], "ok", policy)
            self.assertEqual(self.c.set(shards=1 + look % 3)[0], "ok", policy)
            while now.requests < enough:
                self.assertTrue(all(c.is_alive() for c in self.clients),
                                [c.error for c in self.clients])
                now = self.c.stat()
                self.assertLessEqual(now.pages, CAPACITY, policy)
        self.assertGreater(now.insertions, before.insertions, policy)
        self.assertGreater(now.evictions, before.evictions, policy)
        self.assertGreater(now.hits, before.hits, policy)

    def test_every_policy(self):
        origin = self.origin("--size-min", "32", "--size-max", "400")
        daemon = self.daemon("--workers", "4", "--capacity-urls", CAPACITY, "--shards", "2",
                             origin=origin)
        specs = self.policies()
        self.assertGreaterEqual(len(specs), 18)
        self.assertLess({"lru", "lru-k:k=4", "rand:draw=each", "w-tinylfu"}, set(specs))
        self.c = rpc.Connection(daemon.socket)
        self.addCleanup(self.c.close)
        stop = threading.Event()
        self.addCleanup(stop.set)
        self.clients = [Client(daemon.socket, seed, stop) for seed in range(4)]
        for client in self.clients:
            client.start()
        for policy in specs:
            with self.subTest(policy=policy):
                self.use(policy)
        stop.set()
        for client in self.clients:
            client.join(30)
            self.assertFalse(client.is_alive())
            self.assertIsNone(client.error)
        shown = sum((c.sources for c in self.clients), collections.Counter())
        now = self.c.stat()
        self.assertEqual((now.requests, now.failures), (sum(shown.values()), 0))
        self.assertEqual((now.hits, now.misses, now.coalesced),
                         (shown["hit"], shown["miss"], shown["coalesced"]))
        self.assertEqual(len(origin.requests()), now.misses)
