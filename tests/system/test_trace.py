"""sunproxy trace: convert, describe and generate as programs that pipe."""

import gzip
import json
import os
import resource
import subprocess

import harness
import rpc

LOG = "".join('h - - [01/Jan/2024:00:00:%02d +0000] "GET /%s HTTP/1.1" %d %d\n' % line for line in [
    (0, "a", 200, 100), (1, "b", 200, 50), (2, "a", 304, 0), (3, "c", 200, 7), (4, "d", 302, 1),
    (5, "a", 200, 100), (6, "b", 404, 9), (7, "b", 200, 60)]) + "nonsense\n"


class TraceTest(harness.SystemTest):
    needs = (harness.SUNPROXY,)

    def trace(self, *argv, status=0, **more):
        done = self.run_program([harness.SUNPROXY, "trace", *argv], **more)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def log(self):
        path = self.dir / "access.log.gz"
        path.write_bytes(gzip.compress(LOG.encode()))
        return path

    def describe(self, path, *options):
        return json.loads(self.trace("describe", "--json", *options, path).stdout)

    def test_describe(self):
        done = self.trace("describe", self.log())
        self.assertIn(b"infinite cache  hits 50.00 % of the requests", done.stdout)
        self.assertIn(b"1 of other statuses, 1 redirected, 1 malformed (first: line 9)", done.stderr)
        self.assertIn(b"line 9: nonsense", done.stderr)
        facts = self.describe(self.log())
        self.assertEqual((facts["requests"], facts["distinct_urls"]), (6, 3))
        self.assertEqual((facts["one_hit_wonders"], facts["infinite"]["hit_ratio"]), (1, 0.5))
        self.assertEqual((facts["bytes"], facts["distinct_bytes"]), (417, 157))
        self.assertEqual(facts["size_changes"], 1)
        # a b a c a b: one other between the first two a, one between the next, two between the b
        self.assertEqual(facts["reuse_distance"]["count"], 3)
        self.assertEqual([facts["reuse_distance"][p] for p in ("min", "p50", "max")], [1, 1, 2])
        self.assertEqual(facts["busiest"][0],
                         {"url": "http://localhost/a", "requests": 3, "share": 0.5})
        self.assertEqual(facts["left_out"]["bad"], 1)
        facts = self.describe(self.log(), "--statuses", "all", "--busiest", "1")
        self.assertEqual((facts["requests"], len(facts["busiest"])), (8, 1))

    def test_sizes_that_are_unknown(self):
        done = self.trace("describe", self.log())
        self.assertIn(b"100 B inferred for 1 request\n", done.stdout)
        facts = self.describe(self.log())
        self.assertEqual((facts["sizes_inferred"], facts["bytes_inferred"]), (1, 100))
        facts = self.describe(self.log(), "--sizes-as-read")
        self.assertEqual((facts["bytes"], facts["bytes_inferred"]), (317, 0))
        table = self.trace("convert", "--to", "tsv", "--sizes-as-read", self.log()).stdout
        self.assertEqual([line.split(b"\t")[2] for line in table.splitlines()],
                         [b"size", b"100", b"50", b"0", b"7", b"100", b"60"])

    def test_the_official_totals_of_a_log(self):
        log = harness.DATASETS / "traces/wc98/test_log.gz"
        if not log.exists():
            self.skipTest(f"{log} is not there")
        facts = self.describe(log, "--methods", "all", "--statuses", "all", "--sizes-as-read")
        self.assertEqual((facts["requests"], facts["bytes"]), (1000, 5410216))

    def test_spans(self):
        for times, span in (((0, 90000000000), "1041666 d 16 h 00 m"),
                            ((1704067200, 1710463320), "74 d 0 h 42 m, from 2024-01-01 00:00:00 "
                                                       "to 2024-03-15 00:42:00 UTC"),
                            ((2505205, 2505209), "4.00 s"),
                            ((-9 * 10**18, 9 * 10**18), "106751991 d 4 h 00 m")):
            table = ("time_us" if times[0] < 0 else "time") + ",url\n" + "".join(f"{time},http://a.test/\n" for time in times)
            done = self.trace("describe", "-", stdin=table.encode()).stdout.decode()
            self.assertRegex(done, f"(?m)^span            {span}$")

    def test_every_format_gives_the_same_back(self):
        for name in ("out.tsv", "out.urls", "out.bin", "History"):
            with self.subTest(name=name):
                self.trace("convert", self.log(), "-o", self.dir / name)
                facts = self.describe(self.dir / name)
                self.assertEqual((facts["requests"], facts["distinct_urls"]), (6, 3))
                self.assertEqual(facts.get("bytes"), None if name == "History" else 417)
                self.assertEqual(facts["reuse_distance"]["max"], 2)

    def test_a_history_keeps_the_order(self):
        table = self.dir / "back.tsv"
        table.write_text("time\turl\n" + "".join(
            f"{time}\thttp://a.test/{url}\n" for time, url in zip((9, 1, 2, 10), "abac")))
        done = self.trace("convert", table, "-o", self.dir / "History")
        self.assertIn(b"History: 2 requests earlier", done.stderr)
        done = self.trace("convert", "-", "-o", self.dir / "History",
                          stdin=b"time,url\n2,http://a.test/\n1,http://b.test/\n")
        self.assertIn(b"History: 1 request earlier than a previous one", done.stderr)
        self.trace("convert", table, "-o", self.dir / "History")
        urls = self.trace("convert", "--to", "urls", self.dir / "History").stdout
        self.assertEqual(urls, self.trace("convert", "--to", "urls", table).stdout)
        done = self.trace("convert", table, "-o", self.dir / "out.tsv")
        self.assertEqual(done.stderr, b"")

    def test_from_a_pipe(self):
        """As a shell's <(...) and /dev/stdin name it."""
        read, write = os.pipe()
        os.write(write, LOG.encode())
        os.close(write)
        try:
            done = self.trace("describe", "--json", f"/proc/{os.getpid()}/fd/{read}")
        finally:
            os.close(read)
        self.assertEqual(json.loads(done.stdout)["requests"], 6)
        self.trace("convert", self.log(), "-o", self.dir / "History")
        packed = gzip.compress((self.dir / "History").read_bytes())
        done = self.trace("describe", "--json", "/dev/stdin", stdin=packed)
        self.assertEqual(json.loads(done.stdout)["format"], "chrome")

    def test_what_is_wrong_is_shown(self):
        path = self.dir / "a.har"
        path.write_text(json.dumps({"log": {"entries": [{}, {"request": {"url": "http://a.test/"}}]}}))
        done = self.trace("describe", path)
        self.assertIn(b"left out: 1 malformed (first: entry 1)", done.stderr)
        self.assertIn(b"entry 1: (no request.url", done.stderr)
        done = self.trace("describe", "--format", "access", "-", stdin=b"a\nb\n", status=65)
        self.assertIn(b"malformed: line 1 'a', line 2 'b'", done.stderr)
        table = b"url,size\nhttp://a.test/,5000000000\nhttp://a.test/,4294967294\n"
        done = self.trace("describe", "--json", "-", stdin=table)
        self.assertIn(b"1 request larger than 4294967294 bytes, counted as that", done.stderr)
        self.assertEqual(json.loads(done.stdout)["sizes_too_large"], 1)

    def test_logs_of_the_daemon(self):
        """Each form of the access log is read back: URLs with escapes, outcomes, clients, failures."""
        urls = ["http://a.test/x", "http://a.test/x", "http://a.test/y\\z", "ftp://a.test/", "http://a.test/%C3%A9"]
        origin = self.origin()
        for form in ("plain", "json"):
            with self.subTest(form=form):
                log = self.dir / f"{form}.log"
                d = self.daemon("--access-log", log, "--log-format", form, "--policy", "fifo", "--capacity-urls", "1",
                                "--shards", "1", origin=origin)
                with rpc.Connection(d.socket) as local, rpc.Connection(d.address) as tcp:
                    for n, url in enumerate(urls):
                        (local, tcp)[n % 2].get(url)
                    harness.wait_until(lambda: log.exists() and log.read_text().count("\n") == len(urls), what="lines")
                facts = self.describe(log)
                self.assertEqual(facts["format"], "sunproxyd")
                self.assertEqual(facts["left_out"]["bad"], 0)
                self.assertEqual(facts["left_out"]["scheme"] + facts["left_out"]["status"], 1)
                self.assertEqual((facts["requests"], facts["logged_hits"], facts["logged_outcomes"]), (4, 1, 4))
                self.assertIn(b"25.00 % of the requests", self.trace("describe", log).stdout.split(b"as logged")[1])
                back = self.trace("convert", "--to", "urls", log).stdout.decode().splitlines()
                self.assertEqual([line.split("\t")[0] for line in back], [u for u in urls if u.startswith("http")])

    def test_doubtful_columns(self):
        table = (b"host\tlogname\ttime\tmethod\turl\tresponse\tbytes\n"
                 b"a.example\t-\t1\tGET\t/x\t200\t5\nb.example\t-\t2\tGET\t/x\t404\t5\n"
                 b"c.example\t-\t3\tGET\t/x\t200\t5\t7\n")
        done = self.trace("describe", "--json", "-", stdin=table)
        facts = json.loads(done.stdout)
        self.assertEqual((facts["requests"], facts["distinct_urls"]), (1, 1))
        self.assertEqual(facts["busiest"][0]["url"], "http://localhost/x")
        for text in (b"column 1 ('host') is taken for the client", b"column 6 ('response') is taken for the status",
                     b"--columns -,-,time,method,url,status,size", b"1 line with more fields, 0 with fewer"):
            self.assertIn(text, done.stderr)
        self.assertEqual(facts["remarks"], 4)
        done = self.trace("describe", "--json", "--columns", "site,-,time,method,url,-,size", "-", stdin=table)
        facts = json.loads(done.stdout)
        self.assertEqual((facts["requests"], facts["distinct_urls"]), (2, 2))
        self.assertEqual(facts["busiest"][0]["url"], "http://a.example/x")

    def test_columns_without_a_header(self):
        rows = b"1,http://a.test/,10\n2,http://b.test/,20\n"
        done = self.trace("describe", "-", stdin=rows, status=65)
        self.assertIn(b"unknown trace format; its first line is '1,http://a.test/,10'", done.stderr)
        self.assertIn(b"most similar is table", done.stderr)
        done = self.trace("describe", "--json", "--columns", "time,url,size", "-", stdin=rows)
        self.assertEqual((json.loads(done.stdout)["requests"], json.loads(done.stdout)["bytes"]), (2, 30))
        done = self.trace("describe", "--columns", "time,ulr", "-", stdin=rows, status=64)
        self.assertIn(b"did you mean url?", done.stderr)

    def test_names_of_formats(self):
        for name in ("apache", "nginx", "Combined"):
            done = self.trace("describe", "--json", "--format", name, "-", stdin=LOG.encode())
            self.assertEqual(json.loads(done.stdout)["format"], "access")

    def test_plurals(self):
        rows = b"time,url,size\n2,http://a.test/,10\n1,http://a.test/,20\n3,http://b.test/,\n"
        done = self.trace("describe", "-", stdin=rows).stdout.decode()
        for text in ("1 request out of order", "1 change of size", "10 B assumed for 1 URL\n"):
            self.assertIn(text, done)
        for text in ("1 requests", "1 changes"):
            self.assertNotIn(text, done)

    def test_pipes(self):
        table = self.trace("convert", "--to", "tsv", "-", stdin=LOG.encode()).stdout
        self.assertEqual(table.split(b"\n")[1], b"1704067200.000000\thttp://localhost/a\t100\t200\tGET")
        facts = json.loads(self.trace("describe", "--json", "-", stdin=table).stdout)
        self.assertEqual((facts["format"], facts["requests"]), ("table", 6))

    def test_a_reader_that_has_gone(self):
        """Whoever pipes into head wanted no more: no word, but a status."""
        table = self.dir / "long.urls"
        table.write_text("".join(f"http://a.test/{n}\n" for n in range(5000)))
        for argv in (("describe", table), ("describe", "--json", table), ("describe", "--busiest", "5000", table),
                     ("convert", "--to", "urls", table), ("generate", "--help")):
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([harness.SUNPROXY, "trace", *argv], stdin=subprocess.DEVNULL, stdout=writer,
                                  stderr=subprocess.PIPE, timeout=harness.TEST_SECONDS, check=False)
            os.close(writer)
            self.assertEqual((done.returncode, done.stderr), (74, b""), argv)

    def test_a_file_as_large_as_it_may_be(self):
        done = subprocess.run([harness.SUNPROXY, "trace", "generate", "zipf", "-n", "20000", "-o",
                               self.dir / "big.tsv"], capture_output=True, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                                    (65536, 65536)))
        self.assertEqual(done.returncode, 73, done.stderr)
        self.assertIn(b"File too large", done.stderr)
        self.assertEqual(list(self.dir.glob("big.tsv*")), [])

    def test_generate(self):
        made = [self.trace("generate", "zipf", "-n", "5000", "--urls", "100", "--seed", seed).stdout
                for seed in ("1", "1", "2")]
        self.assertEqual(made[0], made[1])
        self.assertNotEqual(made[0], made[2])
        self.assertEqual(made[0].count(b"\n"), 5000)
        self.assertTrue(made[0].startswith(b"http://www.example.com/"))
        done = self.trace("generate", "ycsb-a", "-n", "1000", "-o", self.dir / "y.bin")
        self.assertIn(b"left out", done.stderr)
        facts = self.describe(self.dir / "y.bin")
        self.assertTrue(400 < facts["requests"] < 600, facts["requests"])
        repeated = self.trace("generate", "thrift-repeated").stdout.decode().splitlines()
        for first in range(0, 150, 30):
            self.assertEqual(len(set(repeated[first:first + 30])), 5)

    def test_what_is_no_file_stays_what_it_is(self):
        fifo = self.dir / "fifo"
        os.mkfifo(fifo)
        done = self.trace("convert", "--to", "chrome", self.log(), "-o", fifo, status=73)
        self.assertIn(b"no regular file", done.stderr)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.trace("convert", "--to", "urls", self.log(), "-o", fifo)
        self.assertEqual(os.read(reader, 4096).count(b"\n"), 6)
        os.close(reader)
        self.assertTrue(fifo.is_fifo())

    def test_wrong_words_are_answered_with_the_right_one(self):
        for argv, meant in ((("descirbe",), "describe"), (("convert", "--to", "orcle", "x"), "oracle"),
                            (("generate", "zifp"), "zipf"),
                            (("generate", "zipf", "--sizes", "fixd:5"), "fixed:BYTES"),
                            (("describe", "--format", "squd", "x"), "squid")):
            with self.subTest(argv=argv):
                self.assertIn(f"did you mean {meant}?".encode(), self.trace(*argv, status=64).stderr)

    def test_wrong_usage(self):
        for argv in ((), ("frob",), ("convert",), ("convert", self.log()), ("convert", "x", "y"),
                     ("convert", "--to", "parchment", self.log()), ("describe",),
                     ("describe", "--busiest", "x", self.log()), ("describe", "--statuses", "2x", self.log()),
                     ("generate",), ("generate", "poetry"), ("generate", "zipf", "--constant", "-1"),
                     ("generate", "uniform", "--constant", "1"), ("generate", "zipf", "--sizes", "big"),
                     ("generate", "zipf", "--site", "foo"), ("convert", "--to", "tsv", "--site", "foo", self.log()),
                     ("convert", "--to", "chrome", self.log())):
            with self.subTest(argv=argv):
                self.assertEqual(self.trace(*argv, status=64).stdout, b"")
        self.trace("describe", self.dir / "none", status=66)
        self.trace("describe", "-", status=65, stdin=b"To whom it may concern\n")
        self.trace("convert", self.log(), "-o", self.dir / "none" / "out.tsv", status=73)
