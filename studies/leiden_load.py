"""The clients of the Leiden study: leiden_load.py REQUESTS SEED CLIENTS PORT...

Each client sends a request when it has the response to the one before. All of them take requests from
one sequence. Reads go to the caches at these ports in turn, writes to the first one. The result is a JSON
object on standard output (COUNTS and times).

An answer is stale if its version is older than that of the last write of the resource that was answered
before the read was sent.
"""

import json
import select
import socket
import statistics
import sys
import time

import leiden_model as model

READ = 1 << 17
# Reads and writes; reads that a cache answered alone, that it answered after a validation, that joined
# another fetch; bytes of bodies of reads, and those that came from a cache; stale answers; failures.
COUNTS = ("reads", "writes", "fresh", "validated", "joined", "bytes", "cache_bytes", "stale", "failures")


def parse_head(head):
    """(status, {name in lower case: value})"""
    lines = head.decode("latin-1").split("\r\n")
    fields = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        fields[name.lower()] = value.strip()
    return int(lines[0].split(" ", 2)[1]), fields


class Client:
    def __init__(self, ports):
        self.sockets = [socket.create_connection(("127.0.0.1", port)) for port in ports]
        for sock in self.sockets:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input = bytearray()
        self.path = None
        self.write = False
        self.sent_at = 0.0
        self.least = 0  # the version that the answer must have at least

    def send(self, place, number, write, path, least):
        self.path, self.write, self.least = path, write, least
        self.sent_at = time.monotonic()
        body = b'{"request": %d}' % number if write else b""
        length = f"Content-Length: {len(body)}\r\n" if write else ""
        head = f"{'PUT' if write else 'GET'} {path} HTTP/1.1\r\nHost: service\r\n{length}\r\n"
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
    def __init__(self, requests, clients, ports):
        self.requests = requests
        self.ports = ports
        self.next = 0
        self.written = dict.fromkeys(model.all_paths(), 1)  # versions of writes that were answered
        self.sizes = model.make_sizes()
        self.counts = dict.fromkeys(COUNTS, 0)
        self.times = []
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
        number, (write, path) = self.next, self.requests[self.next]
        self.next += 1
        place = 0 if write else number % len(self.ports)
        client.send(place, number, write, path, self.written[path])
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
        counts = self.counts
        counts["writes" if client.write else "reads"] += 1
        if status != 200:
            counts["failures"] += 1
        elif client.write:
            for path, version in json.loads(body).items():
                self.written[path] = max(self.written[path], version)
        else:
            self.times.append(time.monotonic() - client.sent_at)
            self.end_read(client, fields, body)

    def end_read(self, client, fields, body):
        counts, status = self.counts, fields.get("cache-status", "")
        how = ("fresh" if "; hit" in status else "validated" if "fwd-status=304" in status
               else "joined" if "; collapsed" in status else None)
        if how:
            counts[how] += 1
        counts["bytes"] += len(body)
        if how in ("fresh", "validated"):
            counts["cache_bytes"] += len(body)
        version = model.version_of(fields["etag"])
        if version < client.least:
            counts["stale"] += 1
        # The body must be that of the entity tag, whole.
        begin = b'{"path": "%s", "version": %d, ' % (client.path.encode(), version)
        if not body.startswith(begin) or len(body) != self.sizes[client.path]:
            counts["failures"] += 1

    def result(self):
        return {**self.counts, "mean_us": 1e6 * statistics.mean(self.times)}


def main():
    count, seed, clients, *ports = map(int, sys.argv[1:])
    load = Load(model.draw_requests(count, seed), clients, ports)
    load.run()
    print(json.dumps(load.result()))


if __name__ == "__main__":
    main()
