"""An HTTP/1.1 server for the studies' origins: one thread, one event loop, on loopback.

The network between it and its clients is part of it: a latency before the first byte of each
response, and a bandwidth that all connections share, as those of one link do (a token bucket with a
burst of BURST seconds).
"""

import collections
import email.utils
import heapq
import itertools
import pathlib
import random
import select
import socket
import time

BURST = 0.02     # seconds of the bandwidth that may be sent at once
PIECE = 1 << 16  # bytes of a body that are sent at a time over a link of bounded bandwidth
READ = 1 << 16
# Bodies of a given size repeat this.
PATTERN = random.Random(1).randbytes(1 << 20)
TWICE = memoryview(PATTERN + PATTERN)

# `fields` of a request by name in lower case.
Request = collections.namedtuple("Request", "method path fields body")
# `fields`: pairs of a name and a value. The body is `body`, or `size` bytes of the pattern.
# `delay`: seconds that this response takes beside those of the link.
Reply = collections.namedtuple("Reply", "status fields body size delay", defaults=(b"", None, 0))
# Seconds before the first byte, and bytes a second (0: no bound).
Link = collections.namedtuple("Link", "latency bandwidth")


def pattern_part(offset, length):
    """At most `length` bytes of a body that repeats the pattern, and at least one, from an offset
    on."""
    at = offset % len(PATTERN)
    return TWICE[at:at + min(length, len(PATTERN))]


def date_at(moment):
    """Seconds since the epoch, as fields have them."""
    return email.utils.formatdate(moment, usegmt=True)


def date_field(after=0):
    """The date in `after` seconds."""
    return date_at(time.time() + after)


class _Connection:
    def __init__(self, sock):
        self.socket = sock
        self.input = bytearray()
        self.head = memoryview(b"")  # of the response, and its body unless that is the pattern
        self.sent = 0                # bytes of the pattern
        self.size = 0
        self.busy = False            # a request is in work
        self.events = select.EPOLLIN

    def piece(self, most):
        if self.head:
            return self.head[:most]
        return pattern_part(self.sent, min(most, self.size - self.sent))

    def advance(self, count):
        if self.head:
            self.head = self.head[count:]
        else:
            self.sent += count

    def has_output(self):
        return len(self.head) > 0 or self.sent < self.size


class Service:
    """handler(Request) returns the Reply; it is called when a request has come, before the
    latency."""

    def __init__(self, handler, link):
        self.handler = handler
        self.link = link
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]
        self.epoll = select.epoll()
        self.epoll.register(self.listener, select.EPOLLIN)
        self.connections = {}
        self.timers = []  # (moment, number, connection)
        self.numbers = itertools.count()
        self.paid = 0.0  # the moment at which what has been sent is paid for

    def announce(self, path):
        """Writes the port to a file that appears complete."""
        draft = pathlib.Path(f"{path}.new")
        draft.write_text(f"{self.port}\n")
        draft.rename(path)

    def run(self):
        while True:
            timeout = -1
            if self.timers:
                timeout = max(0, self.timers[0][0] - time.monotonic())
            for number, events in self.epoll.poll(timeout):
                if number == self.listener.fileno():
                    self._accept()
                elif number in self.connections:
                    self._serve(self.connections[number], events)
            now = time.monotonic()
            while self.timers and self.timers[0][0] <= now:
                connection = heapq.heappop(self.timers)[2]
                if connection.socket.fileno() in self.connections:
                    self._write(connection)

    def _accept(self):
        try:
            sock = self.listener.accept()[0]
        except OSError:
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connections[sock.fileno()] = _Connection(sock)
        self.epoll.register(sock, select.EPOLLIN)

    def _close(self, connection):
        self.epoll.unregister(connection.socket)
        del self.connections[connection.socket.fileno()]
        connection.socket.close()

    def _want(self, connection, events):
        if connection.events != events:
            connection.events = events
            self.epoll.modify(connection.socket, events)

    def _wait(self, connection, moment):
        self._want(connection, 0)
        heapq.heappush(self.timers, (moment, next(self.numbers), connection))

    def _serve(self, connection, events):
        try:
            if events & select.EPOLLIN:
                data = connection.socket.recv(READ)
                if not data:
                    raise ConnectionResetError
                connection.input += data
                self._take_request(connection)
            elif events & select.EPOLLOUT:
                self._write(connection)
            else:
                raise ConnectionResetError
        except BlockingIOError:
            pass
        except OSError:
            self._close(connection)

    def _take_request(self, connection):
        """Begins the next request if it has come whole."""
        end = connection.input.find(b"\r\n\r\n")
        if connection.busy or end < 0:
            return
        lines = connection.input[:end].decode("latin-1").split("\r\n")
        method, path, _ = lines[0].split(" ", 2)
        fields = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            fields[name.lower()] = value.strip()
        length = int(fields.get("content-length", 0))
        if len(connection.input) < end + 4 + length:
            return
        body = bytes(connection.input[end + 4:end + 4 + length])
        del connection.input[:end + 4 + length]
        connection.busy = True
        self._begin_reply(connection, method, self.handler(Request(method, path, fields, body)))

    def _begin_reply(self, connection, method, reply):
        size = len(reply.body) if reply.size is None else reply.size
        lines = [f"HTTP/1.1 {reply.status} -", f"Date: {date_field()}"]
        if reply.status != 304:
            lines.append(f"Content-Length: {size}")
        lines += [f"{name}: {value}" for name, value in reply.fields]
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        if method == "HEAD" or reply.status == 304:
            size, reply = 0, reply._replace(body=b"", size=None)
        connection.head = memoryview(head + reply.body)
        connection.sent, connection.size = 0, size if reply.size is not None else 0
        delay = self.link.latency + reply.delay
        if delay:
            self._wait(connection, time.monotonic() + delay)
        else:
            self._write(connection)

    def _write(self, connection):
        """Sends what socket and link take."""
        bandwidth = self.link.bandwidth
        try:
            while connection.has_output():
                now = time.monotonic()
                if bandwidth and self.paid > now:
                    self._wait(connection, self.paid)
                    return
                count = connection.socket.send(connection.piece(PIECE if bandwidth
                                                                else len(PATTERN)))
                connection.advance(count)
                if bandwidth:
                    self.paid = max(self.paid, now - BURST) + count / bandwidth
        except BlockingIOError:
            self._want(connection, select.EPOLLOUT)
            return
        except OSError:
            self._close(connection)
            return
        connection.busy = False
        self._want(connection, select.EPOLLIN)
        self._take_request(connection)
