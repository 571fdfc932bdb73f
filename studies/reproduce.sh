#!/bin/sh
# Repeats the evaluations of five papers, and puts their figures, tables and stated results beside
# what was measured: on the terminal and in build/reproduce/reproduce.html and .json.
# `make reproduce` builds what this needs. Everything that it starts it stops, also on Ctrl-C.
set -eu
cd "$(dirname "$0")/.."
exec python3 studies/reproduce.py "$@"
