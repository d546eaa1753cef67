import { readdirSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { EVERYTHING_WRITABLE, exec, makeCodebase, makeSandbox, makeSession } from "../../../support/belongings.ts";
import { eventually } from "../../../support/eventually.ts";
import { GrpcClient, type Message } from "../../../support/grpc-client.ts";
import { NO_TRACES, tracesOf } from "../../../support/sandbox-traces.ts";
import { TestServer } from "../../../support/server.ts";

let server: TestServer;
let client: GrpcClient;
let codebase_id: string;
const made: string[] = [];

beforeAll(async () => {
  server = await TestServer.start();
  client = new GrpcClient(server.grpc);
  codebase_id = await makeCodebase(client, { "a.txt": "a" }, "owner");
});
afterAll(async () => {
  client?.[Symbol.dispose]();
  await server?.[Symbol.asyncDispose]();
});

async function pending(): Promise<string> {
  const request = { codebase_id, permissions: EVERYTHING_WRITABLE };
  const { id } = await client.call("SandboxService", "CreateSandbox", request);
  made.push(id as string);
  return id as string;
}

async function running(): Promise<string> {
  const id = await makeSandbox(client, codebase_id);
  made.push(id);
  return id;
}

async function codeOf(method: string, request: Message): Promise<number> {
  return (await client.outcome("SandboxService", method, [request])).code;
}

function codesOf(methods: readonly string[], request: Message): Promise<number[]> {
  return Promise.all(methods.map((method) => codeOf(method, request)));
}

async function statusOf(sandbox_id: string): Promise<unknown> {
  return (await client.call("SandboxService", "GetSandbox", { sandbox_id })).status;
}

async function destroy(...ids: readonly string[]): Promise<void> {
  for (const sandbox_id of ids) await codeOf("DestroySandbox", { sandbox_id });
  expect(tracesOf(server, ids)).toEqual(NO_TRACES);
}

test("API-34 of several starts at once one starts it, and a second stop finds nothing to stop", async () => {
  const sandbox_id = await pending();
  const starts = await codesOf(
    Array.from({ length: 5 }, () => "StartSandbox"),
    { sandbox_id },
  );
  expect(starts.toSorted()).toEqual([0, 9, 9, 9, 9]);
  const stops = await codesOf(
    Array.from({ length: 4 }, () => "StopSandbox"),
    { sandbox_id },
  );
  expect(stops.toSorted()).toEqual([0, 9, 9, 9]);
  await destroy(sandbox_id);
});

test("API-34 start, stop and start at once leave it in one state, and what runs in it agrees", async () => {
  for (let round = 0; round < 5; round++) {
    const sandbox_id = await pending();
    const codes = await codesOf(["StartSandbox", "StopSandbox", "StartSandbox", "StopSandbox"], { sandbox_id });
    for (const code of codes) expect([0, 9]).toContain(code);
    const status = await statusOf(sandbox_id);
    expect(["SANDBOX_STATUS_RUNNING", "SANDBOX_STATUS_STOPPED"]).toContain(status);
    const code = await codeOf("Exec", { sandbox_id, command: "cat a.txt" });
    expect([status, code]).toEqual([status, status === "SANDBOX_STATUS_RUNNING" ? 0 : 9]);
    await destroy(sandbox_id);
  }
});

test("API-34 commands that meet a stop or a destroy end, with a result or an orderly error", async () => {
  for (const end of ["StopSandbox", "DestroySandbox"]) {
    const sandbox_id = await running();
    const session_id = await makeSession(client, sandbox_id);
    const commands = Promise.all([
      ...Array.from({ length: 6 }, (_, index) =>
        codeOf("Exec", { sandbox_id, command: index % 2 === 0 ? "sleep 60" : "echo x > f; cat f" }),
      ),
      codeOf("SessionExec", { session_id, command: "sleep 60" }),
      codeOf("ExecStream", { sandbox_id, command: "while :; do echo x; sleep 0.05; done" }),
      codeOf("CreateSession", { sandbox_id }),
      codeOf("UpdatePermissions", { sandbox_id, permissions: EVERYTHING_WRITABLE }),
      codeOf("ApplyChanges", { sandbox_id }),
    ]);
    const ended = codeOf(end, { sandbox_id });
    expect(await ended).toBe(0);
    for (const code of await commands) expect([0, 1, 5, 9]).toContain(code);
    expect(await codeOf("Exec", { sandbox_id, command: "true" })).toBe(end === "StopSandbox" ? 9 : 5);
    await destroy(sandbox_id);
  }
});

test("API-34 a sandbox can be destroyed while it starts, and twice at once", async () => {
  for (let round = 0; round < 6; round++) {
    const sandbox_id = await pending();
    const [start, first, second] = await codesOf(["StartSandbox", "DestroySandbox", "DestroySandbox"], { sandbox_id });
    expect([0, 1, 5]).toContain(start);
    expect([first, second].toSorted()).toEqual([0, 5]);
    expect(await codeOf("GetSandbox", { sandbox_id })).toBe(5);
    expect(tracesOf(server, [sandbox_id])).toEqual(NO_TRACES);
  }
});

test("API-34 a codebase in use is not deleted unless that is asked for, and then nothing of it stays", async () => {
  const codebase = await makeCodebase(client, { "a.txt": "a" }, "owner");
  const users = [await makeSandbox(client, codebase), await makeSandbox(client, codebase)];
  const refused = await client.failure("CodebaseService", "DeleteCodebase", { codebase_id: codebase });
  expect(refused).toMatchObject({ code: 9, message: expect.stringContaining(users[0]!) });
  expect((await exec(client, users[0]!, "cat a.txt")).stdout).toBe("a");
  const [forced, created, uploaded] = await Promise.all([
    client.outcome("CodebaseService", "DeleteCodebase", [{ codebase_id: codebase, force: true }]),
    client.outcome("SandboxService", "CreateSandbox", [{ codebase_id: codebase }]),
    client.outcome("CodebaseService", "UploadFiles", [
      { metadata: { codebase_id: codebase, file_path: "b.txt" } },
      { data: Buffer.from("b") },
    ]),
    ...users.map((sandbox_id) => codeOf("Exec", { sandbox_id, command: "sleep 1; echo x > f" })),
  ]);
  expect(forced.code === 0 || created.code === 0).toBe(true);
  expect([0, 5]).toContain(created.code);
  expect([0, 5]).toContain(uploaded.code);
  if (forced.code !== 0) await client.call("CodebaseService", "DeleteCodebase", { codebase_id: codebase, force: true });
  expect(await client.failure("CodebaseService", "GetCodebase", { codebase_id: codebase })).toMatchObject({ code: 5 });
  for (const sandbox_id of users) expect(await codeOf("GetSandbox", { sandbox_id })).toBe(5);
  expect(tracesOf(server, users)).toEqual(NO_TRACES);
  expect(readdirSync(`${server.directory}/codebases`).filter((name) => name === codebase)).toEqual([]);
  const again = await client.outcome("CodebaseService", "DeleteCodebase", [{ codebase_id: codebase }]);
  expect(again.code).toBe(5);
});

test("API-34 after all of it the server holds no more than before", async () => {
  const descriptors = (): number => readdirSync(`/proc/${server.pid}/fd`).length;
  const round = async (): Promise<void> => {
    const ids = await Promise.all([running(), running(), pending()]);
    await Promise.all(
      ids.flatMap((sandbox_id) => [
        codeOf("Exec", { sandbox_id, command: "echo x > f" }),
        codeOf("StopSandbox", { sandbox_id }),
        codeOf("DestroySandbox", { sandbox_id }),
      ]),
    );
    await destroy(...ids);
  };
  await round();
  const before = descriptors();
  for (let times = 0; times < 4; times++) await round();
  await eventually(() => expect(descriptors()).toBeLessThanOrEqual(before + 6));
  expect(tracesOf(server, made)).toEqual(NO_TRACES);
  expect(server.log.filter(({ level }) => level === "error")).toEqual([]);
});
