// From an empty install to a counter that one trusts, on real taxi events, as an analyst goes: by what stands on the pages.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Browser, PATIENCE_MS, Server, barriers, picture } from "./harness.mjs";

/** Whole numbers of the page, whatever stands between their thousands. */
const digits = (text) => Number(text.replace(/[\s,]/g, "").match(/\d+/)?.[0]);

describe("the path of a counter", { timeout: 10 * PATIENCE_MS }, () => {
  let server;
  let browser;
  let page;
  let id;

  before(async () => {
    server = await Server.start();
    browser = await Browser.start(server);
    page = await browser.administrator();
  });

  after(async () => {
    assert.deepEqual(page?.complaints ?? [], []);
    await browser?.stop();
    await server?.stop();
  });

  const click = (name, role = "button") => page.getByRole(role, { name, exact: true }).first().click();
  const sees = (text) => page.getByText(text).first().waitFor();

  test("an empty install says what to do", async () => {
    await page.goto("/");
    await sees("Nothing is counted yet");
    await picture(page, "path-1-empty");
  });

  test("a counter is described, and tried on real events before it is saved", async () => {
    server.run("counters", "apply", "-f", "demo/taxi.counters.yaml");
    server.run("import", "demo/taxi.csv.gz", "--mapping", "demo/taxi.mapping.toml");
    await page.goto("/counters/new");
    await page.fill("[name=name]", "taxi_pickups_by_zone_and_vendor");
    await page.fill("[name=eventType]", "taxi.pickup");
    await page.fill("[name=template]", "zones:{vendor}");
    // The events are history: what is older than it is kept would not be counted.
    for (const granularity of ["quarter", "hour"]) await page.fill(`[name=${granularity}]`, "");
    await page.locator("#example-keys code", { hasText: "zones:" }).first().waitFor();
    await page.locator("#preview", { hasText: "zones:" }).waitFor();
    assert.deepEqual(await barriers(page), []);
    await picture(page, "path-2-preview");
  });

  test("it becomes a draft, and then it counts", async () => {
    await click("Save draft");
    await page.waitForURL(/\/drafts\/\d+/);
    await page.fill("[name=reason]", "Zones are wanted by the pricing team");
    await click("Apply the draft");
    await page.waitForURL(/\/counters\/\d+/);
    id = Number(page.url().match(/counters\/(\d+)/)[1]);
    await picture(page, "path-3-active");
  });

  test("a backfill counts what came before, and survives a reload", async () => {
    await page.goto(`/counters/${id}/backfill`);
    await click("Start a backfill");
    // A reload before the answer would take the place of the request.
    await page.locator("#backfill progress, #backfill .notice").first().waitFor();
    await page.reload();
    await page.getByText("The newest backfill ended").waitFor();
    await page.goto(`/counters/${id}`);
    await page.getByText("The newest backfill ended").waitFor();
    await picture(page, "path-4-backfilled");
  });

  test("its page has a chart, its keys, and an example that asks the same", async () => {
    await page.goto(`/counters/${id}?key=zones:2&range=latest`);
    await page.locator("svg[role=img]").first().waitFor();
    await page.locator("code", { hasText: "zones:" }).first().waitFor();
    assert.ok((await page.locator("pre", { hasText: "curl" }).first().textContent()).includes("/v1/count"));
    await picture(page, "path-5-counter");
  });

  test("a query says how it was answered", async () => {
    await page.goto("/query?key=zones:1&from=2019-01-02T00:15&to=2019-01-30T09:30");
    await page.locator("svg[role=img]").first().waitFor();
    await picture(page, "path-6-query");
  });

  test("a recount from the log agrees", async () => {
    await page.goto("/checks");
    await page.fill("#key", "zones:1");
    await page.fill("#from", "2019-01-01T00:00");
    await page.fill("#to", "2019-02-01T00:00");
    await click("Recount");
    await page.locator(".notice.good", { hasText: "Equal" }).waitFor();
    await picture(page, "path-7-recount");
  });

  test("an edit is shown beside what it changes", async () => {
    await page.goto(`/counters/${id}/edit`);
    await click("Add condition");
    await page.locator("[name^='field.']").last().fill("data.vendor");
    await page.locator("[name^='value.']").last().fill("2");
    await page.locator("#preview").getByText(/lost: only now/).first().waitFor();
    await picture(page, "path-8-edit");
    await click("Save draft");
    await page.waitForURL(/\/drafts\/\d+/);
    await page.fill("[name=reason]", "One vendor is enough");
    await click("Apply the draft");
    await page.waitForURL(/\/counters\/\d+/);
  });

  test("it is rolled back", async () => {
    await page.goto(`/counters/${id}/roll-back?version=1`);
    await page.fill("[name=reason]", "It was right before");
    await page.locator("main form button.primary").click();
    await page.waitForURL((url) => !url.pathname.endsWith("roll-back"));
    await page.goto(`/counters/${id}/versions`);
    await page.locator("td", { hasText: "It was right before" }).waitFor();
    await picture(page, "path-9-versions");
  });

  test("it is archived, and the audit log knows it all", async () => {
    await page.goto(`/counters/${id}/archive`);
    await page.fill("[name=reason]", "The trial is over");
    await page.locator("main form button.danger").click();
    await page.waitForURL((url) => !url.pathname.endsWith("archive"));
    await page.goto("/audit");
    assert.ok(digits(await page.locator("tbody tr").count().then(String)) >= 4);
    await picture(page, "path-10-audit");
  });
});
