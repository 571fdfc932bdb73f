#!/bin/sh
# The main job, small: both data sets replayed over RPC against an origin with a latency like the
# web's, with each policy at several sizes and without a cache. Prints hit ratios and access times.
# `make demo` builds what this needs. Everything that it starts it stops, also on Ctrl-C.
set -eu
cd "$(dirname "$0")/.."
exec python3 scripts/demo.py "$@"
