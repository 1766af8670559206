# The verbs. `make help` lists the users', which have a text behind ##; docs/verbs.md has the maintainers', too.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The words of the command line are make's variables: make would run the $(shell …) in one of them as it
# hands it on. So each is looked at before anything expands it. None may take the place of what looks
# (override), nor of what make, a shell or the loader of programs runs by.
override word :=
override sign :=
override define LINE_BREAK


endef
override UNSAFE := $(addsuffix x,$$ " ' ` \)
override NOT_WORDS := SHELL .SHELLFLAGS .% MAKE% GNUMAKEFLAGS MFLAGS DRIVER TOOLS LAB_VERB LAB_WORDS LAB_SETTING_NAMES \
  PATH ENV IFS PS4 SHELLOPTS BASH% LD_% GIT_%
override unsafe = $(strip $(foreach sign,$(UNSAFE:x=),$(findstring $(sign),$(value $1)))$(if $(findstring $(LINE_BREAK),$(value $1)),x))
$(foreach word,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(word)))),\
  $(if $(filter $(NOT_WORDS),$(word)),$(error $(word): it is neither a word of a verb nor a setting of .env))$(if $(call unsafe,$(word)),\
  $(error $(word): allowed is a word without $$, quotes, backslashes and line breaks (an address: %24, %22, %27, %60, %5C)))))

# The words of a verb (CONC=2000 …) are make's own variables, handed on as they were given:
# the driver checks every one of them and refuses what it does not know. Names of .env are
# settings of the lab, not words of a verb.
export LAB_WORDS := $(MAKEOVERRIDES)
export LAB_SETTING_NAMES := INSTALL_ENGINE NOFILE PROFILE JMH COMPOSE_PROJECT_NAME \
  $(shell sed -n 's/^\([A-Z][A-Z0-9_]*\)=.*/\1/p' .env)

DRIVER := host/lab.sh drive
# For maintainers: a tool of the tests' image, on this user's own files.
TOOLS := docker run --rm -u $$(id -u):$$(id -g) -e HOME=/tmp

.PHONY: help ready idle driver up down bench run capacity explain sweep compare gate report density jmh toxics toxic toxics-reset ref doctor test audit dashboards lock clean

# `idle` comes before `ready`, also where MAKEFLAGS says -j.
.NOTPARALLEL:

help:
	@echo 'make VERB [WORD=VALUE …]. All words of a verb: docs/verbs.md'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

# Not a verb of the user's: an engine that answers, the images, and what Compose is told. Wrong words of
# the verb LAB_VERB are refused first.
ready:
	@host/lab.sh ready

# Nor this one: containers are neither built nor changed under a measurement. Looked at again after
# a build, which takes its time.
idle:
	@host/lab.sh idle

# Nor this one: what works on stored results needs the driver, and no lab.
driver: ready
	@host/lab.sh step build-loadgen "the driver's image" build loadgen

up: idle ready ## Start the lab and wait until it is healthy
	@host/lab.sh room
	@host/lab.sh step build "the lab's own images" build
	@host/lab.sh jmx
	@host/lab.sh start

down: ## Stop the lab and remove its containers; results stay
	@host/lab.sh down

clean: ## Remove the lab's images and logs; RUNS=yes: and all runs
	@host/clean.sh

bench: ## Measure a load: CONC=2000 [SERVER= ROUTE= RATE= TARGET=]
	@LAB_VERB=bench $(MAKE) up
	@$(DRIVER) bench

run: ## Run a file of experiments/: EXP=sweep, or RESUME=<run>
	@LAB_VERB=run $(MAKE) up
	@$(DRIVER) run

capacity: ## Find the rate that meets an objective [SERVER=]
	@LAB_VERB=capacity $(MAKE) up
	@$(DRIVER) capacity

explain: ## Prove what limits: CONC=5000 [SERVER= SUSPECT=]
	@LAB_VERB=explain $(MAKE) up
	@$(DRIVER) explain

sweep: ## The same as make run EXP=sweep
	@$(MAKE) run EXP=sweep

compare: ## Faster, slower or no difference: A=<run> B=<run>
	@LAB_VERB=compare $(MAKE) driver
	@host/lab.sh stored compare

gate: ## Worse or not: BASE=<run> CANDIDATE=<run>, or two images
	@LAB_VERB=gate $(MAKE) $(if $(findstring /,$(value BASE)$(value CANDIDATE)),up,driver)
	@host/lab.sh $(if $(findstring /,$(value BASE)$(value CANDIDATE)),drive,stored) gate

report: ## Judge a run again from its stored raw data: RUN=<run>
	@LAB_VERB=report $(MAKE) driver
	@host/lab.sh stored report

density: ## Memory per connection [HOLD=in-flight CONC= SERVER=]
	@$(MAKE) run EXP=density

jmh: ## Benchmark what models are made of [JMH=<benchmark>]
	@LAB_VERB=jmh $(MAKE) idle ready
	@host/lab.sh step build-jmh "the driver's and the benchmarks' images" build loadgen jmh
	@host/lab.sh idle
	@COMPOSE_PROFILES=jmh host/lab.sh facts
	@host/lab.sh alone jmh

toxics: ## Show the toxics in force
	@host/lab.sh need-up
	@$(DRIVER) toxics

toxic: ## Add or change a toxic: TYPE=latency LATENCY=500
	@host/lab.sh need-up
	@$(DRIVER) toxic

toxics-reset: ## Remove every toxic
	@host/lab.sh need-up
	@$(DRIVER) toxics-reset

ref: ## Measure what a second of this machine's CPUs buys now
	@LAB_VERB=ref $(MAKE) idle driver
	@host/lab.sh alone drive ref

doctor: ## Check what this machine and the running lab can do
	@host/lab.sh doctor

# From here on: maintainers' verbs.

test:
	@.ci/test.sh

audit:
	@.ci/audit.sh

dashboards:
	@$(TOOLS) -e PYTHONPATH=/lab/repo/grafana/src -v "$$PWD/grafana:/lab/repo/grafana" -w /lab/repo \
	  concurrency-lab/loadgen-test:local python -m lab_dashboards

lock:
	@$(TOOLS) -v "$$PWD/loadgen:/lab/repo/loadgen" -w /lab/repo/loadgen concurrency-lab/loadgen-test:local ./lock.sh
	@servers/lock.sh
