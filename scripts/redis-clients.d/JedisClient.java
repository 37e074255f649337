import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisCluster;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisMovedDataException;
import redis.clients.jedis.params.SetParams;

/**
 * Jedis drives a server: HELLO 3, a pool, a pipeline of 1,500, transactions, pub/sub, values of 2 MB.
 *
 * <p>Arguments: HOST PORT [cluster|static]. Of a cluster, the node at HOST PORT serves the lower half of the slots at least;
 * `static` says that another one serves the rest.
 */
public final class JedisClient {
  static void expect(boolean is, String what) {
    if (!is) throw new AssertionError(what);
  }

  static void checkValues(UnifiedJedis client) {
    byte[] large = new byte[2 << 20];
    Arrays.fill(large, (byte) 7);
    client.set("{c}large".getBytes(), large);
    expect(Arrays.equals(client.get("{c}large".getBytes()), large), "a large value");
    client.set("{c}brief", "x", SetParams.setParams().px(100_000));
    expect(client.pttl("{c}brief") > 0, "an expiry");
    client.del("{c}hash");
    client.hset("{c}hash", "a", "1");
    expect(client.hgetAll("{c}hash").get("a").equals("1"), "a hash");
    client.del("{c}board");
    client.zadd("{c}board", 1.5, "a");
    expect(client.zrangeWithScores("{c}board", 0, -1).get(0).getScore() == 1.5, "a sorted set");
  }

  static void checkPipeline(UnifiedJedis client) {
    client.del("{c}sum");
    Response<Long> last = null;
    try (var pipeline = client.pipelined()) {
      for (long number = 0; number < 1_500; number++) last = pipeline.incrBy("{c}sum", number);
      pipeline.sync();
    }
    expect(last.get() == 1_499L * 1_500 / 2, "a pipeline");
  }

  static void checkTransactions(String host, int port) {
    try (var own = new Jedis(host, port)) {
      own.set("{c}balance", "0");
      List<CompletableFuture<Void>> payers = new ArrayList<>();
      for (int payer = 0; payer < 4; payer++) {
        payers.add(CompletableFuture.runAsync(() -> {
          try (var one = new Jedis(host, port)) {
            for (int paid = 0; paid < 25;) {
              one.watch("{c}balance");
              int balance = Integer.parseInt(one.get("{c}balance"));
              var transaction = one.multi();
              transaction.set("{c}balance", Integer.toString(balance + 1));
              if (transaction.exec() != null) paid++;
            }
          }
        }));
      }
      payers.forEach(CompletableFuture::join);
      expect(own.get("{c}balance").equals("100"), "a balance");
    }
  }

  static void checkPubSub(String host, int port) throws Exception {
    var received = new CompletableFuture<String>();
    var subscribed = new CompletableFuture<Void>();
    var listener = new JedisPubSub() {
      @Override public void onSubscribe(String channel, int count) {
        subscribed.complete(null);
      }

      @Override public void onMessage(String channel, String message) {
        received.complete(message);
        unsubscribe();
      }
    };
    var thread = new Thread(() -> {
      try (var own = new Jedis(host, port)) {
        own.subscribe(listener, "news");
      }
    });
    thread.start();
    subscribed.get(30, TimeUnit.SECONDS);
    try (var own = new Jedis(host, port)) {
      expect(own.publish("news", "hello") == 1, "a publication");
    }
    expect(received.get(30, TimeUnit.SECONDS).equals("hello"), "a message");
    thread.join();
  }

  static void checkPool(UnifiedJedis client) {
    client.del("{c}pooled");
    List<CompletableFuture<Void>> workers = new ArrayList<>();
    for (int worker = 0; worker < 32; worker++) {
      workers.add(CompletableFuture.runAsync(() -> {
        for (int count = 0; count < 50; count++) client.incr("{c}pooled");
      }));
    }
    workers.forEach(CompletableFuture::join);
    expect(client.get("{c}pooled").equals("1600"), "a pool");
  }

  static void checkCluster(JedisCluster client, String host, int port, int nodes) {
    for (int number = 0; number < 200; number++) client.set("key:" + number, Integer.toString(number));
    for (int number = 0; number < 200; number++) {
      expect(client.get("key:" + number).equals(Integer.toString(number)), "a key of another slot");
    }
    client.mset("{user:7}name", "Ann", "{user:7}city", "Bonn");
    expect(client.mget("{user:7}name", "{user:7}city").equals(List.of("Ann", "Bonn")), "a hash tag");
    expect(client.getClusterNodes().size() == nodes, "nodes");

    try (var own = new Jedis(host, port)) {
      // The slots of b and a are 3300 and 15495.
      try {
        own.mset("b", "1", "a", "1");
        throw new AssertionError("two slots");
      } catch (JedisDataException refused) {
        expect(refused.getMessage().startsWith("CROSSSLOT "), refused.getMessage());
      }
      if (nodes > 1) {
        try {
          own.get("a");
          throw new AssertionError("a key of the other node");
        } catch (JedisMovedDataException moved) {
          expect(moved.getSlot() == 15495 && moved.getTargetNode().getPort() != port, moved.getMessage());
        }
      }
    }
  }

  public static void main(String[] arguments) throws Exception {
    String host = arguments[0];
    int port = Integer.parseInt(arguments[1]);
    boolean isCluster = arguments.length > 2;
    int nodes = isCluster && arguments[2].equals("static") ? 2 : 1;
    var place = new HostAndPort(host, port);
    for (var protocol : List.of(RedisProtocol.RESP2, RedisProtocol.RESP3)) {
      var config = DefaultJedisClientConfig.builder().protocol(protocol).build();
      try (UnifiedJedis client = isCluster
          ? new JedisCluster(java.util.Set.of(place), config)
          : new JedisPooled(place, config)) {
        checkValues(client);
        checkPipeline(client);
        checkPool(client);
        if (client instanceof JedisCluster cluster) checkCluster(cluster, host, port, nodes);
      }
    }
    checkTransactions(host, port);
    checkPubSub(host, port);
    System.out.println("jedis: ok");
  }
}
