import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { BoxedWorkspace, ExecResult, SandboxSpec, WorkspaceSpecification } from "@agentfense/server/isolation";
import { describe, expect, onTestFinished } from "vitest";
import { eventually, withoutHanging } from "../../support/eventually.ts";
import { rounds } from "../../support/rounds.ts";

type Promised = (title: string, body: () => Promise<void>) => void;

export interface PauseTarget {
  readonly promise: Promised;
  /** Of what really happens in a box. */
  readonly reality: Promised;
  running(extra?: Partial<SandboxSpec>): Promise<BoxedWorkspace>;
  /** Its next life, of the same delta and home. */
  again(sandbox: BoxedWorkspace): Promise<BoxedWorkspace>;
  /** A directory for what a test makes. */
  home(): string;
}

const COUNTING = "i=0; while :; do i=$((i+1)); echo $i > output/count; done";

/** A sandbox is held still, as it is, and goes on as if nothing had been. */
export function describePauses({ promise, reality, running, again, home }: PauseTarget): void {
  /** A command that goes on until the test is over; its result is of whoever ends it before. */
  function begin(sandbox: BoxedWorkspace, command: string, timeoutMs = 600_000): Promise<ExecResult> {
    const over = new AbortController();
    const result = sandbox.exec({ command, timeoutMs }, { signal: over.signal });
    result.catch(() => {});
    onTestFinished(async () => {
      over.abort();
      await result.catch(() => {});
    });
    return result;
  }

  async function content(sandbox: BoxedWorkspace, path: string): Promise<string> {
    const chunks: Buffer[] = [];
    for await (const chunk of await sandbox.files.read(path)) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  }

  async function* bytes(text: string): AsyncGenerator<Uint8Array> {
    yield Buffer.from(text);
  }

  /** The command has come to where it writes this file. */
  const reached = (sandbox: BoxedWorkspace, path: string) => eventually(() => sandbox.files.stat(path));
  const sh = async (sandbox: BoxedWorkspace, command: string) => (await sandbox.exec({ command })).stdout.toString();

  describe("pause", () => {
    promise("is on or off, every step may be repeated, and a sandbox can end from there", async () => {
      const sandbox = await running();
      const seen = [sandbox.isPaused];
      for (const step of ["pause", "pause", "start", "resume", "resume", "pause", "destroy"] as const) {
        await sandbox[step]();
        seen.push(sandbox.isPaused);
      }
      expect(seen).toEqual([false, true, true, true, false, false, true, false]);
    });

    promise("refuses what needs a process, with a hint, until it is resumed", async () => {
      const sandbox = await running();
      const session = await sandbox.session();
      await sandbox.pause();
      const refusal = { code: "SANDBOX_PAUSED", hint: "resume it first" };
      const stream = sandbox.execStream({ command: "true" })[Symbol.asyncIterator]();
      await expect(sandbox.exec({ command: "true" })).rejects.toMatchObject(refusal);
      await expect(stream.next()).rejects.toMatchObject(refusal);
      await expect(sandbox.session()).rejects.toMatchObject(refusal);
      await expect(session.exec({ command: "true" })).rejects.toMatchObject(refusal);
      await expect(sandbox.terminal({ size: { columns: 80, rows: 24 } })).rejects.toMatchObject(refusal);
      await sandbox.resume();
      expect((await sandbox.exec({ command: "true" })).exitCode).toBe(0);
      expect((await session.exec({ command: "true" })).exitCode).toBe(0);
    });

    promise("needs a running sandbox", async () => {
      const sandbox = await running();
      await sandbox.destroy();
      await expect(sandbox.pause()).rejects.toMatchObject({ code: "SANDBOX_NOT_RUNNING" });
      await expect(sandbox.resume()).rejects.toMatchObject({ code: "SANDBOX_NOT_RUNNING" });
    });

    reality("a counter stands still as long as it lasts, over many file calls, and goes on afterwards", async () => {
      const sandbox = await running();
      void begin(sandbox, COUNTING);
      await eventually(async () => Number(await content(sandbox, "output/count")) > 10);
      await sandbox.pause();
      const [stood, before] = [await content(sandbox, "output/count"), await sandbox.usage()];
      for (let i = 0; i < 200; i++) {
        await sandbox.files.write(`output/other-${i % 7}`, bytes(`${i}`));
        await sandbox.files.list("output");
      }
      expect(await content(sandbox, "output/count")).toBe(stood);
      expect((await sandbox.usage()).cpuMicros).toBe(before.cpuMicros);
      await sandbox.resume();
      await eventually(async () => Number(await content(sandbox, "output/count")) > Number(stood) + 10);
    });

    reality("files that a held process has open and locked are read, written, renamed and removed", async () => {
      const sandbox = await running();
      const locking =
        "exec 9>output/locked; flock 9; exec 8>>output/growing; touch output/ready; while :; do echo line >&8; done";
      void begin(sandbox, locking);
      await reached(sandbox, "output/ready");
      await sandbox.pause();
      await withoutHanging(async () => {
        await sandbox.files.write("output/locked", bytes("written"));
        expect(await content(sandbox, "output/locked")).toBe("written");
        expect(await content(sandbox, "output/growing")).toMatch(/^(line\n)*$/);
        await sandbox.files.move("output/locked", "output/moved");
        await sandbox.files.remove("output/ready");
        await sandbox.updateRules([{ pattern: "**/*", permission: "write" }]);
        await sandbox.files.write("src/new.c", bytes("int x;\n"));
      });
      const { size } = await sandbox.files.stat("output/growing");
      await sandbox.resume();
      await eventually(async () => (await sandbox.files.stat("output/growing")).size > size);
    });

    reality("a command whose time is up meanwhile ends with all it started, and nothing else does", async () => {
      const sandbox = await running();
      const session = await sandbox.session();
      await session.exec({ command: "sleep 981 & X=5" });
      const late = begin(sandbox, "(setsid sleep 982 &); sleep 983 & touch output/begun; sleep 984", 1_500);
      await reached(sandbox, "output/begun");
      await sandbox.pause();
      expect(await withoutHanging(() => late)).toMatchObject({ timedOut: true, exitCode: 137 });
      expect(sandbox.isPaused).toBe(true);
      await sandbox.resume();
      const left = "ps -eo args | grep -o '^sleep 98.' | sort";
      await eventually(async () => expect(await sh(sandbox, left)).toBe("sleep 981\n"));
      expect((await session.exec({ command: "echo $X" })).stdout.toString()).toBe("5\n");
    });

    reality("a command that its caller cancels meanwhile ends, and a session can be closed", async () => {
      const sandbox = await running();
      const session = await sandbox.session();
      const leaving = new AbortController();
      const command = "touch output/begun; sleep 985";
      const cancelled = sandbox.exec({ command }, { signal: leaving.signal });
      cancelled.catch(() => {});
      await reached(sandbox, "output/begun");
      await sandbox.pause();
      leaving.abort();
      await withoutHanging(() => expect(cancelled).rejects.toMatchObject({ code: "CANCELLED" }));
      await withoutHanging(() => session.close());
      await sandbox.resume();
      expect(await sh(sandbox, "ps -eo args | grep -c '^sleep 985'")).toBe("0\n");
    });

    reality("a session's command whose time is up meanwhile is over in bounded time", async () => {
      const sandbox = await running();
      const session = await sandbox.session();
      const late = session.exec({ command: "touch output/begun; sleep 986", timeoutMs: 1_000 });
      await reached(sandbox, "output/begun");
      await sandbox.pause();
      expect(await withoutHanging(() => late)).toMatchObject({ timedOut: true });
      await sandbox.resume();
      await eventually(async () => expect(await sh(sandbox, "ps -eo args | grep -c '^sleep 986'")).toBe("0\n"));
    });

    reality("the sandbox's end is that of what is held still", async () => {
      const sandbox = await running();
      const ended = begin(sandbox, "touch output/begun; sleep 987");
      await reached(sandbox, "output/begun");
      await sandbox.pause();
      await withoutHanging(() => sandbox.destroy());
      await withoutHanging(() => ended.catch(() => {}));
      const next = await again(sandbox);
      expect(await sh(next, "ps -eo args | grep -c '^sleep 987'")).toBe("0\n");
      void begin(next, COUNTING);
      await reached(next, "output/count");
      await next.pause();
      await withoutHanging(() => next.destroy());
    });

    reality("under load nothing is lost, however often it happens", async () => {
      const sandbox = await running();
      await using session = await sandbox.session();
      const writing = (name: string): string =>
        `set -e; for i in $(seq 1000); do echo $i >> output/${name}; done; cat output/${name}; seq 20000`;
      const commands = Array.from({ length: 10 }, (_, i) => sandbox.exec({ command: writing(`command-${i}`) }));
      commands.push(session.exec({ command: `(${writing("session")})` }));
      let isOver = false;
      const all = Promise.all(commands).finally(() => {
        isOver = true;
      });
      for (let round = 0; !isOver && round < rounds(40); round++) {
        await sandbox.pause();
        await sandbox.files.write(`output/round-${round}`, bytes(`${round}`));
        await sandbox.resume();
      }
      const results = await withoutHanging(() => all);
      expect(new Set(results.map(({ exitCode, stderr }) => `${exitCode} ${stderr}`))).toEqual(new Set(["0 "]));
      const numbers = (most: number) => Array.from({ length: most }, (_, i) => `${i + 1}\n`).join("");
      expect(new Set(results.map(({ stdout }) => stdout.toString()))).toEqual(
        new Set([numbers(1_000) + numbers(20_000)]),
      );
    });

    reality("whoever waits for a large file to be copied does not notice", async () => {
      const place = await mkdtemp(join(home(), "large-"));
      await mkdir(join(place, "lower/output"), { recursive: true });
      const names = ["a", "b", "c"];
      for (const name of names) await writeFile(join(place, "lower/output", name), Buffer.alloc(96 << 20, name));
      const workspace: WorkspaceSpecification = {
        lowers: [join(place, "lower")],
        delta: join(place, "delta"),
        rules: [{ pattern: "**/*", permission: "write" }],
      };
      const sandbox = await running({ workspaces: [workspace] });
      let isOver = false;
      const commands = names.map((name) =>
        begin(sandbox, `echo -n end | tee -a output/${name} && tail -c 4 output/${name}`),
      );
      const all = Promise.allSettled(commands).finally(() => {
        isOver = true;
      });
      while (!isOver) {
        // On a busy machine one of them may be away in the kernel for longer than a pause waits: then all run on.
        const refusal = await sandbox.pause().then(
          () => undefined,
          (error: unknown) => error,
        );
        if (refusal === undefined) await sandbox.resume();
        else expect(refusal).toMatchObject({ code: "RESOURCES_EXHAUSTED", hint: expect.stringContaining("try again") });
      }
      await withoutHanging(() => all);
      const results = await Promise.all(commands);
      expect(results.map(({ stdout, stderr }) => `${stdout}${stderr}`)).toEqual(names.map((name) => `end${name}end`));
    });
  });
}
