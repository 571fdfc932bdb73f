"""Ordinary clients end to end: curl with ranges, uploads and Expect; WebSocket by the library
python3-websockets, in reverse and forward mode; event streams whose readers leave."""

import hashlib
import os
import shutil
import subprocess
import sys
import time

import driver
from driver import HERE, Program, free_port

STREAMS = 16  # as many as one origin's fetches, below
# So long that no stream ends by it: what ends them is that their readers leave.
QUIET = ("--stall-timeout", "900", "--max-fetches-per-origin", str(STREAMS))


def interpreter():
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import websockets"], capture_output=True).returncode == 0:
            return python
    raise driver.Missing("python3-websockets is not installed")


def find():
    if not shutil.which("curl"):
        raise driver.Missing("curl is not installed")
    version = subprocess.run(["curl", "--version"], capture_output=True, text=True).stdout.split()[1]
    sockets = subprocess.run([interpreter(), "-c", "import websockets; print(websockets.__version__)"],
                             capture_output=True, text=True).stdout.strip()
    return f"curl {version} and websockets {sockets}"


class Streams:
    def __init__(self, run):
        self.run = run
        self.http_port, self.socket_port = free_port(), free_port()
        backend = Program(run, "backend", [interpreter(), HERE / "streams_server.py", self.http_port,
                                           self.socket_port])
        backend.await_port(self.http_port)
        backend.await_port(self.socket_port)
        run.front(self.http_port, "--origin", f"/socket/=http://127.0.0.1:{self.socket_port}", *QUIET)
        self.forward_port = None
        if not run.direct:
            self.forward_port = free_port()
            run.start_daemon("forward", self.forward_port, "--allow-net", "127.0.0.1",
                             "--connect-port", str(self.socket_port), *QUIET)

    def curl(self, path, *options, forward=False):
        """(exit status, body, head) of curl through the proxy; the backend if there is none."""
        port = self.run.port if not forward else self.http_port
        way = ["--proxy", f"http://127.0.0.1:{self.forward_port}"] if forward and self.forward_port else []
        head = self.run.folder / f"head{self.run.number()}"
        done = subprocess.run(
            ["curl", "--silent", "--show-error", "--noproxy", "", *way, "--dump-header", head, *options,
             f"http://127.0.0.1:{port}{path}"],
            capture_output=True, env={**os.environ, "http_proxy": ""})
        return done.returncode, done.stdout, head.read_text() if head.exists() else ""

    def number(self, path):
        return int(self.curl(path)[1])

    def check_ranges(self, content, forward):
        mode = "forward" if forward else "reverse"
        before = self.number("/sent")
        url = f"/file?{self.run.number()}"
        wrongs = []
        for first, last in ((0, 99), (0, 99), (4 << 20, (4 << 20) + 999), (0, 0)):
            status, body, _ = self.curl(url, "--range", f"{first}-{last}", forward=forward)
            if status or body != content[first:last + 1]:
                wrongs.append(f"{first}-{last}: curl {status}, {len(body)} bytes")
        status, body, _ = self.curl(url, "--range", "-100", forward=forward)
        if status or body != content[-100:]:
            wrongs.append(f"-100: curl {status}, {len(body)} bytes")
        status, body, _ = self.curl(url, forward=forward)
        if status or body != content:
            wrongs.append(f"all: curl {status}, {len(body)} bytes")
        self.run.check(f"{mode}: five ranges and the file", driver.summary(wrongs))
        if not self.run.direct:
            cost = self.number("/sent") - before
            self.run.expect(f"{mode}: they cost the origin the file at most twice",
                            cost <= 2 * len(content), f"{cost} bytes of {len(content)}")
        part = self.run.folder / f"part{mode}"
        part.write_bytes(content[:3000000])
        status, _, _ = self.curl(url, "--continue-at", "-", "--output", part, forward=forward)
        self.run.expect(f"{mode}: a download is resumed", status == 0 and part.read_bytes() == content,
                        f"curl {status}, {part.stat().st_size} bytes")

    def check_uploads(self, content, forward):
        mode = "forward" if forward else "reverse"
        source = self.run.folder / "upload"
        source.write_bytes(content)
        expected = f"{hashlib.sha256(content).hexdigest()} {len(content)}"
        for name, options in (
                ("PUT with Expect", ["--upload-file", source]),
                ("PUT without Expect", ["--upload-file", source, "--header", "Expect:"]),
                ("PUT of unknown length", ["--upload-file", source, "--header",
                                           "Transfer-Encoding: chunked"]),
                ("POST", ["--data-binary", f"@{source}"]),
                ("PUT over HTTP/1.0", ["--http1.0", "--upload-file", source])):
            status, body, head = self.curl("/digest", *options, forward=forward)
            self.run.expect(f"{mode}: {name} of {len(content) >> 20} MiB",
                            status == 0 and body.decode() == expected, f"curl {status}, {body[:100]} {head}")
        _, _, head = self.curl("/digest", "--upload-file", source, "--header", "Expect: 100-continue",
                               "--expect100-timeout", "100", forward=forward)
        self.run.expect(f"{mode}: Expect is answered with 100", head.startswith("HTTP/1.1 100"), head)
        status, body, head = self.curl("/small", "--upload-file", source, forward=forward)
        self.run.expect(f"{mode}: an early 413 of the origin reaches the client", " 413 " in head,
                        f"curl {status} {head}")

    def start_reader(self, forward):
        """A curl that prints events as they come."""
        port = self.run.port if not forward else self.http_port
        way = ["--proxy", f"http://127.0.0.1:{self.forward_port}"] if forward and self.forward_port else []
        return subprocess.Popen(["curl", "--silent", "--no-buffer", "--noproxy", "", *way, "--header",
                                 "Accept: text/event-stream", f"http://127.0.0.1:{port}/events"],
                                stdout=subprocess.PIPE, env={**os.environ, "http_proxy": ""})

    def await_streams(self, count):
        """The number of streams at the origin, as soon as it is `count`, or after a long time."""
        # Asked for at the backend itself: its slots at the proxy may be taken.
        end = time.monotonic() + driver.START_LIMIT
        while True:
            number = int(subprocess.run(["curl", "--silent", f"http://127.0.0.1:{self.http_port}/streams"],
                                        capture_output=True).stdout)
            if number == count or time.monotonic() > end:
                return number
            time.sleep(0.05)

    def check_events(self, forward):
        mode = "forward" if forward else "reverse"
        readers = [self.start_reader(forward) for _ in range(STREAMS - 1)]
        firsts = [reader.stdout.readline() + reader.stdout.readline() for reader in readers]
        self.run.expect(f"{mode}: {STREAMS - 1} readers get the first event",
                        firsts == [b"data: first\n\n"] * len(readers), firsts)
        seen = []
        for _ in range(3):
            # Each event is read before the next one exists.
            subprocess.run(["curl", "--silent", f"http://127.0.0.1:{self.http_port}/push"],
                           capture_output=True)
            seen.append({reader.stdout.readline() + reader.stdout.readline() for reader in readers})
        self.run.expect(f"{mode}: each further event arrives alone, at all readers",
                        all(len(events) == 1 for events in seen) and len({e for s in seen for e in s}) == 3,
                        seen)
        for reader in readers:
            reader.terminate()
            reader.wait()
            reader.stdout.close()
        left = self.await_streams(0)
        self.run.expect(f"{mode}: when readers leave, a silent origin's streams end", left == 0,
                        f"{left} are open")
        status, _, _ = self.curl("/sent", forward=forward)
        self.run.expect(f"{mode}: the next request is answered", status == 0, f"curl {status}")

    def check_sockets(self, way, address, path, *proxy):
        done = subprocess.run([interpreter(), HERE / "streams_client.py", way, address, path, *proxy],
                              capture_output=True, text=True)
        self.run.expect(f"twenty WebSockets, {way}", done.stdout == "ok\n",
                        (done.stdout + done.stderr)[-200:])


def run(run):
    streams = Streams(run)
    content = streams.curl("/file?whole")[1]
    for forward in (False, True):
        streams.check_ranges(content, forward)
        streams.check_uploads(content * 2, forward)
        streams.check_events(forward)
    backend = f"127.0.0.1:{streams.socket_port}"
    if run.direct:
        streams.check_sockets("direct", backend, "/socket/")
        return
    streams.check_sockets("reverse", f"127.0.0.1:{run.port}", "/socket/")
    streams.check_sockets("tunnel", backend, "/socket/", str(streams.forward_port))
    streams.check_sockets("absolute", backend, "/socket/", str(streams.forward_port))
