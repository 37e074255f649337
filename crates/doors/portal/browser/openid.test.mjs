// Signing in at an OpenID provider that is another site: the first time, the second time, and in vain.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Browser, PATIENCE_MS, Server, barriers, picture } from "./harness.mjs";
import { OpenIdProvider, freePort } from "./provider.mjs";

const LABEL = "Sign in with Harbour";
const PEOPLE = {
  grace: { email: "grace@rain.example", email_verified: true, name: "Grace" },
  eve: { email: "eve@rain.example", email_verified: true, name: "Eve" },
  mallory: { email: "grace@rain.example", email_verified: false, name: "Grace" },
};

describe("openid", { timeout: 10 * PATIENCE_MS }, () => {
  let provider;
  let server;
  let browser;
  let admin;

  before(async () => {
    const [port, providerPort] = [await freePort(), await freePort()];
    const portal = `http://127.0.0.1:${port}`;
    provider = new OpenIdProvider(providerPort, portal, PEOPLE);
    const { id, secret } = OpenIdProvider.CLIENT;
    const settings = {
      "portal.public_url": portal, "openid.issuer": provider.issuer, "openid.client_id": id,
      "openid.client_secret": secret, "openid.label": LABEL, "auth.required": "true",
    };
    // The provider is not there yet.
    const variables = { SSL_CERT_FILE: provider.certificate };
    server = await Server.start(settings, { listen: `127.0.0.1:${port}`, variables });
    browser = await Browser.start(server);
    admin = await browser.administrator();
  });

  after(async () => {
    await browser?.stop();
    await server?.stop();
    await provider?.stop();
    assert.ok(!server.errors.includes(OpenIdProvider.CLIENT.secret));
  });

  /** What a page complains of, beside that it asked the provider. */
  function complaints(page) {
    return page.complaints.filter((complaint) => !complaint.startsWith(`asked ${provider.issuer}/`));
  }

  async function begin(page, next) {
    await page.goto(next);
    await page.getByRole("link", { name: LABEL }).click();
  }

  async function comeIn(page, name) {
    await page.getByLabel("Name").fill(name);
    await page.getByRole("button", { name: "Come in" }).click();
  }

  async function account(page) {
    await page.goto("/account");
    return page.locator("h1").textContent();
  }

  test("a provider that is away leaves the password", async () => {
    const person = await browser.person();
    await begin(person, "/query");
    await person.getByText("The provider is out of reach").waitFor();
    assert.deepEqual(await barriers(person), []);
    await picture(person, "openid-away");
    await person.getByRole("link", { name: "Back to sign-in" }).click();
    await person.fill("#name", "ada");
    await person.fill("#password", "correct horse battery staple");
    await person.getByRole("button", { name: "Sign in", exact: true }).click();
    await person.waitForURL((url) => url.pathname === "/");
    await provider.start();
    // It is asked again a few seconds after it did not answer.
    const other = await browser.person();
    while ((await other.goto("/sign-in/openid")).url().startsWith(server.address));
    await other.getByRole("heading", { name: "Harbour" }).waitFor();
  });

  test("the button is there at every width, light and dark", async () => {
    for (const scheme of ["light", "dark"]) {
      for (const width of [1440, 390]) {
        const page = await browser.person({ scheme, width, height: 760 });
        await page.goto("/sign-in");
        await page.getByRole("link", { name: LABEL }).waitFor();
        assert.deepEqual(await barriers(page), []);
        await picture(page, `openid-sign-in-${width}-${scheme}`);
        assert.deepEqual(page.complaints, []);
      }
    }
  });

  test("an invited person comes in, and comes in again", async () => {
    await admin.goto("/people");
    const form = admin.locator("form[action='/people/invite']", { hasText: "Create a link" });
    await form.locator("#name").fill("grace");
    await form.locator("#email").fill("Grace@rain.example");
    await form.locator("#role").selectOption("editor");
    await picture(admin, "openid-invite");
    await form.locator("button.primary").click();
    await admin.locator("pre", { hasText: "/welcome/" }).waitFor();

    const grace = await browser.person();
    await begin(grace, "/query?key=taxi:vendor:2");
    await comeIn(grace, "grace");
    await grace.waitForURL(`${server.address}/query?key=taxi:vendor:2`);
    assert.equal(await account(grace), "grace");
    await grace.getByText("You have no password here").waitFor();
    await picture(grace, "openid-account");

    await grace.locator(".account summary").click();
    await grace.getByRole("button", { name: "Sign out" }).click();
    await grace.waitForURL(/\/sign-in$/);
    // The provider still knows her, and asks nothing.
    await begin(grace, "/account");
    await grace.waitForURL(`${server.address}/account`);
    assert.equal(await account(grace), "grace");
    assert.deepEqual(complaints(grace), []);

    await admin.goto("/people");
    const row = admin.getByRole("row", { name: /grace/ });
    assert.match(await row.textContent(), /signs in by OpenID Connect/);
    await admin.goto("/audit?what=session.begin");
    assert.match(await admin.locator("main").textContent(), /openid/);
  });

  test("a person without an invitation learns what to do", async () => {
    for (const [name, words] of [["eve", "nobody has invited this address"], ["mallory", "address verified at the provider"]]) {
      const page = await browser.person();
      await begin(page, "/query");
      await comeIn(page, name);
      await page.getByText(words).waitFor();
      assert.ok(page.url().startsWith(`${server.address}/sign-in/openid/back?`));
      assert.deepEqual(await barriers(page), []);
      await picture(page, `openid-refused-${name}`);
      await page.goto("/account");
      assert.match(page.url(), /\/sign-in\?next=/);
      assert.deepEqual(complaints(page), []);
    }
  });
});
