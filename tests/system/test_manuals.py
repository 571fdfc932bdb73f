"""The manuals and --help, which is printed from the tables of options, name the same options."""

import json
import re
import shutil
import unittest

import harness
import rpc
from http_front import http_address

# Rows of --help: letter, name, and whether a value follows.
HELP_ROW = re.compile(r"^  (?:-(\w), |    )--([a-z][a-z0-9-]*)(\[=\S+| [^ ]\S*)?", re.M)
MANUALS = ("sunproxy.1", "sunproxyd.8", "sunproxyd.rules.5")
# Groups of options that several commands share, and the part of sunproxy(1) that has them.
SHARED = {"The server": "Finding the server", "The trace": "Traces", "The simulation": "simulate"}


def options_of_help(text):
    return {name: (letter, bool(value)) for letter, name, value in HELP_ROW.findall(text)}


def options_of_manual(text):
    """The same of the items of a list: ".It Fl o , -output Ar file" and several in one line."""
    found = {}
    for line in re.findall(r"(?m)^\.It (Fl .*)$", text):
        letter = ""
        for item in re.split(r"\s*[,;]\s+(?=Fl|-)", line):
            words = item.removeprefix("Fl ").split()
            if words[0].startswith("-"):
                found[words[0][1:].replace("\\-", "-")] = (letter, len(words) > 1)
                letter = ""
            else:
                letter = words[0]
    return found


class ManualsTest(harness.SystemTest):
    needs = (harness.SUNPROXYD, harness.SUNPROXY, harness.ORIGIN)
    maxDiff = None

    def help_of(self, *argv):
        done = self.run_program([*argv, "--help"])
        self.assertEqual(done.returncode, 0)
        return done.stdout.decode()

    def groups_of(self, command):
        """Options by heading; those of the command itself are under ""."""
        groups = {}
        heading = ""
        for line in self.help_of(harness.SUNPROXY, *command.split()).splitlines():
            if re.match(r"[A-Z].*:$", line):
                heading = line[:-1] if line[:-1] in SHARED else ""
            groups.setdefault(heading, {}).update(options_of_help(line))
        self.assertTrue(any(options.pop("help", None) for options in groups.values()), command)
        return groups

    def commands(self):
        listed = re.findall(r"(?m)^  ([a-z]+) {2,}", self.help_of(harness.SUNPROXY))
        self.assertIn("get", listed)
        parts = []
        for whole, count in (("trace", 3), ("store", 5)):
            words = re.findall(r"(?m)^([a-z]+) {2,}", self.help_of(harness.SUNPROXY, whole))
            self.assertEqual(len(words), count)
            parts += [f"{whole} {word}" for word in words]
        return [c for c in listed if c not in ("help", "trace", "store")] + parts

    def sections(self):
        text = (harness.TOP / "docs/sunproxy.1").read_text()
        parts = re.split(r"(?m)^\.S[sh] (.*)$", text)
        self.assertIn("Fl -help", text)
        return {name: options_of_manual(body) for name, body in zip(parts[1::2], parts[2::2])}

    def test_mandoc_finds_nothing(self):
        if not shutil.which("mandoc"):
            self.skipTest("mandoc is not installed")
        for manual in MANUALS:
            done = self.run_program(["mandoc", "-T", "lint", "-W", "all", harness.TOP / "docs" / manual])
            found = (done.stdout + done.stderr).decode().splitlines()
            # Which other manuals there are, and whether they are indexed, is this machine's affair.
            found = [line for line in found
                     if not re.search("referenced manual not found|outdated mandoc.db", line)]
            self.assertEqual(found, [], manual)

    def test_each_literal_has_quotes_of_its_own(self):
        # man quotes all arguments of .Ql together, ‘one, two’, and nests quotes within .Pq.
        for manual in MANUALS:
            text = (harness.TOP / "docs" / manual).read_text()
            self.assertEqual(re.findall(r"(?m)^\.Ql .* , .*$|^\.[A-Z]q Ql .* Ql .*$", text), [], manual)

    def test_the_keys_of_rules(self):
        printed = self.run_program([harness.SUNPROXYD, "--default-config"]).stdout.decode()
        keys = re.findall(r"(?m)^#  ([a-z-]+) +=", printed[printed.index("#[rule]"):])
        text = (harness.TOP / "docs/sunproxyd.rules.5").read_text()
        listed = [key for line in re.findall(r"(?m)^\.It Li (.*)$", text)
                  for key in line.split(" , ")]
        self.assertIn("pass", keys)
        self.assertEqual(sorted(keys), sorted(listed))

    def test_the_options_that_need_a_restart(self):
        table = (harness.TOP / "server/config/options.c").read_text()
        fixed = re.findall(r'(?m)^    \{"([a-z0-9-]+)", [^,]+, OPTION_FIXED,', table)
        text = (harness.TOP / "docs/sunproxyd.8").read_text()
        begin = text.index("These options take effect at the start only:")
        listed = re.findall(r"(?m)^\.Fl -([a-z0-9-]+)", text[begin:text.index("A configuration in", begin)])
        self.assertEqual(listed, fixed)

    def test_help_has_at_most_80_columns(self):
        for argv in ([harness.SUNPROXYD], *([harness.SUNPROXY, *c.split()] for c in self.commands())):
            for line in self.help_of(*argv).splitlines():
                self.assertLessEqual(len(line), 80, argv)

    def test_labels_of_stat_are_aligned(self):
        shown = self.sunproxy("stat", daemon=self.daemon()).stdout.decode().split("\n\n")[1]
        ends = {len(line) for line in shown.splitlines() if re.search(r"  +[0-9]+$", line)}
        self.assertEqual(len(ends), 1, shown)

    def test_the_keys_of_json(self):
        text = (harness.TOP / "docs/sunproxy.1").read_text()
        section = re.search(r"(?ms)^\.Sh JSON$(.*?)^\.Sh ", text).group(1)
        listed = {key for line in re.findall(r"(?m)^\.It Li (.*)$", section)
                  for key in line.split(" , ")}
        listed.update(re.findall(r"(?m)^\.(?:Pq )?Ql (\w+)", section))
        trace = self.dir / "trace.tsv"
        trace.write_text("time\turl\tsize\n" + "".join(
            f"{i}\thttp://h/{i % 7}\t{100 + i % 7}\n" for i in range(60)))
        d = self.daemon("--http", "127.0.0.1:0", origin=self.origin())
        http = "{}:{}".format(*harness.wait_until(lambda: http_address(d), what="the HTTP front"))
        objects = [json.loads(done.stdout) for done in (
            self.sunproxy("get", "--json", "http://a.test/1", daemon=d),
            self.run_program([harness.SUNPROXY, "simulate", "--json", "--window", "10s", trace]),
            self.run_program([harness.SUNPROXY, "simulate", "--json", "--curve", trace]),
            self.run_program([harness.SUNPROXY, "advise", "--json", trace]),
            self.sunproxy("verify", "--json", "--http", http, trace))]
        printed = set()
        while objects:
            value = objects.pop()
            if isinstance(value, dict):
                printed.update(value)
                # Its members are reasons of the reader, which the manual does not list.
                objects += [v for k, v in value.items() if k != "left_out"]
            elif isinstance(value, list):
                objects += value
        self.assertIn("not_admitted", printed)
        self.assertEqual(printed - listed, set())
        # Of failures, and of runs that a signal ended.
        self.assertEqual(listed - printed, {"error_code", "_us", "unfinished", "up_to_request"})

    def test_what_a_capacity_of_0_means(self):
        done = self.run_daemon("--check-config", "--capacity-bytes", "0", "--capacity-urls", "0")
        self.assertRegex(done.stdout.decode(), r"(?m)^capacity-bytes = (256M|268435456)$")
        done = self.run_daemon("--check-config", "--capacity-bytes", "0", "--capacity-urls", "7")
        self.assertRegex(done.stdout.decode(), r"(?m)^capacity-bytes = 0$")
        text = " ".join(self.help_of(harness.SUNPROXYD).split())
        self.assertIn("0: not bounded in bytes if --capacity-urls is given, else 256M", text)

    def test_the_sources_of_a_page_are_those_that_servers_send(self):
        text = (harness.TOP / "docs/sunproxy.1").read_text()
        listed = re.search(r"(?m)^\.It Li source\n(.*?);", text).group(1)
        self.assertEqual(listed, "hit, miss, coalesced or bypass")

    def test_the_client(self):
        sections = self.sections()
        shared = {heading: {} for heading in SHARED}
        for command in self.commands():
            groups = self.groups_of(command)
            own = groups.pop("", {})
            for heading, options in groups.items():
                shared[heading].update(options)
            if command == "simulate":
                own.update(groups["The simulation"])
            self.assertEqual(own, sections[command], command)
        for heading, section in SHARED.items():
            self.assertTrue(shared[heading], heading)
            if section == "simulate":
                self.assertLessEqual(shared[heading].items(), sections[section].items())
            else:
                self.assertEqual(shared[heading], sections[section], heading)

    def test_every_policy_is_described(self):
        listed = self.run_program([harness.SUNPROXY, "policies"]).stdout.decode()
        names = re.findall(r"(?m)^(\S+) +Evicts ", listed)
        self.assertIn("lru", names)
        text = (harness.TOP / "docs/POLICIES.md").read_text()
        self.assertEqual(re.findall(r"(?m)^### (.*)$", text), names)
        sources = text.split("\n## Sources\n")[1].split("\n## ")[0]
        self.assertEqual(re.findall(r"(?m)^\| ([a-z0-9-]+) \| ", sources)[1:], names)
        # Not of every policy: a new one cannot be measured on traces that are not here.
        measured = re.findall(r"(?m)^\| (\S+) \| \d", text)
        self.assertEqual(measured, [name for name in names if name in measured])
        self.assertIn("lru", measured)

    def test_the_daemon(self):
        text = (harness.TOP / "docs/sunproxyd.8").read_text()
        self.assertEqual(options_of_help(self.help_of(harness.SUNPROXYD)), options_of_manual(text))

    def metrics(self):
        """Of sunproxyd --list-metrics: kind, help, label and its values by family."""
        listed = self.run_program([harness.SUNPROXYD, "--list-metrics"]).stdout.decode()
        families = {}
        for line in listed.splitlines():
            name, kind, unit, words = line.split("\t")
            family, label, value = re.fullmatch(r'(\w+)(?:\{(\w+)="(\w+)"\})?', name).groups()
            self.assertTrue(not unit or family.endswith("_" + unit), line)
            entry = families.setdefault(family, (kind, words, label, []))
            self.assertEqual((kind, words, label), entry[:3])
            entry[3].extend([value] if value else [])
        self.assertGreater(len(families), 20)
        return families

    def test_the_metrics(self):
        text = (harness.TOP / "docs/sunproxyd.8").read_text()
        section = re.search(r"(?ms)^\.Sh METRICS$(.*?)^\.El$", text).group(1)
        items = re.findall(r"(?ms)^\.It Li (\w+) Pq (\w+)\n(.*?)(?=^\.It |\Z)", section)
        found = {}
        for name, kind, body in items:
            words, label, values = re.fullmatch(r"(.*?)(?:\nLabel (\w+): (.*)\.)?\n", body,
                                                re.S).groups()
            found[name] = (kind, " ".join(words.split()), label,
                           " ".join(values.split()).split(", ") if values else [])
        self.assertEqual(found, self.metrics())
        self.assertEqual(list(found), list(self.metrics()), "their order")

    def test_the_log_formats(self):
        listed = [line.split("\t") for line in
                  self.run_program([harness.SUNPROXYD, "--list-log-format"]).stdout.decode().splitlines()]
        text = (harness.TOP / "docs/sunproxyd.8").read_text().replace("\\(dq", '"').replace("\\&", "")
        section = re.search(r"(?ms)^\.Sh LOG FORMATS$(.*?)^\.Sh ", text).group(1)
        found = [[name, " ".join(words.split())] for name, words in
                 re.findall(r"(?ms)^\.It (?:Li|Cm) (\S+)\n(?:\.Li )?(.*?)(?=^\.It |^\.El)", section)]
        self.assertEqual([[n, w if n[0] != "%" else w[0].upper() + w[1:] + "."] for n, w in listed], found)

    def test_the_keys_of_stat(self):
        text = (harness.TOP / "docs/sunproxy.1").read_text().replace("\\(dq", '"')
        keys = dict(re.findall(r"(?m)^\.It Li (\w+) Ta Li (\S+)$", text))
        d = self.daemon(origin=self.origin())
        for _ in range(2):
            self.sunproxy("get", "http://a.test/1", daemon=d)
        shown = self.stat(d)
        with rpc.Connection(d.socket) as c:
            # The connection of the program is closed after it has ended.
            answer = harness.wait_until(
                lambda: (a := c.stat()).value(keys["connections"]) == 1 and a, what="one connection")
        self.assertEqual(set(shown) - set(keys), {"software", "policy", "shard_choice", "hit_ratio",
                                                  "hit_ratio_with_coalesced",
                                                  "byte_hit_ratio", "histograms"})
        self.assertEqual(set(keys) - set(shown), set())
        changing = {"uptime_us", "calls", "bytes_received", "bytes_sent", "connections_total"}
        for key, name in keys.items():
            if key not in changing:
                self.assertEqual(shown[key], answer.value(name), key)
        self.assertEqual({name: h["count"] for name, h in shown["histograms"].items()},
                         {"hit_duration_microseconds": 1, "miss_duration_microseconds": 1,
                          "origin_first_byte_microseconds": 1})
        # Every metric of the table is served, and no other.
        served = {re.sub(r"_(bucket|count|sum)$", "", name.split("{")[0])
                  if answer.kinds[name] == "histogram" else name.split("{")[0]
                  for name in answer.metrics}
        self.assertEqual(served, set(self.metrics()))


if __name__ == "__main__":
    unittest.main()
