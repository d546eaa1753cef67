import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exec, makeBelongings, makeCodebase, makeSandbox } from "../../../support/belongings.ts";
import { eventually } from "../../../support/eventually.ts";
import { CONTRACT, type ContractMethod, restRequestOf } from "../../../support/every-method.ts";
import { GrpcClient, type Message } from "../../../support/grpc-client.ts";
import { GuardedServer } from "../../../support/owners.ts";
import { grpcFrame, http2Post, rawExchange, rawRequest, statusOf } from "../../../support/raw-http.ts";
import { CLI, TestServer } from "../../../support/server.ts";

// A server without keys on this machine, as most people have one, and a web page of somebody else's in the browser.

let server: TestServer;
let client: GrpcClient;
let codebase_id: string;
let sandbox_id: string;
let port: string;

beforeAll(async () => {
  server = await TestServer.start();
  client = new GrpcClient(server.grpc);
  codebase_id = await makeCodebase(client, { "a.txt": "a" }, "owner");
  sandbox_id = await makeSandbox(client, codebase_id);
  port = server.http.split(":").at(-1)!;
});
afterAll(async () => {
  client?.[Symbol.dispose]();
  await server?.[Symbol.asyncDispose]();
});

async function state(): Promise<string> {
  const [codebases, sandboxes, events] = await Promise.all([
    client.call("CodebaseService", "ListCodebases", { page_size: 1000 }),
    client.call("SandboxService", "ListSandboxes", { page_size: 1000 }),
    client.call("EventService", "ListEvents", { page_size: 1000 }),
  ]);
  return JSON.stringify([codebases.codebases, sandboxes.sandboxes, (events.events as Message[]).length]);
}

function send(request: string, address = server.http): Promise<string> {
  return rawExchange(address, request);
}

const CHANGING = CONTRACT.filter(({ changes, http }) => changes && http !== undefined);
/** Enough for variations of what all others showed. */
const SOME = CHANGING.filter(({ name }) => ["CreateCodebase", "Exec", "DeleteCodebase"].includes(name));

/** The requests of the contract that change something, as raw HTTP with these headers. */
function changingRequests(
  headers: Readonly<Record<string, string>>,
  body: string,
  methods: readonly ContractMethod[] = CHANGING,
): [string, string][] {
  return methods.map((method) => {
    const { verb, target } = restRequestOf(method, { codebase_id, sandbox_id, owner_id: "owner" })!;
    const length = { "Content-Length": String(Buffer.byteLength(body)) };
    return [method.name, rawRequest(`${verb} ${target}`, { ...headers, ...length }, body)];
  });
}

describe("API-29 a web page", () => {
  const host = (): { Host: string } => ({ Host: `127.0.0.1:${port}` });

  test("API-29 cannot change anything by a form, or by whatever it may send without asking", async () => {
    const before = await state();
    const body = '{"name":"csrf","ownerId":"owner","codebaseId":"x","command":"touch pwned"}';
    for (const type of [
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "text/plain",
      "text/plain; charset=utf-8",
      "TEXT/PLAIN;application/json",
      "application/jsonp",
      "text/html",
    ]) {
      for (const [name, request] of changingRequests(
        { ...host(), "Content-Type": type },
        body,
        type === "text/plain" ? CHANGING : SOME,
      )) {
        expect([type, name, statusOf(await send(request))]).toEqual([type, name, 415]);
      }
    }
    expect(await state()).toBe(before);
  });

  test("API-29 of another origin is refused, with JSON and with a preflight too", async () => {
    const before = await state();
    for (const origin of [
      "https://evil.example",
      "http://evil.example",
      "null",
      `http://evil.example:${port}`,
      "http://127.0.0.1.evil.example",
      `http://localhost.evil.example:${port}`,
      "file://",
      `https://127.0.0.1:${port}`,
      "http://127.0.0.1:1",
    ]) {
      const headers = { ...host(), Origin: origin, "Content-Type": "application/json" };
      for (const [name, request] of changingRequests(headers, "{}", origin === "null" ? CHANGING : SOME)) {
        expect([origin, name, statusOf(await send(request))]).toEqual([origin, name, 403]);
      }
      for (const path of ["/v1/codebases", "/v1/server", "/v1/events", "/metrics", "/openapi.json"]) {
        const answer = await send(rawRequest(`GET ${path}`, { ...host(), Origin: origin }));
        expect([origin, path, statusOf(answer)]).toEqual([origin, path, 403]);
        expect(answer).not.toMatch(/access-control-allow-origin/i);
      }
      const preflight = await send(
        rawRequest("OPTIONS /v1/codebases", { ...host(), Origin: origin, "Access-Control-Request-Method": "POST" }),
      );
      expect([origin, /access-control-allow/i.test(preflight)]).toEqual([origin, false]);
    }
    expect(await state()).toBe(before);
  });

  test("API-29 cannot use gRPC-Web or Connect on either port", async () => {
    const before = await state();
    for (const address of [server.http, server.grpc]) {
      for (const type of [
        "application/grpc-web+proto",
        "application/json",
        "application/connect+json",
        "application/grpc-web-text",
      ]) {
        const request = rawRequest(
          "POST /sandbox.v1.CodebaseService/CreateCodebase",
          {
            Host: address.replace("http://", ""),
            Origin: "https://evil.example",
            "Content-Type": type,
            "Content-Length": "2",
          },
          "{}",
        );
        expect([address, type, statusOf(await send(request, address))]).toEqual([address, type, 403]);
      }
      // Without an origin, but in a type that pages may send.
      const plain = rawRequest(
        "POST /sandbox.v1.CodebaseService/CreateCodebase",
        { Host: address.replace("http://", ""), "Content-Type": "text/plain", "Content-Length": "2" },
        "{}",
      );
      expect(statusOf(await send(plain, address))).toBe(415);
    }
    expect(await state()).toBe(before);
  });

  test("API-29 the page's requests that change by GET do not exist, and no cookie is ever set", async () => {
    expect(CONTRACT.filter(({ http, changes }) => http?.verb === "GET" && changes)).toEqual([]);
    const answer = await send(rawRequest("GET /v1/codebases", host()));
    expect(statusOf(answer)).toBe(200);
    expect(answer).not.toMatch(/^set-cookie/im);
    const override = await send(
      rawRequest(`POST /v1/codebases/${codebase_id}`, {
        ...host(),
        "X-HTTP-Method-Override": "DELETE",
        "Content-Length": "0",
      }),
    );
    expect(statusOf(override)).toBeGreaterThanOrEqual(400);
    expect(await client.call("CodebaseService", "GetCodebase", { codebase_id })).toMatchObject({ id: codebase_id });
  });
});

test("API-30 a name that was made to point here is not answered, on REST, gRPC-Web, Connect or the pages", async () => {
  const names = [
    "evil.example",
    `evil.example:${port}`,
    `127.0.0.1.evil.example:${port}`,
    `localhost.evil.example:${port}`,
    "127.0.0.2",
    "0.0.0.0",
    `[::ffff:127.0.0.1]:${port}`,
    "2130706433",
    "127.1",
    "0x7f.1",
    "localhost.",
    "user@localhost",
    "localhost,evil.example",
    "evil.example#localhost",
    "",
    " ",
  ];
  for (const name of names) {
    for (const path of ["/v1/codebases", "/v1/server", "/", "/openapi.json", "/metrics", "/readyz"]) {
      const status = statusOf(await send(rawRequest(`GET ${path}`, { Host: name })));
      expect([name, path, [400, 403].includes(status), status]).toEqual([name, path, true, status]);
    }
    for (const address of [server.http, server.grpc]) {
      const request = rawRequest(
        "POST /sandbox.v1.SystemService/GetServerInfo",
        { Host: name, "Content-Type": "application/json", "Content-Length": "2" },
        "{}",
      );
      const status = statusOf(await send(request, address));
      expect([name, [400, 403].includes(status), status]).toEqual([name, true, status]);
    }
  }
  // Neither a target nor a second header says otherwise.
  const absolute = await send(rawRequest("GET http://localhost/v1/codebases", { Host: "evil.example" }));
  expect([400, 403, 404]).toContain(statusOf(absolute));
  const doubled = await send(
    "GET /v1/codebases HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
  );
  expect(statusOf(doubled)).not.toBe(200);
  const forwarded = await send(
    rawRequest("GET /v1/codebases", {
      Host: "evil.example",
      "X-Forwarded-Host": "localhost",
      Forwarded: "host=localhost",
    }),
  );
  expect(statusOf(forwarded)).toBe(403);
  for (const name of [`127.0.0.1:${port}`, `localhost:${port}`, "localhost", "LOCALHOST", "[::1]"]) {
    expect([name, statusOf(await send(rawRequest("GET /v1/codebases", { Host: name })))]).toEqual([name, 200]);
  }
});

describe("API-32 addresses", () => {
  test("API-32 the server listens on loopback only, by default", async () => {
    const own = Object.values(networkInterfaces())
      .flat()
      .filter((each) => each !== undefined && !each.internal && each.family === "IPv4");
    for (const { address } of own as { address: string }[]) {
      expect(await rawExchange(`${address}:${port}`, rawRequest("GET /healthz", { Host: "localhost" }), 3_000)).toBe(
        "",
      );
    }
    expect(server.grpc).toMatch(/^127\.0\.0\.1:/);
    expect(server.http).toMatch(/^http:\/\/127\.0\.0\.1:/);
    expect(await defaultAddresses()).toEqual(["127.0.0.1:9000", "127.0.0.1:8080"]);
  });

  test("API-32 it refuses to start open without keys, at any address that is not loopback", async () => {
    for (const [name, address] of [
      ["grpc_addr", ":0"],
      ["http_addr", "0.0.0.0:0"],
      ["grpc_addr", "some.name.example:0"],
    ] as const) {
      const settings = { server: { [name]: address }, auth: { keys: "off" } };
      const failure = await TestServer.start({ settings }).then(
        async (started) => {
          await started[Symbol.asyncDispose]();
          return "started";
        },
        (error: Error) => error.message,
      );
      expect([address, failure]).toEqual([address, expect.stringMatching(/keys/)]);
    }
  });

  test("API-32 at an open address keys are required without being asked for", async () => {
    await using open = await TestServer.start({ settings: { server: { http_addr: "0.0.0.0:0" } } });
    const address = open.http.replace("0.0.0.0", "127.0.0.1");
    expect((await fetch(`${address}/v1/codebases`)).status).toBe(401);
    using nobody = new GrpcClient(open.grpc);
    expect(await nobody.failure("SystemService", "GetServerInfo")).toMatchObject({ code: 16 });
    await eventually(() => expect(JSON.stringify(open.log)).toMatch(/cleartext/));
  });
});

/** As `config print` tells them, without any file. */
async function defaultAddresses(): Promise<string[]> {
  const directory = mkdtempSync(join(tmpdir(), "agentfense-config-"));
  try {
    writeFileSync(join(directory, "empty.yaml"), "{}\n");
    const child = spawn(
      process.execPath,
      [CLI, "config", "print", "--config", join(directory, "empty.yaml"), "--json"],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    const chunks: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => void chunks.push(chunk));
    await once(child, "close");
    const text = Buffer.concat(chunks).toString("utf8");
    return ["server.grpc_addr", "server.http_addr"].map(
      (name) =>
        new RegExp(`"${name.replace(".", "\\.")}"[^}]*?"value": *"([^"]+)"`).exec(text)?.[1] ?? text.slice(0, 200),
    );
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

test("API-45 health and metrics ask for no key, and tell no id, path, owner or name", async () => {
  await using guarded = await GuardedServer.start({ settings: { server: { metrics_addr: "127.0.0.1:0" } } });
  const { alice } = guarded;
  const { codebase_id: codebase, sandbox_id: sandbox, session_id: session } = await makeBelongings(alice.grpc);
  await exec(alice.grpc, sandbox, "cat /workspace/a.txt; echo denied > /workspace/canary-name.txt");
  await alice.grpc.outcome("CodebaseService", "DownloadFile", [
    { codebase_id: codebase, file_path: "canary-name.txt" },
  ]);
  const pages = await Promise.all(
    ["/healthz", "/readyz", "/metrics", "/openapi.json"].map(async (path) => {
      const response = await fetch(`${guarded.server.http}${path}`);
      return { path, status: response.status, text: await response.text() };
    }),
  );
  const health = await http2Post(guarded.server.grpc, "/grpc.health.v1.Health/Check", grpcFrame(Buffer.alloc(0)));
  expect(health.headers["grpc-status"]).toBe("0");
  // With an address of their own, metrics are nowhere else.
  expect(pages.map(({ path, status }) => [path, status])).toEqual([
    ["/healthz", 200],
    ["/readyz", 200],
    ["/metrics", 404],
    ["/openapi.json", 200],
  ]);
  const own = await (await fetch(`${server.http}/metrics`)).text();
  expect(own).toContain("agentfense_execs_total");
  const secrets = [
    codebase,
    sandbox,
    session,
    alice.keyId,
    "alice",
    "canary-name",
    guarded.server.directory,
    codebase_id,
    sandbox_id,
    server.directory,
    "/workspace",
    "/run/",
  ];
  for (const text of [own, ...pages.map((page) => page.text)]) {
    for (const secret of secrets.slice(0, 10)) expect(text).not.toContain(secret);
  }
  expect(own).not.toMatch(/\/workspace|\/run\/|\/tmp\//);
  for (const path of [
    "/debug",
    "/debug/pprof",
    "/debug/vars",
    "/status",
    "/config",
    "/.env",
    "/metrics/",
    "/healthz/../v1/server",
    "/admin",
    "/server-status",
  ]) {
    const answer = await rawExchange(guarded.server.http, rawRequest(`GET ${path}`, { Host: "localhost" }));
    expect([path, [401, 404].includes(statusOf(answer)), statusOf(answer)]).toEqual([path, true, statusOf(answer)]);
  }
});
