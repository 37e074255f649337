"""Gets what is missing from package registries: programs from Debian, jars from Maven Central into a cache."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from contextlib import contextmanager
from pathlib import Path

from process import Failure

HERE = Path(__file__).resolve().parent
NAMES = ["cassandra", "elasticmq", "kafka", "mariadb", "mysql", "redis"]

# Program by program, the Debian package that has it. Only the cores of MariaDB: the package mariadb-server would also
# set up a service of the system, which nobody here wants.
PACKAGES = {
    "cassandra": {"java": "openjdk-17-jre-headless", "mvn": "maven", "openssl": "openssl"},
    "elasticmq": {"java": "openjdk-17-jre-headless", "mvn": "maven"},
    "kafka": {"java": "openjdk-17-jre-headless", "mvn": "maven"},
    "mariadb": {
        "mariadbd": "mariadb-server-core",
        "mariadb-install-db": "mariadb-server-core",
        # What mariadb-install-db calls.
        "my_print_defaults": "mariadb-client-core",
    },
    "mysql": {"mvn": "maven"},
    "redis": {"redis-server": "redis-server", "redis-cli": "redis-tools"},
}
JARS = ("cassandra", "elasticmq", "kafka", "mysql")
# Those that Java runs. The jar of MySQL carries a program, which wants two libraries of the system.
JAVA = ("cassandra", "elasticmq", "kafka")
MYSQL_PROGRAMS = "mysql-Linux-amd64.tar.gz"
LIBRARIES = {"mysql": {"libaio.so.1": "libaio1", "libnuma.so.1": "libnuma1"}}
COPY_JARS = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


def cache():
    """Where jars and class-data archives are kept: outside the clone, for every clone."""
    given = os.environ.get("RAINGAUGE_SERVICES_CACHE")
    folder = Path(given) if given else Path.home() / ".cache/raingauge/services"
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


@contextmanager
def locked():
    """One installation at a time; another waits, and then finds everything there."""
    with (cache() / "install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def program(name):
    """The path of a program, also where only root has its folder on the search path."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def java():
    """Java 17, on which Cassandra 5.0 and Kafka 4 both run; Cassandra does not start on newer ones as it is."""
    candidates = [os.path.join(os.environ.get("JAVA_HOME", "/nowhere"), "bin/java"), program("java")]
    candidates += sorted(map(str, Path("/usr/lib/jvm").glob("java-17-*/bin/java")))
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK):
            said = subprocess.run([candidate, "-version"], capture_output=True, text=True, check=False).stderr
            if re.search(r'version "17\b', said):
                return candidate
    return None


def missing_packages(wanted):
    packages = []
    for name in wanted:
        for needed, package in PACKAGES[name].items():
            if needed == "mvn" and jars_are_there(name):
                continue
            if not (java() if needed == "java" else program(needed)):
                packages.append(package)
        packages += [package for file, package in LIBRARIES.get(name, {}).items() if not has_library(file)]
    return sorted(set(packages))


def has_library(file):
    """Whether programs find a library of the system."""
    said = subprocess.run([program("ldconfig") or "ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    return f"\t{file} " in said


def install_packages(packages):
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    if not program("apt-get") or os.geteuid() != 0:
        raise Failure(f"please install these first, or run this as root on Debian: {' '.join(packages)}")
    print(f"services: installing {' '.join(packages)}", flush=True)
    # RUNLEVEL=1 keeps Debian from starting them as services. The time-out is for a lock that another apt-get holds.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for words in (["apt-get", "update", "-qq"], command):
        words[1:1] = ["-o", "DPkg::Lock::Timeout=600"]
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        run = subprocess.run(words, env=environment, check=False, **output)
        if run.returncode != 0:
            raise Failure(f"`{' '.join(words)}` failed:\n{run.stdout[-2000:]}")


def library(name):
    """The folder of a server's jars. A change of its pom.xml is another folder."""
    version = hashlib.sha256((HERE / f"{name}-pom.xml").read_bytes()).hexdigest()[:12]
    return cache() / f"{name}-{version}"


def jars_are_there(name):
    return name not in JARS or library(name).is_dir()


def classpath(name):
    # In a fixed order, which a class-data archive depends on.
    return ":".join(sorted(map(str, library(name).glob("*.jar"))))


def install_jars(name):
    target = library(name)
    print(f"services: getting the jars of {name} from Maven Central", flush=True)
    with tempfile.TemporaryDirectory(dir=cache()) as scratch:
        # Maven reads a folder's pom.xml, and writes beside it.
        shutil.copy(HERE / f"{name}-pom.xml", f"{scratch}/pom.xml")
        command = ["mvn", "--quiet", "--batch-mode", "-Dstyle.color=never", "-f", f"{scratch}/pom.xml", COPY_JARS]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={scratch}/jars"]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if run.returncode != 0:
            raise Failure(f"Maven failed:\n{run.stdout[-2000:]}")
        if name == "mysql":
            unpack_mysql(Path(scratch) / "jars")
        # There as a whole or not at all.
        os.rename(f"{scratch}/jars", target)


def unpack_mysql(folder):
    """Unpacks the server for Linux, which lies in the jar beside those for other systems."""
    jar = next(folder.glob("*.jar"))
    with zipfile.ZipFile(jar) as files, files.open(MYSQL_PROGRAMS) as programs:
        with tarfile.open(fileobj=programs, mode="r:gz") as unpacked:
            unpacked.extractall(folder)
    jar.unlink()


def mysqld():
    """The path of MySQL's server."""
    return library("mysql") / "bin/mysqld"


def archive(name):
    """The class-data archive of a server, which halves its start; another Java or other jars want another one."""
    said = subprocess.run([java(), "-version"], capture_output=True, text=True, check=True).stderr
    version = hashlib.sha256(said.encode()).hexdigest()[:8]
    return cache() / f"{library(name).name}-{version}.jsa"


def install(wanted, train):
    """Installs what is missing. `train(name, path)` makes a class-data archive by running a server once."""
    for name in wanted:
        if name not in NAMES:
            raise Failure(f"there is no server {name}; there are {' '.join(NAMES)}")
    with locked():
        if packages := missing_packages(wanted):
            install_packages(packages)
            if still := missing_packages(wanted):
                raise Failure(f"still missing after the installation of {' '.join(still)}: is Java 17 to be had here?")
        for name in wanted:
            if not jars_are_there(name):
                install_jars(name)
            if name in JAVA and not archive(name).exists():
                print(f"services: making the class-data archive of {name}", flush=True)
                train(name, archive(name))
