#!/bin/sh
# Installs what building and testing need and this system lacks: Debian packages, and the plotting
# library of the report's page (scripts/plotting.py).
#
#   scripts/setup.sh build        what `make` needs
#   scripts/setup.sh build test   what `make test` needs as well
#   scripts/setup.sh fuzz         what `make fuzz` needs beside `build`
#   scripts/setup.sh reproduce    what `make reproduce` uses beside `build`, where it can be had
#   scripts/setup.sh coverage     what `make coverage` needs beside `test`
#   scripts/setup.sh apps         the applications and servers of `make app-test` and `make app-hits`
#
# As root it installs with apt-get. Any other user gets the list of missing packages and the command
# that installs them. Exit status 69: without what is missing nothing can be built.
set -u

# What is asked for, how it is found, which package has it. A package is installed only if its
# probe fails: another package may have brought the same thing.
build_needs='
cc:command:build-essential
make:command:build-essential
pkg-config:command:pkg-config
rpcgen:command:rpcsvc-proto
libtirpc:library:libtirpc-dev
libcurl:library:libcurl4-openssl-dev
libevent_core:library:libevent-dev
libevent_openssl:library:libevent-dev
libbsd:library:libbsd-dev
libseccomp:library:libseccomp-dev
sqlite3:library:libsqlite3-dev
zlib:library:zlib1g-dev
/usr/include/bzlib.h:file:libbz2-dev
liblzma:library:liblzma-dev
libzstd:library:libzstd-dev
libbrotlidec:library:libbrotli-dev
libcjson:library:libcjson-dev
libxxhash:library:libxxhash-dev
libcrypt:library:libcrypt-dev
openssl:library:libssl-dev
openssl:command:openssl
rpcbind:command:rpcbind
/etc/services:file:netbase
/etc/ssl/certs/ca-certificates.crt:file:ca-certificates
python3:command:python3
sqlite3:python:python3'
test_needs='
check:library:check
clang:command:clang
curl:command:curl
git:command:git
wget:command:wget
mandoc:command:mandoc
sqlite3:command:sqlite3
nghttpd:command:nghttp2-server
memcached:command:memcached
strace:command:strace
ip:command:iproute2
chromium:command:chromium
ensurepip:python:python3-venv
pip:python:python3-pip
/usr/lib/python3/dist-packages/h11/__init__.py:file:python3-h11
systemd-analyze:command:systemd
zsh:command:zsh
fish:command:fish
logrotate:command:logrotate'
fuzz_needs='
clang:command:clang
fuzzer:clang-runtime:libclang-rt-dev'
coverage_needs='
gcovr:command:gcovr'
# The contestant that stands for asyncio without blocking calls: 3.8.4 in Debian 12.
# And curl, with which the GENI study measures.
reproduce_needs='
curl:command:curl
/usr/lib/python3/dist-packages/aiohttp/__init__.py:file:python3-aiohttp'
# Debian starts the services among them.
info=/var/lib/dpkg/info
apps_needs="
$info/wordpress.list:file:wordpress
$info/wordpress-theme-twentytwentythree.list:file:wordpress-theme-twentytwentythree
$info/mediawiki.list:file:mediawiki
$info/dokuwiki.list:file:dokuwiki
php:command:php-cli
$info/php-mysql.list:file:php-mysql
$info/php-sqlite3.list:file:php-sqlite3
$info/php-xml.list:file:php-xml
mariadbd:command:mariadb-server
/usr/lib/python3/dist-packages/django/__init__.py:file:python3-django
/usr/lib/python3/dist-packages/websockets/__init__.py:file:python3-websockets
curl:command:curl
npm:command:npm
pip:python:python3-pip
skopeo:command:skopeo
docker-registry:command:docker-registry
varnishd:command:varnish
nginx:command:nginx-light"

say() {
    printf '%s\n' "$*" >&2
}

# Daemons stand where an ordinary user's path does not lead.
PATH=$PATH:/usr/sbin:/sbin
export PATH

have() {
    case $2 in
    command) command -v "$1" >/dev/null 2>&1 ;;
    library) command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "$1" ;;
    file) [ -e "$1" ] ;;
    clang-runtime) [ -e "$(clang --print-file-name="libclang_rt.$1-$(uname -m).a" 2>/dev/null)" ] ;;
    python) command -v python3 >/dev/null 2>&1 && python3 -c "import $1" 2>/dev/null ;;
    esac
}

# The packages for those of the needs given that are not met, each once.
missing() {
    found=
    for need in $1; do
        name=${need%%:*}
        rest=${need#*:}
        if ! have "$name" "${rest%%:*}"; then
            case " $found " in
            *" ${rest#*:} "*) ;;
            *) found="$found${found:+ }${rest#*:}" ;;
            esac
        fi
    done
    echo "$found"
}

install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >&2
}

build_wanted=
other_wanted=
for group in "$@"; do
    case $group in
    build) build_wanted=$build_needs ;;
    test) other_wanted="$other_wanted $test_needs $reproduce_needs" ;;
    reproduce) other_wanted="$other_wanted $reproduce_needs" ;;
    fuzz) other_wanted="$other_wanted $fuzz_needs" ;;
    coverage) other_wanted="$other_wanted $coverage_needs" ;;
    apps) other_wanted="$other_wanted $apps_needs" ;;
    *)
        say "usage: scripts/setup.sh [build] [test] [reproduce] [fuzz] [coverage] [apps]"
        exit 64
        ;;
    esac
done

# Prometheus, for the tests, without the service that an installation of its package starts.
unpack_prometheus() {
    folder=$(dirname "$0")/../build/third_party/prometheus
    case $other_wanted in *"$test_needs"*) ;; *) return ;; esac
    if command -v prometheus >/dev/null 2>&1 || [ -e "$folder" ]; then
        return
    fi
    fetched=$(mktemp -d)
    if (cd "$fetched" && apt-get download -q prometheus >&2) && mkdir -p "${folder%/*}" &&
        dpkg-deb -x "$fetched"/prometheus_*.deb "$fetched/unpacked"; then
        mv "$fetched/unpacked" "$folder"
    else
        say "setup: prometheus cannot be had; the tests with it are skipped"
    fi
    rm -rf "$fetched"
}

# Last, since it needs python3: the plotting library, without which everything else can be built and
# used. Does not return.
plotting() {
    [ -z "$build_wanted" ] && exit 0
    cd "$(dirname "$0")/.." || exit 69
    python3 scripts/plotting.py ||
        say "setup: without it, 'sunproxy report' writes no page, and the tests of that page are skipped"
    exit 0
}

build_packages=$(missing "$build_wanted")
other_packages=$(missing "$other_wanted")
if [ -z "$build_packages$other_packages" ]; then
    unpack_prometheus
    plotting
fi

wanted=$build_packages${build_packages:+${other_packages:+ }}$other_packages
say "setup: missing packages: $wanted"
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    apt-get update -q >&2 || say "setup: apt-get update failed; trying with the lists that are here"
    # shellcheck disable=SC2086 # a list of packages
    if ! install $wanted; then
        # A package that is not available must not prevent the others.
        [ -n "$build_packages" ] && install $build_packages
        for package in $other_packages; do
            install "$package" || say "setup: $package cannot be installed; what needs it is skipped"
        done
    fi
else
    say "setup: to install them:"
    say "    sudo apt-get install --no-install-recommends $wanted"
fi

build_packages=$(missing "$build_wanted")
if [ -n "$build_packages" ]; then
    say "setup: cannot build without: $build_packages"
    exit 69
fi
unpack_prometheus
plotting
