// The page of objects: a client without pipelines, hot keys and heavy values, at three widths, light and dark.

import assert from "node:assert/strict";
import { createConnection } from "node:net";
import { after, before, describe, test } from "node:test";
import { Browser, PATIENCE_MS, Server, barriers, looks, picture } from "./harness.mjs";

/** A connection to the door for Redis clients. */
class Client {
  static async connect(port) {
    const client = new Client();
    client.socket = createConnection(port, "127.0.0.1");
    client.socket.setNoDelay(true);
    await new Promise((resolve) => client.socket.once("connect", resolve));
    return client;
  }

  /** Sends commands together, and waits for as many replies of one line each. */
  async send(...commands) {
    const bytes = commands.map((words) => {
      const parts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
      return `*${words.length}\r\n${parts.join("")}`;
    });
    let lines = 0;
    const answered = new Promise((resolve) => {
      const read = (data) => {
        lines += data.toString().split("\r\n").length - 1;
        if (lines >= commands.length) {
          this.socket.off("data", read);
          resolve();
        }
      };
      this.socket.on("data", read);
    });
    this.socket.write(bytes.join(""));
    await answered;
  }
}

describe("objects", { timeout: 10 * PATIENCE_MS }, () => {
  let server;
  let browser;
  let cookies;
  let client;

  before(async () => {
    server = await Server.start({ "resp.listen": "127.0.0.1:0", "resp.cluster": "single" });
    browser = await Browser.start(server);
    const page = await browser.administrator();
    cookies = await page.context().cookies();

    client = await Client.connect(Number(server.errors.match(/resp_address=127\.0\.0\.1:(\d+)/)[1]));
    await client.send(["CLIENT", "SETNAME", "worker-7"]);
    const heavy = "x".repeat(50_000);
    const value = (n) => (n % 20 === 0 ? heavy : "a small value");
    const key = (n) => (n % 3 === 0 ? "leaderboard:<b>today</b>" : `session:${n}`);
    await client.send(...Array.from({ length: 12_800 }, (_, n) => ["SET", key(n), value(n)]));
    for (let n = 0; n < 2_000; n += 1) await client.send(["EXISTS", `session:${n}`]);
    await client.send(["PING"], ["PING"]);
  });

  after(async () => {
    client?.socket.destroy();
    await browser?.stop();
    await server?.stop();
  });

  async function signedIn(options) {
    const page = await browser.person(options);
    await page.context().addCookies(cookies);
    return page;
  }

  test("the page shows who would gain by a pipeline", async () => {
    const page = await signedIn();
    await page.goto("/objects");
    await page.getByRole("row", { name: /worker-7/ }).getByText("exists").waitFor();
    await page.getByText("leaderboard:<b>today</b>").waitFor();
    await page.getByText("The largest 1 % of values are").waitFor();
    await page.getByRole("heading", { name: "Commands per second" }).waitFor();
    await page.getByRole("link", { name: "Redis", exact: true }).first().waitFor();
    assert.deepEqual(page.complaints, []);
    await page.context().close();
  });

  test("its looks", async () => {
    const page = await signedIn();
    await page.goto("/objects");
    await page.getByRole("heading", { name: "Sizes of values" }).waitFor();
    await looks(page, "objects");
    await page.context().close();
  });
});

describe("objects of a closed door", { timeout: 4 * PATIENCE_MS }, () => {
  test("the page says how to open it", async () => {
    const server = await Server.start();
    const browser = await Browser.start(server);
    try {
      const page = await browser.administrator();
      await page.goto("/objects");
      await page.getByText("The door for Redis clients is closed").waitFor();
      await picture(page, "objects-closed");
      assert.deepEqual(await barriers(page), []);
    } finally {
      await browser.stop();
      await server.stop();
    }
  });
});
