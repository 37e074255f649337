// The pages of points: from a new programme to Bob's 180 and the reason for it, and every page at three widths, light
// and dark.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Browser, PATIENCE_MS, Server, barriers, looks, picture } from "./harness.mjs";

const PAGES = {
  list: "/points",
  programme: "/points/lunch",
  edit: "/points/lunch/edit",
  members: "/points/lunch/members",
  member: "/points/lunch/members/bob",
  stranger: "/points/lunch/members/nobody",
  entry: "/points/lunch/entries/0/4",
  liability: "/points/lunch/liability",
  partners: "/points/lunch/partners",
  rewards: "/points/lunch/rewards",
  "no-partners": "/points/empty/partners",
  "no-rewards": "/points/empty/rewards",
  "no-liability": "/points/empty/liability",
  queues: "/points/queues",
  queue: "/points/queues/retry",
  "dead-letters": "/points/queues/retry.dead",
  checks: "/points/checks",
  new: "/points/new",
  missing: "/points/nowhere",
};

/** What the example of a new programme lacks. */
const MORE = `
partners:
  - {name: skyair, ownFactors: {max: 10}, perAwardMax: 50000, perDayMax: 5000000, exchange: {give: 2, get: 1}}
rewards:
  - {name: coffee, points: 30, stock: 1000, perMember: 2}
budgets: {compensation: {limit: 1000000}}
unitCost: 0.01
`;

/** An order of fifteen dollars. */
function order(id, member, data = {}) {
  return {
    specversion: "1.0", type: "order.completed", source: "orders", id, time: new Date().toISOString(),
    data: {
      consumer_id: member, order_id: id, country: "SG", vertical: "food", currency: "SGD", payment: "grabpay", amount: 15,
      ...data,
    },
  };
}

describe("points", { timeout: 20 * PATIENCE_MS }, () => {
  let server;
  let browser;
  let cookies;

  before(async () => {
    server = await Server.start();
    browser = await Browser.start(server);
    const page = await browser.administrator();
    cookies = await page.context().cookies();

    // The first programme is the example of the form; the second one has nothing.
    await page.goto("/points");
    await page.getByRole("link", { name: "Create the first one" }).click();
    await page.fill("#text", (await page.inputValue("#text")) + MORE);
    await page.fill("#reason", "lunch is on us");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved, and in effect.").waitFor();
    await page.goto("/points/new");
    await page.fill("#text", "programme: empty\n");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved, and in effect.").waitFor();

    await post("/v1/points/corrections", {
      corrections: [{ kind: "tier", programme: "lunch", member: "bob", key: "tier-bob", tier: "platinum", reason: "a test" }],
    });
    await send(order("o-1", "bob"));
    await post("/v1/points/awards", {
      awards: [{ programme: "lunch", member: "bob", key: "sorry-1", points: 100, reason: "the driver cancelled" }],
    });
    await post("/v1/points/transactions", {
      transactions: [{ kind: "burn", programme: "lunch", member: "bob", key: "coffee-1", points: 30, reason: "coffee" }],
    });
    // A table has no row for this one.
    await send(order("o-2", "jane", { currency: "IDR" }));
  });

  after(async () => {
    await browser?.stop();
    await server?.stop();
  });

  async function post(path, body, type = "application/json") {
    const answer = await fetch(`${server.address}${path}`, {
      method: "POST", headers: { "content-type": type }, body: JSON.stringify(body),
    });
    const text = await answer.text();
    assert.ok(answer.ok, text);
    assert.ok(!text.includes('"error"'), text);
  }

  async function send(event) {
    await post("/v1/events?wait=awarded", event, "application/cloudevents+json");
  }

  async function signedIn(options) {
    const page = await browser.person(options);
    await page.context().addCookies(cookies);
    return page;
  }

  for (const [name, path] of Object.entries(PAGES)) {
    test(name, async () => {
      const page = await signedIn();
      await page.goto(path, { waitUntil: "networkidle" });
      await looks(page, `points-${name}`);
      await page.context().close();
    });
  }

  test("a page that is not there leads back to the programmes", async () => {
    const page = await signedIn();
    await page.goto("/points/nowhere");
    await page.getByRole("link", { name: "Back to Points" }).click();
    await page.getByRole("link", { name: "lunch" }).first().waitFor();
  });

  test("Bob has his points, and the page says why", async () => {
    const page = await signedIn();
    await page.goto("/points/lunch");
    await page.fill("#member", "bob");
    await page.getByRole("button", { name: "Show" }).click();
    await page.locator("h1").getByText("bob").waitFor();
    // 180 for lunch and 100 for the driver, less 30 for coffee.
    await page.locator(".figure").getByText("250").first().waitFor();
    const lunch = page.locator("tr", { hasText: "+180" });
    await lunch.getByRole("link", { name: "Why?" }).click();
    await page.getByText("15 × 2 × 1 × 2 × 3 = 180 points").waitFor();
    assert.deepEqual(page.complaints, []);
  });

  test("a text is tried while it is typed, and examples must come out", async () => {
    const page = await signedIn();
    await page.goto("/points/lunch/edit");
    await page.locator("#preview").getByText("What becomes of the points").waitFor();
    await page.fill("#text", (await page.inputValue("#text")).replace("SG.food: 2", "SG.food: 3"));
    await page.locator("#preview").getByText("examples[0]").first().waitFor();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.locator(".notice.bad").first().waitFor();
    await page.goto("/points/lunch");
    await page.getByText("SG.food").first().waitFor();
    assert.deepEqual(page.complaints, []);
  });

  test("a draft is forecast beside the form", async () => {
    const page = await signedIn();
    await page.goto("/points/lunch/edit");
    const text = await page.inputValue("#text");
    // The forecast stands until the text changes, so the trial of this change comes first.
    const tried = page.waitForResponse(/points\/try/);
    await page.fill("#text", text.replace("SG.food: 2", "SG.food: 3").replace("points: 180", "points: 270"));
    await tried;
    await page.locator("#preview").getByText("1 example comes out").waitFor();
    await page.getByRole("button", { name: "Forecast from the last" }).click();
    await page.locator("#forecast").getByText("past events").waitFor();
    await page.locator("#forecast").getByText("1 event has no price").waitFor();
    await picture(page, "points-forecast-1440-light");
    assert.deepEqual(await barriers(page), []);
    assert.deepEqual(page.complaints, []);
  });

  test("the ledger is audited", async () => {
    const page = await signedIn();
    await page.goto("/points/checks");
    await page.getByRole("button", { name: "Audit now" }).click();
    await page.waitForURL(/\/points\/jobs\//);
    await page.getByText("as the events say").waitFor();
    await page.goto("/points/checks");
    await page.getByRole("button", { name: "Sweep now" }).click();
    await page.getByText("The sweep has begun.").waitFor();
    assert.deepEqual(page.complaints, []);
  });

  test("a balance is adjusted once, with a reason", async () => {
    const page = await signedIn();
    await page.goto("/points/lunch/members/carol");
    await page.getByText("Nothing has happened yet.").waitFor();
    await page.getByText("Adjust the balance").click();
    await page.fill("#points", "25");
    await page.fill("#reason", "opening balance");
    await page.getByRole("button", { name: "Adjust" }).click();
    await page.getByText("The balance is adjusted.").waitFor();
    await page.locator(".figure").getByText("25", { exact: true }).waitFor();
    assert.deepEqual(page.complaints, []);
  });

  test("everything works without scripts", async () => {
    const page = await signedIn({ script: false });
    await page.goto("/points/lunch/edit");
    await page.fill("#text", "programme: [");
    await page.getByRole("button", { name: "Check" }).click();
    await page.getByText("the text cannot be read").first().waitFor();
    await page.goto("/points/lunch/members");
    await page.fill("#member", "bob");
    await page.getByRole("button", { name: "Show" }).click();
    await page.waitForURL(/\/members\/bob$/);
  });
});
