import { createHash } from "node:crypto";
import type {
  BoxedWorkspace,
  ProcessEvent,
  SandboxEvent,
  SandboxProcess,
  SandboxSpec,
} from "@agentfense/server/isolation";
import { expect } from "vitest";
import { eventually } from "../../support/eventually.ts";

export interface ProcessesTarget {
  running(extra?: Partial<SandboxSpec>): Promise<BoxedWorkspace>;
  reality(title: string, body: () => Promise<void>): void;
  /** How many processes at once are tried; where each takes the engine much, fewer than anywhere else. */
  readonly many: number;
}

/** Holds a lock in a second thread while its first is gone: its process looks like a zombie then. */
const HEADLESS = `
import ctypes, fcntl, platform, sys, threading, time
def live():
    lock = open("/tmp/lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    while open("/proc/self/stat").read().rpartition(")")[2].split()[0] != "Z": time.sleep(0.001)
    open(sys.argv[1], "w")
    time.sleep(1000)
threading.Thread(target=live).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
`;

/** What a process that outlives its call does in every box. */
export function describeProcesses({ running, reality, many }: ProcessesTarget): void {
  reality("a process lives without anybody, is listed, and its output and end can be had afterwards", async () => {
    const sandbox = await running();
    const { processes } = sandbox;
    const process = await processes.spawn({ command: "echo out; echo err >&2; read x; exit 3", stdin: true, tag: "a" });
    expect(process).toMatchObject({ number: 1, kind: "started", tag: "a", outcome: undefined });
    expect(processes.all()).toEqual([process]);
    await process.write(Buffer.from("go on\n"));
    expect(await process.ended).toMatchObject({ exitCode: 3, timedOut: false });
    const again = processes.find(1);
    expect(again.outcome).toMatchObject({ exitCode: 3 });
    expect(await outputOf(again)).toMatchObject({ stdout: "out\n", stderr: "err\n", lost: 0, exitCode: 3 });
    await expect(again.write(Buffer.from("x"))).rejects.toMatchObject({ code: "PROCESS_UNSUITABLE" });
    await expect(again.signal(15)).rejects.toMatchObject({ code: "PROCESS_UNSUITABLE" });
    expect(() => processes.find(2)).toThrow(expect.objectContaining({ code: "PROCESS_NOT_FOUND" }));
  });

  reality("several attach to a process, and one that leaves takes nothing from the others", async () => {
    const sandbox = await running();
    const process = await sandbox.processes.spawn({ command: "echo first; cat", stdin: true });
    const left = new AbortController();
    const leaving = outputOf(process, left.signal);
    const staying = outputOf(process);
    await process.write(Buffer.from("second\n"));
    left.abort();
    await expect(leaving).rejects.toMatchObject({ code: "CANCELLED" });
    await process.write(Buffer.from("third\n"));
    await process.closeInput();
    await process.closeInput();
    expect(await staying).toMatchObject({ stdout: "first\nsecond\nthird\n", exitCode: 0 });
  });

  reality("without an input a process reads an end of file, and takes none", async () => {
    const sandbox = await running();
    const process = await sandbox.processes.spawn({ command: "cat; sleep 60" });
    await expect(process.write(Buffer.from("x"))).rejects.toThrow("was started without an input");
    await expect(process.resize({ columns: 9, rows: 9 })).rejects.toThrow("has no terminal");
    await process.signal(9);
    expect(await process.ended).toMatchObject({ exitCode: 137, signal: "SIGKILL" });
  });

  reality("a tag names the newest process that lives, and then the newest that has ended", async () => {
    const { processes } = await running();
    const spawn = () => processes.spawn({ command: "cat", stdin: true, tag: "web" });
    const [first, second] = [await spawn(), await spawn()];
    expect(processes.find("web").number).toBe(second.number);
    await second.closeInput();
    await second.ended;
    expect(processes.find("web").number).toBe(first.number);
    await first.signal(9);
    await first.ended;
    await eventually(() => expect(processes.find("web").outcome).toBeDefined());
    expect(() => processes.find("db")).toThrow(expect.objectContaining({ code: "PROCESS_NOT_FOUND" }));
  });

  reality("a signal reaches the process and all that it started, and nothing of another", async () => {
    const sandbox = await running();
    const worker = (name: string): string =>
      `sh -c 'trap "echo ${name} >> /tmp/told; exit 0" USR1; echo ready; while :; do sleep 0.01; done'`;
    const command = `trap 'echo shell >> /tmp/told' USR1; ${worker("child")} & wait $!; wait $!; exit 4`;
    const process = await sandbox.processes.spawn({ command });
    const other = await sandbox.processes.spawn({ command: worker("other") });
    await Promise.all([shows(process, "ready"), shows(other, "ready")]);
    await process.signal(10);
    expect(await process.ended).toMatchObject({ exitCode: 4 });
    const { stdout } = await sandbox.exec({ command: "sort -u /tmp/told" });
    expect(stdout.toString()).toBe("child\nshell\n");
    expect(other.outcome).toBeUndefined();
  });

  reality(
    "a program whose first thread has ended is signalled, and killed with its command, as any other",
    async () => {
      const sandbox = await running();
      const isFree = `python3 -c 'import fcntl; fcntl.flock(open("/tmp/lock", "w"), fcntl.LOCK_EX | fcntl.LOCK_NB)'`;
      for (const end of ["signal", "kill"]) {
        const ready = `/tmp/ready-${end}`;
        const command = `python3 -c '${HEADLESS}' ${ready} & wait`;
        const caller = new AbortController();
        const process = end === "signal" ? await sandbox.processes.spawn({ command }) : undefined;
        const ended = process?.ended ?? sandbox.exec({ command }, { signal: caller.signal }).catch(() => {});
        await eventually(async () => expect((await sandbox.exec({ command: `test -e ${ready}` })).exitCode).toBe(0));
        expect((await sandbox.exec({ command: isFree })).exitCode, end).toBe(1);
        await process?.signal(9);
        caller.abort();
        await ended;
        expect((await sandbox.exec({ command: isFree })).exitCode, end).toBe(0);
      }
    },
  );

  reality("a process on a terminal of its own has its size, takes input and can be resized", async () => {
    const sandbox = await running();
    const process = await sandbox.processes.spawn({ command: ["sh"], terminal: { columns: 91, rows: 37 } });
    await process.write(Buffer.from("stty size; tty\n"));
    await shows(process, /37 91[\s\S]*\/dev\/pts/);
    await process.resize({ columns: 100, rows: 40 });
    await process.write(Buffer.from("stty size\n"));
    await shows(process, "40 100");
    await expect(process.closeInput()).rejects.toMatchObject({ code: "PROCESS_UNSUITABLE" });
    await process.write(Buffer.from("exit 5\n"));
    expect((await outputOf(process)).exitCode).toBe(5);
  });

  reality("with nobody attached a process is never held back; what was dropped is counted", async () => {
    const sandbox = await running();
    // Not at once: what an engine says of the start may be overtaken by all of a short output, which then is kept until it is there.
    const process = await sandbox.processes.spawn({ command: "read x; seq 1000000", stdin: true });
    await process.write(Buffer.from("\n"));
    expect(await process.ended).toMatchObject({ exitCode: 0 });
    const { stdout, lost } = await outputOf(process);
    expect(lost).toBeGreaterThan(0);
    expect(lost + stdout.length).toBe(6_888_896);
    expect(stdout.endsWith("\n999999\n1000000\n")).toBe(true);
    expect(stdout.length).toBeGreaterThan(900_000);
  });

  reality("a slow reader gets all of 100 MB, in order, and holds the process back until it reads", async () => {
    const sandbox = await running();
    const lines = 13_000_000;
    const process = await sandbox.processes.spawn({ command: `read x; seq ${lines}; touch /tmp/done`, stdin: true });
    const events = process.attach()[Symbol.asyncIterator]();
    expect((await events.next()).value).toEqual({ kind: "attached" });
    await process.write(Buffer.from("\n"));
    const first = (await events.next()).value as ProcessEvent;
    // Another command runs through meanwhile, and finds it waiting.
    expect((await sandbox.exec({ command: "test -e /tmp/done" })).exitCode).toBe(1);
    const hash = createHash("sha256");
    let lost = 0;
    for (let event: ProcessEvent | undefined = first; event !== undefined; event = (await events.next()).value) {
      if (event.kind !== "stdout") continue;
      hash.update(event.data);
      lost += event.lostBytes;
    }
    expect({ hash: hash.digest("hex"), lost }).toEqual({ hash: hashOfLines(lines), lost: 0 });
    expect((await sandbox.exec({ command: "test -e /tmp/done" })).exitCode).toBe(0);
  });

  reality("a time limit ends the daemons of its own process, and not those of another", async () => {
    const events: SandboxEvent[] = [];
    const sandbox = await running({ onEvent: (event) => events.push(event) });
    const daemon = (name: string): string =>
      `setsid sh -c 'echo $$ > /tmp/${name}; echo up; exec sleep 600' & sleep 600`;
    const spared = await sandbox.processes.spawn({ command: daemon("spared") });
    await shows(spared, "up");
    const ended = await sandbox.processes.spawn({ command: daemon("ended"), timeoutMs: 1_000 });
    expect(await ended.ended).toMatchObject({ timedOut: true, exitCode: 137 });
    const alive = "for n in spared ended; do kill -0 $(cat /tmp/$n) 2>/dev/null && echo $n; done; true";
    expect((await sandbox.exec({ command: alive })).stdout.toString()).toBe("spared\n");
    expect(spared.outcome).toBeUndefined();
    expect(events).toContainEqual(expect.objectContaining({ kind: "resource_limit_exceeded", limit: "time" }));
  });

  reality("commands, sessions and terminals that run are listed, too, and keep what is theirs", async () => {
    const sandbox = await running();
    const { processes } = sandbox;
    const command = sandbox.exec({ command: "sleep 60" });
    await using session = await sandbox.session();
    await using terminal = await sandbox.terminal({ argv: ["/bin/sleep", "60"], size: { columns: 80, rows: 24 } });
    terminal.output.resume();
    await eventually(() => processes.all().length === 3);
    expect(processes.all().map(({ kind }) => kind)).toEqual(expect.arrayContaining(["command", "session", "terminal"]));
    for (const process of processes.all()) {
      expect(() => process.attach()).toThrow(expect.objectContaining({ code: "PROCESS_UNSUITABLE" }));
      await expect(process.write(Buffer.from("x"))).rejects.toMatchObject({ code: "PROCESS_UNSUITABLE" });
    }
    await processes
      .all()
      .find(({ kind }) => kind === "command")
      ?.signal(15);
    expect(await command).toMatchObject({ exitCode: 143 });
    await session.close();
    terminal.kill();
    await eventually(() => processes.all().length === 0);
  });

  reality(`${many} processes live in a sandbox at once, and all end with it`, async () => {
    const sandbox = await running({ limits: { pids: 4 * many } });
    const { processes } = sandbox;
    const spawn = () => processes.spawn({ command: "echo $$; exec cat", stdin: true });
    const all: SandboxProcess[] = [];
    while (all.length < many) all.push(...(await Promise.all(Array.from({ length: 20 }, spawn))));
    expect(new Set(all.map(({ number }) => number)).size).toBe(many);
    expect(processes.all()).toHaveLength(many);
    await all[many - 1]?.write(Buffer.from("hello\n"));
    await shows(all[many - 1]!, "hello");
    await sandbox.destroy();
    expect(new Set((await Promise.all(all.map(({ ended }) => ended))).map(({ exitCode }) => exitCode))).toEqual(
      new Set([137]),
    );
  });
}

/** Of what `seq` prints. */
function hashOfLines(lines: number): string {
  const hash = createHash("sha256");
  for (let from = 1; from <= lines; from += 10_000) {
    const numbers = Array.from({ length: Math.min(10_000, lines - from + 1) }, (_, index) => from + index);
    hash.update(`${numbers.join("\n")}\n`);
  }
  return hash.digest("hex");
}

/** All of a process's output, to its end. */
async function outputOf(process: SandboxProcess, signal?: AbortSignal) {
  const shown = { stdout: "", stderr: "", terminal: "" };
  let lost = 0;
  let exitCode = -1;
  for await (const event of process.attach({ signal })) {
    if (event.kind === "exit") exitCode = event.outcome.exitCode;
    else if (event.kind !== "attached") {
      shown[event.kind] += event.data.toString();
      lost += event.lostBytes;
    }
  }
  return { ...shown, lost, exitCode };
}

/** Resolves when the process has printed this. */
async function shows(process: SandboxProcess, what: string | RegExp): Promise<void> {
  let shown = "";
  for await (const event of process.attach()) {
    if ("data" in event) shown += event.data.toString();
    if (typeof what === "string" ? shown.includes(what) : what.test(shown)) return;
  }
  throw new Error(`it ended and had printed ${JSON.stringify(shown)}`);
}
