"""Clients that flood the daemon with misses which hang do not hold up another client's miss."""

import contextlib
import select
import socket

import harness
import rpc
import http_front

CALLS = 256  # that a connection may have in flight
HONEST = "127.0.0.200"


class FairnessTest(harness.SystemTest):
    """Clients on loopback are distinguished by the address that they connect from."""

    patience = ("--resolve-timeout", "90s", "--connect-timeout", "90s",
                "--first-byte-timeout", "90s",
                "--stall-timeout", "90s", "--fetch-timeout", "100s", "--stop-timeout", "1s")

    def connect(self, source, namespace=None):
        if namespace:
            c = namespace.call(rpc.Connection, self.d.address, source=source)
        else:
            c = rpc.Connection(self.d.address, source=source)
        self.addCleanup(c.close)
        return c

    def flood(self, url, clients=1, connections=1, namespace=None):
        """CALLS calls on each connection; `{}` in the URL is a number of its own for each."""
        flood = []
        for client in range(clients):
            for connection in range(connections):
                c = self.connect(f"127.0.0.{2 + client}", namespace)
                first = (client * connections + connection) * CALLS
                c.send(b"".join(rpc.record(rpc.call(
                    xid=n, procedure=rpc.V2_GET, arguments=rpc.get_arguments(url.format(n))))
                    for n in range(first, first + CALLS)))
                flood.append(c)
        calls = clients * connections * CALLS

        def has_come():
            s = self.admin.stat()
            return s.fetches_active + s.fetches_queued + s.requests >= calls

        harness.wait_until(has_come, 60, "the flood")
        return flood

    def is_answered(self, connections):
        return bool(select.select([c.socket for c in connections], [], [], 0)[0])

    def start(self, *options, **more):
        self.d = self.daemon(*self.patience, *options, **more)
        self.admin = rpc.Connection(self.d.socket)
        self.addCleanup(self.admin.close)

    def honest_is_served(self, url, flood, namespace=None):
        """While everything else hangs, with nothing of it answered."""
        c = self.connect(HONEST, namespace)
        for n in range(5):
            page = c.get(url.format(n))
            self.assertEqual((page.status, page.source), ("ok", "miss"), page.sentence)
        self.assertFalse(self.is_answered(flood))


class HangingTest(FairnessTest):
    seconds = 8

    def test_before_the_headers(self):
        self.start(origin=self.origin())
        flood = self.flood("http://h{}.test/fault/hang-silent", connections=2)
        self.honest_is_served("http://good.test/{}", flood)
        s = self.admin.stat()
        # Its share of the slots of those that wait.
        self.assertEqual((s.fetches_active, s.fetches_waiting, s.fetches_queued), (256, 256, 256))

    def test_in_the_headers(self):
        self.start(origin=self.origin())
        flood = self.flood("http://h{}.test/fault/hang", connections=2)
        harness.wait_until(lambda: self.admin.stat().fetches_active == 512, what="all")
        harness.wait_until(lambda: self.admin.stat().fetches_waiting == 0, what="their heads")
        self.honest_is_served("http://good.test/{}", flood)

    def test_in_the_body(self):
        self.start(origin=self.origin())
        self.flood("http://h{}.test/fault/hang-body:10", connections=2)
        harness.wait_until(lambda: self.admin.stat().fetches_active == 512, what="all")
        # After a second they get what has come.
        self.honest_is_served("http://good.test/{}", ())

    def test_after_a_redirect(self):
        self.start(origin=self.origin())
        flood = self.flood("http://h{0}.test/fault/redirect?http://h{0}.test/fault/hang-silent",
                           connections=4)
        self.honest_is_served("http://good.test/{}", flood)

    def test_in_connect(self):
        with contextlib.ExitStack() as stack:
            # A listener whose queue is full drops the packets of others.
            deaf = stack.enter_context(socket.socket())
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(0)
            for _ in range(3):
                filler = stack.enter_context(socket.socket())
                filler.setblocking(False)
                filler.connect_ex(deaf.getsockname())
            self.start("--connect-to", f":8080:127.0.0.1:{deaf.getsockname()[1]}",
                       origin=self.origin())
            flood = self.flood("http://h{}.test:8080/", connections=4)
            self.honest_is_served("http://good.test/{}", flood)

    def test_in_names(self):
        ns = harness.Namespace(self, "nameserver 127.0.0.9\noptions timeout:30 attempts:3\n")
        deaf = ns.call(socket.socket, socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(deaf.close)
        deaf.bind(("127.0.0.9", 53))
        o = self.origin(namespace=ns, name="inner")
        self.start("--allow-net", "127.0.0.0/8", "--dns-ttl", "0", namespace=ns)
        flood = self.flood("http://nowhere{}.test/", connections=4, namespace=ns)
        # A name as well, which needs a thread of the resolver.
        self.honest_is_served(f"http://localhost:{o.http_port}/{{}}", flood, namespace=ns)


class OneOriginTest(FairnessTest):
    """Clients of one origin, which has a bound of its own."""

    def test_one_client_leaves_others_half(self):
        self.start("--max-fetches-per-origin", "16", origin=self.origin())
        flood = self.flood("http://one.test/fault/hang-silent?{}")
        self.honest_is_served("http://one.test/{}", flood)
        s = self.admin.stat()
        self.assertEqual(s.fetches_active, 8)
        self.assertGreaterEqual(s.value('origin_fetches_queued{origin="other"}'), CALLS - 8)
        lines = [line for line in self.d.err.splitlines() if "--max-fetches-per-origin" in line]
        self.assertEqual(len(lines), 1, lines)
        # The origin has places: the bound is the client's.
        self.assertIn("fetches from http://one.test:80 for client 127.0.0.2 wait", lines[0])

    def test_streams_hold_up_nothing(self):
        self.start("--max-fetches-per-origin", "2", origin=self.origin())
        self.flood("http://one.test/fault/hang-body:10?{}")
        harness.wait_until(lambda: self.admin.stat().fetches_active == CALLS, what="the streams")
        self.honest_is_served("http://one.test/{}", ())
        own = self.connect("127.0.0.2")
        self.assertEqual(own.get("http://one.test/own").status, "ok")

    def test_a_client_at_its_share_is_named_once(self):
        self.start("--max-fetches-per-client", "8", origin=self.origin())
        flood = self.flood("http://h{}.test/fault/hang-silent")
        self.honest_is_served("http://good.test/{}", flood)
        lines = [line for line in self.d.err.splitlines() if "--max-fetches-per-client" in line]
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("client 127.0.0.2 ", lines[0])


class FloodTest(FairnessTest):
    def test_more_calls_than_the_queue_takes(self):
        self.start(origin=self.origin())
        flood = self.flood("http://h{}.test/fault/hang-silent", connections=18)
        s = self.admin.stat()
        self.assertEqual(s.fetches_queued, 4096)
        self.assertEqual(s.fetches_displaced, 18 * CALLS - 4096 - 256)
        c = self.connect(HONEST)
        for n in range(20):
            page = c.get(f"http://good.test/{n}")
            self.assertEqual((page.status, page.source), ("ok", "miss"), page.sentence)
        # Those that were displaced know, and only those.
        refused = 0
        while self.is_answered(flood):
            for f in flood:
                if self.is_answered([f]):
                    page = rpc.Page(f.receive().results)
                    self.assertEqual(page.status, "overloaded")
                    self.assertIn("queued", page.sentence)
                    refused += 1
        self.assertEqual(refused, self.admin.stat().fetches_displaced)

    def test_sixteen_greedy_clients(self):
        self.start(origin=self.origin())
        flood = self.flood("http://h{}.test/fault/hang-silent", clients=16)
        self.assertGreater(self.admin.stat().fetches_active, 500)
        self.honest_is_served("http://good.test/{}", flood)

    def test_sixteen_greedy_clients_in_the_body(self):
        self.start(origin=self.origin())
        self.flood("http://h{}.test/fault/hang-body:10", clients=16)
        harness.wait_until(lambda: self.admin.stat().fetches_active > 3000, what="their shares")
        # After a second they get what has come.
        self.honest_is_served("http://good.test/{}", ())


class OneAddressTest(http_front.HttpTest):
    """All clients have one address over HTTP, as behind a terminator of TLS."""

    options = ("--stop-timeout", "1s")
    UPLOADS = 300  # more than the fetches that may wait for one client, at an origin and in all

    def fetches(self):
        with rpc.Connection(self.d.socket) as admin:
            s = admin.stat()
            return s.fetches_active, s.fetches_waiting

    def test_uploads_that_do_not_arrive_hold_up_no_miss(self):
        echo = http_front.EchoOrigin(self)
        uploads = [self.connect() for _ in range(self.UPLOADS)]
        for n, c in enumerate(uploads):
            c.send(f"POST {echo.url}/{n} HTTP/1.1\r\nHost: one.test\r\n"
                   "Content-Length: 3\r\n\r\na")
        harness.wait_until(lambda: self.fetches() == (self.UPLOADS, 0), what="the uploads")
        for n in range(5):
            self.assertEqual(self.c.get(f"{echo.url}/{n}").status, 200)
        self.assertEqual(self.fetches(), (self.UPLOADS, 0))
        for c in uploads:
            c.send("bc")
        self.assertEqual({c.receive().status for c in uploads}, {200})

    def test_streams_hold_up_no_miss(self):
        streams = [self.connect() for _ in range(self.UPLOADS)]
        for n, c in enumerate(streams):
            c.send(f"GET http://one.test/fault/hang-body:10?{n} HTTP/1.1\r\n"
                   "Host: one.test\r\n\r\n")
        harness.wait_until(lambda: self.fetches() == (self.UPLOADS, 0), what="the streams")
        for n in range(5):
            self.assertEqual(self.c.get(f"http://one.test/{n}").status, 200)


class JoinedTest(FairnessTest):
    """A request that has joined another client's fetch does not share its displacement."""

    queue = ("--max-fetches", "2", "--max-fetches-waiting", "2", "--max-fetches-per-client", "0", "--max-fetches-queued", "4")

    def send_gets(self, connection, urls):
        connection.send(b"".join(
            rpc.record(rpc.call(xid=xid, procedure=rpc.V2_GET, arguments=rpc.get_arguments(url)))
            for xid, url in enumerate(urls, 1)))

    def receive_pages(self, connection, count):
        replies = [connection.receive() for _ in range(count)]
        return {reply.xid: rpc.Page(reply.results) for reply in replies}

    def displace(self, *options):
        """Its client's last queued fetch is displaced, for which both clients wait."""
        slow = socket.socket()
        self.addCleanup(slow.close)
        slow.bind(("127.0.0.1", 0))
        slow.listen()
        self.start(*self.queue, *options,
                   "--connect-to", f":8080:127.0.0.1:{slow.getsockname()[1]}",
                   origin=self.origin())
        greedy, honest = self.connect("127.0.0.2"), self.connect(HONEST)
        # The one fetch of it takes long enough for the other request to join.
        shared = "http://shared.test/?fault=delay:500ms"
        self.send_gets(greedy, [f"http://h{n}.test:8080/" for n in range(5)] + [shared] * 2)
        # Calls of a connection are taken in order, so the joined request has been taken, too.
        greedy.send(rpc.record(rpc.call(xid=99, procedure=rpc.V2_STAT)))
        self.assertEqual(greedy.receive().xid, 99)
        harness.wait_until(lambda: self.admin.stat().fetches_queued == 4, what="a full queue")
        self.send_gets(honest, [shared, shared, "http://own.test/"])
        refused = self.receive_pages(greedy, 3)
        # Its own fetches go on; the last of them is displaced by the honest client's second fetch.
        self.assertEqual({xid: page.status for xid, page in refused.items()},
                         dict.fromkeys([5, 6, 7], "overloaded"))
        self.assertFalse(self.is_answered([honest]))
        slow.close()
        return self.receive_pages(honest, 3)

    def test_another_clients_requests_are_fetched_for_it(self):
        pages = self.displace()
        self.assertEqual([pages[xid].status for xid in (1, 2, 3)], ["ok"] * 3)
        # One of the two fetches, and the other one joins that.
        self.assertEqual([pages[xid].source for xid in (1, 2, 3)], ["miss", "coalesced", "miss"])
        self.assertEqual(self.admin.stat().fetches_displaced, 2)

    def test_without_the_rules_of_http(self):
        pages = self.displace("--freshness", "off")
        self.assertEqual([pages[xid].source for xid in (1, 2, 3)], ["miss", "coalesced", "miss"])


class WaitingShareTest(FairnessTest):
    """What waits for a fetch takes memory, of which one client has a part only."""

    seconds = 6
    LIMIT = 32 << 20
    SHARE = LIMIT // 8

    def send(self, connections, calls, url):
        before = self.admin.stat().calls
        for c in connections:
            c.send(b"".join(rpc.record(rpc.call(
                xid=n, procedure=rpc.V2_GET, arguments=rpc.get_arguments(url.format(n % 3))))
                for n in range(calls)))
        harness.wait_until(lambda: self.admin.stat().calls - before >= len(connections) * calls,
                           60, "the calls")

    def flood_with(self, url, calls, connections=19):
        self.hanging = self.origin()
        self.start("--max-transit", str(self.LIMIT), origin=self.hanging)
        flood = [self.connect("127.0.0.2") for _ in range(connections)]
        self.send(flood, calls, url)
        return flood

    def is_served(self, url):
        honest = self.connect(HONEST)
        for n in range(20):
            page = honest.get(url.format(n))
            self.assertEqual((page.status, page.source), ("ok", "miss"), page.sentence)

    def test_long_urls_of_one_client(self):
        long = "x" * 8000
        flood = self.flood_with(f"http://h{{}}.test/?fault=hang-silent&x={long}", CALLS)
        self.is_served(f"http://good.test/{{}}/{long}")
        self.assertLess(self.admin.stat().memory_requests, self.SHARE // 2)
        refused = rpc.Page(flood[-1].receive().results)
        self.assertEqual(refused.status, "overloaded")
        self.assertIn("too many requests of this client wait", refused.sentence)
        # They are counted until their fetches end, and the client may wait again afterwards.
        for c in flood:
            c.reset()
        again = self.connect("127.0.0.2")
        self.hanging.stop()
        harness.wait_until(lambda: self.admin.stat().fetches_active == 0, what="the fetches' end")
        self.assertEqual(again.get("http://good.test/again").status, "connect_failed")

    def test_a_request_that_joins_costs_no_copy_of_its_url(self):
        self.flood_with("http://h{}.test/?fault=hang-silent&x=" + "x" * 8000, 50, 8)
        self.assertLess(self.admin.stat().memory_requests, 8 * 50 * 2500)
        self.assertEqual(self.admin.stat().failures, 0)

    def test_without_memory_those_that_waited_are_answered(self):
        # The answer is for one client, so each that waited would have to fetch for itself.
        self.start("--max-transit", str(self.LIMIT), origin=self.origin())
        url = "http://h.test/?fault=cookie&fault=delay:1s&x=" + "x" * 8000
        waiting = self.connect("127.0.0.2")
        waiting.send(b"".join(rpc.record(rpc.call(
            xid=n, procedure=rpc.V2_GET, arguments=rpc.get_arguments(url))) for n in range(100)))
        pages = [rpc.Page(waiting.receive().results) for _ in range(100)]
        refused = [p for p in pages if p.status == "overloaded"]
        self.assertEqual(len([p for p in pages if p.status == "ok"]), 100 - len(refused))
        self.assertGreater(len(refused), 0)
        self.assertLess(len(refused), 99)
        for page in refused:
            self.assertIn("too many requests of this client wait", page.sentence)
        self.assertEqual(self.admin.stat().failures, len(refused))


class BoundTest(FairnessTest):
    def test_without_a_bound_clients_take_turns(self):
        # All slots are taken, but as soon as one is free it is the other client's turn.
        self.start("--max-fetches", "16", "--max-fetches-per-client", "0", origin=self.origin())
        flood = self.flood("http://h{}.test/?fault=delay:1s")
        c = self.connect(HONEST)
        self.assertEqual(c.get("http://good.test/").status, "ok")
        self.assertGreater(self.admin.stat().fetches_queued, 0)
        self.assertEqual(rpc.Page(flood[0].receive().results).status, "ok")

    def test_a_bound_that_was_set(self):
        self.start("--max-fetches", "40", "--max-fetches-waiting", "30",
                   "--max-fetches-per-client", "8", origin=self.origin())
        self.flood("http://h{}.test/fault/hang-silent")
        self.assertEqual(self.admin.stat().fetches_active, 8)

    def test_bounds_that_cannot_be(self):
        d = self.daemon("--max-fetches", "4", "--max-fetches-waiting", "5", ready=False, expect=78)
        self.assertEqual(d.wait(), 78)
        self.assertIn("more fetches may wait", d.err)
