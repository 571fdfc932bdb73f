"""make install and uninstall, the files of the service, and manuals that keep up with the programs."""

import os
import pathlib
import pwd
import re
import shutil
import subprocess
import tempfile
import unittest

import harness
import rpc

UNIT = "usr/lib/systemd/system/sunproxyd.service"


class InstalledTest(harness.SystemTest):
    """What the tests of installed files share."""

    needs = (harness.SUNPROXYD, harness.SUNPROXY)
    original = None

    def setUp(self):
        super().setUp()
        self.root = self.dir / "root"

    def install(self):
        """The default installation: made once in a class, and copied."""
        original = type(self).original
        if original is None:
            self.make("install")
            folder = tempfile.TemporaryDirectory(prefix="sunproxy-installed.")
            self.addClassCleanup(folder.cleanup)
            type(self).original = pathlib.Path(folder.name) / "root"
            shutil.copytree(self.root, type(self).original, symlinks=True)
        else:
            shutil.copytree(original, self.root, symlinks=True)

    def make(self, target, *variables):
        argv = ["make", "-C", str(harness.TOP), f"VARIANT={harness.BUILD.name}", target,
                f"DESTDIR={self.root}", *(variables or ("PREFIX=/usr",))]
        env = harness.sanitizer_environment(self.dir / "sanitizer.make")
        done = subprocess.run(argv, capture_output=True, text=True, timeout=500, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def files(self):
        return sorted(str(p.relative_to(self.root)) for p in self.root.rglob("*") if p.is_file())

    def tool(self, name):
        """The path of a program that only some systems have; skips the test without it."""
        path = shutil.which(name)
        if not path:
            self.skipTest(f"{name} is not installed")
        return path

    def run_tool(self, *argv, expect=0, **more):
        done = self.run_program(argv, **more)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout.decode(), done.stderr.decode()


class InstallTest(InstalledTest):
    seconds = 20
    SYSTEMD = ["usr/lib/systemd/system/sunproxyd.service", "usr/lib/systemd/system/sunproxyd.socket",
               "usr/lib/systemd/system/sunproxyd-http.socket",
               "usr/lib/sysusers.d/sunproxy.conf", "usr/lib/tmpfiles.d/sunproxy.conf"]
    OTHERS = [
        "etc/logrotate.d/sunproxyd",
        "etc/sunproxy/sunproxyd.conf",
        "usr/bin/sunproxy",
        "usr/libexec/sunproxy/complete.sh",
        "usr/sbin/sunproxyd",
        "usr/share/bash-completion/completions/sunproxy",
        "usr/share/bash-completion/completions/sunproxyd",
        "usr/share/doc/sunproxy/LICENSE",
        "usr/share/doc/sunproxy/NEWS",
        "usr/share/doc/sunproxy/README.md",
        "usr/share/doc/sunproxy/SECURITY.md",
        "usr/share/doc/sunproxy/docs/ARCHITECTURE.md",
        "usr/share/doc/sunproxy/docs/BENCH.md",
        "usr/share/doc/sunproxy/docs/CACHE.md",
        "usr/share/doc/sunproxy/docs/DEPLOY_OFFICE.md",
        "usr/share/doc/sunproxy/docs/DEPLOY_SERVICE.md",
        "usr/share/doc/sunproxy/docs/DEPLOY_SITE.md",
        "usr/share/doc/sunproxy/docs/FETCH.md",
        "usr/share/doc/sunproxy/docs/HTTP.md",
        "usr/share/doc/sunproxy/docs/LAB.md",
        "usr/share/doc/sunproxy/docs/OPERATIONS.md",
        "usr/share/doc/sunproxy/docs/POLICIES.md",
        "usr/share/doc/sunproxy/docs/REPRODUCTION.md",
        "usr/share/doc/sunproxy/docs/RPC.md",
        "usr/share/doc/sunproxy/docs/RULES.md",
        "usr/share/doc/sunproxy/docs/SCALE.md",
        "usr/share/doc/sunproxy/docs/STORE.md",
        "usr/share/doc/sunproxy/docs/TESTING.md",
        "usr/share/doc/sunproxy/logrotate.conf.example",
        "usr/share/doc/sunproxy/packaging/grafana/sunproxy.json",
        "usr/share/doc/sunproxy/packaging/prometheus/prometheus.yml",
        "usr/share/doc/sunproxy/packaging/prometheus/sunproxy.rules.yml",
        *(f"usr/share/doc/sunproxy/packaging/recipes/{name}.conf" for name in (
            "api-keys", "apt", "django", "dokuwiki", "images", "mediawiki", "npm", "pip", "registry",
            "rest", "static", "wordpress")),
        "usr/share/doc/sunproxy/proxy.x",
        "usr/share/doc/sunproxy/sunproxyd.conf.example",
        "usr/share/fish/vendor_completions.d/sunproxy.fish",
        "usr/share/fish/vendor_completions.d/sunproxyd.fish",
        "usr/share/man/man1/sunproxy.1",
        "usr/share/man/man5/sunproxyd.rules.5",
        "usr/share/man/man8/sunproxyd.8",
        "usr/share/zsh/vendor-completions/_sunproxy",
    ]

    LIBRARIES = ["usr/share/sunproxy/LICENSE.d3", "usr/share/sunproxy/LICENSE.plot",
                 "usr/share/sunproxy/d3.min.js", "usr/share/sunproxy/plot.umd.min.js"]

    def plot_dir(self, names):
        """A variable of make that names a folder with the libraries of the report's page."""
        folder = self.dir / "plot"
        folder.mkdir()
        for name in names:
            (folder / pathlib.Path(name).name).write_text(f"/* {name} */")
        return f"PLOT_DIR={folder}"

    def test_in_and_out_again(self):
        self.make("install", "PREFIX=/usr", self.plot_dir(self.LIBRARIES))
        self.assertEqual(self.files(), sorted(self.SYSTEMD + self.OTHERS + self.LIBRARIES))
        trace = self.dir / "trace"
        trace.write_text("http://h/a\n")
        page, _ = self.run_tool(self.root / "usr/bin/sunproxy", "report", "-o", "-", trace)
        self.assertIn("/* usr/share/sunproxy/plot.umd.min.js */", page)
        for program in ("usr/bin/sunproxy", "usr/sbin/sunproxyd"):
            self.run_tool(self.root / program, "--version")
        for name in self.files():
            text = (self.root / name).read_bytes()
            if not name.startswith(("usr/bin", "usr/sbin")):
                self.assertNotIn(str(self.root).encode(), text, f"{name} has DESTDIR in it")
                self.assertNotRegex(text, rb"@[A-Z]+@", name)
        (self.root / "usr/bin/other").write_text("not ours")
        self.make("uninstall")
        self.assertEqual(self.files(), ["usr/bin/other"])
        for folder in ("etc/sunproxy", "usr/libexec/sunproxy", "usr/share/doc/sunproxy",
                       "usr/share/sunproxy"):
            self.assertFalse((self.root / folder).exists(), folder)

    def test_without_systemd(self):
        self.make("install", "PREFIX=/usr", "SYSTEMD=no", self.plot_dir([]))
        self.assertEqual(self.files(), self.OTHERS)

    def test_without_the_libraries_of_the_page_it_says_so(self):
        said = self.make("install", "PREFIX=/usr", self.plot_dir([]))
        self.assertIn("without the libraries of the page of sunproxy report: make setup fetches them", said)
        self.assertEqual(self.files(), sorted(self.SYSTEMD + self.OTHERS))

    def test_a_package_finds_libraries_that_were_added_to_it(self):
        self.make("install", "PREFIX=/usr", self.plot_dir([]))
        trace = self.dir / "trace"
        trace.write_text("http://h/a\n")
        added = self.root / "usr/local/share/sunproxy"
        self.run_tool(self.root / "usr/bin/sunproxy", "report", "-o", "-", trace, expect=69)
        added.mkdir(parents=True)
        for name in ("d3.min.js", "plot.umd.min.js"):
            (added / name).write_text(f"/* added {name} */")
        page, _ = self.run_tool(self.root / "usr/bin/sunproxy", "report", "-o", "-", trace)
        self.assertIn("/* added plot.umd.min.js */", page)

    def test_places_can_be_chosen(self):
        places = ("PREFIX=/opt/sun", "UNITDIR=/units", "SYSCONFDIR=/conf", "LIBEXECDIR=/exec")
        self.make("install", *places)
        unit = (self.root / "units/sunproxyd.service").read_text()
        self.assertIn("ExecStart=/opt/sun/sbin/sunproxyd --config /conf/sunproxy/sunproxyd.conf\n",
                      unit)
        self.assertTrue((self.root / "conf/logrotate.d/sunproxyd").exists())
        completion = self.root / "opt/sun/share/bash-completion/completions/sunproxy"
        self.assertIn("/exec/complete.sh", completion.read_text())
        self.assertTrue((self.root / "exec/complete.sh").exists())
        self.assertTrue((self.root / "opt/sun/share/zsh/site-functions/_sunproxy").exists())
        self.make("uninstall", *places)
        self.assertEqual(self.files(), [])

    def test_a_changed_configuration_is_kept(self):
        config = self.root / "etc/sunproxy/sunproxyd.conf"
        pristine = self.root / "usr/share/doc/sunproxy/sunproxyd.conf.example"
        self.install()
        default = config.read_text()
        config.write_text("policy = lfu\n")
        self.assertIn("was changed and is kept", self.make("install"))
        self.assertEqual(config.read_text(), "policy = lfu\n")
        self.assertEqual(pristine.read_text(), default)
        self.assertIn("was changed and is kept", self.make("uninstall"))
        self.assertEqual(self.files(), ["etc/sunproxy/sunproxyd.conf"])

    def test_a_changed_rotation_is_kept(self):
        rules = self.root / "etc/logrotate.d/sunproxyd"
        pristine = self.root / "usr/share/doc/sunproxy/logrotate.conf.example"
        self.install()
        default = rules.read_text()
        rules.write_text("# rotated elsewhere\n")
        self.assertIn(f"{rules} was changed and is kept", self.make("install"))
        self.assertEqual(rules.read_text(), "# rotated elsewhere\n")
        self.assertEqual(pristine.read_text(), default)
        self.assertIn(f"{rules} was changed and is kept", self.make("uninstall"))
        self.assertEqual(self.files(), ["etc/logrotate.d/sunproxyd"])

    def test_a_configuration_that_is_a_link_is_kept(self):
        config = self.root / "etc/sunproxy/sunproxyd.conf"
        elsewhere = self.dir / "elsewhere.conf"
        self.install()
        for text in (config.read_text(), "policy = lfu\n", None):
            elsewhere.unlink(missing_ok=True)
            if text is not None:
                elsewhere.write_text(text)
            config.unlink()
            config.symlink_to(elsewhere)
            self.make("install")
            self.make("uninstall")
            self.assertTrue(config.is_symlink())
            self.assertEqual(elsewhere.exists() and elsewhere.read_text(), text or False)

    def test_where_logrotate_does_not_look_is_said(self):
        sentence = "logrotate does not read /usr/local/etc/logrotate.d/sunproxyd by itself"
        self.assertIn(sentence, self.make("install", "PREFIX=/usr/local"))
        places = ("PREFIX=/usr/local", "LOGROTATEDIR=/etc/logrotate.d")
        self.assertNotIn("by itself", self.make("install", *places))
        self.assertTrue((self.root / "etc/logrotate.d/sunproxyd").exists())

    def test_an_old_default_gives_way_to_a_new_one(self):
        config = self.root / "etc/sunproxy/sunproxyd.conf"
        pristine = self.root / "usr/share/doc/sunproxy/sunproxyd.conf.example"
        self.install()
        default = config.read_text()
        for path in (config, pristine):
            path.write_text("# defaults of an older version\n")
        self.make("install")
        self.assertEqual(config.read_text(), default)

    def test_every_variable_of_installing_is_in_the_help(self):
        text = self.make("help")
        makefile = (harness.TOP / "Makefile").read_text()
        names = re.findall(r"(?m)^([A-Z]+DIR|PREFIX|SYSTEMD) \?=", makefile)
        self.assertGreater(len(names), 10)
        for name in [*names, "DESTDIR", "EXEC"]:
            self.assertRegex(text, rf"\b{name}\b")


class DebianTest(unittest.TestCase):
    """debian/ keeps up with the source; make package-test builds it."""

    def text(self, name):
        return (harness.TOP / name).read_text()

    def test_libraries_are_those_that_setup_installs(self):
        setup = re.search(r"(?s)^build_needs='(.*?)'", self.text("scripts/setup.sh"), re.M)[1]
        wanted = {package for package in re.findall(r":([a-z0-9.+-]+)$", setup, re.M)
                  if package.endswith("-dev") or package.startswith("rpcsvc")}
        source = self.text("debian/control").split("\n\n")[0]
        named = re.findall(r"[a-z0-9.+-]+", source[source.index("Build-Depends:"):])
        self.assertGreater(len(wanted), 10)
        self.assertEqual(wanted - set(named), set())

    def test_overrides_of_lintian_are_explained(self):
        for path in (harness.TOP / "debian").rglob("*lintian-overrides"):
            self.assertTrue(path.read_text().startswith("# "), path)


class DefaultConfigTest(InstalledTest):
    """The configuration that is installed, beside --help and --check-config."""

    def in_force(self, *argv):
        return self.run_tool(harness.SUNPROXYD, *argv, "--check-config")[0]

    def test_it_has_every_option_with_its_default(self):
        self.install()
        path = self.root / "etc/sunproxy/sunproxyd.conf"
        text = path.read_text()
        self.assertTrue(all(not line or line.startswith("#") for line in text.splitlines()))
        self.assertEqual(self.in_force("--config", path), self.in_force())

        rows = re.findall(r"(?m)^#([a-z][a-z0-9-]*) = (.+)$", text)
        usage = self.run_tool(harness.SUNPROXYD, "--help")[0]
        options = re.findall(r"(?m)^  (?:-\w, |    )--([a-z0-9-]+)", usage[:usage.index("This program:")])
        self.assertEqual([name for name, _ in rows], options)

        # What is no form of a value is the default; a default that is computed is in the text.
        form = re.compile(r"[A-Z:/=,.;\[\]]+( -> [A-Z.]+)?")
        chosen = self.dir / "chosen.conf"
        chosen.write_text("".join(f"{n} = {v}\n" for n, v in rows if not form.fullmatch(v)))
        self.assertEqual(self.in_force("--config", chosen), self.in_force())
        shown = dict(re.findall(r"(?m)^([a-z0-9-]+) = (.*)$", self.in_force()))
        comments = {}
        for block in text.split("\n\n"):
            for name in re.findall(r"(?m)^#([a-z][a-z0-9-]*) = ", block):
                comments[name] = block
        for name, value in rows:
            if name in shown and form.fullmatch(value):
                self.assertIn("(default:", comments[name], f"{name} has a default")
            elif name not in shown:
                self.assertRegex(value, form, f"{name} has no default")


class ServiceFilesTest(InstalledTest):
    seconds = 8

    def unit_copies(self):
        """Copies of the units that name the programs under DESTDIR, where they are."""
        folder = self.dir / "units"
        folder.mkdir()
        for name in ("sunproxyd.service", "sunproxyd.socket", "sunproxyd-http.socket"):
            text = (self.root / "usr/lib/systemd/system" / name).read_text()
            (folder / name).write_text(text.replace("/usr/sbin/", f"{self.root}/usr/sbin/"))
        return [folder / "sunproxyd.service", folder / "sunproxyd.socket",
                folder / "sunproxyd-http.socket"]

    def test_exposure_is_at_most_one_and_a_half(self):
        analyze = self.tool("systemd-analyze")
        self.install()
        unit = self.root / UNIT
        out, _ = self.run_tool(analyze, "security", "--offline=true", "--no-pager", unit)
        found = re.search(r"Overall exposure level for sunproxyd.service: ([0-9.]+)", out)
        self.assertLessEqual(float(found[1]), 1.5)

    def test_systemd_accepts_the_units(self):
        analyze = self.tool("systemd-analyze")
        self.install()
        _, err = self.run_tool(analyze, "verify", "--man=no", *self.unit_copies())
        self.assertNotIn("sunproxyd.s", err)

    def settings(self, name):
        """The values of each setting of the unit, in order."""
        settings = {}
        for line in (self.root / UNIT).read_text().splitlines():
            key, equals, value = line.partition("=")
            if equals and not line.startswith("#"):
                settings.setdefault(key, []).append(value)
        return settings[name]

    def test_limits_fit_the_defaults(self):
        self.install()
        out, _ = self.run_tool(harness.SUNPROXYD, "--check-config")
        defaults = dict(re.findall(r"(?m)^([a-z0-9-]+) = (.*)$", out))
        header = (harness.TOP / "server/limits/descriptor_plan.h").read_text()
        reserve = int(re.search(r"#define DESCRIPTOR_PLAN_RESERVE (\d+)u", header)[1])
        needed = int(defaults["max-connections"]) + 3 * int(defaults["max-fetches"]) + reserve
        needed += int(defaults["max-tunnels"])
        self.assertGreater(int(self.settings("LimitNOFILE")[0]), needed)
        self.assertGreater(int(self.settings("TimeoutStopSec")[0]),
                           int(defaults["stop-timeout"].rstrip("s")) + 4)

    def test_what_the_daemon_calls_passes_the_filter(self):
        analyze = self.tool("systemd-analyze")
        self.install()
        allowed = set()

        def expand(word):
            if not word.startswith("@"):
                return {word}
            out, _ = self.run_tool(analyze, "syscall-filter", "--no-pager", word)
            lines = [line.strip() for line in out.splitlines()[1:]]
            return set().union(*(expand(l) for l in lines if l and not l.startswith("#")))

        for value in self.settings("SystemCallFilter"):
            words = set().union(*(expand(word) for word in value.lstrip("~").split()))
            allowed = allowed - words if value.startswith("~") else allowed | words
        source = (harness.TOP / "server/confine/syscall_filter.c").read_text()
        array = re.search(r"(?s)char \*const allowed\[\] = \{(.*?)\};", source)[1]
        calls = set(re.findall(r'"([a-z0-9_]+)"', array))
        self.assertGreater(len(calls), 100)
        # Before the daemon's own filter is there, or with arguments that it looks at.
        calls |= {"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "seccomp",
                  "prctl", "socket", "clone", "clone3", "prlimit64", "chmod"}
        # With a store.
        calls |= {"io_uring_setup", "io_uring_register", "io_uring_enter", "cachestat"}
        self.assertEqual(calls - allowed, set())
        for call in ("ptrace", "mount", "setuid", "reboot", "bpf"):
            self.assertNotIn(call, allowed)
        self.assertLessEqual({"AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"},
                             set(self.settings("RestrictAddressFamilies")[0].split()))

    def test_user_and_folders_are_made(self):
        sysusers, tmpfiles = self.tool("systemd-sysusers"), self.tool("systemd-tmpfiles")
        if os.geteuid() != 0:
            self.skipTest("making users needs root, in a root folder of the test's own too")
        self.install()
        self.run_tool(sysusers, f"--root={self.root}", self.root / "usr/lib/sysusers.d/sunproxy.conf")
        rows = [line.split(":") for line in (self.root / "etc/passwd").read_text().splitlines()]
        uid = {row[0]: int(row[2]) for row in rows}["sunproxy"]
        self.run_tool(tmpfiles, "--create", f"--root={self.root}", "sunproxy.conf")
        for folder, mode in (("run/sunproxy", 0o755), ("var/log/sunproxy", 0o750)):
            st = (self.root / folder).stat()
            self.assertEqual((st.st_uid, st.st_mode & 0o777), (uid, mode), folder)

    def test_logs_are_rotated_without_a_loss(self):
        logrotate = self.tool("logrotate")
        self.install()
        logs = self.dir / "logs"
        logs.mkdir(mode=0o750)
        d = self.daemon("--access-log", logs / "access.log", "--policy", "none")

        def ask(path):
            with rpc.Connection(d.address) as c:
                c.get(f"http://127.0.0.1:1{path}")
            harness.wait_until(lambda: path in (logs / "access.log").read_text(), what="the line")

        ask("/before")
        rules = (self.root / "etc/logrotate.d/sunproxyd").read_text()
        own = pwd.getpwuid(os.geteuid()).pw_name
        group = self.run_tool("id", "-gn")[0].strip()
        changed = rules.replace("/var/log/sunproxy", str(logs))
        changed = changed.replace("su sunproxy sunproxy", f"su {own} {group}")
        # The test's daemon is no service; everything else stays as it is installed.
        changed = re.sub(r"(?s)(postrotate\n).*?(\n +endscript)", rf"\1kill -HUP {d.pid}\2", changed)
        self.assertEqual(changed.count("kill -HUP"), 1)
        config = self.dir / "rules"
        config.write_text(changed)
        config.chmod(0o644)
        self.run_tool(logrotate, "--debug", "--state", self.dir / "state", config)
        self.run_tool(logrotate, "--force", "--state", self.dir / "state", config)
        harness.wait_until((logs / "access.log").exists, what="the new log")
        ask("/after")
        self.assertIn("/before", (logs / "access.log.1").read_text())
        self.assertNotIn("/before", (logs / "access.log").read_text())


    def test_logrotate_reaches_the_daemon_by_either_way(self):
        self.install()
        rules = (self.root / "etc/logrotate.d/sunproxyd").read_text()
        script = re.search(r"(?s)postrotate\n(.*?)\n +endscript", rules)[1]
        stubs = self.dir / "stubs"
        stubs.mkdir()
        for name in ("systemctl", "pkill"):
            (stubs / name).write_text(f'#!/bin/sh\necho "{name} $*"\nexit 1\n')
            (stubs / name).chmod(0o755)
        self.assertEqual(script.count("/run/systemd/system"), 1)
        for folder, call in (
                (self.dir, "systemctl kill --kill-who=main --signal=USR1 sunproxyd.service\n"),
                (self.dir / "none", "pkill -USR1 -u sunproxy -x sunproxyd\n")):
            # As logrotate runs it; that no daemon runs is no failure.
            out, err = self.run_tool("sh", "-c",
                                     script.replace("/run/systemd/system", str(folder)),
                                     env={"PATH": f"{stubs}:{os.environ['PATH']}"})
            self.assertEqual((out, err), (call, ""))


class CompletionTest(InstalledTest):
    """Each shell's completion, run in that shell against the installed programs."""

    seconds = 10
    CASES = [  # the words up to the cursor, some of what follows, and what must not
        (["sunproxy", ""], {"get", "trace", "purge", "help"}, {"--help"}),
        (["sunproxy", "p"], {"policies", "ping", "purge"}, set()),
        (["sunproxy", "get", "--"], {"--output", "--json", "--socket"}, {"--policy"}),
        (["sunproxy", "set", "--policy", ""], {"lru", "s3-fifo", "none"}, {"opt"}),
        (["sunproxy", "simulate", "--policy", ""], {"lru", "opt"}, set()),
        (["sunproxy", "get", "--api", ""], {"1", "2"}, set()),
        (["sunproxy", "trace", ""], {"convert", "describe", "generate"}, set()),
        (["sunproxy", "store", ""], {"list", "verify", "trim"}, set()),
        (["sunproxy", "trace", "generate", "ycsb"], {"ycsb-a", "ycsb-f"}, set()),
        (["sunproxy", "trace", "generate", "--s"], {"--sizes", "--seed", "--site"}, set()),
        (["sunproxy", "advise", "--format", ""], {"squid", "har", "urls"}, set()),
        (["sunproxy", "replay", "--log-format", ""], {"tsv", "jsonl"}, set()),
        (["sunproxyd", "--"], {"--policy", "--max-fetches-per-origin", "--config"}, {"--output"}),
        (["sunproxyd", "-P", "l"], {"lru", "lfu", "lru-k"}, {"opt"}),
        (["sunproxyd", "--log-level", ""], {"error", "debug"}, set()),
    ]

    def setUp(self):
        super().setUp()
        self.install()
        # A copy whose helper is found under DESTDIR.
        for path in (self.root / "usr/share").rglob("*sunproxy*"):
            if path.is_file():
                text = path.read_text()
                path.write_text(text.replace("/usr/libexec", f"{self.root}/usr/libexec"))
        self.env = {"PATH": f"{self.root}/usr/bin:{self.root}/usr/sbin:{os.environ['PATH']}",
                    "HOME": str(self.dir)}
        self.conf = self.dir / "some.conf"
        self.conf.write_text("")

    def check(self, complete):
        for words, expected, unexpected in self.CASES:
            with self.subTest(words=words):
                found = complete(words)
                current = words[-1]
                self.assertLessEqual(expected, found)
                self.assertFalse(unexpected & found)
                self.assertTrue(all(c.startswith(current) for c in found), found)
        self.assertIn(str(self.conf), complete(["sunproxyd", "--config", f"{self.dir}/so"]))

    def test_bash(self):
        bash = self.tool("bash")
        script = """
            source "$1" || exit 1
            shift
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            spec=$(complete -p "$1") || exit 1
            function=${spec#*-F }
            "${function%% *}" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
            printf '%s\\n' "${COMPREPLY[@]}"
        """
        folder = self.root / "usr/share/bash-completion/completions"

        def complete(words):
            out, err = self.run_tool(bash, "--norc", "-c", script, "bash", folder / words[0], *words,
                                     env=self.env)
            self.assertEqual(err, "")
            return set(out.split())

        self.check(complete)

    def test_zsh(self):
        zsh = self.tool("zsh")
        path = self.root / "usr/share/zsh/vendor-completions/_sunproxy"
        self.run_tool(zsh, "-n", path)
        self.assertTrue(path.read_text().startswith("#compdef sunproxy sunproxyd\n"))
        # Outside of a line editor there is nothing to complete: its two functions print instead.
        script = """
            _describe() { print -rl -- "${(@P)2}" }
            _files() { print -rl -- ${words[CURRENT]}*(N) }
            file=$1
            shift
            words=("$@") CURRENT=$#
            source $file
        """

        def complete(words):
            out, err = self.run_tool(zsh, "-f", "-c", script, "zsh", path, *words, env=self.env)
            self.assertEqual(err, "")
            found = {line.partition(":")[0] for line in out.splitlines()}
            return {name for name in found if name.startswith(words[-1])}  # as compadd does

        self.check(complete)

    def test_fish(self):
        fish = self.tool("fish")
        folder = self.root / "usr/share/fish/vendor_completions.d"

        def complete(words):
            path = folder / f"{words[0]}.fish"
            self.run_tool(fish, "-n", path, env=self.env)
            line = " ".join(words)
            out, err = self.run_tool(fish, "--no-config", "-c",
                                     f"source {path}; complete -C '{line}'", env=self.env)
            self.assertEqual(err, "")
            return {row.partition("\t")[0] for row in out.splitlines()}

        self.check(complete)

    def test_every_option_of_every_command_is_offered(self):
        helper = pathlib.Path(self.root / "usr/libexec/sunproxy/complete.sh")
        text, _ = self.run_tool(harness.SUNPROXY, "--help")
        commands = [c for c in re.findall(r"(?m)^  ([a-z]+) {2,}", text) if c not in ("help", "trace", "store")]
        lines = [["sunproxy", c] for c in commands] + [["sunproxyd"]]
        lines += [["sunproxy", "trace", c] for c in ("convert", "describe", "generate")]
        lines += [["sunproxy", "store", c] for c in ("list", "verify", "trim")]
        for line in lines:
            with self.subTest(line=line):
                usage, _ = self.run_tool(*line, "--help", env=self.env)
                named = set(re.findall(r"(?m)^ {2,6}(?:-\w, )?(--[a-z][a-z0-9-]+)", usage))
                offered, _ = self.run_tool("sh", helper, *line, "--", env=self.env)
                self.assertLessEqual(named, {row.split("\t")[0] for row in offered.splitlines()})
                self.assertIn("--help", named)


class ManualTest(harness.SystemTest):
    needs = (harness.SUNPROXYD, harness.SUNPROXY)

    def test_every_name_in_a_list_is_in_the_manual(self):
        manual = (harness.TOP / "docs/sunproxy.1").read_text().replace("\\", "")
        for part, some in (((), "squid"), (("convert",), "oracle"), (("generate",), "ycsb-e")):
            text = self.run_program([harness.SUNPROXY, "help", "trace", *part]).stdout.decode()
            names = re.findall(r"(?m)^  ([a-z0-9-]+) {2,}", text)
            self.assertIn(some, names)
            for name in names:
                self.assertRegex(manual, rf"(?m)^\.(It )?Cm {name}\b")
