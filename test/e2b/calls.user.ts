import { createHash } from "node:crypto";
import { request } from "node:http";
import { gzipSync } from "node:zlib";
import { Sandbox, SandboxNotFoundError } from "e2b";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, HANG_MS } from "../support/eventually.ts";
import { GuardedServer } from "../support/owners.ts";

// Every call as it is on the wire: statuses, bodies and streams, which clients of all versions read. One server, and few sandboxes.

type Json = Record<string, unknown>;

let guarded: GuardedServer;
let base: string;
/** Of Alice. */
let made: { sandboxID: string; envdAccessToken: string; trafficAccessToken: string; domain: string };
let made2: typeof made;

beforeAll(async () => {
  guarded = await GuardedServer.start({
    settings: {
      runtime: { networks: ["none", "filtered"] },
      e2b: { public_ports: true, templates: { listed: { network: { allow: ["example.com"] } } } },
    },
  });
  base = `${guarded.server.http}/e2b`;
  made = (await control("POST", "/v2/sandboxes", { templateID: "base", timeout: 3600, metadata: { n: "1" } }))
    .json as typeof made;
  made2 = (
    await control("POST", "/sandboxes", { templateID: "base", timeout: 3600, secure: true }, guarded.mallory.key)
  ).json as typeof made;
});
afterAll(() => guarded?.[Symbol.asyncDispose]());

async function control(method: string, path: string, body?: unknown, key = guarded.alice.key, more: object = {}) {
  const answer = await fetch(`${base}${path}`, {
    method,
    headers: { "x-api-key": key, ...(body === undefined ? {} : { "content-type": "application/json" }), ...more },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  const json = (text === "" ? undefined : JSON.parse(text)) as Json;
  return { status: answer.status, json, headers: answer.headers };
}

const at = (path: string) => `/sandboxes/${made.sandboxID}${path}`;

function inside(headers: object = {}): Record<string, string> {
  return {
    "e2b-sandbox-id": made.sandboxID,
    "e2b-sandbox-port": "49983",
    "x-access-token": made.envdAccessToken,
    ...headers,
  };
}

async function unary(name: string, body: unknown, headers: object = {}) {
  const answer = await fetch(`${base}/${name}`, {
    method: "POST",
    headers: { ...inside(headers), "content-type": "application/json", "connect-protocol-version": "1" },
    body: JSON.stringify(body),
  });
  return { status: answer.status, json: (await answer.json()) as Json };
}

function framed(...messages: readonly object[]): Uint8Array<ArrayBuffer> {
  const frames = messages.map((message) => {
    const text = Buffer.from(JSON.stringify(message));
    const head = Buffer.alloc(5);
    head.writeUInt32BE(text.length, 1);
    return Buffer.concat([head, text]);
  });
  return new Uint8Array(Buffer.concat(frames));
}

/** Messages of a stream as they come; the last has the flag 2. */
async function* stream(name: string, body: object, headers: object = {}, signal?: AbortSignal) {
  const answer = await fetch(`${base}/${name}`, {
    method: "POST",
    headers: { ...inside(headers), "content-type": "application/connect+json", "connect-protocol-version": "1" },
    body: framed(body),
    ...(signal === undefined ? {} : { signal }),
  });
  expect(answer.headers.get("content-type")).toBe("application/connect+json");
  let rest = Buffer.alloc(0);
  for await (const piece of answer.body!) {
    rest = Buffer.concat([rest, piece]);
    while (rest.length >= 5 && rest.length >= 5 + rest.readUInt32BE(1)) {
      const length = rest.readUInt32BE(1);
      yield { flags: rest[0]!, message: JSON.parse(rest.toString("utf8", 5, 5 + length)) as Json };
      rest = rest.subarray(5 + length);
    }
  }
}

async function all(frames: AsyncIterable<{ flags: number; message: Json }>) {
  const found: { flags: number; message: Json }[] = [];
  for await (const frame of frames) found.push(frame);
  return found;
}

const run = (script: string, more: object = {}, headers: object = {}) =>
  stream(
    "process.Process/Start",
    { process: { cmd: "/bin/bash", args: ["-l", "-c", script] }, stdin: false, ...more },
    headers,
  );

/** What a command printed, and its end. */
async function ran(script: string, more: object = {}, headers: object = {}) {
  const frames = await all(run(script, more, headers));
  const events = frames.map(({ message }) => message.event as Json | undefined);
  const text = (of: string) =>
    Buffer.concat(
      events.flatMap((event) => {
        const data = (event?.data as Json | undefined)?.[of];
        return typeof data === "string" ? [Buffer.from(data, "base64")] : [];
      }),
    ).toString();
  return { frames, stdout: text("stdout"), stderr: text("stderr"), end: events.find((event) => event?.end)?.end };
}

async function file(
  method: string,
  query: Json,
  body?: string | Uint8Array<ArrayBuffer> | FormData,
  headers: object = {},
) {
  const url = `${base}/files?${new URLSearchParams(query as Record<string, string>)}`;
  const answer = await fetch(url, { method, headers: inside(headers), ...(body === undefined ? {} : { body }) });
  const text = await answer.text();
  return { status: answer.status, text, headers: answer.headers };
}

const OCTETS = { "content-type": "application/octet-stream" };

describe("the control plane", () => {
  test("create answers 201 with all that clients want to read", async () => {
    expect(made).toMatchObject({
      ...{ templateID: "base", clientID: expect.any(String), envdVersion: "0.6.13" },
      ...{ envdAccessToken: expect.stringMatching(/^afe_/), trafficAccessToken: expect.stringMatching(/^aft_/) },
      domain: new URL(base).host.replace("127.0.0.1", "localhost"),
    });
  });

  test("detail has dates, figures, a state and metadata", async () => {
    const { status, json } = await control("GET", at(""));
    expect(status).toBe(200);
    expect(json).toMatchObject({
      ...{ sandboxID: made.sandboxID, state: "running", metadata: { n: "1" }, volumeMounts: [] },
      ...{ allowInternetAccess: false, lifecycle: { onTimeout: "kill", autoResume: false } },
    });
    expect([json.cpuCount, json.memoryMB, json.diskSizeMB].every((figure) => (figure as number) > 0)).toBe(true);
    const [start, end] = [Date.parse(json.startedAt as string), Date.parse(json.endAt as string)];
    expect(Math.abs(end - start - 3_600_000)).toBeLessThan(60_000);
  });

  test.each([
    ["v1 of nothing", "GET", "/sandboxes/nothing", undefined, 404],
    ["a sandbox that there is not", "GET", "/sandboxes/sb_00000000000000000000000000000000", undefined, 404],
    ["the end of one that there is not", "DELETE", "/sandboxes/isomewhere", undefined, 404],
    ["its time", "POST", "/sandboxes/isomewhere/timeout", { timeout: 1 }, 404],
    ["to connect to it", "POST", "/v2/sandboxes/isomewhere/connect", { timeout: 1 }, 404],
    ["to connect to it, before v2", "POST", "/sandboxes/isomewhere/connect", { timeout: 1 }, 404],
    ["to pause it", "POST", "/sandboxes/isomewhere/pause", {}, 404],
    ["to resume it", "POST", "/sandboxes/isomewhere/resume", { timeout: 1 }, 404],
    ["to refresh it", "POST", "/sandboxes/isomewhere/refreshes", { duration: 1 }, 404],
    ["its metrics", "GET", "/sandboxes/isomewhere/metrics", undefined, 404],
    ["its logs", "GET", "/sandboxes/isomewhere/logs", undefined, 404],
    ["its logs, v2", "GET", "/v2/sandboxes/isomewhere/logs", undefined, 404],
    ["its network", "PUT", "/sandboxes/isomewhere/network", {}, 404],
    ["an unknown template", "POST", "/v2/sandboxes", { templateID: "unknown" }, 404],
    ["a template that is no text", "POST", "/v2/sandboxes", { templateID: 5 }, 400],
    ["no template", "POST", "/v2/sandboxes", {}, 400],
    ["a time that is none", "POST", "/v2/sandboxes", { templateID: "base", timeout: -1 }, 400],
    ["metadata that is none", "POST", "/v2/sandboxes", { templateID: "base", metadata: { a: 1 } }, 400],
    [
      "addresses that cannot be kept away",
      "POST",
      "/v2/sandboxes",
      { templateID: "base", network: { denyOut: ["10.0.0.0/8"] } },
      400,
    ],
    ["rules of a network", "POST", "/v2/sandboxes", { templateID: "base", network: { rules: {} } }, 400],
    ["a proxy", "POST", "/v2/sandboxes", { templateID: "base", network: { egressProxy: {} } }, 400],
    ["an MCP gateway", "POST", "/v2/sandboxes", { templateID: "base", mcp: {} }, 501],
    [
      "volumes of a sandbox",
      "POST",
      "/v2/sandboxes",
      { templateID: "base", volumeMounts: [{ name: "v", path: "/v" }] },
      501,
    ],
    ["snapshots", "GET", "/snapshots", undefined, 501],
    ["volumes", "GET", "/volumes", undefined, 501],
    ["secrets", "POST", "/secrets", {}, 501],
    ["teams", "GET", "/teams", undefined, 501],
    ["to build a template", "POST", "/v3/templates", {}, 501],
    ["the alias of a template", "GET", "/templates/aliases/base", undefined, 501],
    ["another method", "PATCH", "/v2/sandboxes", {}, 501],
    ["a page of nothing", "GET", "/v2/sandboxes?nextToken=nothing", undefined, 400],
    ["a start that is no date", "GET", "/v2/sandboxes?startedAfter=soon", undefined, 400],
  ])("%s is refused with its status in the body", async (_title, method, path, body, status) => {
    const { status: told, json, headers } = await control(method, path, body);
    expect([told, json.code, typeof json.message]).toEqual([status, status, "string"]);
    expect(headers.get("should-retry")).toBe("false");
  });

  test.each(["snapshots", "fork"])("%s of a sandbox is answered 501", async (what) => {
    expect((await control("POST", at(`/${what}`), {})).json).toMatchObject({ code: 501 });
  });

  test("without a key it is 401, with one that is none too, in a body that clients of both languages read", async () => {
    for (const headers of [{}, { "x-api-key": "e2b_00" }]) {
      const answer = await fetch(`${base}/v2/sandboxes`, { headers: headers as Record<string, string> });
      expect(answer.status).toBe(401);
      expect(await answer.json()).toMatchObject({ code: 401, message: expect.any(String) });
    }
  });

  test("timeout says exactly when it ends, refreshes and connect only make it later", async () => {
    const end = async () => Date.parse((await control("GET", at(""))).json.endAt as string);
    const from = Date.now();
    const ends: number[] = [];
    for (const timeout of [1000, 3000, 2000]) {
      expect((await control("POST", at("/timeout"), { timeout })).status).toBe(204);
      ends.push(await end());
    }
    const [shortest, longest, first] = ends as [number, number, number];
    expect([shortest < first, first < longest]).toEqual([true, true]);
    expect(first - from).toBeGreaterThanOrEqual(2_000_000);
    expect(first - from).toBeLessThan(2_000_000 + HANG_MS);
    expect((await control("POST", at("/refreshes"), { duration: 10 })).status).toBe(204);
    expect(await end()).toBe(first);
    const v2 = await control("POST", `/v2${at("/connect")}`, { timeout: 10 });
    expect([v2.status, v2.json.sandboxID, await end()]).toEqual([200, made.sandboxID, first]);
    expect(v2.json).toMatchObject({ envdAccessToken: made.envdAccessToken });
    expect((await control("POST", at("/connect"), { timeout: 2000 })).status).toBe(200);
    expect(await end()).toBeGreaterThan(first);
    expect((await control("POST", at("/refreshes"), { duration: 4000 })).status).toBe(204);
  });

  test("pause, and again, and connect and resume: 204, 409, 201, 200", async () => {
    const id = (await control("POST", "/v2/sandboxes", { templateID: "base" })).json.sandboxID as string;
    const statuses: number[] = [];
    for (const [what, body] of [
      ["pause", {}],
      ["pause", {}],
      ["connect", { timeout: 60 }],
      ["connect", { timeout: 60 }],
      ["pause", { memory: true }],
      ["resume", { timeout: 60 }],
    ] as const) {
      statuses.push((await control("POST", `/sandboxes/${id}/${what}`, body)).status);
    }
    expect(statuses).toEqual([204, 409, 201, 200, 204, 201]);
    expect((await control("POST", `/sandboxes/${id}/pause`, {})).status).toBe(204);
    expect((await control("DELETE", `/sandboxes/${id}`)).status).toBe(204);
  });

  test("one that pauses by itself is kept, told as such, and goes on when it is connected to or asked", async () => {
    const create = { templateID: "base", timeout: 1, autoPause: true, autoResume: { enabled: true } };
    const other = (await control("POST", "/v2/sandboxes", create)).json as typeof made;
    const detail = async () => (await control("GET", `/sandboxes/${other.sandboxID}`)).json;
    expect((await detail()).lifecycle).toEqual({ onTimeout: "pause", autoResume: true });
    await eventually(async () => expect((await detail()).state).toBe("paused"));
    const there = { "e2b-sandbox-id": other.sandboxID, "x-access-token": other.envdAccessToken };
    const health = async () => (await fetch(`${base}/health`, { headers: inside(there) })).status;
    expect(await health()).toBe(502);
    expect((await control("POST", `/v2/sandboxes/${other.sandboxID}/connect`, { timeout: 1 })).status).toBe(201);
    await eventually(async () => expect((await detail()).state).toBe("paused"));
    // It was made to go on with whatever is asked of it.
    expect((await unary("filesystem.Filesystem/Stat", { path: "" }, there)).status).toBe(200);
    expect([(await detail()).state, await health()]).toEqual(["running", 204]);
    await control("DELETE", `/sandboxes/${other.sandboxID}`);
  });

  test("one that pauses by itself and does not go on by itself is gone until somebody connects", async () => {
    const other = await Sandbox.create({
      ...{ apiKey: guarded.alice.key, apiUrl: base, sandboxUrl: base, timeoutMs: 1000 },
      lifecycle: { onTimeout: "pause" },
    });
    await eventually(async () => expect((await other.getInfo()).state).toBe("paused"));
    await expect(other.commands.run("true")).rejects.toThrow(SandboxNotFoundError);
    const again = await Sandbox.connect(other.sandboxId, { apiKey: guarded.alice.key, apiUrl: base, sandboxUrl: base });
    expect((await again.commands.run("echo on")).stdout).toBe("on\n");
    expect(await again.kill()).toBe(true);
  });

  test("asking twice under one name makes one sandbox; another body or key makes another", async () => {
    const create = (body: Json, key?: string) =>
      control("POST", "/v2/sandboxes", body, key, { "idempotency-key": "once" });
    const body = { templateID: "base", metadata: { once: "yes" } };
    const [one, same] = await Promise.all([create(body), create(body)]);
    expect([one.status, same.status, same.json.sandboxID]).toEqual([201, 201, one.json.sandboxID]);
    const others = [await create({ templateID: "base" }), await create(body, guarded.mallory.key)];
    expect(new Set([one, ...others].map(({ json }) => json.sandboxID)).size).toBe(3);
    await control("DELETE", `/sandboxes/${one.json.sandboxID}`);
    await control("DELETE", `/sandboxes/${others[0]!.json.sandboxID}`);
    await control("DELETE", `/sandboxes/${others[1]!.json.sandboxID}`, undefined, guarded.mallory.key);
  });

  test("lists have pages, an order, states, a template and metadata that is escaped three times", async () => {
    const ids: string[] = [];
    for (const metadata of [{ k: "a b&c" }, { k: "z" }]) {
      ids.push(
        (await control("POST", "/v2/sandboxes", { templateID: "code-interpreter-v1", metadata })).json
          .sandboxID as string,
      );
    }
    const list = async (query: string) => {
      const { json, headers } = await control("GET", `/v2/sandboxes?template=code-interpreter-v1&${query}`);
      return { ids: (json as unknown as Json[]).map(({ sandboxID }) => sandboxID), next: headers.get("x-next-token") };
    };
    expect((await list("order=asc")).ids).toEqual(ids);
    expect((await list("order=desc")).ids).toEqual(ids.toReversed());
    const first = await list("limit=1");
    expect(first).toEqual({ ids: [ids[1]], next: expect.any(String) });
    expect(await list(`limit=1&nextToken=${first.next}`)).toEqual({ ids: [ids[0]], next: null });
    const once = encodeURIComponent(`k=${encodeURIComponent("a b&c")}`);
    expect((await list(`metadata=${encodeURIComponent(once)}`)).ids).toEqual([ids[0]]);
    await control("POST", `/sandboxes/${ids[0]}/pause`, {});
    expect((await list("state=paused")).ids).toEqual([ids[0]]);
    expect((await list("state=running")).ids).toEqual([ids[1]]);
    expect((await list("state=running,paused")).ids).toHaveLength(2);
    expect((await list(`startedAfter=${encodeURIComponent(new Date(Date.now() + 60_000).toISOString())}`)).ids).toEqual(
      [],
    );
    const old = (await control("GET", "/sandboxes")).json as unknown as Json[];
    expect(old.map(({ sandboxID }) => sandboxID)).toEqual([ids[1], made.sandboxID]);
    for (const id of ids) expect((await control("DELETE", `/sandboxes/${id}`)).status).toBe(204);
  });

  test("metrics are of now, and real", async () => {
    await unary("filesystem.Filesystem/MakeDir", { path: "metrics" });
    await file("POST", { path: "metrics/large" }, "x".repeat(1024 * 1024), OCTETS);
    const asked = Date.now();
    const { json } = await control("GET", at("/metrics"));
    const [now] = json as unknown as Record<string, number>[];
    expect(Math.abs(now!.timestampUnix! * 1000 - asked)).toBeLessThan(HANG_MS);
    expect(now).toMatchObject({ cpuCount: expect.any(Number), timestamp: expect.any(String) });
    expect([now!.memUsed! > 100_000, now!.memUsed! < now!.memTotal!, now!.diskUsed! > 1_000_000]).toEqual([
      true,
      true,
      true,
    ]);
    expect(now!.diskUsed! <= now!.diskTotal! && now!.cpuUsedPct! >= 0).toBe(true);
    expect((await control("GET", at("/metrics?start=1&end=2"))).json).toEqual([]);
  });

  test("logs tell what happened, in both versions, from a time on", async () => {
    await ran("echo logged");
    const v1 = (await control("GET", at("/logs?limit=1000"))).json as { logs: Json[]; logEntries: Json[] };
    const lines = v1.logs.map(({ line }) => JSON.parse(line as string) as Json);
    expect(lines.map(({ message }) => message)).toContain("sandbox created");
    expect(lines.every(({ level, logger }) => typeof level === "string" && logger === "agentfense")).toBe(true);
    expect(v1.logEntries[0]).toMatchObject({ level: "info", message: expect.any(String), fields: expect.any(Object) });
    const later = Date.parse(v1.logs.at(-1)!.timestamp as string) + 1;
    expect((await control("GET", at(`/logs?start=${later}`))).json).toEqual({ logs: [], logEntries: [] });
    const v2 = (await control("GET", `/v2${at("/logs?limit=2")}`)).json as { logs: Json[] };
    expect(v2.logs).toEqual(v1.logEntries.slice(0, 2));
    const back = (await control("GET", `/v2${at(`/logs?limit=1&direction=backward&cursor=${later}`)}`)).json as {
      logs: Json[];
    };
    expect(back.logs).toEqual([v1.logEntries.at(-1)]);
  });

  test("the list of a network can be replaced; what has none keeps none", async () => {
    const id = (await control("POST", "/v2/sandboxes", { templateID: "listed" })).json.sandboxID as string;
    const put = async (body: Json, of = id) => (await control("PUT", `/sandboxes/${of}/network`, body)).status;
    const allowed = async () => ((await control("GET", `/sandboxes/${id}`)).json.network as Json).allowOut;
    expect(await allowed()).toEqual(["example.com"]);
    expect(await put({ allowOut: ["pypi.org"], denyOut: ["0.0.0.0/0"] })).toBe(204);
    expect(await allowed()).toEqual(["pypi.org"]);
    expect(await put({ allow_internet_access: false })).toBe(204);
    expect(await allowed()).toEqual([]);
    expect([await put({}), await put({ denyOut: ["10.0.0.0/8"] })]).toEqual([400, 400]);
    expect([await put({}, made.sandboxID), await put({ allow_internet_access: false }, made.sandboxID)]).toEqual([
      204, 204,
    ]);
    expect(await put({ allowOut: ["pypi.org"], denyOut: ["0.0.0.0/0"] }, made.sandboxID)).toBe(400);
    await control("DELETE", `/sandboxes/${id}`);
  });
});

describe("who is meant", () => {
  test.each([
    ["another sandbox's token", () => ({ "x-access-token": made2.envdAccessToken })],
    ["another sandbox's id", () => ({ "e2b-sandbox-id": made2.sandboxID })],
    ["an id that there is not", () => ({ "e2b-sandbox-id": "sb_00000000000000000000000000000000" })],
    ["a token that was cut", () => ({ "x-access-token": made.envdAccessToken.slice(0, -3) })],
    ["the token for traffic", () => ({ "x-access-token": made.trafficAccessToken })],
    ["an empty token", () => ({ "x-access-token": "" })],
  ])("%s is refused for files, commands and watches alike", async (_title, headers) => {
    const stat = await unary("filesystem.Filesystem/Stat", { path: "" }, headers());
    const read = await file("GET", { path: "x" }, undefined, headers());
    expect([stat.status, read.status]).toEqual([401, 401]);
    const started = await fetch(`${base}/process.Process/Start`, {
      ...{ method: "POST", body: framed({ process: { cmd: "true" } }) },
      headers: { ...inside(headers()), "content-type": "application/connect+json" },
    });
    expect(started.status).toBe(401);
  });

  test("a token alone says which sandbox, as the clients of old sent it", async () => {
    const answer = await fetch(`${base}/files?path=/proc/self/stat`, {
      headers: { "x-access-token": made.envdAccessToken },
    });
    expect(answer.status).toBe(200);
  });

  test("a key and the id of a sandbox are for the control plane", async () => {
    expect((await control("GET", at(""), undefined, undefined, { "e2b-sandbox-id": made.sandboxID })).status).toBe(200);
  });

  test("slashes too many are one", async () => {
    const answer = await fetch(`${base}//v2//sandboxes`, { headers: { "x-api-key": guarded.alice.key } });
    expect(answer.status).toBe(200);
  });

  test("a sandbox that is gone is 502, in the words that clients look for", async () => {
    const other = (await control("POST", "/v2/sandboxes", { templateID: "base" })).json as typeof made;
    const there = { "e2b-sandbox-id": other.sandboxID, "x-access-token": other.envdAccessToken };
    await control("DELETE", `/sandboxes/${other.sandboxID}`);
    for (const path of ["health", "files?path=a"]) {
      const answer = await fetch(`${base}/${path}`, { headers: inside(there) });
      expect([answer.status, await answer.json()]).toEqual([
        502,
        { code: 502, message: "The sandbox was not found", sandboxId: other.sandboxID },
      ]);
    }
    expect((await unary("process.Process/List", {}, there)).status).toBe(502);
  });

  test("what the orchestrator alone calls is not there", async () => {
    for (const path of ["init", "freeze", "files/compose"]) {
      expect((await fetch(`${base}/${path}`, { method: "POST", headers: inside(), body: null })).status).toBe(501);
    }
  });
});

describe("signed URLs", () => {
  const sign = (path: string, operation: string, { user = "", end }: { user?: string; end?: number } = {}) => {
    const text = `${path}:${operation}:${user}:${made.envdAccessToken}${end === undefined ? "" : `:${end}`}`;
    return `v1_${createHash("sha256").update(text).digest("base64").replaceAll("=", "")}`;
  };
  const url = (query: Json) => `${guarded.server.http}/files?${new URLSearchParams(query as Record<string, string>)}`;
  const soon = Math.floor(Date.now() / 1000) + 600;

  test("one is good for its path, operation and time", async () => {
    await file("POST", { path: "signed.txt" }, "s", OCTETS);
    const good = {
      path: "signed.txt",
      signature: sign("signed.txt", "read", { end: soon }),
      signature_expiration: String(soon),
    };
    expect((await fetch(url(good))).status).toBe(200);
    expect((await fetch(url({ path: "signed.txt", signature: sign("signed.txt", "read") }))).status).toBe(200);
    const up = await fetch(url({ path: "up.txt", signature: sign("up.txt", "write") }), {
      method: "POST",
      headers: OCTETS,
      body: "u",
    });
    expect(up.status).toBe(200);
  });

  test.each([
    ["another path", () => ({ path: "other", signature: sign("signed.txt", "read") })],
    ["the same path in another form", () => ({ path: "./signed.txt", signature: sign("signed.txt", "read") })],
    ["a path above", () => ({ path: "../user/signed.txt", signature: sign("signed.txt", "read") })],
    ["another user", () => ({ path: "signed.txt", username: "root", signature: sign("signed.txt", "read") })],
    ["another operation", () => ({ path: "signed.txt", signature: sign("signed.txt", "write") })],
    [
      "another end",
      () => ({
        path: "signed.txt",
        signature: sign("signed.txt", "read", { end: soon }),
        signature_expiration: String(soon + 1),
      }),
    ],
    ["an end that is left out", () => ({ path: "signed.txt", signature: sign("signed.txt", "read", { end: soon }) })],
    [
      "an end that was",
      () => ({ path: "signed.txt", signature: sign("signed.txt", "read", { end: 1 }), signature_expiration: "1" }),
    ],
    [
      "an end that is no number",
      () => ({ path: "signed.txt", signature: sign("signed.txt", "read"), signature_expiration: "never" }),
    ],
    ["a signature that is none", () => ({ path: "signed.txt", signature: "v1_x" })],
    ["none at all", () => ({ path: "signed.txt" })],
  ])("%s is 401", async (_title, query) => {
    for (let times = 0; times < 2; times += 1) expect((await fetch(url(query()))).status).toBe(401);
  });
});

describe("files", () => {
  test("one part of a form goes to the path, several to their names", async () => {
    const one = new FormData();
    one.append("file", new Blob(["1"]), "ignored.txt");
    const answer = await file("POST", { path: "form/one.txt" }, one);
    expect([answer.status, JSON.parse(answer.text)]).toEqual([
      200,
      [{ path: "/home/user/form/one.txt", name: "one.txt", type: "file" }],
    ]);
    const several = new FormData();
    for (const name of ["form/ä ö.txt", '/tmp/form/"q".txt']) several.append("file", new Blob([name]), name);
    expect((await file("POST", {}, several)).status).toBe(200);
    expect((await file("GET", { path: "form/ä ö.txt" })).text).toBe("form/ä ö.txt");
    expect((await file("GET", { path: '/tmp/form/"q".txt' })).text).toBe('/tmp/form/"q".txt');
  });

  test("octets are written as they are, packed ones unpacked, and an old file is cut", async () => {
    await file("POST", { path: "o.txt" }, "long before", OCTETS);
    await file("POST", { path: "o.txt" }, "now", OCTETS);
    expect((await file("GET", { path: "o.txt" })).text).toBe("now");
    await file("POST", { path: "o.txt" }, new Uint8Array(gzipSync("packed")), {
      ...OCTETS,
      "content-encoding": "gzip",
    });
    expect((await file("GET", { path: "~/o.txt" })).text).toBe("packed");
    expect((await file("POST", { path: "o.txt" }, "x", { ...OCTETS, "content-encoding": "br" })).status).toBe(400);
  });

  test("an answer has a length, 0 too, and is never taken for a page", async () => {
    await file("POST", { path: "empty" }, "", OCTETS);
    const { status, headers } = await file("GET", { path: "empty" });
    expect([status, headers.get("content-length"), headers.get("x-content-type-options")]).toEqual([
      200,
      "0",
      "nosniff",
    ]);
    expect((await file("HEAD", { path: "o.txt" })).status).toBe(200);
  });

  test.each([
    ["what is not there", "GET", { path: "missing" }, 404],
    ["a directory", "GET", { path: "/home/user" }, 400],
    ["the home", "GET", {}, 400],
    ["an unknown user", "GET", { path: "o.txt", username: "eve" }, 401],
    ["a NUL", "GET", { path: "a\0b" }, 400],
    ["a directory to write to", "POST", { path: "/home/user" }, 400],
    ["a place that is read-only", "POST", { path: "/usr/new" }, 403],
    ["another method", "DELETE", { path: "o.txt" }, 405],
  ])("%s is refused with its status in the body", async (_title, method, query, status) => {
    const answer = await file(method, query, method === "POST" ? "x" : undefined, method === "POST" ? OCTETS : {});
    expect([answer.status, (JSON.parse(answer.text) as Json).code]).toEqual([status, status]);
  });

  test("metadata is kept with a file, replaced as a set, and moves along", async () => {
    const write = (headers: object) => file("POST", { path: "meta/a.txt" }, "m", { ...OCTETS, ...headers });
    const answer = await write({ "X-Metadata-Author": "me", "x-metadata-n": "1" });
    expect(JSON.parse(answer.text)).toMatchObject([{ metadata: { author: "me", n: "1" } }]);
    const metadata = async (path: string) =>
      ((await unary("filesystem.Filesystem/Stat", { path })).json.entry as Json).metadata;
    expect(await metadata("meta/a.txt")).toEqual({ author: "me", n: "1" });
    await write({ "X-Metadata-Author": "you" });
    expect(await metadata("meta/a.txt")).toEqual({ author: "you" });
    await unary("filesystem.Filesystem/Move", { source: "meta/a.txt", destination: "meta/b.txt" });
    const listed = (await unary("filesystem.Filesystem/ListDir", { path: "meta", depth: 1 })).json.entries as Json[];
    expect(listed.map(({ name, metadata: kept }) => [name, kept])).toEqual([["b.txt", { author: "you" }]]);
    await file("POST", { path: "meta/b.txt" }, "", OCTETS);
    expect(await metadata("meta/b.txt")).toEqual({});
  });
});

describe("filesystem.Filesystem", () => {
  const fs = (name: string, body: Json, headers?: object) => unary(`filesystem.Filesystem/${name}`, body, headers);

  test("an entry has all that clients read", async () => {
    await file("POST", { path: "entry/f.sh" }, "12345", OCTETS);
    await ran("chmod 750 ~/entry/f.sh; ln -s f.sh ~/entry/link");
    const { json } = await fs("Stat", { path: "entry/f.sh", unknown: true });
    expect(json.entry).toEqual({
      ...{ name: "f.sh", type: "FILE_TYPE_FILE", path: "/home/user/entry/f.sh", size: "5", mode: 0o750 },
      ...{
        permissions: "-rwxr-x---",
        owner: "user",
        group: "user",
        modifiedTime: expect.stringMatching(/Z$/),
        metadata: {},
      },
    });
    expect((await fs("Stat", { path: "entry/link" })).json.entry).toMatchObject({
      ...{ type: "FILE_TYPE_SYMLINK", symlinkTarget: "f.sh" },
    });
    expect((await fs("Stat", { path: "" })).json.entry).toMatchObject({
      path: "/home/user",
      type: "FILE_TYPE_DIRECTORY",
    });
  });

  test.each([
    ["Stat of nothing", "Stat", { path: "no" }, 404, "not_found"],
    ["ListDir of nothing", "ListDir", { path: "no" }, 404, "not_found"],
    ["ListDir of a file", "ListDir", { path: "entry/f.sh" }, 400, "invalid_argument"],
    ["MakeDir of what is there", "MakeDir", { path: "entry" }, 409, "already_exists"],
    ["MakeDir over a file", "MakeDir", { path: "entry/f.sh" }, 400, "invalid_argument"],
    ["Move of nothing", "Move", { source: "no", destination: "yes" }, 404, "not_found"],
    ["Move without a place", "Move", { source: "no" }, 400, "invalid_argument"],
    ["Stat elsewhere of nothing", "Stat", { path: "/tmp/no" }, 404, "not_found"],
    ["ListDir elsewhere of nothing", "ListDir", { path: "/tmp/no" }, 404, "not_found"],
    ["GetWatcherEvents of nothing", "GetWatcherEvents", { watcherId: "no" }, 404, "not_found"],
    ["RemoveWatcher of nothing", "RemoveWatcher", { watcherId: "no" }, 404, "not_found"],
    ["CreateWatcher of nothing", "CreateWatcher", { path: "no" }, 404, "not_found"],
    ["CreateWatcher of a file", "CreateWatcher", { path: "entry/f.sh" }, 400, "invalid_argument"],
    ["a path that is no text", "Stat", { path: 1 }, 400, "invalid_argument"],
    ["a call that there is not", "Chmod", {}, 501, undefined],
  ])("%s has a word of Connect", async (_title, name, body, status, code) => {
    const answer = await fs(name, body);
    expect([answer.status, code === undefined ? undefined : answer.json.code]).toEqual([status, code]);
  });

  test("an unknown user is unauthenticated", async () => {
    const eve = { authorization: `Basic ${Buffer.from("eve:").toString("base64")}` };
    expect((await fs("Stat", { path: "" }, eve)).json).toMatchObject({ code: "unauthenticated" });
  });

  test("depth counts from the directory, 0 is 1, and links are not followed", async () => {
    await ran("mkdir -p ~/deep/a/b; ln -s a ~/deep/l; touch ~/deep/a/b/c");
    const paths = async (depth?: number) =>
      ((await fs("ListDir", { path: "deep", ...(depth === undefined ? {} : { depth }) })).json.entries as Json[]).map(
        ({ path }) => (path as string).slice("/home/user/deep/".length),
      );
    expect(await paths()).toEqual(["a", "l"]);
    expect(await paths(0)).toEqual(["a", "l"]);
    expect(await paths(2)).toEqual(["a", "a/b", "l"]);
    expect(await paths(9)).toEqual(["a", "a/b", "a/b/c", "l"]);
  });

  test("Remove takes all below, and nothing is fine too", async () => {
    expect([(await fs("Remove", { path: "deep" })).status, (await fs("Remove", { path: "deep" })).status]).toEqual([
      200, 200,
    ]);
  });

  test("a watch is on when it says so, and tells makes, writes, moves, modes and ends as they are", async () => {
    await fs("MakeDir", { path: "watched/below" });
    const stop = new AbortController();
    const told: string[] = [];
    const frames = stream(
      "filesystem.Filesystem/WatchDir",
      { path: "watched", recursive: true, includeEntry: true },
      {},
      stop.signal,
    );
    expect((await frames.next()).value!.message).toEqual({ start: {} });
    await ran("cd ~/watched; echo x > a; mv a below/b; chmod 600 below/b; rm below/b");
    for await (const { message } of frames) {
      const { name, type, entry } = message.filesystem as { name: string; type: string; entry?: Json };
      told.push(`${type.slice("EVENT_TYPE_".length)} ${name}`);
      if (entry !== undefined) expect(entry.path).toBe(`/home/user/watched/${name}`);
      if (type === "EVENT_TYPE_REMOVE") break;
    }
    stop.abort();
    expect(told).toEqual(["CREATE a", "WRITE a", "RENAME a", "CREATE below/b", "CHMOD below/b", "REMOVE below/b"]);
  });

  test("a watcher that is asked gives each event once, until it is removed", async () => {
    const { watcherId } = (await fs("CreateWatcher", { path: "watched" })).json;
    await file("POST", { path: "watched/asked" }, "x", OCTETS);
    const told: unknown[] = [];
    await eventually(async () => {
      told.push(...((await fs("GetWatcherEvents", { watcherId })).json.events as Json[]).map(({ name }) => name));
      expect(told).toContain("asked");
    });
    expect(
      (
        await fs(
          "GetWatcherEvents",
          { watcherId },
          { "e2b-sandbox-id": made2.sandboxID, "x-access-token": made2.envdAccessToken },
        )
      ).status,
    ).toBe(404);
    expect((await fs("RemoveWatcher", { watcherId })).json).toEqual({});
    expect((await fs("GetWatcherEvents", { watcherId })).status).toBe(404);
  });

  test("a watch ends with its time", async () => {
    const frames = await all(
      stream("filesystem.Filesystem/WatchDir", { path: "watched" }, { "connect-timeout-ms": "300" }),
    );
    expect(frames.at(-1)).toMatchObject({ flags: 2, message: { error: { code: "deadline_exceeded" } } });
  });
});

describe("process.Process", () => {
  const call = (name: string, body: Json) => unary(`process.Process/${name}`, body);

  test("a stream begins with start, ends with the flag 2, and says how it ended in between", async () => {
    const { frames, stdout, stderr, end } = await ran("echo out; echo err >&2; exit 3");
    expect(frames[0]!.message).toEqual({ event: { start: { pid: expect.any(Number) } } });
    expect(frames.at(-1)).toEqual({ flags: 2, message: {} });
    expect([stdout, stderr]).toEqual(["out\n", "err\n"]);
    expect(end).toEqual({ exitCode: 3, exited: true, status: "exit status 3", error: "exit status 3" });
    expect((await ran("true")).end).toEqual({ exitCode: 0, exited: true, status: "exit status 0" });
  });

  test.each([
    ["a directory that is not there", { process: { cmd: "true", cwd: "/no" } }, "invalid_argument"],
    ["no program", { process: {} }, "invalid_argument"],
    ["a tag that is none", { process: { cmd: "true" }, tag: "with space" }, "invalid_argument"],
  ])("%s is told at the end of the stream", async (_title, body, code) => {
    const frames = await all(stream("process.Process/Start", body));
    expect(frames.at(-1)).toMatchObject({ flags: 2, message: { error: { code } } });
  });

  test("an unknown user is unauthenticated, root is understood", async () => {
    const as = (name: string) => ({ authorization: `Basic ${Buffer.from(`${name}:`).toString("base64")}` });
    expect((await ran("true", {}, as("eve"))).frames.at(-1)!.message).toMatchObject({
      error: { code: "unauthenticated" },
    });
    expect((await ran("echo $USER $HOME", {}, as("root"))).stdout).toBe("root /home/user\n");
    expect((await ran("whoami; echo $LOGNAME", {}, as("user"))).stdout).toBe("user\nuser\n");
  });

  test("its time ends the process with all that it started", async () => {
    const { frames } = await ran("sleep 1000 & sleep 1000", {}, { "connect-timeout-ms": "300" });
    expect(frames.at(-1)).toMatchObject({ flags: 2, message: { error: { code: "deadline_exceeded" } } });
    await eventually(async () => expect((await ran("pgrep -c -x sleep")).stdout).toBe("0\n"));
  });

  test("a stream that is left does not end the process, which is listed, connected to and ended", async () => {
    const stop = new AbortController();
    const body = {
      process: {
        cmd: "/bin/bash",
        args: ["-c", "read a; echo got $a; exec sleep 1000"],
        envs: { A: "1" },
        cwd: "/tmp",
      },
      tag: "kept",
    };
    const frames = stream("process.Process/Start", body, {}, stop.signal);
    const { pid } = ((await frames.next()).value!.message.event as { start: { pid: number } }).start;
    stop.abort();
    await frames.next().catch(() => {});
    const listed = async () => (await call("List", {})).json.processes as Json[];
    expect(await listed()).toEqual([{ pid, tag: "kept", config: body.process }]);
    const other = stream("process.Process/Connect", { process: { tag: "kept" } });
    expect((await other.next()).value!.message).toEqual({ event: { start: { pid } } });
    expect(
      (await call("SendInput", { process: { pid }, input: { stdin: Buffer.from("it\n").toString("base64") } })).json,
    ).toEqual({});
    expect((await other.next()).value!.message).toEqual({
      event: { data: { stdout: Buffer.from("got it\n").toString("base64") } },
    });
    expect((await call("SendSignal", { process: { pid }, signal: "SIGNAL_SIGTERM" })).json).toEqual({});
    const rest = await all(other);
    expect(rest[0]!.message).toEqual({
      event: { end: { exitCode: -1, exited: false, status: "signal: terminated", error: "signal: terminated" } },
    });
    expect(await listed()).toEqual([]);
    const after = await all(stream("process.Process/Connect", { process: { pid } }));
    expect(after.map(({ message }) => Object.keys((message.event as Json) ?? {})[0])).toEqual([
      "start",
      "end",
      undefined,
    ]);
  });

  test.each([
    ["SendInput", { input: { stdin: "eA==" } }],
    ["SendSignal", { signal: "SIGNAL_SIGKILL" }],
    ["CloseStdin", {}],
    ["Update", { pty: { size: { cols: 1, rows: 1 } } }],
  ])("%s of a process that there is not is not_found", async (name, more) => {
    expect((await call(name, { process: { pid: 4_000_000 }, ...more })).json).toMatchObject({ code: "not_found" });
  });

  test("input for a process that has ended is not_found, for one without an input it is internal", async () => {
    const [{ message }] = (await all(run("true"))) as unknown as [{ message: { event: { start: { pid: number } } } }];
    const { pid } = message.event.start;
    const codes: unknown[] = [];
    for (const [name, more] of [
      ["SendInput", { input: { stdin: "eA==" } }],
      ["CloseStdin", {}],
      ["SendSignal", { signal: "SIGNAL_SIGTERM" }],
    ] as const) {
      codes.push((await call(name, { process: { pid }, ...more })).json.code);
    }
    expect(codes).toEqual(["not_found", "not_found", "not_found"]);
    const mute = run("sleep 1000");
    const first = (await mute.next()).value!.message.event as { start: { pid: number } };
    expect((await call("SendInput", { process: first.start, input: { stdin: "eA==" } })).json.code).toBe("internal");
    await call("SendSignal", { process: first.start, signal: "SIGNAL_SIGKILL" });
    expect((await all(mute))[0]!.message).toMatchObject({ event: { end: { exitCode: -1, status: "signal: killed" } } });
  });

  test("Connect to a process that there is not is not_found", async () => {
    const frames = await all(stream("process.Process/Connect", { process: { pid: 4_000_000 } }));
    expect(frames).toMatchObject([{ flags: 2, message: { error: { code: "not_found" } } }]);
  });

  test("input in a stream comes as it is sent, and its end can be told", async () => {
    const frames = stream("process.Process/Start", { process: { cmd: "cat" } });
    const { pid } = ((await frames.next()).value!.message.event as { start: { pid: number } }).start;
    const answer = await fetch(`${base}/process.Process/StreamInput`, {
      ...{ method: "POST", headers: { ...inside(), "content-type": "application/connect+json" } },
      body: framed(
        { start: { process: { pid } } },
        { data: { input: { stdin: Buffer.from("one").toString("base64") } } },
        { keepalive: {} },
        { data: { input: { stdin: Buffer.from("two").toString("base64") } } },
      ),
    });
    expect(answer.status).toBe(200);
    expect(Buffer.from(await answer.arrayBuffer()).toString("utf8", 5)).toContain("{}");
    expect((await call("CloseStdin", { process: { pid } })).json).toEqual({});
    let output = "";
    for await (const { message } of frames) {
      const data = (message.event as { data?: { stdout?: string } } | undefined)?.data?.stdout;
      if (data !== undefined) output += Buffer.from(data, "base64").toString();
    }
    expect(output).toBe("onetwo");
  });

  test("a terminal has a size and other input, and is quiet but alive in between", async () => {
    const frames = stream(
      "process.Process/Start",
      { process: { cmd: "/bin/bash", args: ["-i", "-l"], envs: { PS1: "$ " } }, pty: { size: { cols: 90, rows: 20 } } },
      { "keepalive-ping-interval": "1" },
    );
    const { pid } = ((await frames.next()).value!.message.event as { start: { pid: number } }).start;
    await call("Update", { process: { pid }, pty: { size: { cols: 77, rows: 11 } } });
    const type = (text: string) =>
      call("SendInput", { process: { pid }, input: { pty: Buffer.from(text).toString("base64") } });
    await type("stty size\n");
    let output = "";
    let isAlive = false;
    for await (const { message } of frames) {
      const event = message.event as { data?: { pty: string }; keepalive?: object; end?: Json } | undefined;
      if (event?.data !== undefined) output += Buffer.from(event.data.pty, "base64").toString();
      if (event?.keepalive !== undefined && !isAlive) {
        isAlive = true;
        await type("exit 4\n");
      }
      if (event?.end !== undefined) expect(event.end).toMatchObject({ exitCode: 4, exited: true });
    }
    expect([isAlive, output]).toEqual([true, expect.stringContaining("11 77")]);
  });

  test("a terminal whose size is 0, which JSON leaves out, has the usual one", async () => {
    for (const pty of [{}, { size: {} }, { size: { cols: 0, rows: 0 } }]) {
      const frames = await all(stream("process.Process/Start", { process: { cmd: "stty", args: ["size"] }, pty }));
      const data = frames.map(
        ({ message }) => (message.event as { data?: { pty: string } } | undefined)?.data?.pty ?? "",
      );
      expect(Buffer.from(data.join(""), "base64").toString()).toBe("24 80\r\n");
    }
  });

  test("a message that is no JSON, a stream without a message and one that is packed are refused", async () => {
    const send = async (body: Uint8Array<ArrayBuffer> | string) => {
      const headers = { ...inside(), "content-type": "application/connect+json" };
      const answer = await fetch(`${base}/process.Process/Start`, { method: "POST", headers, body });
      return answer.status;
    };
    expect(await send(framed())).toBeGreaterThanOrEqual(400);
    expect(await send(new Uint8Array([0, 0, 0, 0, 1, 0x7b]))).toBe(400);
    expect(await send(new Uint8Array([1, 0, 0, 0, 2, 0x7b, 0x7d]))).toBe(501);
    expect(await send(new Uint8Array([0, 255, 255, 255, 255]))).toBe(429);
  });
});

describe("ports that everybody may reach", () => {
  test("are reached by their host name without anything, unless a program wants it otherwise", async () => {
    const shut = (
      await control("POST", "/v2/sandboxes", { templateID: "base", network: { allowPublicTraffic: false } })
    ).json as typeof made;
    // Nothing listens there: 502 is the answer of the port, 401 that of the door.
    expect([await visited(made), await visited(shut)]).toEqual([502, 401]);
    expect(await visited(shut, { "e2b-traffic-access-token": shut.trafficAccessToken })).toBe(502);
    expect(await visited(made, { "e2b-traffic-access-token": "wrong" })).toBe(401);
    await control("DELETE", `/sandboxes/${shut.sandboxID}`);
  });

  async function visited(of: typeof made, headers: Record<string, string> = {}): Promise<number> {
    const { port } = new URL(base);
    return await new Promise((resolve, reject) => {
      const host = `3999-${of.sandboxID}.localhost:${port}`;
      const asked = request({ host: "127.0.0.1", port, path: "/", headers: { host, ...headers } }, (answer) => {
        answer.resume();
        resolve(answer.statusCode ?? 0);
      });
      asked.once("error", reject).end();
    });
  }
});
