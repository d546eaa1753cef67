import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type BoxedWorkspace,
  type ExecEvent,
  type Isolation,
  IsolationError,
  type MockAnswer,
  type SandboxEvent,
  type SandboxSpec,
} from "@agentfense/server/isolation";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { aWhile, eventually, withoutHanging } from "../../support/eventually.ts";
import { heldBytes } from "../../support/garbage.ts";
import { heldTimeout } from "../../support/held-timeout.ts";
import { describeCode } from "./code.suite.ts";
import { describeHome } from "./home.suite.ts";
import { describePauses } from "./pause.suite.ts";
import { describePorts } from "./ports.suite.ts";
import { describeProcesses } from "./processes.suite.ts";

// What every backend does alike. The real ones run the commands; the mock answers them from the script below, so that a
// promise of this suite is also a promise of the mock.

export interface ContractOptions {
  open(): Promise<Isolation>;
  /** Of the spec: runtime and what it needs to run at all. */
  readonly spec: Pick<SandboxSpec, "runtime" | "image">;
  /** Test titles this backend cannot keep, with the reason. */
  readonly skip?: Readonly<Record<string, string>>;
  /** Nothing is really executed and no file system is mounted. */
  readonly acted?: boolean;
  /** How many processes at once are tried; default 500. */
  readonly many?: number;
}

const HIDDEN = "SECRET=1";
const RULES = [
  { pattern: "**/*", permission: "read" },
  { pattern: "/output/**", permission: "write" },
  { pattern: "**/.env*", permission: "none", priority: 100 },
] as const;

/** What the mock answers to the lines of this suite. */
export const SCRIPT: Readonly<Record<string, MockAnswer>> = {
  "echo out; echo err >&2": { stdout: "out\n", stderr: "err\n" },
  "exit 3": { exitCode: 3 },
  "kill -9 $$": { exitCode: 137 },
  "kill -TERM $$": { exitCode: 143 },
  pwd: { stdout: "/workspace\n" },
  cat: { echoesStdin: true },
  "echo early; sleep 60": { stdout: "early\n", durationMs: Number.POSITIVE_INFINITY },
  "sleep 60": { durationMs: Number.POSITIVE_INFINITY },
  "head -c 100000 /dev/zero": { stdout: Buffer.alloc(100_000) },
  "head -c 12345678 /dev/zero": { stdout: Buffer.alloc(12_345_678) },
  "printf '\\000\\377\\n'": { stdout: Buffer.from([0, 255, 10]) },
  "echo $GREETING": { stdout: "hello world\n" },
  "cd /tmp": {},
  "X=5": {},
  "echo $X": { stdout: "5\n" },
  false: { exitCode: 1 },
  true: {},
};

export function describeBackend(name: string, options: ContractOptions): void {
  const { skip = {}, acted = false } = options;
  const titles = new Set<string>();
  const promise = (title: string, body: () => Promise<void>): void => {
    titles.add(title);
    const reason = skip[title];
    if (reason !== undefined) process.stdout.write(`skipped (${name}): ${title}: ${reason}\n`);
    test.skipIf(reason !== undefined)(title, body);
  };
  /** A promise about what really happens in a box, which nothing that is acted can keep. */
  const reality = (title: string, body: () => Promise<void>): void => {
    if (!acted) promise(title, body);
  };
  const realities = (title: string, body: () => void): void => {
    if (!acted) describe(title, body);
  };

  describe(`the contract of ${name}`, () => {
    let isolation: Isolation;
    let home: string;
    let project: string;

    beforeAll(async () => {
      home = await mkdtemp(join(tmpdir(), "agentfense-contract-"));
      project = join(home, "project");
      await mkdir(join(project, "output"), { recursive: true });
      await mkdir(join(project, "src"));
      await writeFile(join(project, "README.md"), "read me\n");
      await writeFile(join(project, "src/main.c"), "int main(void) { return 0; }\n");
      await writeFile(join(project, ".env"), HIDDEN);
      isolation = await options.open();
    });

    afterAll(async () => {
      await (await common)?.destroy();
      await isolation?.close();
      await rm(home, { recursive: true, force: true });
    });

    const specs = new WeakMap<BoxedWorkspace, Partial<SandboxSpec>>();

    async function create(extra: Partial<SandboxSpec>): Promise<BoxedWorkspace> {
      const delta = await mkdtemp(join(home, "delta-"));
      const spec = { ...options.spec, workspaces: [{ lowers: [project], delta, rules: RULES }], ...extra };
      const sandbox = await isolation.create(spec);
      specs.set(sandbox, spec);
      return sandbox;
    }

    async function make(extra: Partial<SandboxSpec> = {}): Promise<BoxedWorkspace> {
      const sandbox = await create(extra);
      onTestFinished(() => sandbox.destroy());
      return sandbox;
    }

    async function running(extra: Partial<SandboxSpec> = {}): Promise<BoxedWorkspace> {
      const sandbox = await make(extra);
      await sandbox.start();
      return sandbox;
    }

    let common: Promise<BoxedWorkspace> | undefined;

    /** One for all tests that leave it as it was: to make it and to end it takes longer than most of them. */
    function shared(): Promise<BoxedWorkspace> {
      common ??= create({}).then(async (sandbox) => {
        await sandbox.start();
        return sandbox;
      });
      return common;
    }

    /** Its next life, of the same delta and home. */
    async function again(sandbox: BoxedWorkspace): Promise<BoxedWorkspace> {
      await sandbox.destroy();
      return await running(specs.get(sandbox));
    }

    const text = (bytes: Buffer): string => bytes.toString();

    describe("life", () => {
      promise("runs between its start and its end, both of which may be repeated, and never again", async () => {
        const sandbox = await make();
        const code = () =>
          sandbox.exec({ command: "exit 3" }).then(
            ({ exitCode }) => exitCode,
            (error: { readonly code: string }) => error.code,
          );
        const seen = [await code()];
        for (const step of ["start", "start", "destroy", "destroy"] as const) {
          await sandbox[step]();
          seen.push(await code());
        }
        const none = "SANDBOX_NOT_RUNNING";
        expect(seen).toEqual([none, 3, 3, none, none]);
        const ended = await make();
        await ended.destroy();
        await expect(ended.start()).rejects.toMatchObject({ code: none });
        const next = await again(sandbox);
        expect(await next.exec({ command: "exit 3" })).toMatchObject({ exitCode: 3 });
      });

      promise("refuses commands, sessions and files unless it runs, and says so", async () => {
        const sandbox = await make();
        const refusal = { code: "SANDBOX_NOT_RUNNING", hint: "start it first" };
        const refused = async () => {
          await expect(sandbox.exec({ command: "true" })).rejects.toMatchObject(refusal);
          await expect(sandbox.session()).rejects.toMatchObject(refusal);
          await expect(sandbox.files.stat("/")).rejects.toMatchObject(refusal);
        };
        await refused();
        await sandbox.start();
        await sandbox.destroy();
        await refused();
      });

      promise("its end ends a running command at once", async () => {
        const sandbox = await running();
        const command = sandbox.execStream({ command: "echo early; sleep 60" })[Symbol.asyncIterator]();
        expect((await command.next()).value).toMatchObject({ kind: "stdout" }); // it runs
        const over = command.next();
        await sandbox.destroy();
        expect((await over).value).toMatchObject({
          kind: "exit",
          outcome: { exitCode: 137, signal: "SIGKILL", timedOut: false },
        });
      });

      promise("start, pause and destroy at the same time leave one that has ended", async () => {
        const sandbox = await make();
        const calls = [sandbox.start(), sandbox.pause(), sandbox.destroy(), sandbox.start(), sandbox.destroy()];
        await Promise.allSettled(calls);
        await expect(sandbox.exec({ command: "true" })).rejects.toMatchObject({ code: "SANDBOX_NOT_RUNNING" });
      });

      promise("a start whose caller gave up leaves nothing that could be used", async () => {
        const sandbox = await make();
        await expect(sandbox.start({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "CANCELLED" });
        await expect(sandbox.exec({ command: "true" })).rejects.toMatchObject({ code: "SANDBOX_NOT_RUNNING" });
        const next = await again(sandbox);
        expect(await next.exec({ command: "exit 3" })).toMatchObject({ exitCode: 3 });
      });

      promise("an id is used once, and has a plain shape", async () => {
        const sandbox = await make({ id: `contract-${name.replaceAll(/\W/g, "-")}` });
        await expect(make({ id: sandbox.id })).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
        await expect(make({ id: "../x" })).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
      });

      promise("refuses what cannot be right before anything is made", async () => {
        for (const wrong of [
          { env: { "A=B": "x" } },
          { env: { A: "x\0" } },
          { hostname: "-x" },
          { limits: { memoryBytes: -1 } },
          { limits: { pids: 0.5 } },
          { limits: { outputBytes: 0 } },
          { workspaces: [] },
          { workspaces: [{ lowers: [project], rules: RULES, target: "/etc/x" }] },
          { workspaces: [{ lowers: [project], rules: RULES, target: "workspace" }] },
        ] satisfies Partial<SandboxSpec>[]) {
          await expect(make(wrong), JSON.stringify(wrong)).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
        }
        await expect(
          make({ workspaces: [{ lowers: [project], rules: [{ pattern: "", permission: "read" }] }] }),
        ).rejects.toMatchObject({ index: 0 });
      });
    });

    describe("exec", () => {
      promise("keeps stdout and stderr apart", async () => {
        const sandbox = await shared();
        const { stdout, stderr, durationMs, ...rest } = await sandbox.exec({ command: "echo out; echo err >&2" });
        expect([text(stdout), text(stderr)]).toEqual(["out\n", "err\n"]);
        expect(rest).toEqual({ exitCode: 0, timedOut: false, truncated: false, outOfMemory: false });
        expect(durationMs).toBeGreaterThan(0);
      });

      promise("returns the exit code, and 128 + n with the signal's name", async () => {
        const sandbox = await shared();
        expect(await sandbox.exec({ command: "exit 3" })).toMatchObject({ exitCode: 3 });
        expect(await sandbox.exec({ command: "kill -9 $$" })).toMatchObject({ exitCode: 137, signal: "SIGKILL" });
        expect(await sandbox.exec({ command: "kill -TERM $$" })).toMatchObject({ exitCode: 143, signal: "SIGTERM" });
      });

      promise("takes stdin as text, bytes and a stream", async () => {
        const sandbox = await shared();
        const echo = async (stdin: string | Uint8Array | AsyncIterable<Uint8Array>): Promise<string> =>
          text((await sandbox.exec({ command: "cat", stdin })).stdout);
        async function* pieces(): AsyncGenerator<Uint8Array> {
          for (const piece of ["a", "b", "c"]) yield Buffer.from(piece);
        }
        expect([await echo("text"), await echo(Buffer.from("bytes")), await echo(pieces())]).toEqual([
          "text",
          "bytes",
          "abc",
        ]);
      });

      promise("passes binary output through", async () => {
        const sandbox = await shared();
        const { stdout } = await sandbox.exec({ command: "printf '\\000\\377\\n'" });
        expect([...stdout]).toEqual([0, 255, 10]);
      });

      promise("kills at the timeout and keeps what was printed", async () => {
        const events: SandboxEvent[] = [];
        const sandbox = await running({ onEvent: (event) => events.push(event) });
        const result = await sandbox.exec({ command: "echo early; sleep 60", timeoutMs: 2_000 });
        expect(result).toMatchObject({ timedOut: true, exitCode: 137, signal: "SIGKILL" });
        expect(text(result.stdout)).toBe("early\n");
        expect(events).toContainEqual(expect.objectContaining({ kind: "resource_limit_exceeded", limit: "time" }));
      });

      promise("cuts output at the limit and says so", async () => {
        const sandbox = await running({ limits: { outputBytes: 1000 } });
        const result = await sandbox.exec({ command: "head -c 100000 /dev/zero" });
        expect(result).toMatchObject({ exitCode: 0, truncated: true });
        expect(result.stdout.length).toBe(1000);
      });

      promise("kills a command whose caller gave up", async () => {
        const sandbox = await shared();
        const caller = new AbortController();
        const command = sandbox.exec({ command: "sleep 60" }, { signal: caller.signal });
        void aWhile(300).then(() => caller.abort());
        await expect(command).rejects.toMatchObject({ code: "CANCELLED" });
        await expect(sandbox.exec({ command: "true" }, { signal: AbortSignal.abort() })).rejects.toMatchObject({
          code: "CANCELLED",
        });
      });

      promise("refuses a command, a variable or a timeout that cannot be right", async () => {
        const sandbox = await shared();
        for (const wrong of [
          { command: "" },
          { command: [] },
          { command: "a\0b" },
          { command: "x".repeat(200_000) },
          { command: "true", env: { "1A": "x" } },
          { command: "true", timeoutMs: Number.NaN },
          { command: "true", timeoutMs: -5 },
          { command: "true", workdir: "a\0" },
        ]) {
          const refusal = expect(sandbox.exec(wrong), JSON.stringify(wrong).slice(0, 60)).rejects;
          await refusal.toMatchObject({ code: "INVALID_ARGUMENT" });
        }
      });

      promise("runs many commands side by side", async () => {
        const sandbox = await shared();
        const results = await Promise.all(Array.from({ length: 8 }, () => sandbox.exec({ command: "exit 3" })));
        expect(results.map(({ exitCode }) => exitCode)).toEqual(Array(8).fill(3));
      });

      reality("gives variables of the sandbox and of the command, and nothing of the server's", async () => {
        process.env.AGENTFENSE_CONTRACT_SECRET = "leak";
        onTestFinished(() => void delete process.env.AGENTFENSE_CONTRACT_SECRET);
        const sandbox = await running({ env: { A: "1", B: "2" } });
        const { stdout } = await sandbox.exec({ command: "env", env: { B: "3", C: "x y\n'z" } });
        const shown = text(stdout);
        expect(shown).toContain("A=1\n");
        expect(shown).toContain("B=3\n");
        expect(shown).toContain("C=x y\n'z\n");
        expect(shown).not.toContain("leak");
      });

      reality("starts in the workspace, in a directory relative to it, or an absolute one", async () => {
        const sandbox = await shared();
        const where = async (workdir?: string): Promise<string> =>
          text(
            (await sandbox.exec({ command: "pwd", ...(workdir === undefined ? {} : { workdir }) })).stdout.subarray(
              0,
              -1,
            ),
          );
        expect([await where(), await where("src"), await where("/tmp")]).toEqual([
          "/workspace",
          "/workspace/src",
          "/tmp",
        ]);
        for (const workdir of ["missing", "README.md", "/no/such", ".env"]) {
          await expect(sandbox.exec({ command: "pwd", workdir }), workdir).rejects.toMatchObject({
            code: "WORKDIR_UNUSABLE",
          });
        }
      });

      reality("runs a list of words without a shell looking at them", async () => {
        const sandbox = await shared();
        const { stdout } = await sandbox.exec({ command: ["printf", "%s|", "a b", "$HOME", "*"] });
        expect(text(stdout)).toBe("a b|$HOME|*|");
        expect(await sandbox.exec({ command: ["no-such-program"] })).toMatchObject({ exitCode: 127 });
      });

      reality("kills what hid behind setsid and a double fork", async () => {
        const sandbox = await running();
        const hide =
          "setsid sh -c 'trap \"\" TERM INT HUP; (while :; do date +%s%N >> output/alive; sleep 0.05; done) &' & ";
        using limit = heldTimeout();
        const command = sandbox.exec({ command: `${hide} sleep 600`, timeoutMs: limit.ms });
        await eventually(async () => (await sandbox.exec({ command: "test -s output/alive" })).exitCode === 0);
        limit.pass();
        expect(await command).toMatchObject({ timedOut: true });
        const before = text((await sandbox.exec({ command: "cat output/alive" })).stdout);
        await aWhile(300);
        expect(text((await sandbox.exec({ command: "cat output/alive" })).stdout)).toBe(before);
      });

      reality("no signal is ignored or blocked to begin with", async () => {
        const sandbox = await shared();
        const look = "grep -E '^Sig(Blk|Ign):' /proc/self/status";
        const none = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n";
        expect(text((await sandbox.exec({ command: look })).stdout)).toBe(none);
        await using session = await sandbox.session();
        expect(text((await session.exec({ command: look })).stdout)).toBe(none);
      });

      reality("does not wait for a command's background process", async () => {
        const sandbox = await running();
        const result = await withoutHanging(() => sandbox.exec({ command: "sleep 600 & echo done" }));
        expect([text(result.stdout), result.exitCode, result.timedOut]).toEqual(["done\n", 0, false]);
      });

      reality("a command that never reads its input neither hangs nor fails", async () => {
        const sandbox = await shared();
        const result = await sandbox.exec({ command: "true", stdin: Buffer.alloc(10_000_000) });
        expect(result.exitCode).toBe(0);
      });
    });

    realities("from one command to the next", () => {
      const sh = async (sandbox: BoxedWorkspace, command: string): Promise<string> =>
        text((await withoutHanging(() => sandbox.exec({ command }))).stdout);

      reality("files in /tmp stay, and sessions and terminals see them too, and the other way round", async () => {
        const sandbox = await running();
        await sh(sandbox, "echo from a command > /tmp/kept");
        await using session = await sandbox.session();
        const { stdout } = await session.exec({ command: "cat /tmp/kept; echo from a session > /tmp/kept" });
        expect(text(stdout)).toBe("from a command\n");
        await using terminal = await sandbox.terminal({
          argv: ["/bin/sh", "-c", "cat /tmp/kept; echo from a terminal > /tmp/kept"],
          size: { columns: 80, rows: 25 },
        });
        let shown = "";
        for await (const chunk of terminal.output) shown += String(chunk);
        expect(shown).toBe("from a session\r\n");
        expect(await sh(sandbox, "cat /tmp/kept")).toBe("from a terminal\n");
      });

      reality("a background process lives on, and the next command can see and end it", async () => {
        const sandbox = await running();
        await sh(sandbox, "sleep 987 & echo $! > /tmp/pid");
        // A fork becomes its program when it comes to it.
        const look = "tr '\\0' ' ' < /proc/$(cat /tmp/pid)/cmdline";
        await eventually(async () => expect(await sh(sandbox, look)).toBe("sleep 987 "));
        await sh(sandbox, "kill $(cat /tmp/pid)");
        await eventually(async () =>
          expect(await sh(sandbox, "[ -d /proc/$(cat /tmp/pid) ] || echo gone")).toBe("gone\n"),
        );
      });

      reality("a server that one command starts answers the next, and a session", async () => {
        const sandbox = await running();
        await sh(sandbox, "cd ~ && echo hello > index.html && python3 -m http.server 4711 > /tmp/log 2>&1 &");
        const ask =
          "python3 -c 'import urllib.request; print(urllib.request.urlopen(\"http://127.0.0.1:4711\").read().decode())'";
        await eventually(async () => expect(await sh(sandbox, ask)).toBe("hello\n\n"));
        await using session = await sandbox.session();
        expect(text((await session.exec({ command: ask })).stdout)).toBe("hello\n\n");
        const outside = await sandbox.connect(4711);
        outside.end("GET / HTTP/1.0\r\n\r\n");
        expect(text(Buffer.concat(await outside.toArray()))).toMatch(/200 OK[\s\S]*\r\n\r\nhello\n$/);
        const other = await running();
        expect((await other.exec({ command: ask })).exitCode).not.toBe(0);
      });

      reality("a time limit ends the daemons of its own command, and not those of the one before", async () => {
        const sandbox = await running();
        await sh(sandbox, "setsid sleep 971 & (setsid sleep 972 &)");
        const daemons = "(setsid sleep 973 &); env -i setsid sleep 974 & echo started; sleep 60";
        const late = await sandbox.exec({ command: daemons, timeoutMs: 2_000 });
        expect(late.timedOut).toBe(true);
        expect(await sh(sandbox, "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -E '^97[1-4]$' | sort")).toBe(
          "971\n972\n",
        );
      });
    });

    realities("home", () => {
      describeHome({ reality, running, make, again, directory: () => home, project: () => project });
    });

    describe("execStream", () => {
      promise("answers input that comes in answer to its output", async () => {
        const sandbox = await shared();
        const answers = ["one", "two", "three"];
        const heard = answers.map(() => Promise.withResolvers<void>());
        async function* stdin(): AsyncGenerator<Uint8Array> {
          for (const [index, answer] of answers.entries()) {
            yield Buffer.from(`${answer}\n`);
            await heard[index]!.promise;
          }
        }
        let shown = "";
        let last: ExecEvent | undefined;
        for await (const event of sandbox.execStream({ command: "cat", stdin: stdin() })) {
          if (event.kind === "stdout") shown += text(event.data);
          for (const [index, { resolve }] of heard.entries()) if (shown.includes(answers[index]!)) resolve();
          last = event;
        }
        expect(shown).toBe("one\ntwo\nthree\n");
        expect(last).toMatchObject({ kind: "exit", outcome: { exitCode: 0 } });
      });

      reality("ends with its command, whatever input there would still be", async () => {
        const sandbox = await shared();
        async function* endless(): AsyncGenerator<Uint8Array> {
          while (true) yield Buffer.alloc(100_000, "x\n");
        }
        async function* silent(): AsyncGenerator<Uint8Array> {
          yield await new Promise<never>(() => {});
        }
        for (const stdin of [endless(), silent()]) {
          const events = await Array.fromAsync(sandbox.execStream({ command: "echo begun; sleep 0.2; exit 3", stdin }));
          expect(events.at(-1)).toMatchObject({ kind: "exit", outcome: { exitCode: 3 } });
        }
      });

      promise("passes the output on and ends with the exit", async () => {
        const sandbox = await shared();
        const events: ExecEvent[] = [];
        for await (const event of sandbox.execStream({ command: "echo out; echo err >&2" })) events.push(event);
        const joined = (kind: "stdout" | "stderr"): string =>
          events.map((event) => (event.kind === kind ? text(event.data) : "")).join("");
        expect([joined("stdout"), joined("stderr")]).toEqual(["out\n", "err\n"]);
        expect(events.at(-1)).toMatchObject({ kind: "exit", outcome: { exitCode: 0, timedOut: false } });
      });

      promise("loses nothing of a long output, however slow its reader", async () => {
        const sandbox = await shared();
        let total = 0;
        for await (const event of sandbox.execStream({ command: "head -c 12345678 /dev/zero" })) {
          if (event.kind === "stdout") total += event.data.length;
          if (total % 7 === 0) await aWhile(1);
        }
        expect(total).toBe(12_345_678);
      });

      promise("leaving the loop kills the command", async () => {
        const sandbox = await shared();
        const seen: string[] = [];
        for await (const event of sandbox.execStream({ command: "echo early; sleep 60" })) {
          seen.push(event.kind);
          break;
        }
        expect(seen).toEqual(["stdout"]);
      });

      reality("a reader that stops reading stops the command, and memory does not grow", async () => {
        const sandbox = await running();
        const stream = sandbox.execStream({ command: "yes | head -c 2000000000; echo", timeoutMs: 20_000 });
        const iterator = stream[Symbol.asyncIterator]();
        await iterator.next();
        const before = heldBytes();
        await aWhile(1_500);
        expect(heldBytes() - before).toBeLessThan(64 * 1024 * 1024);
        await iterator.return?.();
      });
    });

    describe("session", () => {
      promise("keeps its state from command to command", async () => {
        const sandbox = await shared();
        await using session = await sandbox.session();
        await session.exec({ command: "X=5" });
        expect(text((await session.exec({ command: "echo $X" })).stdout)).toBe("5\n");
        expect(await session.exec({ command: "false" })).toMatchObject({ exitCode: 1, sessionClosed: false });
      });

      promise("keeps stdout and stderr apart", async () => {
        const sandbox = await shared();
        await using session = await sandbox.session();
        const { stdout, stderr } = await session.exec({ command: "echo out; echo err >&2" });
        expect([text(stdout), text(stderr)]).toEqual(["out\n", "err\n"]);
      });

      promise("a timeout interrupts the command and keeps the shell", async () => {
        const sandbox = await shared();
        await using session = await sandbox.session();
        await session.exec({ command: "X=5" });
        const late = await session.exec({ command: "sleep 60", timeoutMs: 400 });
        expect(late).toMatchObject({ timedOut: true, sessionClosed: false });
        expect(text((await session.exec({ command: "echo $X" })).stdout)).toBe("5\n");
      });

      promise("is closed by close, by the sandbox's end, and says so", async () => {
        const sandbox = await running();
        const first = await sandbox.session();
        await first.close();
        await first.close();
        await expect(first.exec({ command: "true" })).rejects.toMatchObject({ code: "SESSION_CLOSED" });
        const second = await sandbox.session();
        await sandbox.destroy();
        await expect(second.exec({ command: "true" })).rejects.toMatchObject({ code: "SESSION_CLOSED" });
        expect(second.closed).toMatchObject({ reason: "stopped" });
      });

      promise("takes the shells it knows and no other", async () => {
        const sandbox = await shared();
        for (const shell of ["/bin/cat", "-c", "../bash", "bash -x"]) {
          await expect(sandbox.session({ shell }), shell).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
        }
        await using session = await sandbox.session({ shell: "/bin/sh" });
        expect((await session.exec({ command: "true" })).exitCode).toBe(0);
      });

      reality("reports the end of its shell as what it is", async () => {
        const sandbox = await shared();
        const session = await sandbox.session();
        expect(await session.exec({ command: "exit 7" })).toMatchObject({ exitCode: 7, sessionClosed: true });
        expect(session.closed).toMatchObject({ reason: "exited", exitCode: 7 });
        await expect(session.exec({ command: "true" })).rejects.toMatchObject({ code: "SESSION_CLOSED" });
      });

      reality("callers take turns, and outputs do not mix", async () => {
        const sandbox = await shared();
        await using session = await sandbox.session();
        const results = await Promise.all(
          Array.from({ length: 20 }, (_, i) => session.exec({ command: `echo ${i}; sleep 0.01; echo ${i} >&2` })),
        );
        expect(results.map(({ stdout, stderr }) => [text(stdout), text(stderr)])).toEqual(
          results.map((_, i) => [`${i}\n`, `${i}\n`]),
        );
      });

      reality("commands see no descriptor but the first three", async () => {
        const sandbox = await shared();
        await using session = await sandbox.session();
        const { stdout } = await session.exec({ command: "sh -c 'ls /proc/$$/fd'" });
        expect(text(stdout).split(/\s+/).filter(Boolean)).toEqual(["0", "1", "2"]);
      });

      reality("background jobs live on, and print into the next command", async () => {
        const sandbox = await shared();
        await using session = await sandbox.session();
        const waits = "until [ -e /tmp/second ]; do sleep 0.01; done";
        const first = await session.exec({ command: `(${waits}; echo later) & echo now` });
        expect(text(first.stdout)).toBe("now\n");
        const second = await session.exec({ command: "touch /tmp/second; wait" });
        expect(text(second.stdout)).toBe("later\n");
      });
    });

    if (acted) {
      const what = "terminal, workspace, watches, limits, processes";
      process.stdout.write(`skipped (${name}): ${what}: it runs nothing, and mounts nothing\n`);
    }
    describe.skipIf(acted)("terminal", () => {
      reality("has a size, takes input, and job control works", async () => {
        const sandbox = await running();
        await using terminal = await sandbox.terminal({ size: { columns: 91, rows: 37 } });
        let shown = "";
        terminal.output.on("data", (chunk: Buffer) => {
          shown += chunk.toString();
        });
        const until = (what: RegExp) => eventually(() => expect(shown).toMatch(what));
        terminal.input.write("stty size; echo ready-$((40+2))\n");
        await until(/37 91[\s\S]*ready-42/);
        await terminal.resize({ columns: 100, rows: 40 });
        terminal.input.write("stty size\n");
        await until(/40 100/);
        // Printed by the program itself, so that it is in the foreground when the interrupt comes.
        terminal.input.write("sh -c 'echo asleep-$((40+3)); exec sleep 60'\n");
        await until(/asleep-43/);
        terminal.input.write("\x03");
        terminal.input.write("echo back-$((1+1))\n");
        await until(/back-2/);
        terminal.input.write("exit 5\n");
        expect(await terminal.exit).toMatchObject({ exitCode: 5 });
      });

      reality("is killed with everything in it", async () => {
        const sandbox = await running();
        const terminal = await sandbox.terminal({ argv: ["/bin/sleep", "60"], size: { columns: 80, rows: 24 } });
        terminal.output.resume();
        terminal.kill();
        expect(await terminal.exit).toMatchObject({ exitCode: 137 });
      });
    });

    describe.skipIf(acted)("workspace", () => {
      reality("shows what the rules allow and hides the rest", async () => {
        const sandbox = await running();
        const { stdout, stderr } = await sandbox.exec({
          command: "ls -A; cat README.md; cat .env; echo x > README.md",
        });
        expect(text(stdout)).toBe("README.md\noutput\nsrc\nread me\n");
        expect(text(stderr)).toMatch(/\.env: No such file/);
        expect(text(stderr)).toMatch(/README\.md: Permission denied/);
      });

      reality("writes go to the delta, survive the sandbox's end, and never reach the codebase", async () => {
        const delta = await mkdtemp(join(home, "delta-"));
        const sandbox = await running({ workspaces: [{ lowers: [project], delta, rules: RULES }] });
        await sandbox.exec({ command: "echo result > output/result.txt" });
        const next = await again(sandbox);
        expect(text((await next.exec({ command: "cat output/result.txt" })).stdout)).toBe("result\n");
        expect(await readFile(join(delta, "tree/output/result.txt"), "utf8")).toBe("result\n");
        await expect(readFile(join(project, "output/result.txt"))).rejects.toMatchObject({ code: "ENOENT" });
      });

      reality("new rules hold at once", async () => {
        const sandbox = await running();
        const look = async (): Promise<number> => (await sandbox.exec({ command: "cat README.md" })).exitCode;
        expect(await look()).toBe(0);
        await sandbox.updateRules([{ pattern: "/src/**", permission: "read" }]);
        expect(await look()).toBe(1);
      });

      reality("several workspaces stand side by side", async () => {
        const sandbox = await running({
          workspaces: [
            { lowers: [project], rules: RULES },
            { lowers: [join(project, "src")], rules: RULES, target: "/reference" },
          ],
        });
        const { stdout } = await sandbox.exec({ command: "ls /reference; cat /workspace/README.md" });
        expect(text(stdout)).toBe("main.c\nread me\n");
      });
    });

    describe.skipIf(acted)("watches", () => {
      promise("tell what processes inside do, as they do it, and end with the sandbox", async () => {
        const sandbox = await running();
        const told: string[] = [];
        const watches = [await sandbox.files.watch("/", { recursive: true }), await sandbox.files.watch("output")];
        const over = watches.map(async (changes) => {
          for await (const { kind, path } of changes) told.push(`${kind} ${path}`);
        });
        await sandbox.exec({ command: "mkdir -p output/d/e; echo > output/f; echo more >> output/f; echo > .env" });
        await eventually(() =>
          expect(told).toEqual(
            expect.arrayContaining([
              ...["rename output/d", "rename output/d/e", "rename output/f", "change output/f"],
              ...["rename d", "rename f", "change f"],
            ]),
          ),
        );
        await sandbox.exec({ command: "echo > output/d/e/g" });
        await eventually(() => expect(told).toContain("rename output/d/e/g"));
        await sandbox.destroy();
        await Promise.all(over);
        expect(told.join()).not.toContain(".env");
      });
    });

    describe.skipIf(acted)("limits", () => {
      reality("the memory limit kills, is recognised, and spares the sandbox", async () => {
        const events: SandboxEvent[] = [];
        const sandbox = await running({
          limits: { memoryBytes: 64 * 1024 * 1024 },
          onEvent: (event) => events.push(event),
        });
        const hog = "python3 -c 'x = bytearray(300 << 20); print(len(x))'";
        const result = await sandbox.exec({ command: hog });
        expect(result.exitCode).not.toBe(0);
        expect(text(result.stdout)).toBe("");
        if (isolation.degradations.length === 0) {
          expect(result.outOfMemory).toBe(true);
          expect(events).toContainEqual(expect.objectContaining({ kind: "resource_limit_exceeded", limit: "memory" }));
        }
        expect((await sandbox.exec({ command: "echo alive" })).exitCode).toBe(0);
        await using session = await sandbox.session();
        expect((await session.exec({ command: hog })).exitCode).not.toBe(0);
        expect(await session.exec({ command: "echo alive" })).toMatchObject({ exitCode: 0, outOfMemory: false });
      });

      reality("the limit on processes holds and the sandbox recovers", async () => {
        const sandbox = await running({ limits: { pids: 40 } });
        const bomb = "for i in $(seq 200); do sleep 20 & done 2>/dev/null; true";
        await sandbox.exec({ command: bomb, timeoutMs: 4_000 });
        expect((await sandbox.exec({ command: "echo alive" })).exitCode).toBe(0);
      });

      reality("the disk quota holds", async () => {
        const sandbox = await running({ limits: { diskBytes: 1_000_000 } });
        const result = await sandbox.exec({ command: "head -c 5000000 /dev/zero > output/big" });
        expect(result.exitCode).not.toBe(0);
        expect(text(result.stderr)).toMatch(/quota|No space/i);
      });
    });

    realities("the network", () => describePorts({ running, again, reality }));
    if (acted) {
      promise("has no ports, and says so", async () => {
        const sandbox = await running();
        await expect(sandbox.connect(80)).rejects.toMatchObject({ code: "RUNTIME_UNAVAILABLE" });
      });
    }
    describePauses({ promise, reality, running, again, home: () => home });
    describe.skipIf(acted)("processes", () => describeProcesses({ running, reality, many: options.many ?? 500 }));
    if (acted) {
      promise("runs no code, and says so", async () => {
        const events = (await running()).contexts.run({ code: "1" });
        await expect(Array.fromAsync(events)).rejects.toMatchObject({ code: "RUNTIME_UNAVAILABLE" });
      });
    }
    describe.skipIf(acted)("code", () => describeCode({ running, reality }));

    test("no skip names a promise that is not there", () => {
      expect(Object.keys(skip).filter((title) => !titles.has(title))).toEqual([]);
    });

    test("errors are SandboxErrors", async () => {
      const sandbox = await make();
      await expect(sandbox.exec({ command: "true" })).rejects.toBeInstanceOf(IsolationError);
    });
  });
}
