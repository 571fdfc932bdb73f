#!/usr/bin/env python3
"""Installs the plotting library, from which `sunproxy report` makes its page.

    scripts/plotting.py          installs into build/third_party
    scripts/plotting.py --check  installs nothing; exit status 0 if the files are there, otherwise 1

The packages are fetched from the package registry that npm is configured to use, without npm: the one
that NPM_CONFIG_REGISTRY names, or the user's .npmrc, or npm's default. The archive's SHA-512 must be
the one below. Where PLOT_DIR names another folder, that folder is the packager's: nothing is fetched,
and its files may be of other versions.
"""

import argparse
import base64
import hashlib
import http.client
import os
import pathlib
import re
import sys
import tarfile
import tempfile
import urllib.parse
import urllib.request

TOP = pathlib.Path(__file__).resolve().parents[1]
OWN = TOP / "build/third_party"
DEFAULT_REGISTRY = "https://registry.npmjs.org"  # as npm has it
SECONDS = 120  # for each attempt to fetch a package
ATTEMPTS = 3
LARGEST = 16 << 20  # bytes of an archive, and of a file in it

# Name, version, integrity as npm states it, and files of the archive by their names here.
PACKAGES = [
    ("d3", "7.9.0",
     "sha512-e1U46jVP+w7Iut8Jt8ri1YsPOvFpg46k+K8TpCb0P+zjCkjkPnV7WzfDJzMHy1LnA+wj5pLT1wjO901gLXeEhA==",
     {"package/dist/d3.min.js": "d3.min.js", "package/LICENSE": "LICENSE.d3"}),
    ("@observablehq/plot", "0.6.17",
     "sha512-/qaXP/7mc4MUS0s4cPPFASDRjtsWp85/TbfsciqDgU1HwYixbSbbytNuInD8AcTYC3xaxACgVX06agdfQy9W+g==",
     {"package/dist/plot.umd.min.js": "plot.umd.min.js", "package/LICENSE": "LICENSE.plot"}),
]
NEEDED = ["d3.min.js", "plot.umd.min.js"]


class Failure(Exception):
    """The library cannot be installed; the text says why."""


def stamp():
    """What names the versions that are installed, in the file VERSIONS beside them."""
    return "".join(f"{name} {version} {integrity}\n" for name, version, integrity, _ in PACKAGES)


def is_there(folder):
    """All files are in the folder; in our own folder, of the versions above."""
    if not all((folder / name).is_file() for name in NEEDED):
        return False
    versions = folder / "VERSIONS"
    return folder != OWN or (versions.is_file() and versions.read_text() == stamp())


def registry_for(name):
    """The registry that npm would ask for a package; its configuration has one for a scope, too."""
    settings = {}
    path = pathlib.Path(os.environ.get("NPM_CONFIG_USERCONFIG") or "~/.npmrc").expanduser()
    if path.is_file():
        for line in path.read_text(errors="replace").splitlines():
            key, equals, value = line.partition("=")
            if equals and not key.lstrip().startswith(("#", ";")):
                settings[key.strip()] = re.sub(r"\$\{(\w+)\}", lambda m: os.environ.get(m[1], m[0]),
                                               value.strip().strip("\"'"))
    scope = name.split("/")[0] + ":registry" if "/" in name else None
    named = (settings.get(scope) or os.environ.get("NPM_CONFIG_REGISTRY")
             or os.environ.get("npm_config_registry") or settings.get("registry"))
    return named or DEFAULT_REGISTRY


def fetch_once(name, version):
    url = f"{registry_for(name).rstrip('/')}/{name}/-/{name.split('/')[-1]}-{version}.tgz"
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            return answer.read(LARGEST + 1)
    except (OSError, ValueError, http.client.HTTPException) as error:
        # The host says enough, and a URL may have a password in it.
        host = urllib.parse.urlsplit(url).hostname
        raise Failure(f"{name} {version} from {host}: {error}") from error


def fetch(name, version):
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return fetch_once(name, version)
        except Failure:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("not reached")


def verify(name, archive, integrity):
    found = "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()
    if found != integrity:
        raise Failure(f"{name}: the checksum of the archive is {found}, expected {integrity}")


def extract(archive_path, files, folder):
    with tarfile.open(archive_path) as archive:
        for member, name in files.items():
            source = archive.extractfile(member)
            if source is None:
                raise Failure(f"the archive has no file {member}")
            (folder / name).write_bytes(source.read(LARGEST))


def install(folder):
    """Everything is fetched and verified before the first file changes."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        made = pathlib.Path(scratch) / "files"
        made.mkdir()
        for name, version, integrity, files in PACKAGES:
            archive = fetch(name, version)
            verify(f"{name} {version}", archive, integrity)
            path = pathlib.Path(scratch) / "archive.tgz"
            path.write_bytes(archive)
            extract(path, files, made)
        (made / "VERSIONS").write_text(stamp())
        folder.mkdir(exist_ok=True)
        # VERSIONS, by which an installation counts as complete, comes last.
        for path in sorted(made.iterdir(), key=lambda p: p.name == "VERSIONS"):
            os.replace(path, folder / path.name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="install nothing")
    args = parser.parse_args()
    folder = (TOP / os.environ.get("PLOT_DIR", OWN)).resolve()
    if is_there(folder):
        return 0
    if args.check:
        return 1
    try:
        if folder != OWN:
            raise Failure(f"PLOT_DIR: {folder} lacks one of: {', '.join(NEEDED)}")
        print("setup: fetching the plotting library: "
              + ", ".join(f"{name} {version}" for name, version, _, _ in PACKAGES), file=sys.stderr)
        install(folder)
    except (Failure, OSError, tarfile.TarError, KeyError) as error:
        print(f"setup: cannot install the plotting library: {error}", file=sys.stderr)
        return 69
    return 0


if __name__ == "__main__":
    sys.exit(main())
