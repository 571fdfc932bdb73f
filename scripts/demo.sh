#!/usr/bin/env bash
# The main job, small: both data sets replayed over RPC against an origin with a latency like the
# web's, with each policy at several sizes and without a cache. Prints hit ratios and access times.
# `make demo` builds what this needs. Everything that it starts it stops, also on Ctrl-C.
set -eu
cd "$(dirname "$0")/.."

for program in build/release/sunproxyd build/release/sunproxy build/release/tests/origin/origin; do
    if [ ! -x "$program" ]; then
        echo "demo: $program is not built; run \"make demo\"" >&2
        exit 69
    fi
done
# Daemons stand where an ordinary user's path does not lead.
PATH=$PATH:/usr/sbin:/sbin
export PATH
exec python3 scripts/demo.py "$@"
