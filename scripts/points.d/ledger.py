"""raingauge as a ledger of points: servers on a data folder, or on the database of a cluster, and what is measured of them."""

import csv
import datetime
import http.client
import json
import os
import re
import shlex
import signal
import subprocess
import threading
import time
from pathlib import Path

from process import Failure, Server, free_port, wait_until

SERVICES = Path(__file__).resolve().parent.parent / "services"
READY_DEADLINE_S = 300
READY_POLL_S = 0.01
STOP_DEADLINE_S = 120
# The programme and the points of an award of `raingauge lab points`: a balance has to be a multiple of them.
PROGRAMME, POINTS = "lab", 5
PROGRAMME_TEXT = {
    "programme": PROGRAMME, "unit": "points", "timezone": "UTC", "rules": [], "expiry": {"kind": "activity", "months": 6},
}
# So little that balances are read from the disk, or from the memory that the system keeps of it.
SMALL_CACHE_BYTES = 1 << 20
# Past the end of the sixth month after today, and its grace.
AHEAD_DAYS = 400


class Http:
    """One connection, over which requests follow each other."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def ask(self, method, path, body=None):
        text = None if body is None else json.dumps(body)
        self.connection.request(method, path, text, {"content-type": "application/json"})
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def json(self, method, path, body=None):
        status, text = self.ask(method, path, body)
        if status not in (200, 201):
            raise Failure(f"{method} {path} answered {status}: {text.decode()[:400]}")
        return json.loads(text)


class Ledger:
    """A process of raingauge that keeps points, started again on the same data as often as is wanted."""

    def __init__(self, binary, folder, cores, settings=None, role=None):
        self.binary, self.folder = binary, Path(folder)
        self.server_core, self.client_core = cores
        self.settings, self.role = settings or {}, role
        self.server, self.starts = None, 0

    def start(self, **settings):
        """Starts it, and returns the seconds until it was ready."""
        port = free_port()
        self.starts += 1
        changed = {**self.settings, **settings}
        words = ["env", *(f"RAINGAUGE__{name.upper()}={value}" for name, value in changed.items())]
        words += ["taskset", "-c", self.server_core, self.binary, "serve", "--data-dir", self.folder / "data"]
        words += ["--listen", f"127.0.0.1:{port}", *(["--role", self.role] if self.role else [])]
        self.server = Server(self.folder, f"raingauge-{self.starts}", "raingauge", words, {"http": port})

        began = time.monotonic()
        self.server.spawn()
        while not is_ready(port):
            if not self.server.alive():
                raise Failure(f"raingauge has ended:\n{self.server.log.read_text()[-2000:]}")
            if time.monotonic() - began > READY_DEADLINE_S:
                raise Failure(f"raingauge was not ready in {READY_DEADLINE_S} s")
            time.sleep(READY_POLL_S)
        return time.monotonic() - began

    @property
    def port(self):
        return self.server.ports["http"]

    def stop(self):
        self.end(signal.SIGTERM)

    def end(self, number):
        if self.server and self.server.alive():
            self.server.send(number)
            self.server.process.wait(STOP_DEADLINE_S)

    def lab_words(self, *words):
        return ["taskset", "-c", self.client_core, str(self.binary), "lab", *map(str, words)]

    def lab(self, name, *words):
        """Runs `raingauge lab points`, and returns what it measured."""
        path = self.folder / f"{name}.json"
        subprocess.run(
            self.lab_words("points", "--server", f"127.0.0.1:{self.port}", "--json", path, *words),
            check=True, stdout=subprocess.DEVNULL,
        )
        return json.loads(path.read_text())

    def prepare(self):
        """Saves the programme, and waits until it is in force."""
        client = Http(self.port)
        client.json("POST", "/v1/points/programmes", PROGRAMME_TEXT)
        award = {"awards": [{"programme": PROGRAMME, "member": "m-0", "key": "in-force", "points": POINTS}]}

        def is_in_force():
            return "error" not in client.json("POST", "/v1/points/awards", award)["results"][0]

        wait_until(is_in_force, 60, "the programme was not in force")

    def fill(self, members):
        """Awards each member once, as opening balances, so that all wallets are there."""
        path = self.folder / "balances.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["programme", "member", "points"])
            writer.writerows((PROGRAMME, f"m-{member}", POINTS) for member in range(members))
        words = ["taskset", "-c", self.client_core, self.binary, "points", "import", path, "--json"]
        server = ["--server", f"http://127.0.0.1:{self.port}"]
        line = subprocess.run([*map(str, words), *server], check=True, capture_output=True, text=True).stdout
        if json.loads(line)["awarded"] != members:
            raise Failure(f"{members} wallets were to be made, and the import said {line}")
        path.unlink()

    def verify(self):
        """Computes the stopped ledger again from its journal; a difference is a failure."""
        words = [str(self.binary), "points", "verify", "--data-dir", str(self.folder / "data")]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure(f"points verify: {done.stdout}{done.stderr}")


def is_ready(port):
    try:
        return Http(port).ask("GET", "/readyz")[0] == 200
    except OSError:
        return False


def in_process(command, folder, members, awards):
    """Awards by turns of 2,000 through the engine alone: the bench `books`."""
    settings = {"WALLETS": members, "AWARDS": awards, "RUNS": "engine", "FOLDER": folder}
    environment = {**os.environ, **{f"RAINGAUGE_BENCH_{name}": str(value) for name, value in settings.items()}}
    Path(folder).mkdir(parents=True)
    done = subprocess.run([*command], env=environment, check=True, capture_output=True, text=True)
    found = re.search(r"^engine +(\d+) awards/s +turn p50 +([\d.]+) p99 +([\d.]+)", done.stdout, re.MULTILINE)
    if not found:
        raise Failure(f"the bench said {done.stdout!r}")
    return {"awards_per_s": float(found[1]), "turn_p50_ms": float(found[2]), "turn_p99_ms": float(found[3])}


def awards_and_balances(ledger, members, skew, batches, seconds):
    """Awards in batches and one at a time, then balances of a server that has just begun and has a small cache."""
    common = ["--members", members, "--skew", skew, "--seconds", seconds]
    found = {"awards": []}
    for batch in batches:
        report = ledger.lab(f"batches-{batch}", *common, "--batches", batch, "--connections", 32)
        found["awards"] += report["awards"]
        found["balances_32"] = report["balances"]

    ledger.stop()
    ledger.start(points__cache_bytes=SMALL_CACHE_BYTES)
    report = ledger.lab("balances", *common, "--batches", 1, "--connections", 1)
    found["balances_1"], found["one_client"] = report["balances"], report["awards"][0]
    return found


def recovery(ledger, members, seconds, rounds):
    """Kills the server under load, and starts it again. All that it had answered has to be there."""
    acknowledged, took = {}, []
    for round_number in range(rounds):
        address = f"127.0.0.1:{ledger.port}"
        words = ["points", "--server", address, "--members", members, "--batches", 100, "--seconds", seconds * 10]
        load = subprocess.Popen(ledger.lab_words(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        noting = threading.Thread(target=award_until_killed, args=(ledger.port, round_number, acknowledged))
        noting.start()
        # The load runs for ten times as long, so the server is killed under it.
        time.sleep(seconds)
        is_early = load.poll() is not None
        ledger.end(signal.SIGKILL)
        noting.join()
        load.kill()
        load.wait()
        if is_early:
            raise Failure("the load ended before the server was killed")

        took.append(ledger.start())
        client = Http(ledger.port)
        for key, entry in acknowledged.items():
            entries = client.json("GET", f"/v1/points/entries?programme={PROGRAMME}&key={key}")["entries"]
            if not entries:
                raise Failure(f"the award {key} was answered with {entry}, and is lost")
    ledger.stop()
    ledger.verify()
    return {"seconds": took, "acknowledged": len(acknowledged)}


def award_until_killed(port, round_number, acknowledged):
    client, number = Http(port), 0
    while True:
        key = f"kill-{round_number}-{number}"
        award = {"programme": PROGRAMME, "member": f"k-{number % 100}", "key": key, "points": POINTS}
        try:
            result = client.json("POST", "/v1/points/awards", {"awards": [award]})["results"][0]
        except (OSError, http.client.HTTPException):
            return
        acknowledged[key] = result["entry"]
        number += 1


def expiry(ledger, seconds):
    """Starts the server when all points have expired, and waits until that is written down, with awards beside it.

    The time is that from the start of the server: it begins to sweep by itself, before it is asked to."""
    ledger.stop()
    now = datetime.datetime.now(datetime.UTC)
    ahead, now = (f"{when:%Y-%m-%dT%H:%M:%SZ}" for when in (now + datetime.timedelta(days=AHEAD_DAYS), now))
    began = time.monotonic()
    ledger.start(clock__experiment=f"{ahead} at {now} times 1", clock__ahead_days_max=36_600)
    sweep = ledger.lab("sweep", "--sweep", "--seconds", seconds)["sweep"]
    return {"seconds": time.monotonic() - began, "live": sweep["live"]}


def on_mariadb(binary, folder, cores):
    """A process of a cluster, whose ledger is in MariaDB. Kafka and Cassandra are there because a cluster needs them."""
    servers = Path(folder) / "servers"
    words = ["start", servers, "--cassandra", "1", "--kafka", "--mariadb", "--heap", "512"]
    subprocess.run(["taskset", "-c", cores[0], SERVICES, *words], check=True, stdout=subprocess.DEVNULL)
    pairs = (line.split("=", 1) for line in (servers / "env").read_text().splitlines())
    place = {name.removeprefix("RAINGAUGE_TEST_"): "".join(shlex.split(value)) for name, value in pairs}
    settings = {
        "cluster__engines": "cluster", "cluster__catalog": "mysql", "cql__contact_points": place["CQL"],
        "cql__keyspace": "bench_points", "cql__replication": "{'class': 'SimpleStrategy', 'replication_factor': 1}",
        "kafka__brokers": place["KAFKA"], "kafka__topic": "bench-points", "kafka__dead_letter_topic": "bench-points-dead",
        "kafka__replication": "1", "cql__request_timeout_ms": "60000", "mysql__url": place["MYSQL"],
        "points__enabled": "true", "portal__sign_in": "false",
    }
    environment = {**os.environ, **{f"RAINGAUGE__{name.upper()}": value for name, value in settings.items()}}
    subprocess.run([str(binary), "migrate"], check=True, env=environment, stdout=subprocess.DEVNULL)
    return Ledger(binary, folder, cores, settings, role="portal")
