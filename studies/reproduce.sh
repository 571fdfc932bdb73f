#!/bin/sh
# Repeats the evaluations of the Sun RPC paper, of the Thrift study and of studies over HTTP, and puts each
# published claim beside what was measured: on the terminal and in build/reproduce/reproduce.html and .json.
# `make reproduce` builds what this needs. Everything that it starts it stops, also on Ctrl-C.
set -eu
cd "$(dirname "$0")/.."
exec python3 studies/reproduce.py "$@"
