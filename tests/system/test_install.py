"""make install and uninstall, and manuals that keep up with the programs."""

import re
import subprocess

import harness


class InstallTest(harness.SystemTest):
    needs = (harness.SUNPROXYD, harness.SUNPROXY)

    def make(self, target):
        argv = ["make", "-C", str(harness.TOP), f"VARIANT={harness.BUILD.name}", target,
                f"DESTDIR={self.dir}/root", "PREFIX=/usr"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)

    def files(self):
        root = self.dir / "root"
        return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())

    def test_in_and_out_again(self):
        self.make("install")
        files = self.files()
        for name in ("usr/bin/sunproxy", "usr/sbin/sunproxyd", "usr/share/man/man1/sunproxy.1",
                     "usr/share/man/man8/sunproxyd.8", "usr/share/doc/sunproxy/proxy.x"):
            self.assertIn(name, files)
        for program in ("usr/bin/sunproxy", "usr/sbin/sunproxyd"):
            done = self.run_program([self.dir / "root" / program, "--version"])
            self.assertEqual(done.returncode, 0, done.stderr)
        self.make("uninstall")
        self.assertEqual(self.files(), [])


class ManualTest(harness.SystemTest):
    needs = (harness.SUNPROXYD, harness.SUNPROXY)

    def options(self, *argv):
        text = self.run_program([*argv, "--help"]).stdout.decode()
        return set(re.findall(r"(?<![\w-])--([a-z][a-z-]+)", text))

    def test_every_option_of_every_command_is_in_the_manual(self):
        manual = (harness.TOP / "docs/sunproxy.1").read_text().replace("\\", "")
        text = self.run_program([harness.SUNPROXY, "--help"]).stdout.decode()
        commands = re.findall(r"(?m)^  ([a-z]+) {2,}", text)
        self.assertIn("get", commands)
        for command in commands:
            if command == "help":
                continue
            self.assertRegex(manual, rf"\b{command}\b")
            for option in self.options(harness.SUNPROXY, command):
                self.assertIn(option, manual, f"{command} --{option}")

    def test_every_name_in_a_list_is_in_the_manual(self):
        manual = (harness.TOP / "docs/sunproxy.1").read_text().replace("\\", "")
        for part, some in (((), "squid"), (("convert",), "oracle"), (("generate",), "ycsb-e")):
            text = self.run_program([harness.SUNPROXY, "help", "trace", *part]).stdout.decode()
            names = re.findall(r"(?m)^  ([a-z0-9-]+) {2,}", text)
            self.assertIn(some, names)
            for name in names:
                self.assertRegex(manual, rf"(?m)^\.(It )?Cm {name}\b")

    def test_the_example_names_only_options_that_there_are(self):
        options = self.options(harness.SUNPROXYD)
        example = (harness.TOP / "docs/sunproxyd.conf.example").read_text()
        keys = re.findall(r"(?m)^#? ?([a-z][a-z-]+) *= *", example)
        self.assertGreater(len(keys), 3)
        for key in keys:
            self.assertIn(key, options)
