"""The resources of the HTTP soak: what the origin (http_origin.py) answers for them, and by which the
load (http_load.py) judges every response.

A resource is a path /KIND/NUMBER. It has a version, which changes; the version is its entity tag, and
the body follows from path, version and the request's X-Variant. The body begins with the SHA-256 of the
rest. The versions are in a file that origin and load map into memory, with the time at which each
version ended (CLOCK_MONOTONIC), so that a response that is older than it may be is found.
"""

import hashlib
import mmap
import os
import random
import re
import struct
import threading
import time

NUMBERS = 12          # resources of a kind
VERSIONS = 4096       # of a resource, whose end is remembered
NOISE = random.Random(1).randbytes(1 << 20)
MEBI = 1 << 20


class Kind:
    """`stale` is the greatest time in seconds for which a version may be used after its end. None for a
    kind without such a bound; but a version that ended before a purge, or before a write through the
    proxy, is not used after it (`kept`). `faults`: its responses may break off or fail. `outlives`: it
    may be used without a bound where the origin fails (RFC 9111, section 4.2.4)."""

    def __init__(self, cache_control, stale, faults=False, sizes=(200, 20000), chunked=False,
                 kept=False, vary=False):
        self.cache_control = cache_control
        self.stale = stale
        self.outlives = not re.search("no-cache|no-store|must-revalidate", cache_control)
        self.faults = faults
        self.sizes = sizes
        self.chunked = chunked
        self.kept = kept
        self.vary = vary
        self.index = None


KINDS = {
    "fresh": Kind("max-age=1", 1),
    "validated": Kind("no-cache", 0),
    "unstored": Kind("no-store", 0),
    "chunked": Kind("max-age=1", 1, chunked=True, sizes=(200, 200000)),
    "varied": Kind("max-age=1", 1, vary=True),
    "background": Kind("max-age=1, stale-while-revalidate=1", 2),
    "purged": Kind("max-age=600", None, kept=True),
    "tagged": Kind("max-age=600", None, kept=True),
    "expired": Kind("max-age=600", None, kept=True),  # by soft purges
    "written": Kind("max-age=600", None, kept=True),
    "faulty": Kind("max-age=1", 1, faults=True, sizes=(200, 300000)),
    "faulty-chunked": Kind("max-age=1", 1, faults=True, chunked=True, sizes=(200, 300000)),
    "faulty-strict": Kind("max-age=1, must-revalidate", 1, faults=True),
    "faulty-tolerant": Kind("max-age=1, stale-if-error=2", 1, faults=True),
    "large": Kind("max-age=2", 2, sizes=(MEBI, 5 * MEBI)),
    "large-chunked": Kind("max-age=2", 2, chunked=True, sizes=(MEBI, 5 * MEBI)),
}
for number, kind in enumerate(KINDS.values()):
    kind.index = number


class Versions:
    """The versions of all resources, in a file that processes share. Each resource's is changed by one
    process."""

    def __init__(self, path):
        words = len(KINDS) * NUMBERS * (1 + VERSIONS)
        with open(path, "a+b") as file:
            if os.fstat(file.fileno()).st_size == 0:
                file.truncate(words * 8)
            self.map = mmap.mmap(file.fileno(), words * 8)
        self.words = memoryview(self.map).cast("q")
        self.lock = threading.Lock()

    @staticmethod
    def _place(kind, number):
        return (KINDS[kind].index * NUMBERS + number) * (1 + VERSIONS)

    def now(self, kind, number):
        return self.words[self._place(kind, number)]

    def change(self, kind, number):
        """The number of the new version."""
        with self.lock:
            place = self._place(kind, number)
            version = self.words[place]
            self.words[place + 1 + (version + 1) % VERSIONS] = 0
            self.words[place] = version + 1
            # Behind the change: noted late rather than early.
            self.words[place + 1 + version % VERSIONS] = time.monotonic_ns()
            return version + 1

    def age(self, kind, number, version, moment_ns):
        """Seconds from the end of a version to a moment; 0 or less if it had not ended by then."""
        place = self._place(kind, number)
        if not 0 <= version <= self.words[place]:
            return float("inf")
        if version < self.words[place] - VERSIONS + 1:
            return float("inf")
        ended = self.words[place + 1 + version % VERSIONS]
        return (moment_ns - ended) / 1e9 if ended else 0.0


def tag_of(kind, number):
    """Each resource has a tag of its own."""
    return f"{kind}-{number}"


def parse_path(path):
    """(kind, number), or None."""
    parts = path.split("/")
    if len(parts) != 3 or parts[1] not in KINDS or not parts[2].isdigit():
        return None
    return (parts[1], int(parts[2])) if int(parts[2]) < NUMBERS else None


def make_body(kind, number, version, variant=""):
    seed = hashlib.sha256(f"{kind} {number} {version} {variant}".encode()).digest()
    least, most = KINDS[kind].sizes
    draw, at = struct.unpack_from("<QQ", seed)
    size = least + draw % (most - least)
    at %= len(NOISE)
    head = f" /{kind}/{number} {version} {variant}\n".encode()
    rest = head + (NOISE[at:] + NOISE * (size // len(NOISE) + 1))[:max(0, size - 64 - len(head))]
    return hashlib.sha256(rest).hexdigest().encode() + rest


def has_its_checksum(body):
    return len(body) >= 64 and hashlib.sha256(body[64:]).hexdigest().encode() == body[:64]


def entity_tag(version, variant=""):
    return f'"{version}{variant and "-" + variant}"'


def parse_tag(tag):
    """(version, variant), or None."""
    if not tag or tag[0] != '"' or tag[-1] != '"':
        return None
    version, _, variant = tag[1:-1].partition("-")
    return (int(version), variant) if version.isdigit() else None
