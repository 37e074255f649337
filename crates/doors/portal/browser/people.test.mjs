// Two people at the same counter, roles that refuse, and pages without scripts.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Browser, PATIENCE_MS, Server, enter, picture } from "./harness.mjs";

describe("people", { timeout: 10 * PATIENCE_MS }, () => {
  let server;
  let browser;
  let admin;

  before(async () => {
    server = await Server.start();
    browser = await Browser.start(server);
    admin = await browser.administrator();
    server.run("counters", "apply", "-f", "demo/coffee.counters.yaml");
  });

  after(async () => {
    await browser?.stop();
    await server?.stop();
  });

  /** Someone whom the administrator has invited, signed in. */
  async function invited(name, role, options) {
    await admin.goto("/people");
    const form = admin.locator("form[action='/people/invite']", { hasText: "Create a link" });
    await form.locator("#name").fill(name);
    await form.locator("#role").selectOption(role);
    await form.locator("button.primary").click();
    const link = await admin.locator("pre", { hasText: "/welcome/" }).textContent();
    const person = await browser.person(options);
    await person.goto(link.match(/\/welcome\/[0-9a-zA-Z_-]+/)[0]);
    await enter(person);
    return person;
  }

  async function edit(person, owner) {
    await person.goto("/counters/150/edit");
    await person.fill("[name=owner]", owner);
  }

  async function activate(person, reason) {
    await person.getByRole("button", { name: "Save draft", exact: true }).click();
    await person.waitForURL(/\/drafts\/\d+/);
    await person.fill("[name=reason]", reason);
    await person.getByRole("button", { name: "Apply the draft", exact: true }).click();
  }

  test("the second of two editors is warned, and shown the difference", async () => {
    const grace = await invited("grace", "editor");
    await edit(admin, "kitchen");
    await edit(grace, "bar");
    await activate(admin, "The kitchen owns it");
    await admin.waitForURL(/\/counters\/150/);
    await grace.getByRole("button", { name: "Save draft", exact: true }).click();
    await grace.getByText("Put mine on top of theirs").waitFor();
    const shown = await grace.locator("main").textContent();
    assert.ok(shown.includes("kitchen") && shown.includes("bar"), shown);
    await picture(grace, "people-conflict");
    await grace.getByRole("link", { name: "Put mine on top of theirs" }).click();
    await activate(grace, "The bar owns it after all");
    await grace.waitForURL(/\/counters\/150/);
    await grace.getByText("bar").first().waitFor();
    assert.deepEqual(grace.complaints, []);
  });

  test("a viewer sees, and is refused what changes", async () => {
    const viewer = await invited("joan", "viewer");
    await viewer.goto("/counters/150");
    assert.equal(await viewer.getByRole("link", { name: "Edit", exact: true }).count(), 0);
    for (const path of ["/counters/150/edit", "/counters/new", "/people", "/tokens"]) {
      assert.equal((await viewer.goto(path)).status(), 403, path);
    }
    await picture(viewer, "people-refused");
  });

  test("without scripts a counter is made all the same", async () => {
    const quiet = await invited("kay", "editor", { script: false });
    await quiet.goto("/counters/new");
    await quiet.fill("[name=name]", "quiet");
    await quiet.fill("[name=eventType]", "quiet.event");
    await quiet.fill("[name=template]", "quiet:{place}");
    await quiet.getByRole("button", { name: "Add condition" }).first().click();
    await quiet.locator("[name^='field.']").first().fill("data.loud");
    await quiet.getByLabel("Comparison").first().selectOption("exists");
    await quiet.getByRole("button", { name: "Save draft", exact: true }).click();
    await quiet.waitForURL(/\/drafts\/\d+/);
    await quiet.fill("[name=reason]", "No scripts here");
    await quiet.getByRole("button", { name: "Apply the draft", exact: true }).click();
    await quiet.waitForURL(/\/counters\/\d+/);
    await quiet.getByText("quiet:").first().waitFor();
  });
});
