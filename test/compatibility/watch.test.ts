import { readFileSync } from "node:fs";
import type { ClientReadableStream, ServiceError } from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import { type Refusal, serveApi, testsCover, UNKNOWN } from "../support/api.ts";
import { eventually } from "../support/eventually.ts";
import type { Message } from "../support/proto.ts";
import { COVERAGE } from "./coverage.ts";

const api = serveApi();

const RULES = [
  { pattern: "**", permission: "PERMISSION_WRITE" },
  { pattern: "/listed/**", permission: "PERMISSION_VIEW" },
  { pattern: "/secret/**", permission: "PERMISSION_NONE" },
  { pattern: "*.key", permission: "PERMISSION_NONE", priority: 10 },
];
const FILES = { "src/a.ts": "a", "src/deep/b.ts": "b", "listed/l.txt": "l", "secret/s": "s" };

async function project(): Promise<{ codebase: string; sandbox: string }> {
  const codebase = await api.codebase(FILES);
  return { codebase, sandbox: await api.sandbox(codebase, { permissions: RULES }) };
}

/** A watch and what it told so far: "RENAME a.ts". */
class Watching {
  readonly told: string[] = [];
  readonly ended: Promise<ServiceError | "OK">;
  readonly #call: ClientReadableStream<Message>;
  readonly #begun = Promise.withResolvers<void>();

  private constructor(request: Message) {
    this.#call = api.grpc.stream("SandboxService", "WatchFiles", request, { deadlineMs: 120_000 });
    const end = Promise.withResolvers<ServiceError | "OK">();
    this.ended = end.promise;
    this.#call.on("data", ({ kind, path }: Message) => {
      if (kind === "FILE_EVENT_KIND_UNSPECIFIED" && path === "") this.#begun.resolve();
      else this.told.push(`${(kind as string).replace("FILE_EVENT_KIND_", "")} ${path}`);
    });
    this.#call.on("error", (error: ServiceError) => {
      end.resolve(error);
      this.#begun.reject(error);
    });
    this.#call.on("end", () => end.resolve("OK"));
  }

  /** Resolves when the watch is on. */
  static async on(sandbox: string, path: string, more: Message = {}): Promise<Watching> {
    const watching = new Watching({ sandbox_id: sandbox, path, ...more });
    await watching.#begun.promise;
    return watching;
  }

  cancel(): void {
    this.#call.cancel();
  }

  async tells(...expected: string[]): Promise<void> {
    await eventually(() => expect(this.told).toEqual(expect.arrayContaining(expected)));
  }
}

describe("a watch", () => {
  test("tells what processes inside and callers of the API do", async () => {
    const { sandbox } = await project();
    const [flat, deep] = [await Watching.on(sandbox, "/src"), await Watching.on(sandbox, "", { recursive: true })];
    await api.exec(sandbox, "cd src; echo x >> a.ts; echo > new.ts; mkdir -p d/e; echo > d/e/f; mv new.ts old.ts");
    await flat.tells("CHANGE a.ts", "RENAME new.ts", "RENAME old.ts", "RENAME d");
    await deep.tells("CHANGE src/a.ts", "RENAME src/new.ts", "RENAME src/old.ts", "RENAME src/d", "RENAME src/d/e/f");
    await api.call("SandboxService.MakeDirectory", { sandbox_id: sandbox, path: "src/made" });
    await flat.tells("RENAME made");
    expect(flat.told.join()).not.toContain("/");
    // After the sync of the first command the same directories are watched still.
    await api.exec(sandbox, "echo x > src/d/e/later");
    await deep.tells("RENAME src/d/e/later");
  });

  test("tells once what a sandbox did itself, though it is synced to the codebase", async () => {
    const { sandbox } = await project();
    const watching = await Watching.on(sandbox, "", { recursive: true });
    const { synced_version } = await api.exec(sandbox, "mkdir made; ln -s src link");
    expect(Number(synced_version)).toBeGreaterThan(0);
    await api.exec(sandbox, "mkdir after");
    await watching.tells("RENAME after");
    expect(watching.told.filter((line) => line.startsWith("RENAME"))).toEqual([
      "RENAME made",
      "RENAME link",
      "RENAME after",
    ]);
  });

  test("tells what others change in the codebase, and nothing that is hidden", async () => {
    const { codebase, sandbox } = await project();
    const other = await api.sandbox(codebase);
    const [deep, flat] = [await Watching.on(sandbox, "/", { recursive: true }), await Watching.on(sandbox, "/")];
    await api.grpc.upload(codebase, "secret/new", "hush");
    await api.grpc.upload(codebase, "src/private.key", "hush");
    await api.exec(other, "echo hush > secret/from-inside; mkdir secret/d; echo > src/other.key");
    await api.grpc.upload(codebase, "brand/new/file.ts", "1");
    await api.exec(other, "echo more >> src/a.ts; rm -r src/deep");
    await api.call("CodebaseService.RenameFile", {
      codebase_id: codebase,
      from_path: "listed/l.txt",
      to_path: "m.txt",
    });
    await deep.tells("RENAME brand/new/file.ts", "RENAME src/a.ts", "RENAME src/deep", "RENAME m.txt");
    await deep.tells("RENAME listed/l.txt");
    await flat.tells("RENAME brand", "RENAME m.txt");
    await api.exec(sandbox, "echo > brand/new/mine.ts");
    await deep.tells("RENAME brand/new/mine.ts");
    expect([...deep.told, ...flat.told].join("\n")).not.toMatch(/secret|key|private|inside/);
  });

  test("of a file tells of the file alone, whatever its level", async () => {
    const { codebase, sandbox } = await project();
    const [file, listed] = [await Watching.on(sandbox, "src/a.ts"), await Watching.on(sandbox, "listed/l.txt")];
    await api.exec(sandbox, "echo > src/other; echo x >> src/a.ts");
    await file.tells("CHANGE ");
    await api.grpc.upload(codebase, "listed/l.txt", "longer");
    await listed.tells("RENAME ");
    expect(new Set([...file.told, ...listed.told])).toEqual(new Set(["CHANGE ", "RENAME "]));
  });

  test("tells what is discarded", async () => {
    const codebase = await api.codebase(FILES);
    const sandbox = await api.sandbox(codebase, { permissions: RULES, sync: "SYNC_MODE_MANUAL" });
    await api.exec(sandbox, "echo x > src/a.ts; echo > src/new.ts");
    const watching = await Watching.on(sandbox, "src");
    await api.call("SandboxService.DiscardChanges", { sandbox_id: sandbox, paths: ["/src/a.ts", "/src/new.ts"] });
    await watching.tells("RENAME a.ts", "RENAME new.ts");
    await api.exec(sandbox, "echo x > src/a.ts");
    await watching.tells("CHANGE a.ts");
    await api.call("SandboxService.DiscardChanges", { sandbox_id: sandbox });
    await watching.tells("CHANGE ");
  });

  test("comes as server-sent events, of the whole workspace too", async () => {
    const { sandbox } = await project();
    for (const [target, expected] of [
      [`/v1/sandboxes/${sandbox}/watch/src?recursive=true`, "deep/x.ts"],
      [`/v1/sandboxes/${sandbox}/watch/?recursive=true`, "src/deep/x.ts"],
    ] as const) {
      const messages: Message[] = [];
      for await (const { data } of api.rest.events("GET", target)) {
        messages.push(data);
        if (messages.length === 1) await api.exec(sandbox, "rm -f src/deep/x.ts; echo > src/deep/x.ts");
        if (data.path === expected) break;
      }
      expect(messages[0]).toMatchObject({ kind: "FILE_EVENT_KIND_UNSPECIFIED", path: "" });
      expect(messages.at(-1)).toMatchObject({
        kind: "FILE_EVENT_KIND_RENAME",
        path: expected,
      });
    }
  });
});

describe("the end of a watch", () => {
  const mountsOf = (sandbox: string): string[] =>
    readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .filter((line) => line.includes(sandbox));

  test("comes with a stop, which it does not hold up", async () => {
    const { sandbox } = await project();
    const watches = await Promise.all([
      Watching.on(sandbox, "/", { recursive: true }),
      Watching.on(sandbox, "src"),
      Watching.on(sandbox, "src/a.ts"),
    ]);
    expect(mountsOf(sandbox)).not.toEqual([]);
    await api.call("SandboxService.StopSandbox", { sandbox_id: sandbox });
    expect(mountsOf(sandbox)).toEqual([]);
    expect(await Promise.all(watches.map(({ ended }) => ended))).toEqual(["OK", "OK", "OK"]);
    await api.call("SandboxService.StartSandbox", { sandbox_id: sandbox });
    const again = await Watching.on(sandbox, "src");
    await api.exec(sandbox, "echo > src/again");
    await again.tells("RENAME again");
  });

  test("comes when the sandbox is destroyed", async () => {
    const { sandbox } = await project();
    const watching = await Watching.on(sandbox, "/", { recursive: true });
    await api.call("SandboxService.DestroySandbox", { sandbox_id: sandbox });
    expect(await watching.ended).toBe("OK");
    expect(mountsOf(sandbox)).toEqual([]);
  });

  test("comes when new rules hide the directory", async () => {
    const { sandbox } = await project();
    const watching = await Watching.on(sandbox, "src");
    const permissions = [...RULES, { pattern: "/src/**", permission: "PERMISSION_NONE", priority: 50 }];
    await api.call("SandboxService.UpdatePermissions", { sandbox_id: sandbox, permissions });
    expect(await watching.ended).toBe("OK");
    expect(watching.told.at(-1)).toBe("RENAME ");
  });

  test("comes with the caller's leaving, and leaves room for others", async () => {
    const { sandbox } = await project();
    for (let round = 0; round < 3; round++) {
      const watches = await Promise.all(Array.from({ length: 30 }, () => Watching.on(sandbox, "src")));
      for (const watching of watches) watching.cancel();
      expect(await Promise.all(watches.map(({ ended }) => ended))).toMatchObject(watches.map(() => ({ code: 1 })));
    }
    const watching = await Watching.on(sandbox, "src");
    await api.exec(sandbox, "echo > src/x");
    await watching.tells("RENAME x");
  });
});

describe("refused", () => {
  const request = (sandbox: string, path: string): Pick<Refusal, "method" | "request" | "rest"> => ({
    method: "SandboxService.WatchFiles",
    request: { sandbox_id: sandbox, path },
    rest: `GET /v1/sandboxes/${sandbox}/watch/${path}`,
  });

  test("what is hidden, and what is not there", async () => {
    const { sandbox } = await project();
    for (const path of ["secret", "secret/s", "src/x.key", "src/nothing"]) {
      await api.refused({
        ...request(sandbox, path),
        status: "NOT_FOUND",
        message: `${JSON.stringify(path)}: it does not exist`,
      });
    }
  });

  test("a link that leads out, a path that climbs", async () => {
    const { sandbox } = await project();
    await api.exec(sandbox, "ln -s /etc out");
    await api.refused({ ...request(sandbox, "out"), status: "FAILED_PRECONDITION", message: /leads out/ });
    await api.refused({
      method: "SandboxService.WatchFiles",
      request: { sandbox_id: sandbox, path: "src/../../x" },
      status: "INVALID_ARGUMENT",
      message: /\.\./,
    });
  });

  test("unknown sandboxes, and those that do not run", async () => {
    await api.refused({ ...request(UNKNOWN.sandbox, "a"), status: "NOT_FOUND", message: "sandbox not found" });
    const { id } = await api.call("SandboxService.CreateSandbox", { codebase_id: await api.codebase() });
    await api.refused({
      ...request(id as string, "a"),
      status: "FAILED_PRECONDITION",
      message: "sandbox is not running",
    });
  });
});

testsCover(api, COVERAGE.watch);
