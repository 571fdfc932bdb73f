#!/usr/bin/env bash
# Builds VARIANT=coverage, runs all tests against it and prints the share of lines and branches that
# ran, by folder and in all; the ten files with most branches that did not run; and whether all tests
# passed. What a test runner of another variant covers (TSan) is not counted.
#
#   tests/coverage.sh            everything
#   tests/coverage.sh report     only print what the last run covered
#
# Branches are those of the source: gcc's branches for exceptions and those that only a sanitizer or
# an inlined library function adds are left out. Per file: build/coverage/report.txt, and line by
# line: build/coverage/html/index.html.
set -u
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C
folders="base cache cli client fetch http net policies proxy rpc server sim study trace"

failed=0
if [ "${1:-}" != report ]; then
    find build/coverage -name '*.gcda' -delete 2>/dev/null
    # At -O0 with counters, some simulations take 25 times as long.
    MAIN=coverage TEST_SECONDS=${TEST_SECONDS:-600} tests/run.sh build unit system
    failed=$?
fi

present=()
filters=()
for folder in $folders; do
    if [ -d "$folder" ]; then
        present+=("$folder")
        filters+=(--filter "$folder/")
    fi
done
command -v gcovr >/dev/null || {
    echo "coverage: gcovr is not installed (scripts/setup.sh coverage)" >&2
    exit 69
}
mkdir -p build/coverage/html
gcovr --root . "${filters[@]}" --exclude-unreachable-branches --exclude-throw-branches \
    --gcov-ignore-parse-errors --json build/coverage/report.json --txt build/coverage/report.txt \
    --html-details build/coverage/html/index.html build/coverage >/dev/null || exit 1

python3 - "${present[@]}" <<'PYTHON'
import json
import sys

missing = []
totals = {folder: [0, 0, 0, 0] for folder in sys.argv[1:]}
with open("build/coverage/report.json", encoding="utf-8") as file:
    files = json.load(file)["files"]
for entry in files:
    total = totals[entry["file"].split("/")[0]]
    uncovered = 0
    for line in entry["lines"]:
        if line.get("gcovr/noncode"):
            continue
        total[0] += line["count"] > 0
        total[1] += 1
        for branch in line["branches"]:
            total[2] += branch["count"] > 0
            total[3] += 1
            uncovered += branch["count"] == 0
    missing.append((uncovered, entry["file"]))
totals["all"] = [sum(column) for column in zip(*totals.values())]
print("%-10s %8s %8s   %8s %8s" % ("folder", "lines", "%", "branches", "%"))
for folder, (lines, all_lines, branches, all_branches) in totals.items():
    print("%-10s %8d %8.1f   %8d %8.1f" % (folder, all_lines, 100 * lines / max(all_lines, 1),
                                           all_branches, 100 * branches / max(all_branches, 1)))
print("\nmost branches that did not run:")
for uncovered, name in sorted(missing, key=lambda row: (-row[0], row[1]))[:10]:
    if uncovered:
        print("%10d  %s" % (uncovered, name))
PYTHON
reported=$?
[ "${1:-}" = report ] && exit "$reported"
echo
if [ "$failed" -eq 0 ]; then
    echo "coverage: all tests passed"
else
    echo "coverage: tests failed; what they would have covered is missing above"
fi
[ "$reported" -eq 0 ] || exit "$reported"
exit "$failed"
