import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { describe, expect, onTestFinished, test } from "vitest";
import { eventually, withoutHanging } from "../../support/eventually.ts";
import { GrpcClient, type Message } from "../../support/grpc-client.ts";
import { type OwnPostgres, type RunningPostgres, startPostgres } from "../../support/postgres.ts";
import { postgresOfRun } from "../../support/postgres-of-run.ts";
import { RestClient } from "../../support/rest-client.ts";
import { CLI, type Settings, TestServer } from "../../support/server.ts";

const WRITE_ALL = [{ pattern: "**", permission: "PERMISSION_WRITE" }];

/** A directory and a database for one server after the other. */
async function place(postgres: RunningPostgres) {
  const directory = mkdtempSync(join(tmpdir(), "agentfense-postgres-server-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const name = await postgres.createDatabase();
  const settings = (storage: Readonly<Record<string, unknown>> = {}): Settings => ({
    storage: { database: postgres.url(name), ...storage },
  });
  const start = (storage?: Readonly<Record<string, unknown>>) =>
    TestServer.start({ directory, settings: settings(storage) });
  return { directory, name, settings, start };
}

async function makeCodebase(client: GrpcClient): Promise<string> {
  const { id } = await client.call("CodebaseService", "CreateCodebase", { name: "projekt ü", owner_id: "somebody" });
  await client.upload(String(id), "src/a.ts", "one");
  await client.upload(String(id), "src/a.ts", "two");
  return String(id);
}

async function startedSandbox(client: GrpcClient, codebaseId: string, request: Message = {}): Promise<string> {
  const creation = { codebase_id: codebaseId, permissions: WRITE_ALL, labels: { team: "a b" }, ...request };
  const id = String((await client.call("SandboxService", "CreateSandbox", creation)).id);
  await client.call("SandboxService", "StartSandbox", { sandbox_id: id });
  return id;
}

const run = async (client: GrpcClient, id: string, command: string) =>
  await client.call("SandboxService", "Exec", { sandbox_id: id, command });

async function ready(server: TestServer): Promise<void> {
  await eventually(async () => expect((await new RestClient(server.http).get("/readyz")).status).toBe(200));
}

/** What a client can see of it all. */
async function everything(client: GrpcClient, codebaseId: string, sandboxId: string) {
  const about = { codebase_id: codebaseId };
  return {
    codebases: await client.call("CodebaseService", "ListCodebases", {}),
    versions: await client.call("CodebaseService", "ListVersions", about),
    version: await client.call("CodebaseService", "GetVersion", { ...about, version: 2 }),
    files: await client.call("CodebaseService", "ListFiles", { ...about, recursive: true }),
    sandboxes: await client.call("SandboxService", "ListSandboxes", { labels: { team: "a b" } }),
    changes: await client.call("SandboxService", "ListChanges", { sandbox_id: sandboxId }),
  };
}

describe("a server on PostgreSQL", () => {
  test("finds everything again after its end and after a kill, and its audit log is whole", async () => {
    const { directory, start } = await place(await postgresOfRun());
    let server = await start();
    onTestFinished(() => server[Symbol.asyncDispose]());
    let client = new GrpcClient(server.grpc);
    const codebaseId = await makeCodebase(client);
    const synced = await startedSandbox(client, codebaseId);
    const kept = await startedSandbox(client, codebaseId, { sync: "SYNC_MODE_MANUAL" });
    expect(
      await run(client, synced, "mkdir new && echo three > src/a.ts && seq 5 > new/b && rm -f src/none"),
    ).toMatchObject({
      exit_code: 0,
    });
    expect(await run(client, kept, "cat src/a.ts; echo mine > kept")).toMatchObject({ stdout: "three\n" });
    const { id: sessionId } = await client.call("SandboxService", "CreateSession", { sandbox_id: synced });
    const before = await everything(client, codebaseId, kept);
    expect(before.codebases.codebases).toMatchObject([{ name: "projekt ü", owner_id: "somebody" }]);

    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      client[Symbol.dispose]();
      await server.stop(signal);
      server = await withoutHanging(() => start());
      await ready(server);
      client = new GrpcClient(server.grpc);
      const after = await everything(client, codebaseId, kept);
      const asBefore = (sandboxes: Message) =>
        (sandboxes.sandboxes as Message[]).map(({ started_at: _started, ...sandbox }) => sandbox);
      expect({ ...after, sandboxes: asBefore(after.sandboxes) }).toEqual({
        ...before,
        sandboxes: asBefore(before.sandboxes),
      });
      expect(await run(client, kept, "cat kept src/a.ts")).toMatchObject({ stdout: "mine\nthree\n" });
      const closed = await client.call("SandboxService", "GetSession", { session_id: sessionId });
      expect(closed.status).toBe("SESSION_STATUS_CLOSED");
    }
    client[Symbol.dispose]();
    const verify = [CLI, "audit", "verify", "--config", join(directory, "agentfense.yaml")];
    expect(execFileSync(process.execPath, verify).toString()).toMatch(/^the audit log is whole: [1-9]\d* event/);
  });

  test("goes on by itself when its database was away, and sandboxes never notice", async () => {
    await using postgres: OwnPostgres = await startPostgres();
    const { start } = await place(postgres);
    await using server = await start({ database_lease: "10m" });
    using client = new GrpcClient(server.grpc);
    const codebaseId = await makeCodebase(client);
    const sandboxId = await startedSandbox(client, codebaseId, { sync: "SYNC_MODE_MANUAL" });
    await run(client, sandboxId, "nohup sh -c 'while :; do date > ticks; sleep 0.1; done' > /dev/null 2>&1 &");
    await postgres.stop("SIGQUIT");
    await expect(client.call("CodebaseService", "ListCodebases", {})).rejects.toMatchObject({
      code: status.UNAVAILABLE,
      details: "the server cannot reach its database",
    });
    await expect(client.upload(codebaseId, "src/a.ts", "three")).rejects.toMatchObject({ code: status.UNAVAILABLE });
    await postgres.start();
    await eventually(async () => {
      await client.upload(codebaseId, "src/a.ts", "four");
    });
    expect(
      await run(client, sandboxId, "cat src/a.ts; rm ticks; while ! test -s ticks; do sleep 0.1; done"),
    ).toMatchObject({
      stdout: "four",
      exit_code: 0,
    });
    expect(server.running).toBe(true);
    // Its events of the time without a database are there too.
    const { events } = await client.call("EventService", "ListEvents", { page_size: 1000 });
    expect((events as Message[]).map(({ type }) => type)).toContain("command_executed");
  });

  test("is alone: another with the same database is refused, and one that was superseded ends", async () => {
    const postgres = await postgresOfRun();
    const { name, settings, start } = await place(postgres);
    await using first = await start({ database_lease: "60s" });
    using client = new GrpcClient(first.grpc);
    const codebaseId = await makeCodebase(client);
    const sandboxId = await startedSandbox(client, codebaseId);
    await expect(TestServer.start({ settings: settings() })).rejects.toThrow(/has no files of a database/);
    await expect(start()).rejects.toThrow("is in use by another server");
    expect(await run(client, sandboxId, "true")).toMatchObject({ exit_code: 0 });

    // As a server elsewhere would, after the end of the lease.
    await postgres.sql("UPDATE agentfense.lease SET epoch = epoch + 1, expires_at = '-infinity'", name);
    const late = await run(client, sandboxId, "echo late > src/a.ts");
    expect(late.sync_problems).toEqual([
      "nothing was written to the codebase: another server has taken this one's place",
    ]);
    await eventually(() => !first.running);
    expect(await first.stop()).toBe(1);
    expect(first.output).toContain("another server has taken over the database");
    await using next = await start();
    await ready(next);
    using again = new GrpcClient(next.grpc);
    expect(await again.call("CodebaseService", "GetCodebase", { codebase_id: codebaseId })).toMatchObject({
      version: "2",
    });
    // It is still in the sandbox, and goes to the codebase with what comes next.
    expect(await run(again, sandboxId, "cat src/a.ts")).toMatchObject({ stdout: "late\n", synced_version: "3" });
  });

  test("does not start on directories of another database, nor on none where there should be some", async () => {
    const postgres = await postgresOfRun();
    const one = await place(postgres);
    const other = await place(postgres);
    for (const each of [one, other]) await (await each.start()).stop();
    const swapped = { settings: other.settings(), directory: one.directory };
    await expect(TestServer.start(swapped)).rejects.toThrow("has files of another database");
    rmSync(join(one.directory, "mounts/.database"));
    await expect(one.start()).rejects.toThrow(/mounts has no files of a database[\s\S]*write [0-9a-f-]{36} into/);
  });
});
