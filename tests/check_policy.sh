#!/usr/bin/env bash
# Builds and runs the tests of one policy: make check-policy POLICY=mru
#
# These are the programs of tests/unit/policies/ that go through all policies (random requests with
# purges and changes of the capacity, failing allocations, the cache's loop of admission and
# eviction, a simulation of datasets/dataset1) and those that name the policy: its naive model, and
# the misses that libCacheSim counts. They are built with AddressSanitizer and linked with policies/,
# sim/, trace/ and base/ alone. Those that go through all policies run this one only.
#
# Only a model can notice that a policy does not follow its rule. Without one the check fails, and
# says which file is the template of one.
#
# Exit status: 0 if all passed; 1 if not, or if no model is compared with the policy; 64 without a
# policy, or if no file of policies/ has one of that name.
set -u
cd "$(dirname "$0")/.." || exit 1

policy=${1:-}
if [ -z "$policy" ]; then
    echo "usage: make check-policy POLICY=NAME (a name of 'sunproxy policies')" >&2
    exit 64
fi
if ! grep -qF ".name = \"$policy\"," policies/*.c; then
    echo "check-policy: no file of policies/ has a policy of the name '$policy'" >&2
    exit 64
fi
export SUNPROXY_POLICY=$policy
export SUNPROXY_DATASETS=${SUNPROXY_DATASETS:-$PWD/../shared/datasets}

mapfile -t programs < <(grep -lE "\"$policy[\":]|policies\[[a-z]|= policies;" tests/unit/policies/test_*.c \
    tests/unit/policies/torture_*.c | sed 's|.*/\(.*\)\.c|build/asan/check-policy/\1|')
mkdir -p build
make --no-print-directory VARIANT=asan -j"${JOBS:-2}" "${programs[@]}" >build/check-policy.log 2>&1 ||
    { tail -n 20 build/check-policy.log; exit 1; }

failed=0
models=0
for program in "${programs[@]}"; do
    output=$("$program" 2>&1)
    status=$?
    case $status in
    0)
        echo "passed   ${program##*/}"
        grep -a "hit ratio" <<<"$output"
        compared=$(grep -a "^model: " <<<"$output" | sort -u | sed 's/^/         /')
        [ -z "$compared" ] || { echo "$compared"; models=1; }
        ;;
    77) echo "skipped  ${program##*/}: $(grep -a -m1 -o 'SKIP: .*' <<<"$output")" ;;
    *)
        echo "FAILED   ${program##*/}"
        grep -av "^100%\|^Running" <<<"$output" | head -n 20
        failed=1
        ;;
    esac
done
if [ $failed = 0 ] && [ $models = 0 ]; then
    echo "FAILED   no model is compared with '$policy', so that no test notices a broken rule." >&2
    echo "         Copy tests/unit/policies/test_template_*.c; docs/POLICIES.md, Adding a policy." >&2
    failed=1
fi
exit $failed
