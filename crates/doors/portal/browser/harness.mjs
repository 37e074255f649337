// The real binary over a temporary data folder, and Chromium without a window in front of it.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const BINARY = process.env.RAINGAUGE_BINARY;
const PICTURES = process.env.RAINGAUGE_SCREENSHOTS;
const ROOT = new URL("../../../../", import.meta.url).pathname;
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const WIDTHS = [1440, 768, 390];
const SCHEMES = ["light", "dark"];
/** Widths and colours of a page. What only narrow pages show has dark colours too, so all of them are combined. */
const LOOKS = SCHEMES.flatMap((scheme) => WIDTHS.map((width) => [width, scheme]));
/** Longest wait for anything; a failing test ends by it. */
export const PATIENCE_MS = 60_000;

const PASSWORD = "correct horse battery staple";

/** A running server, and what it wrote to standard error. */
export class Server {
  static async start(settings = {}, { listen = "127.0.0.1:0", variables = {} } = {}) {
    const server = new Server();
    server.folder = mkdtempSync(join(tmpdir(), "raingauge-browser-"));
    const environment = { PATH: process.env.PATH, ...variables };
    for (const [key, value] of Object.entries(settings)) {
      environment[`RAINGAUGE__${key.replaceAll(".", "__").toUpperCase()}`] = value;
    }
    server.environment = environment;
    const options = ["serve", "--data-dir", join(server.folder, "data"), "--listen", listen];
    server.process = spawn(BINARY, options, { env: environment, stdio: ["ignore", "pipe", "pipe"] });
    server.errors = "";
    server.process.stderr.on("data", (text) => { server.errors += text; });
    server.address = await new Promise((resolve, reject) => {
      createInterface(server.process.stdout).once("line", (line) => resolve(line.match(/http:\S+/)[0]));
      server.process.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${server.errors}`)));
    });
    return server;
  }

  /** The link that makes the first administrator. */
  get welcome() {
    return readFileSync(join(this.folder, "data", "first-admin-link"), "utf8").trim();
  }

  /** Runs a command of the binary against this server. */
  run(...options) {
    const ran = spawnSync(BINARY, [...options, "--server", this.address], { cwd: ROOT, env: this.environment, encoding: "utf8" });
    assert.equal(ran.status, 0, ran.stderr);
    return ran.stdout;
  }

  async stop() {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.removeAllListeners("exit");
    const done = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGTERM");
    await Promise.race([ended, done]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A browser whose pages must not complain, and must not ask anybody but the server. */
export class Browser {
  static async start(server) {
    const browser = new Browser();
    browser.server = server;
    const options = { executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] };
    browser.chromium = await chromium.launch(options);
    return browser;
  }

  /** Someone with cookies of their own. */
  async person({ scheme = "light", width = 1440, height = 1000, script = true } = {}) {
    const context = await this.chromium.newContext({
      baseURL: this.server.address, colorScheme: scheme, viewport: { width, height }, javaScriptEnabled: script,
      reducedMotion: "reduce", ignoreHTTPSErrors: true,
    });
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    const complaints = [];
    page.on("console", (message) => {
      // The browser itself notes answers such as 403, which tests ask for on purpose.
      const isAnswer = message.text().startsWith("Failed to load resource");
      // htmx tells when a newer question takes the place of one under way.
      const isReplaced = /^htmx:(afterRequest|sendAbort)/.test(message.text());
      if (message.type() === "error" && !isAnswer && !isReplaced) complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("request", (request) => {
      if (!/^(data:|blob:)/.test(request.url()) && !request.url().startsWith(this.server.address)) {
        complaints.push(`asked ${request.url()}`);
      }
    });
    page.complaints = complaints;
    return page;
  }

  /** The first administrator, signed in by the link in the data folder. */
  async administrator(options) {
    const page = await this.person(options);
    await page.goto(this.server.welcome);
    await page.fill("#name", "ada");
    return enter(page);
  }

  async stop() {
    await this.chromium.close();
  }
}

/** Chooses a password on the page of a one-time link, and goes in. */
export async function enter(page) {
  for (const field of await page.locator("input[type=password]").all()) await field.fill(PASSWORD);
  await page.click("main button.primary");
  await page.waitForURL((url) => !url.pathname.startsWith("/welcome"));
  return page;
}

/** Keeps a picture of the whole page. */
export async function picture(page, name) {
  await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true });
}

/** What an accessibility checker finds that is serious. */
export async function barriers(page) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, impact, nodes }) => ({ id, impact, where: nodes.slice(0, 4).map((node) => node.html) }));
  });
  return found.filter(({ impact }) => impact === "serious" || impact === "critical");
}

/**
 * An open page at three widths, light and dark: a picture of each is kept, nothing sticks out to the side, a checker of
 * accessibility finds nothing serious, there is one title, and nothing complained.
 */
export async function looks(page, name) {
  for (const [width, colorScheme] of LOOKS) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 1000 });
    await picture(page, `${name}-${width}-${colorScheme}`);
    assert.deepEqual(await barriers(page), [], `${name} at ${width}, ${colorScheme}`);
    const overhang = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(overhang <= 0, `${name} is ${overhang} pixels wider than ${width}`);
  }
  assert.equal(await page.locator("h1").count(), 1, `${name} has one title`);
  assert.deepEqual(page.complaints, [], name);
}
