"""The request database of the real daemon: its rows, kill -9, a full disk, rotation, its user, and its sandbox."""

import http.client
import json
import os
import pwd
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time

import harness
import rpc

EX_CANTCREAT = 73


class RequestDatabaseTest(harness.SystemTest):
    threads = True
    sandboxed = True

    def setUp(self):
        super().setUp()
        self.folder = self.dir / "requests"
        self.folder.mkdir()
        self.path = self.folder / "requests.db"
        self.http = harness.free_port()

    def start(self, *options, **more):
        if "origin" not in more:
            self.o = more["origin"] = self.origin()
        d = self.daemon("--request-db", self.path, "--http", f"127.0.0.1:{self.http}", *options,
                        **more)
        # Its sockets are open before the database is.
        harness.wait_until(lambda: "serves with" in d.err or not d.running(), what="the daemon")
        return d

    def ask(self, sql, path=None):
        connection = sqlite3.connect(f"file:{path or self.path}?mode=rw", uri=True, timeout=20)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def count(self, path=None):
        return self.ask("SELECT count(*) FROM requests", path)[0][0]

    def over_http(self, url, method="GET"):
        c = http.client.HTTPConnection("127.0.0.1", self.http, timeout=30)
        try:
            c.request(method, url, headers={"Cookie": "a=b"})
            answer = c.getresponse()
            return answer.status, len(answer.read())
        finally:
            c.close()

    def load(self, d, stop, urls=50):
        """Requests over HTTP and RPC until `stop` is set; a daemon that is killed ends them."""
        def over_http(first):
            c = http.client.HTTPConnection("127.0.0.1", self.http, timeout=30)
            n = first
            try:
                while not stop.is_set():
                    c.request("GET", f"http://a.test/{n % urls}")
                    c.getresponse().read()
                    n += 1
            except (OSError, http.client.HTTPException):
                pass
            c.close()

        def over_rpc(first):
            n = first
            try:
                with rpc.Connection(d.address) as c:
                    while not stop.is_set():
                        c.get(f"http://a.test/{n % urls}")
                        n += 1
            except (OSError, EOFError, AssertionError, AttributeError, ValueError):
                pass

        threads = [threading.Thread(target=f, args=(i * 7,))
                   for i, f in enumerate((over_http, over_rpc, over_http, over_rpc))]
        for thread in threads:
            thread.start()
        return threads


class RowsTest(RequestDatabaseTest):
    def test_rows_of_every_kind_are_there_when_the_daemon_has_stopped(self):
        d = self.start("--connect-port", "any")
        with rpc.Connection(d.address) as c, rpc.Connection(d.socket) as local:
            page = c.get("http://a.test/1")
            self.assertEqual(page.source, "miss")
            self.assertEqual(local.get("http://a.test/1").source, "hit")
            self.assertEqual(c.get("http://10.0.0.1:8080/").status, "denied")
        self.assertEqual(self.over_http("http://a.test/2?fault=header:Cache-Control%3a%20max-age%3d60")[0], 200)
        self.assertEqual(self.over_http("http://a.test/2?fault=header:Cache-Control%3a%20max-age%3d60")[0], 200)
        self.assertEqual(self.over_http("http://a.test/?fault=status:404", "POST")[0], 404)
        self.assertEqual(self.over_http("/none")[0], 400)
        with socket.create_connection(("127.0.0.1", self.http)) as s:
            s.sendall(b"NONSENSE\r\n\r\n")
            self.assertIn(b" 400 ", s.recv(65536))
        with socket.create_connection(("127.0.0.1", self.http)) as s:
            s.sendall(b"CONNECT t.test:443 HTTP/1.1\r\nHost: t.test:443\r\n\r\n")
            self.assertIn(b" 200 ", s.recv(65536))
        harness.wait_until(lambda: self.stat(d)["tunnels"] == 0, what="the end of the tunnel")
        written = self.stat(d)
        self.assertEqual((written["request_db_dropped"], written["request_db_errors"]), (0, 0))
        d.stop()
        self.assertEqual(os.listdir(self.folder), ["requests.db"])
        rows = self.ask("SELECT protocol, client, method, origin, outcome, status, "
                        "fetch_us IS NOT NULL, bytes FROM requests ORDER BY time_us, id")
        uid = f"unix:{os.getuid()}"
        self.assertEqual([r[:7] for r in rows], [
            ("rpc2", "127.0.0.1", "GET", "http://a.test", "miss", 200, 1),
            ("rpc2", uid, "GET", "http://a.test", "hit", 200, 0),
            ("rpc2", "127.0.0.1", "GET", "http://10.0.0.1:8080", "denied", None, 1),
            ("http", "127.0.0.1", "GET", "http://a.test", "miss", 200, 1),
            ("http", "127.0.0.1", "GET", "http://a.test", "hit", 200, 0),
            ("http", "127.0.0.1", "POST", "http://a.test", "bypass", 404, 1),
            ("http", "127.0.0.1", "GET", None, "local", 400, 0),
            ("http", "127.0.0.1", None, None, "local", 400, 0),
            ("http", "127.0.0.1", "CONNECT", "t.test:443", "tunnel", 200, 0),
        ])
        self.assertEqual([r[7] for r in rows[:3]], [len(page.body), len(page.body), 0])
        now = time.time() * 1e6
        for time_us, duration_us, fetch_us in self.ask(
                "SELECT time_us, duration_us, fetch_us FROM requests"):
            self.assertLess(abs(now - time_us), 120e6)
            self.assertGreaterEqual(duration_us, fetch_us or 0)
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o640)

    def test_requests_of_a_reverse_proxy_have_the_url_of_the_client(self):
        dead = harness.free_port()
        d = self.start("--origin", f"/dead=http://127.0.0.1:{dead}", "--origin", "/=http://a.test",
                       "--allow-net", "127.0.0.1")
        site = f"http://127.0.0.1:{self.http}"
        for path, status in (("/x", 200), ("/dead/y", 502), ("/dead/z", 502)):
            c = http.client.HTTPConnection("127.0.0.1", self.http, timeout=30)
            c.request("GET", path)
            self.assertEqual(c.getresponse().status, status)
            c.close()
        d.stop()
        self.assertEqual(self.ask("SELECT origin, url, outcome FROM requests ORDER BY time_us"), [
            (site, f"{site}/x", "miss"),
            (site, f"{site}/dead/y", "connect_failed"),
            (site, f"{site}/dead/z", "connect_failed")])

    def test_load_is_written_while_it_comes(self):
        d = self.start("--workers", "4")
        stop = threading.Event()
        threads = self.load(d, stop)
        try:
            for wanted in (1000, 2000):
                harness.wait_until(lambda: self.path.exists() and self.count() >= wanted, 60, "rows")
        finally:
            stop.set()
        for thread in threads:
            thread.join()
        requests = 0
        with rpc.Connection(d.address) as c:
            # A reply may arrive before its request has been counted.
            while (counted := sum(value for name, value in c.stat().metrics.items()
                                  if name.startswith("requests{"))) != requests:
                requests = counted
                time.sleep(0.5)
        d.stop()
        self.assertEqual(self.ask("PRAGMA integrity_check"), [("ok",)])
        self.assertEqual(self.count(), requests)

    def test_nothing_is_made_without_the_option(self):
        o = self.origin()
        d = self.daemon(origin=o)
        with rpc.Connection(d.address) as c:
            c.get("http://a.test/")
        self.assertEqual(self.stat(d)["request_db_written"], 0)
        d.stop()
        self.assertEqual(os.listdir(self.folder), [])


class TraceTest(RequestDatabaseTest):
    def test_the_laboratory_reads_it_while_the_daemon_writes(self):
        d = self.start()
        with rpc.Connection(d.address) as c:
            for n in range(400):
                self.assertEqual(c.get(f"http://a.test/{n * n % 37}").status, "ok")
        harness.wait_until(lambda: self.stat(d)["request_db_written"] == 400, what="the rows")
        before = sorted(os.listdir(self.folder))
        facts = json.loads(self.sunproxy("trace", "describe", "--json", self.path).stdout)
        self.assertEqual((facts["format"], facts["requests"]), ("request-db", 400))
        self.assertEqual(facts["distinct_urls"], len({n * n % 37 for n in range(400)}))
        advice = self.sunproxy("advise", self.path).stdout.decode()
        self.assertIn("400 requests", advice)
        self.sunproxy("report", "-o", self.dir / "report.html", self.path)
        page = (self.dir / "report.html").read_text()
        self.assertIn("http://a.test/36", page)
        self.assertNotIn("127.0.0.1", page)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        self.assertEqual(d.stop(), 0)


class StatTest(RequestDatabaseTest):
    def since(self, *options, expect=0, **more):
        return self.sunproxy("stat", "--since", *options, expect=expect, **more)

    def test_the_past_of_a_server_that_runs(self):
        d = self.start()
        before = time.time()
        with rpc.Connection(d.address) as c:
            for n in range(20):
                c.get(f"http://a.test/{n % 4}/" + "long" * 30)
            for _ in range(2):
                c.get("http://slow.test/?fault=delay:300ms&fault=header:Cache-Control%3a%20no-store")
        self.over_http("http://b.test/")
        harness.wait_until(lambda: self.stat(d)["request_db_written"] == 23, what="the rows")
        self.assertEqual(self.stat(d)["request_db"], str(self.path))
        past = json.loads(self.since("1h", "--json", daemon=d).stdout)
        self.assertEqual(past["total"]["requests"], 23)
        self.assertEqual(past["total"]["hit_ratio"], round(16 / 23, 6))
        self.assertGreaterEqual(past["total"]["hit_ratio_with_coalesced"], round(16 / 23, 6))
        self.assertEqual(sum(hour["requests"] for hour in past["hours"]), 23)
        self.assertEqual([u["requests"] for u in past["urls"]], [5, 5, 5, 5, 2, 1])
        slow = past["origins"][0]
        self.assertEqual((slow["origin"], slow["fetches"], slow["failed"]), ("http://slow.test", 2, 0))
        self.assertGreaterEqual(slow["mean_us"], 300000)
        for when in (f"{int(before) - 1}", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(before - 1)), "7d"):
            again = json.loads(self.since(when, "--json", "--request-db", self.path).stdout)
            self.assertEqual(again["total"]["requests"], 23, when)
        later = json.loads(self.since("2099-01-01", "--json", daemon=d).stdout)
        self.assertEqual((later["total"]["requests"], later["hours"], later["urls"]), (0, [], []))
        self.assertEqual(len(json.loads(self.since("1h", "--json", "--top", "2", daemon=d).stdout)["urls"]), 2)
        self.assertNotIn("***", self.since("1h", daemon=d).stdout.decode())
        connection = sqlite3.connect(self.path, timeout=20)
        self.addCleanup(connection.close)
        connection.execute(
            "INSERT INTO requests (time_us, duration_us, protocol, client, method, url, origin, outcome, "
            "status, bytes) SELECT time_us, duration_us, protocol, client, method, "
            "'http://me:se@cret@h.test/a:b@c', origin, outcome, status, bytes FROM requests LIMIT 1")
        connection.commit()
        for option in ((), ("--json",)):
            masked = self.since("1h", *option, daemon=d).stdout.decode()
            self.assertIn("http://me:***@h.test/a:b@c", masked)
            self.assertNotIn("cret", masked)
        connection.execute("DELETE FROM requests WHERE url LIKE '%cret%'")
        connection.commit()
        connection.close()
        text = self.since("1h", daemon=d).stdout.decode()
        self.assertRegex(text, r"hit ratio, with coalesced +[\d.]+ %\nhit ratio, hits alone +69\.57 %\n")
        self.assertIn("longlonglongl...", text)
        for line in text.splitlines():
            self.assertLessEqual(len(line), 80)
            self.assertEqual(line, line.rstrip())
        d.stop()
        self.assertEqual(self.since("1h", "--request-db", self.path).stdout.decode(), text)
        self.assertEqual(os.listdir(self.folder), ["requests.db"])

    def test_only_administrators_are_told_the_name_of_the_file(self):
        d = self.start()
        self.assertNotIn("request_db", json.loads(self.sunproxy("stat", "--json", daemon=d, tcp=True).stdout))
        done = self.since("1h", daemon=d, tcp=True, expect=harness.EX_UNAVAILABLE)
        self.assertIn("names no request database", done.stderr.decode())

    def test_wrong_usage(self):
        d = self.start()
        for options, word in ((("--since", "soon"), "a time ago such as 90m"),
                              (("--since", "90"), "a time ago such as 90m"),
                              (("--request-db", "x"), "--request-db needs --since"),
                              (("--until", "1h"), "--until needs --since"),
                              (("--since", "1h", "--watch"), "--watch exclude each other"),
                              (("--since", "1h", "--csv"), "--csv exclude each other"),
                              (("--since", "1h", "--top", "0"), "--top")):
            done = self.sunproxy("stat", *options, daemon=d, expect=harness.EX_USAGE)
            self.assertIn(word, done.stderr.decode())
        done = self.since("1h", "--request-db", self.dir / "none", expect=66)
        self.assertIn("No such file or directory", done.stderr.decode())
        (self.dir / "text").write_text("no database " * 20)
        done = self.since("1h", "--request-db", self.dir / "text", expect=66)
        self.assertIn("not a database", done.stderr.decode())


class CrashTest(RequestDatabaseTest):
    seconds = 25

    def test_rows_that_were_committed_survive_a_kill(self):
        seen = 0
        origin = self.origin()
        for _ in range(3):
            d = self.start(origin=origin)
            stop = threading.Event()
            threads = self.load(d, stop)
            try:
                harness.wait_until(lambda: self.count() > seen + 500, 60, "rows")
                seen = self.count()
                d.kill()
            finally:
                stop.set()
            for thread in threads:
                thread.join()
            self.assertGreaterEqual(self.count(), seen)
            seen = self.count()
            self.assertEqual(self.ask("PRAGMA integrity_check"), [("ok",)])
        d = self.start(origin=origin)
        self.assertEqual(self.over_http("http://a.test/after")[0], 200)
        d.stop()
        self.assertEqual(self.count(), seen + 1)
        self.assertEqual(self.ask("SELECT url FROM requests ORDER BY id DESC LIMIT 1"),
                         [("http://a.test/after",)])

    def test_a_file_that_is_something_else_is_refused_at_the_start(self):
        self.path.write_text("time client url\n")
        done = self.run_daemon("--no-rpcbind", "--listen", "none", "--socket", self.dir / "s",
                               "--request-db", self.path)
        self.assertEqual(done.returncode, EX_CANTCREAT)
        self.assertIn(f"request database {self.path}: it is not an SQLite database", done.stderr.decode())
        self.assertEqual(self.path.read_text(), "time client url\n")
        other = sqlite3.connect(self.folder / "places.sqlite")
        other.execute("CREATE TABLE moz_places (id, url)")
        other.commit()
        other.close()
        done = self.run_daemon("--no-rpcbind", "--listen", "none", "--socket", self.dir / "s",
                               "--request-db", self.folder / "places.sqlite")
        self.assertEqual(done.returncode, EX_CANTCREAT)
        self.assertIn("it is an SQLite database of something else", done.stderr.decode())
        done = self.run_daemon("--no-rpcbind", "--listen", "none", "--socket", self.dir / "s",
                               "--request-db", self.dir / "missing" / "r.db")
        self.assertEqual(done.returncode, EX_CANTCREAT)
        self.assertIn("No such file or directory", done.stderr.decode())

    def test_a_file_that_was_moved_away_is_followed_by_a_new_one(self):
        old = self.folder / "requests.db.1"
        d = self.start()
        for n in range(5):
            self.over_http(f"http://a.test/{n}")
        for times, number in enumerate((signal.SIGHUP, signal.SIGUSR1), 1):
            # A request is recorded when its response has been sent.
            harness.wait_until(lambda: self.stat(d)["request_db_written"] == 5 * times, what="rows")
            os.rename(self.path, old)
            d.signal(number)
            harness.wait_until(lambda: d.err.count(f"{self.path} opened again") == times, what="a new file")
            self.assertEqual(self.count(old), 5)
            self.assertEqual(self.ask("PRAGMA integrity_check", old), [("ok",)])
            for n in range(5):
                self.over_http(f"http://a.test/{n}")
        d.stop()
        self.assertEqual(self.count(), 5)

    def reader(self, in_transaction):
        """A process that has read the database and keeps it open; a second line makes it read again."""
        program = """if True:
            import sqlite3, sys
            d = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, isolation_level=None)
            if sys.argv[2] == "True":
                d.execute("BEGIN")
            for _ in range(2):
                print(d.execute("SELECT count(*) FROM requests").fetchone()[0], flush=True)
                sys.stdin.readline()
            """
        process = subprocess.Popen([sys.executable, "-c", program, self.path, str(in_transaction)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def end():
            process.stdin.close()
            process.stdout.close()
            process.wait()
        self.addCleanup(end)
        return process

    def rotate_while_it_is_read(self, in_transaction):
        old = self.folder / "requests.db.1"
        d = self.start()
        written = lambda n: harness.wait_until(
            lambda: self.stat(d)["request_db_written"] == n, what=f"{n} rows")
        for n in range(5):
            self.over_http(f"http://a.test/{n}")
        written(5)
        reader = self.reader(in_transaction)
        self.assertEqual(reader.stdout.readline(), "5\n")
        for n in range(300):
            self.over_http("http://a.test/?" + "x" * 500)
        written(305)
        os.rename(self.path, old)
        d.signal(signal.SIGHUP)
        if in_transaction:
            harness.wait_until(lambda: "another process reads it" in d.err, what="the warning")
            self.over_http("http://a.test/")
            written(306)
            self.assertFalse(self.path.exists())
            reader.stdin.write("\n")
            reader.stdin.flush()
            self.assertEqual(reader.stdout.readline(), "5\n")
            reader.stdin.close()
            reader.wait()
        harness.wait_until(lambda: f"{self.path} opened again" in d.err, what="a new file")
        had = 306 if in_transaction else 305
        self.assertEqual(self.count(old), had)
        for n in range(7):
            self.over_http(f"http://a.test/{n}")
        written(had + 7)
        if not in_transaction:
            reader.stdin.write("\n")
            reader.stdin.flush()
            self.assertEqual(reader.stdout.readline(), "305\n")
            reader.stdin.close()
            reader.wait()
        for n in range(7):
            self.over_http(f"http://a.test/{n}")
        written(had + 14)
        self.assertEqual(self.stat(d)["request_db_errors"], 0)
        d.stop()
        self.assertLessEqual(d.err.count("another process reads it"), 1)
        self.assertEqual(self.count(), 14)
        for path in (self.path, old):
            self.assertEqual(self.ask("PRAGMA integrity_check", path), [("ok",)])

    def test_a_file_is_moved_away_while_another_process_has_it_open(self):
        self.rotate_while_it_is_read(False)

    def test_a_file_is_moved_away_while_another_process_reads_it(self):
        self.rotate_while_it_is_read(True)

    def test_a_lock_is_waited_for_and_logged_once(self):
        d = self.start()
        other = sqlite3.connect(self.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for n in range(3):
            self.over_http(f"http://a.test/{n}")
        harness.wait_until(lambda: self.stat(d)["request_db_errors"] >= 2, 30, "failed attempts")
        self.assertEqual(self.over_http("http://a.test/3")[0], 200)
        other.execute("COMMIT")
        other.close()
        harness.wait_until(lambda: self.stat(d)["request_db_written"] == 4, 30, "the rows")
        self.assertEqual(d.err.count("another process has locked it"), 1)
        self.assertEqual(d.err.count("is written again"), 1)

    def test_a_full_disk(self):
        if os.geteuid() != 0 or not shutil.which("mount"):
            self.skipTest("a small file system needs root")
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", self.folder],
                                 capture_output=True)
        if mounted.returncode != 0:
            self.skipTest(f"a small file system cannot be mounted: {mounted.stderr.decode()}")
        self.addCleanup(subprocess.run, ["umount", "-l", self.folder], check=True)
        filler = self.folder / "filler"
        d = self.start()
        try:
            with open(filler, "wb") as f:
                while True:
                    f.write(bytes(65536))
                    f.flush()
        except OSError:
            pass
        sent = 0
        with rpc.Connection(d.address) as c:
            while self.stat(d)["request_db_errors"] < 2:
                for _ in range(20):
                    self.assertEqual(c.get("http://a.test/" + "x" * 200).status, "ok")
                    sent += 1
            os.unlink(filler)
            harness.wait_until(lambda: self.stat(d)["request_db_written"] == sent, 30, "the rows")
        self.assertEqual(d.err.count("the disk is full"), 1)
        d.stop()
        self.assertEqual(self.count(), sent)
        self.assertEqual(self.ask("PRAGMA integrity_check"), [("ok",)])


class UserTest(RequestDatabaseTest):
    needs_root = "another user needs root"

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest(self.needs_root)
        self.nobody = pwd.getpwnam("nobody")
        os.chmod(self.dir, 0o711)

    def test_the_file_belongs_to_the_user_that_serves(self):
        os.chown(self.folder, self.nobody.pw_uid, self.nobody.pw_gid)
        d = self.start("--user", "nobody")
        self.assertEqual(self.over_http("http://a.test/")[0], 200)
        harness.wait_until(lambda: self.stat(d)["request_db_written"] == 1, what="the row")
        for name in os.listdir(self.folder):
            st = os.stat(self.folder / name)
            self.assertEqual((st.st_uid, st.st_mode & 0o777), (self.nobody.pw_uid, 0o640), name)
        d.signal(signal.SIGHUP)
        self.assertEqual(self.over_http("http://a.test/")[0], 200)
        d.stop()
        self.assertEqual(self.count(), 2)

    def test_a_folder_that_this_user_may_not_write_is_refused(self):
        done = self.run_daemon("--no-rpcbind", "--listen", "none", "--socket", self.dir / "s",
                               "--user", "nobody", "--request-db", self.path)
        self.assertEqual(done.returncode, EX_CANTCREAT)
        self.assertIn(f"request database {self.path}: Permission denied", done.stderr.decode())
