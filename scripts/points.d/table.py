"""One table of all that was measured: a line for each figure, a column for each system, and raingauge as a multiple of each."""

# What raingauge is compared with, in the order of the columns.
PEERS = {"postgresql": "PostgreSQL", "mariadb": "MariaDB", "sqlite": "SQLite", "tigerbeetle": "TigerBeetle"}
LIVE_P99_MS, EXPIRY_S, RESTART_S, BALANCE_P99_MS, SINGLE_P99_MS = 20, 300, 2, 1, 10


class Line:
    """A figure: its unit, whether less is better, the goal, and its value for each system that has one."""

    def __init__(self, what, unit, values, goal=None, less=False):
        self.what, self.unit, self.goal, self.less = what, unit, goal, less
        self.values = {system: value for system, value in values.items() if value is not None}

    def verdict(self):
        if self.goal is None or "raingauge" not in self.values:
            return "", ""
        found = self.values["raingauge"]
        is_met = found < self.goal if self.less else found >= self.goal
        return f"{'<' if self.less else '≥'} {self.goal:,}", "yes" if is_met else "no"

    def multiple(self, peer):
        own, other = self.values.get("raingauge"), self.values.get(peer)
        if not own or not other:
            return ""
        return f"{other / own if self.less else own / other:.1f}"

    def value(self, system):
        if system not in self.values:
            return ""
        value = self.values[system]
        return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def of_batch(found, system, batch, figure):
    """A figure of a system at a size of batches, if it was measured."""
    for report in found.get(system, {}).get("awards", []):
        if report["batch"] == batch:
            return report[figure]
    return None


def lines(found, members, expired, batches):
    """The lines of the table. `found` is what each system measured, by name."""
    systems = ["raingauge", *PEERS]
    own = found.get("raingauge", {})
    table = []

    def add(what, unit, value, goal=None, less=False):
        values = value if isinstance(value, dict) else {"raingauge": value}
        line = Line(what, unit, values, goal, less)
        if line.values:
            table.append(line)

    in_process = found.get("in-process", {}).get("awards_per_s")
    add(f"in process, turns of 2,000, {members:,} wallets", "awards/s", in_process, 50_000 if members <= 1_000_000 else 20_000)
    for batch in sorted(batches, reverse=True):
        what = "one at a time, 32 clients" if batch == 1 else f"batches of {batch:,}, 32 clients"
        rates = {system: of_batch(found, system, batch, "awards_per_s") for system in systems}
        add(what, "awards/s", rates, 30_000 if batch == 100 else None)
    for share in ("p50", "p99"):
        latencies = {system: of_batch(found, system, 1, f"{share}_ms") for system in systems}
        add(f"one at a time, 32 clients, {share}", "ms", latencies, SINGLE_P99_MS if share == "p99" else None, less=True)

    for share in ("p50", "p99"):
        goal = BALANCE_P99_MS if share == "p99" else None
        add(f"a balance from the disk, 1 connection, {share}", "ms", own.get(f"balance_{share}_ms"), goal, less=True)
    killed = found.get("recovery", {})
    add(f"ready after SIGKILL under load, worst of {len(killed.get('seconds', []))}", "s",
        max(killed.get("seconds", []), default=None), RESTART_S, less=True)
    swept = found.get("expiry", {})
    add(f"{expired:,} wallets expired", "s", swept.get("seconds"), EXPIRY_S, less=True)
    for which, at in (("median", lambda p99s: p99s[len(p99s) // 2]), ("worst", max)):
        live = swept.get("live_p99_ms")
        add(f"awards beside that, {which} p99 of 2 s", "ms", live and at(live), LIVE_P99_MS, less=True)
    for batch in sorted(batches, reverse=True):
        if batch > 1:
            rate = of_batch(found, "cluster", batch, "awards_per_s")
            what = f"the ledger in MariaDB, batches of {batch:,}, 4 clients"
            add(what, "awards/s", rate, 5_000)
    return table


def text(table):
    """Markdown. A multiple above one says that raingauge does more, or takes less time."""
    peers = [peer for peer in PEERS if any(peer in line.values for line in table)]
    head = ["what", "unit", "goal", "met", "raingauge"]
    head += [column for peer in peers for column in (PEERS[peer], "×")]
    rows = ["| " + " | ".join(head) + " |", "|" + "|".join(["---", "---"] + ["--:"] * (len(head) - 2)) + "|"]
    for line in table:
        cells = [line.what, line.unit, *line.verdict(), line.value("raingauge")]
        cells += [cell for peer in peers for cell in (line.value(peer), line.multiple(peer))]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)
