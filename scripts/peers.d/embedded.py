"""ClickHouse (chdb) or DuckDB behind a small HTTP door on loopback: embedded.py ENGINE PORT FOLDER.

    POST /query    SQL; answers rows of numbers, a line each, between tabs
    POST /insert   rows in the engine's own form, all of one insert
    GET  /version

One request at a time: there is one core, and chdb has one session. What Python adds to a question, about 0.1 ms, is part
of what is measured.
"""

import os
import selectors
import socket
import sys
from pathlib import Path


class ClickHouse:
    def __init__(self, folder):
        from chdb import session

        # Rows reach the engine through a file in memory; chdb reads nothing binary out of a statement.
        place = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else folder
        self.rows = place / f"raingauge-peers-{os.getpid()}.rows"
        self.session = session.Session(str(folder / "data"))
        shape = "'key String, time DateTime, id UInt64'"
        self.insertion = f"INSERT INTO lab.events SELECT * FROM file('{self.rows}', RowBinary, {shape})"

    def version(self):
        return self.query("SELECT version()").decode().strip()

    def query(self, text):
        return self.session.query(text, "TabSeparated").bytes()

    def insert(self, body):
        self.rows.write_bytes(body)
        try:
            self.session.query(self.insertion)
        finally:
            self.rows.unlink()

    def close(self):
        self.session.close()


class DuckDb:
    ROW = [("key", "S24"), ("time_s", "<i8"), ("id", "<u8")]

    def __init__(self, folder):
        import duckdb
        import numpy
        import pyarrow

        self.duckdb, self.numpy, self.pyarrow = duckdb, numpy, pyarrow
        (folder / "data").mkdir(exist_ok=True)
        self.connection = duckdb.connect(str(folder / "data/lab.duckdb"))
        # As many threads as cores that it may use.
        self.connection.execute(f"SET threads = {len(os.sched_getaffinity(0))}")

    def version(self):
        return self.duckdb.__version__

    def query(self, text):
        rows = self.connection.execute(text).fetchall()
        return "".join("\t".join(map(str, row)) + "\n" for row in rows).encode()

    def insert(self, body):
        rows = self.numpy.frombuffer(body, dtype=self.ROW)
        array, utf8 = self.pyarrow.array, self.pyarrow.string()
        # numpy leaves out the zero bytes behind a key.
        columns = {"key": array(rows["key"].copy()).cast(utf8), "time_s": array(rows["time_s"]), "id": array(rows["id"])}
        events = self.pyarrow.table(columns)
        self.connection.register("arrived", events)
        self.connection.execute("INSERT INTO events SELECT * FROM arrived")
        self.connection.unregister("arrived")

    def close(self):
        self.connection.close()


class Caller:
    """One connection, and what came over it so far."""

    def __init__(self, connection):
        self.connection, self.received = connection, bytearray()

    def requests(self):
        """What has arrived in full, as (method, path, body)."""
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            lines = self.received[:end].decode("latin-1").split("\r\n")
            fields = dict(line.lower().split(": ", 1) for line in lines[1:])
            length = int(fields.get("content-length", 0))
            if len(self.received) < end + 4 + length:
                return
            method, path, _ = lines[0].split(" ")
            body = bytes(self.received[end + 4 : end + 4 + length])
            del self.received[: end + 4 + length]
            yield method, path, body


def answer(engine, path, body):
    try:
        if path == "/query":
            status, text = "200 OK", engine.query(body.decode())
        elif path == "/insert":
            engine.insert(body)
            status, text = "200 OK", b""
        elif path == "/version":
            status, text = "200 OK", engine.version().encode()
        else:
            status, text = "404 Not Found", b"there is /query, /insert and /version"
    # Whatever an engine complains about is for the caller to read.
    except Exception as error:  # noqa: BLE001
        status, text = "400 Bad Request", str(error).encode()
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(text)}\r\n\r\n".encode() + text


def serve(engine, port):
    listener = socket.create_server(("127.0.0.1", port), backlog=128)
    waiting = selectors.DefaultSelector()
    waiting.register(listener, selectors.EVENT_READ)
    while True:
        for ready, _ in waiting.select():
            if ready.fileobj is listener:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                waiting.register(connection, selectors.EVENT_READ, Caller(connection))
                continue
            caller = ready.data
            try:
                received = caller.connection.recv(1 << 20)
                caller.received += received
                for _, path, body in caller.requests():
                    caller.connection.sendall(answer(engine, path, body))
            except OSError:
                received = b""
            if not received:
                waiting.unregister(caller.connection)
                caller.connection.close()


def main(name, port, folder):
    engine = {"clickhouse": ClickHouse, "duckdb": DuckDb}[name](Path(folder))
    try:
        serve(engine, int(port))
    finally:
        engine.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
