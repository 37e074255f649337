"""redis-py drives a server: HELLO 3, a pool, a pipeline of 1,500, transactions, pub/sub, values of 2 MB.

    redis_py.py HOST PORT [cluster|static]

Of a cluster, the node at HOST PORT serves the lower half of the slots at least; `static` says that another one serves the rest.
"""

import sys
import threading

import redis

HOST, PORT, MODE = sys.argv[1], int(sys.argv[2]), (sys.argv[3:] or ["one"])[0]
LARGE = bytes(range(256)) * 8_192


def connect(protocol):
    if MODE != "one":
        return redis.RedisCluster(host=HOST, port=PORT, protocol=protocol)
    return redis.Redis(host=HOST, port=PORT, protocol=protocol)


def check_values(client):
    client.set("{c}large", LARGE)
    assert client.get("{c}large") == LARGE
    assert client.set("{c}brief", "x", px=100_000) and 0 < client.pttl("{c}brief") <= 100_000
    client.delete("{c}hash")
    client.hset("{c}hash", mapping={"a": 1, "b": 2})
    assert client.hgetall("{c}hash") == {b"a": b"1", b"b": b"2"}
    client.delete("{c}board")
    client.zadd("{c}board", {"a": 1.5, "b": 2})
    scores = client.zrange("{c}board", 0, -1, withscores=True)
    assert [tuple(pair) for pair in scores] == [(b"a", 1.5), (b"b", 2.0)], scores


def check_pipeline(client):
    client.delete("{c}sum")
    with client.pipeline(transaction=False) as pipeline:
        for number in range(1_500):
            pipeline.incrby("{c}sum", number)
        assert pipeline.execute()[-1] == sum(range(1_500))


def check_transactions(client):
    client.set("{c}balance", 0)

    def pay(_):
        with redis.Redis(host=HOST, port=PORT) as own:
            for _ in range(25):
                own.transaction(lambda pipe: raised(pipe), "{c}balance")

    def raised(pipe):
        balance = int(pipe.get("{c}balance"))
        pipe.multi()
        pipe.set("{c}balance", balance + 1)

    threads = [threading.Thread(target=pay, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert int(client.get("{c}balance")) == 100


def check_pubsub(client):
    with redis.Redis(host=HOST, port=PORT) as own, own.pubsub() as subscriber:
        subscriber.subscribe("news")
        assert subscriber.get_message(timeout=10)["type"] == "subscribe"
        assert own.publish("news", "hello") == 1
        message = subscriber.get_message(timeout=10)
        assert (message["type"], message["data"]) == ("message", b"hello"), message


def check_cluster(client):
    for number in range(200):
        client.set(f"key:{number}", number)
    assert [client.get(f"key:{number}") for number in range(200)] == [b"%d" % number for number in range(200)]
    client.mset({"{user:7}name": "Ann", "{user:7}city": "Bonn"})
    assert client.mget("{user:7}name", "{user:7}city") == [b"Ann", b"Bonn"]

    nodes = {(node.host, node.port) for node in client.get_primaries()}
    assert len(nodes) == (2 if MODE == "static" else 1), nodes
    with redis.Redis(host=HOST, port=PORT) as own:
        # The slots of b and a are 3300 and 15495.
        check_refusal(redis.exceptions.ClusterCrossSlotError, lambda: own.mset({"b": 1, "a": 1}))
        if MODE == "static":
            moved = check_refusal(redis.exceptions.MovedError, lambda: own.get("a"))
            assert moved.slot_id == 15495 and {(moved.host, moved.port)} == nodes - {(HOST, PORT)}, moved


def check_refusal(kind, ask):
    try:
        ask()
    except kind as refusal:
        return refusal
    raise AssertionError(f"no {kind.__name__}")


def check_pool():
    pool = redis.BlockingConnectionPool(host=HOST, port=PORT, max_connections=8, timeout=30)
    client = redis.Redis(connection_pool=pool)
    client.delete("{c}pooled")

    def count():
        for _ in range(50):
            client.incr("{c}pooled")

    threads = [threading.Thread(target=count) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert int(client.get("{c}pooled")) == 1_600


for protocol in (2, 3):
    client = connect(protocol)
    check_values(client)
    check_pipeline(client)
    check_transactions(client)
    check_pubsub(client)
    if MODE != "one":
        check_cluster(client)
    client.close()
check_pool()
print(f"redis-py {redis.__version__}: ok")
