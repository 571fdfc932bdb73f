#!/usr/bin/env bash
# Builds the variants and runs every test: unit and torture tests under AddressSanitizer and
# UndefinedBehaviorSanitizer, those of policies once more in the build that checks every policy after
# each step, those with threads under ThreadSanitizer too; the corpora of the fuzz targets; then the
# system tests against the real programs.
#
#   tests/run.sh                     everything
#   tests/run.sh PART...             of: build unit debug tsan arm64 system system-tsan
#   MAIN=coverage tests/run.sh PART...   another variant in place of asan, and that one alone
#   FOLDERS="cache server/http" tests/run.sh build unit system   of that variant the unit tests of these
#                                        folders, and the system tests that read sources alone
#
# The last line is "N passed, N failed" or "N passed, N failed, N skipped". Each single test counts.
# What each program said stays in build/test-logs/.
set -u
cd "$(dirname "$0")/.." || exit 1

jobs=${JOBS:-2} # of make, and of unit tests; system tests adapt to what is idle
main=${MAIN:-asan}
folders=${FOLDERS:-}
unit_seconds=${UNIT_SECONDS:-600}
logs=build/test-logs
threaded="base net rpc metrics rules cache store tier origins fetch proxy sim server cli client study"
checked="policies cache sim" # where VARIANT=debug looks at every policy's invariants
export SUNPROXY_ORIGIN=${SUNPROXY_ORIGIN:-build/$main/tests/origin/origin}
export SUNPROXY_DATASETS=${SUNPROXY_DATASETS:-$PWD/../shared/datasets}
export ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1:exitcode=99${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
export UBSAN_OPTIONS="print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"
export TSAN_OPTIONS="second_deadlock_stack=1:exitcode=66${TSAN_OPTIONS:+:$TSAN_OPTIONS}"

passed=0
failed=0
skipped=0
failures=()
skips=()

wants() {
    [ ${#parts[@]} = 0 ] && return 0
    local part
    for part in "${parts[@]}"; do
        [ "$part" = "$1" ] && return 0
    done
    return 1
}

pass() {
    passed=$((passed + ${1:-1}))
}

fail() { # name, how many
    failed=$((failed + ${2:-1}))
    failures+=("$1")
}

skip() { # name and reason
    skipped=$((skipped + 1))
    skips+=("$1")
}

# A build counts as one test: it must draw no warning.
build() { # name, arguments of make
    local name=$1 log=$logs/build-$1.log
    shift
    printf 'build %s\n' "$name"
    if make -k -j"$jobs" WERROR=1 "$@" >"$log" 2>&1; then
        pass
    else
        fail "build $name (see $log)"
        grep -E 'error|Error|undefined' "$log" | head -20
    fi
}

# Runs one unit program and writes its exit status and what Check has counted beside its log. Called
# by xargs in a shell of its own, which starts as few processes as it can: there are 500 programs.
run_unit() { # program, log
    local status line summary wall user system ms times
    { TIMEFORMAT='%1R %3U %3S' && time timeout -k 5 "$unit_seconds" "$1" >"$2" 2>&1; } 2>"$2.seconds"
    status=$?
    line=$(grep -aoE 'Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+' "$2")
    line=${line##*$'\n'}
    printf '%s\t%s\n' "$status" "$line" >"$2.status"
    case $status in
    0) summary=${line:-no tests} ;;
    77) summary=$(grep -am1 '^SKIP' "$2" || echo SKIP) ;;
    124 | 137) summary="${line:+$line, }TIMED OUT" ;;
    *) summary="${line:+$line, }EXIT STATUS $status" ;;
    esac
    mapfile -t times <"$2.seconds" # the last line: after a signal the shell adds one before it
    read -r wall user system <<<"${times[-1]}"
    ms=$((10#${user/[.,]/} + 10#${system/[.,]/}))
    printf '  %-60s %s (%s s, %d.%d s of CPU time)\n' "$1" "$summary" "$wall" \
        $((ms / 1000)) $((ms % 1000 / 100))
}
export -f run_unit
export unit_seconds

# Adds up what one unit program left.
count_unit() { # program, log
    local name=${1#build/} status=lost line='' checks=0 bad=0
    name=${name/\/tests\// }
    [ -f "$2.status" ] && IFS=$'\t' read -r status line <"$2.status"
    if [[ $line =~ ^Checks:\ ([0-9]+),\ Failures:\ ([0-9]+),\ Errors:\ ([0-9]+)$ ]]; then
        checks=${BASH_REMATCH[1]}
        bad=$((BASH_REMATCH[2] + BASH_REMATCH[3]))
        pass $((checks - bad))
    fi
    case $status in
    0) [ "$checks" -gt 0 ] || fail "$name: ran no test (see $2)" ;;
    77) skip "$name: $(grep -am1 '^SKIP' "$2" | sed 's/^SKIP: //')" ;;
    *)
        if [ "$bad" -gt 0 ]; then
            fail "$name: $bad of $checks (see $2)" "$bad"
        else
            fail "$name: exit status $status after $checks checks (see $2)"
        fi
        ;;
    esac
}

# Adds programs to those that run_units runs; those whose source has the mark are in `waiting`, too.
add_units() { # variant, sources...
    local variant=$1 source program
    shift
    for source in "$@"; do
        program=build/$variant/${source%.c}
        if [ -x "$program" ]; then
            programs+=("$program")
            [[ $waiting_sources == *"|$source|"* ]] && waiting+=("$program")
        else
            fail "$variant ${source#tests/}: not built"
        fi
    done
}

# Runs those that standard input names, some at a time.
run_each() {
    xargs -P "$jobs" -I{} bash -c "run_unit {} $logs/{}.log"
}

# Those of all variants one after another, so that processors are idle once at most, at the end.
# Beside them run those that mostly wait.
run_units() {
    local program waits
    [ ${#programs[@]} = 0 ] && return
    printf 'unit tests\n'
    printf '%s\n' "${programs[@]%/*}" | sort -u | sed "s|^|$logs/|" | xargs mkdir -p
    printf '%s\n' "${waiting[@]}" | grep . | run_each &
    waits=$!
    printf '%s\n' "${waiting[@]}" '' "${programs[@]}" |
        awk '!NF { rest = 1; next } rest && !seen[$0] { print } { seen[$0] = 1 }' | run_each
    wait "$waits"
    for program in "${programs[@]}"; do
        count_unit "$program" "$logs/$program.log"
    done
}

# The Python tests write one line a test: passed, failed or skipped, its name, and why.
start_system() { # variant, arguments of tests/system/run.py
    local variant=$1
    shift
    printf 'system tests, %s\n' "$variant"
    rm -f "$logs/system-$variant.results"
    SUNPROXY_BUILD=build/$variant python3 tests/system/run.py \
        --results "$logs/system-$variant.results" --logs "$logs/system-$variant" "$@"
}

count_system() { # variant, whether the runner ended well
    local results=$logs/system-$1.results outcome name why
    [ "$2" = 0 ] || [ -s "$results" ] || fail "system tests, $1: the runner failed"
    [ -f "$results" ] || return
    while IFS=$'\t' read -r outcome name why; do
        case $outcome in
        passed) pass ;;
        skipped) skip "$1 $name: $why" ;;
        *) fail "$1 $name: $why" ;;
        esac
    done <"$results"
}

# Starts those of a variant in the background; what the runner says follows when all have ended.
runners=()
begin_system() { # variant, arguments of tests/system/run.py
    start_system "$@" >"$logs/system-$1.out" 2>&1 &
    runners+=("$1:$!")
}

end_systems() {
    local runner status
    for runner in "${runners[@]}"; do
        wait "${runner#*:}"
        status=$?
        cat "$logs/system-${runner%%:*}.out"
        count_system "${runner%%:*}" "$status"
    done
}

# The simulator on another processor: one test, which needs tools that few machines have.
run_arm64() {
    local log=$logs/arm64.log
    printf 'simulations on arm64\n'
    tests/cross/arm64.sh >"$log" 2>&1
    case $? in
    0) pass ;;
    77) skip "simulations on arm64: $(sed -n 's/^SKIP: //p' "$log")" ;;
    *) fail "simulations on arm64 (see $log)" ;;
    esac
}

parts=("$@")
started=$SECONDS
mkdir -p "$logs"
rm -rf "${logs:?}"/*

shopt -s nullglob
unit_sources=(tests/unit/*/test_*.c tests/unit/*/*/test_*.c)
torture_sources=(tests/unit/*/{torture,faults}_*.c tests/unit/*/*/{torture,faults}_*.c)
fuzz_sources=()
system_patterns=()
if [ -n "$folders" ]; then
    unit_sources=()
    torture_sources=()
    for folder in $folders; do
        unit_sources+=(tests/unit/"$folder"{,/*}/test_*.c)
        torture_sources+=(tests/unit/"$folder"{,/*}/{torture,faults}_*.c)
    done
    # A folder and its room may both be named.
    mapfile -t unit_sources < <(printf '%s\n' "${unit_sources[@]}" | sort -u)
    mapfile -t torture_sources < <(printf '%s\n' "${torture_sources[@]}" | grep . | sort -u)
    system_patterns=(test_layers test_structure test_docs)
else
    for folder in tests/fuzz/corpus/*/; do
        fuzz_sources+=("tests/fuzz/$(basename "$folder").c")
    done
fi
mapfile -t threaded_sources < <(for folder in $threaded; do
    grep -L '^#define UNIT_STARTS_NO_THREAD$' tests/unit/"$folder"{,/*}/test_*.c </dev/null
done)
threaded_programs=()
for source in "${threaded_sources[@]}"; do
    threaded_programs+=("build/tsan/${source%.c}")
done
checked_sources=()
for folder in $checked; do
    for source in tests/unit/"$folder"/test_*.c; do
        # A hundred thousand requests for thousands of pages, each looked at after each: too long.
        case $source in
        */sim/test_golden.c | */sim/test_estimate.c) ;;
        *) checked_sources+=("$source") ;;
        esac
    done
done
checked_programs=()
for source in "${checked_sources[@]}"; do
    checked_programs+=("build/debug/${source%.c}")
done
unit_target=unit
has_check=1
if ! pkg-config --exists check; then
    has_check=
    unit_target=
    skip "unit tests: the package check is not installed"
fi

stage() { # what has been done
    printf '%s: %d s\n' "$1" $((SECONDS - stage_started))
    stage_started=$SECONDS
}
stage_started=$SECONDS

# The other variants are there for what they find beyond the main one.
build_others() {
    if [ -n "$has_check" ]; then
        build tsan VARIANT=tsan programs "${threaded_programs[@]}"
        build debug VARIANT=debug "${checked_programs[@]}"
    else
        build tsan VARIANT=tsan programs
    fi
    build release VARIANT=release programs origin soak-programs
    if command -v clang >/dev/null; then
        build clang CC=clang check-clang
    else
        skip "warnings under clang: clang is not installed"
    fi
}

if wants build && [ -n "$folders" ]; then
    unit_programs=("${unit_sources[@]%.c}" "${torture_sources[@]%.c}")
    build "$main" VARIANT="$main" "${unit_programs[@]/#/build/$main/}"
    stage builds
elif wants build; then
    # shellcheck disable=SC2086 # no target is no argument
    build "$main" VARIANT="$main" programs origin peers bench-programs soak-programs fuzz-programs $unit_target
    [ "$main" = asan ] && build_others
    stage builds
fi
programs=()
waiting=()
waiting_sources="|$(grep -lF 'Waits for most of its time' tests/unit/*/*.c tests/unit/*/*/*.c | tr '\n' '|')"
if [ -n "$has_check" ]; then # the slowest first
    wants tsan && add_units tsan "${threaded_sources[@]}"
    wants debug && add_units debug "${checked_sources[@]}"
    wants unit && add_units "$main" "${unit_sources[@]}" "${torture_sources[@]}"
fi
wants unit && add_units "$main" "${fuzz_sources[@]}"
# All at once: most tests wait more than they compute, and the runners of system tests begin few
# classes while processors are busy.
wants system && begin_system "$main" --jobs "$jobs" "${system_patterns[@]}"
wants system-tsan && begin_system tsan --jobs 1 --threads
run_units
stage "unit tests"
[ "$main" = asan ] && wants arm64 && run_arm64
end_systems
stage "system tests"

printf '\n'
for name in "${skips[@]}"; do
    printf 'SKIPPED %s\n' "$name"
done
for name in "${failures[@]}"; do
    printf 'FAILED  %s\n' "$name"
done
printf '%d seconds\n' $((SECONDS - started))
if [ "$skipped" -gt 0 ]; then
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
else
    printf '%d passed, %d failed\n' "$passed" "$failed"
fi
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
