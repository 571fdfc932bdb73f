"""An origin as servers of files are: entity tags, dates, conditions, ranges and codings of responses,
and CGI programs for what is not a file. It listens on loopback, on a port that the system chooses."""

import email.utils
import gzip
import hashlib
import http.server
import os
import pathlib
import ssl
import subprocess
import threading
import time
import urllib.parse

CUT_PAUSE = 0.3  # seconds before a response breaks off, in which a proxy passes on what it has


class Seen:
    """A request that has come, and how it was answered."""

    def __init__(self, handler):
        self.method = handler.command
        self.path = handler.path
        self.fields = handler.headers
        self.status = None

    def __repr__(self):
        return f"{self.method} {self.path} {self.status}"


class FileOrigin:
    """Serves the files below `folder`. `rules` states what differs from that, by path:
    cache_control (for all paths that begin so; the longest one counts), cut (bytes of the body after
    which the first response breaks off), programs (a CGI program for all paths that begin so, with its
    environment)."""

    def __init__(self, test, folder, certificate=None, key=None):
        self.folder = pathlib.Path(folder)
        self.cache_control = {"/": "max-age=600"}
        self.cut = {}
        self.programs = {}
        self.seen = []
        origin = self

        class Handler(FileHandler):
            pass

        Handler.origin = origin
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if certificate:  # over TLS; handshakes are made by the threads of the connections
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                     do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()
        test.addCleanup(self.close)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def rule(self, rules, path):
        """The rule for the longest beginning of a path."""
        found = max((start for start in rules if path.startswith(start)), key=len, default=None)
        return found, rules.get(found)

    def requests(self, path=None, method=None):
        return [seen for seen in self.seen if (path is None or seen.path == path)
                and (method is None or seen.method == method)]


class FileHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    origin = None  # of the class that is made for it

    def log_message(self, *arguments):
        pass

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True

    def send_response(self, code, message=None):
        self.seen.status = code
        super().send_response(code, message)

    def do_GET(self):
        # As file servers do; apt asks for "./Packages" of a flat repository.
        self.path = self.path.replace("/./", "/")
        self.seen = Seen(self)
        self.origin.seen.append(self.seen)
        path = urllib.parse.urlsplit(self.path).path
        start, program = self.origin.rule(self.origin.programs, path)
        if program:
            self.run_program(start, program)
        elif self.command == "POST":
            self.answer_digest()
        else:
            self.answer_file(urllib.parse.unquote(path))

    do_HEAD = do_POST = do_GET

    # ---- files --------------------------------------------------------------------------------

    def answer_file(self, path):
        file = self.origin.folder / path.lstrip("/")
        if file.is_dir():
            file /= "index.html"
        if not file.is_file():
            self.answer(404, {"Content-Type": "text/plain"}, b"there is no such file\n")
            return
        body = file.read_bytes()
        fields = {"Content-Type": self.type_of(file), "Accept-Ranges": "bytes"}
        _, cache_control = self.origin.rule(self.origin.cache_control, path)
        if cache_control:
            fields["Cache-Control"] = cache_control
        if file.suffix == ".txt":
            fields["Vary"] = "Accept-Encoding"
            if "gzip" in self.headers.get("Accept-Encoding", ""):
                body = gzip.compress(body, mtime=0)
                fields["Content-Encoding"] = "gzip"
        fields["ETag"] = '"%s"' % hashlib.sha256(body).hexdigest()[:16]
        modified = int(file.stat().st_mtime)
        fields["Last-Modified"] = email.utils.formatdate(modified, usegmt=True)
        if self.is_unchanged(fields["ETag"], modified):
            self.answer(304, fields, None)
            return
        status, body, range_fields = self.ranged(body, fields)
        self.answer(status, {**fields, **range_fields}, body, self.origin.cut.pop(path, None))

    @staticmethod
    def type_of(file):
        return {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript",
                ".txt": "text/plain", ".png": "image/png", ".wav": "audio/wav",
                ".json": "application/json"}.get(file.suffix, "application/octet-stream")

    def is_unchanged(self, etag, modified):
        tags = self.headers.get("If-None-Match")
        if tags is not None:
            return tags.strip() == "*" or etag in [tag.strip() for tag in tags.split(",")]
        since = self.headers.get("If-Modified-Since")
        date = since and email.utils.parsedate_to_datetime(since)
        return bool(date) and modified <= date.timestamp()

    def ranged(self, body, fields):
        """Status, body and further fields, for a request with one range or none."""
        wanted = self.headers.get("Range", "")
        condition = self.headers.get("If-Range")
        if not wanted.startswith("bytes=") or "," in wanted or condition not in (
                None, fields["ETag"], fields["Last-Modified"]):
            return 200, body, {}
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        if first:
            begin, end = int(first), min(int(last or len(body)), len(body) - 1)
        else:
            begin, end = max(len(body) - int(last), 0), len(body) - 1
        if begin > end:
            return 416, b"", {"Content-Range": f"bytes */{len(body)}"}
        return 206, body[begin:end + 1], {"Content-Range": f"bytes {begin}-{end}/{len(body)}"}

    def answer(self, status, fields, body, cut=None):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        if body is not None:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if body is None or self.command == "HEAD":
            return
        self.wfile.write(body if cut is None else body[:cut])
        if cut is not None:
            time.sleep(CUT_PAUSE)
            self.close_connection = True

    # ---- requests with a body -----------------------------------------------------------------

    def body_pieces(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                piece = self.rfile.read(size)
                self.rfile.readline()
                if size == 0:
                    return
                yield piece
        left = int(self.headers.get("Content-Length", 0))
        while left > 0:
            piece = self.rfile.read(min(left, 65536))
            if not piece:
                raise ConnectionResetError
            left -= len(piece)
            yield piece

    def answer_digest(self):
        """The length and the digest of what was sent."""
        digest, length = hashlib.sha256(), 0
        for piece in self.body_pieces():
            digest.update(piece)
            length += len(piece)
        self.answer(200, {"Content-Type": "text/plain"}, f"{length} {digest.hexdigest()}\n".encode())

    def run_program(self, start, program):
        """RFC 3875, as far as programs need it here."""
        target = urllib.parse.urlsplit(self.path)
        argv, environment = program
        environment = {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            **environment, "GATEWAY_INTERFACE": "CGI/1.1", "SERVER_PROTOCOL": "HTTP/1.1",
            "REQUEST_METHOD": self.command, "QUERY_STRING": target.query,
            "PATH_INFO": urllib.parse.unquote(target.path.removeprefix(start.rstrip("/"))),
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "REMOTE_ADDR": "127.0.0.1",
        }
        for name, value in self.headers.items():
            environment["HTTP_" + name.upper().replace("-", "_")] = value
        body = b"".join(self.body_pieces())
        if body:
            environment["CONTENT_LENGTH"] = str(len(body))
        done = subprocess.run(argv, env=environment, input=body, capture_output=True, timeout=60)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n") if line)
        status = int(fields.pop("Status", "200" if head else "500").split()[0])
        self.answer(status, fields, body)
