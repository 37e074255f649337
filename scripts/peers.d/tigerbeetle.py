#!/usr/bin/env python3
"""Awards as transfers of TigerBeetle, from one account of the programme to those of members.

  tigerbeetle.py SERVER FOLDER MEMBERS SKEW SECONDS JSON

Formats a data file of one replica, starts the server on SERVER_CORE (never with --development, which turns off direct I/O),
creates the accounts, and sends batches of the largest size that the server takes, one at a time, as its client does. Each
answer is checked, and the balance of the programme afterwards.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import tigerbeetle as tb

# The most events of one message.
BATCH = 8_189
POINTS = 5
PROGRAMME = 2**64
READY_S = 30


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def draw(members, skew):
    """The number of a member, evenly or by the continuous form of Zipf's law."""
    if skew == 0:
        return random.randrange(members)
    last = members + 1.0
    share = random.random()
    if abs(skew - 1.0) < 1e-9:
        rank = last**share
    else:
        rank = (1.0 + share * (last ** (1.0 - skew) - 1.0)) ** (1.0 / (1.0 - skew))
    return min(int(rank) - 1, members - 1)


def account(number, flags=0):
    return tb.Account(id=number, ledger=1, code=1, flags=flags)


def create_accounts(client, members):
    numbers = [PROGRAMME, *range(1, members + 1)]
    for first in range(0, len(numbers), BATCH):
        errors = client.create_accounts([account(number) for number in numbers[first : first + BATCH]])
        if errors:
            raise SystemExit(f"tigerbeetle: an account was refused: {errors[0]}")


def transfers(members, skew):
    return [
        tb.Transfer(
            id=tb.id(), debit_account_id=PROGRAMME, credit_account_id=1 + draw(members, skew), amount=POINTS, ledger=1, code=1,
        )
        for _ in range(BATCH)
    ]


def measure(client, members, skew, seconds):
    # Drawn beforehand: the client, not the server, would be measured otherwise.
    took, sent = [], 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        batch = transfers(members, skew)
        began = time.perf_counter()
        errors = client.create_transfers(batch)
        took.append(time.perf_counter() - began)
        if errors:
            raise SystemExit(f"tigerbeetle: a transfer was refused: {errors[0]}")
        sent += BATCH
    return took, sent


def main():
    server, folder, members, skew, seconds, output = sys.argv[1:]
    members, skew, seconds = int(members), float(skew), float(seconds)
    data = Path(folder)
    data.mkdir(parents=True)
    port = free_port()
    file = str(data / "0_0.tigerbeetle")
    subprocess.run([server, "format", "--cluster=0", "--replica=0", "--replica-count=1", file], check=True, capture_output=True)
    core = os.environ.get("SERVER_CORE", "0")
    with (data / "log").open("w") as log:
        process = subprocess.Popen(
            ["taskset", "-c", core, server, "start", f"--addresses=127.0.0.1:{port}", file], stdout=log, stderr=log,
        )
    try:
        with tb.ClientSync(cluster_id=0, replica_addresses=str(port)) as client:
            create_accounts(client, members)
            took, sent = measure(client, members, skew, seconds)
            found = client.lookup_accounts([PROGRAMME])[0].debits_posted
        if found != sent * POINTS:
            raise SystemExit(f"tigerbeetle: {found} points were transferred, and {sent * POINTS} sent")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(READY_S)
    took.sort()
    awards_per_s = sent / sum(took)
    p50_ms, p99_ms = (1e3 * took[int(len(took) * share)] for share in (0.5, 0.99))
    print(f"batches of {BATCH}, 1 connection: {awards_per_s:,.0f} awards/s; ms p50 {p50_ms:.2f} p99 {p99_ms:.2f}")
    Path(output).write_text(json.dumps([{"batch": BATCH, "awardsPerS": awards_per_s, "p50Ms": p50_ms, "p99Ms": p99_ms}]))


if __name__ == "__main__":
    main()
