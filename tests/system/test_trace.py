"""sunproxy trace: convert, describe and generate as programs that pipe."""

import gzip
import json
import os
import resource
import subprocess

import harness

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
        self.assertIn(b"1 of other statuses, 1 redirects, 1 malformed (first: line 9)", done.stderr)
        self.assertIn(b"line 9: nonsense", done.stderr)
        facts = self.describe(self.log())
        self.assertEqual((facts["requests"], facts["distinct_urls"]), (6, 3))
        self.assertEqual((facts["one_hit_wonders"], facts["infinite_hit_ratio"]), (1, 0.5))
        self.assertEqual((facts["bytes"], facts["distinct_bytes"]), (417, 167))
        self.assertEqual(facts["size_changes"], 1)
        # a b a c a b: one other between the first two a, one between the next, two between the b
        self.assertEqual(facts["reuse_distance"]["count"], 3)
        self.assertEqual([facts["reuse_distance"][p] for p in ("min", "p50", "max")], [1, 1, 2])
        self.assertEqual(facts["busiest"][0],
                         {"url": "http://localhost/a", "requests": 3, "share": 0.5})
        self.assertEqual(facts["left_out"]["bad"], 1)
        facts = self.describe(self.log(), "--statuses", "all", "--busiest", "1")
        self.assertEqual((facts["requests"], len(facts["busiest"])), (8, 1))

    def test_sizes_that_are_not_told(self):
        done = self.trace("describe", self.log())
        self.assertIn(b"100 B inferred for 1 requests\n", done.stdout)
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
        for times, span in (((0, 200000000000), "2314814 d 19 h 33 m"),
                            ((1704067200, 1710463320), "74 d 0 h 42 m, from 2024-01-01 00:00:00 "
                                                       "to 2024-03-15 00:42:00 UTC"),
                            ((2505205, 2505209), "4.00 s"),
                            ((-9 * 10**12, 9 * 10**12), "106751991 d 4 h 00 m")):
            table = "time,url\n" + "".join(f"{time},http://a.test/\n" for time in times)
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

    def test_wrong_words_are_told_the_right_one(self):
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
