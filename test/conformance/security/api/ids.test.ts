import { globSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { exec, makeBelongings, makeCodebase, makeSandbox } from "../../../support/belongings.ts";
import { CONTRACT, callByGrpc, callByRest } from "../../../support/every-method.ts";
import { GrpcClient, type Message } from "../../../support/grpc-client.ts";
import { GuardedServer } from "../../../support/owners.ts";
import { rawExchange, rawRequest, statusOf } from "../../../support/raw-http.ts";

let guarded: GuardedServer;
beforeAll(async () => {
  guarded = await GuardedServer.start();
});
afterAll(() => guarded?.[Symbol.asyncDispose]());

test("API-06 ids are 128 random bits", async () => {
  const { alice, admin } = guarded;
  const ids: string[] = [];
  for (let round = 0; round < 8; round++) {
    const { codebase_id, sandbox_id, session_id } = await makeBelongings(alice.grpc);
    const { key } = await admin.grpc.call("SystemService", "CreateKey", { owner_id: "alice" });
    ids.push(codebase_id, sandbox_id, session_id, (key as { id: string }).id);
  }
  for (const id of ids) expect(id).toMatch(/^(?:cb|sb|sess|key)_[0-9a-f]{32}$/);
  const digits = ids.map((id) => id.slice(id.indexOf("_") + 1));
  expect(new Set(digits).size).toBe(ids.length);
  // No place of the 32 is a counter, a clock or a constant: each has many values among 32 ids (expected: about 14 of 16).
  for (let place = 0; place < 32; place++) {
    expect(new Set(digits.map((text) => text[place])).size).toBeGreaterThan(6);
  }
  const secrets = await Promise.all([1, 2].map(() => admin.grpc.call("SystemService", "CreateKey", { owner_id: "x" })));
  const [one, two] = secrets.map(({ secret }) => (secret as string).slice(40));
  expect(one).not.toBe(two);
  expect(one).toHaveLength(43);
});

test("API-06 no id opens anything by itself", async () => {
  const { codebase_id, sandbox_id, session_id } = await makeBelongings(guarded.alice.grpc);
  for (const id of [codebase_id, sandbox_id, session_id, guarded.alice.keyId]) {
    using client = new GrpcClient(guarded.server.grpc, { key: id });
    expect(await client.failure("SandboxService", "GetSandbox", { sandbox_id })).toMatchObject({ code: 16 });
    expect((await fetch(`${guarded.server.http}/v1/sandboxes/${sandbox_id}`)).status).toBe(401);
  }
});

const HEX = "0123456789abcdef".repeat(2);

/** Of every kind of id, with its prefix where the attack needs one. */
function hostileIds(prefix: string): string[] {
  return [
    "..",
    ".",
    "/",
    "../../../../etc/passwd",
    `${prefix}..`,
    `${prefix}${HEX}/../../x`,
    `${prefix}${HEX}/`,
    `/${prefix}${HEX}`,
    `${prefix}${HEX}\0`,
    `${prefix}${HEX}\n`,
    `\n${prefix}${HEX}`,
    ` ${prefix}${HEX}`,
    `${prefix}${HEX} `,
    `${prefix}%2e%2e%2f${HEX}`,
    "%2e%2e%2f%2e%2e%2f",
    `${prefix}${HEX.toUpperCase()}`,
    `${prefix}${HEX.slice(0, 15)}`,
    `${prefix}${HEX.repeat(3)}`,
    `${prefix}${"٠".repeat(32)}`,
    `${prefix}${"ａ".repeat(32)}`,
    `${prefix}${HEX.slice(1)}g`,
    `${prefix}`,
    prefix.slice(0, -1),
    `${prefix}${HEX};rm -rf /`,
    `${prefix}${HEX}' OR '1'='1`,
    "%",
    "*",
    "__proto__",
    "constructor",
    "a".repeat(100_000),
    "\u202e\u0007\x1b[2J",
  ];
}

const PREFIXES: Readonly<Record<string, string>> = { codebase_id: "cb_", sandbox_id: "sb_", session_id: "sess_" };

test("API-07 an id of a wrong shape is refused before any use, by every method that takes one", async () => {
  const { alice, server } = guarded;
  const places = (): string[] => globSync("{codebases,mounts}/**", { cwd: server.directory }).sort();
  const before = places();
  let calls = 0;
  for (const method of CONTRACT) {
    const field = method.idFields.find((name) => PREFIXES[name] !== undefined);
    if (field === undefined || method.name === "WatchEvents") continue;
    // A filter may also find nothing.
    const filters = ["ListSandboxes", "ListSnapshots", "ListEvents"].includes(method.name);
    for (const id of hostileIds(PREFIXES[field]!)) {
      const { code, messages } = await callByGrpc(alice.grpc, method, { [field]: id });
      calls += 1;
      const found = filters && code === 0 ? messages.flatMap((message) => Object.values(message).flat()).join("") : "";
      expect({ method: method.name, id: id.slice(0, 60), code: filters && code === 0 ? 3 : code, found }).toEqual({
        method: method.name,
        id: id.slice(0, 60),
        code: 3,
        found: "",
      });
    }
  }
  expect(calls).toBeGreaterThan(1000);
  expect(places()).toEqual(before);
});

test("API-07 the same in the target of a request, encoded in any way", async () => {
  const { alice } = guarded;
  for (const method of CONTRACT.filter(({ http }) => http?.path.includes("{codebase_id}"))) {
    for (const id of hostileIds("cb_").filter((each) => each.length < 1000)) {
      const answer = await callByRest(alice.rest, method, { codebase_id: id });
      // "." and ".." alone are steps of the target, and name another one, or none.
      const statuses = id === "." || id === ".." ? [400, 404, 501, 405] : [400];
      expect([method.name, id, statuses.includes(answer!.status), answer!.status]).toEqual([
        method.name,
        id,
        true,
        answer!.status,
      ]);
    }
  }
  const headers = { Host: "localhost", "X-Api-Key": alice.key };
  for (const target of [
    "/v1/codebases/../../../etc/passwd",
    "/v1/codebases/..%2f..%2fetc%2fpasswd",
    "/v1/codebases/%2e%2e/sandboxes",
    "/v1/codebases/%252e%252e%252f",
    "/v1/codebases/%00",
    "/v1/codebases/%ff%fe",
    "/v1/codebases/%",
    "/v1/codebases/%zz",
    "/v1/codebases/cb_%0d%0aX-Injected:%20yes",
    "/v1/codebases//files",
    "//v1/codebases",
    "/v1/./codebases/..",
    "/v1\\codebases\\..",
  ]) {
    const answer = await rawExchange(guarded.server.http, rawRequest(`GET ${target}`, headers));
    expect([target, statusOf(answer) >= 400 && statusOf(answer) < 500, statusOf(answer)]).toEqual([
      target,
      true,
      statusOf(answer),
    ]);
    expect(answer).not.toMatch(/root:x:0|^X-Injected/m);
  }
});

test("API-10 the beginning of an id, or a longer one, is another id", async () => {
  const { alice } = guarded;
  const id = await makeCodebase(alice.grpc, { "a.txt": "a" });
  for (const similar of [id.slice(0, -1), id.slice(0, 19), `${id}0`, `${id}${"0".repeat(32)}`, id.replace(/.$/, "x")]) {
    const { code } = await alice.grpc.failure("CodebaseService", "GetCodebase", { codebase_id: similar });
    expect([3, 5]).toContain(code);
    expect(await alice.grpc.failure("CodebaseService", "ListFiles", { codebase_id: similar })).toMatchObject({ code });
  }
});

test("API-10 a directory's name as the beginning of another's gives no access to that", async () => {
  const { alice } = guarded;
  const files = { "src/a.txt": "a", "src-secret/b.txt": "b", "src.old": "c", srcfile: "d" };
  const codebase_id = await makeCodebase(alice.grpc, files);
  const paths = async (request: Message): Promise<unknown> =>
    ((await alice.grpc.call("CodebaseService", "ListFiles", { codebase_id, ...request })).files as Message[])
      .filter(({ is_dir }) => is_dir === false)
      .map(({ path }) => String(path).replace(/^\//, ""));
  expect(await paths({ path: "src", recursive: true })).toEqual(["src/a.txt"]);
  const tar = Buffer.concat(
    (await alice.grpc.collect("CodebaseService", "DownloadArchive", { codebase_id, path: "src" })).map(
      ({ data }) => data as Buffer,
    ),
  ).toString("latin1");
  expect(tar).toContain("a.txt");
  expect(tar).not.toMatch(/b\.txt|src\.old|srcfile|secret/);

  const sandbox = await makeSandbox(alice.grpc, codebase_id, {
    permissions: [{ pattern: "/src/", permission: "PERMISSION_READ" }],
  });
  expect((await exec(alice.grpc, sandbox, "find . -type f")).stdout).toBe("./src/a.txt\n");
  await alice.grpc.call("CodebaseService", "DeleteFile", { codebase_id, file_path: "src", recursive: true });
  expect(await paths({ recursive: true })).toEqual(["src-secret/b.txt", "src.old", "srcfile"]);
  await alice.grpc.call("CodebaseService", "RenameFile", { codebase_id, from_path: "src.old", to_path: "src" });
  expect(await paths({ recursive: true })).toEqual(["src", "src-secret/b.txt", "srcfile"]);
  // The same one level up: directories of the server's own.
  expect(globSync(join(guarded.server.directory, "codebases", codebase_id, "tree", "*")).length).toBe(3);
});
