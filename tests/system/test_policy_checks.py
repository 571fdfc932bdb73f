"""What tells the author of a policy that it does not follow its rule: a model, in every case."""

import os
import re
import shutil
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path

import harness

TESTS = harness.TOP / "tests/unit/policies"


class ModelsTest(harness.SystemTest):
    needs = (harness.SUNPROXY,)

    def test_every_policy_has_a_model(self):
        listed = self.run_program([harness.SUNPROXY, "policies"]).stdout.decode()
        names = re.findall(r"(?m)^(\S+) +Evicts ", listed)
        self.assertIn("lru", names)
        models = "".join(path.read_text() for path in TESTS.glob("test_*.c")
                         if "naive_compare" in path.read_text())
        without = [name for name in names if not re.search(f'"{re.escape(name)}[":]', models)]
        self.assertEqual(without, [])


class CheckPolicyTest(unittest.TestCase):
    """tests/check_policy.sh with programs that only say what real ones would."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        for name in ("tests/unit/policies", "policies", "bin", "build/asan/check-policy"):
            (self.top / name).mkdir(parents=True)
        shutil.copy(harness.TOP / "tests/check_policy.sh", self.top / "tests")
        (self.top / "policies/mine.c").write_text('    .name = "mine",\n')
        (self.top / "tests/unit/policies/torture_others.c").touch()
        self.program(self.top / "bin/make", "exit 0")

    def program(self, path, script):
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def add(self, name, text, script):
        (self.top / f"tests/unit/policies/{name}.c").write_text(text)
        self.program(self.top / f"build/asan/check-policy/{name}", script)

    def check(self, policy):
        path = f"{self.top}/bin:{os.environ['PATH']}"
        return subprocess.run([self.top / "tests/check_policy.sh", policy], capture_output=True,
                              env={**os.environ, "PATH": path}, timeout=60, text=True)

    def test_without_a_model_it_fails(self):
        self.add("test_every", "policies[p]", "exit 0")
        done = self.check("mine")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("passed   test_every", done.stdout)
        self.assertIn("no model is compared with 'mine'", done.stderr)
        self.assertIn("test_template_", done.stderr)

    def test_with_a_model_it_names_it(self):
        self.add("test_every", "policies[p]", "exit 0")
        self.add("test_mine", '"mine"', "echo model: mine; echo model: mine:k=2")
        done = self.check("mine")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("model: mine:k=2", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_a_model_that_differs_fails(self):
        self.add("test_mine", '"mine"', "echo model: mine; echo differs; exit 1")
        done = self.check("mine")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("FAILED   test_mine", done.stdout)
        self.assertIn("differs", done.stdout)

    def test_a_policy_that_is_none(self):
        done = self.check("other")
        self.assertEqual(done.returncode, 64, done)
        self.assertIn("'other'", done.stderr)


if __name__ == "__main__":
    unittest.main()
