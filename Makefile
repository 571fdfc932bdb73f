# sunproxy: a caching web proxy over Sun RPC, and its policies.
#
#   make                 build sunproxyd and sunproxy into build/release
#   make demo            install what is missing, build, run the main job, print the tables
#   make test            install what is missing, build, run every test
#   make test-debian RELEASE=trixie   make demo and make test on that release of Debian, in a chroot
#                        of its own; as root, with debootstrap (tests/debian.sh, docs/TESTING.md)
#   make package-test RELEASE=bookworm   build the packages of debian/ on that release, and install, upgrade,
#                        remove and purge them under systemd; needs the same (tests/package/run.sh)
#   make container-test RELEASE=bookworm   build packaging/Containerfile on a base of that release with
#                        buildah, and run it; needs the same (tests/package/container.sh)
#   make check           build and run what the edits since the last commit concern (FOLDER="cache
#                        proxy": of these folders), in less than a minute
#   make check-policy POLICY=mru   build and run the tests of one policy
#   make reproduce       repeat the papers' evaluations, and print a table of each paper's statements
#                        with what was measured (STUDY="geni leiden": of these)
#   make reproduction    the same, and renew the tables of docs/REPRODUCTION.md
#   make fuzz            run each fuzz target for SECONDS (default 60) with libFuzzer; needs clang
#   make structure       print what a script counts of the sources (booleans, files, lines), with bounds
#   make coverage        run the tests, print lines and branches covered by folder; needs gcovr
#   make bench           measure CPU time per request, requests per second and memory, of the
#                        server over RPC, of the server over HTTP beside the caches that are
#                        installed (tests/bench/http.py), of misses in flight, of outages of an origin
#                        beside HAProxy and Varnish (tests/bench/outage.py), of the hash table, of
#                        many connections, objects and purges (tests/bench/scale.py), of a flood of
#                        wrong passwords and of lists (tests/bench/users.py), and of the simulator
#                        (alone: make bench-sim)
#   make calibrate       measure how often the intervals of advise hold, by log
#   make calibrate-samples  measure how often the stated errors of samples hold, by policy
#   make cache-tests     run http-tests/cache-tests against the HTTP front; CACHE_TESTS is the folder of its
#                        checkout, in which `npm install --omit=dev` has been run
#   make suites          run the suites of Express, koa, send and node-fetch through the daemon, beside the
#                        proxies of BESIDE (nginx, squid); SUITES is the folder of their checkouts, in
#                        which `npm install` has been run
#   make app-setup       install the applications and servers of the next two, as root
#   make app-test        run real applications behind the daemon as a reverse proxy (APP=wordpress,
#                        django, mediawiki, streams or mirrors; without it those that are installed)
#   make app-hits        count the hits of anonymous visitors of real applications behind the daemon, Varnish
#                        and nginx, while others are logged in (APP; FETCH=FOLDER of npm packages)
#   make soak            send a daemon 10 million mixed requests (or REQUESTS=N) over RPC, and requests
#                        for 600 s (or SECONDS_HTTP=N) over HTTP, verify every body, and check that
#                        memory, descriptors and threads stay flat; kill a daemon with a store 200
#                        times under load; and measure 20 million objects in memory (6.3 GB)
#   make install         into DESTDIR and PREFIX (default /usr/local)
#   make help            all targets and variables
#
# Variables: CC, CFLAGS, LDFLAGS (added to ours), V=1 (show commands), VARIANT (release, asan, tsan,
# debug, in which caches and simulations check their policies after each step, fuzz, or coverage),
# WERROR=1 (warnings are errors), PLOT_DIR (folder with d3.min.js and plot.umd.min.js, which `make install`
# installs for the page of `sunproxy report`; default build/third_party, which `make setup` fills).
#
# Variables of install and uninstall, with their defaults (PREFIX=/usr is for packages):
#   DESTDIR              stands before every path, and is part of no file's content
#   PREFIX               /usr/local
#   SYSCONFDIR           PREFIX/etc; for PREFIX=/usr /etc. sunproxy/sunproxyd.conf, which is kept if
#                        it was changed
#   LOGROTATEDIR         SYSCONFDIR/logrotate.d: sunproxyd, kept likewise. logrotate reads only
#                        /etc/logrotate.d by itself
#   BINDIR, SBINDIR      PREFIX/bin, PREFIX/sbin
#   LIBEXECDIR           PREFIX/libexec/sunproxy: what the completions share
#   DATADIR              PREFIX/share/sunproxy: the libraries of the page of `sunproxy report`, which finds
#                        them in ../share/sunproxy beside its own folder
#   MANDIR, DOCDIR       PREFIX/share/man, PREFIX/share/doc/sunproxy
#   UNITDIR              PREFIX/lib/systemd/system
#   SYSUSERSDIR          PREFIX/lib/sysusers.d
#   TMPFILESDIR          PREFIX/lib/tmpfiles.d
#   BASHDIR              PREFIX/share/bash-completion/completions
#   ZSHDIR               PREFIX/share/zsh/site-functions; for PREFIX=/usr .../vendor-completions
#   FISHDIR              PREFIX/share/fish/vendor_completions.d
#   SYSTEMD=no           without the files of systemd
#   EXEC                 stands before sunproxyd where install runs it (an emulator, for a cross build)

VERSION := 1.0.0

CC ?= cc
FUZZ_CC ?= clang
AR ?= ar
RPCGEN ?= rpcgen
PKG_CONFIG ?= pkg-config
INSTALL ?= install
VARIANT ?= release
PLOT_DIR ?= build/third_party

PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
SBINDIR ?= $(PREFIX)/sbin
DATADIR ?= $(PREFIX)/share/sunproxy
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/sunproxy
SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)
LOGROTATEDIR ?= $(SYSCONFDIR)/logrotate.d
LIBEXECDIR ?= $(PREFIX)/libexec/sunproxy
UNITDIR ?= $(PREFIX)/lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
SYSTEMD ?= yes

B := build/$(VARIANT)
comma := ,

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-7s %s\n' $(1) $(2)
MAKEFLAGS += --no-print-directory
endif

# ---- flags ---------------------------------------------------------------------------------------

PACKAGES := libtirpc libcurl libevent_core libbsd libseccomp sqlite3 zlib liblzma libzstd libbrotlidec libcjson \
	libxxhash libssl libcrypto libcrypt

# Asked once, and only by targets that compile.
pkg_cflags = $(shell $(PKG_CONFIG) --cflags $(PACKAGES) | sed 's/-I/-isystem /g')
# (Debian 12 has no file bzip2.pc.)
pkg_libs = $(shell $(PKG_CONFIG) --libs $(PACKAGES)) -lbz2 -lm

WARNINGS := -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes
ifeq ($(WERROR),1)
WARNINGS += -Werror
endif

# Does the compiler take these flags?
takes = $(shell $(CC) $(1) -Werror -x c -c /dev/null -o /dev/null 2>/dev/null && echo $(1))

# And to compile and to link with these? (clang takes no fat objects, and does without.)
links = $(shell echo 'int main(void){return 0;}' | \
	$(CC) $(1) -Werror -x c - -o /dev/null 2>/dev/null && echo $(1))

HARDENING = $(call takes,-fstack-protector-strong) $(call takes,-fstack-clash-protection) \
	$(call takes,-fcf-protection=full) $(call takes,-ftrivial-auto-var-init=zero)

# The linker of the variants that tests use, which takes a third of the usual one's time. It applies
# --wrap to shared libraries as well, so the programs that wrap are linked by the usual one.
FAST_LD = $(call links,-fuse-ld=gold)
SLOW_LD = $(if $(findstring gold,$(ALL_LINK)),-fuse-ld=bfd)

# Following each variable through optimised code takes gcc a third of the time that a build with debug
# information needs, and changes no instruction. The variants that tests use have line numbers, which
# the sanitizers' reports need, and no variables: CFLAGS=-g adds these.
DEBUG_INFO = -g $(call takes,-fno-var-tracking-assignments)

ifeq ($(VARIANT),release)
# Across files, since a hit's way leads through many small ones.
# Objects with machine code as well take half as long again to compile, and are for archives that are
# made without the compiler's plugin.
LTO_PLUGIN = $(wildcard $(shell $(CC) -print-file-name=liblto_plugin.so))
LTO = $(call links,-flto=auto $(if $(LTO_PLUGIN),-fno-fat-lto-objects,-ffat-lto-objects))
OPTIMISE = -O3 $(DEBUG_INFO) -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 $(HARDENING) $(LTO)
LINK = -O3 $(DEBUG_INFO) $(LTO) -Wl,-z,relro,-z,now -Wl,-z,noexecstack -Wl,--as-needed
else ifeq ($(VARIANT),asan)
OPTIMISE = -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
LINK = -fsanitize=address,undefined $(FAST_LD)
# Of tests themselves: twice as quick to compile as at -O1, which is no slower to run.
TEST_OPTIMISE = -O0
else ifeq ($(VARIANT),tsan)
TEST_OPTIMISE = -O0
OPTIMISE = -O1 -g1 -fno-omit-frame-pointer -fsanitize=thread
LINK = -fsanitize=thread $(FAST_LD)
else ifeq ($(VARIANT),fuzz)
OPTIMISE = -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize-recover=all
LINK = -fsanitize=address,undefined
else ifeq ($(VARIANT),coverage)
OPTIMISE = -O0 -g --coverage -fprofile-update=atomic
# What a test asks for at a child's end, where only exit() would write the counts.
LINK = --coverage -Wl,--undefined=__gcov_dump
else ifeq ($(VARIANT),debug)
OPTIMISE = -O1 $(DEBUG_INFO) -fno-omit-frame-pointer -DSUNPROXY_CHECK_EACH_STEP
LINK = $(FAST_LD)
else
$(error VARIANT is release, asan, tsan, debug, fuzz or coverage, not '$(VARIANT)')
endif

DEFINES := -D_GNU_SOURCE -DSUNPROXY_VERSION='"$(VERSION)"'

# Probes run once, and only for targets that compile: before setup there may be nothing to ask.
ifneq ($(filter-out help clean distclean setup setup-test demo reproduce reproduction test test-debian package-test container-test check check-policy fuzz structure coverage bench bench-sim calibrate calibrate-samples cache-tests suites app-setup app-test app-hits soak format \
	uninstall,$(or $(MAKECMDGOALS),all)),)
PKG_CFLAGS := $(pkg_cflags)
PKG_LIBS := $(pkg_libs)
CHECK_LIBS := $(shell $(PKG_CONFIG) --libs check 2>/dev/null)
ALL_OPTIMISE := $(OPTIMISE)
ARCHIVE := $(AR) $(if $(LTO_PLUGIN),--plugin $(LTO_PLUGIN)) rcs
ALL_LINK := $(LINK)
# Objects are made again if these change. The stamp is renewed here, and not by a rule, so that what
# is up to date stays so.
STAMP := $(B)/.defines
STAMPED := $(DEFINES) $(CFLAGS)
$(shell mkdir -p $(B))
ifneq ($(STAMPED),$(file <$(STAMP)))
$(file >$(STAMP),$(STAMPED))
endif
endif

ALL_CFLAGS = -std=c11 $(WARNINGS) $(ALL_OPTIMISE) -fPIE -pthread $(DEFINES) -I. -isystem build/gen \
	$(PKG_CFLAGS) $(CFLAGS)
GEN_CFLAGS = -std=gnu11 -w $(ALL_OPTIMISE) -fPIE -pthread -Ibuild/gen $(PKG_CFLAGS) $(CFLAGS)
ALL_LDFLAGS = -pie -pthread $(ALL_LINK) $(LDFLAGS)

# ---- what there is ---------------------------------------------------------------------------------

FOLDERS := base policies http metrics rules cache store tier net rpc origins fetch proxy trace sim server cli client study
sources = $(filter-out %/main.c policies/templates/%,$(wildcard $(1)/*.c $(1)/*/*.c))
objects = $(patsubst %.c,$(B)/%.o,$(call sources,$(1)))

GEN := build/gen/proxy.h build/gen/proxy_xdr.c build/gen/proxy_svc.c build/gen/proxy_clnt.c
# Generated XDR routines, dispatchers and client stubs; a program takes what it asks for.
PROTOCOL_LIB := $(B)/libprotocol.a

# In the order of linking: users before what they use.
SERVER_LIBS := $(B)/libserver.a $(B)/libproxy.a $(B)/libtier.a $(B)/libstore.a $(B)/libcache.a $(B)/libpolicies.a $(B)/librpc.a $(B)/libnet.a \
	$(B)/libfetch.a $(B)/liborigins.a $(B)/librules.a $(B)/libmetrics.a $(B)/libhttp.a \
	$(PROTOCOL_LIB) $(B)/libbase.a
CLIENT_LIBS := $(B)/libclient.a $(B)/libstudy.a $(B)/libcli.a $(B)/libtrace.a $(B)/libsim.a $(B)/libstore.a $(B)/libcache.a \
	$(B)/libpolicies.a $(B)/librpc.a $(B)/libnet.a $(B)/libhttp.a $(PROTOCOL_LIB) $(B)/libbase.a
TEST_LIBS := $(B)/libserver.a $(B)/libproxy.a $(B)/libtier.a $(B)/libstore.a $(B)/libclient.a $(B)/libstudy.a $(B)/libcli.a $(B)/libcache.a \
	$(B)/libpolicies.a $(B)/librpc.a $(B)/libnet.a $(B)/libfetch.a $(B)/liborigins.a $(B)/librules.a $(B)/libmetrics.a \
	$(B)/libhttp.a $(B)/libtrace.a $(B)/libsim.a $(B)/libbench.a $(B)/libsoak.a $(PROTOCOL_LIB) $(B)/libbase.a

PROGRAMS := $(B)/sunproxyd $(B)/sunproxy
# A folder's rooms have tests of their own: tests/unit/FOLDER/ROOM/.
unit_files = $(wildcard tests/unit/*/$(1) tests/unit/*/*/$(1))
UNIT_SOURCES := $(call unit_files,test_*.c)
TORTURE_SOURCES := $(call unit_files,torture_*.c)
FAULTS_SOURCES := $(call unit_files,faults_*.c)
UNIT := $(patsubst %.c,$(B)/%,$(UNIT_SOURCES))
TORTURE := $(patsubst %.c,$(B)/%,$(TORTURE_SOURCES))
FAULTS := $(patsubst %.c,$(B)/%,$(FAULTS_SOURCES))

ORIGIN := $(B)/tests/origin/origin
BENCH := $(patsubst tests/bench/%_main.c,$(B)/tests/bench/%,$(wildcard tests/bench/*_main.c))
FUZZ_SHARED := tests/fuzz/file.c tests/fuzz/replay_main.c
FUZZ := $(patsubst %.c,$(B)/%,$(filter-out $(FUZZ_SHARED),$(wildcard tests/fuzz/*.c)))
SOAK := $(B)/tests/soak/soak
PEERS := $(patsubst %.c,$(B)/%,$(wildcard tests/system/peers/*.c))

.PHONY: all help clean distclean install test test-debian package-test container-test check check-policy demo reproduce reproduction fuzz structure coverage bench bench-sim calibrate calibrate-samples cache-tests suites app-setup app-test app-hits setup \
	setup-test unit programs origin peers bench-programs fuzz-programs soak soak-programs format uninstall
.DELETE_ON_ERROR:
.SECONDARY:

all: programs

programs: $(PROGRAMS)
unit: $(UNIT) $(TORTURE) $(FAULTS)
origin: $(ORIGIN)
peers: $(PEERS)
bench-programs: $(BENCH)
soak-programs: $(SOAK)
fuzz-programs: $(FUZZ)

# ---- rules -----------------------------------------------------------------------------------------

# One stamp: rpcgen writes all four or none.
build/gen/.stamp: proxy.x
	@mkdir -p build/gen
	$(call say,RPCGEN,proxy.x)
	$(Q)cp proxy.x build/gen/ && cd build/gen && \
		rm -f proxy.h proxy_xdr.c proxy_svc.c proxy_clnt.c && \
		$(RPCGEN) -C -M -h -o proxy.h proxy.x && \
		$(RPCGEN) -C -M -c -o proxy_xdr.c proxy.x && \
		$(RPCGEN) -C -M -m -o proxy_svc.c proxy.x && \
		$(RPCGEN) -C -M -l -o proxy_clnt.c proxy.x
	@touch $@

$(GEN): build/gen/.stamp ;

# Its symbols come from assembly, which link-time optimisation does not look into.
$(B)/study/report/report_page.o: private ALL_OPTIMISE += -fno-lto

$(B)/gen/%.o: build/gen/%.c build/gen/.stamp
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(GEN_CFLAGS) -c -o $@ $<

# -MMD leaves out system headers, as which the generated ones are included: so all wait for these.
$(B)/%.o: %.c build/gen/.stamp $(STAMP)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -MD -MP -c -o $@ $<

# What is ours of the page of `sunproxy report` is put into the program as it is.
$(B)/study/report/report_page.o: $(wildcard study/report/page/*)

define library
$(B)/lib$(1).a: $$(call objects,$(1))
	@mkdir -p $$(@D)
	@rm -f $$@
	$$(call say,AR,$$@)
	$$(Q)$$(ARCHIVE) $$@ $$^
endef
$(foreach f,$(FOLDERS),$(eval $(call library,$(f))))

$(PROTOCOL_LIB): $(B)/gen/proxy_xdr.o $(B)/gen/proxy_svc.o $(B)/gen/proxy_clnt.o
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(ARCHIVE) $@ $^

$(B)/sunproxyd: $(B)/server/main.o $(SERVER_LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< -Wl,--start-group $(SERVER_LIBS) -Wl,--end-group $(PKG_LIBS)

$(B)/sunproxy: $(B)/client/main.o $(CLIENT_LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< -Wl,--start-group $(CLIENT_LIBS) -Wl,--end-group $(PKG_LIBS)

# Unit tests: each file defines a suite, unit_suite(). Those of a folder are linked into one program with
# everything that they might ask for, and have a link to it by their own name, by which it runs that
# suite alone: linking a program a file took longer than compiling it. Three kinds are linked apart:
# test_*.c as they are, torture_*.c with every allocation of ours going through
# tests/unit/torture.c, and faults_*.c with calls of the operating system going through
# tests/unit/faults.c.
UNIT_COMMON := $(B)/tests/unit/unit.o
POLICY_TEMPLATES := $(patsubst %.c,$(B)/%.o,$(wildcard policies/templates/*.c))
UNIT_SHARED := $(patsubst %.c,$(B)/%.o,$(filter-out \
	$(UNIT_SOURCES) $(TORTURE_SOURCES) $(FAULTS_SOURCES),\
	$(call unit_files,*.c))) $(POLICY_TEMPLATES)
UNIT_LIB := $(B)/libunit.a
# Tests of the lowest folders need few others, so that VARIANT=debug, which tests/run.sh builds for these
# alone, compiles a third of the sources.
LOW := policies cache sim
LOW_UNIT_LIB := $(B)/libunit_low.a
LOW_TEST_LIBS := $(B)/libsim.a $(B)/libtrace.a $(B)/libcache.a $(B)/libpolicies.a $(B)/libbase.a
libs_of = $(if $(filter $(LOW),$(1)),$(LOW_UNIT_LIB) $(LOW_TEST_LIBS),$(UNIT_LIB) $(TEST_LIBS))
# Every program's Check is without marks (tests/unit/unit.c).
test_libs = -Wl,--wrap=_mark_point -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(PKG_LIBS) \
	$(CHECK_LIBS)

$(LOW_UNIT_LIB): $(filter $(LOW:%=$(B)/tests/unit/%/%),$(UNIT_SHARED)) $(POLICY_TEMPLATES)
$(UNIT_LIB): $(UNIT_SHARED)
$(UNIT_LIB) $(LOW_UNIT_LIB):
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(ARCHIVE) $@ $^

# The name by which a suite is found, and which is its own to the linker.
$(addsuffix .o,$(UNIT) $(TORTURE) $(FAULTS)): private ALL_CFLAGS += -DUNIT_NAME='"$(basename $(@F))"' \
	$(TEST_OPTIMISE)

# The last two are Check's, to keep its own allocations out of it: it is linked from an archive.
WRAPS := malloc calloc realloc aligned_alloc strdup strndup emalloc erealloc

# Faults: calls of the operating system.
FAULT_WRAPS := read write open fcntl fstat stat lstat fopen fdopen fchmod rename mkdir mkdtemp mkostemp \
	mkstemp readlink socket bind listen connect accept4 getsockname getsockopt setsockopt poll \
	eventfd epoll_create1 flock pthread_create pthread_mutex_init pthread_cond_init event_base_new \
	event_new event_add
FAULT_WRAPS += ftruncate getcwd opendir
# What tests/unit/store/disk_model.c models.
FAULT_WRAPS += pwrite pread preadv2 openat unlinkat fsync fdatasync disk_ring_take
# What tests/unit/server/confine/process_model.c models, and what it asks the machine for.
FAULT_WRAPS += geteuid getegid getresuid getresgid setresuid setresgid setgroups getgrouplist \
	setfsuid setfsgid fchown fchownat realpath prctl syscall seccomp_init seccomp_rule_add \
	seccomp_rule_add_array seccomp_load
# What tests/unit/server/rpc/rpcbind_model.c models.
FAULT_WRAPS += rpcb_set rpcb_unset rpcb_getmaps getnetconfigent uaddr2taddr pthread_cond_timedwait \
	_exit
FAULT_WRAPS += getpeername send recv sendmsg recvmsg curl_multi_init curl_multi_setopt curl_multi_add_handle \
	curl_easy_init curl_easy_setopt curl_easy_pause curl_slist_append curl_url curl_url_dup \
	curl_url_get curl_url_set

# FOLDER, KIND, SOURCES, OBJECTS AND FLAGS OF ITS OWN
define unit_program
$(B)/tests/unit/$(1)/$(2): $(patsubst %.c,$(B)/%.o,$(3)) $(4) $(UNIT_COMMON) $(call libs_of,$(1))
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(ALL_LDFLAGS) $(5) -o $$@ $$(filter %.o,$$^) $$(test_libs)

$(patsubst %.c,$(B)/%,$(3)): $(B)/tests/unit/$(1)/$(2)
	$$(Q)ln -sf $(2) $$@
endef
# Those of the files that are in the folder itself.
in_folder = $(foreach s,$($(2)),$(if $(filter tests/unit/$(1)/,$(dir $(s))),$(s)))
unit_programs = $(if $(in_folder),$(eval $(call unit_program,$(1),$(3),$(in_folder),$(4),$(5))))
$(foreach f,$(patsubst tests/unit/%/,%,$(sort $(dir $(UNIT_SOURCES) $(TORTURE_SOURCES) $(FAULTS_SOURCES)))),\
	$(call unit_programs,$(f),UNIT_SOURCES,tests,,)\
	$(call unit_programs,$(f),TORTURE_SOURCES,torture,$(B)/tests/unit/torture.o,\
		$$(SLOW_LD) $$(WRAPS:%=-Wl$$(comma)--wrap=%))\
	$(call unit_programs,$(f),FAULTS_SOURCES,faults,$(B)/tests/unit/faults.o,\
		$$(SLOW_LD) $$(FAULT_WRAPS:%=-Wl$$(comma)--wrap=%)))

# The tests of policies, linked with what they need and no more, for check-policy.
POLICY_TESTS := $(patsubst tests/unit/policies/%.c,$(B)/check-policy/%,$(wildcard \
	tests/unit/policies/test_*.c tests/unit/policies/torture_*.c))
POLICY_TEST_LIBS := $(B)/libsim.a $(B)/libtrace.a $(B)/libpolicies.a $(B)/libbase.a

$(POLICY_TESTS): $(B)/check-policy/%: $(B)/tests/unit/policies/%.o $(POLICY_TEMPLATES) $(UNIT_COMMON) \
	$(POLICY_TEST_LIBS)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(if $(filter torture_%,$(@F)),$(SLOW_LD) $(WRAPS:%=-Wl,--wrap=%)) -o $@ \
		$(filter %.o,$^) -Wl,--wrap=_mark_point -Wl,--start-group $(POLICY_TEST_LIBS) \
		-Wl,--end-group $(PKG_LIBS) $(CHECK_LIBS)

$(B)/check-policy/torture_policies: $(B)/tests/unit/torture.o

$(ORIGIN): $(patsubst %.c,$(B)/%.o,$(wildcard tests/origin/*.c)) $(B)/libbase.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(B)/libbase.a \
		$(shell $(PKG_CONFIG) --libs libevent libevent_openssl openssl zlib) -lm

# Benchmarks: NAME_main.c is a program, the other files of the folder are shared by all (and have
# unit tests like any others).
$(B)/libbench.a: $(patsubst %.c,$(B)/%.o,$(filter-out %_main.c,$(wildcard tests/bench/*.c)))
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(ARCHIVE) $@ $^

$(BENCH): $(B)/tests/bench/%: $(B)/tests/bench/%_main.o $(TEST_LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(TEST_LIBS) -Wl,--end-group \
		$(PKG_LIBS)

# Fuzz targets: linked with libFuzzer, or, in the other variants, with a main that runs the corpus.
ifeq ($(VARIANT),fuzz)
FUZZ_MAIN :=
$(FUZZ): ALL_LINK = -fsanitize=fuzzer,address,undefined
else
FUZZ_MAIN := $(B)/tests/fuzz/replay_main.o
endif

$(FUZZ): $(B)/%: $(B)/%.o $(B)/tests/fuzz/file.o $(FUZZ_MAIN) $(TEST_LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(TEST_LIBS) -Wl,--end-group \
		$(PKG_LIBS)

# The soak: soak_main.c is the program, the other files have unit tests.
$(B)/libsoak.a: $(patsubst %.c,$(B)/%.o,$(filter-out %_main.c,$(wildcard tests/soak/*.c)))
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(ARCHIVE) $@ $^

$(SOAK): $(B)/tests/soak/soak_main.o $(TEST_LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(TEST_LIBS) -Wl,--end-group \
		$(PKG_LIBS)

# Independent peers for system tests, on rpcgen's own client stubs.
$(PEERS): $(B)/%: $(B)/%.o $(PROTOCOL_LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS)

-include $(shell find $(B) -name '*.d' 2>/dev/null)

# ---- for people --------------------------------------------------------------------------------------

setup:
	$(Q)PLOT_DIR='$(PLOT_DIR)' scripts/setup.sh build

setup-test:
	$(Q)PLOT_DIR='$(PLOT_DIR)' scripts/setup.sh build test

# In a second make, so that what setup installs is seen by the probes above.
demo: setup
	$(Q)$(MAKE) VARIANT=release programs origin
	$(Q)scripts/demo.sh

reproduce: setup
	$(Q)scripts/setup.sh reproduce
	$(Q)$(MAKE) VARIANT=release programs bench-programs origin
	$(Q)studies/reproduce.sh $(DOCUMENT:%=--document %) $(STUDY:%=--study %)

# Also renews the tables of the document; alone those of STUDY="geni leiden".
reproduction:
	$(Q)$(MAKE) reproduce DOCUMENT=docs/REPRODUCTION.md

test: setup-test
	$(Q)tests/run.sh

# The README's two commands on another release of Debian.
RELEASE ?= trixie
test-debian:
	$(Q)tests/debian.sh $(RELEASE)

# The packages of the last commit, on that release.
package-test:
	$(Q)tests/debian.sh $(RELEASE) tests/package/run.sh

container-test:
	$(Q)tests/debian.sh $(RELEASE) tests/package/container.sh

# What an edit concerns: make check FOLDER=cache
FOLDER ?=
check:
	$(Q)tests/check.sh $(FOLDER)

# All tests of one policy: make check-policy POLICY=mru
POLICY ?=
check-policy:
	$(Q)tests/check_policy.sh "$(POLICY)"

# Each target for SECONDS, two at a time; a finding becomes a file of its corpus.
SECONDS ?= 60
fuzz: setup
	$(Q)scripts/setup.sh fuzz
	$(Q)$(MAKE) VARIANT=fuzz CC="$(FUZZ_CC)" fuzz-programs
	$(Q)tests/fuzz/run.sh $(SECONDS)

structure:
	$(Q)python3 tests/structure.py

coverage: setup-test
	$(Q)scripts/setup.sh coverage
	$(Q)tests/coverage.sh

bench: setup
	$(Q)$(MAKE) VARIANT=release programs bench-programs origin
	$(Q)tests/bench/bench.py
	$(Q)tests/bench/http.py
	$(Q)tests/bench/miss_cost.py
	$(Q)tests/bench/misses.py
	$(Q)tests/bench/cold.py
	$(Q)tests/bench/disk.py
	$(Q)tests/bench/outage.py
	$(Q)tests/bench/table.py
	$(Q)tests/bench/scale.py
	$(Q)tests/bench/users.py
	$(Q)tests/bench/sim.py

REQUESTS ?= 10000000
SECONDS_HTTP ?= 600
soak: setup
	$(Q)$(MAKE) VARIANT=release programs soak-programs bench-programs origin
	$(Q)SUNPROXY_LONG_TESTS=1 SUNPROXY_BUILD=build/release \
		SUNPROXY_ORIGIN=build/release/tests/origin/origin \
		python3 tests/system/run.py LiveTest ReloadLoadTest RestartLoadTest \
		ClusterLoadTest SharedLoadTest test_reload.ReloadTest.test_every_line_of_the_example
	$(Q)$(MAKE) VARIANT=asan build/asan/tests/unit/store/faults_store build/asan/tests/unit/tier/test_tier
	$(Q)SUNPROXY_LONG_TESTS=1 build/asan/tests/unit/store/faults_store
	$(Q)SUNPROXY_LONG_TESTS=1 build/asan/tests/unit/tier/test_tier
	$(Q)SUNPROXY_STORE_KILLS=200 SUNPROXY_BUILD=build/release python3 tests/system/run.py test_store_kills
	$(Q)tests/soak/soak.py $(REQUESTS)
	$(Q)tests/soak/http_soak.py --seconds $(SECONDS_HTTP)
	$(Q)tests/bench/scale.py --long

# The simulator's part alone, beside libCacheSim; tests/bench/sim.py --help
bench-sim:
	$(Q)$(MAKE) VARIANT=release programs bench-programs
	$(Q)tests/bench/sim.py

cache-tests:
	$(Q)$(MAKE) VARIANT=release programs
	$(Q)tests/conformance/cache_tests.py --suite $(or $(CACHE_TESTS),$(error CACHE_TESTS=FOLDER is missing))

BESIDE ?=
suites:
	$(Q)$(MAKE) VARIANT=$(VARIANT) programs
	$(Q)tests/conformance/node_suites.py --suites $(or $(SUITES),$(error SUITES=FOLDER is missing)) \
		--build build/$(VARIANT) $(BESIDE:%=--peer %)

app-setup:
	$(Q)scripts/setup.sh apps

# Checks by tests/apps/run.py, which names what has to be installed
APP ?=
app-test:
	$(Q)$(MAKE) VARIANT=$(VARIANT) programs
	$(Q)tests/apps/run.py --build build/$(VARIANT) $(APP)

# Hits by tests/apps/hits.py, which has npm packages that are missing installed in FETCH if that is given
FETCH ?=
app-hits:
	$(Q)$(MAKE) VARIANT=$(VARIANT) programs
	$(Q)tests/apps/hits.py --build build/$(VARIANT) $(FETCH:%=--fetch %) $(APP)

# How often the intervals of advise hold, by log: make calibrate FOLDER=RECORDED_TRACES. And how
# often the errors that are stated of samples hold, by policy, beside sim/calibrated.c:
# make calibrate-samples TRACES="FILE..."
calibrate:
	$(Q)$(MAKE) VARIANT=release programs origin
	$(Q)tests/bench/calibrate_advise.py $(if $(FOLDER),--traces $(FOLDER))

calibrate-samples:
	$(Q)$(MAKE) VARIANT=release build/release/tests/bench/calibrate
	$(Q)build/release/tests/bench/calibrate $(TRACES)

# ---- installing --------------------------------------------------------------------------------------

# The libraries of the report's page and their licences, where they are here.
PLOT_FILES = $(notdir $(wildcard $(PLOT_DIR)/d3.min.js $(PLOT_DIR)/plot.umd.min.js \
	$(PLOT_DIR)/LICENSE.d3 $(PLOT_DIR)/LICENSE.plot))
# The pages of the documentation, in a folder of the same name, so that the README's links work.
PAGES = $(notdir $(wildcard docs/*.md))
# Configurations that docs/RULES.md describes.
RECIPES = $(notdir $(wildcard packaging/recipes/*.conf))
# What Prometheus and Grafana read.
MONITORING = prometheus/prometheus.yml prometheus/sunproxy.rules.yml grafana/sunproxy.json
# MODE:FILE:PLACE of each installed file.
INSTALLED = 755:$(B)/sunproxy:$(BINDIR)/sunproxy \
	755:$(B)/sunproxyd:$(SBINDIR)/sunproxyd \
	755:packaging/completions/complete.sh:$(LIBEXECDIR)/complete.sh \
	644:docs/sunproxy.1:$(MANDIR)/man1/sunproxy.1 \
	644:docs/sunproxyd.8:$(MANDIR)/man8/sunproxyd.8 \
	644:docs/sunproxyd.rules.5:$(MANDIR)/man5/sunproxyd.rules.5 \
	644:README.md:$(DOCDIR)/README.md \
	644:SECURITY.md:$(DOCDIR)/SECURITY.md \
	$(foreach f,$(PAGES),644:docs/$(f):$(DOCDIR)/docs/$(f)) \
	$(foreach f,$(RECIPES),644:packaging/recipes/$(f):$(DOCDIR)/packaging/recipes/$(f)) \
	$(foreach f,$(MONITORING),644:packaging/$(f):$(DOCDIR)/packaging/$(f)) \
	644:LICENSE:$(DOCDIR)/LICENSE \
	644:NEWS:$(DOCDIR)/NEWS \
	644:proxy.x:$(DOCDIR)/proxy.x \
	$(foreach f,$(PLOT_FILES),644:$(PLOT_DIR)/$(f):$(DATADIR)/$(f))
# TEMPLATE:PLACE of those that name the places of others.
FROM_TEMPLATES = completions/sunproxy.bash:$(BASHDIR)/sunproxy \
	completions/sunproxy.bash:$(BASHDIR)/sunproxyd \
	completions/sunproxy.zsh:$(ZSHDIR)/_sunproxy \
	completions/sunproxy.fish:$(FISHDIR)/sunproxy.fish \
	completions/sunproxy.fish:$(FISHDIR)/sunproxyd.fish
ifneq ($(SYSTEMD),no)
INSTALLED += 644:packaging/sunproxyd.socket:$(UNITDIR)/sunproxyd.socket \
	644:packaging/sunproxyd-http.socket:$(UNITDIR)/sunproxyd-http.socket \
	644:packaging/sysusers.conf:$(SYSUSERSDIR)/sunproxy.conf \
	644:packaging/tmpfiles.conf:$(TMPFILESDIR)/sunproxy.conf
FROM_TEMPLATES += sunproxyd.service:$(UNITDIR)/sunproxyd.service
endif
# The paths of the running system, without DESTDIR.
substitute = sed -e 's|@SBINDIR@|$(SBINDIR)|g' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|g' \
	-e 's|@LIBEXECDIR@|$(LIBEXECDIR)|g'
CONFIG = '$(DESTDIR)$(SYSCONFDIR)/sunproxy/sunproxyd.conf'
PRISTINE_CONFIG = '$(DESTDIR)$(DOCDIR)/sunproxyd.conf.example'
ROTATION = '$(DESTDIR)$(LOGROTATEDIR)/sunproxyd'
PRISTINE_ROTATION = '$(DESTDIR)$(DOCDIR)/logrotate.conf.example'

install: programs
	$(Q)for row in $(INSTALLED); do \
		mode=$${row%%:*}; row=$${row#*:}; \
		$(INSTALL) -D -m $$mode "$${row%%:*}" "$(DESTDIR)$${row#*:}" || exit 1; \
	done
	$(Q)for row in $(FROM_TEMPLATES); do \
		template=packaging/$${row%%:*}.in; place="$(DESTDIR)$${row#*:}"; \
		$(INSTALL) -D -m 644 $$template "$$place" && \
			$(substitute) $$template >"$$place" || exit 1; \
	done
	$(Q)$(INSTALL) -d '$(DESTDIR)$(SYSCONFDIR)/sunproxy' && default=$$(mktemp) && \
		trap 'rm -f "$$default"' EXIT && \
		$(EXEC) $(B)/sunproxyd --default-config >"$$default" && \
		scripts/install_config.sh install "$$default" $(CONFIG) $(PRISTINE_CONFIG)
	$(Q)$(INSTALL) -d '$(DESTDIR)$(LOGROTATEDIR)' && \
		scripts/install_config.sh install packaging/logrotate.conf $(ROTATION) $(PRISTINE_ROTATION)
ifeq ($(filter %.js,$(PLOT_FILES)),)
	@echo 'without the libraries of the page of sunproxy report: make setup fetches them'
endif
ifneq ($(LOGROTATEDIR),/etc/logrotate.d)
	@echo 'logrotate does not read $(LOGROTATEDIR)/sunproxyd by itself: LOGROTATEDIR=/etc/logrotate.d'
endif

# Folders stay, but for those of this program alone once they are empty.
uninstall:
	$(Q)scripts/install_config.sh remove $(CONFIG) $(PRISTINE_CONFIG)
	$(Q)scripts/install_config.sh remove $(ROTATION) $(PRISTINE_ROTATION)
	$(Q)for row in $(INSTALLED) $(FROM_TEMPLATES); do rm -f "$(DESTDIR)$${row##*:}"; done
	$(Q)cd "$(DESTDIR)$(DATADIR)" 2>/dev/null && \
		rm -f d3.min.js plot.umd.min.js LICENSE.d3 LICENSE.plot || true
	$(Q)for folder in $(DOCDIR)/docs $(DOCDIR)/packaging/recipes $(DOCDIR)/packaging/prometheus \
		$(DOCDIR)/packaging/grafana $(DOCDIR)/packaging $(DOCDIR) $(DATADIR) $(LIBEXECDIR) $(SYSCONFDIR)/sunproxy; do \
		rmdir "$(DESTDIR)$$folder" 2>/dev/null || true; \
	done

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

# Warnings of a second compiler, without building twice: make CC=clang check-clang
# clang takes twice as long to start as to look at a file, and looks at several only by its inner
# option: what follows -Xclang. The first one must be named otherwise.
SUITES = $(UNIT_SOURCES) $(TORTURE_SOURCES) $(FAULTS_SOURCES)
NO_SUITES = $(filter-out $(SUITES),$(shell find $(FOLDERS) tests -name '*.c'))
look_at = printf -- '-Xclang\n%s\n' $(1) | \
	xargs -P 2 -n 100 $(CC) $(ALL_CFLAGS) $(2) -Werror -fsyntax-only $(firstword $(1))
check-clang: build/gen/.stamp
	$(Q)$(call look_at,$(NO_SUITES))
	$(Q)$(call look_at,$(SUITES),-DUNIT_NAME='"suite"')

help:
	@sed -n '3,/^$$/p' Makefile | sed 's/^# \{0,2\}//'
	@echo
	@echo 'Further targets: programs unit origin bench-programs fuzz-programs setup setup-test'
	@echo '                 uninstall format clean distclean'

clean:
	rm -rf build/release build/asan build/tsan build/debug build/fuzz build/coverage build/cross build/gen

distclean:
	rm -rf build
