#!/usr/bin/env python3
"""Makes the traces in this folder, from the figures that were published and a seed.

    generate.py              writes every trace anew, into this folder
    generate.py --check      compares what is here with what would be written, and with the figures
    generate.py --figures    prints the figures measured on what is here

Nothing but random.Random.random() is drawn from, whose sequence Python promises to keep.
"""

import argparse
import collections
import math
import pathlib
import random
import sqlite3
import sys

HERE = pathlib.Path(__file__).resolve().parent
KB_LOW, KB_HIGH = 20000, 20480  # "20 KB" either way: no page lies between
EPOCH_1601 = 11644473600 * 1000000
SECOND = 1000000
LINK, TYPED = 0x30000000, 0x30000001  # a chain of one: begins and ends here


class Dice:
    """Draws, all from one sequence of uniform numbers."""

    def __init__(self, seed):
        self.uniform = random.Random(seed).random

    def below(self, n):
        return int(self.uniform() * n)

    def shuffled(self, items):
        items = list(items)
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]
        return items

    def exponential(self, mean):
        return -mean * math.log(1.0 - self.uniform())

    def log_normal(self, median, sigma):
        normal = math.sqrt(-2.0 * math.log(1.0 - self.uniform())) * math.cos(
            2.0 * math.pi * self.uniform())
        return median * math.exp(sigma * normal)

    def size(self, median, sigma, low, high):
        """Bytes of a page: log-normal, within bounds."""
        while True:
            size = int(self.log_normal(median, sigma))
            if low <= size <= high:
                return size


# ---- the two browsing histories ------------------------------------------------------------------

Figures = collections.namedtuple("Figures", "requests urls busiest small busiest_bytes lru")
Choice = collections.namedtuple(
    "Choice", "seed first_day sittings exponent burst spread era busiest_burst")

# Published: requests, distinct URLs, requests to the busiest, share of requests at or under 20 KB
# (Figure 6: "more than"), bytes of the busiest where Figure 6 shows them (the step of 44 % at 20
# KB), and LRU's hit ratio in per cent by capacity in URLs.
PUBLISHED = {
    "dataset1": Figures(997, 68, 446, 0.75, KB_LOW, {7: 85.6, 14: 90.5}),
    "dataset2": Figures(985, 74, 233, 0.62, None, {}),
}

# Chosen: in how many sittings it was browsed, how skewed the pages behind the busiest are, how many
# requests to a page follow each other closely, and how closely (in parts of a sitting), for how
# many sittings a page stays of interest. Bursts of 0: the busiest is looked at now and then.
CHOSEN = {
    "dataset1": Choice(seed=1, first_day=19786, sittings=26, exponent=1.05, burst=4, spread=1.0,
                       era=13, busiest_burst=0),
    "dataset2": Choice(seed=2, first_day=19814, sittings=34, exponent=0.85, burst=7, spread=0.05,
                       era=13, busiest_burst=12),
}

SITES = (
    "social mail search courses code news video jobs pizza music weather maps bank forum wiki "
    "library photos shop travel docs calendar chat blog games sports recipes books movies trains "
    "tickets housing health science history language radio podcasts comics art garden bikes cars "
    "clock dictionary translate notes drive calls polls events").split()
ZONES = ["example.com", "example.org", "example.net", "example", "test"]


def make_urls(dice, count):
    """Distinct roots of hosts under names reserved for examples (RFC 2606); two in five http."""
    urls = []
    for i in range(count):
        host = SITES[i % len(SITES)] + "." + ZONES[(i + i // len(SITES)) % len(ZONES)]
        scheme = "https" if i == 0 or dice.uniform() < 0.6 else "http"
        urls.append(scheme + "://" + host + "/")
    return urls


def make_counts(figures, exponent):
    """Requests by URL: the busiest as published, the rest by Zipf's law, each at least once."""
    weights = [0.0] + [1.0 / rank ** exponent for rank in range(2, figures.urls + 1)]
    spare = figures.requests - figures.busiest - (figures.urls - 1)
    total = sum(weights)
    counts = [figures.busiest] + [1 + int(spare * w / total) for w in weights[1:]]
    rank = 1
    while sum(counts) < figures.requests:  # what rounding down left over
        counts[rank] += 1
        rank += 1
    return counts


def make_sequence(dice, figures, choice):
    """The requests as (sitting, URL), in order."""
    counts = make_counts(figures, choice.exponent)
    placed = []

    def place_burst(url, size, middle, era):
        at = abs(middle + (dice.uniform() - 0.5) * era)  # folded back at both ends
        at = min(at, 2 * choice.sittings - at, choice.sittings - 0.0001)
        for _ in range(size):
            placed.append((at, url))
            at = min(at + dice.exponential(choice.spread / size), math.floor(at) + 0.9999)

    for url, count in enumerate(counts):
        burst, era = choice.burst, choice.era
        middle = dice.uniform() * choice.sittings
        if url == 0:  # of interest all the time
            burst, middle, era = choice.busiest_burst, choice.sittings / 2, choice.sittings
        while count > 0:
            size = min(count, 1 + dice.below(2 * burst - 1)) if burst else 1
            place_burst(url, size, middle, era)
            count -= size
    return [(int(at), url) for at, url in sorted(placed)]


def make_sizes(dice, figures, requested):
    """Bytes by URL so that a little more than the published share of requests is at or under 20
    KB."""
    counts = collections.Counter(requested)
    wanted = math.floor(figures.small * figures.requests) + 1
    small = {0}  # the busiest
    have = counts[0]
    order = dice.shuffled(range(1, figures.urls))
    for url in sorted(order, key=lambda u: counts[u] == 1):  # those asked for once fill the rest
        if have + counts[url] <= wanted:
            small.add(url)
            have += counts[url]
    sizes = []
    for url in range(figures.urls):
        if url in small:
            sizes.append(dice.size(7000, 0.8, 400, KB_LOW))
        else:
            sizes.append(dice.size(60000, 0.7, KB_HIGH + 1, 900000))
    if have < wanted:  # no page of that popularity was left
        sizes[min(set(range(figures.urls)) - small, key=lambda u: (counts[u], u))] = KB_LOW
    if figures.busiest_bytes:
        sizes[0] = figures.busiest_bytes
    return sizes


def make_visits(dice, choice, sequence):
    """Rows of visits: id, url, visit_time, from_visit, transition, segment_id, visit_duration."""
    starts = []
    for sitting in range(choice.sittings):  # two a day, in the morning and in the evening
        hour = 8 if sitting % 2 == 0 else 19
        seconds = (choice.first_day + sitting // 2) * 86400 + hour * 3600 + dice.below(3 * 3600)
        starts.append(EPOCH_1601 + seconds * SECOND)
    visits = []
    now, last_sitting = 0, -1
    for number, (sitting, url) in enumerate(sequence, 1):
        first = sitting != last_sitting
        now = starts[sitting] if first else now
        stay = int(min(max(dice.log_normal(25, 0.9), 2), 240) * SECOND)
        typed = first or dice.uniform() < 0.3
        visits.append((number, url + 1, now, 0 if typed else number - 1,
                       TYPED if typed else LINK, 0, stay))
        now += stay
        last_sitting = sitting
    return visits


SCHEMA = """
CREATE TABLE meta(key LONGVARCHAR NOT NULL UNIQUE PRIMARY KEY, value LONGVARCHAR);
CREATE TABLE urls(id INTEGER PRIMARY KEY AUTOINCREMENT, url LONGVARCHAR, title LONGVARCHAR,
    visit_count INTEGER DEFAULT 0 NOT NULL, typed_count INTEGER DEFAULT 0 NOT NULL,
    last_visit_time INTEGER NOT NULL, hidden INTEGER DEFAULT 0 NOT NULL);
CREATE TABLE visits(id INTEGER PRIMARY KEY AUTOINCREMENT, url INTEGER NOT NULL,
    visit_time INTEGER NOT NULL, from_visit INTEGER, transition INTEGER DEFAULT 0 NOT NULL,
    segment_id INTEGER, visit_duration INTEGER DEFAULT 0 NOT NULL,
    incremented_omnibox_typed_score BOOLEAN DEFAULT FALSE NOT NULL, opener_visit INTEGER,
    originator_cache_guid TEXT, originator_visit_id INTEGER, originator_from_visit INTEGER,
    originator_opener_visit INTEGER, is_known_to_sync BOOLEAN DEFAULT FALSE NOT NULL);
CREATE TABLE visit_source(id INTEGER PRIMARY KEY, source INTEGER NOT NULL);
CREATE TABLE keyword_search_terms(keyword_id INTEGER NOT NULL, url_id INTEGER NOT NULL,
    term LONGVARCHAR NOT NULL, normalized_term LONGVARCHAR NOT NULL);
CREATE TABLE segments(id INTEGER PRIMARY KEY, name VARCHAR, url_id INTEGER NON NULL);
CREATE TABLE segment_usage(id INTEGER PRIMARY KEY, segment_id INTEGER NOT NULL,
    time_slot INTEGER NOT NULL, visit_count INTEGER DEFAULT 0 NOT NULL);
CREATE INDEX visits_url_index ON visits (url);
CREATE INDEX visits_from_index ON visits (from_visit);
CREATE INDEX visits_time_index ON visits (visit_time);
CREATE INDEX urls_url_index ON urls (url);
"""
META = [("mmap_status", "-1"), ("version", "59"), ("last_compatible_version", "16")]


def make_history(name):
    """The tables' rows, and the text of sizes.tsv."""
    figures, choice = PUBLISHED[name], CHOSEN[name]
    dice = Dice(choice.seed)
    addresses = make_urls(dice, figures.urls)
    sequence = make_sequence(dice, figures, choice)
    sizes = make_sizes(dice, figures, [url for _, url in sequence])
    visits = make_visits(dice, choice, sequence)
    urls = []
    for number, address in enumerate(addresses, 1):
        own = [v for v in visits if v[1] == number]
        title = address.split("//")[1].split(".")[0].capitalize()
        urls.append((number, address, title, len(own), sum(v[4] == TYPED for v in own),
                     max(v[2] for v in own), 0))
    lines = "".join("%s\t%d\n" % pair for pair in zip(addresses, sizes))
    return {"meta": META, "urls": urls, "visits": visits}, lines


def write_history(path, tables):
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA page_size = 4096")
        db.executescript(SCHEMA)
        db.executemany("INSERT INTO meta VALUES(?, ?)", tables["meta"])
        db.executemany("INSERT INTO urls VALUES(?, ?, ?, ?, ?, ?, ?)", tables["urls"])
        db.executemany(
            "INSERT INTO visits(id, url, visit_time, from_visit, transition, segment_id, "
            "visit_duration) VALUES(?, ?, ?, ?, ?, ?, ?)", tables["visits"])
    db.execute("VACUUM")
    db.close()


def read_history(path):
    """As make_history() has them, and the schema as text."""
    db = sqlite3.connect(path.as_uri() + "?immutable=1", uri=True)
    tables = {
        "meta": db.execute("SELECT key, value FROM meta ORDER BY rowid").fetchall(),
        "urls": db.execute("SELECT * FROM urls ORDER BY id").fetchall(),
        "visits": db.execute("SELECT id, url, visit_time, from_visit, transition, segment_id, "
                             "visit_duration FROM visits ORDER BY id").fetchall(),
    }
    schema = [row[0] for row in db.execute(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' "
        "ORDER BY rowid")]
    db.close()
    return tables, schema


# ---- the two workloads of the Thrift study -------------------------------------------------------

THRIFT_SEED, THRIFT_PAGES, THRIFT_SETS, THRIFT_TIMES = 3, 25, 5, 6
# The study's largest caches, in bytes. At the first one LRU has the optimum on repeated.urls, so
# each set fits; all pages together are larger than the second.
THRIFT_OPTIMUM, THRIFT_LARGEST = 192 << 10, 256 << 10


def make_thrift(seed=THRIFT_SEED):
    """Text of random.urls and repeated.urls; other pages and requests with another seed."""
    dice = Dice(seed)
    pages = []
    for i in range(THRIFT_PAGES):
        size = dice.size(12000, 0.8, 1000, 100000)
        pages.append("http://%s.example.com/\t%d\n" % (SITES[i], size))
    drawn = [pages[dice.below(THRIFT_PAGES)] for _ in range(THRIFT_PAGES * THRIFT_TIMES)]
    repeated = []
    per_set = THRIFT_PAGES // THRIFT_SETS
    for first in range(0, THRIFT_PAGES, per_set):
        repeated += dice.shuffled(pages[first:first + per_set] * THRIFT_TIMES)
    return {"random.urls": "".join(drawn), "repeated.urls": "".join(repeated)}


# ---- measuring -----------------------------------------------------------------------------------

def lru_hits(sequence, capacity):
    """Requests that a cache of a capacity in pages answers by itself."""
    cache, hits = collections.OrderedDict(), 0
    for page in sequence:
        if page in cache:
            hits += 1
            cache.move_to_end(page)
        else:
            if len(cache) == capacity:
                cache.popitem(last=False)
            cache[page] = True
    return hits


def load_history(name):
    """The sequence of URLs of a shipped history, and its sizes."""
    tables, _ = read_history(HERE / name / "History")
    address = {row[0]: row[1] for row in tables["urls"]}
    visits = sorted(tables["visits"], key=lambda v: (v[2], v[0]))
    lines = (HERE / name / "sizes.tsv").read_text().splitlines()
    sizes = {url: int(size) for url, size in (line.split("\t") for line in lines)}
    return [address[v[1]] for v in visits], sizes


def load_list(name):
    pairs = [line.split("\t") for line in (HERE / name).read_text().splitlines()]
    return [url for url, _ in pairs], {url: int(size) for url, size in pairs}


def measure(sequence, sizes):
    counts = collections.Counter(sequence)
    busiest = counts.most_common(1)[0][1]
    n = len(sequence)
    return {
        "requests": n,
        "distinct URLs": len(counts),
        "requests to the busiest": busiest,
        "busiest, per cent": round(100 * busiest / n, 1),
        "requests at or under 20 KB, per cent":
            round(100 * sum(sizes[u] <= KB_HIGH for u in sequence) / n, 1),
        "https, per cent of requests":
            round(100 * sum(u.startswith("https:") for u in sequence) / n, 1),
        "same URL as the request before, per cent":
            round(100 * sum(a == b for a, b in zip(sequence, sequence[1:])) / n, 1),
        "bytes of all bodies": sum(sizes[u] for u in counts),
        "bytes of all answers": sum(sizes[u] for u in sequence),
    }


TRACES = ["dataset1", "dataset2", "thrift/random.urls", "thrift/repeated.urls"]


def load(name):
    return load_history(name) if name in PUBLISHED else load_list(name)


def print_figures():
    for name in TRACES:
        sequence, sizes = load(name)
        print(name)
        for what, value in measure(sequence, sizes).items():
            print("    %-44s %s" % (what, value))
        capacities = [5, 10, 15, 20] if "thrift" in name else [7, 14, 21, 28, 35, 56]
        for capacity in capacities:
            ratio = 100 * lru_hits(sequence, capacity) / len(sequence)
            print("    %-44s %.1f" % ("LRU of capacity %d, per cent hits" % capacity, ratio))


# ---- checking ------------------------------------------------------------------------------------

def check_figures(complain):
    for name, figures in PUBLISHED.items():
        sequence, sizes = load_history(name)
        counts = collections.Counter(sequence)
        small = sum(sizes[u] <= KB_LOW for u in sequence) / len(sequence)
        busiest, most = counts.most_common(1)[0]
        got = (len(sequence), len(counts), most)
        if got != figures[:3]:
            complain("%s: requests, URLs, busiest: %s, not %s" % (name, got, figures[:3]))
        if not figures.small < small < figures.small + 0.005:
            complain("%s: %.1f %% at or under 20 KB" % (name, 100 * small))
        if figures.busiest_bytes not in (None, sizes[busiest]):
            complain("%s: the busiest has %d bytes" % (name, sizes[busiest]))
        for capacity, ratio in figures.lru.items():
            hits = 100 * lru_hits(sequence, capacity) / len(sequence)
            if abs(hits - ratio) > 1.0:
                complain("%s: LRU of capacity %d hits %.1f %%, published: %.1f %%"
                         % (name, capacity, hits, ratio))
    sequence, _ = load_list("thrift/random.urls")
    if len(sequence) != 150 or len(set(sequence)) > 25:
        complain("thrift/random.urls: not 150 requests over 25 pages")
    sequence, pages = load_list("thrift/repeated.urls")
    sets = [collections.Counter(sequence[i:i + 30]) for i in range(0, 150, 30)]
    for name in ("thrift/random.urls", "thrift/repeated.urls"):
        total = sum(load_list(name)[1].values())
        if total <= THRIFT_LARGEST:
            complain("%s: all pages fit into %d bytes" % (name, THRIFT_LARGEST))
    for number, one in enumerate(sets, 1):
        total = sum(pages[url] for url in one)
        if total > THRIFT_OPTIMUM:
            complain("thrift/repeated.urls: set %d has %d bytes" % (number, total))
    if (len(sequence) != 150 or len(set(sequence)) != 25
            or any(sorted(s.values()) != [6] * 5 for s in sets)):
        complain("thrift/repeated.urls: not five sets of five pages, six times each")


def check_content(complain):
    for name in PUBLISHED:
        tables, sizes = make_history(name)
        found, schema = read_history(HERE / name / "History")
        wanted_schema = [s.strip() for s in SCHEMA.split(";") if s.strip()]
        if schema != wanted_schema:
            complain("%s/History: other tables than the generator's" % name)
        for table, rows in tables.items():
            if found[table] != rows:
                complain("%s/History: table %s is not what the generator makes" % (name, table))
        if (HERE / name / "sizes.tsv").read_text() != sizes:
            complain("%s/sizes.tsv is not what the generator makes" % name)
    for name, text in make_thrift().items():
        if (HERE / "thrift" / name).read_text() != text:
            complain("thrift/%s is not what the generator makes" % name)


def write_all():
    for name in PUBLISHED:
        tables, sizes = make_history(name)
        (HERE / name).mkdir(exist_ok=True)
        write_history(HERE / name / "History", tables)
        (HERE / name / "sizes.tsv").write_text(sizes)
    (HERE / "thrift").mkdir(exist_ok=True)
    for name, text in make_thrift().items():
        (HERE / "thrift" / name).write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true",
                      help="compare the traces with the generator and the published figures")
    what.add_argument("--figures", action="store_true", help="print the measured figures")
    args = parser.parse_args()
    if args.figures:
        print_figures()
    elif args.check:
        complaints = []
        check_content(complaints.append)
        check_figures(complaints.append)
        for complaint in complaints:
            print(complaint, file=sys.stderr)
        return 1 if complaints else 0
    else:
        write_all()
    return 0


if __name__ == "__main__":
    sys.exit(main())
