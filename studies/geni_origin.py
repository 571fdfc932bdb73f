"""The origin of the GENI study: geni_origin.py PORT_FILE LOG LATENCY BANDWIDTH.

/objects/BYTES is an object of that size, fresh for an hour. /headers/NAME states its lifetime by the
fields of that header experiment (EXPERIMENTS). Both have an entity tag and answer If-None-Match. LOG gets
a line for each request: method, path, status. LATENCY is in seconds, BANDWIDTH in bytes a second.
"""

import pathlib
import sys

import http_service

LIFETIME = 4  # seconds of a lifetime that ends during the experiment
LONG = 3600
PAGE = b"<!DOCTYPE html><title>A page of the header experiments</title>\n"

# By name: max-age, and seconds from Date to Expires; None: the field is not sent.
EXPERIMENTS = {
    "a": (None, LIFETIME),
    "b": (LIFETIME, None),
    "c1": (LIFETIME, LONG),
    "c2": (LONG, -LONG),
}


def lifetime_fields(name):
    age, expires = EXPERIMENTS[name]
    fields = []
    if age is not None:
        fields.append(("Cache-Control", f"max-age={age}"))
    if expires is not None:
        fields.append(("Expires", http_service.date_field(expires)))
    return fields


def answer(request):
    kind, _, name = request.path.removeprefix("/").partition("/")
    if kind == "objects" and name.isdigit():
        fields, content = [("Cache-Control", f"max-age={LONG}")], {"size": int(name)}
    elif kind == "headers" and name in EXPERIMENTS:
        fields, content = lifetime_fields(name), {"body": PAGE}
    else:
        return http_service.Reply(404, [])
    tag = f'"{name}"'
    fields.append(("ETag", tag))
    if request.fields.get("if-none-match") == tag:
        return http_service.Reply(304, fields)
    return http_service.Reply(200, fields, **content)


def main():
    port_file, log_path, latency, bandwidth = sys.argv[1:]
    with pathlib.Path(log_path).open("w", buffering=1) as log:
        def handler(request):
            reply = answer(request)
            log.write(f"{request.method} {request.path} {reply.status}\n")
            return reply

        service = http_service.Service(handler, http_service.Link(float(latency), int(bandwidth)))
        service.announce(port_file)
        service.run()


if __name__ == "__main__":
    main()
