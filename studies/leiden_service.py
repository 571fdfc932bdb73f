"""The backend of the Leiden study: leiden_service.py PORT_FILE LATENCY GENERATE.

A REST service (leiden_model.py) behind the cache control middleware of the thesis, section 3.2. The
middleware has the entity tag of each endpoint, in pools by the first segment of the path. A GET
whose If-None-Match is that tag is answered 304 at once. Every other GET reaches the service, and
the tag of its response is kept; if the request has that tag, the answer is 304, too, otherwise 200.
A write empties all tags of its pool and of the pools coupled to it.

Responses have Cache-Control: no-cache, so that a cache validates at every request. LATENCY is in
seconds, of every response; GENERATE of those that reach the service in addition. /-/counts answers
how many GETs were answered in which way.
"""

import json
import sys

import http_service
import leiden_model as model

COUNTS = "/-/counts"


class RestService:
    def __init__(self, generate=0.0):
        self.generate = generate
        self.sizes = model.make_sizes()
        self.versions = dict.fromkeys(self.sizes, 1)
        self.tags = {pool: {} for pool in model.POOLS}
        # GETs that the middleware answered 304, those that reached the service and were answered
        # 304, and 200.
        self.counts = {"known": 0, "compared": 0, "full": 0}

    def answer(self, request):
        if request.path == COUNTS:
            return http_service.Reply(200, [], json.dumps(self.counts).encode())
        if request.path not in self.sizes:
            return http_service.Reply(404, [])
        return self.read(request) if request.method == "GET" else self.write(request)

    def read(self, request):
        path = request.path
        pool = self.tags[model.pool_of(path)]
        given = request.fields.get("if-none-match")
        if given and pool.get(path) == given:
            self.counts["known"] += 1
            return http_service.Reply(304, self.fields_of(given))
        tag = pool[path] = model.entity_tag(path, self.versions[path])
        if given == tag:
            self.counts["compared"] += 1
            return http_service.Reply(304, self.fields_of(tag), delay=self.generate)
        self.counts["full"] += 1
        return http_service.Reply(200, self.fields_of(tag), self.body(path), delay=self.generate)

    @staticmethod
    def fields_of(tag):
        return [("ETag", tag), ("Cache-Control", "no-cache")]

    def body(self, path):
        head = b'{"path": "%s", "version": %d, "text": "' % (path.encode(), self.versions[path])
        return head + b"x" * (self.sizes[path] - len(head) - 3) + b'"}\n'

    def write(self, request):
        changed = model.changed_by_write(request.method, request.path)
        for one in changed:
            self.versions[one] += 1
        for pool in model.pools_of_write(request.path):
            self.tags[pool].clear()
        return http_service.Reply(200, [],
                                  json.dumps({one: self.versions[one] for one in changed}).encode(),
                                  delay=self.generate)


def main():
    port_file, latency, generate = sys.argv[1:]
    service = http_service.Service(RestService(float(generate)).answer,
                                   http_service.Link(float(latency), 0))
    service.announce(port_file)
    service.run()


if __name__ == "__main__":
    main()
