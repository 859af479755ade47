.DEFAULT_GOAL := help
.PHONY: help build dist test lint bench compare soak fuzz scenarios interop hosts nightly official examples packages demo book test-mcp-server windows static

CARGO ?= cargo
MOCK_PORT ?= 8888
# Bytes of the binary that is shipped; CONTRIBUTING.md says what they cost.
LARGEST_BINARY = 31000000
# The tests of the command line need a shell of Unix.
WINDOWS_TESTS = --locked --workspace --exclude rehearse-benches --lib --bins --test systems --test scenarios

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build the release binary, target/release/rehearse
	$(CARGO) build --release

dist: ## Build the binary that is shipped, target/dist/rehearse
	$(CARGO) build --profile dist

test: ## Run all tests that need nothing but Rust
	$(CARGO) test

lint: ## Check format, lints and documentation; a warning is an error
	$(CARGO) fmt --check
	$(CARGO) clippy --workspace --all-targets --all-features -- --deny warnings
	RUSTDOCFLAGS="--deny warnings" $(CARGO) doc --workspace --all-features --no-deps

bench: ## Run the benchmarks
	$(CARGO) build --profile dist --bin rehearse
	$(CARGO) bench --profile dist --package rehearse-benches

compare: ## Compare with other tools on this machine, and write docs/performance.md; takes ten minutes
	$(CARGO) build --profile dist --bin rehearse
	compare/run

soak: ## Let clients come and go for ten minutes with faults, and watch the memory of the mock
	$(CARGO) build --profile dist --bin rehearse
	compare/soak

fuzz: ## Fuzz every target for FUZZ_SECONDS (20); needs a C++ compiler, and a network for the first run
	fuzz/run

scenarios: ## Run the shipped scenarios on every transport and in both eras
	$(CARGO) run -- run scenarios

interop: ## Test against real clients and servers; needs Node and Python, and a network for the first run
	$(CARGO) build
	interop/run

nightly: ## Check real servers against the specification, and say what got slower; needs what interop needs, and takes minutes
	$(CARGO) build
	! command -v go || REHEARSE_GO=go $(CARGO) test -p rehearse-code-mode --test execute go_
	ALONE=100 $(CARGO) test -p rehearse-check --test judges alone
	SHIPPED=all $(CARGO) test -p rehearse-check --test judges shipped
	REHEARSE_SLOW_SEEDS=20 $(CARGO) test -p rehearse-check --test judges slow
	seed=$$(date +%s); echo "PROPTEST_RNG_SEED=$$seed"; PROPTEST_RNG_SEED=$$seed $(CARGO) test --workspace --all-features --lib
	ACTS=all $(CARGO) test --test cli composite_acts
	interop/run --check
	interop/run --loaded
	REHEARSE_SLOW_SEEDS=1000 $(CARGO) test -p rehearse-check --test judges slow_twin
	$(MAKE) windows static
	$(CARGO) build --profile dist --bin rehearse
	test "$$(wc -c < "$${CARGO_TARGET_DIR:-target}/dist/rehearse")" -le $(LARGEST_BINARY)
	compare/run --against
	$(CARGO) check --locked --manifest-path fuzz/Cargo.toml --target-dir target
	interop/report/test

hosts: ## Install real hosts, and measure each with our probing servers; needs npm; takes an hour
	$(CARGO) build
	interop/hosts/run

official: ## Run the official MCP conformance suite against the mock; needs what interop needs
	$(CARGO) build --bins --example conformance_client
	official/run

examples: ## Run the example tests in Python, and test the manifests; needs what interop needs
	$(CARGO) build
	examples/run
	examples/kubernetes/test

packages: ## Build the wheel and the npm packages, and test them in new folders; needs what interop needs
	$(CARGO) build
	python/test
	npm/test
	action/test
	packaging/test

windows: ## Run the tests on Windows, which Wine is; needs Debian 12 or newer, and a network for the first run
	packaging/cross x86_64-pc-windows-gnu cargo test $(WINDOWS_TESTS) --no-fail-fast

static: ## Try the static programs for Linux, on x86-64 and arm64; needs what windows needs
	PROFILE=dist packaging/cross x86_64-unknown-linux-musl test
	packaging/cross aarch64-unknown-linux-musl test

demo: ## Draw the pictures of the README from real output
	$(CARGO) build
	packaging/demo

book: ## Build the documentation as a book in target/book; installs mdBook
	packaging/book target/book
	test -x target/mdbook/bin/mdbook || $(CARGO) install mdbook --locked --version 0.5.4 --root target/mdbook
	target/mdbook/bin/mdbook build target/book

test-mcp-server: ## Serve mock-servers/basic.yaml on 127.0.0.1, port MOCK_PORT (8888)
	@$(CARGO) run -- mock mock-servers/basic.yaml --listen 127.0.0.1:$(MOCK_PORT) $(MOCK_FLAGS)
