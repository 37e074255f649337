"""Gets the systems that raingauge is compared with from package registries, into the cache of scripts/services."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import install
from process import Failure

HERE = Path(__file__).resolve().parent
NAMES = ["redis", "postgresql", "clickhouse", "duckdb", "questdb", "victoriametrics", "cassandra"]
QUESTDB = "9.3.4"
COPY_JAR = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
VICTORIAMETRICS = "github.com/VictoriaMetrics/VictoriaMetrics"
IN_PYTHON = ("clickhouse", "duckdb")


def postgres_programs():
    """The folder with the programs of the newest PostgreSQL, which Debian keeps off the search path."""
    found = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    return max((path.parent for path in found), key=lambda path: int(path.parent.name), default=None)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def python():
    """The interpreter that has chdb and DuckDB. Other versions of them are another folder."""
    return install.cache() / f"peers-python-{digest(HERE / 'requirements.txt')}" / "bin/python"


def questdb_jar():
    return install.cache() / f"questdb-{QUESTDB}.jar"


def victoriametrics():
    return install.cache() / f"victoria-metrics-{digest(HERE / 'victoriametrics.mod')}"


def missing(name):
    """Why a system cannot be started, or nothing."""
    lacks = {
        "redis": lambda: not install.program("redis-server"),
        "postgresql": lambda: not postgres_programs(),
        "clickhouse": lambda: not python().exists(),
        "duckdb": lambda: not python().exists(),
        "questdb": lambda: not (questdb_jar().exists() and install.java()),
        "victoriametrics": lambda: not victoriametrics().exists(),
        "cassandra": lambda: not (install.java() and install.jars_are_there("cassandra")),
    }
    return f"it is not installed; scripts/peers install {name} gets it" if lacks[name]() else None


def run(words, **options):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode != 0:
        raise Failure(f"`{' '.join(map(str, words))}` failed:\n{done.stdout[-2000:]}")


def get(name, train):
    if missing(name) is None:
        return
    print(f"peers: installing {name}", file=sys.stderr, flush=True)
    if name == "redis":
        install.install(["redis"], train)
    elif name == "cassandra":
        install.install(["cassandra"], train)
    elif name == "postgresql":
        install.install_packages(["postgresql"])
    elif name in IN_PYTHON:
        get_python()
    elif name == "questdb":
        get_questdb()
    else:
        get_victoriametrics()


def get_python():
    if subprocess.run([sys.executable, "-c", "import ensurepip, pip, venv"], capture_output=True, check=False).returncode != 0:
        install.install_packages(["python3-pip", "python3-venv"])
    target = python().parent.parent
    # Programs of such a folder know its path, so that it cannot be made elsewhere and moved. One that is left half
    # made has no interpreter at its name.
    target.mkdir(parents=True, exist_ok=True)
    made = target / "bin/python3"
    run([sys.executable, "-m", "venv", "--without-pip", str(target)])
    (target / "bin/python").rename(target / "bin/python.new")
    site = subprocess.run([str(made), "-c", "import site; print(site.getsitepackages()[0])"], capture_output=True, text=True, check=True)
    run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", site.stdout.strip(),
         "--upgrade", "-r", str(HERE / "requirements.txt")])
    (target / "bin/python.new").rename(target / "bin/python")


def get_questdb():
    packages = [] if install.java() else ["openjdk-17-jre-headless"]
    packages += [] if install.program("mvn") else ["maven"]
    if packages:
        install.install_packages(packages)
    with tempfile.TemporaryDirectory(dir=install.cache()) as scratch:
        run(["mvn", "--quiet", "--batch-mode", COPY_JAR, f"-Dartifact=org.questdb:questdb:{QUESTDB}",
             f"-DoutputDirectory={scratch}"])
        os.rename(f"{scratch}/questdb-{QUESTDB}.jar", questdb_jar())


def get_victoriametrics():
    go = install.program("go") or shutil.which("go", path="/usr/local/go/bin")
    wanted = re.search(r"^go (\d+)\.(\d+)", (HERE / "victoriametrics.mod").read_text(), re.M)
    said = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout if go else ""
    found = re.match(r"go(\d+)\.(\d+)", said)
    if not found or tuple(map(int, found.groups())) < tuple(map(int, wanted.groups())):
        raise Failure(f"VictoriaMetrics is built by Go {'.'.join(wanted.groups())} or later: please install it")
    with tempfile.TemporaryDirectory(dir=install.cache()) as scratch:
        shutil.copy(HERE / "victoriametrics.mod", f"{scratch}/go.mod")
        run([go, "build", "-mod=mod", "-o", f"{scratch}/built", f"{VICTORIAMETRICS}/app/victoria-metrics"], cwd=scratch,
            env={**os.environ, "GOFLAGS": "-buildvcs=false"})
        os.rename(f"{scratch}/built", victoriametrics())
