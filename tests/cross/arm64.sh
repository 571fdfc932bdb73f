#!/usr/bin/env bash
# Builds the simulator's core (policies/, sim/ and what these use of base/) for this machine and for
# arm64, runs both, this one as it is and that one under qemu, and compares what they print: every
# policy on eight traces, each number of its result.
#
# Exit status 0: equal; 1: not, or it cannot be built; 77: the cross compiler or qemu is missing,
# with a line that says so.
set -u
cd "$(dirname "$0")/../.." || exit 1

cross=${CROSS_CC:-aarch64-linux-gnu-gcc}
emulator=${EMULATOR:-qemu-aarch64}
root=${CROSS_ROOT:-/usr/aarch64-linux-gnu} # where the cross compiler's libc is
for tool in "$cross" "$emulator"; do
    if ! command -v "$tool" >/dev/null; then
        echo "SKIP: $tool is not installed (Debian's gcc-aarch64-linux-gnu and qemu-user)"
        exit 77
    fi
done

out=build/cross
mkdir -p "$out"
sources=(tests/cross/simulate.c policies/*.c sim/*.c base/nearest.c)
flags=(-std=c11 -O2 -g -Wall -Wextra -Wconversion -Werror -D_GNU_SOURCE -pthread -I.)

# shellcheck disable=SC2086 # CC may be two words, such as "ccache cc"
${CC:-cc} "${flags[@]}" -o "$out/simulate" "${sources[@]}" -lm || exit 1
"$cross" "${flags[@]}" -o "$out/simulate-arm64" "${sources[@]}" -lm || exit 1
"$out/simulate" >"$out/simulate.txt" || exit 1
"$emulator" -L "$root" "$out/simulate-arm64" >"$out/simulate-arm64.txt" || exit 1
if ! diff "$out/simulate.txt" "$out/simulate-arm64.txt"; then
    echo "simulations on arm64 differ"
    exit 1
fi
echo "$(wc -l <"$out/simulate.txt") simulations are equal on arm64"
