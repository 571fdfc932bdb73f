"""Large bodies over version 2 of RPC: read piece by piece, in little memory on either side."""

import os
import subprocess
import threading

import harness
import rpc

MEBI = 1 << 20
GIBI = 1 << 30


def peak(pid):
    """Bytes that were resident at most; 0 if the process has ended."""
    try:
        with open(f"/proc/{pid}/status") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return 0


class RangesCase(harness.SystemTest):
    program = harness.SUNPROXYD
    options = ()

    def setUp(self):
        super().setUp()
        if not self.program.exists() or not self.client.exists():
            self.skipTest(f"{self.program} is not built")
        self.o = self.origin()
        self.d = self.daemon(*self.options, origin=self.o, program=self.program)
        self.admin = rpc.Connection(self.d.socket)
        self.addCleanup(self.admin.close)

    def ended(self, reason):
        return self.admin.stat().value(f'cursors_ended{{reason="{reason}"}}')

    def text(self, url):
        """The body that the origin gives, read from it directly, as it comes."""
        return harness.start_with_parent(
            ["curl", "-sS", "--connect-to", f"::127.0.0.1:{self.o.http_port}", url],
            stdout=subprocess.PIPE)

    def get(self, url, output, *options):
        """Starts the client."""
        return harness.start_with_parent(
            [str(self.client), "get", "--socket", self.d.socket, "-o", str(output), *options, url],
            stderr=subprocess.PIPE,
            env=harness.sanitizer_environment(self.dir / "sanitizer.get"))

    def finish(self, client, expect=0):
        said = client.communicate(timeout=100)[1].decode()
        self.assertEqual(client.returncode, expect, said)
        return said

    def fifo(self, name):
        path = self.dir / name
        os.mkfifo(path)
        return path

    def expect_same(self, url, stream):
        """Compares what is read from a stream with the origin's body, byte by byte."""
        origin = self.text(url)
        done = subprocess.run(["cmp", "-", "/proc/self/fd/3"], stdin=origin.stdout,
                              preexec_fn=lambda: os.dup2(stream.fileno(), 3), pass_fds=(3,),
                              capture_output=True, timeout=100)
        origin.stdout.close()
        self.assertEqual(origin.wait(), 0)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class LargeTest(RangesCase):
    seconds = 8
    threads = True
    size = 150 * MEBI
    most = None  # bytes that a process may grow by; None: it is not measured

    def test_a_large_body_takes_little_memory(self):
        """The body is not stored: the origin is as fast as the client."""
        url = f"http://a.test/?fault=size:{self.size}"
        self.sunproxy("get", "http://a.test/", daemon=self.d)
        base = peak(self.d.pid)
        path = self.fifo("body")
        client = self.get(url, path)
        peaks = []
        watching = threading.Event()

        def watch():
            while not watching.wait(0.02):
                peaks.append(peak(client.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        with open(path, "rb", buffering=0) as body:
            self.expect_same(url, body)
        self.finish(client)
        watching.set()
        watcher.join()
        self.assertEqual(self.admin.stat().pages, 1)
        if self.most:
            self.assertLess(peak(self.d.pid) - base, self.most)
            self.assertLess(max(peaks), 8 * MEBI + self.most)

    def test_a_stored_body_is_a_hit(self):
        url = f"http://a.test/?fault=size:{15 * MEBI + 7}"
        for source in ("miss, stored", "hit"):
            path = self.dir / "page"
            said = self.finish(self.get(url, path, "-v"))
            self.assertIn(f"HTTP 200, {source}, 15.0 MiB", said)
            with open(path, "rb") as body:
                self.expect_same(url, body)


class MeasuredLargeTest(LargeTest):
    """2 GiB, by the programs as they are installed."""

    threads = False
    seconds = 15
    program = harness.RELEASE_SUNPROXYD
    client = harness.RELEASE_SUNPROXY
    size = 2 * GIBI
    most = 16 * MEBI


class ReadersTest(RangesCase):
    seconds = 13
    threads = True
    options = ("--max-page", "1M", "--hold-timeout", "400ms")

    def url(self, size, *faults):
        return "http://a.test/?" + "&".join(f"fault={f}" for f in (f"size:{size}", *faults))

    def begin_slowly(self, url, name="slow"):
        """A client whose output is read no further than the first bytes: (client, output)."""
        path = self.fifo(name)
        client = self.get(url, path)
        body = open(path, "rb", buffering=0)
        self.addCleanup(body.close)
        return client, body

    def test_two_readers_at_different_paces(self):
        url = self.url(40 * MEBI)
        slow, body = self.begin_slowly(url)
        fast = self.dir / "fast"
        self.finish(self.get(url, fast))
        with open(fast, "rb") as f:
            self.expect_same(url, f)
        self.expect_same(url, body)
        self.finish(slow)

    def test_what_has_expired_is_fetched_again(self):
        for size in (5 * MEBI, 40 * MEBI):
            url = self.url(size)
            before = self.ended("expired")
            client, body = self.begin_slowly(url, f"slow{size}")
            harness.wait_until(lambda: self.ended("expired") > before, what="the end of the cursor")
            self.expect_same(url, body)
            self.finish(client)

    def test_a_page_that_has_changed_is_an_error(self):
        client, body = self.begin_slowly(self.url(5 * MEBI, "later:echo"))
        harness.wait_until(lambda: self.ended("expired"), what="the end of the cursor")
        while body.read(MEBI):
            pass
        self.assertIn("the page has changed while it was read", self.finish(client, 76))

    def test_a_reader_that_disconnects(self):
        with rpc.Connection(self.d.address) as c:
            page = c.get_first(self.url(300 * MEBI))
            self.assertEqual((page.status, page.length), ("ok", 300 * MEBI))
            self.assertEqual(c.read(page.object, len(page.body)).status, "ok")
            self.assertEqual(self.admin.stat().fetches_active, 1)
            self.assertLess(self.admin.stat().memory_pages, 4 * MEBI)
        harness.wait_until(lambda: self.admin.stat().fetches_active == 0, what="the fetch's end")
        self.assertEqual(self.ended("disconnected"), 1)
        self.assertEqual(self.admin.stat().value("cursors"), 0)
        self.assertLess(self.admin.stat().memory_pages, MEBI)

    def test_nobody_else_can_read_an_object(self):
        with rpc.Connection(self.d.address) as c, rpc.Connection(self.d.address) as other:
            page = c.get_first(self.url(5 * MEBI))
            piece = other.read(page.object, 0)
            self.assertEqual((piece.status, piece.bytes), ("no_object", b""))
            self.assertEqual(other.release(page.object), "no_object")
            self.assertEqual(c.release(page.object), "ok")

    def test_a_truncated_body(self):
        url = self.url(5 * MEBI, "short:100")
        path = self.dir / "page"
        self.assertIn("not sent a valid response", self.finish(self.get(url, path), 76))
        self.assertFalse(path.exists())
        with rpc.Connection(self.d.address) as c:
            self.assertEqual(c.get(url).status, "origin_broke")
        self.assertEqual(self.ended("failed"), 2)

    def test_version_1_beside_it(self):
        """It begins the fetch, and bounds it; version 2 then fetches for itself."""
        url = self.url(25 * MEBI, "delay:1s")
        with rpc.Connection(self.d.address) as old, rpc.Connection(self.d.address) as c:
            old.send(rpc.record(rpc.call(version=1, procedure=rpc.V1_FETCH,
                                         arguments=rpc.opaque(url))))
            harness.wait_until(lambda: self.admin.stat().fetches_active, what="the fetch")
            page = c.get(url)
            self.assertEqual((page.status, len(page.body)), ("ok", 25 * MEBI), page.sentence)
            self.assertEqual(old.receive().status, "SYSTEM_ERR")

    def test_replay_counts_whole_bodies(self):
        urls = self.dir / "urls"
        urls.write_text(self.url(3 * MEBI) + "\n" + self.url(100) + "\n")
        log = self.dir / "log"
        self.sunproxy("replay", "--log", log, urls, daemon=self.d)
        self.assertEqual(sum(str(3 * MEBI) in line for line in log.read_text().splitlines()), 1)
