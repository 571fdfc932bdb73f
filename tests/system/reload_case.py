"""What tests of a configuration file share: a daemon that reads one, before two members of a row."""

import signal

import harness
from http_front import Connection, http_address
from test_reverse import Member


class ReloadCase(harness.SystemTest):
    sandboxed = True

    def setUp(self):
        super().setUp()
        self.members = [Member(self) for _ in range(2)]
        for number, member in enumerate(self.members):
            member.fields = [("Cache-Control", "max-age=600"), ("Member", str(number))]
        self.file = self.dir / "sunproxyd.conf"

    def write(self, *lines):
        self.file.write_text("".join(f"{line}\n" for line in lines))

    def start(self, *lines, options=(), env=None):
        self.write(*lines)
        self.d = self.daemon("--http", "127.0.0.1:0", "--config", self.file, *options, env=env)
        self.address = harness.wait_until(lambda: http_address(self.d), what="the HTTP front")
        self.c = Connection(self.address)
        self.addCleanup(self.c.close)

    def hang_up(self):
        """The lines of the log that follow."""
        before = len(self.d.err)
        self.d.signal(signal.SIGHUP)
        harness.wait_until(lambda: any(word in self.d.err[before:] for word in
                                       ("was read again", "not reloaded")), what="a line on it")
        return self.d.err[before:]

    def reload(self, *lines):
        self.write(*lines)
        said = self.hang_up()
        self.assertIn("the configuration was read again: changed: ", said)
        return said

    def refused(self, *lines):
        self.write(*lines)
        said = self.hang_up()
        self.assertNotIn("was read again", said)
        return said

    def ask(self, path, host="site.test", connection=None, lines=""):
        c = connection or self.c
        c.send(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n")
        return c.receive()

    def member(self, path, host="site.test"):
        return self.ask(path, host).field("member")

    def is_hit(self, path, host="site.test"):
        return "; hit" in self.ask(path, host).field("cache-status")

    def row(self, number, host=""):
        return f"origin = {host}/={self.members[number].url}"
