"""The dashboard for Grafana and the alerts for Prometheus: their names are those of the daemon, and a real
Prometheus that asks daemons under load finds data for each expression, and raises the alerts of an outage."""

import http.client
import itertools
import json
import math
import re
import shutil
import socket
import sqlite3
import threading
import urllib.parse
import urllib.request

import harness
from http_front import stored

DASHBOARD = harness.TOP / "packaging/grafana/sunproxy.json"
PROMETHEUS = harness.TOP / "packaging/prometheus"
RULES = PROMETHEUS / "sunproxy.rules.yml"
UNIT_TESTS = harness.TOP / "tests/system/monitoring/rules_test.yml"
OF_BUSY_MACHINES = {"SunproxyDown", "SunproxySlowHits"}
SELECTOR = re.compile(r"\b(sunproxy_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(=~|!~|!=|=)"([^"]*)"')


def panels():
    return [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]


def dashboard_expressions():
    """With what Grafana puts in place of its variables, for a Prometheus that asks twice a second."""
    return [target["expr"].replace("$__rate_interval", "5s").replace("$instance", ".*")
            for panel in panels() for target in panel["targets"]]


def alerts():
    """Name and expression of each alert."""
    found = []
    for block in re.split(r"(?m)^ +- alert: ", RULES.read_text())[1:]:
        expression = re.search(r"(?ms)^ +expr: (?:>-\n)?(.*?)\n +(?:for|labels):", block)[1]
        found.append((block.split()[0], " ".join(expression.split())))
    return found


class NamesTest(harness.SystemTest):
    needs = (harness.SUNPROXYD,)

    def served(self):
        """The names that /metrics has, each with its label's name and values."""
        listed = self.run_program([harness.SUNPROXYD, "--list-metrics"]).stdout.decode()
        names = {}
        for line in listed.splitlines():
            name, kind, _, _ = line.split("\t")
            family, label, value = re.fullmatch(r'(\w+)(?:\{(\w+)="(\w+)"\})?', name).groups()
            family = "sunproxy_" + family.replace("_microseconds", "_seconds")
            for end in {"counter": ("_total",), "gauge": ("",)}.get(kind, ("_bucket", "_sum", "_count")):
                names.setdefault(family + end, (label, set()))[1].add(value)
        return names

    def test_the_daemon_serves_what_is_asked_for(self):
        served = self.served()
        self.assertIn("sunproxy_hit_duration_seconds_bucket", served)
        asked = dashboard_expressions() + [expression for _, expression in alerts()]
        used = set()
        for expression in asked:
            for name, selector in SELECTOR.findall(expression):
                used.add(name)
                self.assertIn(name, served)
                for label, _, value in MATCHER.findall(selector):
                    if label not in ("instance", "job"):
                        self.assertEqual((name, label), (name, served[name][0]))
                        self.assertIn(value, served[name][1], name)
        self.assertGreater(len(used), 40)

    def test_the_panels_of_the_dashboard(self):
        found = panels()
        self.assertGreater(len(found), 20)
        self.assertEqual(len({panel["id"] for panel in found}), len(found))
        self.assertEqual(len({panel["title"] for panel in found}), len(found))
        taken = set()
        for panel in found:
            place = panel["gridPos"]
            cells = set(itertools.product(range(place["x"], place["x"] + place["w"]),
                                          range(place["y"], place["y"] + place["h"])))
            self.assertEqual(cells & taken, set(), panel["title"])
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            taken |= cells
            self.assertTrue(panel["description"].endswith("."), panel["title"])
            self.assertTrue(panel["fieldConfig"]["defaults"]["unit"], panel["title"])
            for target in panel["targets"]:
                self.assertEqual(target["datasource"]["uid"], "${datasource}")
                self.assertIn('instance=~"$instance"', target["expr"])

    def test_each_alert_has_a_unit_test(self):
        tested = re.findall(r"(?m)^ +- alertname: (\w+)$", UNIT_TESTS.read_text())
        self.assertEqual(set(tested), {name for name, _ in alerts()})


class PrometheusCase(harness.SystemTest):
    def tool(self, name):
        path = shutil.which(name)
        if not path:
            self.skipTest(f"{name} is not installed (Debian's package prometheus)")
        return path


class PromtoolTest(PrometheusCase):
    needs = ()

    def test_its_checks(self):
        promtool = self.tool("promtool")
        for argv in (["check", "rules", RULES], ["check", "config", PROMETHEUS / "prometheus.yml"],
                     ["test", "rules", UNIT_TESTS]):
            done = self.run_program([promtool, *argv])
            self.assertEqual(done.returncode, 0, (done.stdout + done.stderr).decode())
            self.assertIn(b"SUCCESS", done.stdout + done.stderr)


class Load(threading.Thread):
    """Sends requests for URLs to a proxy, one after another, until the test ends."""

    def __init__(self, test, proxy, urls, fields=None):
        super().__init__(daemon=True)
        self.fields = fields or {}
        self.proxy = proxy
        self.urls = urls
        self.ended = threading.Event()
        test.addCleanup(self.ended.set)
        self.start()

    def run(self):
        for url in self.urls:
            if self.ended.wait(0.02):
                return
            connection = http.client.HTTPConnection(self.proxy, timeout=60)
            try:
                connection.request("GET", url, headers=self.fields)
                connection.getresponse().read()
            except (OSError, http.client.HTTPException):
                pass  # what becomes of them is seen in the metrics
            finally:
                connection.close()


def numbered(pattern):
    return (pattern % n for n in itertools.count())


class OutageTest(PrometheusCase):
    """One Prometheus and several daemons: one in good health, and one for each kind of trouble."""

    seconds = 70

    def setUp(self):
        super().setUp()
        self.program = self.tool("prometheus")
        self.o = self.origin()
        self.instances = {}
        self.proxies = {}

    def instance(self, name):
        """Its address for Prometheus, before the daemon is started."""
        return self.instances.setdefault(name, f"127.0.0.1:{harness.free_port()}")

    def start(self, name, *options, load=None, **more):
        proxy = self.proxies.setdefault(name, f"127.0.0.1:{harness.free_port()}")
        more.setdefault("origin", self.o)
        daemon = self.daemon("--http", proxy, "--metrics", self.instance(name), *options, **more)
        if load:
            Load(self, proxy, load)
        return daemon

    def start_prometheus(self):
        """With the files of packaging/, but for times, which are shorter, and the daemons' addresses."""
        folder = self.dir / "prometheus"
        folder.mkdir()
        rules = re.sub(r"\[\d+m\]", "[5s]", RULES.read_text())
        (folder / RULES.name).write_text(re.sub(r"(?m)^( +for:) .*$", r"\1 1s", rules))
        config = (PROMETHEUS / "prometheus.yml").read_text()
        config = config.replace('["127.0.0.1:9180"]', json.dumps(list(self.instances.values())))
        (folder / "prometheus.yml").write_text(
            config + "\nglobal: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}\n")
        self.api = f"127.0.0.1:{harness.free_port()}"
        self.prometheus = harness.Process(
            self, "prometheus", [self.program, f"--config.file={folder}/prometheus.yml",
                                 f"--storage.tsdb.path={folder}/data", f"--web.listen-address={self.api}",
                                 "--log.level=warn"])
        harness.wait_until(self.is_ready, what="Prometheus")

    def is_ready(self):
        self.assertTrue(self.prometheus.running(), self.prometheus.err)
        try:
            with urllib.request.urlopen(f"http://{self.api}/-/ready") as response:
                return response.status == 200
        except OSError:
            return False

    def ask(self, path, **parameters):
        url = f"http://{self.api}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url) as response:
            answer = json.load(response)
        self.assertEqual(answer["status"], "success")
        return answer["data"]

    def values(self, expression):
        """Those that are numbers."""
        found = [float(row["value"][1]) for row in self.ask("query", query=expression)["result"]]
        return [value for value in found if not math.isnan(value)]

    def firing(self):
        names = {address: name for name, address in self.instances.items()}
        return {(alert["labels"]["alertname"], names[alert["labels"]["instance"]])
                for alert in self.ask("alerts")["alerts"] if alert["state"] == "firing"}

    def assert_only(self, *instances):
        """No other one is in trouble. On a busy machine one may be slow to answer, which is none."""
        self.assertEqual({name for alert, name in self.firing() if alert not in OF_BUSY_MACHINES},
                         set(instances))

    def await_alerts(self, instance, *expected):
        wanted = {(name, instance) for name in expected}
        try:
            harness.wait_until(lambda: wanted <= self.firing(), what="alerts")
        except AssertionError:
            self.fail(f"{wanted - self.firing()} do not fire; firing: {self.firing()}")

    def serve_well(self):
        urls = (url for n in itertools.count()
                for url in (stored("http://a.test/page"), stored(f"http://a.test/{n}")))
        daemon = self.start("good", load=urls)
        self.start_prometheus()
        self.sunproxy("get", "-o", "/dev/null", "http://a.test/page", daemon=daemon)
        return daemon

    def test_each_expression_has_data(self):
        self.serve_well()
        for expression in dashboard_expressions():
            harness.wait_until(lambda e=expression: self.values(e), what=expression)
        # What an alert compares is there; the comparison itself gives nothing in good health.
        for name, expression in alerts():
            compared, _ = re.fullmatch(r"(.*) (?:==|>) ([0-9.]+)", expression).groups()
            compared = re.sub(r"\[\d+m\]", "[5s]", compared)
            # No row of an origin is there.
            compared = compared.replace('origin!="other"', 'origin="other"')
            if name == "SunproxyOriginFails":
                compared = compared.replace(" / ", " + ")
            harness.wait_until(lambda: self.values(compared), what=compared)
        harness.wait_until(lambda: all(rule["lastEvaluation"] > "0002" for group in
                                       self.ask("rules")["groups"] for rule in group["rules"]), what="rules")
        rules = [rule for group in self.ask("rules")["groups"] for rule in group["rules"]]
        self.assertEqual({(rule["name"], rule["health"]) for rule in rules},
                         {(name, "ok") for name, _ in alerts()})
        self.assertLessEqual({rule["name"] for rule in rules if rule["state"] != "inactive"}, OF_BUSY_MACHINES)

    def test_an_origin_that_goes_down(self):
        members = [self.origin(name=name) for name in ("member0", "member1")]
        urls = ",".join(f"http://127.0.0.1:{member.http_port}" for member in members)
        self.start("row", "--origin", f"/={urls}", origin=None, load=numbered("/page%d"))
        self.serve_well()
        instance = self.instance("row")
        harness.wait_until(lambda: any(self.values(
            f'rate(sunproxy_requests_total{{instance="{instance}", outcome!="failure"}}[5s]) > 0')),
            what="pages of the origin")
        self.assert_only()
        for member in members:
            member.stop()
        self.await_alerts("row", "SunproxyOriginDown", "SunproxyOriginFails", "SunproxyRequestsFail")
        self.assert_only("row")

    def test_disks_that_are_full(self):
        (self.dir / "db").mkdir()
        database = self.dir / "db/requests.db"
        self.start("full", "--access-log", "/dev/full", "--request-db", database,
                   load=numbered("http://a.test/%d"))
        harness.wait_until(database.exists, what="the request database")
        self.serve_well()
        lock = sqlite3.connect(database, timeout=60, isolation_level=None)
        self.addCleanup(lock.close)
        lock.execute("BEGIN EXCLUSIVE")
        self.await_alerts("full", "SunproxyLogLinesLost", "SunproxyRequestDbFails")
        self.assert_only("full")

    def test_queues_and_memory_that_are_used_up(self):
        self.start("queue", "--max-fetches", "1", "--max-fetches-queued", "1",
                   load=numbered("http://a.test/%d?fault=delay:1s"))
        for n in range(4):
            Load(self, self.proxies["queue"], numbered(f"http://b{n}.test/%d?fault=delay:1s"))
        # Bodies that stall take more than their share, again and again.
        self.start("memory", "--max-transit", "32M", "--stall-timeout", "1s")
        for n in range(60):
            Load(self, self.proxies["memory"],
                 numbered(f"http://a.test/{n}/%d?fault=size:4000000&fault=hang-body:1900000"))
        self.serve_well()
        self.await_alerts("queue", "SunproxyOverloaded")
        self.await_alerts("memory", "SunproxyMemoryRefused")
        self.assert_only("queue", "memory")

    def test_too_many_connections(self):
        self.start("crowd", "--max-connections", "8", "--max-connections-per-client", "0")
        self.serve_well()
        # Prometheus has one of them, which it keeps.
        harness.wait_until(lambda: self.values(f'up{{instance="{self.instance("crowd")}"}} == 1'), what="a sample")
        host, port = self.proxies["crowd"].split(":")

        def connect():
            connection = socket.create_connection((host, int(port)))
            self.addCleanup(connection.close)

        for _ in range(7):
            connect()

        def is_firing():
            connect()
            return ("SunproxyConnectionsRefused", "crowd") in self.firing()

        harness.wait_until(is_firing, what="the alert")
        self.assert_only("crowd")

    def test_helpers_that_end(self):
        self.start("users", "--auth-helper", "exit 1", "--auth-timeout", "1s")
        Load(self, self.proxies["users"], numbered("http://a.test/%d"),
             {"Proxy-Authorization": "Basic YW5uYTpwYXNzd29yZA=="})
        self.serve_well()
        self.await_alerts("users", "SunproxyUsersUnchecked")
        self.assert_only("users")

    def test_restarts_and_the_end(self):
        self.instance("ends")
        self.serve_well()
        uptime = f'sunproxy_uptime_seconds{{instance="{self.instance("ends")}"}}'
        daemons = [self.start("ends")]

        def fires_at_last():
            # A start is one to Prometheus if the daemon was up for longer before.
            harness.wait_until(lambda: self.values(f"{uptime} > 3"), what="a sample")
            self.assertEqual(daemons[-1].stop(), 0)
            daemons.append(self.start("ends"))
            return ("SunproxyRestarts", "ends") in self.firing()

        harness.wait_until(fires_at_last, 300, "the alert")
        daemons[-1].stop()
        self.await_alerts("ends", "SunproxyDown")
        self.assert_only("ends")
