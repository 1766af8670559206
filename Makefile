# The user's verbs. CI calls only these. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# An address is taken as it is given: make would expand a $ of it, and run what $(shell …) says,
# and the words below would lose its quotes. So it is looked at before anything expands it.
APART := $(addsuffix x,$$ " ' ` \)
ifeq ($(origin TARGET),command line)
ifneq ($(strip $(foreach one,$(APART:x=),$(findstring $(one),$(value TARGET)))),)
$(error TARGET: allowed is http://host[:port]/path?query without $$, quotes and backslashes (write %24, %22, %27, %60, %5C))
endif
endif

# The words of a verb (CONC=2000 …) are make's own variables, handed on as they were given:
# the driver checks every one of them and refuses what it does not know. Names of .env are
# settings of the lab, not words of a verb.
export LAB_WORDS := $(MAKEOVERRIDES)
export LAB_SETTING_NAMES := INSTALL_ENGINE NOFILE PROFILE COMPOSE_PROJECT_NAME \
  $(shell sed -n 's/^\([A-Z][A-Z0-9_]*\)=.*/\1/p' .env)

# What host.sh reads off this machine wins over .env; what the user sets wins over both.
COMPOSE := set -a; . ./.lab/env; set +a; docker compose
DRIVER := images/host.sh drive
# For maintainers: a tool of the tests' image, on this user's own files.
TOOLS := docker run --rm -u $$(id -u):$$(id -g) -e HOME=/tmp

.PHONY: help ready idle driver up down bench run explain sweep compare report density executors toxics toxic toxics-reset doctor test dashboards lock

help: ## List the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

# Not a verb of the user's: an engine that answers, the upstream images, and what this machine has.
ready:
	@images/engine.sh
	@images/present.sh
	@images/host.sh env

# Nor this one: containers are neither built nor changed under a measurement. Looked at again after
# a build, which takes its time.
idle:
	@images/host.sh idle

# Nor this one: what works on stored results needs the driver, and no lab.
driver: ready
	@images/host.sh step build-loadgen "the driver's image" docker compose build loadgen

up: idle ready ## Start the lab and wait until all is healthy: [PROFILE=frameworks]
	@images/host.sh step build "the lab's own images" docker compose build
	@images/host.sh jmx
	@images/host.sh idle
	@images/host.sh step up "containers, until all are healthy" docker compose up --detach --wait --remove-orphans
	@images/host.sh facts
	@images/grafana.sh
	@images/host.sh where

down: ## Stop the lab and remove its containers, networks and volumes (results stay)
	@images/host.sh env
	@COMPOSE_PROFILES='*' $(COMPOSE) down --volumes --remove-orphans

bench: ## Measure: CONC=2000 [SERVER= ROUTE= MODE=open|closed|both RATE=auto|n DURATION=15s ENGINE=] or TARGET=http://…
	@images/host.sh check bench
	@$(MAKE) up
	@$(DRIVER) bench

run: ## An experiment of experiments/: EXP=sweep [LAUNCHES=6 SCALE=0.1 SERVER= CONC= CASE= …], or RESUME=<run>
	@images/host.sh check run
	@$(MAKE) up
	@$(DRIVER) run

explain: ## Prove what limits: CONC=5000 [SERVER= ROUTE= MODE=closed DURATION=5s PAIRS=6 STEPS=4 SUSPECT="worker pool"]
	@images/host.sh check explain
	@$(MAKE) up
	@$(DRIVER) explain

sweep: ## The same as `make run EXP=sweep`
	@$(MAKE) run EXP=sweep

compare: ## Faster, slower or no difference: A=<run>[:server] B=<run>[:server] [ACROSS=commit,images,limits]
	@images/host.sh check compare
	@$(MAKE) driver
	@$(DRIVER) compare

report: ## Judge a run again from its stored raw data: RUN=<run>
	@images/host.sh check report
	@$(MAKE) driver
	@$(DRIVER) report

density: ## Memory per open connection: [CONNECTIONS=8000 KIND=idle|slow|both LAUNCHES=3 SERVER=]
	@images/host.sh check density
	@$(MAKE) up
	@$(DRIVER) density

executors: ## 10,000 sleeping tasks, a fresh JVM each time: [LAUNCHES=6 TASKS=10000 SLEEP=100ms POOL=200]
	@images/host.sh check executors
	@$(MAKE) ready
	@images/host.sh step build-executors "the experiment's own images" docker compose build loadgen executors
	@images/host.sh idle
	@COMPOSE_PROFILES=executors images/host.sh facts
	@images/host.sh step executors "the launcher of its JVMs" docker compose up --detach --force-recreate --no-deps executors
	@status=0; $(DRIVER) executors || status=$$?; \
	  if images/host.sh idle 2>/dev/null; then $(COMPOSE) rm --stop --force executors >/dev/null 2>&1; fi; exit $$status

toxics: ## Show the toxics in force
	@images/host.sh need-up
	@$(DRIVER) toxics

toxic: ## Add or change a toxic: TYPE=latency LATENCY=500 [NAME= STREAM= TOXICITY=]; NAME= REMOVE=yes; TYPE=down|up
	@images/host.sh need-up
	@$(DRIVER) toxic

toxics-reset: ## Remove every toxic
	@images/host.sh need-up
	@$(DRIVER) toxics-reset

doctor: ## Say what this machine and the running lab can and cannot do
	@images/host.sh doctor

test: ## Run the tests: [SUITE=quick|full|long ONLY="static python"]; quick takes 10 minutes, full 30
	@.ci/test.sh

dashboards: ## Build grafana/dashboards/*.json from their code
	@$(TOOLS) -e PYTHONPATH=/lab/repo/grafana/src -v "$$PWD/grafana:/lab/repo/grafana" -w /lab/repo \
	  concurrency-lab/loadgen-test:local python -m lab_dashboards

lock: ## Refresh loadgen/requirements*.txt from pyproject.toml
	@$(TOOLS) -v "$$PWD/loadgen:/lab/repo/loadgen" -w /lab/repo/loadgen concurrency-lab/loadgen-test:local ./lock.sh
