"""The endpoints of the Leiden study's REST service, which its service and its load share.

The text states: 100 users; endpoints such as /path/3, /path/3/skill and /path/3/info; lists of all
of a kind, which are larger; bodies of which many are under 1 KB and almost all under 20 KB; Zipf's
law over the endpoints; 80 % GET, 20 % POST, PUT or DELETE. It does not state how many endpoints
there are, nor how many of them a write changes. ENTITIES is chosen so that a cache that evicts
nothing has the stated hit ratio of about 78 % after 15,000 requests; the sizes follow the
statements on them.

An endpoint is /POOL, /POOL/NUMBER or /POOL/NUMBER/PART. The first segment is its pool: a
microservice, and the tag pool of the middleware. A write of /POOL/NUMBER changes what that shows
and the list /POOL; one of /paths also the user that the path belongs to (COUPLED). Each change
gives an endpoint a new version, which its body and so its entity tag have.
"""

import itertools
import random
import zlib

POOLS = ["users", "paths", "skills", "resources", "levels", "events"]
USERS, ENTITIES = 100, 200  # of the first pool, by the text, and of each other one
PARTS = ["info", "skill", "progress"]
COUPLED = {"paths": ["users"]}  # pools that a write of a pool concerns, too

SMALLEST, LARGEST = 100, 20_000  # bytes of a body but for lists
MEDIAN, SIGMA = 1000, 1.3        # of the log-normal distribution of sizes
LIST_BYTES = 150                 # of an entity in a list
EXPONENT = 0.99                  # of Zipf's law: YCSB's constant
WRITE_SHARE = 0.2
METHODS = ["POST", "PUT", "DELETE"]


def count_entities(pool):
    return USERS if pool == "users" else ENTITIES


def entities():
    return [f"/{pool}/{number}" for pool in POOLS for number in range(count_entities(pool))]


def lists():
    return [f"/{pool}" for pool in POOLS]


def all_paths():
    """Every endpoint that GET has."""
    return [*lists(), *(path for one in entities()
                        for path in (one, *(f"{one}/{part}" for part in PARTS)))]


def entity_tag(path, version):
    return f'"{path[1:].replace("/", "-")}-{version}"'


def version_of(tag):
    return int(tag.strip('"').rpartition("-")[2])


# The pool of caches: an array of this many places, which the caches fill in turn (section 3.3.3).
PLACES = 50


def cache_of(path, caches):
    """Which of the caches has a path."""
    return zlib.crc32(path.encode()) % PLACES % caches


def pool_of(path):
    return path.split("/")[1]


def make_sizes():
    """{path: bytes}, the same in every run."""
    draw = random.Random(1)
    sizes = {path: min(LARGEST, max(SMALLEST, int(MEDIAN * draw.lognormvariate(0, SIGMA))))
             for path in all_paths()}
    sizes.update({f"/{pool}": count_entities(pool) * LIST_BYTES for pool in POOLS})
    return sizes


def changed_by_write(method, path):
    """The endpoints that a write changes. POST is to a list; the number of entities stays what it
    is."""
    pool = pool_of(path)
    changed = [f"/{pool}"]
    if method != "POST":
        changed.append(path)
        changed += [f"/{other}/{int(path.split('/')[2]) % count_entities(other)}"
                    for other in COUPLED.get(pool, [])]
    return changed


def pools_of_write(path):
    pool = pool_of(path)
    return [pool, *COUPLED.get(pool, [])]


def zipf(draw, paths, count):
    """`count` of them by Zipf's law, in an order that is drawn, too."""
    paths = list(paths)
    draw.shuffle(paths)
    weights = list(itertools.accumulate((rank + 1) ** -EXPONENT for rank in range(len(paths))))
    return draw.choices(paths, cum_weights=weights, k=count)


def draw_requests(count, seed):
    """[(method, path)]: those of a smaller count are the first ones of a larger."""
    most = max(count, 15000)
    draw = random.Random(seed)
    reads, changes, additions = zipf(draw, all_paths(), most), zipf(draw, entities(),
                                                                    most), zipf(draw, lists(), most)
    found = []
    for read, change, addition in zip(reads, changes, additions):
        if draw.random() >= WRITE_SHARE:
            found.append(("GET", read))
        else:
            method = draw.choice(METHODS)
            found.append((method, addition if method == "POST" else change))
    return found[:count]
