#!/usr/bin/env bash
# The tests that an edit concerns, for use between two edits: the unit tests of folders under
# AddressSanitizer, and the tests of the text of the sources (layers, structure, docs). `make test` runs
# all tests.
#
#   tests/check.sh                       of the folders that differ from the last commit
#   tests/check.sh cache server/http     of these; a folder's rooms are parts of it
#
# The last line is that of tests/run.sh. Exit status: that of tests/run.sh; 64 if there is no such
# folder, or none that differs.
set -u
cd "$(dirname "$0")/.." || exit 1

# A changed file of tests/unit/ concerns the folder that it mirrors; one of a folder without tests
# concerns the folder above.
changed() {
    { git diff --name-only HEAD && git ls-files --others --exclude-standard; } |
        sed -n 's|^tests/unit/||; s|/[^/]*$||p' | sort -u | while read -r folder; do
        while [ "${folder%/*}" != "$folder" ] && [ ! -d "tests/unit/$folder" ]; do
            folder=${folder%/*}
        done
        [ -d "tests/unit/$folder" ] && printf '%s\n' "$folder"
    done | sort -u
}

folders=("$@")
[ $# = 0 ] && mapfile -t folders < <(changed)
if [ ${#folders[@]} = 0 ]; then
    echo "check: no folder with unit tests differs from the last commit; name one: make check FOLDER=cache" >&2
    exit 64
fi
for folder in "${folders[@]}"; do
    if [ ! -d "tests/unit/$folder" ]; then
        echo "check: there are no unit tests of '$folder'" >&2
        exit 64
    fi
done
printf 'folders: %s\n' "${folders[*]}"
FOLDERS="${folders[*]}" exec tests/run.sh build unit system
