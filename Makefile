# The short names for what one does with lockstep. Each target does all the set-up it needs, and
# nothing when there is nothing to do. tools/ holds the steps; CMake builds.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

HOST := $(or $(LOCKSTEP_HOST),127.0.0.1)
PORT := $(or $(LOCKSTEP_PORT),8080)
# A GGUF file or a checkpoint folder; empty: fetch SmolLM2-135M-Instruct.
MODEL := $(LOCKSTEP_MODEL)
# More flags for `lockstep serve`, and for the benchmarks.
FLAGS ?=
# Compilers and tests that run at once; empty: one a core.
export JOBS ?=

.PHONY: help
help: ## what there is
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

.PHONY: serve
serve: build ## set up everything and serve on HOST:PORT (MODEL=, HOST=, PORT=, FLAGS=)
	@model="$(MODEL)"; [ -n "$$model" ] || model=$$(tools/fetch_model.sh); \
	exec build/lockstep serve --model "$$model" --host "$(HOST)" --port "$(PORT)" --example $(FLAGS)

.PHONY: build
build: ## the release binary at build/lockstep
	@tools/install_deps.sh build
	@tools/build.sh release lockstep

.PHONY: test
test: ## set up everything, then run every check and test
	@tools/install_deps.sh build test
	@tools/ci/checks.sh
	@tools/ci/tests.sh

.PHONY: check
check: ## layers, format, sizes and words, without building
	@tools/install_deps.sh test
	@tools/ci/checks.sh

.PHONY: format
format: ## rewrite the C++ files in the project's format
	@tools/install_deps.sh test
	@tools/check_format.sh --fix

.PHONY: bench
bench: ## build and run the benchmarks (FLAGS= is passed on)
	@tools/install_deps.sh build
	@tools/build.sh release
	@tools/run_benchmarks.sh $(FLAGS)

.PHONY: bench-peers
bench-peers: ## compare with llama.cpp, OpenVINO and vLLM (FLAGS=--help: a part of it, in minutes)
	@tools/install_deps.sh build test
	@tools/build.sh release lockstep gemm_bench
	@exec "$$(tools/python_env.sh)" bench/peers/bench_peers.py $(FLAGS)

.PHONY: asan tsan
asan: ## unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@tools/install_deps.sh build
	@tools/ci/sanitize.sh asan
tsan: ## tests with threads under ThreadSanitizer
	@tools/install_deps.sh build
	@tools/ci/sanitize.sh tsan

.PHONY: isa
isa: ## kernel tests on emulated other CPUs; wide registers stay where they belong
	@tools/install_deps.sh build test arm
	@tools/ci/isa.sh

.PHONY: clean
clean: ## remove the build folders (caches and the model stay)
	rm -rf build build-asan build-tsan build-aarch64 build-fuzz
