"""The access log: lines, rotation, full disks, hostile URLs; and the daemon's own words."""

import json
import os
import resource
import select
import signal
import subprocess

import harness
import ports
import rpc
import http_front as http


def small_disk(test):
    """A folder with a file system of 32 KiB."""
    disk = test.dir / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k,mode=755", "tmpfs", disk],
                      stderr=subprocess.DEVNULL).returncode != 0:
        test.skipTest("only root mounts a small file system")
    test.addCleanup(subprocess.run, ["umount", "-l", disk])
    return disk


class AccessLogTest(harness.SystemTest):
    seconds = 11

    def setUp(self):
        super().setUp()
        self.o = self.origin()
        self.log = self.dir / "access.log"

    def start(self, *options):
        d = self.daemon("--access-log", self.log, *options, origin=self.o)
        self.c = rpc.Connection(d.socket)
        self.addCleanup(self.c.close)
        return d

    def lines(self, count, path=None):
        path = path or self.log

        def enough():
            text = path.read_text(errors="surrogateescape") if path.exists() else ""
            found = text.split("\n")
            return found[:-1] if len(found) > count else None

        found = harness.wait_until(enough, what=f"{count} lines")
        self.assertEqual(len(found), count, found)
        return found

    def test_fields(self):
        d = self.start("--policy", "fifo", "--capacity-urls", "1", "--shards", "1")
        url = "http://a.test/x"
        size = len(self.c.get(url).body)
        with rpc.Connection(d.address) as tcp:
            tcp.get(url)
            tcp.fetch_v1(url)
        self.c.get("http://a.test/y")
        self.c.get(url, flags=rpc.FLAG_NO_STORE)
        self.c.get("http://a.test/fault/short")
        self.c.get("ftp://a.test/")
        rows = [line.split("\t") for line in self.lines(7)]
        self.assertEqual({len(r) for r in rows}, {9})
        self.assertEqual([r[8] for r in rows[:5]],
                         ["uri-miss", "-", "-", "uri-miss", "request-no-store"])
        self.assertEqual([r[3] for r in rows[:5]], ["miss", "hit", "hit", "miss", "bypass"])
        self.assertEqual({r[4] for r in rows[:5]}, {"200"})
        self.assertEqual([(r[2], r[5]) for r in rows[:3]], [(url, str(size))] * 3)
        self.assertEqual([r[7] for r in rows[:4]], ["-", "-", "-", url])
        for r in rows[5:]:
            self.assertNotIn(r[3], ("hit", "miss"))
            self.assertIn(r[4], ("-", "0"))
        for r in rows:
            self.assertRegex(r[0], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
            self.assertTrue(r[6].isdigit())
        self.assertIn("127.0.0.1", rows[1][1])

    def test_failures_have_the_words_that_the_client_prints(self):
        d = self.start()
        urls = ["ftp://a.test/", "http://a.test/fault/huge-headers", "http://a.test/fault/bad-chunk"]
        codes = [json.loads(self.sunproxy("get", "--json", url, daemon=d, expect=None).stdout)["error_code"]
                for url in urls]
        self.assertEqual(codes[0], "bad_url")
        self.assertEqual([line.split("\t")[3] for line in self.lines(3)], codes)

    def test_json(self):
        self.start("--log-format", "json")
        self.c.get("http://a.test/x")
        self.c.get(b'http://a.test/"\\\xff\xc3\xa9')
        self.c.get(b"http://a.test/\0zero")
        rows = [json.loads(line) for line in self.lines(3)]
        self.assertEqual(rows[0]["url"], "http://a.test/x")
        self.assertEqual(rows[0]["status"], 200)
        self.assertEqual(rows[0]["outcome"], "miss")

    def cut(self, form):
        """A response that breaks off, and one that does not come; their lines."""
        d = self.daemon("--access-log", self.log, "--log-format", form, "--http", "127.0.0.1:0",
                        "--stall-timeout", "300ms", origin=self.o)
        address = harness.wait_until(lambda: http.http_address(d), what="the HTTP front")
        proxy = http.Connection(address)
        self.addCleanup(proxy.close)
        response = proxy.get("http://a.test/fault/hang-body:10")
        self.assertEqual((response.status, response.whole), (200, False))
        proxy = http.Connection(address)
        self.addCleanup(proxy.close)
        failed = proxy.get("http://a.test/fault/garbage")
        self.assertEqual(failed.status, 502)
        self.assertNotIn(b"a.test", failed.body)
        self.assertEqual(self.stat(d)["responses_cut"], 1)
        lines = self.lines(2)
        harness.wait_until(lambda: "fetch from http://a.test:80: timed_out: a.test: waiting for more "
                                   "of the body took too long" in d.err, what="the line on the cut")
        return lines

    def test_what_was_cut(self):
        lines = self.cut("plain")
        self.assertRegex(lines[0], r'" 200 \d+ "-" "-" "timed_out: a\.test: waiting for more of the '
                                   r'body took too long"$')
        self.assertRegex(lines[1], r'" 502 \d+ "-" "-" "origin_broke: .*"$')

    def test_what_was_cut_in_json(self):
        rows = [json.loads(line) for line in self.cut("json")]
        self.assertEqual([(row["status"], row["outcome"]) for row in rows],
                         [(200, "timed_out"), (502, "origin_broke")])
        self.assertEqual(rows[0]["error"], "a.test: waiting for more of the body took too long")

    def check_reading(self, form, read_as):
        """Requests over HTTP are read back from the log by `sunproxy trace`."""
        d = self.daemon("--access-log", self.log, "--log-format", form, "--http", "127.0.0.1:0",
                        origin=self.o)
        proxy = http.Connection(
            harness.wait_until(lambda: http.http_address(d), what="the HTTP front"))
        self.addCleanup(proxy.close)
        urls = [http.stored(f"http://a.test/{name}") for name in ("x", "x", '"y\\', "x")]
        sizes = [len(proxy.get(url, 'User-Agent: "\\\x80 tester').body) for url in urls]
        self.assertEqual(proxy.get("http://a.test/z?fault=garbage").status, 502)
        proxy.send("nonsense\r\n\r\n")
        self.assertEqual(proxy.receive().status, 400)
        for line in self.lines(6):
            self.assertTrue(line.isascii() and line.isprintable(), line)
        facts = json.loads(self.sunproxy("trace", "describe", "--json", self.log).stdout)
        self.assertEqual((facts["format"], facts["requests"], facts["left_out"]["bad"]),
                         (read_as, 4, 0))
        back = self.sunproxy("trace", "convert", "--to", "urls", self.log).stdout.decode()
        rows = [row.split("\t") for row in back.splitlines() if row[:1] != "#"]
        self.assertEqual([row[0] for row in rows], urls)
        self.assertIn(str(sizes[0]), rows[0])
        return facts

    def test_requests_over_http_are_read_back(self):
        self.check_reading("plain", "access")

    def test_requests_over_http_are_read_back_from_json(self):
        facts = self.check_reading("json", "sunproxyd")
        self.assertEqual((facts["logged_hits"], facts["logged_outcomes"]), (2, 4))
        rows = [json.loads(line) for line in self.log.read_text().splitlines()]
        self.assertEqual([row["outcome"] for row in rows],
                         ["miss", "hit", "miss", "hit", "origin_broke", "local"])

    def check_pattern(self, pattern, read_as=None):
        """Requests over HTTP and RPC, with what a hostile client sends, by a format string; the facts that
        `sunproxy trace` reads back, and the lines."""
        d = self.daemon("--access-log", self.log, "--log-format", pattern, "--http", "127.0.0.1:0",
                        origin=self.o)
        proxy = http.Connection(
            harness.wait_until(lambda: http.http_address(d), what="the HTTP front"))
        self.addCleanup(proxy.close)
        urls = [http.stored(f"http://a.test/{name}") for name in ("x", "x", '"y\\|', "x?a=|;1")]
        for url in urls:
            self.assertEqual(proxy.get(url, 'User-Agent: a|"\\\x80 ;] "%h', "Cookie: a=1; id=7|8").status, 200)
        with rpc.Connection(d.socket) as c:
            c.get("http://a.test/rpc")
        urls.append("http://a.test/rpc")
        lines = self.lines(5)
        for line in lines:
            self.assertTrue(line.replace("\t", "").isprintable() and line.isascii(), line)
        read_as = ["--format", read_as or pattern]
        facts = json.loads(self.sunproxy("trace", "describe", "--json", *read_as, self.log).stdout)
        self.assertEqual((facts["requests"], facts["left_out"]["bad"]), (5, 0), lines)
        back = self.sunproxy("trace", "convert", "--to", "urls", *read_as, self.log).stdout.decode()
        self.assertEqual([row.split("\t")[0] for row in back.splitlines() if row[:1] != "#"], urls, lines)
        return facts, lines

    def test_format_strings_are_read_back(self):
        for number, pattern in enumerate((
                '%h %l %u %t "%r" %>s %b "%{User-Agent}i" %{outcome}x %D',
                '%{User-Agent}i|%{id}C|%{url}x|%{outcome}x|%s|%B|%{usec}t',
                '%{%Y-%m-%dT%H:%M:%S}t.%{usec_frac}tZ;%{outcome}x;%m;http://%v:%p;%U%q;%{ms}T;%{url}x',
                '\\t%{outcome}x\\t[%{User-Agent}i]\\t%{protocol}x\\t%r\\t%{reason}x\\t%{end:sec}t')):
            self.log = self.dir / f"{number}.log"
            facts, lines = self.check_pattern(pattern)
            self.assertEqual((facts["logged_hits"], facts["logged_outcomes"]), (1, 5), lines)
            advice = self.sunproxy("advise", "--json", "--format", pattern, self.log).stdout
            self.assertEqual(json.loads(advice)["requests"], 5)

    def test_formats_with_a_name_are_recognised(self):
        for name in ("common", "combined", "vhost_combined"):
            self.log = self.dir / f"{name}.log"
            facts, lines = self.check_pattern(name, "access")
            self.assertEqual(facts["format"], "access")
            detected = json.loads(self.sunproxy("trace", "describe", "--json", self.log).stdout)
            self.assertEqual((detected["format"], detected["requests"]), ("access", 5))
            self.assertEqual(lines[0].startswith("a.test:80 "), name == "vhost_combined")
            self.assertEqual('a|\\x22\\x5c\\x80 ;] \\x22%h"' in lines[0], name != "common", lines[0])

    def test_format_strings_that_are_wrong(self):
        for pattern, why in (("%{outcom}x", "did you mean %{outcome}x?"), ("%h%u", "nothing stands between"),
                             ("apache", "is not one of plain, json, common")):
            done = self.run_program([harness.SUNPROXYD, "--check-config", "--log-format", pattern])
            self.assertEqual(done.returncode, 64)
            self.assertIn("sunproxyd: --log-format: ", done.stderr.decode())
            self.assertIn(why, done.stderr.decode())
        done = self.sunproxy("trace", "describe", "--format", "%{outcom}x", "/dev/null", expect=64)
        self.assertIn("did you mean %{outcome}x?", done.stderr.decode())

    def test_the_member_of_a_request(self):
        d = self.daemon("--access-log", self.log, "--log-format", "%{url}x %{member}x %{outcome}x %s %{content-type}o", "--http",
                        "127.0.0.1:0", "--origin", "/=http://a.test,http://b.test/b", origin=self.o)
        proxy = http.Connection(
            harness.wait_until(lambda: http.http_address(d), what="the HTTP front"))
        self.addCleanup(proxy.close)
        url = http.stored("/x")
        for _ in range(2):
            self.assertEqual(proxy.get(url).status, 200)
        self.assertEqual(proxy.get("/y?fault=status:503").status, 503)
        with rpc.Connection(d.socket) as c:
            c.get("http://ignored.test/z")
        self.assertEqual(self.lines(4), [
            f"http://ignored.test{url} http://a.test miss 200 text/plain",
            f"http://ignored.test{url} - hit 200 text/plain",
            "http://ignored.test/y?fault=status:503 http://b.test/b miss 503 text/plain",
            "http://ignored.test/z http://b.test/b miss 200 text/plain"])

    def test_the_url_of_a_reverse_proxy(self):
        """The combined form has the request's target, JSON the URL of what is stored."""
        for form in ("plain", "json"):
            self.log = self.dir / f"{form}.log"
            d = self.daemon("--access-log", self.log, "--log-format", form, "--http", "127.0.0.1:0",
                            "--origin", "/=http://a.test/b/", origin=self.o)
            proxy = http.Connection(
                harness.wait_until(lambda: http.http_address(d), what="the HTTP front"))
            self.addCleanup(proxy.close)
            self.assertEqual(proxy.get("/page").status, 200)
            line = self.lines(1)[0]
            if form == "json":
                self.assertEqual(json.loads(line)["url"], "http://ignored.test/page")
            else:
                self.assertIn('"GET /page HTTP/1.1" 200 ', line)

    def test_hostile_urls_make_no_lines_of_their_own(self):
        self.start()
        for url in (b"http://a.test/\nforged", b"http://a.test/\tforged", b"http://a.test/\r",
                    b"\0", b"\x1b[2J", b"http://a.test/\xff\xfe", b"", b"x" * 65000,
                    b"http://a.test/ b", b"\\x00"):
            self.c.get(url)
        rows = [line.split("\t") for line in self.lines(10)]
        self.assertEqual({len(r) for r in rows}, {9})
        for row in rows:
            self.assertTrue(row[2].isascii() and row[2].isprintable(), row[2][:80])
            self.assertNotIn(" ", row[2])

    def test_rotation(self):
        self.check_rotation(signal.SIGHUP)

    def test_rotation_by_the_signal_of_nginx(self):
        self.check_rotation(signal.SIGUSR1)

    def test_without_proc(self):
        """Where /dev/stdout leads nowhere. The sanitizers need /proc themselves."""
        if not harness.RELEASE_SUNPROXYD.exists():
            self.skipTest(f"{harness.RELEASE_SUNPROXYD} is not built")
        command = "umount -l /proc && exec \"$@\""
        if subprocess.run(["unshare", "--mount", "sh", "-c", command, "sh", "true"], capture_output=True).returncode:
            self.skipTest("no namespace without /proc can be had")
        for more in ([], ["--check-config"]):
            done = self.run_program(["unshare", "--mount", "sh", "-c", command, "sh", harness.RELEASE_SUNPROXYD,
                                     "--no-rpcbind", "--socket", self.dir / "s", "--access-log", "/dev/stdout", *more])
            self.assertEqual(done.returncode, 73, done.stderr)
            self.assertIn(b"/dev/stdout: No such file or directory; /proc is not mounted", done.stderr)

    def test_sighup_without_a_configuration_file(self):
        d = self.start()
        d.signal(signal.SIGHUP)
        harness.wait_until(lambda: "SIGHUP" in d.err, what="a line on it")
        self.assertIn("there is no configuration file to be read", d.err)
        said = self.sunproxy("reload", daemon=d, expect=78)
        self.assertIn(b"there is no configuration file to be read", said.stderr)

    def check_rotation(self, number):
        d = self.start()
        self.c.get("http://a.test/1")
        self.lines(1)
        old = self.dir / "access.log.1"
        os.rename(self.log, old)
        self.c.get("http://a.test/2")
        self.lines(2, old)
        d.signal(number)
        harness.wait_until(self.log.exists, what="the new log")
        self.c.get("http://a.test/3")
        self.assertIn("http://a.test/3", self.lines(1)[0])
        self.assertEqual(len(old.read_text().splitlines()), 2)

    def test_rotation_to_where_nothing_can_be_made(self):
        folder = self.dir / "logs"
        folder.mkdir()
        self.log = folder / "access.log"
        d = self.start()
        self.c.get("http://a.test/1")
        moved = self.dir / "gone"
        os.rename(folder, moved)
        d.signal(signal.SIGHUP)
        harness.wait_until(lambda: "cannot be opened" in d.err, what="a word on it")
        self.c.get("http://a.test/2")
        self.lines(2, moved / "access.log")

    def test_a_full_disk(self):
        self.log = "/dev/full"
        d = self.start()
        for n in range(200):
            self.assertEqual(self.c.get(f"http://a.test/{n % 3}").status, "ok")
        harness.wait_until(lambda: self.c.stat().log_lines_lost > 0, what="lines counted as lost")
        self.assertIn("No space left", d.err)

    def test_a_small_disk(self):
        """Nothing torn on a file system that is full, in the sandbox, before and after the log is opened
        again."""
        disk = small_disk(self)
        self.log = disk / "access.log"
        d = self.start()
        old = disk / "access.log.1"
        for turn in range(2):
            for n in range(600):
                self.assertEqual(self.c.get(f"http://a.test/{n % 3}{'x' * 50}").status, "ok")
            lost = self.c.stat().log_lines_lost
            harness.wait_until(lambda: self.c.stat().log_lines_lost > 100 * (turn + 1), what="a full disk")
            for line in self.lines_now():
                self.assertEqual(line.count("\t"), 8, line)
            self.assertIn("No space left", d.err)
            os.rename(self.log, old)
            d.signal(signal.SIGUSR1)
            harness.wait_until(lambda: d.err.count("opened again") == turn + 1, what="another file")
            old.unlink()
        self.assertGreater(lost, 100)
        self.assertEqual(d.stop(), 0)

    def lines_now(self):
        text = self.log.read_text()
        self.assertEqual(text[-1:], "\n")
        self.assertGreater(len(text), 10000)
        return text.splitlines()

    def test_a_log_as_large_as_it_may_be(self):
        d = self.daemon("--access-log", self.log, origin=self.o,
                        preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))
        with rpc.Connection(d.socket) as c:
            for n in range(400):
                self.assertEqual(c.get(f"http://a.test/{n % 3}").status, "ok")
            harness.wait_until(lambda: c.stat().log_lines_lost > 0, what="lines counted as lost")
        self.assertIn("File too large", d.err)

    def test_a_log_that_cannot_be_made(self):
        done = self.run_daemon("--no-rpcbind", "--socket", self.dir / "s", "--listen", "none",
                               "--access-log", self.dir / "none/log")
        self.assertEqual(done.returncode, 73, done.stderr)
        self.assertIn(b"none/log", done.stderr)

    def test_standard_output(self):
        self.log = "-"
        d = self.start()
        self.c.get("http://a.test/")
        harness.wait_until(lambda: "http://a.test/" in d.out, what="a line")

    def test_a_fifo_without_a_reader_hinders_neither_start_nor_stop(self):
        os.mkfifo(self.log)
        d = self.start()
        self.assertEqual(self.c.get("http://a.test/1").status, "ok")
        harness.wait_until(lambda: "no process reads it" in d.err, what="a word on it")
        with open(self.log) as reader:
            self.assertIn("http://a.test/1", reader.readline())
        self.c.get("http://a.test/2")
        self.assertEqual(d.stop(30), 0)

    def test_a_pipe_that_is_never_read_does_not_keep_the_daemon(self):
        self.log = "-"
        ends = os.pipe()
        self.addCleanup(os.close, ends[0])
        d = self.start_with_output(ends[1], "--stop-timeout", "200ms")
        url = "http://a.test/" + "x" * 8000
        for _ in range(20):
            self.assertEqual(self.c.get(url).status, "ok")
        harness.wait_until(lambda: self.writable(ends[1]) == 0, what="a full pipe")
        d.signal(signal.SIGTERM)
        self.assertEqual(d.wait(300), 0)
        self.assertIn("its reader does not read", d.err)

    def start_with_output(self, fd, *options):
        d = self.daemon("--access-log", self.log, *options, origin=self.o,
                        preexec=lambda: os.dup2(fd, 1))
        self.c = rpc.Connection(d.socket)
        self.addCleanup(self.c.close)
        return d

    @staticmethod
    def writable(fd):
        return len(select.select([], [fd], [], 0)[1])

    def test_nothing_is_lost_at_the_end(self):
        d = self.start()
        for n in range(500):
            self.c.get(f"http://a.test/{n % 3}")
        self.assertEqual(d.stop(), 0)
        self.lines(500)


class OriginErrorsTest(harness.SystemTest):
    """Errors of origins as they happen, with the member, at most one in a minute for each kind."""

    def start(self, row):
        self.d = self.daemon("--http", "127.0.0.1:0", "--origin", row, origin=self.origin())
        self.proxy = http.Connection(
            harness.wait_until(lambda: http.http_address(self.d), what="the HTTP front"))
        self.addCleanup(self.proxy.close)

    def lines(self):
        return [line.split(" sunproxyd: ")[1] for line in self.d.err.splitlines() if "fetch from " in line]

    def test_a_member_that_refuses(self):
        port = ports.free_port()
        self.start(f"/=http://127.0.0.1:{port}/app,http://a.test/app")
        for n in range(12):
            self.assertEqual(self.proxy.get(f"/page{n}?secret=1").status, 200)
        lines = self.lines()
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], rf"^warning: fetch from http://127\.0\.0\.1:{port}/app: connect_failed: .*, "
                                   r"for http://ignored\.test/page0\?secret=1; another member is tried$")

    def test_a_member_that_answers_503(self):
        self.start("/=http://a.test,http://b.test/sound")
        self.assertEqual(self.proxy.get("/page?fault=status:503").status, 503)
        lines = harness.wait_until(lambda: len(self.lines()) == 2 and self.lines(), what="two lines")
        self.assertEqual(lines, [
            "warning: fetch from http://a.test: status 503, for http://ignored.test/page?fault=status:503; "
            "another member is tried",
            "warning: fetch from http://b.test/sound: status 503, for "
            "http://ignored.test/page?fault=status:503"])

    def test_statuses(self):
        self.start("/=http://a.test")
        for n in range(3):
            self.assertEqual(self.proxy.get(f"/x{n}?fault=status:500").status, 500)
            self.assertEqual(self.proxy.get(f"/x{n}?fault=status:404").status, 404)
        self.assertEqual(self.proxy.get(f"/{'long' * 100}?fault=status:501").status, 501)
        lines = harness.wait_until(lambda: len(self.lines()) == 2 and self.lines(), what="two lines")
        self.assertEqual(lines[0], "warning: fetch from http://a.test: status 500, for "
                                   "http://ignored.test/x0?fault=status:500")
        self.assertRegex(lines[1], r"status 501, for http://ignored\.test/(long){45}\.\.\.$")


class WordsTest(harness.SystemTest):
    def test_a_reader_that_does_not_read_blocks_nothing(self):
        ends = os.pipe()
        self.addCleanup(os.close, ends[0])
        d = self.daemon(preexec=lambda: os.dup2(ends[1], 2))
        with rpc.Connection(d.socket) as c:
            # Each change is a line; 1,500 are more than a pipe holds.
            for n in range(1500):
                self.assertEqual(c.set(set_capacity=True, urls=1 + n % 7)[0], "ok")
        self.assertEqual(d.stop(30), 0)

    def test_a_small_disk(self):
        path = small_disk(self) / "log"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.addCleanup(os.close, fd)
        d = self.daemon(preexec=lambda: os.dup2(fd, 2))
        with rpc.Connection(d.socket) as c:
            for n in range(600):
                self.assertEqual(c.set(set_capacity=True, urls=1 + n % 7)[0], "ok")
        text = path.read_text()
        self.assertGreater(len(text), 20000)
        self.assertEqual(text[-1], "\n")
        self.assertEqual(d.stop(30), 0)
        for line in path.read_text().splitlines():
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT[\d:.]+Z sunproxyd: .{10}")

    def test_levels(self):
        d = self.daemon("--log-level", "error")
        self.assertEqual(d.stop(), 0)
        self.assertEqual(d.err, "")
        d = self.daemon("--log-level", "info")
        self.assertEqual(d.stop(), 0)
        self.assertIn(str(d.port), d.err)

    def test_json(self):
        d = self.daemon("--log-format", "json")
        self.assertEqual(d.stop(), 0)
        for line in d.err.splitlines():
            self.assertIsInstance(json.loads(line), dict)
