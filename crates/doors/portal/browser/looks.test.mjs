// Every page at three widths, light and dark: a picture is kept, nothing is asked of anybody else, nothing sticks out
// to the side, and a checker of accessibility finds nothing serious.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Browser, PATIENCE_MS, Server, looks } from "./harness.mjs";

const PAGES = {
  counters: "/",
  "counters-none-matches": "/?q=nothing-has-this-name",
  counter: "/counters/101?key=taxi:vendor:2&range=latest",
  versions: "/counters/101/versions",
  query: "/query",
  "query-answered": "/query?key=taxi:vendor:2&from=2019-01-14T22:15&to=2019-01-17T09:30",
  new: "/counters/new",
  edit: "/counters/101/edit",
  drafts: "/drafts",
  events: "/events",
  "events-of-type": "/events/taxi.pickup",
  checks: "/checks",
  system: "/system",
  "cache-policy": "/system/cache",
  people: "/people",
  tokens: "/tokens",
  audit: "/audit",
  account: "/account",
  backfill: "/counters/101/backfill",
  archive: "/counters/101/archive",
  erase: "/counters/101/erase",
  missing: "/counters/4000",
};
/** Pages of someone who is not signed in. */
const OUTSIDE = { "sign-in": "/sign-in" };

describe("looks", { timeout: 20 * PATIENCE_MS }, () => {
  let server;
  let browser;
  let cookies;

  before(async () => {
    server = await Server.start();
    browser = await Browser.start(server);
    const page = await browser.administrator();
    cookies = await page.context().cookies();
    server.run("counters", "apply", "-f", "demo/taxi.counters.yaml");
    server.run("import", "demo/taxi.csv.gz", "--mapping", "demo/taxi.mapping.toml");
  });

  after(async () => {
    await browser?.stop();
    await server?.stop();
  });

  async function look(name, path, isSignedIn) {
    const page = await browser.person();
    if (isSignedIn) await page.context().addCookies(cookies);
    await page.goto(path, { waitUntil: "networkidle" });
    await looks(page, name);
    await page.context().close();
  }

  for (const [name, path] of Object.entries(PAGES)) test(name, () => look(name, path, true));
  for (const [name, path] of Object.entries(OUTSIDE)) test(name, () => look(name, path, false));
});
