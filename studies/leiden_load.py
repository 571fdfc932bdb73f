"""The clients of the Leiden study: leiden_load.py [--turns] REQUESTS SEED CLIENTS COUNTS PORT...

Each client sends a request when it has the response to the one before. All of them take requests
from one sequence. A request goes to the port of the cache that has its path; with --turns to each
of the caches in turn. The result is a JSON
object on standard output: TALLIES, and for each of COUNTS (numbers with commas between) ratios and
the mean time over the first N requests.

A hit is an answer whose body came from a cache, after a validation or without one. An answer is
stale if its version is older than that of the last write of the endpoint that was answered before
the read was sent.
"""

import collections
import json
import select
import socket
import statistics
import sys
import time

import leiden_model as model

READ = 1 << 17
# Reads and writes; reads that a cache answered alone, that it answered after a validation, that
# joined another fetch; stale answers; failures.
TALLIES = ("reads", "writes", "fresh", "validated", "joined", "stale", "failures")
# Of a request: seconds until its answer was whole, whether it is a read, whether that was a hit,
# its bytes.
Outcome = collections.namedtuple("Outcome", "seconds read hit size")


def parse_head(head):
    """(status, {name in lower case: value, of several lines as a list})"""
    lines = head.decode("latin-1").split("\r\n")
    fields = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        before = fields.get(name.lower())
        fields[name.lower()] = f"{before}, {value.strip()}" if before else value.strip()
    return int(lines[0].split(" ", 2)[1]), fields


class Client:
    def __init__(self, ports):
        self.sockets = [socket.create_connection(("127.0.0.1", port)) for port in ports]
        for sock in self.sockets:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input = bytearray()
        self.number = 0
        self.path = None
        self.method = "GET"
        self.sent_at = 0.0
        self.least = 0  # the version that the answer must have at least

    def send(self, place, number, method, path, least):
        self.number, self.method, self.path, self.least = number, method, path, least
        self.sent_at = time.monotonic()
        body = b"" if method == "GET" else b'{"request": %d}' % number
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        head = f"{method} {path} HTTP/1.1\r\nHost: service\r\n{length}\r\n"
        self.sockets[place].sendall(head.encode() + body)

    def receive(self, sock):
        """The response (status, fields, body) if it is complete."""
        data = sock.recv(READ)
        if not data:
            raise ConnectionError("a cache closed a connection")
        self.input += data
        end = self.input.find(b"\r\n\r\n")
        if end < 0:
            return None
        status, fields = parse_head(self.input[:end])
        size = end + 4 + int(fields["content-length"])
        if len(self.input) < size:
            return None
        body = bytes(self.input[end + 4:size])
        del self.input[:size]
        return status, fields, body


class Load:
    def __init__(self, requests, clients, ports, turns=False):
        self.requests = requests
        self.turns = turns
        self.ports = ports
        self.next = 0
        self.written = dict.fromkeys(model.all_paths(), 1)  # versions of writes that were answered
        self.sizes = model.make_sizes()
        self.tallies = dict.fromkeys(TALLIES, 0)
        self.outcomes = [None] * len(requests)
        self.epoll = select.epoll()
        self.clients = {}
        for _ in range(clients):
            client = Client(ports)
            for sock in client.sockets:
                self.clients[sock.fileno()] = (client, sock)
                self.epoll.register(sock, select.EPOLLIN)
            self.begin(client)

    def begin(self, client):
        """Sends the next request; false if there is none."""
        if self.next == len(self.requests):
            return False
        number, (method, path) = self.next, self.requests[self.next]
        self.next += 1
        place = number % len(self.ports) if self.turns else model.cache_of(path, len(self.ports))
        client.send(place, number, method, path, self.written[path])
        return True

    def run(self):
        busy = min(len(self.requests), len(self.clients) // len(self.ports))
        while busy:
            for number, _ in self.epoll.poll():
                client, sock = self.clients[number]
                response = client.receive(sock)
                if response:
                    self.end(client, *response)
                    busy -= not self.begin(client)

    def end(self, client, status, fields, body):
        seconds, read, hit = time.monotonic() - client.sent_at, client.method == "GET", False
        self.tallies["reads" if read else "writes"] += 1
        if status != 200:
            self.tallies["failures"] += 1
        elif read:
            hit = self.end_read(client, fields, body)
        else:
            for path, version in json.loads(body).items():
                self.written[path] = max(self.written[path], version)
        self.outcomes[client.number] = Outcome(seconds, read, hit, len(body) if read else 0)

    def end_read(self, client, fields, body):
        """Whether the body came from a cache."""
        tallies, status = self.tallies, fields.get("cache-status", "")
        how = ("validated" if "fwd-status=304" in status else "fresh" if "; hit" in status
               else "joined" if "; collapsed" in status else None)
        if how:
            tallies[how] += 1
        version = model.version_of(fields["etag"])
        if version < client.least:
            tallies["stale"] += 1
        # The body must be that of the entity tag, whole.
        begin = b'{"path": "%s", "version": %d, ' % (client.path.encode(), version)
        if not body.startswith(begin) or len(body) != self.sizes[client.path]:
            tallies["failures"] += 1
        return how in ("fresh", "validated")

    def summarise(self, count):
        """Over the first `count` requests."""
        outcomes = self.outcomes[:count]
        reads = [one for one in outcomes if one.read]
        return {"requests": count, "mean_us": 1e6 * statistics.mean(one.seconds
                                                                    for one in outcomes),
                "hit_ratio": sum(one.hit for one in reads) / len(reads),
                "hits_of_all": sum(one.hit for one in reads) / len(outcomes),
                "byte_hit_ratio": sum(one.size for one in reads if one.hit) / sum(one.size
                                                                                  for one in reads)}


def main():
    turns = sys.argv[1] == "--turns"
    count, seed, clients, counts, *ports = sys.argv[1 + turns:]
    load = Load(model.draw_requests(int(count), int(seed)), int(clients), list(map(int, ports)),
                turns)
    load.run()
    print(json.dumps({**load.tallies, "after": [load.summarise(int(one))
                                                for one in counts.split(",")]}))


if __name__ == "__main__":
    main()
