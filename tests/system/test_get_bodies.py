"""Bodies of `sunproxy get`: uploads, large pages in little memory, ends that come too soon, progress."""

import hashlib
import http.server
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time

import harness
import test_get_http

BLOCK = bytes(range(256)) * 4096
FORM = "application/x-www-form-urlencoded"


class Handler(http.server.BaseHTTPRequestHandler):
    """PUT and POST answer with the body's digest; GET /N sends N blocks, the last when it may, or not."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def pieces(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            left = int(self.headers["Content-Length"])
            while left:
                piece = self.rfile.read(min(left, 1 << 20))
                left -= len(piece)
                yield piece
            return
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def do_PUT(self):
        digest, size = hashlib.sha256(), 0
        for piece in self.pieces():
            digest.update(piece)
            size += len(piece)
            time.sleep(self.server.slow)
        self.server.uploads.append((self.command, dict(self.headers)))
        self.answer(f"{digest.hexdigest()} {size}".encode())

    do_POST = do_PUT

    def answer(self, body):
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        if self.server.status == 307:
            self.send_header("Location", "/again")
            self.server.status = 200
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.server.gets += 1
        blocks = int(self.path[1:])
        framing = self.server.framing
        self.send_response(200)
        if framing == "length":
            self.send_header("Content-Length", str(blocks * len(BLOCK)))
        elif framing == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.close_connection = True
        for number in range(blocks):
            if number == blocks - 1:
                self.wfile.flush()
                self.server.gate.wait(60)
                if self.server.cut:
                    return
            self.wfile.write(b"%x\r\n%s\r\n" % (len(BLOCK), BLOCK) if framing == "chunked" else BLOCK)
        if framing == "chunked":
            self.wfile.write(b"0\r\n\r\n")


class Origin(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, test):
        self.uploads, self.slow, self.status = [], 0, 200
        self.framing, self.cut, self.gets = "length", False, 0
        self.gate = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        for clean in (self.server_close, self.shutdown, self.gate.set):
            test.addCleanup(clean)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_):
        pass  # connections that the test ends


class BodyTest(test_get_http.GetHttpTest):
    def setUp(self):
        super().setUp()
        self.server = Origin(self)
        self.url = self.server.url

    def start(self, *arguments, program=harness.SUNPROXY, rpc=False, **more):
        """Starts the client; its outputs are the caller's."""
        self.runs += 1
        server = ("--socket", self.d.socket) if rpc else ("--http", self.tcp)
        argv = [str(a) for a in (program, "get", *server, *arguments)]
        run = subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=harness.sanitizer_environment(
            self.dir / f"sanitizer.{self.runs}", {"TERM": "xterm"}), **more)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        return run


class UploadTest(BodyTest):
    seconds = 10

    def said_of(self, data):
        return f"{hashlib.sha256(data).hexdigest()} {len(data)}"

    def test_data_are_sent_as_by_curl(self):
        text = b"a=1\r\nb=\0x\n"
        path = self.dir / "data"
        path.write_bytes(text)
        for arguments, stdin, body in (
                (("-d", "a=1", "-d", "b=2"), None, b"a=1&b=2"),
                (("-d", f"@{path}"), None, b"a=1b=x"),
                (("--data-binary", f"@{path}"), None, text),
                (("--data-raw", "@x", "-d", f"@{path}"), None, b"@x&a=1b=x"),
                (("-d", "@-"), text, b"a=1b=x"),
                (("--data-binary", "@-"), text, text),
                (("-d", ""), None, b"")):
            with self.subTest(arguments=arguments):
                out = self.out(*arguments, "-w", "|%{size_upload} %{source}", self.url, stdin=stdin)
                self.assertEqual(out, f"{self.said_of(body)}|{len(body)} bypass")
                method, fields = self.server.uploads[-1]
                self.assertEqual((method, fields["Content-Type"]), ("POST", FORM))
                chunked = "@-" in arguments[-1]
                self.assertEqual(fields.get("Content-Length"), None if chunked else str(len(body)))
        self.out("-X", "PUT", "-H", "Content-Type: text/x", "-d", "y", self.url)
        method, fields = self.server.uploads[-1]
        self.assertEqual((method, fields["Content-Type"]), ("PUT", "text/x"))

    def test_the_request_is_that_of_curl(self):
        if not shutil.which("curl"):
            self.skipTest("curl is not installed")
        path = self.dir / "data"
        # Without zero bytes: with them curl 7.88 drops the rest of the line, too.
        path.write_bytes(b"one\r\ntwo three\n" * 1000)
        large = self.dir / "large"
        large.write_bytes(b"0123456789abcde\n" * (2 << 16))
        for arguments in (("-d", "a=1"), ("-d", "a", "-d", "@" + str(path), "--data-raw", "@b"),
                          ("--data-binary", f"@{path}", "-d", f"@{path}"), ("-d", ""),
                          ("-X", "PUT", "-d", f"@{large}", "-H", "Content-Type: a/b"),
                          ("-d", "x", "-H", "Accept:", "-H", "X-Empty;", "-H", "X: 1", "-H", "X: 2"),
                          ("-d", "x", "-H", "Content-Type:", "-H", "Expect:"),
                          ("-d", "@-"), ("--data-binary", "@-", "-H", "Expect:")):
            with self.subTest(arguments=arguments):
                stdin = path.read_bytes()
                ours = self.get("-H", "User-Agent: x", *arguments, self.url, stdin=stdin).stdout
                theirs = self.run_program(["curl", "-s", "-x", self.tcp, "-H", "User-Agent: x",
                                           *arguments, self.url], stdin=stdin)
                self.assertEqual(theirs.returncode, 0)
                self.assertEqual(ours, theirs.stdout)
                one, other = self.server.uploads[-2:]
                for _, fields in (one, other):
                    # curl holds standard input in memory, so it knows the length.
                    if "@-" in arguments:
                        fields.pop("Content-Length", fields.pop("Transfer-Encoding", None))
                self.assertEqual(one, other)

    def test_a_large_file_and_a_large_standard_input(self):
        data = BLOCK * 40
        path = self.dir / "large"
        path.write_bytes(data)
        for arguments, stdin in (((f"@{path}",), None), (("@-",), data)):
            for via in (self.tcp, self.unix):
                with self.subTest(arguments=arguments, via=via):
                    out = self.out("-X", "PUT", "--data-binary", *arguments, self.url, stdin=stdin,
                                   via=via)
                    self.assertEqual(out, self.said_of(data))

    def test_an_upload_takes_little_memory(self):
        if not harness.RELEASE_SUNPROXY.exists():
            self.skipTest(f"{harness.RELEASE_SUNPROXY} is not built")
        path = self.dir / "large"
        with open(path, "wb") as file:
            file.truncate(150 << 20)
        self.server.slow = 0.001
        run = self.start("--data-binary", f"@{path}", self.url, program=harness.RELEASE_SUNPROXY,
                         stdout=subprocess.PIPE)
        most = 0
        while run.poll() is None:
            most = max(most, peak(run.pid))
            time.sleep(0.01)
        self.assertTrue(run.communicate()[0].endswith(f" {150 << 20}".encode()))
        self.assertGreater(most, 0)
        self.assertLess(most, 24 << 20)

    def test_data_are_sent_again_after_a_redirect_that_keeps_the_method(self):
        self.server.status = 307
        out = self.out("-L", "-X", "PUT", "-d", "x=1", self.url)
        self.assertEqual(out, self.said_of(b"x=1"))
        self.assertEqual([u[0] for u in self.server.uploads], ["PUT", "PUT"])
        self.server.status = 307
        done = self.get("-L", "-d", "@-", self.url, stdin=b"once", expect=76)
        self.assertIn(b"standard input cannot be sent again", done.stderr)

    def test_what_may_not_be_repeated_is_sent_once(self):
        # The server answers the first request and then ends each connection at its next request.
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        seen = []

        def serve(peer):
            with peer:
                while head := peer.recv(65536):
                    if b" HTTP/1.1\r\n" not in head:
                        continue  # a body that came for itself
                    seen.append(head.split(b" ")[0])
                    if len(seen) > 1:
                        return
                    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

        def accept():
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(peer,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        via = f"127.0.0.1:{listener.getsockname()[1]}"
        for arguments in (("-d", "x=1"), ("-X", "DELETE")):
            seen.clear()
            self.get(*arguments, "-j", "1", "http://a.test/1", "http://a.test/2", via=via, expect=69)
            self.assertEqual(len(seen), 2, seen)
        seen.clear()
        self.get("-j", "1", "http://a.test/1", "http://a.test/2", via=via, expect=69)
        self.assertEqual(seen, [b"GET"] * 3)  # that may be

    def test_a_file_that_shrinks(self):
        path = self.dir / "file"
        path.write_bytes(BLOCK * 64)
        self.server.slow = 0.05
        run = self.start("--data-binary", f"@{path}", self.url, stderr=subprocess.PIPE)
        harness.wait_until(lambda: run.poll() is not None or has_open(run.pid, path),
                           what="the upload")
        os.truncate(path, 1000)
        self.assertEqual(run.wait(300), 66)
        self.assertIn(b"changed while it was sent", run.stderr.read())
        run.stderr.close()


def has_open(pid, path):
    """Has the process a descriptor of the file?"""
    return str(path) in harness.open_files(pid)


def peak(pid):
    """The most resident bytes of a process so far; 0 once it has ended."""
    try:
        status = open(f"/proc/{pid}/status").read()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) << 10 if found else 0


class DownloadTest(BodyTest):
    options = ("--first-byte-timeout", "3s", "--stall-timeout", "3s")
    seconds = 20

    def download(self, rpc):
        """300 MiB by the client, of which the last one comes when its memory was measured."""
        if not harness.RELEASE_SUNPROXY.exists():
            self.skipTest(f"{harness.RELEASE_SUNPROXY} is not built")
        path = self.dir / "page"
        run = self.start("-o", path, f"{self.url}/300", program=harness.RELEASE_SUNPROXY, rpc=rpc)
        harness.wait_until(lambda: any(p.stat().st_size >= 298 << 20 for p in self.dir.iterdir()
                                       if "page" in p.name), 60, "most of the page")
        most = peak(run.pid)
        self.assertFalse(path.exists())  # it is complete or not there
        self.server.gate.set()
        self.assertEqual(run.wait(300), 0)
        self.assertGreater(most, 0)
        self.assertLess(most, 24 << 20)
        digest = hashlib.sha256()
        for _ in range(300):
            digest.update(BLOCK)
        with open(path, "rb") as file:
            self.assertEqual(hashlib.file_digest(file, "sha256").hexdigest(), digest.hexdigest())

    def test_a_large_page_takes_little_memory(self):
        self.download(rpc=False)

    def test_a_large_page_takes_little_memory_over_rpc(self):
        self.download(rpc=True)

    def test_the_page_is_written_as_it_arrives(self):
        for rpc in (False, True):
            with self.subTest(rpc=rpc):
                self.server.gate.clear()
                run = self.start(f"{self.url}/4", stdout=subprocess.PIPE, rpc=rpc)
                seen = run.stdout.read1(1 << 20)
                while len(seen) < 3 * len(BLOCK):
                    seen += run.stdout.read1(1 << 20)
                self.assertIsNone(run.poll())
                self.server.gate.set()
                seen += run.stdout.read()
                run.stdout.close()
                self.assertEqual((run.wait(300), seen), (0, BLOCK * 4))

    def test_a_head_over_rpc_takes_no_more_than_the_head(self):
        self.server.gate.clear()
        for blocks in (40, 41):
            run = self.start("-I", f"{self.url}/{blocks}", stdout=subprocess.PIPE, rpc=True)
            out = run.communicate()[0].decode()
            self.assertEqual(run.returncode, 0)
            self.assertIn(f"Content-Length: {blocks << 20}\r\n", out)

    def test_a_page_that_is_cut_short(self):
        self.server.cut = True
        path = self.dir / "page"
        path.write_text("before")
        for framing, said in (("length", rb"after \d+ of 2097152 bytes"),
                              ("chunked", rb"after \d+ bytes")):
            for more in ((), ("-o", path)):
                with self.subTest(framing=framing, more=more):
                    self.server.gate.clear()
                    self.server.framing = framing
                    run = self.start("-v", "-w", "|%{exitcode} %{http_code}", *more,
                                     f"{self.url}/2", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    while b"< HTTP/1.1 200" not in run.stderr.readline():
                        pass
                    seen = b""
                    while not more and len(seen) < len(BLOCK):
                        seen += run.stdout.read1(1 << 20)
                    self.server.gate.set()
                    out, err = run.communicate()
                    self.assertEqual(run.returncode, 76)
                    self.assertRegex(err, b"the response was cut short " + said)
                    self.assertEqual(seen + out, (b"" if more else BLOCK) + b"|76 200")
                    self.assertEqual(path.read_text(), "before")

    def test_time_limits(self):
        for fault in ("hang", "hang-body"):
            done = self.get("--timeout", "300ms", f"http://a.test/fault/{fault}", expect=75)
            self.assertIn(b"no answer came in time", done.stderr)
        # Each piece has the whole time.
        out = self.get("--timeout", "3s", "http://a.test/?fault=size:10&fault=drip:400").stdout
        self.assertEqual(len(out), 10)
        done = self.get("--timeout", "2s", "--retry", "1", "http://a.test/fault/first:hang")
        self.assertIn(b"retry 1 of 1", done.stderr)

    def test_statuses_and_retries(self):
        done = self.get("-f", "http://a.test/fault/status:404", expect=22)
        self.assertEqual(done.stdout, b"")
        self.assertIn(b"HTTP status 404", done.stderr)
        out = self.out("--retry", "2", "-w", "|%{num_retries} %{http_code}",
                       "http://a.test/fault/first:status:503")
        self.assertTrue(out.endswith("|1 200"), out[-100:])
        self.get("-f", "http://10.0.0.1:81/", expect=22)  # the server's own answer

    def test_the_server_cannot_be_reached_or_is_lost(self):
        nowhere = f"127.0.0.1:{harness.free_port()}"
        done = self.get("http://a.test/", "http://b.test/", via=nowhere, expect=69)
        self.assertRegex(done.stderr.decode(),
                         r"\Asunproxy get: http://a\.test/: cannot connect to the server: "
                         rf"Connection refused: http://{nowhere}/\n\Z")
        done = self.get("--json", "http://a.test/", "http://b.test/", via=nowhere, expect=69)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([row["error_code"] for row in rows], ["unreachable"] * 2)
        done = self.get("-w", "%{http_code} %{exitcode}|", "http://a.test/", "http://b.test/",
                        via=nowhere, expect=69)
        self.assertEqual(done.stdout, b"000 69|")
        run = self.start("http://a.test/fault/hang-silent", stderr=subprocess.PIPE)
        harness.wait_until(lambda: self.o.requests(), what="the request")
        self.d.kill()
        self.assertEqual(run.wait(300), 69)
        self.assertIn(b"the server was lost", run.stderr.read())
        run.stderr.close()

    def test_an_interrupt_leaves_no_file(self):
        run = self.start("-o", self.dir / "page", f"{self.url}/3")
        harness.wait_until(lambda: [p for p in self.dir.iterdir() if "page" in p.name
                                    and p.stat().st_size], what="a part of the page")
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(300), -signal.SIGINT)
        self.assertEqual([p.name for p in self.dir.iterdir() if "page" in p.name], [])


class PausedTest(BodyTest):
    options = ("--hold-timeout", "4s", "--idle-timeout", "6s")
    seconds = 30

    def read_late(self, run, output):
        seen = os.read(output, 1000)
        time.sleep(10)  # of the time limits, twice
        while piece := os.read(output, 1 << 20):
            seen += piece
        self.assertEqual(run.wait(300), 0)
        return seen

    def test_a_page_is_held_while_its_reader_pauses(self):
        self.server.gate.set()
        run = self.start("-i", f"{self.url}/8", stdout=subprocess.PIPE, rpc=True)
        head, body = self.read_late(run, run.stdout.fileno()).split(b"\r\n\r\n", 1)
        run.stdout.close()
        self.assertIn(b"no-store", head)
        self.assertTrue(body == BLOCK * 8)
        self.assertEqual(self.server.gets, 1)
        self.assertEqual(self.stat(self.d)["cursors_opened"], 1)

    def test_a_page_is_held_while_its_reader_is_slow(self):
        """It reads something all the time, and takes longer than the hold lasts for a piece."""
        self.server.gate.set()
        run = self.start(f"{self.url}/4", stdout=subprocess.PIPE, rpc=True)
        seen = b""
        for _ in range(40):
            seen += os.read(run.stdout.fileno(), 8192)
            time.sleep(0.2)
        self.assertLess(len(seen), len(BLOCK) // 2)
        seen += run.stdout.read()
        run.stdout.close()
        self.assertEqual((run.wait(300), seen == BLOCK * 4, self.server.gets), (0, True, 1))

    def test_a_reader_behind_a_socket_pauses(self):
        self.server.gate.set()
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                run = self.start(f"{self.url}/8", stdout=theirs, rpc=True)
            self.assertTrue(self.read_late(run, ours.fileno()) == BLOCK * 8)
        self.assertEqual(self.server.gets, 1)


class ProgressTest(BodyTest):
    seconds = 10

    def on_a_terminal(self, *arguments, until=None, **more):
        """What it writes to standard error, a terminal, until that matches, and its exit status."""
        master, slave = harness.open_pty()
        run = self.start(*arguments, stderr=slave, **more)
        os.close(slave)
        seen, end = b"", time.monotonic() + 60
        while time.monotonic() < end:
            if select.select([master], [], [], 0.1)[0]:
                try:
                    seen += os.read(master, 65536)
                except OSError:
                    break
            if until and re.search(until, seen):
                self.server.gate.set()
        os.close(master)
        self.assertEqual(run.wait(300), 0, seen)
        return seen

    def test_a_download(self):
        for framing, rpc in (("length", False), ("close", False), ("chunked", False),
                             ("length", True), ("chunked", True)):
            with self.subTest(framing=framing, rpc=rpc):
                self.server.gate.clear()
                self.server.framing = framing
                wanted = rb"\r4 \[#+ *\]  75 %  3\.0 MiB of 4\.0 MiB  \S+ \S+/s  \d+:\d\d left\x1b\[K" \
                    if framing == "length" else rb"\r4 3\.0 MiB  \S+ \S+/s  \d+:\d\d\x1b\[K"
                seen = self.on_a_terminal("-o", self.dir / "page", f"{self.url}/4", until=wanted,
                                          rpc=rpc)
                self.assertRegex(seen, wanted)
                self.assertTrue(seen.endswith(b"\r\x1b[K"), seen[-100:])  # nothing of it stays

    def test_several_downloads_and_an_upload(self):
        seen = self.on_a_terminal("http://a.test/", f"{self.url}/2", until=rb"2/2 \[#+ *\]  50 %",
                                  stdout=subprocess.DEVNULL)
        self.assertRegex(seen, rb"2/2 \[#+ *\]  50 %")
        path = self.dir / "file"
        path.write_bytes(BLOCK * 30)
        self.server.slow = 0.05
        seen = self.on_a_terminal("--data-binary", f"@{path}", self.url, stdout=subprocess.DEVNULL)
        self.assertRegex(seen, rb"\rupload \[[# ]*\] +\d+ %  \S+ \S+ of 30\.0 MiB")

    def test_there_is_none_elsewhere(self):
        slow = "http://a.test/?fault=size:20&fault=drip:50"
        self.assertEqual(self.get(slow).stderr, b"")
        for arguments in (("-s",), ("-s", "-o", self.dir / "page")):
            self.assertEqual(self.on_a_terminal(*arguments, slow, stdout=subprocess.DEVNULL), b"")
        # The page is shown on the terminal itself.
        master, slave = harness.open_pty()
        run = self.start(slow, stdout=slave, stderr=slave)
        os.close(slave)
        self.assertEqual(run.wait(300), 0)
        self.assertNotIn(b"%", os.read(master, 65536))
        os.close(master)
