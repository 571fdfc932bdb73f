"""Software mirrors: pip, npm, apt and skopeo, each three times with nothing of their own, from servers
of loopback through the recipes of packaging/recipes. What the first one has fetched is a hit for the
others. Clients verify what they get by themselves.
"""

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import urllib.parse
import zipfile

import driver
import verdaccio
from driver import Program, Run, free_port

LOG_FORMAT = "%m %{url}x %{outcome}x"
CLIENTS = 3
REGISTRY = """version: 0.1
log: {{level: warn}}
storage: {{filesystem: {{rootdirectory: {folder}/images}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


class Mirror:
    """A server behind the daemon with a recipe, or by itself in a direct run."""

    def __init__(self, run: Run, recipe, backend_port):
        self.run = run
        self.recipe = recipe
        self.folder = run.folder / recipe
        self.log = self.folder / "access.log"
        self.port = backend_port
        if not run.direct:
            self.port = free_port()
            self.daemon = Program(run, "sunproxyd", [
                run.build / "sunproxyd", "--listen", "none", "--socket", "none", "--no-rpcbind",
                "--http", f"127.0.0.1:{self.port}", "--access-log", self.log, "--log-format", LOG_FORMAT,
                "--config", driver.write_recipe(self.folder, recipe, backend_port), *run.options],
                folder=self.folder)
            run.daemons.append(self.daemon)
            self.daemon.await_port(self.port)

    def outcomes(self):
        """Those of each path that was requested by GET. The daemon ends: then its log is complete."""
        self.daemon.stop()
        outcomes = {}
        for line in self.log.read_text().splitlines():
            method, url, outcome = line.split()
            if method == "GET":
                outcomes.setdefault(urllib.parse.urlsplit(url).path, []).append(outcome)
        return outcomes

    def check(self, what, install, validated):
        """`install` is called for each client with a folder of its own, and returns what it has got.
        All but the first are hits, except for the paths that `validated` matches."""
        got = []
        for number in range(CLIENTS):
            client = self.folder / f"client{number}"
            client.mkdir()
            got.append(install(client))
        self.run.expect(f"{what}: {CLIENTS} clients get the same", got[0] and got[1:] == got[:-1], got)
        if self.run.direct:
            return
        stored = {path: outcomes for path, outcomes in self.outcomes().items()
                  if not re.search(validated, path)}
        wrong = [(path, outcomes) for path, outcomes in stored.items()
                 if len(outcomes) < CLIENTS or set(outcomes[1:]) != {"hit"}]
        self.run.expect(f"{what}: from the second client on all are hits", stored and not wrong,
                        f"{len(stored)} URLs, but {wrong[:2]}")


def serve_files(run, recipe):
    """A folder, and the port of a server of what is below it."""
    files = run.folder / recipe / "files"
    files.mkdir(parents=True)
    port = free_port()
    server = Program(run, "files", [sys.executable, "-m", "http.server", "--bind", "127.0.0.1",
                                    "--directory", files, str(port)], folder=run.folder / recipe)
    server.await_port(port)
    return files, port


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


# ---- pip -----------------------------------------------------------------------------------------

def has_pip():
    return subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode == 0


def write_wheel(path, name):
    described = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}.py", f"name = '{name}'\n")
        wheel.writestr(f"{described}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{described}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n"
                                             "Tag: py3-none-any\n")
        wheel.writestr(f"{described}/RECORD", "")


def check_pip(run):
    names = [f"sample{number}" for number in range(5)]
    files, port = serve_files(run, "pip")
    (files / "packages").mkdir()
    for name in names:
        wheel = files / f"packages/{name}-1.0-py3-none-any.whl"
        write_wheel(wheel, name)
        (files / f"simple/{name}").mkdir(parents=True)
        (files / f"simple/{name}/index.html").write_text(
            f'<a href="../../packages/{wheel.name}#sha256={digest(wheel)}">{wheel.name}</a>')
    mirror = Mirror(run, "pip", port)

    def install(client):
        run.command([sys.executable, "-m", "pip", "download", "--no-cache-dir",
                     "--disable-pip-version-check", "--index-url", f"http://127.0.0.1:{mirror.port}/simple",
                     "--dest", client, *names], env={"PIP_CONFIG_FILE": os.devnull})
        return sorted(digest(path) for path in client.glob("*.whl"))

    mirror.check("pip", install, "^$")


# ---- npm -----------------------------------------------------------------------------------------

def check_npm(run):
    (run.folder / "npm").mkdir()
    port = verdaccio.serve(run)
    run.port = port
    writer = run.visitor("alice", f"127.0.0.1:{port}")
    verdaccio.make_user(writer, "alice")
    names = [f"sample-{number}" for number in range(5)]
    for name in names:
        verdaccio.publish(writer, name, "1.0.0")
    mirror = Mirror(run, "npm", port)

    def install(client):
        (client / "package.json").write_text(json.dumps(
            {"private": True, "dependencies": dict.fromkeys(names, "^1.0.0")}))
        run.command(["npm", "install", "--no-audit", "--no-fund", "--no-update-notifier", "--cache",
                     client / "cache", "--registry", f"http://127.0.0.1:{mirror.port}/"], cwd=client,
                    env={"npm_config_userconfig": os.devnull})
        return [digest(client / f"node_modules/{name}/index.js") for name in names]

    mirror.check("npm", install, "^/-/")


# ---- apt -----------------------------------------------------------------------------------------

def write_archive(run, files, names):
    pool = files / "debian/pool"
    lists = files / "debian/dists/stable/main/binary-amd64"
    for folder in (pool, lists / "by-hash/SHA256"):
        folder.mkdir(parents=True)
    entries = []
    for name in names:
        control = (f"Package: {name}\nVersion: 1\nArchitecture: all\n"
                   "Maintainer: Tests <tests@site.test>\nDescription: of a test\n")
        tree = run.folder / "apt/tree" / name
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "DEBIAN/control").write_text(control)
        package = pool / f"{name}_1_all.deb"
        run.command(["dpkg-deb", "--root-owner-group", "-b", tree, package])
        entries.append(f"{control}Filename: pool/{package.name}\nSize: {package.stat().st_size}\n"
                       f"SHA256: {digest(package)}\n")
    (lists / "Packages").write_text("\n".join(entries))
    shutil.copy(lists / "Packages", lists / "by-hash/SHA256" / digest(lists / "Packages"))
    date = time.strftime("%a, %d %b %Y %H:%M:%S UTC", time.gmtime())
    (files / "debian/dists/stable/Release").write_text(
        f"Origin: test\nSuite: stable\nDate: {date}\nArchitectures: all amd64\nComponents: main\n"
        f"Acquire-By-Hash: yes\nSHA256:\n {digest(lists / 'Packages')} "
        f"{(lists / 'Packages').stat().st_size} main/binary-amd64/Packages\n")


def check_apt(run):
    names = [f"sample{number}" for number in range(5)]
    files, port = serve_files(run, "apt")
    write_archive(run, files, names)
    mirror = Mirror(run, "apt", port)

    def install(client):
        for name in ("state/lists/partial", "cache/archives/partial", "etc/apt.conf.d",
                     "etc/preferences.d", "etc/trusted.gpg.d", "log"):
            (client / name).mkdir(parents=True)
        (client / "status").touch()
        (client / "etc/sources.list").write_text(
            f"deb [trusted=yes] http://127.0.0.1:{mirror.port}/debian stable main\n")
        (client / "apt.conf").write_text(
            f'Dir "{client}/"; Dir::State "state"; Dir::State::status "{client}/status";\n'
            'Dir::Cache "cache"; Dir::Etc "etc"; Dir::Log "log"; APT::Sandbox::User "";\n'
            'APT::Architecture "amd64"; Acquire::Languages "none"; Acquire::Retries "0";\n')
        environment = {"APT_CONFIG": str(client / "apt.conf")}
        run.command(["apt-get", "-q", "update"], env=environment)
        run.command(["apt-get", "-q", "download", *names], env=environment, cwd=client)
        return sorted(digest(path) for path in client.glob("*.deb"))

    mirror.check("apt", install, "/(In)?Release(.gpg)?$")


# ---- container images ----------------------------------------------------------------------------

def write_image(folder):
    """An image in the layout of OCI, of three layers."""
    blobs = folder / "blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(kind, content):
        name = hashlib.sha256(content).hexdigest()
        (blobs / name).write_bytes(content)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{name}",
                "size": len(content)}

    layers, ids = [], []
    for number in range(3):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            member = tarfile.TarInfo(f"file{number}")
            member.size = 100000
            tar.addfile(member, io.BytesIO(bytes([number]) * member.size))
        layers.append(blob("layer.v1.tar", packed.getvalue()))
        ids.append(layers[-1]["digest"])
    config = blob("config.v1+json", json.dumps({
        "architecture": "amd64", "os": "linux", "config": {},
        "rootfs": {"type": "layers", "diff_ids": ids}}).encode())
    manifest = blob("manifest.v1+json", json.dumps({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config, "layers": layers}).encode())
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')


def check_images(run):
    folder = run.folder / "registry"
    folder.mkdir()
    port = free_port()
    (folder / "registry.yml").write_text(REGISTRY.format(folder=folder, port=port))
    server = Program(run, "registry", ["docker-registry", "serve", folder / "registry.yml"],
                     folder=folder)
    server.await_port(port)
    write_image(folder / "image")
    copy = ["skopeo", "--insecure-policy", "copy", "--quiet"]
    run.command([*copy, "--dest-tls-verify=false", f"oci:{folder}/image",
                 f"docker://127.0.0.1:{port}/library/sample:1"])
    mirror = Mirror(run, "registry", port)

    def pull(client):
        run.command([*copy, "--src-tls-verify=false",
                     f"docker://127.0.0.1:{mirror.port}/library/sample:1", f"dir:{client}/image"])
        return sorted(digest(path) for path in (client / "image").iterdir())

    mirror.check("skopeo", pull, "^/v2/$")


# ---- all of them ---------------------------------------------------------------------------------

def has_npm():
    try:
        verdaccio.find()
    except driver.Missing:
        return False
    return shutil.which("npm") is not None


PARTS = {
    "pip": (has_pip, check_pip),
    "npm": (has_npm, check_npm),
    "apt": (lambda: shutil.which("apt-get") and shutil.which("dpkg-deb"), check_apt),
    "skopeo": (lambda: shutil.which("skopeo") and shutil.which("docker-registry"), check_images),
}


def find():
    found = [name for name, (there, _) in PARTS.items() if there()]
    if not found:
        raise driver.Missing(f"none of {', '.join(PARTS)} is installed with its server")
    return f"Mirrors: {', '.join(found)}"


def run(run):
    for there, check in PARTS.values():
        if there():
            check(run)
