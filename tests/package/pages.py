"""Runs docs/DEPLOY_*.md as they are written, each on a machine of its own: life.py does.

The fenced blocks of a page are, by the words behind their fence:

  sh            commands that root runs on the machine; the first that fails fails the page
  sh later      the same, of which the daemon writes a moment later what they look for
  sh client     commands that a user of another host runs
  sh load       commands by which the daemon is replaced; requests are sent meanwhile, and each is answered
  file PATH     a file of the machine, in a folder that is there
  output        what the commands before it print, but for numbers

The machine has Debian, and the packages in /root/packages and, of the next version, in
/root/packages/next. It is connected to one that has everything else (outside.py).
"""

import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import machine

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
OUTSIDE = pathlib.Path(__file__).with_name("outside.py")
LOAD = pathlib.Path(__file__).with_name("load.py")
FENCED = re.compile(r"(?ms)^```(\w+)(?: ([^\n]*))?\n(.*?)^```$")
SECTIONS = ["Install", "Configure", "Start", "Health", "Logs", "Metrics", "Reload", "Upgrade", "What to watch"]


def without_numbers(text):
    return re.sub(r"\d+", "N", text)


class DeploymentTest(unittest.TestCase):
    """Each page has the names of hosts, addresses and ports that are used here."""

    def setUp(self):
        self.dir = pathlib.Path(self.enterContext(machine.folder()))
        self.system = machine.Machine(machine.settings.fresh, self.dir)
        self.addCleanup(self.system.stop)
        packages = self.system.root / "root/packages"
        (packages / "next").mkdir(parents=True)
        for version, folder in ((machine.settings.version, packages),
                                (f"{machine.settings.version}+next", packages / "next")):
            for path in machine.settings.packages.glob(f"*_{version}_*.deb"):
                if "dbgsym" not in path.name:
                    shutil.copy(path, folder)

    def begin_outside(self, inside, addresses, served):
        """Another host on a line of its own, with these addresses; the machine has those of `inside`."""
        self.outside = subprocess.Popen(["unshare", "--net", "sleep", "3600"])
        self.addCleanup(self.outside.wait)
        self.addCleanup(self.outside.kill)
        machine.wait_until(lambda: self.namespace(self.outside.pid) != self.namespace("self"), "a network")
        self.call("ip", "link", "add", "line0", "netns", self.system.first, "type", "veth", "peer", "name",
                  "line1", "netns", self.outside.pid)
        here = ["nsenter", "-t", self.system.first, "-n", "--"]
        for where, device, some in ((here, "line0", inside), (self.beyond(), "line1", addresses)):
            self.call(*where, "ip", "link", "set", "lo", "up")
            self.call(*where, "ip", "link", "set", device, "up")
            for address in some:
                self.call(*where, "ip", "address", "add", address, "dev", device)
        # What is not on the line is at its other end.
        self.call(*here, "ip", "route", "add", "default", "dev", "line0")
        self.call(*self.beyond(), "ip", "route", "add", "default", "dev", "line1")
        self.make_certificate()
        server = subprocess.Popen([*self.beyond(), sys.executable, OUTSIDE, self.dir, *served])
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        host, port = served[-1].split(":")
        machine.wait_until(lambda: subprocess.run(
            [*self.beyond(), "bash", "-c", f"exec 3<>/dev/tcp/{host}/{port}"],
            stderr=subprocess.DEVNULL).returncode == 0, "the servers outside")

    @staticmethod
    def namespace(pid):
        return pathlib.Path(f"/proc/{pid}/ns/net").readlink()

    @staticmethod
    def call(*argv):
        subprocess.run([str(word) for word in argv], check=True, stderr=subprocess.DEVNULL)

    def beyond(self):
        return ["nsenter", "-t", str(self.outside.pid), "-n", "--"]

    def make_certificate(self):
        """Of the web, by an authority that the machine trusts."""
        self.call("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                  "/CN=www.example.org", "-addext", "subjectAltName=DNS:www.example.org", "-keyout",
                  self.dir / "key.pem", "-out", self.dir / "cert.pem")
        (self.dir / "site.pem").write_text(
            (self.dir / "key.pem").read_text() + (self.dir / "cert.pem").read_text())
        shutil.copy(self.dir / "cert.pem", self.system.root / "usr/local/share/ca-certificates/test.crt")
        self.system.run("update-ca-certificates")

    def script(self, text, client=False):
        status, said, errors = self.outcome(text, client)
        self.assertEqual(status, 0, f"{text}\n{said[-3000:]}\n{errors[-3000:]}")
        return said

    def outcome(self, text, client=False):
        argv = ["bash", "-e", "-u", "-o", "pipefail", "-c", text]
        inside = self.system.inside(*argv)
        if client:
            inside = self.system.inside_but_for_network(self.outside.pid, *argv)
        done = subprocess.run(inside, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.PIPE, env=machine.ENVIRONMENT, timeout=300)
        return done.returncode, done.stdout, done.stderr

    def under_load(self, text):
        """Commands that have the daemon replaced; until the old process has ended all requests are answered."""
        old = self.system.property("sunproxyd", "MainPID")
        load = subprocess.Popen([*self.beyond(), sys.executable, LOAD, *self.load], stdout=subprocess.PIPE, text=True)
        load.stdout.readline()
        try:
            said = self.script(text)
            machine.wait_until(lambda: self.system.property("sunproxyd", "MainPID") not in (old, "0"), "the new daemon")
            machine.wait_until(lambda: self.system.run("test", "-e", f"/proc/{old}", expect=None).returncode,
                               "the end of the old daemon")
        finally:
            load.send_signal(signal.SIGTERM)
            result = json.loads(load.communicate()[0])
        self.assertEqual(result["failures"], [])
        self.assertGreater(result["answered"], 50)
        return said

    def run_page(self, name):
        text = (DOCS / name).read_text()
        self.assertEqual(re.findall(r"(?m)^## (.*)$", text), SECTIONS)
        begun, said = time.monotonic(), ""
        for kind, words, body in FENCED.findall(text):
            if kind == "file":
                (self.system.root / words.lstrip("/")).write_text(body)
            elif kind == "output":
                self.assertEqual(without_numbers(body), without_numbers(said))
            elif (kind, words) == ("sh", "load"):
                said = self.under_load(body)
            elif (kind, words) == ("sh", "later"):
                machine.wait_until(lambda body=body: self.outcome(body)[0] == 0, body)
            else:
                self.assertIn((kind, words), (("sh", ""), ("sh", "client")))
                said = self.script(body, words == "client")
        print(f"{name}: {(time.monotonic() - begun) / 60:.1f} minutes", file=sys.stderr)

    def run_and_explain(self, name):
        try:
            self.run_page(name)
        except Exception:
            print(self.system.run("journalctl", "--no-pager", "-n", "60", expect=None).stdout, file=sys.stderr)
            raise

    def test_before_a_service(self):
        self.begin_outside(["10.0.0.2/24"], ["10.0.0.11/24", "10.0.0.12/24", "10.0.0.20/24"],
                           ["10.0.0.11:8080", "10.0.0.12:8080"])
        self.load = ("10.0.0.2:8080", "http://10.0.0.2:8080/items?a=1&b=2")
        self.run_and_explain("DEPLOY_SERVICE.md")

    def test_before_a_site(self):
        self.begin_outside(["192.0.2.10/24"], ["192.0.2.80/24"], ["192.0.2.80:8080"])
        self.load = ("192.0.2.10:80", "http://www.example.org/static/site.css")
        self.run_and_explain("DEPLOY_SITE.md")

    def test_in_an_office(self):
        with open(self.system.root / "etc/hosts", "a") as hosts:
            hosts.write("93.184.216.34 www.example.org video.example.com\n")
        self.begin_outside(["192.168.10.1/24"], ["192.168.10.20/24", "192.168.20.20/24", "93.184.216.34/32"],
                           ["93.184.216.34:80", "93.184.216.34:443"])
        self.load = ("192.168.10.1:3128", "http://www.example.org/", "192.168.20.20")
        self.run_and_explain("DEPLOY_OFFICE.md")
