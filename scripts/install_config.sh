#!/bin/sh
# Installs or removes a configuration file, and does not touch one that was changed.
#
#   install_config.sh install DEFAULT INSTALLED PRISTINE
#   install_config.sh remove INSTALLED PRISTINE
#
# DEFAULT is the new file, INSTALLED the place where the program reads it, PRISTINE a copy of what
# was installed last. A file that differs from PRISTINE was changed. A symbolic link in INSTALLED's
# place is a change too, whatever it leads to: the file is kept elsewhere.
set -eu

usage() {
    echo "usage: install_config.sh install DEFAULT INSTALLED PRISTINE | remove INSTALLED PRISTINE" >&2
    exit 64
}

unchanged() { # installed, pristine
    [ ! -L "$1" ] && [ -f "$1" ] && [ -f "$2" ] && cmp -s "$1" "$2"
}

case ${1-}:$# in
install:4)
    if [ ! -e "$3" ] && [ ! -L "$3" ] || unchanged "$3" "$4"; then
        install -m 644 "$2" "$3"
    elif ! cmp -s "$2" "$3"; then
        echo "$3 was changed and is kept; the defaults are in $4"
    fi
    install -m 644 "$2" "$4"
    ;;
remove:3)
    if unchanged "$2" "$3"; then
        rm -f "$2"
    elif [ -e "$2" ] || [ -L "$2" ]; then
        echo "$2 was changed and is kept"
    fi
    rm -f "$3"
    ;;
*) usage ;;
esac
