"""The load of the HTTP soak: lanes, threads that each send requests over a connection of their own and
judge every response by http_model.py."""

import collections
import contextlib
import hashlib
import random
import re
import threading
import time

import http_model
from http_wire import NoResponse, Wire

MOST_FAILURES = 10
DOWN_NS = 200_000_000
JOIN_SECONDS = 5  # for which a fetch goes on that other requests join
HOST = "world.soak"
VARIANTS = ["", "a", "b"]


def is_from_cache(cache_status):
    """Is the response a stored one that the origin has not confirmed?"""
    return "; hit" in cache_status or "; fwd-status=5" in cache_status


class Ask:
    """A request, and what its response may be."""

    def __init__(self, kind, number, **more):
        self.kind = kind
        self.number = number
        self.method = more.get("method", "GET")
        self.fields = more.get("fields", [])
        self.variant = more.get("variant", "")
        self.tag = more.get("tag")                  # of If-None-Match
        self.ranges = more.get("ranges")            # [(first, last)]
        self.validates = more.get("validates", False)
        self.only_cached = more.get("only_cached", False)
        self.version = more.get("version", "1.1")
        self.slow = more.get("slow", False)
        self.floor = 0          # no version before this one, as of the moment at which it was sent,
        self.sent_ns = 0        # this one
        self.path = f"/{kind}/{number}" if kind in http_model.KINDS else f"/{kind}"

    def text(self):
        lines = [f"{self.method} http://{HOST}{self.path} HTTP/{self.version}", f"Host: {HOST}",
                 *self.fields]
        if self.version == "1.0":
            lines.append("Connection: keep-alive")
        return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"

    def __str__(self):
        return f"{self.method} {self.path} HTTP/{self.version} {self.fields}"


class Load:
    def __init__(self, versions, tcp, local):
        self.versions = versions
        self.addresses = [tcp, local]
        self.floors = {}          # (kind, number): the oldest version that may be used
        self.tags = {}            # (kind, number, variant): of the last response
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.bytes = 0
        self.failures = []
        self.down = []            # [begun, ended or None] of times without an origin, in ns
        self.stop = threading.Event()

    # ---- what others note -----------------------------------------------------------------

    def raise_floor(self, kind, number, version):
        with self.lock:
            self.floors[kind, number] = max(version, self.floors.get((kind, number), 0))

    def origin_is_down(self):
        self.down.append([time.monotonic_ns(), None])

    def origin_is_up(self):
        self.down[-1][1] = time.monotonic_ns()

    def was_down(self, since_ns):
        """At that moment or later; fetches that it broke end shortly after it."""
        return any(ended is None or ended + DOWN_NS > since_ns for _, ended in self.down)

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def fail(self, ask, what):
        with self.lock:
            self.failures.append(f"{ask}: {what}")
            if len(self.failures) >= MOST_FAILURES:
                self.stop.set()

    # ---- judging --------------------------------------------------------------------------

    def may_fail(self, ask):
        """May the response be an error, or break off?"""
        return http_model.KINDS[ask.kind].faults or self.was_down(ask.sent_ns)

    def judge(self, ask, response):
        """None, or what is wrong with it."""
        status = response.status
        if status in (200, 206, 304):
            return self.judge_version(ask, response)
        if status == 504 and ask.only_cached:
            self.count("only-if-cached, not cached")
            return None
        if status in (502, 503, 504) and self.may_fail(ask):
            self.count("error of a faulty origin")
            return None
        return f"status {status}: {bytes(response.body[:200])}"

    def judge_version(self, ask, response):
        kind = http_model.KINDS[ask.kind]
        parsed = http_model.parse_tag(response.field("etag"))
        if not parsed or parsed[1] != (ask.variant if kind.vary else ""):
            return (f"status {response.status}, entity tag {response.field('etag')!r}, variant "
                    f"{ask.variant!r}; {response.fields}, {bytes(response.body[:100])}")
        version = parsed[0]
        used_anyway = (ask.kind == "expired" and is_from_cache(response.field("cache-status"))
                       and self.may_fail(ask))
        if version < ask.floor and not used_anyway:
            return (f"version {version} was purged or written over by {ask.floor}; "
                    f"{response.field('cache-status')}")
        age = self.versions.age(ask.kind, ask.number, version, ask.sent_ns)
        stale = self.greatest_age(ask, response.field("cache-status"))
        if stale is not None and age > stale:
            return (f"version {version} ended {age:.3f} s before; {response.field('cache-status')}, "
                    f"Age: {response.field('age')}")
        if age == float("inf"):
            return f"version {version} has never been, or long ago"
        self.note(ask, response, version)
        if response.status == 304:
            return None if response.field("etag") == ask.tag else f"304 for {ask.tag}, not the tag"
        return self.judge_body(ask, response, version)

    def greatest_age(self, ask, cache_status):
        """The time for which a version may have ended; None: any."""
        kind = http_model.KINDS[ask.kind]
        if is_from_cache(cache_status) and self.may_fail(ask):
            # What the origin did not validate.
            return None if kind.outlives else kind.stale
        stale = 0 if ask.validates else kind.stale
        if stale is not None and "; collapsed" in cache_status:
            stale += JOIN_SECONDS
        return stale

    def note(self, ask, response, version):
        status = response.field("cache-status")
        self.count("hit" if "; hit" in status else
                   "forwarded, stale" if "fwd=stale" in status else
                   "forwarded, collapsed" if "collapsed" in status else "forwarded")
        self.count(f"status {response.status}")
        with self.lock:
            self.tags[ask.kind, ask.number, ask.variant] = response.field("etag")
            self.bytes += len(response.body)

    def judge_body(self, ask, response, version):
        expected = http_model.make_body(ask.kind, ask.number, version,
                                        ask.variant if http_model.KINDS[ask.kind].vary else "")
        body = bytes(response.body)
        if ask.method == "HEAD":
            length = response.field("content-length")
            return None if length in ("", str(len(expected))) else f"Content-Length {length} for HEAD"
        if response.status == 206:
            return self.judge_parts(ask, response, expected)
        if not response.whole:
            if not expected.startswith(body):
                return f"a part of {len(body)} bytes with other bytes"
            self.count("broken off")
            return None if self.may_fail(ask) else f"broken off after {len(body)} of {len(expected)}"
        if not http_model.has_its_checksum(body):
            return f"a body of {len(body)} instead of {len(expected)} bytes without its checksum"
        return None if body == expected else "a body of another resource or version"

    def judge_parts(self, ask, response, expected):
        if not ask.ranges:
            return "206 without a range"
        if not response.whole:
            self.count("broken off")
            return None if self.may_fail(ask) else "a partial response that breaks off"
        kind = response.field("content-type")
        if kind.startswith("multipart/byteranges"):
            boundary = kind.partition("boundary=")[2].strip('"').encode()
            parts = [part.partition(b"\r\n\r\n") for part in
                     bytes(response.body).split(b"--" + boundary)[1:-1]]
            parts = [(head.decode("latin-1"), data.removesuffix(b"\r\n")) for head, _, data in parts]
        else:
            parts = [(f"content-range: {response.field('content-range')}", bytes(response.body))]
        if len(parts) > len(ask.ranges):
            return f"{len(parts)} parts"
        for head, data in parts:
            found = re.search(r"(?i)content-range: bytes (\d+)-(\d+)/(\d+)", head)
            if not found:
                return f"a part without Content-Range: {head!r}"
            first, last, size = (int(text) for text in found.groups())
            if size != len(expected) or data != expected[first:last + 1]:
                return f"a part {first}-{last}/{size} with other bytes, of {len(expected)}"
            if not any(first == a and last == min(b, size - 1) for a, b in ask.ranges):
                return f"a part {first}-{last} that was not asked for"
        return None

    # ---- lanes ----------------------------------------------------------------------------

    def run(self, lanes, seconds, seed):
        """Sends requests for this number of seconds."""
        end = time.monotonic() + seconds
        threads = [threading.Thread(target=Lane(self, n, seed, end).run) for n in range(lanes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


class Lane:
    def __init__(self, load, number, seed, end):
        self.load = load
        self.address = load.addresses[number % 2]
        self.random = random.Random(seed * 1000 + number)
        self.end = end
        self.wire = None

    def run(self):
        try:
            while time.monotonic() < self.end and not self.load.stop.is_set():
                self.step()
        except Exception as error:  # whatever it is, the run must not pass
            self.load.fail("a lane", f"ended by {type(error).__name__}: {error}")
            raise
        finally:
            self.hang_up()

    def hang_up(self):
        if self.wire:
            self.wire.close()
        self.wire = None

    def step(self):
        draw = self.random.random()
        if not self.wire:
            self.wire = Wire(self.address)
        if draw < 0.03:
            self.write()
        elif draw < 0.06:
            self.echo()
        elif draw < 0.09:
            self.vanish()
        elif draw < 0.19:
            self.exchange([self.draw() for _ in range(self.random.randint(2, 5))])
        else:
            self.exchange([self.draw()])

    def draw(self):
        pick = self.random
        kind = pick.choice(list(http_model.KINDS))
        large = kind.startswith("large")
        if large and pick.random() < 0.8:  # these are many bytes
            kind, large = "fresh", False
        number = min(pick.randrange(http_model.NUMBERS), pick.randrange(http_model.NUMBERS))
        ask = Ask(kind, number)
        if http_model.KINDS[kind].vary:
            ask.variant = pick.choice(VARIANTS)
            if ask.variant:
                ask.fields.append(f"X-Variant: {ask.variant}")
        how = pick.random()
        if how < 0.1:
            ask.ranges = self.ranges(http_model.KINDS[kind].sizes[0])
            ask.fields.append("Range: bytes=" + ",".join(f"{a}-{b}" for a, b in ask.ranges))
        elif how < 0.2:
            ask.tag = self.load.tags.get((kind, number, ask.variant))
            if ask.tag:
                ask.fields.append(f"If-None-Match: {ask.tag}")
        elif how < 0.25:
            ask.validates = True
            ask.fields.append(pick.choice(["Cache-Control: no-cache", "Cache-Control: max-age=0"]))
        elif how < 0.27:
            ask.only_cached = True
            ask.fields.append("Cache-Control: only-if-cached")
        elif how < 0.3:
            ask.method = "HEAD"
        elif how < 0.33 and not isinstance(self.address, str):
            # Over AF_UNIX a client cannot tell whether a body without a length is whole.
            ask.version = "1.0"
        elif how < 0.5 and large:
            ask.slow = True
        return ask

    def ranges(self, size):
        result = []
        for _ in range(self.random.choice([1, 1, 1, 2, 3])):
            first = self.random.randrange(size)
            result.append((first, first + self.random.randrange(2 * size)))
        return result

    def exchange(self, asks):
        """Sends requests together and judges the responses, which come in this order."""
        for ask in asks:
            ask.floor = self.load.floors.get((ask.kind, ask.number), 0)
            ask.sent_ns = time.monotonic_ns()
        self.wire.pause = 0.002 if len(asks) == 1 and asks[0].slow else 0
        try:
            self.wire.send(b"".join(ask.text() for ask in asks))
            for n, ask in enumerate(asks):
                if not self.receive(ask, n > 0):
                    return
        except NoResponse as why:
            self.load.fail(asks[0], f"no response: {why}")
            self.hang_up()

    def receive(self, ask, behind):
        """Judges the next response. False: the connection is not used any more."""
        load = self.load
        try:
            response = self.wire.receive(ask.method)
        except TimeoutError:
            load.fail(ask, "no response, or not the whole, within 30 s")
            self.hang_up()
            return False
        except NoResponse:
            if not behind:
                raise
            self.hang_up()  # the one before it was the last one
            return False
        wrong = load.judge(ask, response)
        if wrong:
            load.fail(ask, wrong)
        if not response.whole or "close" in response.field("connection") or (
                not response.field("content-length") and not response.field("transfer-encoding")
                and ask.method != "HEAD" and response.status != 304):
            self.hang_up()
            return False
        return True

    def write(self):
        """A write invalidates what is stored: no older version is used after its response."""
        number = self.random.randrange(http_model.NUMBERS)
        ask = Ask("written", number, method="POST", fields=["Content-Length: 3"])
        response = self.post(ask, [b"new"])
        if response and response.status == 200 and response.whole:
            self.load.raise_floor("written", number, int(response.body))
            self.load.count("written")

    def echo(self):
        """The origin answers the digest of the request's body."""
        body = http_model.NOISE[self.random.randrange(1 << 19):][:self.random.randrange(1 << 18)]
        if self.random.random() < 0.5:
            ask = Ask("echo", 0, method="POST", fields=["Transfer-Encoding: chunked"])
            pieces = [b"%x\r\n%s\r\n" % (len(body[at:at + 7000]), body[at:at + 7000])
                      for at in range(0, len(body), 7000)] + [b"0\r\n\r\n"]
        else:
            ask = Ask("echo", 0, method="POST", fields=[f"Content-Length: {len(body)}"])
            pieces = [body]
        response = self.post(ask, pieces)
        if response and response.status == 200 and response.whole:
            expected = f"{len(body)} {hashlib.sha256(body).hexdigest()}".encode()
            if response.body != expected:
                self.load.fail(ask, f"the origin got {bytes(response.body)}, not {expected}")
            self.load.count("request bodies")

    def post(self, ask, pieces):
        ask.sent_ns = time.monotonic_ns()
        try:
            self.wire.send(ask.text())
            for piece in pieces:
                self.wire.send(piece)
            response = self.wire.receive()
        except (NoResponse, TimeoutError) as why:
            if not self.load.was_down(ask.sent_ns):
                self.load.fail(ask, f"no response: {why}")
            self.hang_up()
            return None
        if response.status != 200 and not self.load.was_down(ask.sent_ns):
            self.load.fail(ask, f"status {response.status}: {bytes(response.body[:200])}")
        if not response.whole or "close" in response.field("connection"):
            self.hang_up()
        return response

    def vanish(self):
        """Leaves in the middle of a response, or before it."""
        ask = self.draw()
        with contextlib.suppress(NoResponse, ConnectionResetError):
            self.wire.send(ask.text())
            if self.random.random() < 0.5:
                self.wire.socket.recv(self.random.randrange(1, 4000))
        self.hang_up()
        self.load.count("vanished")
