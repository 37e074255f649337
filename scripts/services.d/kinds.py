"""The servers: how each is set up in its folder, started, and known to answer."""

import os
import secrets
import shutil
import ssl
import subprocess
from pathlib import Path
from string import Template

import install
import probes
from process import Failure, Server, free_port, servers

HERE = Path(__file__).resolve().parent
START_DEADLINE_S = 180
RACKS = 3
NODES_MAX = 9
# Copies that Kafka keeps of its own topics.
COPIES_MAX = 3
# Only loopback is listened on; the password is there so that logging in with one is tested.
CASSANDRA_USER = CASSANDRA_PASSWORD = "cassandra"
KAFKA_USER = KAFKA_PASSWORD = "raingauge"
MARIADB_USER = MARIADB_DATABASE = "raingauge"


def fill(template, target, **values):
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(Template((HERE / template).read_text()).substitute(values))


def java_command(name, folder, heap_mb, warm, archive=None):
    """Java with what all have in common. `archive` is one to be made; without it the one in the cache is used."""
    command = [install.java(), f"-Xms{heap_mb}m", f"-Xmx{heap_mb}m", "-XX:+PerfDisableSharedMem"]
    # Tests want a quick start and little memory, measurements the compiler and the collector of production.
    command += ["-XX:+UseG1GC"] if warm else ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += ["-XX:+UnlockDiagnosticVMOptions", "-XX:+AllowArchivingWithJavaAgent"]
    command += ["-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    command += [f"-XX:ArchiveClassesAtExit={archive}"] if archive else [f"-XX:SharedArchiveFile={install.archive(name)}"]
    return command + [f"-Djava.io.tmpdir={folder}/tmp"]


def cassandra_nodes(folder, count, heap_mb, auth=False, tls=False, warm=False, archive=None):
    """All nodes of a cluster: 127.0.0.1, 127.0.0.2 and so on, each the whole rack until there are more than racks."""
    addresses = [f"127.0.0.{number}" for number in range(1, count + 1)]
    ports = {"cql": free_port(addresses), "storage": free_port(addresses)}
    nodes = []
    for number, address in enumerate(addresses):
        data = Path(folder) / "data" / f"cassandra-{number + 1}"
        node_ports = {**ports, "jmx": free_port()}
        fill(
            "cassandra.yaml", data / "cassandra.yaml",
            token=-(2**63) + number * 2**64 // count, seeds=",".join(f"{a}:{ports['storage']}" for a in addresses[:2]),
            address=address, storage_port=ports["storage"], cql_port=ports["cql"], folder=data, tls=str(tls).lower(),
            memtable_mb=heap_mb // 3,
            authenticator="PasswordAuthenticator" if auth else "AllowAllAuthenticator",
            authorizer="CassandraAuthorizer" if auth else "AllowAllAuthorizer",
        )
        (data / "cassandra-rackdc.properties").write_text(f"dc=dc1\nrack=rack{number % RACKS + 1}\n")
        if tls:
            copy_certificate(folder, addresses, data)
        command = cassandra_command(data, node_ports["jmx"], count, heap_mb, warm, archive)
        options = {"nodes": count, "auth": auth, "tls": tls}
        nodes.append(Server(folder, f"cassandra-{number + 1}", "cassandra", command, node_ports, address, options))
    return nodes


def cassandra_command(data, jmx_port, count, heap_mb, warm, archive):
    return [
        *java_command("cassandra", data, heap_mb, warm, archive),
        "-XX:MaxDirectMemorySize=256m",
        f"@{HERE}/cassandra-jvm.options",
        f"-javaagent:{next(install.library('cassandra').glob('jamm-*.jar'))}",
        f"-Dcassandra.config=file://{data}/cassandra.yaml",
        f"-Dcassandra-rackdc.properties=file://{data}/cassandra-rackdc.properties",
        f"-Dcassandra.storagedir={data}",
        f"-Dcassandra.logdir={data}",
        f"-Dlogback.configurationFile={HERE}/cassandra-logback.xml",
        "-Dcassandra-foreground=yes",
        f"-Dcassandra.jmx.local.port={jmx_port}",
        # On loopback there is little to wait for. Without any delay, the set-up of roles would be retried in a busy loop.
        "-Dcassandra.skip_wait_for_gossip_to_settle=0",
        "-Dcassandra.ring_delay_ms=1000",
        "-Dcassandra.superuser_setup_delay_ms=500",
        # Logging in must work when a node is down; and need not be slow.
        f"-Dcassandra.system_auth.default_rf={min(count, RACKS)}",
        "-Dcassandra.auth_bcrypt_gensalt_log2_rounds=4",
        "-cp", install.classpath("cassandra"), "org.apache.cassandra.service.CassandraDaemon",
    ]


def copy_certificate(folder, addresses, data):
    """One certificate for all nodes, signed by an authority of this folder alone (DIR/tls/ca.pem)."""
    tls = Path(folder) / "tls"
    if not tls.is_dir():
        tls.mkdir()
        names = ",".join(f"IP:{address}" for address in addresses) + ",DNS:localhost"
        (tls / "node.ext").write_text(f"subjectAltName={names}\nbasicConstraints=CA:FALSE\n")
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        for words in (
            ["req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "30", "-subj", "/CN=raingauge tests"],
            ["req", *key, "-keyout", "node.key", "-out", "node.csr", "-subj", "/CN=cassandra"],
            ["x509", "-req", "-in", "node.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30",
             "-extfile", "node.ext", "-out", "node.pem"],
            ["pkcs12", "-export", "-in", "node.pem", "-inkey", "node.key", "-certfile", "ca.pem", "-out", "node.p12",
             "-passout", "pass:raingauge"],
        ):
            run = subprocess.run(["openssl", *words], cwd=tls, capture_output=True, text=True, check=False)
            if run.returncode != 0:
                raise Failure(f"openssl {words[0]} failed: {run.stderr}")
    shutil.copy(tls / "node.p12", data / "tls.p12")


def cql(node):
    context = None
    if node.options["tls"]:
        context = ssl.create_default_context(cafile=node.folder / "tls/ca.pem")
    return probes.Cql(node.address, node.ports["cql"], CASSANDRA_USER, CASSANDRA_PASSWORD, context)


def cassandra_answers(node):
    # Roles are stored on most of the nodes, so that the first ones cannot let anybody in alone.
    if node.options["auth"] and node.options["nodes"] > 1:
        return probes.cql_supported(node.address, node.ports["cql"])
    return cassandra_lets_in(node)


def cassandra_lets_in(node):
    with cql(node) as session:
        session.query("SELECT release_version FROM system.local")
    return True


def wait_for_cluster(nodes):
    """Every node that runs must take every other for alive: a client may have any of them coordinate."""
    running = [node for node in nodes if node.state() == "running"]
    for node in running if len(running) == len(nodes) else []:
        node.wait_for(lambda: cassandra_lets_in(node), START_DEADLINE_S, "let nobody in")
    if len(running) < 2:
        return
    for node in running:
        wanted = {other.address for other in running}
        node.wait_for(lambda: wanted <= up_as_seen_by(node), START_DEADLINE_S, f"did not see {' '.join(wanted)} up")


def up_as_seen_by(node):
    run = subprocess.run(nodetool_command(node, ["status"]), capture_output=True, text=True, check=False)
    return {words[1] for line in run.stdout.splitlines() if (words := line.split()) and words[0] == "UN"}


def nodetool_command(node, arguments):
    return [
        install.java(), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
        f"@{HERE}/cassandra-jvm.options",
        # It would write its history below the home folder.
        f"-Duser.home={node.data}", f"-Djava.io.tmpdir={node.data}/tmp",
        f"-Dlogback.configurationFile={HERE}/cassandra-logback.xml", "-DLEVEL=WARN",
        f"-Dcassandra.config=file://{node.data}/cassandra.yaml", f"-Dcassandra.storagedir={node.data}",
        "-cp", install.classpath("cassandra"), "org.apache.cassandra.tools.NodeTool",
        "-h", "127.0.0.1", "-p", str(node.ports["jmx"]), *arguments,
    ]


def kafka_java(data, heap_mb, warm, archive):
    command = java_command("kafka", data, heap_mb, warm, archive)
    command += [f"-Dlog4j2.configurationFile={HERE}/kafka-log4j2.xml", f"-Dkafka.logs.dir={data}"]
    return command + ["-cp", install.classpath("kafka")]


def kafka_logins(folder, data, ports):
    """Two more doors, which want a login: one without TLS, one with it. For the properties of the broker."""
    ports.update({"sasl": free_port(), "sasl_tls": free_port()})
    copy_certificate(folder, ["127.0.0.1"], data)
    module = "org.apache.kafka.common.security"
    scram = f"{module}.scram.ScramLoginModule required;"
    plain = f'{module}.plain.PlainLoginModule required user_{KAFKA_USER}="{KAFKA_PASSWORD}";'
    lines = [f"ssl.keystore.type=PKCS12\nssl.keystore.location={data}/tls.p12\nssl.keystore.password=raingauge"]
    for door in ("sasl", "sasltls"):
        name = f"listener.name.{door}"
        lines.append(f"{name}.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512")
        lines.append(f"{name}.plain.sasl.jaas.config={plain}")
        lines += [f"{name}.scram-sha-{bits}.sasl.jaas.config={scram}" for bits in (256, 512)]
    doors = f",SASL://127.0.0.1:{ports['sasl']},SASLTLS://127.0.0.1:{ports['sasl_tls']}"
    return {"doors": doors, "protocols": ",SASL:SASL_PLAINTEXT,SASLTLS:SASL_SSL", "logins": "\n".join(lines)}


def kafka_brokers(folder, count, warm=False, archive=None, sasl=False, silent_s=3):
    """Brokers of one cluster, each also one of its controllers: `kafka` alone, or `kafka-1`, `kafka-2` and so on. One that is
    silent for `silent_s` is taken for dead."""
    # An id of a cluster is 16 bytes in base64; one that begins with a dash would be read as an option.
    cluster = "r" + secrets.token_urlsafe(16)[1:]
    controllers = [free_port() for _ in range(count)]
    voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(controllers, 1))
    copies = min(count, COPIES_MAX)
    brokers = []
    for number, controller in enumerate(controllers, 1):
        name = "kafka" if count == 1 else f"kafka-{number}"
        data = Path(folder) / "data" / name
        data.mkdir(parents=True)
        ports = {"kafka": free_port(), "controller": controller}
        more = kafka_logins(folder, data, ports) if sasl else {"doors": "", "protocols": "", "logins": ""}
        properties = data / "server.properties"
        fill(
            "kafka-server.properties", properties, node=number, voters=voters, copies=copies,
            in_sync=max(1, copies - 1), kafka_port=ports["kafka"], controller_port=controller, silent_ms=silent_s * 1000,
            folder=data, **more,
        )
        (data / "tmp").mkdir()
        format_kafka(data, properties, cluster, sasl, archive)
        command = [*kafka_java(data, 1024 if warm else 256, warm, archive), "kafka.Kafka", str(properties)]
        options = {"brokers": count, "sasl": sasl}
        brokers.append(Server(folder, name, "kafka", command, ports, options=options))
    return brokers


def format_kafka(data, properties, cluster, sasl, archive):
    words = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)]
    login = f"[name={KAFKA_USER},password={KAFKA_PASSWORD}]"
    words += [word for bits in (256, 512) if sasl for word in ("--add-scram", f"SCRAM-SHA-{bits}={login}")]
    # The archive is made by the broker, not by this.
    java = kafka_java(data, 256, False, data / "tmp/unused.jsa" if archive else None)
    java = [word for word in java if not word.startswith("-XX:ArchiveClassesAtExit")]
    run = subprocess.run([*java, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if run.returncode != 0:
        raise Failure(f"Kafka's folder could not be formatted:\n{run.stdout[-2000:]}")


def kafka_answers(broker):
    """Whether a broker knows every broker that runs. While most are away there is no controller to tell it, so
    the wait is for the last one that comes back."""
    running = [one for one in servers(broker.folder) if one.kind == "kafka" and one.state() == "running"]
    if 2 * len(running) <= broker.options["brokers"]:
        return True
    return probes.kafka_brokers(broker.ports["kafka"]) >= len(running)


def mariadb(folder):
    ports = {"mysql": free_port()}
    data = Path(folder) / "data/mariadb"
    password = secrets.token_hex(8)
    fill("mariadb-init.sql", data / "init.sql", password=password)
    (data / "tmp").mkdir()
    words = [install.program("mariadb-install-db"), "--no-defaults", f"--datadir={data}/mysql", "--skip-test-db"]
    as_root = ["--user=root"] if os.geteuid() == 0 else []
    run = subprocess.run([*words, *as_root], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if run.returncode != 0:
        raise Failure(f"MariaDB's folder could not be made:\n{run.stdout[-2000:]}")
    command = [
        install.program("mariadbd"), "--no-defaults", *as_root, f"--datadir={data}/mysql", f"--tmpdir={data}/tmp",
        # A socket's path may have 107 bytes; relative to its folder it always fits.
        "--socket=mysql.sock", f"--pid-file={data}/mysql.pid", f"--port={ports['mysql']}", "--bind-address=127.0.0.1",
        "--skip-name-resolve", f"--init-file={data}/init.sql", "--character-set-server=utf8mb4",
    ]
    return Server(folder, "mariadb", "mariadb", command, ports, options={"password": password})


def mysql(folder):
    """A new user logs in by the server's default plugin, with the key that the server sends: its library of TLS is too old
    for elliptic curves, without which there is no cipher that its clients take too."""
    ports = {"mysql": free_port()}
    data = Path(folder) / "data/mysql"
    password = secrets.token_hex(8)
    fill("mariadb-init.sql", data / "init.sql", password=password)
    (data / "tmp").mkdir()
    as_root = ["--user=root"] if os.geteuid() == 0 else []
    words = [install.mysqld(), "--no-defaults", *as_root, f"--datadir={data}/mysql", f"--tmpdir={data}/tmp"]
    made = [*words, "--initialize-insecure"]
    run = subprocess.run(made, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if run.returncode != 0:
        raise Failure(f"MySQL's folder could not be made:\n{run.stdout[-2000:]}")
    # Its protocol of documents would listen on a port of its own.
    command = [
        *words, "--socket=mysql.sock", f"--pid-file={data}/mysql.pid", f"--port={ports['mysql']}", "--bind-address=127.0.0.1",
        "--skip-name-resolve", f"--init-file={data}/init.sql", "--mysqlx=OFF", "--skip-ssl",
    ]
    return Server(folder, "mysql", "mysql", command, ports, options={"password": password})


def elasticmq(folder, archive=None):
    """Queues that speak the protocol of Amazon SQS."""
    ports = {"sqs": free_port()}
    data = Path(folder) / "data/elasticmq"
    fill("elasticmq.conf", data / "elasticmq.conf", port=ports["sqs"], folder=data)
    (data / "tmp").mkdir()
    command = java_command("elasticmq", data, 128, False, archive)
    command += [f"-Dconfig.file={data}/elasticmq.conf", "-cp", install.classpath("elasticmq"), "org.elasticmq.server.Main"]
    return Server(folder, "elasticmq", "elasticmq", command, ports)


def redis(folder, name="redis", cluster=False):
    ports = {"redis": free_port()}
    # Kept on disk, so that a restart has its data.
    words = [install.program("redis-server"), "--bind", "127.0.0.1", "--port", ports["redis"]]
    words += ["--appendonly", "yes", "--save", ""]
    if cluster:
        ports["bus"] = free_port()
        words += ["--cluster-enabled", "yes", "--cluster-port", ports["bus"], "--cluster-node-timeout", "2000"]
    return Server(folder, name, "redis-cluster" if cluster else "redis", words, ports)


def join_redis_cluster(nodes):
    """Deals the 16,384 slots out to the masters, introduces them, and waits until each knows the whole."""
    for number, node in enumerate(nodes):
        slots = [16_384 * edge // len(nodes) for edge in (number, number + 1)]
        probes.redis(node.ports["redis"], "CLUSTER", "ADDSLOTSRANGE", slots[0], slots[1] - 1)
        # Nodes that think themselves at the same time of the cluster would argue about it first.
        probes.redis(node.ports["redis"], "CLUSTER", "SET-CONFIG-EPOCH", number + 1)
    wait_for_redis_cluster(nodes)


def wait_for_redis_cluster(nodes):
    """Introduces nodes to the first one until each knows all: an introduction that meets another one may be lost."""
    first = nodes[0].ports

    def joined(node):
        if knows_cluster(node, len(nodes)):
            return True
        for other in nodes[1:]:
            probes.redis(other.ports["redis"], "CLUSTER", "MEET", "127.0.0.1", first["redis"], first["bus"])
        return False

    for node in nodes:
        node.wait_for(lambda: joined(node), START_DEADLINE_S, "did not join")


def knows_cluster(node, count):
    info = probes.redis(node.ports["redis"], "CLUSTER", "INFO")
    return "cluster_state:ok" in info and f"cluster_known_nodes:{count}\r" in info


def answers(server):
    """Whether a server does what its clients want of it."""
    if server.kind == "cassandra":
        return cassandra_answers(server)
    if server.kind == "kafka":
        return kafka_answers(server)
    if server.kind == "mariadb":
        probes.mysql_login(server.ports["mysql"], MARIADB_USER, server.options["password"], MARIADB_DATABASE)
        return True
    if server.kind == "mysql":
        return probes.mysql_greets(server.ports["mysql"])
    if server.kind == "elasticmq":
        return probes.sqs_queues(server.ports["sqs"])
    return probes.redis(server.ports["redis"], "PING") == "PONG"


def start(server):
    if server.kind == "mysql":
        # It does not start beside a process that it takes for the owner of its socket, and one that was killed may still be
        # listed as a zombie.
        (server.data / "mysql/mysql.sock.lock").unlink(missing_ok=True)
    server.spawn()
    wait_until_it_answers(server)


def wait_until_it_answers(server):
    server.wait_for(lambda: answers(server), START_DEADLINE_S, "did not answer")
