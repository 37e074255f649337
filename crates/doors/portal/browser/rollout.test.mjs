// A guarded rollout as an administrator sees it: begun, watched while it runs, finished; and one that comes back by itself.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Browser, PATIENCE_MS, Server, barriers, picture } from "./harness.mjs";

const JSON_BODY = { "content-type": "application/json" };
const QUESTION = JSON.stringify({
  requests: [{ key: "taxi:vendor:2", fromTime: "2019-01-14T00:00:00Z", toTime: "2019-01-17T00:00:00Z" }],
});

describe("a guarded rollout", { timeout: 10 * PATIENCE_MS }, () => {
  let server;
  let browser;
  let page;
  let asking;
  let isOver = false;

  /** Asks for counts all the time, so that there is something to watch. */
  async function ask() {
    while (!isOver) {
      const answer = await fetch(`${server.address}/v1/counts`, { method: "POST", headers: JSON_BODY, body: QUESTION });
      assert.equal(answer.status, 200);
      await answer.text();
    }
  }

  before(async () => {
    server = await Server.start();
    browser = await Browser.start(server);
    page = await browser.administrator();
    server.run("counters", "apply", "-f", "demo/taxi.counters.yaml");
    server.run("import", "demo/taxi.csv.gz", "--mapping", "demo/taxi.mapping.toml");
    asking = ask();
  });

  after(async () => {
    isOver = true;
    await asking;
    assert.deepEqual(page?.complaints ?? [], []);
    await browser?.stop();
    await server?.stop();
  });

  async function begin(fields) {
    await page.goto("/system/cache");
    await page.getByText("Start a guarded rollout", { exact: true }).click();
    // Everything is live while nobody has set a policy.
    await page.selectOption("#to", "none");
    for (const [name, value] of Object.entries(fields)) await page.fill(`#rollout-form [name="${name}"]`, value);
    await page.getByRole("button", { name: "Start the rollout" }).click();
    await page.waitForURL(/rollout-begun/);
  }

  /** What the page shows by itself, in time. */
  const sees = (text) => page.locator("#rollout").getByText(text).first().waitFor();

  /** Ends a stage before its time. Between two stages that is refused, and tried again. */
  async function goOn() {
    do {
      await page.goto("/system/cache");
      await page.getByRole("button", { name: "Continue now" }).click();
      await page.waitForURL(/rollout-goes-on|go-on$/);
    } while (!page.url().includes("rollout-goes-on"));
  }

  test("a problem of the plan is shown at its field", async () => {
    await page.goto("/system/cache");
    await page.getByText("Start a guarded rollout", { exact: true }).click();
    assert.deepEqual(await barriers(page), []);
    await picture(page, "rollout-1-form");
    await page.fill("#shares", "50, 20");
    await page.getByRole("button", { name: "Start the rollout" }).click();
    await sees("This must grow from step to step.");
    assert.equal(await page.inputValue("#shares"), "50, 20");
    await picture(page, "rollout-2-refused");
  });

  test("it runs, goes on, and finishes", async () => {
    await begin({ shares: "25, 100", hold: "0.3", canary: "0", "p99-free": "10000", why: "Nights are quiet" });
    await sees("Stage 1 of 3");
    await picture(page, "rollout-3-before");
    await goOn();
    await sees("cut short by ada");
    await page.locator("#rollout tr", { hasText: "p99 latency" }).getByText("holds").waitFor();
    assert.deepEqual(await barriers(page), []);
    await picture(page, "rollout-4-runs");
    await sees("every limit held");
    await sees("Earlier rollouts");
    await picture(page, "rollout-5-finished");
    await page.getByRole("link", { name: "Report 1" }).first().click();
    await page.getByRole("heading", { name: "Rollout 1: none" }).waitFor();
    assert.deepEqual(await barriers(page), []);
    await picture(page, "rollout-6-report");
  });

  test("a limit that is broken rolls it back", async () => {
    await page.goto("/system/cache");
    await page.getByRole("button", { name: "Back to version 1, the previous one" }).click();
    await page.getByText("The earlier policy is in force again").waitFor();
    await begin({ shares: "50, 100", hold: "0.3", canary: "0", "p99-times": "0", "p99-free": "0", why: "No p99 is 0" });
    await sees("was rolled back automatically");
    await sees("the 99th percentile is");
    assert.ok((await page.locator("#history-title + .scroll").textContent()).includes("rolled back"));
    await picture(page, "rollout-7-rolled-back");
    await page.getByRole("link", { name: "Report 2" }).first().click();
    await page.locator("td", { hasText: "broken" }).first().waitFor();
    await page.locator("td", { hasText: "not reached" }).first().waitFor();
    await picture(page, "rollout-8-report");
  });

  for (const width of [768, 390]) {
    test(`at ${width} pixels nothing sticks out while it runs`, async () => {
      await begin({ shares: "5, 25, 35, 75, 100", hold: "30", canary: "5", why: "Begun to be stopped" });
      await page.setViewportSize({ width, height: 1000 });
      await page.reload();
      assert.deepEqual(await barriers(page), []);
      const overhang = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      assert.ok(overhang <= 0, `${overhang} pixels wider than ${width}`);
      await picture(page, `rollout-9-${width}`);
      await page.getByRole("button", { name: "Stop and roll back" }).click();
      await page.getByText("ada stopped it").first().waitFor();
      await page.setViewportSize({ width: 1440, height: 1000 });
    });
  }
});
