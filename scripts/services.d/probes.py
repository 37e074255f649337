"""Just enough of five protocols to know that a server answers, without clients that would have to be installed."""

import hashlib
import socket
import struct
import urllib.request

TIMEOUT_S = 5

# Operations of the CQL native protocol, version 4.
ERROR, STARTUP, READY, AUTHENTICATE, OPTIONS, SUPPORTED, QUERY = 0, 1, 2, 3, 5, 6, 7
PREPARE, EXECUTE, AUTH_RESPONSE, AUTH_SUCCESS = 9, 10, 15, 16
CONSISTENCY_ONE = 1


def read_exactly(connection, size):
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise ValueError("the connection was closed")
        data += chunk
    return data


class Cql:
    """A connection that logs in and asks one query at a time."""

    def __init__(self, address, port, user=None, password=None, tls=None):
        self.connection = socket.create_connection((address, port), TIMEOUT_S)
        if tls:
            self.connection = tls.wrap_socket(self.connection, server_hostname=address)
        words = [b"CQL_VERSION", b"3.0.0"]
        operation, _ = self.call(STARTUP, struct.pack(">H", 1) + b"".join(struct.pack(">H", len(w)) + w for w in words))
        if operation == AUTHENTICATE:
            token = f"\0{user}\0{password}".encode()
            operation, _ = self.call(AUTH_RESPONSE, struct.pack(">i", len(token)) + token)
        if operation not in (READY, AUTH_SUCCESS):
            raise ValueError(f"the login was answered with operation {operation}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def call(self, operation, body):
        self.connection.sendall(struct.pack(">BBhBi", 4, 0, 0, operation, len(body)) + body)
        _, _, _, answered, size = struct.unpack(">BBhBi", read_exactly(self.connection, 9))
        answer = read_exactly(self.connection, size)
        if answered == ERROR:
            length = struct.unpack(">H", answer[4:6])[0]
            raise ValueError(answer[6 : 6 + length].decode(errors="replace"))
        return answered, answer

    def query(self, text):
        data = text.encode()
        return self.call(QUERY, struct.pack(">i", len(data)) + data + struct.pack(">HB", CONSISTENCY_ONE, 0))


def cql_supported(address, port):
    """Whether a node answers what it supports, which needs no login."""
    with socket.create_connection((address, port), TIMEOUT_S) as connection:
        connection.sendall(struct.pack(">BBhBi", 4, 0, 0, OPTIONS, 0))
        return read_exactly(connection, 9)[4] == SUPPORTED


def kafka_brokers(port):
    """How many brokers take part, by the broker's own account (a Metadata request that names no topic)."""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection:
        # API 3, version 1, correlation 1, client "probe", an empty list of topics.
        request = struct.pack(">hhih", 3, 1, 1, 5) + b"probe" + struct.pack(">i", 0)
        connection.sendall(struct.pack(">i", len(request)) + request)
        size = struct.unpack(">i", read_exactly(connection, 4))[0]
        return struct.unpack(">i", read_exactly(connection, size)[4:8])[0]


def sqs_queues(port):
    """Whether a server of SQS lists its queues."""
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.ListQueues"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/", b"{}", headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        return answer.status == 200


def redis(port, *words):
    """What Redis answers to a command, where that is one string."""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection:
        parts = [str(word).encode() for word in words]
        connection.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
        with connection.makefile("rb") as answer:
            line = answer.readline().decode().strip()
            if line.startswith("-"):
                raise ValueError(line)
            return answer.read(int(line[1:])).decode() if line.startswith("$") else line.removeprefix("+")


def mysql_login(port, user, password, database):
    """Logs in with a password (mysql_native_password); an answer that is not OK is an error."""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection:
        greeting = mysql_packet(connection)
        after_version = greeting.index(b"\0", 1) + 1
        if greeting[0] != 10:
            raise ValueError(f"the greeting is {greeting[1:80]!r}")
        # A thread id of 4 bytes, 8 bytes of the nonce, 19 of capabilities, and the other 12 of the nonce.
        nonce = greeting[after_version + 4 : after_version + 12] + greeting[after_version + 31 : after_version + 43]
        once = hashlib.sha1(password.encode()).digest()
        mask = hashlib.sha1(nonce + hashlib.sha1(once).digest()).digest()
        proof = bytes(a ^ b for a, b in zip(once, mask))
        # Protocol 4.1, secure connection, a database, a plugin's name.
        capabilities = 0x0200 | 0x8000 | 0x0008 | 0x80000
        body = struct.pack("<IIB23x", capabilities, 1 << 24, 45) + user.encode() + b"\0" + bytes([len(proof)]) + proof
        body += database.encode() + b"\0mysql_native_password\0"
        connection.sendall(struct.pack("<I", len(body))[:3] + b"\x01" + body)
        answer = mysql_packet(connection)
        if answer[0] != 0:
            raise ValueError(answer[3:].decode(errors="replace"))


def mysql_greets(port):
    """Whether a server greets its clients, which it does once its script of the start has run."""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection:
        greeting = mysql_packet(connection)
        if greeting[0] != 10:
            raise ValueError(f"the greeting is {greeting[1:80]!r}")
        return True


def mysql_packet(connection):
    size = int.from_bytes(read_exactly(connection, 4)[:3], "little")
    return read_exactly(connection, size)
