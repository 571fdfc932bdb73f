"""The source server of the GENI study: geni_origin.py PORT_FILE LOG LATENCY BANDWIDTH MEGABYTE
MAX_AGE EXPIRES LONG MODIFIED.

/objects/BYTES is an object of that size, fresh for an hour. /headers/NAME is what the study's
header experiments fetch, with the fields that its text shows (PAGES): a lifetime by max-age, by
Expires, or by both. The page of the first is modified MODIFIED seconds after its first request. All
have an entity tag and answer If-None-Match. LOG gets a line for each request: method, path, status.
Times are in seconds, BANDWIDTH is in bytes a second, and MEGABYTE is the number of bytes that a MB
of the study has here.
"""

import collections
import pathlib
import sys
import time

import http_service

HOUR = 3600
VIDEO_BYTES = 87029309  # of test_video.flv, by its Content-Length in 3.2 (b)
# Bytes of test.html before and after it was modified, by its Content-Length in 3.2 (a).
PAGE_BYTES = (228, 238)

# The lifetimes of the three experiments, and the moment of the modification.
Lifetimes = collections.namedtuple("Lifetimes", "max_age expires long modified")


def pages(lifetimes, megabyte):
    """{name: (max-age or None, seconds from Date to Expires or None, type, sizes by version)}"""
    video = VIDEO_BYTES * megabyte // 10 ** 6
    return {
        "max-age": (lifetimes.max_age, None, "text/html", PAGE_BYTES),
        "expires": (None, lifetimes.expires, "video/x-flv", (video,)),
        "both": (lifetimes.long, lifetimes.expires, "text/html", PAGE_BYTES[1:]),
    }


class Origin:
    def __init__(self, lifetimes, megabyte):
        self.modified = lifetimes.modified
        self.pages = pages(lifetimes, megabyte)
        self.begun = {}

    def answer(self, request):
        kind, _, name = request.path.removeprefix("/").partition("/")
        if kind == "objects" and name.isdigit():
            return self.reply(request, name, int(name), [("Cache-Control", f"max-age={HOUR}")])
        if kind == "headers" and name in self.pages:
            return self.page(request, name)
        return http_service.Reply(404, [])

    def page(self, request, name):
        age, expires, kind, sizes = self.pages[name]
        begun = self.begun.setdefault(name, time.time())
        version = min(len(sizes) - 1, int(time.time() >= begun + self.modified))
        fields = [("Last-Modified", http_service.date_at(begun + version * self.modified - 4)),
                  ("Accept-Ranges", "bytes"), ("Content-Type", kind)]
        if kind == "text/html":
            fields.append(("Vary", "Accept-Encoding"))
        if age is not None:
            fields.append(("Cache-Control", f"max-age={age}"))
        if expires is not None:
            fields.append(("Expires", http_service.date_field(expires)))
        return self.reply(request, f"{sizes[version]:x}-{name}", sizes[version], fields)

    def reply(self, request, tag, size, fields):
        fields = [*fields, ("ETag", f'"{tag}"')]
        if request.fields.get("if-none-match") == f'"{tag}"':
            return http_service.Reply(304, fields)
        return http_service.Reply(200, fields, size=size)


def main():
    port_file, log_path, latency, bandwidth, megabyte, *lifetimes = sys.argv[1:]
    origin = Origin(Lifetimes(*map(int, lifetimes)), int(megabyte))
    with pathlib.Path(log_path).open("w", buffering=1) as log:
        def handler(request):
            reply = origin.answer(request)
            log.write(f"{request.method} {request.path} {reply.status}\n")
            return reply

        service = http_service.Service(handler, http_service.Link(float(latency), int(bandwidth)))
        service.announce(port_file)
        service.run()


if __name__ == "__main__":
    main()
