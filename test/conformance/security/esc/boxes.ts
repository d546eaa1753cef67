import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ExecRequest, IsolationOptions, SandboxSpec } from "@agentfense/server/isolation";
import { afterAll, afterEach, beforeAll, describe, expect } from "vitest";
import { type DockerEngine, reasonAgainstDocker } from "../../../support/docker-engine.ts";
import { dockerOfRun } from "../../../support/docker-of-run.ts";
import { type As, type Identity, identityOf, reasonAgainst } from "../../../support/identity.ts";
import { type Output, SandboxDaemon } from "../../../support/sandbox-link.ts";
import { CANARY } from "../codebase.ts";
import { HostSide, RULES } from "./host.ts";

/** A way to run a sandbox, and who runs it. */
interface BoxKind {
  readonly name: string;
  readonly runtime: "bwrap" | "docker";
  readonly server: As;
}

const KINDS: readonly BoxKind[] = [
  { name: "bwrap, server of root", runtime: "bwrap", server: "root" },
  { name: "bwrap, server of an ordinary user", runtime: "bwrap", server: "user" },
  { name: "docker", runtime: "docker", server: "root" },
];

/** In the environment of the server; must be in no process of a sandbox. */
export const SERVER_SECRET = "CANARY-SERVER-58c1e0";
export const HOSTNAME = "escape-box";
const DISK_BYTES = 64 * 1024 * 1024;

/** Runs a suite in every kind of box, or in those of one runtime; what this machine cannot provide says why. */
export function describeBoxes(
  title: string,
  suite: (box: Box) => void,
  options: { runtime?: BoxKind["runtime"]; prepare?: (host: HostSide) => Disposable } = {},
): void {
  for (const kind of KINDS) {
    if (options.runtime !== undefined && options.runtime !== kind.runtime) continue;
    const reason = reasonAgainstKind(kind);
    if (reason !== undefined) process.stdout.write(`skipped: ${title}, ${kind.name}: ${reason}\n`);
    describe.skipIf(reason !== undefined)(`${title}, ${kind.name}`, () => {
      const box = new Box(kind);
      beforeAll(() => box.open(options.prepare));
      afterEach(() => box.afterTest());
      afterAll(() => box.close());
      suite(box);
    });
  }
}

function reasonAgainstKind(kind: BoxKind): string | undefined {
  const reason = reasonAgainst(kind.server);
  if (reason !== undefined) return reason;
  if (kind.runtime === "docker") return reasonAgainstDocker();
  return existsSync("/usr/bin/bwrap") ? undefined : "bubblewrap is not installed";
}

/** One server with one sandbox for the tests of a suite, and more where a test asks for them. */
export class Box {
  readonly kind: BoxKind;
  #host: HostSide | undefined;
  #daemon: SandboxDaemon | undefined;
  #engine: DockerEngine | undefined;
  #sandbox: BoxedSandbox | undefined;
  #prepared: Disposable | undefined;
  #ofThisTest = new AsyncDisposableStack();

  constructor(kind: BoxKind) {
    this.kind = kind;
  }

  get host(): HostSide {
    return there(this.#host);
  }

  get engine(): DockerEngine {
    return there(this.#engine);
  }

  /** The network namespace that is the host's to this engine's containers. */
  get engineNetwork(): string {
    const pid = readFileSync(join(dirname(this.engine.socketPath), "pid"), "utf8").trim();
    return `/proc/${pid}/ns/net`;
  }

  get serverPid(): number {
    return there(this.#daemon).pid;
  }

  /** The sandbox all tests of a suite share. */
  get sandbox(): BoxedSandbox {
    return there(this.#sandbox);
  }

  /** Carries out one row of the table in the shared sandbox; see inside.py. */
  attempt<Facts>(row: string, knowledge: object = {}): Promise<Facts> {
    return this.sandbox.attempt(row, knowledge);
  }

  /** A further sandbox, which ends with the test. */
  async another(spec: Partial<SandboxSpec> = {}): Promise<BoxedSandbox> {
    const sandbox = await this.#make(spec);
    this.#ofThisTest.defer(() => sandbox.destroy());
    return sandbox;
  }

  async open(prepare: ((host: HostSide) => Disposable) | undefined): Promise<void> {
    const { server, runtime } = this.kind;
    this.#host = new HostSide(identityOf(server));
    this.#prepared = prepare?.(this.#host);
    if (runtime === "docker") this.#engine = await dockerOfRun();
    const options: IsolationOptions = {
      stateDirectory: this.#host.state,
      runtimes: [runtime],
      ...(this.#engine === undefined
        ? {}
        : { docker: { socketPath: this.#engine.socketPath, image: this.#engine.image } }),
    };
    this.#daemon = await SandboxDaemon.start(server, options, { AGENTFENSE_TEST_SECRET: SERVER_SECRET });
    this.#sandbox = await this.#make({});
  }

  /** Whatever was tried, the host's directory is what it was. */
  async afterTest(): Promise<void> {
    const ending = this.#ofThisTest;
    this.#ofThisTest = new AsyncDisposableStack();
    await ending.disposeAsync();
    const { before, now } = this.host.outsideStates();
    expect(now, "nothing outside of the sandbox may change").toEqual(before);
  }

  async close(): Promise<void> {
    await using closing = new AsyncDisposableStack();
    // Last in, first out: the server before the directory it works in.
    closing.use(this.#host);
    closing.use(this.#prepared);
    closing.use(this.#daemon);
  }

  async #make(spec: Partial<SandboxSpec>): Promise<BoxedSandbox> {
    const daemon = there(this.#daemon);
    const delta = this.host.newDelta();
    const id = await daemon.ask({
      method: "create",
      spec: {
        runtime: this.kind.runtime,
        hostname: HOSTNAME,
        limits: { diskBytes: DISK_BYTES, diskFiles: 10_000, pids: 200 },
        workspaces: [{ lowers: [this.host.codebase], delta, rules: RULES }],
        ...spec,
      },
    });
    return new BoxedSandbox(daemon, id, spec.workspaces?.[0]?.delta ?? delta);
  }
}

/** A sandbox and its attacker. */
export class BoxedSandbox {
  readonly id: string;
  readonly delta: string;
  readonly #daemon: SandboxDaemon;

  constructor(daemon: SandboxDaemon, id: string, delta: string) {
    this.#daemon = daemon;
    this.id = id;
    this.delta = delta;
  }

  async attempt<Facts>(row: string, knowledge: object = {}): Promise<Facts> {
    const { exitCode, stdout, stderr } = await this.exec({ command: attack(row, knowledge), timeoutMs: 30_000 });
    expect(exitCode, `${row}: ${stderr}`).toBe(0);
    return factsIn(stdout) as Facts;
  }

  async exec(request: ExecRequest): Promise<Output> {
    const output = await this.#daemon.ask({ method: "exec", id: this.id, request });
    expectNoCanary(output.stdout + output.stderr);
    return output;
  }

  async inSession(command: string): Promise<Output> {
    return await this.#daemon.ask({ method: "session", id: this.id, command });
  }

  async onTerminal(row: string, knowledge: object = {}): Promise<unknown> {
    const [program, ...rest] = attack(row, knowledge);
    const text = await this.#daemon.ask({ method: "terminal", id: this.id, argv: [`/usr/bin/${program}`, ...rest] });
    return factsIn(text);
  }

  /** Starts an attack that stays until `end`, and gives its first facts. */
  async begin<Facts>(row: string, knowledge: object = {}): Promise<Staying<Facts>> {
    const marker = `marker-${randomBytes(8).toString("hex")}`;
    const command = [...attack(row, knowledge), marker];
    const { task, firstLine } = await this.#daemon.ask({ method: "begin", id: this.id, command });
    return {
      facts: JSON.parse(firstLine) as Facts,
      identity: identityOnHost(marker),
      end: async () => factsIn(await this.#daemon.ask({ method: "end", task })) as Facts,
    };
  }

  async stop(): Promise<void> {
    await this.#daemon.ask({ method: "destroy", id: this.id });
  }

  async destroy(): Promise<void> {
    await this.#daemon.ask({ method: "destroy", id: this.id });
  }
}

export interface Staying<Facts> {
  readonly facts: Facts;
  /** Who the attacker is to the host's kernel. */
  readonly identity: Identity;
  /** Lets the attack go on; gives what it says at the end. */
  end(): Promise<Facts>;
}

/** The command that carries out a row inside. */
export function attack(row: string, knowledge: object = {}): [string, ...string[]] {
  return ["python3", "-X", "pycache_prefix=/tmp/compiled", "/workspace/inside.py", row, JSON.stringify(knowledge)];
}

function factsIn(text: string): unknown {
  expectNoCanary(text);
  return JSON.parse(text.trim().split("\n").at(-1) ?? "");
}

function expectNoCanary(text: string): void {
  for (const canary of [CANARY.outside, CANARY.hidden, SERVER_SECRET]) expect(text).not.toContain(canary);
}

/** The user and group of the process that has the marker among its arguments, as the host sees it. */
function identityOnHost(marker: string): Identity {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const [program] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      if (!program?.startsWith("python3") || !readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(marker)) continue;
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      return {
        uid: Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]),
        gid: Number(/^Gid:\s+(\d+)/m.exec(status)?.[1]),
      };
    } catch {
      // It ended while we looked.
    }
  }
  throw new Error(`no process of the host has ${marker} among its arguments`);
}

function there<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the box is opened before the first test");
  return value;
}
