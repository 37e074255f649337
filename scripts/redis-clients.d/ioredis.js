// ioredis drives a server: RESP of its own, a pipeline of 1,500, transactions, pub/sub, values of 2 MB.
//
//     node ioredis.js HOST PORT [cluster|static]
//
// Of a cluster, the node at HOST PORT serves the lower half of the slots at least; `static` says that another serves the rest.
const assert = require("node:assert");
const Redis = require("ioredis");

const [host, port, mode] = process.argv.slice(2);
const place = { host, port: Number(port), lazyConnect: false };
const large = Buffer.alloc(2 * 1024 * 1024, "0123456789");

const connect = () => (mode ? new Redis.Cluster([place]) : new Redis(place));

async function checkValues(client) {
  await client.set("{c}large", large);
  assert.ok((await client.getBuffer("{c}large")).equals(large));
  assert.strictEqual(await client.set("{c}brief", "x", "PX", 100000), "OK");
  assert.ok((await client.pttl("{c}brief")) > 0);
  await client.del("{c}hash");
  await client.hset("{c}hash", { a: 1, b: 2 });
  assert.deepStrictEqual(await client.hgetall("{c}hash"), { a: "1", b: "2" });
  await client.del("{c}board");
  await client.zadd("{c}board", 1.5, "a", 2, "b");
  assert.deepStrictEqual(await client.zrange("{c}board", 0, -1, "WITHSCORES"), ["a", "1.5", "b", "2"]);
}

async function checkPipeline(client) {
  await client.del("{c}sum");
  const pipeline = client.pipeline();
  for (let number = 0; number < 1500; number += 1) pipeline.incrby("{c}sum", number);
  const replies = await pipeline.exec();
  assert.deepStrictEqual(replies[1499], [null, (1499 * 1500) / 2]);
}

async function checkTransactions() {
  const own = new Redis(place);
  await own.set("{c}balance", 0);
  const pay = async () => {
    const payer = new Redis(place);
    for (let paid = 0; paid < 25; ) {
      await payer.watch("{c}balance");
      const balance = Number(await payer.get("{c}balance"));
      if (await payer.multi().set("{c}balance", balance + 1).exec()) paid += 1;
    }
    await payer.quit();
  };
  await Promise.all([pay(), pay(), pay(), pay()]);
  assert.strictEqual(await own.get("{c}balance"), "100");
  await own.quit();
}

async function checkPubSub() {
  const publisher = new Redis(place);
  const subscriber = new Redis(place);
  await subscriber.subscribe("news");
  const message = new Promise((resolve) => subscriber.on("message", (channel, text) => resolve([channel, text])));
  assert.strictEqual(await publisher.publish("news", "hello"), 1);
  assert.deepStrictEqual(await message, ["news", "hello"]);
  await subscriber.quit();
  await publisher.quit();
}

async function checkCluster(client) {
  const numbers = Array.from({ length: 200 }, (_, number) => number);
  await Promise.all(numbers.map((number) => client.set(`key:${number}`, number)));
  const read = await Promise.all(numbers.map((number) => client.get(`key:${number}`)));
  assert.deepStrictEqual(read, numbers.map(String));
  await client.mset("{user:7}name", "Ann", "{user:7}city", "Bonn");
  assert.deepStrictEqual(await client.mget("{user:7}name", "{user:7}city"), ["Ann", "Bonn"]);

  assert.strictEqual(client.nodes("master").length, mode === "static" ? 2 : 1);
  const own = new Redis(place);
  // The slots of b and a are 3300 and 15495.
  await assert.rejects(own.mset("b", 1, "a", 1), /^ReplyError: CROSSSLOT /);
  if (mode === "static") await assert.rejects(own.get("a"), /^ReplyError: MOVED 15495 127.0.0.1:\d+$/);
  await own.quit();
}

async function checkPool() {
  const clients = Array.from({ length: 16 }, () => new Redis(place));
  await clients[0].del("{c}pooled");
  await Promise.all(clients.flatMap((client) => Array.from({ length: 100 }, () => client.incr("{c}pooled"))));
  assert.strictEqual(await clients[0].get("{c}pooled"), "1600");
  await Promise.all(clients.map((client) => client.quit()));
}

(async () => {
  const client = connect();
  await checkValues(client);
  await checkPipeline(client);
  await checkTransactions();
  await checkPubSub();
  await checkPool();
  if (mode) await checkCluster(client);
  await client.quit();
  console.log(`ioredis ${require("ioredis/package.json").version}: ok`);
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
