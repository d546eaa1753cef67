import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { exec, makeCodebase, makeSandbox, makeSession } from "../../../support/belongings.ts";
import { eventually } from "../../../support/eventually.ts";
import { GrpcClient } from "../../../support/grpc-client.ts";
import { leftovers } from "../../../support/leftovers.ts";
import { instanceOf, NO_TRACES, STATE_DIRECTORY, tracesOf } from "../../../support/sandbox-traces.ts";
import { TestServer } from "../../../support/server.ts";

let directory: string;
let bystander: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "agentfense-crash-"));
  bystander = mkdtempSync(join(tmpdir(), "agentfense-bystander-"));
  writeFileSync(join(bystander, "kept.txt"), "kept");
});
afterAll(() => {
  for (const path of [directory, bystander]) rmSync(path, { recursive: true, force: true });
  rmSync(foreignState(), { recursive: true, force: true });
});

function foreignState(): string {
  return join(STATE_DIRECTORY, `foreign-${process.pid}`);
}

async function ready(server: TestServer): Promise<void> {
  await eventually(async () => expect((await fetch(`${server.http}/readyz`)).status).toBe(200));
}

/** What of a dead instance is left; others run their own servers here. */
function leftOf(instance: string): object {
  const { mounts, controlGroups, processes, stateEntries } = leftovers(STATE_DIRECTORY, [instance]);
  const own = (text: string): boolean => text.includes(instance);
  return { mounts: mounts.filter(own), controlGroups, processes, stateEntries: stateEntries.filter(own) };
}

const NOTHING = { mounts: [], controlGroups: [], processes: [], stateEntries: [] };

test("API-35 after a kill the next server cleans up what was left, and nothing else", async () => {
  const before = await TestServer.start({ directory });
  const foreign = [
    join(directory, "codebases/foreign"),
    join(directory, "mounts/foreign"),
    join(directory, "mounts/delta/foreign"),
    foreignState(),
  ];
  let codebase: string;
  let sandboxes: string[];
  let session: string;
  let instance: string;
  {
    using client = new GrpcClient(before.grpc);
    codebase = await makeCodebase(client, { "a.txt": "a" }, "owner");
    sandboxes = [
      await makeSandbox(client, codebase),
      await makeSandbox(client, codebase, { sync: "SYNC_MODE_MANUAL" }),
    ];
    session = await makeSession(client, sandboxes[0]!);
    for (const id of sandboxes)
      await exec(client, id, "echo kept > changed.txt; (sleep 1000 >/dev/null 2>&1 &) ; true");
    // Commands, a session and an upload are under way when it dies.
    const running = client.stream("SandboxService", "ExecStream", {
      sandbox_id: sandboxes[0],
      command: "echo up; sleep 1000",
    });
    running.on("error", () => {});
    await new Promise((resolve) => running.once("data", resolve));
    const upload = client.sending("CodebaseService", "UploadFiles");
    upload.on("error", () => {});
    upload.write({ metadata: { codebase_id: codebase, file_path: "half.bin" } });
    upload.write({ data: Buffer.alloc(300_000) });
    instance = instanceOf(sandboxes[0]!)!;
    for (const place of foreign) {
      mkdirSync(place, { recursive: true });
      writeFileSync(join(place, "kept.txt"), "kept");
      symlinkSync(bystander, join(place, "link"));
    }
    // A directory that looks like a sandbox's, and is a way out.
    symlinkSync(bystander, join(directory, "mounts/delta", `sb_${"f".repeat(32)}`));
    symlinkSync(bystander, join(directory, "codebases", `cb_${"f".repeat(32)}`));
    expect(leftOf(instance)).not.toEqual(NOTHING);
    expect(await before.stop("SIGKILL")).toBe("SIGKILL");
  }
  // The watchdog may have taken the mounts away already; the rest waits for the next server.
  expect(leftOf(instance)).not.toEqual(NOTHING);

  await using after = await TestServer.start({ directory });
  await ready(after);
  expect(instanceOf(sandboxes[0]!)).not.toBe(instance);
  await eventually(() => expect(leftOf(instance)).toEqual(NOTHING));
  expect(existsSync(join(STATE_DIRECTORY, instance))).toBe(false);
  for (const place of foreign) expect([place, readFileSync(join(place, "kept.txt"), "utf8")]).toEqual([place, "kept"]);
  expect(readFileSync(join(bystander, "kept.txt"), "utf8")).toBe("kept");

  using client = new GrpcClient(after.grpc);
  for (const sandbox_id of sandboxes) {
    expect(await client.call("SandboxService", "GetSandbox", { sandbox_id })).toMatchObject({
      status: "SANDBOX_STATUS_RUNNING",
    });
    const { stdout } = await exec(
      client,
      sandbox_id,
      "cat changed.txt; grep -lz '^sleep' /proc/[0-9]*/cmdline 2>/dev/null | wc -l",
    );
    expect(stdout).toBe("kept\n0\n");
  }
  expect((await client.download(codebase, "changed.txt")).toString()).toBe("kept\n");
  expect(await client.failure("SandboxService", "SessionExec", { session_id: session, command: "true" })).toMatchObject(
    { code: 9 },
  );
  const { files } = await client.call("CodebaseService", "ListFiles", { codebase_id: codebase });
  expect((files as { name: string }[]).map(({ name }) => name)).toEqual(["a.txt", "changed.txt"]);

  const last = instanceOf(sandboxes[0]!)!;
  expect(await after.stop("SIGTERM")).toBe(0);
  expect(leftOf(last)).toEqual(NOTHING);
  expect({ ...tracesOf(after, sandboxes), deltas: [] }).toEqual(NO_TRACES);
});
