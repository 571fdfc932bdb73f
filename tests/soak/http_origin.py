#!/usr/bin/env python3
"""The origin of the HTTP soak: http_origin.py FD VERSIONS.

Serves the resources of http_model.py on a socket that listens already, so that this process may be
killed and started again. Faulty kinds fail at random: they break off, stall, reset, lie about their
length or answer 503. POST to a resource changes its version; to /echo it answers the length and the
digest of what was sent.
"""

import hashlib
import http.server
import random
import socket
import socketserver
import struct
import sys
import time

import http_model

STALL = 4.5  # seconds; the daemon's time limits are shorter
FAULTS = ["short", "reset", "503", "longer", "two-lengths", "garbage"] * 3 + ["stall", "silent"]
FAULT_SHARE = 0.35
SLOW_SHARE = 0.2
EXCESS = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"  # behind a response
EXCESS_WITH = 100  # bytes of the response that are sent together with it


class Broken(Exception):
    """The connection ends here."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    versions = None

    def log_message(self, *arguments):
        pass

    def handle(self):
        try:
            super().handle()
        except (Broken, OSError, ValueError):
            pass

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Broken

    def sent_body(self):
        """Reads the request's body; its length and digest."""
        digest, length = hashlib.sha256(), 0
        if self.headers.get("Transfer-Encoding"):
            while size := int(self.rfile.readline(), 16):
                piece = self.rfile.read(size)
                self.rfile.readline()
                digest.update(piece)
                length += len(piece)
            self.rfile.readline()
        else:
            piece = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            digest.update(piece)
            length = len(piece)
        return f"{length} {digest.hexdigest()}".encode()

    def do_POST(self):
        answer = self.sent_body()
        resource = http_model.parse_path(self.path)
        if resource:
            answer = b"%d" % self.versions.change(*resource)
        self.head(200, {"Content-Length": len(answer), "Cache-Control": "no-store"})
        self.wfile.write(answer)

    def do_GET(self):
        resource = http_model.parse_path(self.path)
        if not resource:
            self.head(404, {"Content-Length": 0})
            return
        name, number = resource
        kind = http_model.KINDS[name]
        fault = None
        if kind.faults and random.random() < FAULT_SHARE:
            fault = random.choice(FAULTS)
        if fault == "silent":
            time.sleep(STALL)
            raise Broken
        if fault == "garbage":
            self.wfile.write(b"this is no answer\r\n\r\n")
            raise Broken
        if fault == "503":
            self.head(503, {"Content-Length": 4})
            if self.command != "HEAD":  # else these bytes may come when the connection is in use again
                self.wfile.write(b"busy")
            return
        version = self.versions.now(name, number)
        variant = self.headers.get("X-Variant", "") if kind.vary else ""
        fields = {"Cache-Control": kind.cache_control, "Content-Type": "application/octet-stream",
                  "Surrogate-Key": f"all {http_model.tag_of(name, number)}",
                  "ETag": http_model.entity_tag(version, variant)}
        if kind.vary:
            fields["Vary"] = "X-Variant"
        if self.headers.get("If-None-Match", "") == fields["ETag"]:
            self.head(304, fields)
            return
        self.answer(fields, http_model.make_body(name, number, version, variant), kind.chunked, fault)

    do_HEAD = do_GET

    def head(self, status, fields):
        text = [f"HTTP/1.1 {status} X\r\n", *(f"{k}: {v}\r\n" for k, v in fields.items()), "\r\n"]
        self.wfile.write("".join(text).encode())

    def answer(self, fields, body, chunked, fault):
        status = 200
        wanted = self.headers.get("Range", "").removeprefix("bytes=").partition("-")
        if wanted[0].isdigit() and wanted[2].isdigit() and int(wanted[2]) < len(body):
            status, begin, end = 206, int(wanted[0]), int(wanted[2])
            fields["Content-Range"] = f"bytes {begin}-{end}/{len(body)}"
            body = body[begin:end + 1]
        if chunked and status == 200:
            fields["Transfer-Encoding"] = "chunked"
        else:
            fields["Content-Length"] = len(body)
            if fault == "two-lengths":
                fields["content-length"] = len(body) + 7
        self.head(status, fields)
        if self.command == "HEAD":
            return
        self.send_body(body, chunked and status == 200, fault)

    def send_body(self, body, chunked, fault):
        stop = random.randrange(len(body)) if fault in ("short", "reset", "stall") else len(body)
        slowly = random.random() < SLOW_SHARE or len(body) > http_model.MEBI
        piece = max(1, len(body) // 20) if slowly else len(body)
        last = b"0\r\n\r\n" if chunked else b""
        if fault == "longer":
            last += EXCESS
        for at in range(0, stop, piece):
            part = body[at:min(at + piece, stop)]
            if chunked:
                part = b"%x\r\n%s\r\n" % (len(part), part)
            if at + piece >= len(body) == stop:
                # Together: what comes when the connection is in use again cannot be distinguished.
                self.wfile.write(part[:-EXCESS_WITH])
                part = part[-EXCESS_WITH:] + last
            self.wfile.write(part)
            if slowly:
                time.sleep(0.003)
        if fault == "reset":
            self.reset()
        if fault == "stall":
            time.sleep(STALL)
        if stop < len(body):
            raise Broken
        if fault == "longer":
            raise Broken


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, listener):
        super().__init__(listener.getsockname(), Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener


def main():
    Handler.versions = http_model.Versions(sys.argv[2])
    with Server(socket.socket(fileno=int(sys.argv[1]))) as server:
        server.serve_forever(0.5)


if __name__ == "__main__":
    main()
