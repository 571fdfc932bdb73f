#!/usr/bin/env python3
"""The backend of streams.py: files with ranges, uploads, event streams, and an echo over WebSocket.

    streams_server.py HTTP_PORT WEBSOCKET_PORT

/file           8 MiB that may be stored, with ranges
/sent           the number of bytes of /file that were sent
/digest         PUT or POST: the SHA-256 of the content, and its length
/small          refuses all content with 413, before it reads any
/events         an event stream: the first event at once, the others when /push asks for them
/push           sends the next event to all streams
/streams        the number of streams whose reader has not left
"""

import asyncio
import hashlib
import http.server
import re
import select
import socket
import sys
import threading

import websockets

CONTENT = b"".join(hashlib.sha256(str(n).encode()).digest() for n in range(8 << 15))

changed = threading.Condition()
sent = 0
pushed = 0
streams = 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, text, status=200):
        body = str(text).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        global pushed
        path = self.path.split("?")[0]
        if path == "/file":
            self.send_file()
        elif path == "/events":
            self.send_events()
        elif path == "/push":
            with changed:
                pushed += 1
                changed.notify_all()
            self.answer("pushed")
        elif path in ("/sent", "/streams"):
            with changed:
                number = sent if path == "/sent" else streams
            self.answer(number)
        else:
            self.answer("nothing here", 404)

    def send_file(self):
        global sent
        first, last = 0, len(CONTENT) - 1
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if match and match[1]:
            first = int(match[1])
            last = min(last, int(match[2] or last))
        elif match and match[2]:
            first = len(CONTENT) - int(match[2])
        self.send_response(206 if match else 200)
        if match:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(CONTENT)}")
        self.send_header("Content-Length", str(last + 1 - first))
        self.send_header("Cache-Control", "max-age=600")
        self.send_header("ETag", '"one"')
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()
        for at in range(first, last + 1, 65536):
            part = CONTENT[at:min(at + 65536, last + 1)]
            self.wfile.write(part)
            with changed:
                sent += len(part)

    def send_events(self):
        global streams
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        with changed:
            streams += 1
            seen = pushed
        try:
            self.wfile.write(b"data: first\n\n")
            while True:
                with changed:
                    if changed.wait_for(lambda: pushed > seen, 0.05):
                        seen += 1
                        self.wfile.write(f"data: event {seen}\n\n".encode())
                # A connection that can be read from has been closed: no request follows on it.
                if select.select([self.connection], [], [], 0)[0]:
                    return
        except OSError:
            pass
        finally:
            with changed:
                streams -= 1

    def refuse(self):
        """Answers at once, and reads until the client has stopped (RFC 9112 section 9.6)."""
        self.answer("too large", 413)
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_WR)
        while self.connection.recv(65536):
            pass
        self.close_connection = True

    def content(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            yield self.rfile.read(int(self.headers.get("Content-Length", 0)))
            return
        while True:
            size = int(self.rfile.readline().split(b";")[0], 16)
            if size == 0:
                break
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass

    def do_PUT(self):
        if self.path == "/small":
            self.refuse()
            return
        digest = hashlib.sha256()
        length = 0
        for part in self.content():
            digest.update(part)
            length += len(part)
        self.answer(f"{digest.hexdigest()} {length}")

    do_POST = do_PUT


async def echo(connection, _path=None):
    async for message in connection:
        if message == "close":
            await connection.close(4000, "as asked")
            return
        await connection.send(message)


async def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    async with websockets.serve(echo, "127.0.0.1", int(sys.argv[2]), max_size=None):
        await asyncio.Future()


if __name__ == "__main__":
    asyncio.run(main())
