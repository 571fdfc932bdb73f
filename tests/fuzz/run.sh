#!/usr/bin/env bash
# Runs each fuzz target for some seconds with libFuzzer, as many at a time as there are cores.
#
#   tests/fuzz/run.sh SECONDS [TARGET...]
#
# An input that a target fails on becomes a file of tests/fuzz/corpus/TARGET/, which `make test` runs
# from then on. Inputs that reach new code stay in build/fuzz/corpus/TARGET/ for the next run. The
# logs are in build/fuzz/logs/. The exit status is 1 if there is a finding.
set -u
cd "$(dirname "$0")/../.." || exit 1
export LC_ALL=C

seconds=${1:?usage: tests/fuzz/run.sh SECONDS [TARGET...]}
shift
logs=build/fuzz/logs
mkdir -p "$logs"

# Targets that load files leave none behind, even where they crash; in memory if there is /dev/shm.
TMPDIR=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")") || exit 1
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 1' INT TERM

targets=("$@")
if [ ${#targets[@]} = 0 ]; then
    for folder in tests/fuzz/corpus/*/; do
        targets+=("$(basename "$folder")")
    done
fi

fuzz() { # target, seconds
    local seeds=tests/fuzz/corpus/$1 grown=build/fuzz/corpus/$1 log=build/fuzz/logs/$1.log dictionary=()
    local status figures
    mkdir -p "$grown"
    [ -f "tests/fuzz/$1.dict" ] && dictionary=("-dict=tests/fuzz/$1.dict")
    "build/fuzz/tests/fuzz/$1" -max_total_time="$2" -timeout=25 -rss_limit_mb=2048 \
        -print_final_stats=1 "${dictionary[@]}" -artifact_prefix="$seeds/" "$grown" "$seeds" \
        >"$log" 2>&1 </dev/null
    status=$?
    figures=$(awk '/stat::number_of_executed_units/ { runs = $2 }
                   / cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") edges = $(i + 1) }
                   END { printf "%12d inputs  %6d edges", runs, edges }' "$log")
    if [ $status = 0 ]; then
        printf '%-12s %s  no finding\n' "$1" "$figures"
    else
        printf '%-12s %s  FINDING (%s)\n' "$1" "$figures" "$log"
    fi
    return $status
}
export -f fuzz

# xargs ends in 123 if a target failed.
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -c "fuzz {} $seconds"
status=$?
[ $status = 0 ] || exit 1
