# make help lists the targets. Everything they build or download lands in bin/ or in Go's and golangci-lint's caches.

WITHPG := go run ./internal/pgserver/withpg --
BENCHTIME ?= 1s
FUZZTIME ?= 30s
STORM ?= 60s

.DEFAULT_GOAL := help

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/cronlatch, static
	CGO_ENABLED=0 go build -trimpath -o bin/cronlatch ./cmd/cronlatch

.PHONY: run
run: build ## start a daemon with two example jobs on an embedded SQLite database
	@[ -e cronlatch.yaml ] || bin/cronlatch init
	bin/cronlatch serve --config cronlatch.yaml --database-url sqlite:cronlatch.db

.PHONY: test
test: ## run all tests beside a private PostgreSQL server, installed first where it is missing
	scripts/test-deps
	$(WITHPG) go test -shuffle=on -timeout 20m ./...

.PHONY: race
race: ## run all tests with the race detector
	scripts/test-deps race
	$(WITHPG) go test -race -shuffle=on -timeout 30m ./...

# The test left out counts the server's processes, and a pooler has its own number of them.
.PHONY: test-pooler
test-pooler: ## run the tests that use PostgreSQL through PgBouncer in transaction mode
	scripts/test-deps
	go run ./internal/pgserver/withpg -bouncer -- go test -count=1 -shuffle=on -skip '^TestPostgresIsLinearizable$$' -timeout 20m $$(scripts/postgres-packages)

.PHONY: test-time-zones
test-time-zones: ## run the tests that deal with the database's times in four time zones
	scripts/test-deps
	scripts/test-time-zones

.PHONY: storm
storm: ## let 100 clients fight for one lock, and for 200, directly and through PgBouncer (STORM=60s each)
	scripts/test-deps
	CRONLATCH_STORM=$(STORM) go test -count=1 -v -run '^TestPostgresStorm$$' -timeout 60m ./locking

.PHONY: bench
bench: ## run the benchmarks (BENCHTIME=1s)
	scripts/test-deps
	$(WITHPG) go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -timeout 30m ./...

.PHONY: fuzz
fuzz: ## fuzz everything that parses, one target after another (FUZZTIME=30s)
	scripts/test-deps
	$(WITHPG) scripts/fuzz $(FUZZTIME)

.PHONY: check-blackhole-100
check-blackhole-100: ## cut 100 lock holders off from the database: each must stop before a rival may start
	scripts/test-deps
	CRONLATCH_FLEET_BLACKHOLES=100 $(WITHPG) go test -count=1 -v -run '^TestBlackHoledHolders$$' -timeout 30m ./internal/fleet

.PHONY: check-calendar
check-calendar: ## compare 60 windows in every zone with a naive scan of the calendar
	CRONLATCH_CALENDAR_WINDOWS=60 go test -count=1 -v -run NaiveScan -timeout 30m ./jobs

.PHONY: lint
lint: ## run golangci-lint and see each import rule fire
	scripts/lint

.PHONY: ci
ci: ## run what CI runs
	bash .ci/run

.PHONY: clean
clean: ## remove what the other targets made in this folder, and the data of make run
	rm -rf bin reports cronlatch.db cronlatch.db-wal cronlatch.db-shm cronlatch.token
	find . -name '*.test' -o -name '*.prof' | xargs rm -f
