# The usual ways to build and check. cmake is underneath; `make help` lists them.
#
#   make check SAN=address,undefined      instrumented      SAN=thread
#   CC=clang make check                   another compiler, its own build folder
#   make check ONLY=unit                  unit contract cli python fuzz races
#   make torture ROUNDS=200               of each race (2000)
#   make fuzz T=header S=60               one fuzz target, for a minute

SAN ?=
ONLY ?=
T ?=
S ?= 60
ROUNDS ?= 2000
BUILD_TYPE ?= Release
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
PYTHON ?= python3

ifeq ($(origin CC),default)
CC := cc
endif

comma := ,
config := $(if $(SAN),$(SAN),$(BUILD_TYPE))
config := $(patsubst Release,release,$(config))
config := $(patsubst Debug,debug,$(config))
config := $(patsubst address$(comma)undefined,asan,$(config))
config := $(patsubst thread,tsan,$(config))
config := $(subst $(comma),-,$(config))
BUILD ?= build/$(config)$(if $(filter-out cc,$(CC)),-$(notdir $(CC)))
FUZZ_BUILD ?= build/fuzz
COVER_BUILD ?= build/cover

NINJA := $(shell command -v ninja >/dev/null 2>&1 && echo -G Ninja)
CONFIGURE = CC='$(CC)' cmake -S . -B $(BUILD) \
	$(if $(wildcard $(BUILD)/CMakeCache.txt),,$(NINJA)) \
	--log-level=WARNING -Wno-dev \
	-DCMAKE_BUILD_TYPE=$(BUILD_TYPE) -DBAL_SANITIZE='$(SAN)' \
	-DCMAKE_INSTALL_PREFIX='$(PREFIX)'
MAKE_IT = cmake --build $(BUILD) -j $(JOBS)
# Where a PostgreSQL is named, the program's tests run on it and on S3, too.
FAR = $(if $(SAN),,$(if $(BALLAST_PG),remote))
CHECK = tools/check-summary --build $(BUILD) --jobs $(JOBS)

.PHONY: all install check torture crash fuzz fuzz-replay format format-check \
	lint cover docs docs-check bench golden peers remote ci clean help configure

all: configure ## the library, static and shared, and the program
	$(MAKE_IT) --target programs

configure:
	@$(CONFIGURE) >/dev/null

install: all ## into PREFIX (/usr/local), below DESTDIR
	cmake --install $(BUILD)

check: configure ## unit, contract, cli and replayed fuzz tests
	$(MAKE_IT) --target tests
	$(CHECK) $(if $(ONLY),$(ONLY),unit contract cli python fuzz $(FAR))

torture: configure ## every allocation fails once; two at work on one store
	$(MAKE_IT) --target tests
	BALLAST_ROUNDS=$(ROUNDS) $(CHECK) torture

crash: configure ## killed at every fsync and rename; every call fails once
	$(MAKE_IT) --target tests
	$(CHECK) crash

fuzz: ## libFuzzer: all targets, or T=name, for S seconds each
	FUZZ_BUILD=$(FUZZ_BUILD) JOBS=$(JOBS) tools/fuzz '$(S)' $(T)

fuzz-replay: configure ## the corpora again, by any compiler
	$(MAKE_IT) --target tests
	$(CHECK) fuzz

golden: configure ## old stores still open, ids stay the same
	$(MAKE_IT) --target tests
	$(CHECK) golden

remote: configure ## the program on a real S3 server and PostgreSQL
	$(MAKE_IT) --target tests
	$(if $(BALLAST_PG),,tests/cli/postgres.py) $(CHECK) remote

peers: all ## what we write loads in transformers, peft, safetensors
	BALLAST=$(abspath $(BUILD)/ballast) tools/peers

format: ## clang-format everything of ours
	tools/format

format-check:
	tools/format --check

lint: configure ## format, floors, metrics, headers, exports, clang-tidy, ...
	$(MAKE_IT) --target programs
	BUILD=$(BUILD) JOBS=$(JOBS) tools/lint

cover: ## lines and branches that check runs, by folder
	cmake -S . -B $(COVER_BUILD) $(NINJA) -DBAL_COVER=ON \
		-DCMAKE_BUILD_TYPE=Debug >/dev/null
	cmake --build $(COVER_BUILD) -j $(JOBS) --target tests
	find $(COVER_BUILD) -name '*.gcda' -delete
	tools/check-summary --build $(COVER_BUILD) --jobs $(JOBS) \
		unit contract cli fuzz
	tools/cover $(COVER_BUILD)

docs: all ## what is generated from the tables
	$(BUILD)/ballast --generate docs docs/cli.md
	$(BUILD)/ballast --generate methods docs/methods.md
	$(BUILD)/ballast --generate http docs/http.md

docs-check: all
	$(BUILD)/ballast --generate docs $(BUILD)/cli.md
	diff -u docs/cli.md $(BUILD)/cli.md
	$(BUILD)/ballast --generate methods $(BUILD)/methods.md
	diff -u docs/methods.md $(BUILD)/methods.md
	$(BUILD)/ballast --generate http $(BUILD)/http.md
	diff -u docs/http.md $(BUILD)/http.md

bench: configure ## ratios, ours to cp, zstd, b3sum, in one run
	$(MAKE_IT) --target tests
	BALLAST=$(abspath $(BUILD))/ballast BALLAST_BUILD=$(abspath $(BUILD)) \
		tools/bench

ci: ## what the machine that guards the tree runs
	.ci/run

clean: ## remove every build folder
	rm -rf build

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' \
		Makefile
