"""Sections 3 and 4.1 of the Sun RPC paper, implementation and data: rows of its table."""

import collections
import math

from paper_table import Row, cannot
from replays import mean
from reproduce_sunrpc_terms import AUTHORS, MADE
from verdict import decide_exactly

# 20 KB, in bytes.
SMALL = 20480
EARLY = "most requests are for URLs that appeared early; later ones are requested less"

IMPLEMENTATION = [
    cannot("Abstract, 1", "a proxy saves bandwidth and cost",
           "a motivation; the paper measures neither"),
    cannot("Table 1, Figures 1 and 2", "division of work, data structures, source files",
           "they show no result"),
    cannot("Table 2", "what the five policies keep and how they order it",
           "a definition; the five policies of sunproxy follow it (docs/POLICIES.md)"),
    cannot("Figure 3", "O(log n) to fetch and insert, O(1) to find a victim",
           "properties of the authors' trees and heap; the paper measures no times of operations"),
]
DATA = [
    cannot("4.1", "most URLs of the histories are unique because of their parameters; many need a "
           "redirect to https",
           "the histories are not published, and the sites have changed"),
]
DATASET2 = cannot("Table 3 and Figures 4 and 5, dataset2",
                  "985 requests, 74 distinct URLs, evenly distributed, with "
                  "both kinds of locality",
                  f"the requests are not published. {MADE} for the first two; the rest is chosen")
LOCALITY = cannot("4.1, Figure 4, dataset1",
                  "extremely high temporal locality and less spatial locality",
                  "the text has no measure of either")
FRONTIER = cannot("Figure 4", "a frontier of new URLs at the top",
                  "it follows from the numbering of URLs in the order of "
                  "their first request")


def dimensions(study):
    if not study.authors:
        return cannot("Table 3, dataset1", "997 requests, 68 distinct URLs",
                      f"{MADE}; {AUTHORS} are not at hand")
    urls = study.authors.none[0].urls
    found = (len(urls), len(set(urls)))
    return Row("Table 3, dataset1", "997 requests, 68 distinct URLs", "equal",
               f"{found[0]} and {found[1]}, {AUTHORS}",
               decide_exactly(found == (997, 68)))


def share_of_urls(study):
    if not study.authors:
        return cannot("4.1", "less than 10 % of the requests are for distinct URLs", MADE)
    urls = study.authors.none[0].urls
    share = len(set(urls)) / len(urls)
    return Row("4.1", "less than 10 % of the requests are for distinct URLs", "of dataset1",
               f"{100 * share:.1f} %, {AUTHORS}", decide_exactly(share < 0.1))


def counts_of(study):
    return collections.Counter(study.authors.none[0].urls) if study.authors else None


def busiest(study):
    counts = counts_of(study)
    if not counts:
        return cannot("4.1, Figures 4 and 5, dataset1", "44.7 % of the requests are for one URL",
                      MADE)
    share = 100 * counts.most_common(1)[0][1] / sum(counts.values())
    return Row("4.1, Figures 4 and 5, dataset1", "44.7 % of the requests are for one URL",
               "44.7 %, rounded",
               f"{share:.1f} %, {AUTHORS}", decide_exactly(round(share, 1) == 44.7))


def early_urls(study):
    counts = counts_of(study)
    if not counts:
        return cannot("4.1, Figure 4, dataset1", EARLY, MADE)
    order = list(dict.fromkeys(study.authors.none[0].urls))
    top = counts.most_common(1)[0][0]
    early, late = (mean(counts[u] for u in half if u != top)
                   for half in (order[:len(order) // 2], order[len(order) // 2:]))
    return Row("4.1, Figure 4, dataset1",
               EARLY,
               "the first half of the URLs has more requests each than the second, without the "
               "busiest URL",
               f"{early:.1f} against {late:.1f} requests each, {AUTHORS}",
               decide_exactly(early > late))


def size_share(dataset, least):
    def assess(study):
        part, sizes = study.parts[dataset], study.sizes[dataset]
        urls = part.none[0].urls
        small = 100 * sum(sizes[url] <= SMALL for url in urls) / len(urls)
        text = f"more than {least} % of the requests are for pages of at most 20 KB"
        text += ", and 44 % for pages of 20 KB" if dataset == "dataset1" else ""
        top = collections.Counter(urls).most_common(1)[0][0]
        return cannot(f"Figure 6, {dataset}", text,
                      f"{MADE}: {small:.1f} % of its requests"
                      + (f", and the busiest page has {sizes[top]} bytes" if dataset == "dataset1"
                         else "")
                      + ". The sizes of the authors' pages are not published")
    return assess


def skewed(study):
    counts = counts_of(study)
    if not counts:
        return cannot("Conclusion", "requests are largely skewed", MADE)
    tenth = math.ceil(len(counts) / 10)
    share = 100 * sum(count for _, count in counts.most_common(tenth)) / sum(counts.values())
    return Row("Conclusion", "requests are largely skewed",
               "a tenth of the URLs has more than half of the requests",
               f"{tenth} of {len(counts)} URLs have {share:.1f} %, {AUTHORS}",
               decide_exactly(share > 50))


def rows(study):
    """Those before section 4.2."""
    return [*IMPLEMENTATION, *DATA, dimensions(study), share_of_urls(study), busiest(study),
            early_urls(study), LOCALITY, DATASET2, FRONTIER, size_share("dataset1", 75)(study),
            size_share("dataset2", 62)(study)]
