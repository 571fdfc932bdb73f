"""Access as Squid decides it: the same requests through Squid and through the daemon, with the rules
of docs/RULES.md in both languages, get the same status."""

import os
import pathlib
import shutil
import sys

import harness
from http_front import Connection
from proxy_users import ProxyUsersCase, basic, hash_of
from test_tunnel import Server, echo

SQUID, NCSA = shutil.which("squid", path=os.environ["PATH"] + ":/usr/sbin"), "/usr/lib/squid/basic_ncsa_auth"

USERS = {"alice": "secret", "boss": "b", "intern": "i", "temp": "t"}

# A host of the list, also below a name there.
GAMES, GAMES_BELOW = "games.test", "www.games.test"

SQUID_CONF = """
http_port 127.0.0.1:{port}
visible_hostname squid.test
auth_param basic program {ncsa} {users}
auth_param basic children 2
auth_param basic realm test
acl users proxy_auth REQUIRED
acl boss proxy_auth boss
acl intern proxy_auth intern
acl temps proxy_auth "{temps}"
acl visitors src 127.0.0.9
acl annex src 127.0.0.2
acl public urlpath_regex ^/public/
acl games dstdomain "{games}"
acl always time MTWHFAS 00:00-24:00
acl never time MTWHFAS 00:00-00:00
acl late urlpath_regex ^/late
acl early urlpath_regex ^/early
acl writes method PUT DELETE
acl odd port {odd}
acl secret urlpath_regex ^/secret
acl safe_ports port {open} {odd}
acl CONNECT method CONNECT
http_access deny visitors
http_access deny CONNECT !safe_ports
http_access allow public
http_access deny games !boss all
http_access deny late always temps all
http_access deny early never temps all
http_access deny writes intern all
http_access deny odd intern all
http_access deny annex intern all
http_access allow secret boss
http_access deny secret
http_access allow users
http_access deny all
cache deny all
access_log none
cache_log {dir}/cache.log
pid_filename none
coredump_dir {dir}
shutdown_lifetime 1 seconds
pinger_enable off
dns_nameservers 127.0.0.1
"""

RULES = """
[rule]
network = 127.0.0.9/32
authenticate = no
deny = 403
[rule]
path = /public/*
authenticate = no
deny = no
[rule]
user = boss
host-list = {games}
deny = no
[rule]
host-list = {games}
deny = 403
reason = not a place for work
[rule]
path = /late*
time = mon-sun 00:00-24:00
user-list = {temps}
deny = 403
[rule]
path = /early*
time = mon-sun 00:00-00:00
user-list = {temps}
deny = 403
[rule]
method = PUT
method = DELETE
user = intern
deny = 403
[rule]
port = {odd}
user = intern
deny = 403
[rule]
network = 127.0.0.2/32
user = intern
deny = 403
[rule]
user = boss
path = /secret*
deny = no
[rule]
path = /secret*
deny = 403
"""

NONE, WRONG, STRANGER = "none", "wrong", "stranger"
CREDENTIALS = {NONE: (), WRONG: (basic("alice", "no"),), STRANGER: (basic("nobody", "x"),),
               "garbled": ("Proxy-Authorization: Basic ###",), "empty": (basic("alice", ""),),
               **{name: (basic(name, password),) for name, password in USERS.items()}}

# Method, host (None: the origin), path or port, credentials, address of the client, status.
REQUESTS = (
    ("GET", None, "/x", NONE, 1, 407), ("GET", None, "/x", WRONG, 1, 407),
    ("GET", None, "/x", STRANGER, 1, 407), ("GET", None, "/x", "garbled", 1, 407),
    ("GET", None, "/x", "empty", 1, 407),
    ("GET", None, "/x", "alice", 1, 200), ("HEAD", None, "/x", "alice", 1, 200),
    ("HEAD", None, "/x", NONE, 1, 407), ("POST", None, "/x", "alice", 1, 200),
    ("POST", None, "/x", WRONG, 1, 407), ("OPTIONS", None, "/x", "alice", 1, 200),
    ("GET", None, "/x", "alice", 9, 403), ("GET", None, "/x", NONE, 9, 403),
    ("GET", None, "/public/x", NONE, 1, 200), ("GET", None, "/public/x", WRONG, 1, 200),
    ("GET", None, "/public/x", NONE, 9, 403),
    ("GET", GAMES, "/", "alice", 1, 403), ("GET", GAMES_BELOW, "/", "alice", 1, 403),
    ("GET", GAMES_BELOW, "/", NONE, 1, 407), ("GET", GAMES_BELOW, "/", WRONG, 1, 407),
    ("HEAD", GAMES, "/", "intern", 1, 403),
    ("GET", None, "/late", "temp", 1, 403), ("GET", None, "/late", "alice", 1, 200),
    ("GET", None, "/late", NONE, 1, 407), ("GET", None, "/early", "temp", 1, 200),
    ("PUT", None, "/x", "intern", 1, 403), ("DELETE", None, "/x", "intern", 1, 403),
    ("DELETE", None, "/x", "alice", 1, 200), ("DELETE", None, "/x", NONE, 1, 407),
    ("GET", None, "/x", "intern", 1, 200), ("GET", None, "/x", "intern", 2, 403),
    ("GET", None, "/x", "alice", 2, 200),
    ("GET", None, "/secret", "boss", 1, 200), ("GET", None, "/secret", "alice", 1, 403),
    ("GET", None, "/secret", NONE, 1, 407),
    ("CONNECT", None, "open", NONE, 1, 407), ("CONNECT", None, "open", WRONG, 1, 407),
    ("CONNECT", None, "open", "alice", 1, 200), ("CONNECT", None, "open", "alice", 9, 403),
    ("CONNECT", None, "odd", "intern", 1, 403), ("CONNECT", None, "odd", "alice", 1, 200),
    ("CONNECT", None, "odd", NONE, 1, 407), ("CONNECT", None, "closed", "alice", 1, 403),
    ("CONNECT", None, "open", "intern", 2, 403), ("CONNECT", GAMES_BELOW, "open", "alice", 1, 403),
    ("CONNECT", GAMES, "open", NONE, 1, 407),
)


class SquidTest(ProxyUsersCase):
    seconds = 120

    def setUp(self):
        if not SQUID or not pathlib.Path(NCSA).exists():
            self.skipTest("squid is not installed")
        super().setUp()
        self.hashes = {name: hash_of(password) for name, password in USERS.items()}
        self.write_users()
        self.places = {"open": Server(self, echo).port, "odd": Server(self, echo).port,
                       "closed": harness.free_port()}
        self.games, self.temps = self.dir / "games", self.dir / "temps"
        self.temps.write_text("temp\nother\n")
        self.names = {"dir": self.dir, "temps": self.temps, "ncsa": NCSA, **self.places}

    def start_squid(self):
        """Squid leaves root's privileges, and has to read its files then."""
        domains, users, conf = (self.dir / name for name in ("domains", "squid-users", "squid.conf"))
        domains.write_text(f".{GAMES}\n")
        users.write_text(self.users.read_text())
        port = harness.free_port()
        names = {**self.names, "games": domains, "users": users, "port": port}
        names["open"] = f"{self.places['open']} {self.o.port}"
        conf.write_text(SQUID_CONF.format(**names))
        self.dir.chmod(0o777)
        squid = harness.Process(self, "squid", [SQUID, "-N", "-f", str(conf)], expect=None)
        address = ("127.0.0.1", port)

        def is_ready():
            try:
                Connection(address).close()
                return True
            except OSError:
                self.assertTrue(squid.running(), squid.err)
                return False

        harness.wait_until(is_ready, what="squid")
        return address

    def start_daemon(self):
        self.games.write_text(f"{GAMES}\n")
        self.lines = ("allow-net = 127.0.0.0/8", "allow-port = any", "client-net = 127.0.0.0/8",
                      *(f"connect-port = {self.places[name]}" for name in ("open", "odd")))
        self.serve(*RULES.format(**{**self.names, "games": self.games}).split("\n"))
        return self.address

    def status(self, address, request):
        method, host, place, who, client, _ = request
        self.address = address
        c = self.connect(f"127.0.0.{client}")
        lines = "".join(f"{line}\r\n" for line in CREDENTIALS[who])
        if method == "CONNECT":
            target = f"{host or '127.0.0.1'}:{self.places[place]}"
        else:
            target = (f"http://{host}" if host else self.o.url) + place
        body = "a=b" if method in ("POST", "PUT") else ""
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        c.send(f"{method} {target} HTTP/1.1\r\nHost: {host or '127.0.0.1'}\r\n{lines}{length}\r\n{body}")
        return c.receive(head_only=True).status

    def test_the_same_statuses(self):
        self.assertGreaterEqual(len(REQUESTS), 30)
        squid, daemon = self.start_squid(), self.start_daemon()
        rows = [(request, self.status(squid, request), self.status(daemon, request))
                for request in REQUESTS]
        print(f"{'request':32} {'user':9} {'client':10} {'Squid':>5} {'sunproxyd':>9}",
              file=sys.stderr)
        for (method, host, place, who, client, _), theirs, ours in rows:
            print(f"{method + ' ' + (host or '') + ('' if place[0] == '/' else ':') + place:32} "
                  f"{who:9} 127.0.0.{client:<2} {theirs:5} {ours:9}", file=sys.stderr)
        for request, theirs, ours in rows:
            with self.subTest(request):
                self.assertEqual((theirs, ours), (request[-1],) * 2)


del ProxyUsersCase
