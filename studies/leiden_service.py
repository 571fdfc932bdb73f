"""The REST service of the Leiden study: leiden_service.py PORT_FILE LATENCY BANDWIDTH PURGE [SOCKET...].

GET answers the representation of a resource, with an entity tag and a lifetime of an hour, or 304. PUT
changes it (leiden_model.py), then purges the pools concerned in the caches at these AF_UNIX sockets, by
the method PURGE, and only then answers: the new versions, as JSON. PURGE is how: "tags" (what has the
pool as its tag is removed) or "soft" (what is stored below the pool's path has expired).
"""

import json
import socket
import sys

import http_service
import leiden_model as model


class Cache:
    """A cache to purge in, over a connection that is kept."""

    def __init__(self, path):
        self.path = path
        self.socket = None

    def send(self, request):
        if not self.socket:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(30)
            self.socket.connect(self.path)
        self.socket.sendall(request)

    def receive(self):
        """Reads a response; whether the purge took place (404: nothing was stored)."""
        data = b""
        while b"\r\n\r\n" not in data:
            part = self.socket.recv(4096)
            if not part:
                return False
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
                      if line.startswith(b"content-length:"))
        while len(body) < length:
            body += self.socket.recv(4096)
        return head.split(b" ")[1] in (b"200", b"404")


class RestService:
    def __init__(self, caches, soft):
        self.caches = caches
        self.soft = soft
        self.sizes = model.make_sizes()
        self.versions = dict.fromkeys(self.sizes, 1)

    def answer(self, request):
        if request.path not in self.sizes:
            return http_service.Reply(404, [])
        if request.method == "PUT":
            return self.write(request.path)
        return self.read(request)

    def read(self, request):
        path = request.path
        version = self.versions[path]
        tag = model.entity_tag(path, version)
        fields = [("ETag", tag), ("Cache-Control", "max-age=3600")]
        if request.fields.get("if-none-match") == tag:
            return http_service.Reply(304, fields)
        head = b'{"path": "%s", "version": %d, "text": "' % (path.encode(), version)
        return http_service.Reply(200, fields, head + b"x" * (self.sizes[path] - len(head) - 3) + b'"}\n')

    def write(self, path):
        changed = model.changed_by_write(path)
        for one in changed:
            self.versions[one] += 1
        if not self.purge(model.pools_of_write(path)):
            return http_service.Reply(500, [])
        return http_service.Reply(200, [], json.dumps({one: self.versions[one] for one in changed}).encode())

    def purge(self, pools):
        if self.soft:
            requests = [("/" + pool, "Purge: prefix, soft") for pool in pools]
        else:
            requests = [("", f"Surrogate-Key: {' '.join(pools)}")]
        good = True
        for path, field in requests:
            request = f"PURGE {path}/ HTTP/1.1\r\nHost: service\r\n{field}\r\n\r\n".encode()
            for cache in self.caches:
                cache.send(request)
            good = all([cache.receive() for cache in self.caches]) and good
        return good


def main():
    port_file, latency, bandwidth, purge, *sockets = sys.argv[1:]
    rest = RestService([Cache(path) for path in sockets], purge == "soft")
    service = http_service.Service(rest.answer, http_service.Link(float(latency), int(bandwidth)))
    service.announce(port_file)
    service.run()


if __name__ == "__main__":
    main()
