"""The resources of the Leiden study's REST service, which its service and its load share.

A resource is /POOL/NUMBER. A write changes it, and one of /paths also changes the user that the path
belongs to, as /users lists users with their paths. Each change gives a resource a new version, which its
entity tag has. A pool is a tag: what is stored of it becomes invalid by a write to one of its resources.
"""

import itertools
import random

POOLS = ["users", "paths", "places", "photos", "comments", "groups", "messages", "settings"]
NUMBERS = 125  # resources of a pool
# For the daemon: --tag-rule and --write-rule.
TAG_RULE = "/* -> $1"
WRITE_RULE = "/paths -> users"

SMALLEST, LARGEST = 200, 32768  # bytes of a representation
MEDIAN, SIGMA = 3000, 1.0       # of the log-normal distribution of sizes
EXPONENT = 1.0                  # of Zipf's law, for reads and writes
WRITE_SHARE = 0.2


def all_paths():
    return [f"/{pool}/{number}" for pool in POOLS for number in range(NUMBERS)]


def make_sizes():
    """{path: bytes}, the same in every run."""
    draw = random.Random(1)
    return {path: min(LARGEST, max(SMALLEST, int(MEDIAN * draw.lognormvariate(0, SIGMA)))) for path in all_paths()}


def changed_by_write(path):
    """The resources that a write changes."""
    _, pool, number = path.split("/")
    return [path, f"/users/{int(number) % NUMBERS}"] if pool == "paths" else [path]


def pools_of_write(path):
    return sorted({changed.split("/")[1] for changed in changed_by_write(path)})


def entity_tag(path, version):
    return f'"{path[1:].replace("/", "-")}-{version}"'


def version_of(tag):
    return int(tag.strip('"').rpartition("-")[2])


def draw_requests(count, seed):
    """[(whether it is a write, path)]"""
    draw = random.Random(seed)
    paths = all_paths()
    draw.shuffle(paths)
    weights = itertools.accumulate((rank + 1) ** -EXPONENT for rank in range(len(paths)))
    chosen = draw.choices(paths, cum_weights=list(weights), k=count)
    return [(draw.random() < WRITE_SHARE, path) for path in chosen]
