# SPDX-License-Identifier: Apache-2.0
# The project's commands; each is a thin call of docker/install-deps.sh and the
# presets in CMakePresets.json.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help deps build demo test test-dev test-asan test-tsan soak bench lint format clean
MAKEFLAGS += --no-print-directory

# Cores to build and test with.
JOBS ?= $(shell nproc)
# What clang-format and clang-tidy look at.
SOURCES = $(shell git ls-files '*.h' '*.cc')
# tests/integration/own_program is a project of its own.
TIDY_SOURCES = $(filter-out tests/integration/%,$(filter %.cc,$(SOURCES)))

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

deps:
	@docker/install-deps.sh

build: deps ## everything into build/bin
	@cmake --preset dev --log-level=WARNING > /dev/null
	@cmake --build --preset dev --parallel $(JOBS)

demo: build ## CartPole, solved by real processes on this machine
	@build/bin/dtj run -f manifests/cartpole.yaml

test: deps test-dev test-asan test-tsan ## all tests, then all without libtorch again under sanitizers
	@echo "all tests passed"

test-dev:
	@cmake --preset dev --log-level=WARNING > /dev/null
	@cmake --build --preset dev --parallel $(JOBS)
	@ctest --preset dev --parallel $(JOBS)

# All that is without libtorch under the address and undefined-behaviour
# sanitizers; of it what has threads under the thread sanitizer.
test-asan test-tsan: test-%:
	@cmake --preset $* --log-level=WARNING > /dev/null
	@cmake --build --preset $* --parallel $(JOBS)
	@ctest --preset $* --parallel $(JOBS)

soak: build ## the fault tests, again and again (SOAK_ROUNDS=20)
	@ctest --preset dev --label-regex integration --repeat until-fail:$(or $(SOAK_ROUNDS),20)

bench: build .venv/.complete ## disttrain beside its peers, in one run; writes tests/bench/RESULTS.md and charts
	@python3 -B tests/bench/bench.py --peers-python .venv/bin/python

# The peers. Without pip inside, so that python3-venv is not needed.
.venv/.complete: tests/bench/requirements.txt
	@echo "bench: will install torch with its CUDA libraries, Ray and Monarch (6 GB) into .venv"
	@python3 -m venv --without-pip --clear .venv
	@python3 -m pip --python .venv/bin/python install --quiet --disable-pip-version-check -r $<
	@touch $@

# clang-tidy counts on standard error what it found in other people's headers.
lint: deps ## clang-format and clang-tidy, as CONTRIBUTING.md says
	@clang-format-14 --dry-run --Werror $(SOURCES)
	@cmake --preset lint --log-level=WARNING > /dev/null
	@cmake --build --preset lint --parallel $(JOBS)
	@printf '%s\n' $(TIDY_SOURCES) | xargs -P $(JOBS) -n 4 clang-tidy-14 -p build/lint --quiet \
	  2> >(grep -v ' warnings generated' >&2)

format: ## clang-format over all sources
	@clang-format-14 -i $(SOURCES)

clean: ## remove build/
	@rm -rf build
