import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exec, makeCodebase, makeSandbox } from "../../../support/belongings.ts";
import { GrpcClient, type Message } from "../../../support/grpc-client.ts";
import { RestClient } from "../../../support/rest-client.ts";
import { TestServer } from "../../../support/server.ts";

const SECRETS: Readonly<Record<string, string>> = {
  ".env": "s",
  "app/.env.production": "s",
  "secrets/token": "s",
  "app/secrets/deep/token": "s",
  "server.key": "s",
  id_rsa: "s",
  ".ssh/known_hosts": "s",
  ".npmrc": "s",
  ".git/config": "s",
  "app/.git/HEAD": "s",
};
const PLAIN: Readonly<Record<string, string>> = {
  "README.md": "r",
  "app/main.ts": "m",
  "docs/guide.md": "g",
  "output/o.txt": "o",
};

let server: TestServer;
let client: GrpcClient;
let rest: RestClient;
let codebase_id: string;

beforeAll(async () => {
  server = await TestServer.start();
  client = new GrpcClient(server.grpc);
  rest = new RestClient(server.http);
  codebase_id = await makeCodebase(client, { ...SECRETS, ...PLAIN }, "owner");
});
afterAll(async () => {
  client?.[Symbol.dispose]();
  await server?.[Symbol.asyncDispose]();
});

function rule(pattern: string, permission = "READ", more: Message = {}): Message {
  return { pattern, permission: `PERMISSION_${permission}`, ...more };
}

/** Every file that a process inside finds. */
async function seen(sandbox_id: string): Promise<string[]> {
  const { stdout } = await exec(client, sandbox_id, "find . -type f -o -type l | LC_ALL=C sort");
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.slice(2));
}

describe("malformed rules", () => {
  const MALFORMED: readonly Message[] = [
    rule(""),
    rule("!/src"),
    rule("/a\0b"),
    rule("//"),
    rule("/a//b"),
    rule(".."),
    rule("../x"),
    rule("/a/../b"),
    rule("./a"),
    rule("/a{b"),
    rule("/{a}"),
    rule("{}"),
    rule("/a[b"),
    rule("/[]"),
    rule("/[z-a]"),
    rule("/[[:alpha:]]"),
    rule("/a\\"),
    rule("/a\\/b"),
    rule("{a,b}".repeat(800)),
    rule("/".padEnd(5000, "a")),
    rule("/a/*", "READ", { type: "PATTERN_TYPE_FILE" }),
    rule("**", "READ", { type: "PATTERN_TYPE_DIRECTORY" }),
    rule("/a/", "READ", { type: "PATTERN_TYPE_FILE" }),
    { pattern: "/a" },
    { pattern: "/a", permission: 0 },
    { pattern: "/a", permission: 5 },
    { pattern: "/a", permission: -1 },
    { pattern: "/a", permission: "PERMISSION_READ", type: 9 },
  ];

  test("API-17 a malformed rule is refused with its index, at creation and at an update", async () => {
    const sandbox_id = await makeSandbox(client, codebase_id, { permissions: [rule("/README.md")] });
    for (const [index, malformed] of MALFORMED.entries()) {
      const permissions = [rule("**/*"), rule("/ok"), malformed];
      const what = JSON.stringify(malformed).slice(0, 60);
      const attempts = [
        await client.failure("SandboxService", "CreateSandbox", { codebase_id, permissions }),
        await client.failure("SandboxService", "UpdatePermissions", { sandbox_id, permissions }),
      ];
      for (const { code, message } of attempts) {
        expect([index, what, code, message]).toEqual([index, what, 3, expect.stringMatching(/\b2\b/)]);
      }
    }
    expect(await seen(sandbox_id)).toEqual(["README.md"]);
    const { permissions } = await client.call("SandboxService", "GetSandbox", { sandbox_id });
    expect(permissions).toMatchObject([{ pattern: "/README.md" }]);
  });

  test("API-17 the same over REST, with a level that is a word, a wrong type or missing", async () => {
    for (const permission of ["reed", "PERMISSION_ADMIN", "", null, 99, -3, "4", {}, ["PERMISSION_READ"]]) {
      const answer = await rest.post("/v1/sandboxes", {
        codebaseId: codebase_id,
        permissions: [
          { pattern: "/**", permission: "PERMISSION_NONE" },
          { pattern: "/**", permission },
        ],
      });
      expect([permission, answer.status, answer.json.code]).toEqual([permission, 400, 3]);
    }
    // REST takes the words of the rules' own language too; they mean what they say.
    const word = await rest.post("/v1/sandboxes", {
      codebaseId: codebase_id,
      permissions: [{ pattern: "/**", permission: "view" }],
    });
    expect(word.json.permissions).toMatchObject([{ permission: "PERMISSION_VIEW" }]);
    const missing = await rest.post("/v1/sandboxes", { codebaseId: codebase_id, permissions: [{ pattern: "/**" }] });
    expect([missing.status, missing.json.message]).toEqual([400, expect.stringContaining("permissions[0]")]);
  });

  test("API-17 characters of other languages mean themselves, and match nothing else", async () => {
    const literal = ["(a|b).txt", "^README.md$", "a+b.txt", "$HOME", "~", "%2e%2e", "a;b", "`id`"];
    const id = await makeCodebase(
      client,
      Object.fromEntries([...literal, "README.md", "a", "aab.txt"].map((path) => [path, "x"])),
      "owner",
    );
    for (const pattern of literal) {
      const sandbox_id = await makeSandbox(client, id, { permissions: [rule(`/${pattern}`)] });
      expect([pattern, await seen(sandbox_id)]).toEqual([pattern, [pattern]]);
      await client.call("SandboxService", "DestroySandbox", { sandbox_id });
    }
  });

  test("API-17 too many rules, and too much text in them, are refused", async () => {
    for (const permissions of [
      Array.from({ length: 10_001 }, () => rule("/a")),
      Array.from({ length: 900 }, (_, index) => rule(`/${index}${"x".repeat(4000)}`)),
    ]) {
      const { code } = await client.failure("SandboxService", "CreateSandbox", { codebase_id, permissions });
      expect([3, 8]).toContain(code);
    }
  });
});

describe("presets", () => {
  const hiding = ["agent-safe", "development"];

  test("API-18 presets hide secrets wherever they are, and explain names the rule", async () => {
    for (const preset of hiding) {
      const sandbox_id = await makeSandbox(client, codebase_id, { preset, permissions: [] });
      const found = await seen(sandbox_id);
      const hidden = Object.keys(SECRETS).filter((path) => !/\.git\//.test(path));
      expect([preset, found.filter((path) => hidden.includes(path))]).toEqual([preset, []]);
      expect([preset, found]).toEqual([preset, expect.arrayContaining(["README.md", "app/main.ts", "docs/guide.md"])]);
      for (const path of hidden) {
        const explained = await client.call("SandboxService", "ExplainPath", { sandbox_id, path });
        expect([preset, path, explained.permission]).toEqual([preset, path, "PERMISSION_NONE"]);
        const { index, rule: decider } = explained.deciding as { index: number; rule: Message };
        const { permissions } = await client.call("SandboxService", "GetSandbox", { sandbox_id });
        expect((permissions as Message[])[index]).toMatchObject({
          pattern: decider.pattern,
          permission: "PERMISSION_NONE",
        });
        expect(explained.explanation).toContain(path.split("/").at(-1));
      }
      await client.call("SandboxService", "DestroySandbox", { sandbox_id });
    }
  });

  test("API-18 a pattern that looks protective is: at the root, at depth, and for the directory itself", async () => {
    const permissions = [
      rule("/**"),
      rule("**/secrets/**", "NONE", { priority: 10 }),
      rule("**/.git/**", "NONE", { priority: 10 }),
    ];
    const sandbox_id = await makeSandbox(client, codebase_id, { permissions });
    const found = await seen(sandbox_id);
    expect(found.filter((path) => /(^|\/)(secrets|\.git)\//.test(path))).toEqual([]);
    expect(found).toContain("README.md");
    for (const path of ["secrets/token", "app/secrets/deep/token", ".git/config", "app/.git/HEAD"]) {
      const { exit_code } = await exec(client, sandbox_id, `cat ${path}`);
      const explained = await client.call("SandboxService", "ExplainPath", { sandbox_id, path });
      expect([path, exit_code, explained.permission]).toEqual([path, 1, "PERMISSION_NONE"]);
    }
  });

  test("API-18 an unknown preset is refused", async () => {
    for (const preset of ["nothing", "Agent-Safe", "../agent-safe", "__proto__", "agent-safe\n"]) {
      expect(await client.failure("SandboxService", "CreateSandbox", { codebase_id, preset })).toMatchObject({
        code: 3,
      });
    }
  });
});

test("API-19 without rules everything is hidden, for the agent and for the API's view", async () => {
  const sandbox_id = await makeSandbox(client, codebase_id, { permissions: [] });
  expect(await seen(sandbox_id)).toEqual([]);
  expect((await exec(client, sandbox_id, "ls -A; cat README.md; echo x > new")).stdout).toBe("");
  expect(await client.call("SandboxService", "ListDirectory", { sandbox_id, recursive: true })).toMatchObject({
    files: [],
  });
  for (const [method, request] of [
    ["StatFile", { path: "README.md" }],
    ["ReadFile", { path: "README.md" }],
    ["RemoveFile", { path: "README.md" }],
  ] as const) {
    expect([method, (await client.outcome("SandboxService", method, [{ sandbox_id, ...request }])).code]).toEqual([
      method,
      5,
    ]);
  }
  expect(await client.call("SandboxService", "ExplainPath", { sandbox_id, path: "/README.md" })).toMatchObject({
    permission: "PERMISSION_NONE",
    deciding: null,
  });
  // Taking all rules away hides what was visible.
  await client.call("SandboxService", "UpdatePermissions", { sandbox_id, permissions: [rule("/**")] });
  expect(await seen(sandbox_id)).toContain("README.md");
  await client.call("SandboxService", "UpdatePermissions", { sandbox_id, permissions: [] });
  expect(await seen(sandbox_id)).toEqual([]);
  expect((await client.download(codebase_id, "README.md")).toString()).toBe("r");
});

test("API-20 of rules that tie the stricter wins, whatever their order", async () => {
  const levels = ["NONE", "VIEW", "READ", "WRITE"];
  for (const [at, strict] of levels.entries()) {
    for (const loose of levels.slice(at + 1)) {
      for (const [one, two] of [
        [rule("/README.m?", strict), rule("/?EADME.md", loose)],
        [rule("/README.m?", strict, { priority: -5 }), rule("/?EADME.md", loose, { priority: -5 })],
        [rule("/*.md", strict), rule("/?*.md", loose)],
      ] as const) {
        const answers = await Promise.all(
          [
            [one, two],
            [two, one],
          ].map(async (permissions) => {
            const made = await client.call("SandboxService", "CreateSandbox", { codebase_id, permissions });
            const request = { sandbox_id: made.id, path: "/README.md" };
            const { permission } = await client.call("SandboxService", "ExplainPath", request);
            await client.call("SandboxService", "DestroySandbox", { sandbox_id: made.id });
            return permission;
          }),
        );
        expect([strict, loose, one, answers]).toEqual([
          strict,
          loose,
          one,
          [`PERMISSION_${strict}`, `PERMISSION_${strict}`],
        ]);
      }
    }
  }
  const permissions = [rule("/README.m?", "WRITE"), rule("/?EADME.md", "NONE"), rule("/docs/")];
  expect(await seen(await makeSandbox(client, codebase_id, { permissions }))).toEqual(["docs/guide.md"]);
  // The one case that is no tie: the same pattern again is a change of mind, and replaces the first.
  const twice = await makeSandbox(client, codebase_id, { permissions: [rule("/*.md", "NONE"), rule("/*.md", "READ")] });
  expect(await seen(twice)).toEqual(["README.md"]);
});
