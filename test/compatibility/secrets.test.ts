import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { serveApi, testsCover } from "../support/api.ts";
import { COVERAGE } from "./coverage.ts";

const directory = mkdtempSync(join(tmpdir(), "agentfense-sealing-"));
const keyFile = join(directory, "sealing.keys");
writeFileSync(keyFile, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600 });
afterAll(() => rmSync(directory, { recursive: true }));

const api = serveApi({ settings: { secrets: { key_file: keyFile }, runtime: { networks: ["none", "filtered"] } } });
let codebase: string;
beforeAll(async () => {
  codebase = await api.codebase({ "a.txt": "alpha" });
});

describe("secrets", () => {
  const value = "a value of a secret";

  test("are put, listed without their values, used and deleted, over gRPC and REST", async () => {
    const secret = { name: "API_KEY", hosts: ["api.example.com"], place: "bearer", owner_id: "tester" };
    const facts = { ...secret, created_at: expect.anything(), updated_at: expect.anything() };
    expect(await api.call("SandboxService.PutSecret", { ...secret, value })).toEqual(facts);
    const { json } = await api.rest.request("PUT", "/v1/secrets/OTHER", {
      ...{ value, hosts: ["*.example.com"], place: "header x-key", ownerId: "tester" },
    });
    expect(json).toMatchObject({ name: "OTHER", hosts: ["*.example.com"], place: "header x-key", ownerId: "tester" });
    expect(await api.call("SandboxService.ListSecrets", { owner_id: "tester" })).toMatchObject({
      secrets: [facts, { name: "OTHER" }],
    });
    const sandbox = await api.sandbox(codebase, {
      secrets: [{ name: "API_KEY" }, { name: "OWN", value, hosts: ["own.example.com"], place: "body" }],
    });
    const made = await api.call("SandboxService.GetSandbox", { sandbox_id: sandbox });
    expect(made).toMatchObject({ network: "NETWORK_MODE_FILTERED", secrets: ["API_KEY", "OWN"] });
    const { stdout } = await api.exec(sandbox, "printenv API_KEY OWN");
    expect(stdout).toMatch(/^[A-Za-z0-9]{19}\n[A-Za-z0-9]{19}\n$/);
    expect(await api.rest.request("DELETE", "/v1/secrets/OTHER?owner_id=tester")).toMatchObject({ json: {} });
    expect((await api.rest.get("/v1/secrets?owner_id=tester")).json).toMatchObject({ secrets: [{ name: "API_KEY" }] });
    await api.refused({
      method: "SandboxService.DeleteSecret",
      request: { name: "OTHER", owner_id: "tester" },
      rest: "DELETE /v1/secrets/OTHER?owner_id=tester",
      status: "NOT_FOUND",
      message: "there is no secret OTHER",
    });
    await api.refused({
      method: "SandboxService.CreateSandbox",
      request: { codebase_id: codebase, secrets: [{ name: "OTHER" }] },
      rest: "POST /v1/sandboxes",
      status: "NOT_FOUND",
      message: "there is no secret OTHER",
    });
  });

  test("that say nothing of where they go, or in vain, are refused when they are put and when a sandbox is made", async () => {
    for (const [wrong, message] of [
      [{ hosts: [] }, "the secret KEY needs hosts that it may be sent to, 32 at most"],
      [{ hosts: ["10.0.0.1"] }, /^a host of the secret KEY is no full name: "10.0.0.1"/],
      [{ place: "cookie" }, 'the secret KEY cannot be put in "cookie"'],
      [{ value: "short" }, "the value of the secret KEY has 5 characters; 8 to 8192 are possible"],
    ] as const) {
      const secret = { name: "KEY", value, hosts: ["api.example.com"], place: "bearer", ...wrong };
      const refused = { status: "INVALID_ARGUMENT", message } as const;
      const { name: _, ...body } = secret;
      const request = { ...secret, owner_id: "tester" };
      await api.refused({ method: "SandboxService.PutSecret", request, rest: "PUT /v1/secrets/KEY", ...refused });
      await api.refused({
        method: "SandboxService.CreateSandbox",
        request: { codebase_id: codebase, secrets: [{ name: "KEY", ...body }] },
        rest: "POST /v1/sandboxes",
        ...refused,
      });
    }
    const own = { name: "KEY", value, hosts: ["api.example.com"], place: "bearer" };
    for (const [request, message] of [
      [{ secrets: [own, own] }, "the secret KEY is given twice"],
      [{ secrets: [own], env: { KEY: "x" } }, "KEY is both a variable and a secret"],
      [
        { secrets: [own], network: "NETWORK_MODE_NONE" },
        "secrets need the network filtered, which puts them into requests",
      ],
      [
        { secrets: [{ name: "API_KEY", hosts: ["evil.example.com"], place: "bearer" }] },
        "the secret API_KEY has the hosts and the place that it was put with",
      ],
    ] as const) {
      await api.refused({
        method: "SandboxService.CreateSandbox",
        request: { codebase_id: codebase, ...request },
        rest: "POST /v1/sandboxes",
        status: "INVALID_ARGUMENT",
        message,
      });
    }
  });
});

testsCover(api, COVERAGE.secrets);
