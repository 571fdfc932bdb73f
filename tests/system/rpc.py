"""ONC RPC (RFC 5531) and XDR (RFC 4506) by hand, so that a test can say what no client would."""

import socket
import struct
import threading

PROGRAM = 0x23451111
CALL, REPLY = 0, 1
AUTH_NONE, AUTH_SYS, AUTH_SHORT, AUTH_TLS = 0, 1, 2, 7
V1_FETCH = 1
V2_GET, V2_STAT, V2_PURGE, V2_SET, V2_READ, V2_RELEASE = 1, 2, 3, 4, 7, 8
MAX_PIECE = 1 << 20
FLAG_NO_STORE, FLAG_WANT_VICTIMS = 1, 2
SOURCES = ["hit", "miss", "coalesced", "bypass", "revalidated", "stale"]
STATUSES = ["ok", "bad_url", "bad_headers", "denied", "resolve_failed", "connect_failed",
            "tls_failed", "timed_out", "origin_broke", "too_large", "bad_redirect", "overloaded",
            "stopping", "internal", "bad_value", "no_object", "purged_here", "purged_more"]
ACCEPT = ["SUCCESS", "PROG_UNAVAIL", "PROG_MISMATCH", "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR"]
PURGE_URL, PURGE_PREFIX, PURGE_ALL, PURGE_TAG = 0, 1, 2, 3


def opaque(data):
    if isinstance(data, str):
        data = data.encode()
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


def call(program=PROGRAM, version=2, procedure=0, arguments=b"", xid=1, rpcvers=2,
         credential=(AUTH_NONE, b""), verifier=(AUTH_NONE, b"")):
    """A call message, without record marks."""
    return (
        struct.pack(">IIIIII", xid, CALL, rpcvers, program, version, procedure)
        + struct.pack(">I", credential[0]) + opaque(credential[1])
        + struct.pack(">I", verifier[0]) + opaque(verifier[1])
        + arguments
    )


def auth_sys(machine=b"test", uid=0, gid=0, gids=()):
    body = struct.pack(">I", 0) + opaque(machine) + struct.pack(">III", uid, gid, len(gids))
    return body + b"".join(struct.pack(">I", g) for g in gids)


def fragment(data, last=True):
    return struct.pack(">I", len(data) | (0x80000000 if last else 0)) + data


def record(message, size=None):
    """A message as a record: one fragment, or fragments of `size` bytes."""
    if size is None:
        return fragment(message)
    pieces = [message[i : i + size] for i in range(0, len(message), size)] or [b""]
    return b"".join(fragment(p, i == len(pieces) - 1) for i, p in enumerate(pieces))


def get_arguments(url, headers=b"", flags=0):
    return opaque(url) + opaque(headers) + struct.pack(">I", flags)


def set_arguments(policy="", set_capacity=False, urls=0, size=0, shards=0, cold=False):
    return opaque(policy) + struct.pack(">IQQII", set_capacity, urls, size, shards, cold)


def purge_arguments(kind, url=b""):
    return struct.pack(">I", kind) + opaque(url)


class Reader:
    """Takes XDR apart, and complains of what is not there."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, n):
        if self.at + n > len(self.data):
            raise EOFError(f"{n} bytes wanted at {self.at} of {len(self.data)}")
        piece = self.data[self.at : self.at + n]
        self.at += n
        return piece

    def uint(self):
        return struct.unpack(">I", self.take(4))[0]

    def hyper(self):
        return struct.unpack(">Q", self.take(8))[0]

    def signed_hyper(self):
        return struct.unpack(">q", self.take(8))[0]

    def opaque(self):
        n = self.uint()
        data = self.take(n)
        pad = self.take(-n % 4)
        if any(pad):
            raise ValueError("padding is not zero")
        return data

    def end(self):
        if self.at != len(self.data):
            raise ValueError(f"{len(self.data) - self.at} bytes too many")


class Reply:
    """status is SUCCESS, another accept_stat, or DENIED; low and high where versions are named."""

    def __init__(self, data):
        r = Reader(data)
        self.xid = r.uint()
        if r.uint() != REPLY:
            raise ValueError("not a reply")
        self.low = self.high = self.reason = None
        self.results = b""
        if r.uint() == 0:
            self.verifier = (r.uint(), r.opaque())
            self.status = ACCEPT[r.uint()]
            if self.status == "PROG_MISMATCH":
                self.low, self.high = r.uint(), r.uint()
            self.results = data[r.at :]
        else:
            self.status = "DENIED"
            if r.uint() == 0:
                self.reason = "RPC_MISMATCH"
                self.low, self.high = r.uint(), r.uint()
            else:
                self.reason = ["AUTH_OK", "AUTH_BADCRED", "AUTH_REJECTEDCRED", "AUTH_BADVERF",
                               "AUTH_REJECTEDVERF", "AUTH_TOOWEAK", "AUTH_INVALIDRESP",
                               "AUTH_FAILED"][r.uint()]


class Ending:
    """What is known when a body is complete."""

    def __init__(self, r):
        self.stored = bool(r.uint())
        self.fetch_us = r.hyper()
        self.evicted = r.uint()
        self.victims = [r.opaque().decode(errors="surrogateescape") for _ in range(r.uint())]


class Piece:
    """The answer of PROXY_READ: status, and either sentence or bytes, `ending` (None: not reached)
    and length (-1: not known)."""

    def __init__(self, data):
        r = Reader(data)
        self.status = STATUSES[r.uint()]
        self.sentence, self.ending, self.bytes = None, None, b""
        if self.status != "ok":
            self.sentence = r.opaque().decode()
        else:
            self.length = r.signed_hyper()
            if r.uint():
                self.ending = Ending(r)
            self.bytes = r.opaque()
        r.end()


class Page:
    """The answer of PROXY_GET: status, and either sentence or what the page has. `object` is None if
    the body is whole; then `stored`, `fetch_us`, `evicted` and `victims` mean something."""

    def __init__(self, data):
        r = Reader(data)
        self.status = STATUSES[r.uint()]
        self.sentence = None
        if self.status != "ok":
            self.sentence = r.opaque().decode()
            r.end()
            return
        self.http_status = r.uint()
        self.source = SOURCES[r.uint()]
        self.age = r.uint()
        self.total_us = r.hyper()
        self.end(Ending(r))
        self.final_url = r.opaque().decode(errors="surrogateescape")
        self.headers = r.opaque().decode("latin-1")
        self.object, self.length = None, None
        if r.uint():
            self.object, self.length = r.take(16), r.signed_hyper()
        self.body = r.opaque()
        r.end()

    def end(self, ending):
        vars(self).update(vars(ending))

    def fail(self, piece):
        self.status, self.sentence = piece.status, piece.sentence


class Stats:
    """The answer of PROXY_STAT: `facts`, `metrics` and `kinds` by name, and attributes for those
    that tests read. The name of a family stands for the sum of its rows."""

    FACTS = ("software", "policy")
    ATTRIBUTES = {
        "workers": "workers", "shards": "cache_shards", "uptime_us": "uptime_microseconds",
        "capacity_urls": "cache_capacity_pages", "capacity_bytes": "cache_capacity_bytes",
        "pages": "cache_pages", "bytes": "cache_bytes",
        "requests": "requests", "hits": 'requests{outcome="hit"}',
        "misses": 'requests{outcome="miss"}', "coalesced": 'requests{outcome="coalesced"}',
        "bypasses": 'requests{outcome="bypass"}', "failures": 'requests{outcome="failure"}',
        "bytes_served": "served_bytes", "bytes_hit": 'served_bytes{source="cache"}',
        "bytes_fetched": "fetched_bytes",
        "insertions": "cache_insertions", "evictions": "cache_evictions",
        "connections": "connections", "connections_total": "connections_accepted",
        "connections_refused": "connections_refused",
        "refused_full": 'connections_refused{reason="full"}',
        "refused_client": 'connections_refused{reason="client"}',
        "refused_descriptors": 'connections_refused{reason="descriptors"}',
        "refused_memory": 'connections_refused{reason="memory"}',
        "clients": "clients", "calls": "calls", "calls_bad": "calls_bad",
        "calls_delayed": "calls_delayed", "fetches_active": "fetches_active",
        "fetches_waiting": "fetches_waiting", "fetches_queued": "fetches_queued",
        "fetches_displaced": "fetches_displaced", "fetches_refused": "fetches_refused",
        "log_lines_lost": "log_lines_lost", "memory_limit": "memory_limit_bytes",
        **{f"memory_{kind}": f'memory_bytes{{kind="{kind}"}}'
           for kind in ("pages", "fetches", "records", "requests", "replies", "failed")},
        "memory_refusals": "memory_refusals", "memory_reclaimed": "memory_reclaimed_bytes",
    }

    def __init__(self, data):
        r = Reader(data)
        self.facts = {r.opaque().decode(): r.opaque().decode() for _ in range(r.uint())}
        self.metrics, self.kinds = {}, {}
        for _ in range(r.uint()):
            name = r.opaque().decode()
            if name in self.metrics:
                raise ValueError(f"two metrics are named {name}")
            self.kinds[name] = ("counter", "gauge", "histogram")[r.uint()]
            self.metrics[name] = r.hyper()
        r.end()
        for name in self.FACTS:
            setattr(self, name, self.facts[name])
        for attribute, name in self.ATTRIBUTES.items():
            setattr(self, attribute, self.value(name))

    def value(self, name):
        rows = [value for row, value in self.metrics.items()
                if row == name or row.startswith(name + "{")]
        if not rows:
            raise KeyError(name)
        return sum(rows)


class Connection:
    """A stream to a server: (host, port), or the path of a socket; from the address `source`."""

    def __init__(self, address, seconds=30, receive_buffer=None, source=None):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        if family == socket.AF_INET and ":" in address[0]:
            family = socket.AF_INET6
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(seconds)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source:
            self.socket.bind((source, 0))
        self.socket.connect(address)
        self.xid = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def reset(self):
        """Closes with a RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def receive_exactly(self, n):
        pieces = []
        while n:
            piece = self.socket.recv(min(n, 1 << 20))
            if not piece:
                raise EOFError("the server has closed the connection")
            pieces.append(piece)
            n -= len(piece)
        return b"".join(pieces)

    def receive_record(self):
        pieces = []
        while True:
            mark = struct.unpack(">I", self.receive_exactly(4))[0]
            pieces.append(self.receive_exactly(mark & 0x7FFFFFFF))
            if mark & 0x80000000:
                return b"".join(pieces)

    def receive(self):
        return Reply(self.receive_record())

    def is_closed(self):
        """Waits for the server's end; True on an end or a reset, False if bytes come."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def ask(self, **fields):
        """One call of our own making, and the reply to it."""
        self.xid += 1
        self.send(record(call(xid=self.xid, **fields)))
        reply = self.receive()
        if reply.xid != self.xid:
            raise ValueError(f"xid {reply.xid} answers {self.xid}")
        return reply

    def _results(self, reply):
        if reply.status != "SUCCESS":
            raise ValueError(f"{reply.status} {reply.reason}")
        return reply.results

    # ---- the procedures ----------------------------------------------------------------------

    def ping(self, version=2):
        return self.ask(version=version, procedure=0).status == "SUCCESS"

    def fetch_v1(self, url):
        """The body, or the name of an RPC error."""
        reply = self.ask(version=1, procedure=V1_FETCH, arguments=opaque(url))
        if reply.status != "SUCCESS":
            return reply.status
        r = Reader(reply.results)
        body = r.opaque()
        r.end()
        return body

    def get(self, url, headers=b"", flags=0):
        """The page with its whole body, in as many calls as that takes."""
        return self.get_rest(self.get_first(url, headers, flags))

    def get_rest(self, page):
        pieces = [page.body] if page.status == "ok" else []
        offset = len(pieces[0]) if pieces else 0
        while page.status == "ok" and page.object:
            piece = self.read(page.object, offset)
            pieces.append(piece.bytes)
            offset += len(piece.bytes)
            if piece.status != "ok":
                page.fail(piece)
            elif piece.ending:
                page.end(piece.ending)
                self.release(page.object)
                page.object = None
        page.body = b"".join(pieces)
        return page

    def get_first(self, url, headers=b"", flags=0):
        return Page(self._results(self.ask(
            procedure=V2_GET, arguments=get_arguments(url, headers, flags))))

    def read(self, name, offset, count=MAX_PIECE):
        return Piece(self._results(self.ask(
            procedure=V2_READ, arguments=name + struct.pack(">QI", offset, count))))

    def release(self, name):
        return STATUSES[Reader(self._results(self.ask(
            procedure=V2_RELEASE, arguments=name))).uint()]

    def stat(self):
        return Stats(self._results(self.ask(procedure=V2_STAT)))

    def purge(self, kind, url=b""):
        """(status, number or sentence)"""
        return self._verdict(self.ask(procedure=V2_PURGE, arguments=purge_arguments(kind, url)))

    def set(self, **values):
        return self._verdict(self.ask(procedure=V2_SET, arguments=set_arguments(**values)))

    def _verdict(self, reply):
        r = Reader(self._results(reply))
        status = STATUSES[r.uint()]
        value = r.hyper() if status in ("ok", "purged_more") else r.opaque().decode()
        r.end()
        return status, value


def together(daemon, url, count):
    """The pages that this number of clients get when they request a URL at the same moment."""
    pages = [None] * count
    barrier = threading.Barrier(count)

    def ask(n):
        with Connection(daemon.address if n % 2 else daemon.socket) as c:
            barrier.wait()
            pages[n] = c.get(url)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return pages
