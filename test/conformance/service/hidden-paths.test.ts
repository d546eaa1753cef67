import { afterAll, beforeAll, expect, test } from "vitest";
import { exec, makeCodebase, makeSandbox, makeSession, sessionExec } from "../../support/belongings.ts";
import { GrpcClient, type Message, type Outcome } from "../../support/grpc-client.ts";
import { TestServer } from "../../support/server.ts";

// Two sandboxes with the same rules, one on a codebase that has what the rules hide, one on a codebase that never had it.
// Whatever the agent or a client of the view asks, both answer alike.

const VISIBLE = { "readme.txt": "r", "src/main.ts": "m", "work/notes.txt": "n" };
const HIDDEN = {
  ".env": "CANARY-5d1e",
  "src/.env.local": "CANARY-5d1e",
  "work/.env.d/inner.txt": "CANARY-5d1e",
  "secrets/key.pem": "CANARY-5d1e",
  "work/.env.sh": "#!/bin/sh\necho CANARY-5d1e\n",
};
const RULES: readonly Message[] = [
  { pattern: "/**", permission: "PERMISSION_READ" },
  { pattern: "/work/**", permission: "PERMISSION_WRITE" },
  { pattern: "**/.env*", permission: "PERMISSION_NONE", priority: 100 },
  { pattern: "/secrets/**", permission: "PERMISSION_NONE", priority: 100 },
];
const PATHS = [...Object.keys(HIDDEN), "work/.env.d", "secrets", "secrets/other", ".env/below", "work/.env.d/none.txt"];

let server: TestServer;
let client: GrpcClient;
let twins: { readonly there: string; readonly absent: string };

beforeAll(async () => {
  server = await TestServer.start();
  client = new GrpcClient(server.grpc);
  const there = await makeCodebase(client, { ...VISIBLE, ...HIDDEN }, "owner");
  const absent = await makeCodebase(client, VISIBLE, "owner");
  twins = {
    there: await makeSandbox(client, there, { permissions: RULES }),
    absent: await makeSandbox(client, absent, { permissions: RULES }),
  };
});
afterAll(async () => {
  client?.[Symbol.dispose]();
  await server?.[Symbol.asyncDispose]();
});

/** Without what differs between any two sandboxes: ids, clocks, versions. */
function plain(value: unknown, sandbox: string): string {
  return JSON.stringify(value, (name, item: unknown) =>
    ["duration", "modified_at", "trailers", "synced_version"].includes(name) ? undefined : item,
  ).replaceAll(sandbox, "sb");
}

async function both(ask: (sandbox_id: string) => Promise<unknown>): Promise<string> {
  const there = plain(await ask(twins.there), twins.there);
  const absent = plain(await ask(twins.absent), twins.absent);
  expect(there).toBe(absent);
  expect(there).not.toContain("CANARY");
  return there;
}

test("DISC-61 the API answers for a hidden path as for one that is not there, word for word", async () => {
  const data = Buffer.from("x");
  const calls: readonly ((sandbox_id: string, path: string) => Promise<Outcome>)[] = [
    (sandbox_id, path) => client.outcome("SandboxService", "StatFile", [{ sandbox_id, path }]),
    (sandbox_id, path) => client.outcome("SandboxService", "ReadFile", [{ sandbox_id, path }]),
    (sandbox_id, path) => client.outcome("SandboxService", "ListDirectory", [{ sandbox_id, path, recursive: true }]),
    (sandbox_id, path) => client.outcome("SandboxService", "WriteFile", [{ metadata: { sandbox_id, path } }, { data }]),
    (sandbox_id, path) =>
      client.outcome("SandboxService", "WriteFile", [{ metadata: { sandbox_id, path, append: true } }, { data }]),
    (sandbox_id, path) => client.outcome("SandboxService", "MakeDirectory", [{ sandbox_id, path }]),
    (sandbox_id, path) => client.outcome("SandboxService", "MakeDirectory", [{ sandbox_id, path, recursive: true }]),
    (sandbox_id, path) => client.outcome("SandboxService", "RemoveFile", [{ sandbox_id, path, recursive: true }]),
    (sandbox_id, path) =>
      client.outcome("SandboxService", "MoveFile", [{ sandbox_id, from_path: path, to_path: "work/taken" }]),
    (sandbox_id, path) =>
      client.outcome("SandboxService", "MoveFile", [{ sandbox_id, from_path: "work/notes.txt", to_path: path }]),
    (sandbox_id, path) => client.outcome("SandboxService", "WatchFiles", [{ sandbox_id, path, recursive: true }]),
    (sandbox_id, path) => client.outcome("SandboxService", "DiffChanges", [{ sandbox_id, paths: [path] }]),
    (sandbox_id, path) => client.outcome("SandboxService", "ApplyChanges", [{ sandbox_id, paths: [path] }]),
    (sandbox_id, path) => client.outcome("SandboxService", "DiscardChanges", [{ sandbox_id, paths: [path] }]),
    (sandbox_id, path) => client.outcome("SandboxService", "ExplainPath", [{ sandbox_id, path }]),
    (sandbox_id, path) => client.outcome("SandboxService", "Exec", [{ sandbox_id, command: "pwd", workdir: path }]),
    (sandbox_id, path) => client.outcome("SandboxService", "Exec", [{ sandbox_id, argv: [`/workspace/${path}`] }]),
    (sandbox_id, path) => client.outcome("SandboxService", "CreateSession", [{ sandbox_id, workdir: path }]),
    (sandbox_id, path) =>
      client.outcome("SandboxService", "OpenTerminal", [{ open: { sandbox_id, argv: ["pwd"], workdir: path } }]),
  ];
  for (const path of PATHS) for (const call of calls) await both((sandbox_id) => call(sandbox_id, path));
  await both((sandbox_id) => client.call("SandboxService", "ListDirectory", { sandbox_id, recursive: true }));
  await both((sandbox_id) => client.call("SandboxService", "ListChanges", { sandbox_id }));
});

test("DISC-61 neither the output of a command nor what its sync says differs", async () => {
  const commands = PATHS.flatMap((path) => [
    `cat ${path}; ls -la ${path}; stat ${path}; test -e ${path}; echo $?`,
    `echo x > ${path}; mkdir ${path}; rm -rf ${path}; mv work/notes.txt ${path}; ln -s readme.txt ${path}; echo $?`,
    `cd ${path} && pwd; sh ${path}; . ./${path}; cp ${path} work/copy; ln ${path} work/hard; echo $?`,
  ]);
  const every = [
    "find . | sort",
    "grep -r CANARY .; echo $?",
    "ls -A work; rmdir work 2>&1; ls -A",
    "tar cf - . | wc -c",
    "git init -q work/repo 2>/dev/null; ls -A work",
  ];
  for (const command of [...commands, ...every])
    await both((sandbox_id) => exec(client, sandbox_id, `{ ${command}; } 2>&1`));
  const sessions = {
    [twins.there]: await makeSession(client, twins.there),
    [twins.absent]: await makeSession(client, twins.absent),
  };
  for (const command of commands.slice(0, 6)) {
    await both(async (sandbox_id) => await sessionExec(client, sessions[sandbox_id]!, `{ ${command}; } 2>&1`));
  }
  // The owner is told what was tried, by name: that is the audit log's business, and no answer to the agent.
  const { events } = await client.call("EventService", "ListEvents", {
    sandbox_id: twins.there,
    types: ["permission_denied"],
    page_size: 1000,
  });
  expect(JSON.stringify(events)).toContain("/workspace/");
});
