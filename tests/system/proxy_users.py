"""What tests of users of the forward proxy share: alice and bob, and a proxy that asks for them."""

import base64
import socket
import subprocess

from http_front import Connection
from raw_origin import RawOrigin
from reload_case import ReloadCase


def hash_of(password, salt="salt"):
    """A line's hash that costs little: the tests are not about its time."""
    return subprocess.run(["openssl", "passwd", "-5", "-salt", salt, password], check=True,
                          capture_output=True).stdout.decode().strip()


def basic(name, password):
    text = f"{name}:{password}".encode()
    return "Proxy-Authorization: Basic " + base64.b64encode(text).decode()


ALICE, BOB, EVE = basic("alice", "secret"), basic("bob", "b:ob"), basic("alice", "wrong")
NOBODY = basic("nobody", "secret")


class ProxyUsersCase(ReloadCase):
    """A forward proxy whose users are alice and bob, before an origin that answers anything."""

    lines = ("allow-net = 127.0.0.0/8", "allow-port = any", "connect-port = any",
             "client-net = 127.0.0.0/8")

    def setUp(self):
        super().setUp()
        self.o = RawOrigin(self, {"/kept": b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n"
                                           b"Content-Length: 4\r\n\r\nkept"})
        self.users = self.dir / "users"
        self.hashes = {"alice": hash_of("secret"), "bob": hash_of("b:ob")}
        self.write_users()

    def write_users(self):
        self.users.write_text("".join(f"{name}:{text}\n" for name, text in self.hashes.items()))
        self.users.chmod(0o600)

    def serve(self, *rules, options=()):
        self.rules = rules
        self.start(*self.lines, f"users = {self.users}", *rules, options=options)

    def connect(self, source="127.0.0.1"):
        c = Connection.__new__(Connection)
        c.socket = socket.create_connection(self.address, 20, (source, 0))
        c.socket.settimeout(60)
        c.rest = b""
        self.addCleanup(c.close)
        return c

    def get(self, path="/x", *lines, method="GET", c=None):
        return (c or self.connect()).get(self.o.url + path, *lines, method=method)

    def tunnel(self, port, *lines, c=None):
        c = c or self.connect()
        c.send(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: x\r\n"
               + "".join(f"{line}\r\n" for line in lines) + "\r\n")
        return c

    def connect_status(self, port, *lines):
        return self.tunnel(port, *lines).receive(head_only=True).status

    def reload_users(self):
        self.write_users()
        return self.hang_up()
