import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readdirSync, rmdirSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { failureOf, GrpcClient, type Message } from "../../support/grpc-client.ts";
import { CLI, TestServer } from "../../support/server.ts";
import { listedManifest, manifestOnDisk, shown } from "./durability/manifest.ts";

const MEGABYTE = 1024 * 1024;
const DISK_MEGABYTES = 24;
const WRITE_ALL = [{ pattern: "**", permission: "PERMISSION_WRITE" }];
const FULL = { code: status.RESOURCE_EXHAUSTED, message: expect.stringMatching(/disk is full/) };
const reason = process.geteuid?.() === 0 ? "" : " (skipped: a small disk is mounted as root)";

/** A disk of its own, small enough to be filled. */
class SmallDisk implements Disposable {
  readonly directory = mkdtempSync(join(tmpdir(), "agentfense-disk-"));
  readonly #ballast = join(this.directory, "ballast");

  constructor() {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_MEGABYTES}m,mode=0755`, "tmpfs", this.directory]);
  }

  fill(): void {
    const fd = openSync(this.#ballast, "a");
    try {
      for (let size = MEGABYTE; size >= 1; size = Math.floor(size / 16)) {
        const block = Buffer.alloc(size);
        while (writeSync(fd, block) === size);
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    } finally {
      closeSync(fd);
    }
  }

  free(): void {
    rmSync(this.#ballast, { force: true });
  }

  [Symbol.dispose](): void {
    execFileSync("umount", [this.directory]);
    rmdirSync(this.directory);
  }
}

describe.skipIf(reason !== "")(`a server whose disk is full${reason}`, () => {
  let disk: SmallDisk;
  let server: TestServer;
  let client: GrpcClient;
  let codebaseId: string;
  let sandboxId: string;

  beforeAll(async () => {
    disk = new SmallDisk();
    server = await TestServer.start({ directory: disk.directory });
    client = new GrpcClient(server.grpc);
    const codebase = await client.call("CodebaseService", "CreateCodebase", { name: "project", owner_id: "somebody" });
    codebaseId = String(codebase.id);
    await client.upload(codebaseId, "dir/a", "old");
    const creation = { codebase_id: codebaseId, permissions: WRITE_ALL };
    sandboxId = String((await client.call("SandboxService", "CreateSandbox", creation)).id);
    await client.call("SandboxService", "StartSandbox", { sandbox_id: sandboxId });
  });

  afterAll(async () => {
    client?.[Symbol.dispose]();
    await server?.[Symbol.asyncDispose]();
    disk?.[Symbol.dispose]();
  });

  const exec = (command: string, stdin = ""): Promise<Message> =>
    client.call("SandboxService", "Exec", { sandbox_id: sandboxId, command, stdin }, { deadlineMs: 60_000 });
  const codebases = (): string => join(disk.directory, "codebases");

  /** Through the API and on the disk it is this, and nothing is on its way. */
  async function expectCodebase(files: Readonly<Record<string, string>>): Promise<void> {
    const { files: listed } = await client.call("CodebaseService", "ListFiles", {
      codebase_id: codebaseId,
      recursive: true,
    });
    const manifest = shown(listedManifest(listed as Message[]));
    expect(shown(manifestOnDisk(join(codebases(), codebaseId, "tree")))).toEqual(manifest);
    expect(
      Object.keys(manifest)
        .filter((path) => manifest[path]?.startsWith("file"))
        .sort(),
    ).toEqual(Object.keys(files).sort());
    for (const [path, content] of Object.entries(files)) {
      expect(String(await client.download(codebaseId, path)), path).toBe(content);
    }
    await eventually(() => expect(readdirSync(join(codebases(), codebaseId, "staging"))).toEqual([]));
  }

  test("refuses an upload that does not fit, and the old file stays", async () => {
    const large = Buffer.alloc(2 * DISK_MEGABYTES * MEGABYTE, "x");
    expect(await failureOf(client.upload(codebaseId, "dir/a", large))).toMatchObject(FULL);
    const items = Array.from({ length: 2 * DISK_MEGABYTES }, (_, index) => ({
      items: [{ entry: { path: `many/${index}`, kind: "ENTRY_KIND_FILE" }, data: large.subarray(0, MEGABYTE) }],
    }));
    const chunks = [{ begin: { codebase_id: codebaseId }, items: [] }, ...items];
    expect(await failureOf(client.send("CodebaseService", "BatchUpload", chunks))).toMatchObject(FULL);
    await expectCodebase({ "dir/a": "old" });
  });

  test("refuses every change when nothing is left, answers questions, and goes on when there is space again", async () => {
    disk.fill();
    const about = { codebase_id: codebaseId };
    const refused: Record<string, () => Promise<unknown>> = {
      upload: () => client.upload(codebaseId, "dir/a", "new"),
      "second upload": () => client.upload(codebaseId, "dir/b", "y".repeat(100_000)),
      rename: () => client.call("CodebaseService", "RenameFile", { ...about, from_path: "dir/a", to_path: "c" }),
      remove: () => client.call("CodebaseService", "DeleteFile", { ...about, file_path: "dir/a" }),
      codebase: () => client.call("CodebaseService", "CreateCodebase", { name: "another", owner_id: "somebody" }),
      sandbox: () => client.call("SandboxService", "CreateSandbox", { ...about, permissions: WRITE_ALL }),
      key: () => client.call("SystemService", "CreateKey", { owner_id: "somebody" }),
    };
    for (const [what, call] of Object.entries(refused))
      expect({ what, ...(await failureOf(call())) }).toMatchObject({ what, ...FULL });
    const written = await exec("cat > note", "n".repeat(MEGABYTE));
    expect(written).toMatchObject({ stderr: expect.stringMatching(/No space left on device/) });
    expect(await exec("cat dir/a")).toMatchObject({ stdout: "old", exit_code: 0 });
    expect(server.running).toBe(true);
    await expectCodebase({ "dir/a": "old" });

    disk.free();
    await client.upload(codebaseId, "dir/a", "new");
    expect(await exec("printf note > note; cat dir/a")).toMatchObject({
      stdout: "new",
      exit_code: 0,
      sync_problems: [],
    });
    await expectCodebase({ "dir/a": "new", note: "note" });
  });

  test("fails a sync cleanly, and does it with the next command that can", async () => {
    expect(await exec(`head -c ${9 * MEGABYTE} /dev/zero | tr '\\0' z > large`)).toMatchObject({
      exit_code: 0,
      sync_problems: [],
    });
    // Copied into the codebase it is there twice for a moment, and the old one is kept.
    const {
      exit_code: code,
      sync_problems: problems,
      synced_version: version,
    } = await exec(`head -c ${9 * MEGABYTE} /dev/zero | tr '\\0' y > large`);
    expect({ code, version, problems }).toEqual({
      code: 0,
      version: "0",
      problems: [expect.stringMatching(/disk is full/)],
    });
    const list = await client.call("CodebaseService", "ListFiles", { codebase_id: codebaseId, recursive: true });
    const files = list.files as Message[];
    expect(shown(manifestOnDisk(join(codebases(), codebaseId, "tree")))).toEqual(shown(listedManifest(files)));
    expect(await exec("head -c 1 large; rm large")).toMatchObject({ stdout: "y", exit_code: 0, sync_problems: [] });
    await expectCodebase({ "dir/a": "new", note: "note" });
  });

  test("has an audit log without a gap, and starts again", async () => {
    expect(await server.stop()).toBe(0);
    const verdict = execFileSync(process.execPath, [CLI, "audit", "verify", "--config", server.configFile, "--json"]);
    expect(JSON.parse(String(verdict))).toMatchObject({ ok: true });
    await using again = await TestServer.start({ directory: disk.directory });
    using after = new GrpcClient(again.grpc);
    expect(String(await after.download(codebaseId, "dir/a"))).toBe("new");
  });
});
