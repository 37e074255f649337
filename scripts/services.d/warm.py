"""A minute of writes and reads on Cassandra, so that Java has compiled what a measurement is about to use."""

import struct
import time
from concurrent.futures import ThreadPoolExecutor

import probes

LOAD_S = 60
IN_FLIGHT = 64
ROWS_READ = 60
# A machine that is busy with this load is slow to change tables.
TIMEOUT_S = 60
KEYSPACE = "raingauge_warm"


def load(sessions):
    """One thread for each session. The first also makes the table, and removes it in the end."""
    first = sessions[0]
    for session in sessions:
        session.connection.settimeout(TIMEOUT_S)
    replication = f"{{'class': 'SimpleStrategy', 'replication_factor': {min(len(sessions), 3)}}}"
    first.query(f"CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = {replication}")
    columns = "key bigint, bucket bigint, n bigint, PRIMARY KEY (key, bucket)"
    first.query(f"CREATE TABLE IF NOT EXISTS {KEYSPACE}.counts ({columns})")
    deadline = time.monotonic() + LOAD_S
    with ThreadPoolExecutor(len(sessions)) as pool:
        for running in [pool.submit(write_and_read, session, deadline) for session in sessions]:
            running.result()
    first.query(f"DROP KEYSPACE {KEYSPACE}")
    for session in sessions:
        session.connection.close()


def write_and_read(session, deadline):
    insert = prepare(session, f"INSERT INTO {KEYSPACE}.counts (key, bucket, n) VALUES (?, ?, ?)")
    select = prepare(session, f"SELECT bucket, n FROM {KEYSPACE}.counts WHERE key = ? AND bucket > ? LIMIT {ROWS_READ}")
    row = 0
    while time.monotonic() < deadline:
        rows = range(row, row + IN_FLIGHT)
        row += IN_FLIGHT
        exchange(session, [execution(insert, number % 1_000, number, 1) for number in rows])
        exchange(session, [execution(select, number % 1_000, 0) for number in rows[::4]])


def prepare(session, text):
    data = text.encode()
    _, answer = session.call(probes.PREPARE, struct.pack(">i", len(data)) + data)
    # A kind of result, then the length and the bytes of the statement's id.
    size = struct.unpack(">H", answer[4:6])[0]
    return answer[6 : 6 + size]


def execution(statement, *numbers):
    values = b"".join(struct.pack(">iq", 8, number) for number in numbers)
    head = struct.pack(">H", len(statement)) + statement + struct.pack(">HB", probes.CONSISTENCY_ONE, 1)
    return head + struct.pack(">H", len(numbers)) + values


def exchange(session, bodies):
    """Sends all, then reads all. An answer that is an error counts as well: this is only load."""
    frames = [struct.pack(">BBhBi", 4, 0, stream, probes.EXECUTE, len(body)) + body for stream, body in enumerate(bodies)]
    session.connection.sendall(b"".join(frames))
    for _ in frames:
        size = struct.unpack(">i", probes.read_exactly(session.connection, 9)[5:])[0]
        probes.read_exactly(session.connection, size)
