"""What a terminal would obey, or what would change the direction of its text, never gets there."""

import json
import os
import re
import select
import subprocess
import time
import unicodedata

import harness

HOSTILE = (b"\x1b[31mX", b"\xc2\x9b31mX", b"\x9b31mX", "\u202eX".encode(), "\u2066X".encode(),
           "\u061cX\u200e".encode(), b"\xe2\x80")
ALL = b"-".join(HOSTILE)
FINE = "\xe9\u20ac\U0001f600".encode()


class TerminalCase(harness.SystemTest):
    needs = (harness.SUNPROXY,)

    def on_a_terminal(self, *argv, expect=0):
        """What a program writes to standard output and error, both one terminal."""
        master, slave = harness.open_pty()
        self.runs += 1
        run = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
                               env=harness.sanitizer_environment(
                                   self.dir / f"sanitizer.{self.runs}", {"TERM": "dumb"}))
        os.close(slave)
        seen, end = b"", time.monotonic() + 60
        while time.monotonic() < end:
            if select.select([master], [], [], 1)[0]:
                try:
                    piece = os.read(master, 65536)
                except OSError:
                    break
                if not piece:
                    break
                seen += piece
        os.close(master)
        self.assertEqual(run.wait(300), expect, seen)
        return seen

    def check(self, seen):
        text = seen.decode()  # or it is not UTF-8
        bad = {c for c in text if c not in "\r\n\t" and (
            unicodedata.category(c) == "Cc" or unicodedata.bidirectional(c) in (
                "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
            or c in "\u200e\u200f\u061c\u2028\u2029")}
        self.assertEqual(bad, set(), text)
        return seen

    def trace(self, name=b"trace"):
        path = os.path.join(os.fsencode(self.dir), name)
        with open(path, "wb") as f:
            for number in range(20):
                f.write(b"url\tsize\n" if number == 0 else b"")
                f.write(b"http://a.test/" + HOSTILE[number % len(HOSTILE)].replace(b"\x1b", b"")
                        + FINE + b"\t100\n")
        return path


class TraceTest(TerminalCase):
    def test_traces(self):
        trace = self.trace(b"trace" + ALL)
        for more in (["trace", "describe"], ["trace", "describe", "--json"],
                     ["trace", "convert", "--to", "urls"], ["trace", "convert", "--to", "tsv"],
                     ["simulate", "--policy", "lru", "--capacity", "2"],
                     ["simulate", "--policy", "lru", "--capacity", "2", "--json"],
                     ["simulate", "--policy", "lru", "--capacity", "2", "--csv"],
                     ["simulate", "--policy", "lru", "--curve"],
                     ["advise", "--policy", "lru"]):
            with self.subTest(more=more):
                seen = self.check(self.on_a_terminal(harness.SUNPROXY, *more, trace))
                self.assertIn(b"a.test" if "trace" in more else b"trace", seen)
                if "trace" in more and "--json" not in more:
                    self.assertIn(FINE, seen)

    def test_nothing_is_lost_where_no_terminal_is(self):
        trace = os.fsdecode(self.trace())
        seen = self.sunproxy("trace", "convert", "--to", "urls", trace).stdout
        for part in HOSTILE[1:]:
            self.assertIn(part + FINE, seen)
        seen = self.sunproxy("trace", "describe", "--json", trace).stdout
        urls = {page["url"] for page in json.loads(seen)["busiest"]}
        self.assertIn("http://a.test/\u202eX" + FINE.decode(), urls)

    def test_complaints(self):
        path = self.dir / "log"
        path.write_bytes(b"http://a.test/\n" * 9 + ALL + b"\n")
        self.check(self.on_a_terminal(harness.SUNPROXY, "trace", "describe", path))
        for argv in (["trace", "describe", os.path.join(os.fsencode(self.dir), ALL)],
                     ["trace", "describe", "--format", ALL, path], ["stat", ALL],
                     ["get", "--port", "1", "http://a.test/" + "\u202e"], [ALL]):
            with self.subTest(argv=argv):
                self.check(self.on_a_terminal(harness.SUNPROXY, *argv, expect={
                    "trace": 64 if "--format" in argv else 66, "get": 69}.get(argv[0], 64)))


class ServerTest(TerminalCase):
    needs = (harness.SUNPROXY, harness.SUNPROXYD, harness.ORIGIN)

    def test_origins_and_servers(self):
        origin = self.origin()
        trace = self.trace(b"trace" + ALL)
        d = self.daemon(origin=origin)
        get = [harness.SUNPROXY, "get", "--socket", d.socket]
        url = "http://a.test/?fault=size:10&fault=header:X:%s"
        for value in ("%1b]0;x%07", "%c2%9b31m", "%9b31m", "%e2%80%ae", "plain"):
            for how in (["-i", "-v"], ["--json", "-v"], ["-v", "--api", "1"]):
                with self.subTest(value=value, how=how):
                    seen = self.on_a_terminal(*get, *how, url % value)
                    self.check(seen)
                    if how[0] == "-i":
                        self.assertRegex(seen, rb"(?m)^X: ?(plain|\?+(31m)?|\]0;x)\s*$")
        self.check(self.on_a_terminal(*get, "-v", "ftp://" + "\u202e\x9b", expect=64))
        self.check(self.on_a_terminal(
            harness.SUNPROXY, "replay", "--socket", d.socket, "--policy", "lru", trace))
        self.check(self.on_a_terminal(harness.SUNPROXY, "stat", "--socket", d.socket))

    def test_heads_over_http(self):
        front = f"unix:{self.dir}/http.sock"
        d = self.daemon("--http", front, origin=self.origin())
        harness.wait_until(lambda: "serving HTTP" in d.err or os.path.exists(front[5:]), what="HTTP")
        get = [harness.SUNPROXY, "get", "--http", front]
        for value in ("%c2%9b31m", "%9b31m", "%e2%80%ae"):
            for how in (["-v", "-i"], ["-I", "-w", "%{content_type}"], ["--json"]):
                with self.subTest(value=value, how=how):
                    seen = self.check(self.on_a_terminal(
                        *get, *how, f"http://a.test/?fault=size:10&fault=header:Content-Type:%20{value}"))
                    self.assertRegex(seen, rb"Content-Type|content-type")
        seen = self.check(self.on_a_terminal(*get, "-v", "-H", "X: a\u202eb\x9b", "http://a.test/"))
        self.assertIn(b"> X: a???b", seen)
        for byte, url in ((b"\0", "http://a.test/?fault=zero"),
                          (b"\x1b", f"http://a.test/?fault=size:{3 << 20}&fault=zero")):
            seen = self.check(self.on_a_terminal(*get, url, expect=65))
            self.assertIn(b"anyway with -o -", seen)
        text = self.on_a_terminal(*get, f"http://a.test/?fault=size:{3 << 20}")
        self.assertEqual(len(text.replace(b"\r\n", b"\n")), 3 << 20)  # in several pieces

    def test_a_page_that_is_no_text(self):
        d = self.daemon(origin=self.origin())
        get = [harness.SUNPROXY, "get", "--socket", d.socket]
        echo = "http://a.test/?fault=echo"
        for byte, fetch in ((b"\0", [*get, "http://a.test/?fault=zero"]),
                            (b"\xc2\x9b", [*get, "-H", "X: a\x9bb", echo]),
                            ("\u202e".encode(), [*get, "-H", "X: a\u202eb", echo])):
            with self.subTest(byte=byte):
                seen = self.check(self.on_a_terminal(*fetch, expect=65))
                self.assertIn(b"anyway with -o -", seen)
                self.assertEqual(self.on_a_terminal(*fetch, "--silent", expect=65), b"")
                self.assertIn(byte, self.on_a_terminal(*fetch, "-o", "-"))
                self.assertIn(byte, self.run_program(fetch).stdout)
        seen = self.check(self.on_a_terminal(*get, "http://a.test/?fault=zero", echo, expect=65))
        self.assertIn(b"GET /", seen)  # the other page is shown
        self.assertIn(b"GET /", self.check(self.on_a_terminal(*get, echo)))

    def test_the_log_of_a_replay(self):
        trace = self.dir / "hostile.har"  # a list of URLs has no control characters
        trace.write_text(json.dumps({"log": {"entries": [
            {"request": {"url": f"http://a.test/{part}{FINE.decode()}"}}
            for part in ("\x1b]0;x\x07", "\x7f", "\x9b1m", "\u202e", "plain")]}}))
        d = self.daemon(origin=self.origin())
        options = ["--policy", "lru", "--capacity", "2", "--log", "/dev/stdout"]
        for command in (["replay", "--socket", d.socket], ["simulate"]):
            with self.subTest(command=command[0]):
                seen = self.check(self.on_a_terminal(harness.SUNPROXY, *command, *options, trace))
                for part in (rb"\x1b]0;x\x07", rb"\x7f", rb"\xc2\x9b1m", rb"\xe2\x80\xae",
                             b"plain"):
                    self.assertIn(b"\thttp://a.test/" + part + FINE + b"\t", seen)

    def test_the_daemons_log(self):
        for part in HOSTILE[:-1]:
            nowhere = os.path.join(os.fsencode(self.dir), b"no" + part, b"log")
            seen = self.on_a_terminal(harness.SUNPROXYD, "--no-rpcbind", "--socket",
                                      str(self.dir / "s"), "--access-log", nowhere, expect=73)
            self.check(seen)
            self.assertTrue(re.search(rb"no\?+(\[?31m)?X", seen), seen)

    def test_json_has_what_the_text_has_not(self):
        d = self.daemon(origin=self.origin())
        done = self.sunproxy("get", "--json", "http://a.test/\u202e\x9b", daemon=d, expect=None)
        self.assertEqual(json.loads(done.stdout)["url"], "http://a.test/\u202e\x9b")
