"""Verdaccio, a registry of npm packages, with packages that are published to it on loopback."""

import base64
import hashlib
import io
import json
import random
import shutil
import subprocess
import tarfile

import driver
from driver import Program, free_port

CONFIG = """
storage: %(folder)s/storage
auth:
  htpasswd:
    file: %(folder)s/htpasswd
    max_users: 10
packages:
  '@alice/*':
    access: alice
    publish: alice
  '@bob/*':
    access: bob
    publish: bob
  '**':
    access: $all
    publish: $authenticated
server:
  keepAliveTimeout: 60
max_body_size: 100mb
log: { type: stdout, format: pretty, level: warn }
"""
PACKAGES = 24
VERSIONS = ("1.0.0", "1.1.0", "2.0.0")
PEOPLE = ("alice", "bob")
INSTALL = {"private": True, "dependencies": {"verdaccio": "^6"}, "overrides": {"node-fetch": "2.7.0"}}
NPM_SECONDS = 600

_program = None


def find(folder=None):
    """Its program; npm installs it in `folder` if that is given and it is not there."""
    global _program
    _program = shutil.which("verdaccio")
    if not _program and folder:
        local = folder / "node_modules/.bin/verdaccio"
        if not local.exists() and shutil.which("npm"):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "package.json").write_text(json.dumps(INSTALL))
            subprocess.run(["npm", "install", "--no-audit", "--no-fund"], cwd=folder, check=True,
                           stdout=subprocess.DEVNULL, timeout=NPM_SECONDS)
        _program = str(local.resolve()) if local.exists() else None
    if not _program:
        raise driver.Missing("verdaccio is not installed (npm install verdaccio, or --fetch FOLDER)")
    version = subprocess.run([_program, "--version"], capture_output=True, text=True).stdout.strip()
    return f"Verdaccio {version}"


def serve(run):
    """Starts the registry, and returns its port."""
    config = run.folder / "config.yaml"
    config.write_text(CONFIG % {"folder": run.folder})
    port = free_port()
    registry = Program(run, "verdaccio", [_program, "--listen", f"127.0.0.1:{port}", "--config", config],
                       env={"HOME": str(run.folder)})
    registry.await_port(port)
    return port


def archive(name, version, words):
    """A package as npm packs it, but readable."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=0) as tar:
        for path, content in (("package.json", json.dumps({"name": name, "version": version})),
                              ("index.js", f"// {words}\n" + "//\n" * random.randrange(100, 5000))):
            member = tarfile.TarInfo(f"package/{path}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content.encode()))
    return packed.getvalue()


def make_user(visitor, name):
    """Makes a user whom the visitor is from then on. Returns the token."""
    answer = visitor.request("PUT", f"/-/user/org.couchdb.user:{name}", json.dumps(
        {"name": name, "password": f"{name}-password"}).encode(), {"Content-Type": "application/json"})
    token = json.loads(answer.text)["token"]
    visitor.fields["Authorization"] = f"Bearer {token}"
    return token


def publish(visitor, name, version, words="public"):
    """PUTs one version, as npm publish does. Returns the response."""
    packed = archive(name, version, words)
    file = f"{name.rpartition('/')[2]}-{version}.tgz"
    url = f"http://{visitor.host}/{name}/-/{file}"
    manifest = {"name": name, "version": version, "dist": {
        "tarball": url, "shasum": hashlib.sha1(packed).hexdigest()}}
    return visitor.request("PUT", f"/{name.replace('/', '%2f')}", json.dumps({
        "_id": name, "name": name, "dist-tags": {"latest": version}, "versions": {version: manifest},
        "_attachments": {f"{name}-{version}.tgz": {
            "content_type": "application/octet-stream", "length": len(packed),
            "data": base64.b64encode(packed).decode()}}}).encode(), {"Content-Type": "application/json"})


class Visits:
    """What hits.py asks of a registry: its users are known by tokens, and have packages of their own."""

    recipe = "npm"
    has_campaigns = False
    permitted = PACKAGES * len(VERSIONS)

    def __init__(self, run):
        self.targets = []
        self.published = 0
        self.tokens_of = {}
        for name in PEOPLE:
            visitor = run.visitor(name)
            self.tokens_of[name] = make_user(visitor, name)
            publish(visitor, f"@{name}/diary", "1.0.0", f"secret-of-{name}")
        for number in range(PACKAGES):
            for version in VERSIONS:
                answer = publish(visitor, f"package-{number}", version)
                if answer.status != 201:
                    raise RuntimeError(f"publishing: {answer.status} {answer.text[:200]}")
                self.targets.append(f"/package-{number}/-/package-{number}-{version}.tgz")
        self.others = ["/-/whoami", "/@alice%2fdiary", "/@alice/diary/-/diary-1.0.0.tgz",
                      "/@bob/diary/-/diary-1.0.0.tgz", "/package-1"]

    def log_in(self, visitor, name):
        visitor.fields["Authorization"] = f"Bearer {self.tokens_of[name]}"

    def log_out(self, visitor):
        visitor.fields.pop("Authorization", None)

    def shows(self, name, text):
        return any(words in text for words in (f'"username": "{name}"', f'"name": "@{name}/diary"',
                                               f"secret-of-{name}"))

    def tokens(self, text):
        return set()

    def check_private(self, run, alice, bob, stranger):
        for name in PEOPLE:
            sees = {visitor: {f"secret-of-{name}"} if visitor.name == name else set()
                    for visitor in (alice, bob, stranger)}
            run.check_secrets(f"package of {name}", f"/@{name}/diary/-/diary-1.0.0.tgz?n={{}}", sees)
        run.check_secrets("name of the token's owner", "/-/whoami?n={}", {
            alice: {'"username": "alice"'}, bob: {'"username": "bob"'}, stranger: set()})

    def write(self, visitor):
        self.published += 1
        version = f"3.0.{self.published}"
        publish(visitor, "package-1", version)
        return [("/package-1", f'"{version}"')]

    def write_as_guest(self, _visitor):
        return []
