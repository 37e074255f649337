.PHONY: demo

# Builds raingauge and counts real public events; the page is at http://127.0.0.1:8080 until it is interrupted.
demo:
	cargo build --release --locked
	target/release/raingauge demo

.PHONY: test test-embedded lint bench

# Every test. The engines of this version are embedded, so these are all there are; tests against real servers join here.
test: test-embedded

# The tests that need nothing but this clone.
test-embedded:
	cargo test --workspace --locked

# Formatting, lints, and what scripts/check-structure looks at: arrows between crates, documents beside the code.
lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	scripts/check-structure

# Range counts inside the process, then raingauge beside Redis, PostgreSQL and SQLite (docs/benchmarks.md).
# Installs those servers where they are missing, and wants two cores for itself for about ten minutes.
bench:
	cargo bench --locked -p raingauge-embedded --bench range_count
	scripts/bench
