"""Server processes by id: started, looked at, signalled and stopped, each described by one file, FOLDER/state/NAME.json."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

# Below what Linux takes for outgoing connections, so that the port of a server that is down stays free for it.
PORT_FIRST, PORT_LAST = 10_000, 29_999
POLL_S = 0.05
READY_DEADLINE_S = 60

# Set when one of several servers that start beside each other has failed: nobody need wait for the others.
abandoned = threading.Event()


class Failure(Exception):
    """An error for the person at the terminal, printed without a stack."""


def free_port(addresses=("127.0.0.1",), taken=set()):
    """A port that is free on all addresses and was not given out before by this process."""
    for _ in range(1_000):
        port = random.randint(PORT_FIRST, PORT_LAST)
        if port not in taken and all(can_bind(address, port) for address in addresses):
            taken.add(port)
            return port
    raise Failure("no free port was found")


def can_bind(address, port):
    with socket.socket() as listener:
        try:
            listener.bind((address, port))
            return True
        except OSError:
            return False


def wait_until(condition, deadline_s, what):
    """Polls until the condition holds; what it last complained about goes into the error."""
    deadline, complaint = time.monotonic() + deadline_s, ""
    while time.monotonic() < deadline:
        try:
            if condition():
                return
        except (OSError, ValueError) as error:
            complaint = f": {error}"
        time.sleep(POLL_S)
    raise Failure(f"{what} in {deadline_s:.0f} s{complaint}")


class Server:
    """One process: how it is started again, where it listens, and the process id, if it was started."""

    def __init__(self, folder, name, kind, command, ports, address="127.0.0.1", options=None):
        self.folder = Path(folder)
        self.name, self.kind, self.command = name, kind, [str(word) for word in command]
        self.ports, self.address, self.options = ports, address, options or {}
        self.process = self.pid = self.started_ticks = None

    @classmethod
    def load(cls, folder, name):
        path = Path(folder) / "state" / f"{name}.json"
        if not path.is_file():
            raise Failure(f"{folder} has no server {name}; it has {' '.join(names(folder)) or 'none'}")
        fields = json.loads(path.read_text())
        pid, ticks = fields.pop("pid"), fields.pop("started_ticks")
        server = cls(folder, name, **fields)
        server.pid, server.started_ticks = pid, ticks
        return server

    @property
    def log(self):
        return self.folder / "logs" / f"{self.name}.log"

    @property
    def data(self):
        return self.folder / "data" / self.name

    def save(self):
        keys = ("kind", "command", "ports", "address", "options", "pid", "started_ticks")
        text = json.dumps({key: getattr(self, key) for key in keys}, indent=1)
        path = self.folder / "state" / f"{self.name}.json"
        new = path.with_suffix(".new")
        new.write_text(text)
        new.rename(path)

    def spawn(self):
        """Starts the process in a session of its own: an interrupt at the terminal is for its caller to handle."""
        for part in ("state", "pids", "logs", f"data/{self.name}/tmp"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, cwd=self.data, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, "TMPDIR": str(self.data / "tmp")},
            )
        self.pid = self.process.pid
        self.started_ticks = stat(self.pid)[1]
        (self.folder / "pids" / self.name).write_text(f"{self.pid}\n")
        self.save()

    def state(self):
        """running, paused or stopped. An id that another process got later counts as stopped."""
        letter, ticks = stat(self.pid)
        if letter in "ZX" or ticks != self.started_ticks:
            return "stopped"
        return "paused" if letter == "T" else "running"

    def alive(self):
        return self.state() != "stopped"

    def send(self, number):
        if not self.alive():
            raise Failure(f"{self.name} is not running")
        os.kill(self.pid, number)

    def stop(self, deadline_s):
        """Asks with SIGTERM and forces with SIGKILL after the deadline; 0 forces at once."""
        if self.alive() and deadline_s > 0:
            # A paused process could not hear the request.
            os.kill(self.pid, signal.SIGCONT)
            os.kill(self.pid, signal.SIGTERM)
            try:
                wait_until(lambda: not self.alive(), deadline_s, f"{self.name} did not stop")
            except Failure as failure:
                print(f"services: {failure}; killing it", flush=True)
        if self.alive():
            os.kill(self.pid, signal.SIGKILL)
            wait_until(lambda: not self.alive(), 30, f"{self.name} outlived SIGKILL")
        (self.folder / "pids" / self.name).unlink(missing_ok=True)

    def wait_for(self, condition, deadline_s, what):
        """Waits for an answer of this server, and gives up as soon as its process has ended."""

        def answered():
            if abandoned.is_set():
                raise Failure(f"{self.name} was not waited for")
            if not self.alive():
                raise Failure(f"{self.name} ended while it started, see {self.log}\n{self.log_tail()}")
            return condition()

        wait_until(answered, deadline_s, f"{self.name} {what}, see {self.log};")

    def log_tail(self, lines=15):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def resident_mb(self):
        try:
            for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) // 1024
        except OSError:
            pass
        return 0


class Raingauge(Server):
    """A raingauge over an empty folder, on a free port, with nothing in its environment but these settings."""

    def __init__(self, binary, folder, settings=None):
        data = Path(folder) / "data/raingauge/data"
        pairs = [f"{name}={value}" for name, value in (settings or {}).items()]
        command = ["env", "-i", *pairs, Path(binary).resolve(), "serve", "--data-dir", data, "--listen", "127.0.0.1:0"]
        super().__init__(folder, "raingauge", "raingauge", command, {})
        self.url = None
        self.spawn()
        try:
            self.wait_for(self.has_said_where, READY_DEADLINE_S, "did not say where it listens")
        except Failure:
            self.stop(0)
            raise

    def has_said_where(self):
        found = re.search(r"http://127\.0\.0\.1:\d+", self.log.read_text(errors="replace"))
        self.url = found and found[0]
        return found

    def end(self, deadline_s):
        """Asks it to end. One that has ended before, or ends with an error, has failed."""
        has_ended = not self.alive()
        self.stop(deadline_s)
        if has_ended or self.process.wait() != 0:
            raise Failure(f"it ended by itself or badly, with status {self.process.returncode}:\n{self.log_tail(60)}")


def stat(pid):
    """The state letter of a process and when it started, in ticks since boot: together with the id, its identity."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return fields[0], int(fields[19])
    except OSError:
        return "X", None


def names(folder):
    return sorted(path.stem for path in (Path(folder) / "state").glob("*.json"))


def servers(folder):
    return [Server.load(folder, name) for name in names(folder)]
