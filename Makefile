# These are the tasks of this repository; `make` lists them. Each target installs what it needs (Debian, root).

PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 20
SOAK_ROUNDS ?= 1
KERNEL ?= stable
OLDEST ?= packets:data_server::adopt::without_socket,data_server::door::requests,connection_server::begin::first_request,connection_server::forward
SCENARIOS ?= *
REPEAT ?= 1
BUSY ?= 0
LABS ?= 3
BENCH ?=

TARGET := $(or $(CARGO_TARGET_DIR),target)
UNITS = $(PREFIX)/lib/systemd/system
SUDO := $(if $(filter-out 0,$(shell id -u)),sudo)

# Builds the programs that tests and scenarios run, with the features of the tests. `cargo build` uses other features,
# and would build the whole workspace again. The packages of these two tests have the programs.
PROGRAMS = cargo test --workspace --no-run --test docs --test machines

.DEFAULT_GOAL := help
.PHONY: help build demo quick test scenarios oldest machines check bench testssl boringssl kernels arm64 fuzz soak clean install

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

build: ## the program and libeop.so, optimized: target/release
	@scripts/setup build
	cargo build --release --bin baton
	cargo build --release -p eop-c

# The debug profile builds in half the time, and packets are processed by the same BPF programs.
demo: ## the whole idea on this machine: a cluster, real requests, a page that explains them (root)
	@scripts/setup demo
	cargo build --bin baton
	@$(SUDO) $(TARGET)/debug/baton demo

quick: ## the tests that need no root: unit, property, golden vectors, configuration, documents
	@scripts/test quick

test: ## what every change has to pass: quick, packet tables, the model, the core scenarios (root)
	@scripts/test

scenarios: ## all scenarios with real servers: SCENARIOS="drain* split" REPEAT=1 BUSY=0 LABS=3, and a table (root)
	@scripts/setup test
	$(PROGRAMS)
	@set -f; BATON_BIN=$$(realpath $(TARGET)/debug/baton) \
		$(TARGET)/debug/scenarios --repeat $(REPEAT) --busy $(BUSY) --labs $(LABS) $(SCENARIOS)

machines: ## a cluster of QEMU machines: a real driver, systemd, reboots; KERNEL=stable (root)
	@scripts/setup build kernels
	tests/kernels/root
	cargo build --profile guest --bin baton
	set -e; release=$$(tests/kernels/fetch $(KERNEL) | cut -d ' ' -f 2); \
		BATON_MACHINES=$${release:?} BATON_BIN=$$(realpath $(TARGET)/guest/baton) \
		cargo test --profile guest -p baton-tests --test machines

check: ## formatting and lints
	@scripts/setup build
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

bench: ## side by side with HAProxy and with direct access, on a quiet machine; BENCH=--tls (root)
	@scripts/setup bench
	cargo run --release -p baton-bench -- $(BENCH)

testssl: ## what testssl.sh finds at agents that speak TLS, in about three minutes (root)
	@scripts/setup testssl
	cargo build --bin baton
	@$(SUDO) scripts/testssl $$(realpath $(TARGET)/debug/baton)

# The source package of BoringSSL, from which only the test runner is built, is 30 MB. Later runs download nothing.
boringssl: ## BoringSSL's tests of TLS servers against that of agents, with sessions that stay and that move; a minute
	@scripts/setup boringssl
	cargo build -p baton-tls --example boringssl_shim
	@tests/boringssl/run $$(realpath $(TARGET)/debug/examples/boringssl_shim)

# Guests are emulated, so all kernels together take an hour and more. They are Debian's kernels, from the package
# archive.
kernels: ## Debian's kernels in QEMU: KERNELS="stable 7.3" CHECKS="doctor split", default all (root)
	@scripts/setup test kernels $(if $(CHECKS),,compilers)
	@tests/kernels/run $(if $(CHECKS),--checks "$(CHECKS)") $(KERNELS)

# This uses what `make test` has built, without a Debian root file system. The packet tables in OLDEST take about a
# minute in the guest.
oldest: ## the oldest kernel in QEMU, in a few minutes: all programs load, and some of the packet tables (root)
	@scripts/setup test kernels
	@$(PROGRAMS) --test packets
	@BATON_KERNELS_PROFILE=dev BATON_KERNELS_ROOT=host tests/kernels/run --checks "doctor $(OLDEST)" stable

arm64: ## the workspace built for arm64, its packet tables on an arm64 kernel in QEMU; CHECKS="doctor packets" (root)
	@scripts/setup build kernels arm64
	@tests/kernels/arm64 $(if $(CHECKS),--checks "$(CHECKS)" stable)

fuzz: ## every fuzz target, FUZZ_SECONDS=20 each
	@scripts/setup build
	@set -e; for target in $$(fuzz/run); do fuzz/run $$target $(FUZZ_SECONDS); done

soak: ## the scenarios at full length, SOAK_ROUNDS=1 times, and 10^8 sequences of packets (root)
	@scripts/setup test
	$(PROGRAMS)
	BATON_TEST_LONG=1 cargo test --release -p baton-model
	@set -e; for round in $$(seq $(SOAK_ROUNDS)); do \
		echo "round $$round of $(SOAK_ROUNDS)"; \
		BATON_TEST_LONG=1 BATON_BIN=$$(realpath $(TARGET)/debug/baton) $(TARGET)/debug/scenarios; \
	done

clean: ## remove what was built
	cargo clean

install: build ## the program, libeop, a sample configuration, a systemd unit; PREFIX=/usr/local DESTDIR=
	install -D -m 755 $(TARGET)/release/baton $(DESTDIR)$(PREFIX)/bin/baton
	install -D -m 755 $(TARGET)/release/libeop.so $(DESTDIR)$(PREFIX)/lib/libeop.so.0
	ln -sf libeop.so.0 $(DESTDIR)$(PREFIX)/lib/libeop.so
	install -D -m 644 crates/eop/c/include/eop.h $(DESTDIR)$(PREFIX)/include/eop.h
	install -D -m 644 packaging/eop/eop.3 $(DESTDIR)$(PREFIX)/share/man/man3/eop.3
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man1 packaging/man/*.1
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man5 packaging/man/*.5
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man8 packaging/man/*.8
	install -d -m 755 $(DESTDIR)$(PREFIX)/lib/pkgconfig
	sed 's,@PREFIX@,$(PREFIX),' packaging/eop/eop.pc > $(DESTDIR)$(PREFIX)/lib/pkgconfig/eop.pc
	install -D -m 644 baton.toml $(DESTDIR)$(PREFIX)/share/doc/baton/baton.toml
	install -D -m 644 packaging/baton.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/baton.conf
	install -d -m 755 $(DESTDIR)$(UNITS) $(DESTDIR)/etc/baton
	sed 's,@PREFIX@,$(PREFIX),' packaging/baton.service > $(DESTDIR)$(UNITS)/baton.service
	chmod 644 $(DESTDIR)$(UNITS)/baton.service
	@echo "Next: copy $(PREFIX)/share/doc/baton/baton.toml to /etc/baton/, make it yours, check it with"
	@echo "baton check /etc/baton/baton.toml, then: systemctl enable --now baton"
