// A real OpenID provider on a port of this machine, over TLS, with a page on which people sign in by their name alone.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:https";
import { createServer as createListener } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Provider from "oidc-provider";

const PAGE = `<!doctype html><html lang="en"><title>Harbour</title><h1>Harbour</h1>
<form method="post"><label>Name <input name="name"></label> <button>Come in</button></form></html>`;

/** A port that nobody listens on at this moment. */
export async function freePort() {
  const server = createListener().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** A certificate of this host that vouches for itself. */
function certify(certificate, key) {
  const names = ["subjectAltName=DNS:localhost", "basicConstraints=critical,CA:FALSE"].flatMap((name) => ["-addext", name]);
  const options = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", ...names];
  const made = spawnSync("openssl", [...options, "-out", certificate, "-keyout", key], { encoding: "utf8" });
  assert.equal(made.status, 0, made.stderr);
}

export class OpenIdProvider {
  static CLIENT = { id: "raingauge", secret: "the secret of the client" };

  /** `people` has the claims of each by the name that they type. Another site than the portal's, which is 127.0.0.1. */
  constructor(port, portal, people) {
    this.port = port;
    this.issuer = `https://localhost:${port}`;
    this.folder = mkdtempSync(join(tmpdir(), "raingauge-provider-"));
    this.certificate = join(this.folder, "certificate.pem");
    this.key = join(this.folder, "key.pem");
    certify(this.certificate, this.key);
    const { id, secret } = OpenIdProvider.CLIENT;
    this.provider = new Provider(this.issuer, {
      clients: [{ client_id: id, client_secret: secret, redirect_uris: [`${portal}/sign-in/openid/back`] }],
      claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"], groups: ["groups"] },
      features: { devInteractions: { enabled: false } },
      cookies: { keys: ["of this test"] },
      pkce: { required: () => true },
      interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
      findAccount: (_, name) => ({ accountId: name, claims: () => ({ sub: name, ...people[name] }) }),
      loadExistingGrant: (context) => this.grant(context.oidc),
    });
  }

  /** Nobody is asked whether the portal may know their name. */
  async grant({ client, session }) {
    const grant = new this.provider.Grant({ clientId: client.clientId, accountId: session.accountId });
    grant.addOIDCScope("openid email profile");
    await grant.save();
    return grant;
  }

  async start() {
    const answer = this.provider.callback();
    const tls = { cert: readFileSync(this.certificate), key: readFileSync(this.key) };
    this.server = createServer(tls, (request, response) => {
      const isPage = request.url.startsWith("/interaction/");
      (isPage ? this.interact(request, response) : answer(request, response));
    });
    this.server.listen(this.port, "127.0.0.1");
    await once(this.server, "listening");
  }

  async interact(request, response) {
    if (request.method === "GET") {
      response.setHeader("content-type", "text/html; charset=utf-8");
      return response.end(PAGE);
    }
    let form = "";
    for await (const part of request) form += part;
    const login = { accountId: new URLSearchParams(form).get("name") };
    return this.provider.interactionFinished(request, response, { login });
  }

  async stop() {
    rmSync(this.folder, { recursive: true, force: true });
    if (!this.server?.listening) return;
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, "close");
  }
}
