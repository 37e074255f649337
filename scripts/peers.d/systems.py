"""The systems that raingauge is compared with: how each is set up in its folder, started, and known to answer."""

import os
import pwd
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from string import Template

import getting
import install
import kinds
import probes
from process import Failure, Server, free_port

HERE = Path(__file__).resolve().parent
START_DEADLINE_S = 60
# A heap as for a machine that serves this alone, for the systems that run on Java.
HEAP_MB = 1024
# Memory as for a machine that serves this alone; durability as it comes.
POSTGRES_SETTINGS = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = ''
shared_buffers = 2GB
max_wal_size = 8GB
work_mem = 32MB
max_connections = 120
synchronous_commit = on
jit = off
"""


def pinned(command):
    """The servers' core; their clients have another one."""
    return ["taskset", "-c", os.environ.get("SERVER_CORE", "0"), *command]


def answered(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return answer.read().decode()


def started(folder, name, command, ports, ready):
    server = Server(folder, name, name, pinned(command), ports)
    server.spawn()
    server.wait_for(lambda: ready(server), START_DEADLINE_S, "did not answer")
    return server


def said(server, version, disk, **more):
    return {"version": version, "port": next(iter(server.ports.values())), "pids": [server.pid], "disk": str(disk), **more}


def enterable(folder, entry):
    """Fails when an account cannot reach a folder: its server would only say that permission is denied."""
    for part in folder.parents:
        stat = part.stat()
        shift = 6 if stat.st_uid == entry.pw_uid else 3 if stat.st_gid == entry.pw_gid else 0
        if not stat.st_mode >> shift & 1:
            raise Failure(f"the account {entry.pw_name} cannot enter {part}: chmod o+x {part}, or use another folder")


def redis(folder):
    port = free_port()
    data = Path(folder) / "data/redis"
    words = [install.program("redis-server"), "--bind", "127.0.0.1", "--port", port, "--save", ""]
    words += ["--appendonly", "yes", "--appendfsync", "everysec"]
    server = started(folder, "redis", words, {"redis": port}, lambda _: probes.redis(port, "PING") == "PONG")
    version = re.search(r"redis_version:(\S+)", probes.redis(port, "INFO", "server"))[1]
    return said(server, version, data / "appendonlydir")


def postgresql(folder):
    programs, port = getting.postgres_programs(), free_port()
    home = Path(folder) / "data/postgresql"
    home.mkdir(parents=True)
    # PostgreSQL refuses to run as root.
    as_user = []
    user = pwd.getpwuid(os.getuid()).pw_name
    if os.geteuid() == 0:
        found = {entry.pw_name for entry in pwd.getpwall()}
        entry = pwd.getpwnam("postgres" if "postgres" in found else "nobody")
        user, as_user = entry.pw_name, ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
        for part in (home, home / "tmp"):
            part.mkdir(exist_ok=True)
            os.chown(part, entry.pw_uid, entry.pw_gid)
        for part in (Path(folder), Path(folder) / "data"):
            part.chmod(0o711)
        enterable(home, entry)
    cluster = home / "cluster"
    words = [programs / "initdb", "-D", cluster, "-U", user, "-A", "trust", "--locale=C", "-E", "UTF8"]
    getting.run([*as_user, *map(str, words)], cwd=home)
    with (cluster / "postgresql.conf").open("a") as settings:
        settings.write(POSTGRES_SETTINGS.format(port=port))
    # psql asks as a client would; the server answers it when it lets clients in.
    asked = [str(programs / "psql"), "-h", "127.0.0.1", "-p", str(port), "-U", user, "-d", "postgres", "-Atc", "SHOW server_version"]
    # Where the shell of its user may not look, it complains; the answer is what counts.
    ask = lambda: subprocess.run(asked, capture_output=True, text=True, check=False, cwd="/")  # noqa: E731
    command = [*as_user, str(programs / "postgres"), "-D", str(cluster)]
    server = started(folder, "postgresql", command, {"postgresql": port}, lambda _: ask().returncode == 0)
    # The write-ahead log is recycled; what stays is in base.
    return said(server, ask().stdout.split()[0], cluster / "base", user=user)


def embedded(folder, name):
    port = free_port()
    data = Path(folder) / "data" / name
    words = [str(getting.python()), str(HERE / "embedded.py"), name, str(port), str(data)]
    server = started(folder, name, words, {name: port}, lambda _: answered(port, "/version"))
    return said(server, answered(port, "/version"), data / "data")


def questdb(folder):
    port = free_port()
    data = Path(folder) / "data/questdb"
    (data / "root/conf").mkdir(parents=True)
    conf = Template((HERE / "questdb.conf").read_text()).substitute(port=port)
    (data / "root/conf/server.conf").write_text(conf)
    words = [install.java(), f"-Xms{HEAP_MB}m", f"-Xmx{HEAP_MB}m", "-XX:+UseParallelGC", "-p", str(getting.questdb_jar())]
    words += ["-m", "io.questdb/io.questdb.ServerMain", "-d", str(data / "root")]
    server = started(folder, "questdb", words, {"questdb": port}, lambda _: answered(port, "/exec?query=SELECT%201"))
    return said(server, getting.QUESTDB, data / "root/db")


def victoriametrics(folder):
    port = free_port()
    data = Path(folder) / "data/victoriametrics"
    # It keeps a month unless told otherwise, and hides the last 30 seconds from questions.
    words = [str(getting.victoriametrics()), f"-storageDataPath={data}/data", f"-httpListenAddr=127.0.0.1:{port}"]
    words += ["-retentionPeriod=1y", "-search.latencyOffset=0s", "-loggerLevel=WARN"]
    server = started(folder, "victoriametrics", words, {"http": port}, lambda _: answered(port, "/health"))
    version = re.search(r"VictoriaMetrics v([\d.]+)", (HERE / "victoriametrics.mod").read_text())[1]
    return said(server, version, data / "data")


def cassandra(folder):
    node = kinds.cassandra_nodes(folder, 1, HEAP_MB, warm=True)[0]
    node.command = pinned(node.command)
    # Time-outs for tests are short. An increment that times out leaves a count that nobody knows, and ends the measurement.
    with (node.data / "cassandra.yaml").open("a") as settings:
        settings.write("counter_write_request_timeout: 30000ms\n")
    kinds.start(node)
    with kinds.cql(node) as session:
        _, answer = session.query("SELECT release_version FROM system.local")
    version = re.search(rb"\d+\.\d+\.\d+", answer)[0].decode()
    return {"version": version, "port": node.ports["cql"], "pids": [node.pid], "disk": str(node.data / "data")}


def start(folder, name):
    """Starts a system. Returns what the lab needs to know of it, or why there is none."""
    if why := getting.missing(name):
        return {"missing": why}
    if (Path(folder) / "state" / f"{name}.json").exists():
        raise Failure(f"{folder} has a {name} already: a comparison wants a new one")
    make = {"redis": redis, "postgresql": postgresql, "questdb": questdb, "victoriametrics": victoriametrics, "cassandra": cassandra}
    try:
        return make[name](folder) if name in make else embedded(folder, name)
    except BaseException:
        stop(folder, [name], keep_logs=True)
        raise


def settle(folder, name):
    """Writes to disk what is only in memory, where that takes a tool."""
    if name == "cassandra":
        getting.run(kinds.nodetool_command(Server.load(folder, "cassandra-1"), ["flush"]))


def stop(folder, wanted, keep_logs=False):
    """Stops systems by process id and removes their data: nothing here is worth keeping."""
    for path in sorted((Path(folder) / "state").glob("*.json")):
        name = path.stem
        if wanted and name.removesuffix("-1") not in wanted:
            continue
        Server.load(folder, name).stop(0)
        path.unlink()
        shutil.rmtree(Path(folder) / "data" / name, ignore_errors=True)
    for rows in Path("/dev/shm").glob("raingauge-peers-*.rows"):
        # Of an engine that is gone; another run may have its own.
        if not Path(f"/proc/{rows.stem.rpartition('-')[2]}").exists():
            rows.unlink(missing_ok=True)
    if not wanted and not keep_logs:
        shutil.rmtree(folder, ignore_errors=True)


def train(name, path):
    """scripts/services makes the archive of Cassandra's classes."""
    services = HERE.parent / "services"
    subprocess.run([sys.executable, str(services), "install", name], check=True, stdout=sys.stderr)
    if not path.exists():
        raise Failure(f"the archive of {name} was not made")
