import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type BoxedWorkspace,
  type BoxSession,
  collectChanges,
  type Isolation,
  openIsolation,
} from "@agentfense/server/isolation";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { eventually } from "../../support/eventually.ts";

const RULES = [
  { pattern: "**/*", permission: "write" },
  { pattern: "**/.env*", permission: "none", priority: 100 },
] as const;

async function* text(content: string): AsyncGenerator<Buffer> {
  yield Buffer.from(content);
}

/** What a service does with the layers of sandboxes that run: both ends of it, with real boxes. */
export function describeSandboxLayers(name: string): void {
  describe(`the layers of a running sandbox ${name}`, () => {
    let isolation: Isolation;
    beforeAll(async () => {
      isolation = await openIsolation();
    });
    afterAll(async () => {
      await isolation.close();
    });

    async function place(): Promise<{ root: string; lower: string; delta: string; sandbox: BoxedWorkspace }> {
      const root = await mkdtemp(join(tmpdir(), "agentfense-live-"));
      onTestFinished(async () => await rm(root, { recursive: true, force: true }));
      const [lower, delta] = [join(root, "lower"), join(root, "delta")];
      await mkdir(join(lower, "src"), { recursive: true });
      await writeFile(join(lower, "src/a"), "first\n");
      await writeFile(join(lower, ".env"), "SECRET=1\n");
      const sandbox = await isolation.create({
        runtime: "bwrap",
        workspaces: [{ lowers: [lower], delta, rules: RULES }],
      });
      onTestFinished(async () => await sandbox.destroy());
      await sandbox.start();
      return { root, lower, delta, sandbox };
    }

    async function said(by: BoxedWorkspace | BoxSession, command: string): Promise<string> {
      const { stdout, stderr } = await by.exec({ command });
      return `${stdout}${stderr}`.trim();
    }

    test("an upload shows in a shell that was looking, and its working directory stays", async () => {
      const { root, lower, sandbox } = await place();
      await using session = await sandbox.session();
      expect(await said(session, "cd src && cat a b 2>/dev/null; ls")).toBe("first\na");
      await writeFile(join(root, "new"), "uploaded\n");
      await rename(join(root, "new"), join(lower, "src/b"));
      await writeFile(join(root, "new"), "second\n");
      await rename(join(root, "new"), join(lower, "src/a"));
      await sandbox.codebaseChanged(["src/a", "src/b"]);
      expect(await said(session, "cat a b; ls; /bin/pwd")).toBe("second\nuploaded\na\nb\n/workspace/src");
    });

    test("files through the API are the files inside", async () => {
      const { sandbox } = await place();
      expect(await sandbox.files.write("src/made", text("by the API\n"), { mode: 0o755 })).toMatchObject({
        path: "/src/made",
        mode: 0o755,
      });
      expect(await said(sandbox, "cat src/made; test -O src/made && test -x src/made && echo mine")).toBe(
        "by the API\nmine",
      );
      await said(sandbox, "echo from inside >> src/made; mkdir d; echo 1 > d/x");
      const content = Buffer.concat(await Array.fromAsync(await sandbox.files.read("/workspace/src/made")));
      expect(content.toString()).toBe("by the API\nfrom inside\n");
      expect((await sandbox.files.list("/", { recursive: true })).map(({ path }) => path)).toEqual([
        "/d",
        "/d/x",
        "/src",
        "/src/a",
        "/src/made",
      ]);
      await expect(sandbox.files.stat(".env")).rejects.toMatchObject({ code: "FILE_FAILED", errno: "ENOENT" });
      await sandbox.destroy();
      await expect(sandbox.files.stat("src")).rejects.toMatchObject({ code: "SANDBOX_NOT_RUNNING" });
    });

    test("what a command changed settles; what a background process writes stays", async () => {
      const { root, lower, delta, sandbox } = await place();
      await using session = await sandbox.session();
      await said(
        session,
        "mkdir -p out/deep; cd out; echo result > deep/file; (while sleep 0.05; do echo tick; done) > log &",
      );
      await said(session, "sleep 0.3");
      const staging = join(root, "staging");
      await mkdir(staging);
      const { changes, settled } = await collectChanges({ delta, lower, rules: RULES, staging });
      const paths: string[] = [];
      for (const { change, entry } of changes) {
        if (entry === undefined) continue;
        if (entry.kind === "directory") await mkdir(join(lower, change.path));
        else await rename(join(staging, entry.staged), join(lower, change.path));
        paths.push(change.path);
      }
      await sandbox.codebaseChanged(paths);
      expect(await sandbox.settle(settled)).toEqual(
        settled.some(({ path }) => path === "/out/log") ? ["/out/log"] : [],
      );
      expect(await said(session, "cat deep/file; /bin/pwd; test -s log && echo growing")).toBe(
        "result\n/workspace/out\ngrowing",
      );
      expect(await readFile(join(lower, "out/deep/file"), "utf8")).toBe("result\n");
      await said(session, "kill %1; wait");
      // Who wrote it is gone; the kernel lets go of the file a moment later.
      await eventually(async () => expect((await sandbox.discard(undefined)).failed).toEqual([]));
      await sandbox.destroy();
      expect(await sandbox.settle([{ path: "/nothing", stamp: undefined }])).toEqual([]);
    });

    test("a command that begins where the one before did asks nothing of the file system for that", async () => {
      const { sandbox } = await place();
      const requests = (): number =>
        Object.values(isolation.counters().fuseOperations).reduce((sum, count) => sum + count, 0);
      await said(sandbox, "cat src/a");
      // The waiter goes to the workspace when its first program has ended.
      await eventually(async () => {
        const before = requests();
        expect(await said(sandbox, "true")).toBe("");
        expect(requests()).toBe(before);
      });
      expect(await said(sandbox, "/bin/pwd; cat src/a")).toBe("/workspace\nfirst");
      const inSource = { command: "/bin/pwd; cat a", workdir: "src" };
      for (const content of ["first", "second"]) {
        const { stdout } = await sandbox.exec(inSource);
        expect(stdout.toString()).toBe(`/workspace/src\n${content}\n`);
        // The directory of the command before is another one now, of the same name.
        await said(sandbox, "mkdir new; echo second > new/a; rm -r src; mv new src; true");
      }
      expect(await said(sandbox, "/bin/pwd; cat src/a")).toBe("/workspace\nsecond");
    });

    test("requests and denials are counted", async () => {
      const { sandbox } = await place();
      const before = isolation.counters();
      await said(sandbox, "for i in $(seq 200); do cat .env; done; cat src/a");
      const after = isolation.counters();
      expect(after.denials).toBeGreaterThan(before.denials);
      expect(after.fuseOperations["Lookup"]).toBeGreaterThan(before.fuseOperations["Lookup"] ?? 0);
      expect(Object.values(after.fuseOperations).every((count) => Number.isInteger(count))).toBe(true);
    });
  });
}
