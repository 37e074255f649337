// The pages of campaigns: from a new campaign to a decision and a delivery, and every page at three widths, light and
// dark.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Browser, PATIENCE_MS, Server, looks } from "./harness.mjs";

const ROOT = new URL("../../../../", import.meta.url).pathname;

const PAGES = {
  list: "/campaigns",
  one: "/campaigns/7",
  "one-with-experiment": "/campaigns/2",
  versions: "/campaigns/7/versions",
  compare: "/campaigns/7/compare",
  new: "/campaigns/new",
  "new-text": "/campaigns/new/text",
  edit: "/campaigns/7/edit",
  pause: "/campaigns/7/state?to=paused",
  why: "/campaigns/why",
  "why-answered": "/campaigns/why?campaign=7&subject=u-10",
  decisions: "/campaigns/decisions",
  actions: "/campaigns/actions?status=delivered",
  "no-actions": "/campaigns/actions?status=dead",
  destinations: "/campaigns/destinations",
  destination: "/campaigns/destinations/messages",
  tables: "/campaigns/tables",
  table: "/campaigns/tables/users",
  experiments: "/campaigns/experiments?unit=u-42",
  shared: "/campaigns/shared",
  document: "/campaigns/documents/budget/growth",
  missing: "/campaigns/4000",
};

/** A destination that accepts everything. */
async function receiver() {
  const received = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => { body += chunk; });
    request.on("end", () => {
      received.push(JSON.parse(body));
      response.writeHead(204).end();
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { received, address: `127.0.0.1:${server.address().port}`, stop: () => server.close() };
}

/** The events of the demo, the last one now. */
function events() {
  const lines = readFileSync(join(ROOT, "demo/campaigns/events.ndjson"), "utf8").trim().split("\n");
  const all = lines.map((line) => JSON.parse(line));
  const shift = Date.now() - Date.parse(all.at(-1).time);
  return all.map((event) => ({ ...event, time: new Date(Date.parse(event.time) + shift).toISOString() }));
}

describe("campaigns", { timeout: 20 * PATIENCE_MS }, () => {
  let server;
  let browser;
  let cookies;
  let sink;

  before(async () => {
    sink = await receiver();
    server = await Server.start();
    browser = await Browser.start(server);
    const page = await browser.administrator();
    cookies = await page.context().cookies();

    const shared = readFileSync(join(ROOT, "demo/campaigns/shared.yaml"), "utf8");
    const file = join(server.folder, "shared.yaml");
    writeFileSync(file, shared.replaceAll("127.0.0.1:9099", sink.address));
    server.run("campaigns", "apply", "-f", file);
    for (const name of ["users", "staff"]) server.run("tables", "load", name, `demo/campaigns/${name}.csv`);
    const examples = ["01-express-then-mart", "02-rides-in-a-week", "04-late-delivery", "07-three-orders"];
    for (const name of examples) server.run("campaigns", "apply", "-f", `demo/campaigns/${name}.yaml`);

    for (const event of events()) {
      const answer = await fetch(`${server.address}/v1/events?wait=decided`, {
        method: "POST", headers: { "content-type": "application/cloudevents+json" }, body: JSON.stringify(event),
      });
      assert.equal(answer.status, 200, await answer.text());
    }
    const deadline = Date.now() + PATIENCE_MS;
    while (sink.received.length < 9 && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 50));
  });

  after(async () => {
    await browser?.stop();
    await server?.stop();
    sink?.stop();
  });

  async function signedIn(options) {
    const page = await browser.person(options);
    await page.context().addCookies(cookies);
    return page;
  }

  for (const [name, path] of Object.entries(PAGES)) {
    test(name, async () => {
      const page = await signedIn();
      await page.goto(path, { waitUntil: "networkidle" });
      await looks(page, `campaigns-${name}`);
      await page.context().close();
    });
  }

  test("a campaign is written by answers, activated, and explained", async () => {
    const page = await signedIn();
    await page.goto("/campaigns/new");
    for (const [field, value] of Object.entries({
      name: "second_order", owner: "mart", type: "mart.order", subject: "data.user_id", "field.0": "data.status",
      "value.0": "completed", number: "2", to: "rewards", what: "MART1", most: "1",
    })) {
      await page.fill(`[name="${field}"]`, value);
    }
    await page.selectOption("[name=occasion]", "reaches");
    await page.selectOption("[name=kind]", "reward");
    await page.click("main button.primary");

    // The text is tried while it is typed.
    await page.locator("#preview").getByText("awards MART1").waitFor();
    await page.fill("#text", (await page.inputValue("#text")).replace("MART1", "MART9"));
    await page.locator("#preview").getByText("awards MART9").waitFor();
    await page.fill("#text", (await page.inputValue("#text")).replace("max: 1", "max: 0"));
    await page.locator("#preview").getByText("max must be at least 1").waitFor();
    await page.fill("#text", (await page.inputValue("#text")).replace("max: 0", "max: 1"));
    await page.locator("#preview").getByText("awards MART9").waitFor();
    await page.fill("#reason", "to try it");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved, and in effect.").waitFor();

    await page.getByRole("link", { name: "Activate" }).click();
    await page.getByRole("button", { name: "Activate" }).click();
    await page.getByText("The state has changed").waitFor();
    await page.locator(".page-head").getByRole("link", { name: "Why not?" }).click();
    await page.fill("#subject", "u-8");
    await page.getByRole("button", { name: "Explain" }).click();
    await page.locator("#answer .notice").waitFor();
    assert.deepEqual(page.complaints, []);
  });

  test("everything works without scripts", async () => {
    const page = await signedIn({ script: false });
    await page.goto("/campaigns/7/edit");
    await page.fill("#text", "name: [");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("the text cannot be read").first().waitFor();
    await page.goto("/campaigns/7/edit");
    const opened = page.waitForEvent("popup");
    await page.getByRole("button", { name: "Backtest the last" }).click();
    await (await opened).waitForURL(/\/campaigns\/jobs\//);
    assert.match(page.url(), /\/campaigns\/7\/edit$/, "the text stays open");
  });

  test("what the budget did not cover is explained", async () => {
    const page = await signedIn();
    await page.goto("/campaigns/why?campaign=7&subject=u-10");
    await page.locator("#answer").getByText("the budget does not cover it any more").first().waitFor();
  });
});
