#!/bin/sh
# Repeats the evaluations of the Sun RPC paper and of the Thrift study live, over RPC, and puts each
# published claim beside what was measured: on the terminal and in build/reproduce/reproduce.html.
# `make reproduce` builds what this needs. Everything that it starts it stops, also on Ctrl-C.
set -eu
cd "$(dirname "$0")/.."
exec python3 scripts/reproduce.py "$@"
