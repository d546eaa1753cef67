import { randomBytes } from "node:crypto";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { status } from "@grpc/grpc-js";
import { describe, expect, onTestFinished, test } from "vitest";
import { eventually, withoutHanging } from "../../support/eventually.ts";
import { GrpcClient, type Message, type ServiceName } from "../../support/grpc-client.ts";
import { RestClient } from "../../support/rest-client.ts";
import { TestServer } from "../../support/server.ts";
import { expectGone, footprint } from "./machine.ts";

const WRITE_ALL = [{ pattern: "**", permission: "PERMISSION_WRITE" }];
const reason = process.geteuid?.() === 0 ? "" : " (skipped: what is left behind is looked for as root)";

/** A directory for one server after the other. */
function place(): string {
  const directory = mkdtempSync(join(tmpdir(), "agentfense-restart-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

async function makeCodebase(client: GrpcClient): Promise<string> {
  const { id } = await client.call("CodebaseService", "CreateCodebase", { name: "project", owner_id: "somebody" });
  await client.upload(String(id), "src/a.ts", "one");
  await client.upload(String(id), "src/a.ts", "two");
  return String(id);
}

async function makeSandbox(client: GrpcClient, codebaseId: string, request: Message = {}): Promise<string> {
  const creation = { codebase_id: codebaseId, permissions: WRITE_ALL, ...request };
  return String((await client.call("SandboxService", "CreateSandbox", creation)).id);
}

async function startedSandbox(client: GrpcClient, codebaseId: string, request: Message = {}): Promise<string> {
  const id = await makeSandbox(client, codebaseId, request);
  await client.call("SandboxService", "StartSandbox", { sandbox_id: id });
  return id;
}

async function ready(server: TestServer): Promise<void> {
  const rest = new RestClient(server.http);
  await eventually(async () => expect((await rest.get("/readyz")).status).toBe(200));
}

describe.skipIf(reason !== "")(`a server that is asked to end${reason}`, () => {
  test("ends within ten seconds and leaves a clean machine, whatever runs", async () => {
    const directory = place();
    await using server = await TestServer.start({ directory });
    using client = new GrpcClient(server.grpc);
    const codebaseId = await makeCodebase(client);
    const sandboxId = await startedSandbox(client, codebaseId);
    const other = await startedSandbox(client, codebaseId, { sync: "SYNC_MODE_MANUAL" });
    const { id: sessionId } = await client.call("SandboxService", "CreateSession", { sandbox_id: sandboxId });
    await client.call("SandboxService", "Exec", {
      sandbox_id: other,
      command: "setsid sleep 1000 >&- 2>&- & echo x > kept",
    });

    const endings = new Map<string, Promise<number>>();
    const unary = (name: string, service: ServiceName, method: string, request: Message): void => {
      endings.set(name, endingOf(client.call(service, method, request, { deadlineMs: 120_000 })));
    };
    const stream = (name: string, service: ServiceName, method: string, request: Message): Promise<unknown> => {
      const call = client.stream(service, method, request, { deadlineMs: 120_000 });
      const first = Promise.withResolvers<unknown>();
      call.on("data", first.resolve);
      endings.set(name, streamEnding(call));
      return first.promise;
    };
    unary("a command", "SandboxService", "Exec", { sandbox_id: sandboxId, command: "sleep 100" });
    unary("a command in a session", "SandboxService", "SessionExec", { session_id: sessionId, command: "sleep 100" });
    const talking = stream("a command that talks", "SandboxService", "ExecStream", {
      sandbox_id: other,
      command: "trap '' TERM HUP INT; while :; do echo x; sleep 0.05; done",
    });
    void stream("a watch", "EventService", "WatchEvents", {});
    const watching = stream("a watch on files", "SandboxService", "WatchFiles", {
      sandbox_id: sandboxId,
      recursive: true,
    });
    const upload = slowUpload(client, codebaseId);
    endings.set("an upload", upload);
    const web = await fetch(`${server.http}/v1/events/watch`, { headers: { accept: "text/event-stream" } });
    endings.set(
      "a watch over HTTP",
      web.text().then(
        () => 0,
        () => status.UNAVAILABLE,
      ),
    );
    const terminal = client.duplex("SandboxService", "OpenTerminal", { deadlineMs: 120_000 });
    endings.set("a terminal", streamEnding(terminal));
    const prompt = new Promise((resolve) => terminal.once("data", resolve));
    terminal.write({ open: { sandbox_id: sandboxId } });
    await Promise.all([talking, prompt, watching]);
    await eventually(() => expect(stagedUploads(directory, codebaseId)).toHaveLength(1));

    const left = footprint(server.pid);
    expect(await withoutHanging(() => server.stop("SIGTERM"))).toBe(0);

    const codes = Object.fromEntries(
      await Promise.all([...endings].map(async ([name, code]) => [name, await code] as const)),
    );
    for (const [name, code] of Object.entries(codes)) expect([status.OK, status.UNAVAILABLE], name).toContain(code);
    expect(codes).toMatchObject({ "a command": status.UNAVAILABLE, "an upload": status.UNAVAILABLE });
    expect(stagedUploads(directory, codebaseId)).toEqual([]);
    await expectGone(left);
    expect(server.log.filter(({ level }) => level === "error" || level === "fatal")).toEqual([]);
  });

  test("is found again as it was by the next one", async () => {
    const directory = place();
    const settings = { runtime: { networks: ["filtered"] } };
    const first = await TestServer.start({ directory, settings });
    await using _first = first;
    using before = new GrpcClient(first.grpc);
    const codebaseId = await makeCodebase(before);
    const running = await startedSandbox(before, codebaseId, {
      sync: "SYNC_MODE_MANUAL",
      labels: { team: "a" },
      network_rules: [{ host: "listed.example:443" }],
    });
    const stopped = await startedSandbox(before, codebaseId, { env: { NAME: "value" } });
    const pending = await makeSandbox(before, codebaseId, { codebase_version: "1", expires_in: { seconds: "3600" } });
    const exec = (client: GrpcClient, command: string): Promise<Message> =>
      client.call("SandboxService", "Exec", { sandbox_id: running, command });
    await exec(before, "echo unsynced > new.txt; rm src/a.ts; ln -s nowhere link; mkdir -p d/e; chmod 750 d");
    await before.call("SandboxService", "Exec", { sandbox_id: stopped, command: "echo synced > synced.txt" });
    await before.call("SandboxService", "StopSandbox", { sandbox_id: stopped });
    const { id: open } = await before.call("SandboxService", "CreateSession", { sandbox_id: running });
    await before.call("SandboxService", "SessionExec", { session_id: open, command: "cd d; export A=1" });
    const { key, secret } = await before.call("SystemService", "CreateKey", { owner_id: "somebody", name: "kept" });
    const known = await everything(before, codebaseId, [running, stopped, pending]);
    expect(await first.stop("SIGTERM")).toBe(0);

    await using second = await TestServer.start({ directory, settings });
    await ready(second);
    using after = new GrpcClient(second.grpc);
    const found = await everything(after, codebaseId, [running, stopped, pending]);
    expect({ ...found, events: found.events.slice(0, known.events.length) }).toEqual(known);
    const { sessions } = await after.call("SandboxService", "ListSessions", { sandbox_id: running });
    expect(sessions).toMatchObject([{ id: open, status: "SESSION_STATUS_CLOSED", close_reason: "server_restarted" }]);
    expect(await exec(after, "cat new.txt; ls src; readlink link; stat -c %a d; ls d")).toMatchObject({
      stdout: "unsynced\nnowhere\n750\ne\n",
      exit_code: 0,
    });
    const names =
      "for name in listed.example other.example; do getent hosts $name >/dev/null && echo $name; done; true";
    expect(await exec(after, names)).toMatchObject({ stdout: "listed.example\n" });
    expect(String(await after.download(codebaseId, "src/a.ts"))).toBe("two");
    expect(String(await after.download(codebaseId, "src/a.ts", { version: "1" }))).toBe("one");
    expect(String(await after.download(codebaseId, "synced.txt"))).toBe("synced\n");
    await after.call("SandboxService", "StartSandbox", { sandbox_id: stopped });
    await after.call("SandboxService", "StartSandbox", { sandbox_id: pending });
    expect(await second.stop()).toBe(0);

    await using guarded = await TestServer.start({ directory, settings: { auth: { keys: "required" } } });
    using holder = new GrpcClient(guarded.grpc, { key: String(secret) });
    expect(await holder.call("SystemService", "GetServerInfo")).toMatchObject({ owner_id: "somebody" });
    expect(key).toMatchObject({ name: "kept" });
  });
});

describe("a server does not start", () => {
  test("on directories that another one uses, and the other goes on", async () => {
    const directory = place();
    await using first = await TestServer.start({ directory });
    using client = new GrpcClient(first.grpc);
    const codebaseId = await makeCodebase(client);
    const sandboxId = await startedSandbox(client, codebaseId, { sync: "SYNC_MODE_MANUAL" });
    await client.call("SandboxService", "Exec", { sandbox_id: sandboxId, command: "echo mine > kept" });
    const { id: session } = await client.call("SandboxService", "CreateSession", { sandbox_id: sandboxId });

    const own = (name: string): string => join(place(), name);
    // One that knows the codebase: a new one would be refused for that alone.
    const copy = own("metadata.db");
    withDatabase(join(directory, "metadata.db"), `VACUUM INTO '${copy}'`);
    const shared: Record<string, Record<string, string>> = {
      "all three": {},
      "the codebases": { mount_path: own("mounts"), db_path: copy },
      "the deltas": { codebase_path: own("codebases"), db_path: own("metadata.db") },
      "the database": { codebase_path: own("codebases"), mount_path: own("mounts") },
    };
    for (const [what, storage] of Object.entries(shared)) {
      const second = TestServer.start({
        directory: place(),
        settings: { storage: { ...storageOf(directory), ...storage } },
      });
      await expect(second, what).rejects.toThrow(
        /the server ended \(1\):\n(.*\n)*agentfense: .* in use by another server/,
      );
    }
    const exec = { session_id: session, command: "cat kept" };
    expect(await client.call("SandboxService", "SessionExec", exec)).toMatchObject({ stdout: "mine\n" });
    expect(String(await client.download(codebaseId, "src/a.ts"))).toBe("two");
  });

  test("on a database that is none, or somebody else's, and leaves it as it is", async () => {
    const databases: Record<string, readonly [make: (file: string) => void, complaint: RegExp]> = {
      "no database": [(file) => writeFileSync(file, randomBytes(20_000)), /not a database/],
      "somebody else's": [
        (file) => withDatabase(file, "CREATE TABLE accounts (name TEXT)"),
        /not a database of AgentFense/,
      ],
      "somebody else's with a version": [
        (file) => withDatabase(file, "CREATE TABLE accounts (name TEXT); PRAGMA user_version = 1"),
        /not a database of AgentFense/,
      ],
    };
    for (const [what, [make, complaint]] of Object.entries(databases)) {
      const directory = place();
      const file = join(directory, "metadata.db");
      make(file);
      const before = readFileSync(file);
      await expect(TestServer.start({ directory }), what).rejects.toThrow(complaint);
      expect(readFileSync(file).equals(before), what).toBe(true);
      expect(
        readdirSync(directory).filter((name) => name.startsWith("metadata")),
        what,
      ).toEqual(["metadata.db", "metadata.db.lock"]);
    }
  });

  test("on a database of a newer version, and leaves it as it is", async () => {
    const directory = place();
    await (await TestServer.start({ directory })).stop();
    const file = join(directory, "metadata.db");
    withDatabase(file, "PRAGMA user_version = 1000");
    cpSync(file, `${file}.copy`);
    await expect(TestServer.start({ directory })).rejects.toThrow(/schema 1000.*written by a newer one/);
    expect(readFileSync(file).equals(readFileSync(`${file}.copy`))).toBe(true);
  });

  test("on a new database beside codebases and deltas, which it would take for nobody's", async () => {
    const directory = place();
    await using first = await TestServer.start({ directory });
    using client = new GrpcClient(first.grpc);
    const codebaseId = await makeCodebase(client);
    const sandboxId = await startedSandbox(client, codebaseId, { sync: "SYNC_MODE_MANUAL" });
    await client.call("SandboxService", "Exec", { sandbox_id: sandboxId, command: "echo mine > kept" });
    await first.stop();

    const settings = { storage: { db_path: join(directory, "another.db") } };
    await expect(TestServer.start({ directory, settings })).rejects.toThrow(/does not know|new database/);
    expect(existsSync(join(directory, "codebases", codebaseId, "tree/src/a.ts"))).toBe(true);
    expect(readdirSync(join(directory, "mounts/delta"))).toContain(sandboxId);
  });
});

/** What a client can see of a codebase and sandboxes on it, apart from sessions. */
async function everything(client: GrpcClient, codebaseId: string, sandboxes: readonly string[]) {
  const about = { codebase_id: codebaseId };
  const versions = (await client.call("CodebaseService", "ListVersions", about)).versions as Message[];
  const records = await Promise.all(
    sandboxes.map((id) => client.call("SandboxService", "GetSandbox", { sandbox_id: id })),
  );
  return {
    codebase: await client.call("CodebaseService", "GetCodebase", about),
    versions: await Promise.all(
      versions.map(({ version }) => client.call("CodebaseService", "GetVersion", { ...about, version })),
    ),
    files: await client.call("CodebaseService", "ListFiles", { ...about, recursive: true }),
    sandboxes: records,
    changes: await client.call("SandboxService", "ListChanges", { sandbox_id: sandboxes[0] }),
    keys: ((await client.call("SystemService", "ListKeys")).keys as Message[]).map(({ id, name }) => ({ id, name })),
    events: (await client.call("EventService", "ListEvents", { page_size: 1000 })).events as Message[],
  };
}

function storageOf(directory: string): Record<string, string> {
  return {
    codebase_path: join(directory, "codebases"),
    mount_path: join(directory, "mounts"),
    db_path: join(directory, "metadata.db"),
  };
}

function withDatabase(file: string, sql: string): void {
  const database = new DatabaseSync(file);
  database.exec(sql);
  database.close();
}

function stagedUploads(directory: string, codebaseId: string): string[] {
  return readdirSync(join(directory, "codebases", codebaseId, "staging"));
}

/** A file whose last byte never comes. */
function slowUpload(client: GrpcClient, codebaseId: string): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const service = client.client("CodebaseService") as unknown as Record<
    string,
    (...args: unknown[]) => { write(message: Message): void; on(event: string, listener: () => void): void }
  >;
  const call = service.UploadFiles!((error: { code: number } | null) => resolve(error?.code ?? status.OK));
  call.on("error", () => {});
  call.write({ metadata: { codebase_id: codebaseId, file_path: "slow", total_size: "10000000" } });
  // So much that some of it is staged: less is kept in memory until its end.
  call.write({ data: Buffer.alloc(2_000_000) });
  return promise;
}

async function endingOf(call: Promise<unknown>): Promise<number> {
  return await call.then(
    () => status.OK,
    (error: { code: number }) => error.code,
  );
}

function streamEnding(call: {
  on(event: "error", listener: (error: { code: number }) => void): unknown;
  on(event: "end" | "data", listener: () => void): unknown;
}): Promise<number> {
  return new Promise((resolve) => {
    call.on("data", () => {});
    call.on("error", ({ code }) => resolve(code));
    call.on("end", () => setImmediate(() => resolve(status.OK)));
  });
}
