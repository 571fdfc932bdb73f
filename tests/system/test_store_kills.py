"""A daemon with a store is killed under load, again and again, while clients verify each answer.

SUNPROXY_STORE_KILLS is the number of kills, 8 by default; make soak runs 200.
"""

import hashlib
import http.server
import os
import random
import threading
import time

import harness
from http_front import Connection, http_address

KILLS = int(os.environ.get("SUNPROXY_STORE_KILLS", "8"))
PAGES = 200


class PagesOrigin(harness.PythonOrigin):
    """Pages with versions: a write makes the next one."""

    def __init__(self, test):
        self.versions = {}
        self.lock = threading.Lock()
        self.gets = 0
        super().__init__(test, PagesHandler)


def body_of(path, version):
    seed = hashlib.sha256(f"{path} {version}".encode()).digest()
    length = 200 + int.from_bytes(seed[:2], "big") % 30000
    return f"{path} {version} ".encode() + (seed * (length // 32 + 1))[:length]


class PagesHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body):
        self.send_response(200)
        self.send_header("Cache-Control", "max-age=600")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        with self.server.lock:
            version = self.server.versions.get(self.path, 0)
            self.server.gets += 1
        self.answer(body_of(self.path, version))

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.server.lock:
            self.server.versions[self.path] = self.server.versions.get(self.path, 0) + 1
        self.answer(b"done")


class Client(threading.Thread):
    """Asks for pages and writes some, and notes what it may not get."""

    def __init__(self, test, seed):
        super().__init__(daemon=True)
        self.test, self.random = test, random.Random(seed)
        self.problems, self.answers, self.hits = [], 0, 0

    def run(self):
        while not self.test.over.is_set():
            try:
                self.session(Connection(self.test.address))
            except (OSError, ValueError, AssertionError, IndexError):  # it was killed
                time.sleep(0.01)

    def session(self, c):
        while not self.test.over.is_set():
            path = f"/{int(self.random.paretovariate(0.7)) % PAGES}"
            if self.random.random() < 0.03:
                self.write(c, path)
            else:
                self.read(c, path)

    @staticmethod
    def ask(c, text):
        c.send(text)
        reply = c.receive()
        if reply is None:
            raise ConnectionResetError
        return reply

    def write(self, c, path):
        """After its answer nothing older may come, whatever is killed."""
        with self.test.member.lock:
            before = self.test.member.versions.get(path, 0)
        if self.ask(c, f"POST {path} HTTP/1.1\r\nHost: site.test\r\nContent-Length: 0\r\n\r\n").status == 200:
            with self.test.lock:
                self.test.least[path] = max(self.test.least.get(path, 0), before + 1)

    def read(self, c, path):
        with self.test.lock:
            least = self.test.least.get(path, 0)
        reply = self.ask(c, f"GET {path} HTTP/1.1\r\nHost: site.test\r\n\r\n")
        if reply.status != 200:
            return
        self.answers += 1
        self.hits += "; hit" in (reply.field("cache-status") or "")
        words = reply.body.split(b" ", 2)
        version = int(words[1])
        if reply.body != body_of(path, version):
            self.problems.append(f"{path}: wrong bytes, as of version {version}")
        elif version < least:
            self.problems.append(f"{path}: version {version} after {least} was written")


class KillsTest(harness.SystemTest):
    seconds = 60 + KILLS
    sandboxed = True

    def begin(self):
        self.d = self.daemon("--http", "127.0.0.1:0", "--origin", f"/={self.member.url}", "--store", self.dir / "store",
                             "--store-size", "16M", "--store-sync", "20ms", "--capacity-urls", "50")
        self.address = harness.wait_until(lambda: http_address(self.d), what="the HTTP front")

    def test_no_wrong_and_no_purged_page_after_kills(self):
        self.member = PagesOrigin(self)
        self.lock, self.over, self.least = threading.Lock(), threading.Event(), {}
        self.begin()
        clients = [Client(self, seed) for seed in range(4)]
        for client in clients:
            client.start()
        draws = random.Random(1)
        reads = 0
        for _ in range(KILLS):
            time.sleep(0.3 + draws.random() * 0.4)
            reads += self.stat(self.d)["store_reads_hit"]
            self.d.kill()
            self.begin()
        self.over.set()
        for client in clients:
            client.join(60)
        self.assertEqual([p for client in clients for p in client.problems], [])
        answers = sum(client.answers for client in clients)
        self.assertGreater(answers, 100 * KILLS)
        self.assertGreater(reads, 0)
        self.assertEqual(self.stat(self.d)["store_reads_damaged"], 0)
        print(f"{KILLS} kills, {answers} answers, {sum(c.hits for c in clients)} hits, {reads} of them from disk, "
              f"{self.member.gets} fetches, {sum(self.member.versions.values())} writes")
