import { PassThrough } from "node:stream";
import type {
  Backend,
  Box,
  BoxCommand,
  BoxProcess,
  BoxSpec,
  ResourceUsage,
  ShellCommand,
  ShellProcess,
  StartOptions,
  TerminalCommand,
  TerminalProcess,
} from "../backend/backend.ts";
import { IsolationError } from "../backend/isolation-error.ts";
import { type MockAnswer, MockProcess, MockShell } from "./process.ts";

export interface MockOptions {
  /** What a command does; without an answer it prints nothing and ends with 0. */
  readonly answer?: (command: BoxCommand, spec: BoxSpec) => MockAnswer | undefined;
  /** Every call, in order, is added here. */
  readonly calls?: MockCall[];
}

type Lifecycle = "create" | "start" | "pause" | "resume" | "destroy";

export interface MockCall {
  readonly call: Lifecycle | "run" | "shell" | "session-command" | "terminal" | "kill";
  readonly sandbox: string;
  /** The argv of a command; the text of a session's command. */
  readonly command?: readonly string[];
}

/** Runs nothing: records what it is asked and answers from a script. For tests of what stands above the backends. */
export class MockBackend implements Backend {
  readonly name = "mock";
  readonly degradations = [];
  readonly #options: MockOptions;
  readonly #boxes = new Set<MockBox>();

  constructor(options: MockOptions) {
    this.#options = options;
  }

  async createBox(spec: BoxSpec): Promise<Box> {
    const box: MockBox = new MockBox(spec, this.#options, () => this.#boxes.delete(box));
    this.#boxes.add(box);
    return box;
  }

  async removeOrphans(): Promise<void> {}

  async [Symbol.asyncDispose](): Promise<void> {
    for (const box of this.#boxes) await box.destroy();
  }
}

/** A box without processes. */
export class MockBox implements Box {
  readonly owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  readonly #spec: BoxSpec;
  readonly #options: MockOptions;
  readonly #onDestroyed: () => void;
  readonly #running = new Set<{ kill(): void; readonly exit: Promise<unknown> }>();
  #started = false;
  isPaused = false;

  constructor(spec: BoxSpec, options: MockOptions, onDestroyed: () => void) {
    this.#spec = spec;
    this.#options = options;
    this.#onDestroyed = onDestroyed;
    this.#record("create");
  }

  async start(options: StartOptions = {}): Promise<void> {
    await options.mounted;
    this.#record("start");
    this.#started = true;
  }

  async run(command: BoxCommand): Promise<BoxProcess> {
    this.#requireStarted();
    this.#record("run", command.argv);
    return this.#track(this.#act(command));
  }

  async openShell(command: ShellCommand): Promise<ShellProcess> {
    this.#requireStarted();
    this.#record("shell", command.argv);
    const answer = (text: string): MockAnswer => {
      this.#record("session-command", [text]);
      return this.#answer({ ...command, argv: [command.argv[0], "-c", text], stdin: false });
    };
    return this.#track(new MockShell(answer));
  }

  async openTerminal(command: TerminalCommand): Promise<TerminalProcess> {
    this.#requireStarted();
    this.#record("terminal", command.argv);
    const acted = this.#act({ ...command, stdin: true });
    const output = new PassThrough();
    acted.stdout.pipe(output);
    const terminal: TerminalProcess = {
      input: acted.stdin!,
      output,
      exit: acted.exit,
      resize: async () => {},
      signal: () => acted.signal(),
      kill: () => acted.kill(),
    };
    return this.#track(terminal);
  }

  async connect(): Promise<never> {
    this.#requireStarted();
    throw new IsolationError("RUNTIME_UNAVAILABLE", "the mock runs nothing that could listen at a port");
  }

  async shells(): Promise<readonly string[]> {
    return ["/bin/bash", "/bin/sh"];
  }

  async usage(): Promise<ResourceUsage> {
    return {};
  }

  async pause(): Promise<void> {
    this.#requireStarted();
    this.isPaused = true;
    this.#record("pause");
  }

  async resume(): Promise<void> {
    this.#requireStarted();
    this.isPaused = false;
    this.#record("resume");
  }

  async destroy(): Promise<void> {
    this.#started = false;
    const running = [...this.#running];
    for (const acted of running) acted.kill();
    await Promise.allSettled(running.map((acted) => acted.exit));
    this.#record("destroy");
    this.#onDestroyed();
  }

  #record(call: MockCall["call"], command?: readonly string[]): void {
    this.#options.calls?.push({ call, sandbox: this.#spec.id, ...(command === undefined ? {} : { command }) });
  }

  #answer(command: BoxCommand): MockAnswer {
    return this.#options.answer?.(command, this.#spec) ?? {};
  }

  #act(command: BoxCommand): MockProcess {
    const onKill = (): void => this.#record("kill", command.argv);
    return new MockProcess(this.#answer(command), { stdin: command.stdin, onKill });
  }

  #track<T extends { kill(): void; readonly exit: Promise<unknown> }>(acted: T): T {
    this.#running.add(acted);
    const forget = (): boolean => this.#running.delete(acted);
    acted.exit.then(forget, forget);
    return acted;
  }

  #requireStarted(): void {
    if (!this.#started) throw new IsolationError("SANDBOX_NOT_RUNNING", "the box is not started");
  }
}
