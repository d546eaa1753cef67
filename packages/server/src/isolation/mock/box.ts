import { PassThrough } from "node:stream";
import type {
  Box,
  BoxCommand,
  BoxProcess,
  BoxSpec,
  ShellCommand,
  ShellProcess,
  TerminalCommand,
  TerminalProcess,
} from "../backend/backend.ts";
import { SandboxError } from "../backend/errors.ts";
import type { ResourceUsage } from "../backend/limits.ts";
import type { MockCall } from "./backend.ts";
import type { MockAnswer } from "./plan.ts";
import { MockProcess } from "./process.ts";
import { MockShell } from "./shell.ts";

export interface MockScript {
  answer(command: BoxCommand): MockAnswer | undefined;
  record(call: MockCall["call"], command?: readonly string[]): void;
  onDestroyed(): void;
}

/** A box without processes. */
export class MockBox implements Box {
  readonly owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  readonly #script: MockScript;
  readonly #running = new Set<{ kill(): void; readonly exit: Promise<unknown> }>();
  #started = false;
  isPaused = false;

  constructor(_spec: BoxSpec, script: MockScript) {
    this.#script = script;
    script.record("create");
  }

  async start(): Promise<void> {
    this.#script.record("start");
    this.#started = true;
  }

  async run(command: BoxCommand): Promise<BoxProcess> {
    this.#requireStarted();
    this.#script.record("run", command.argv);
    const answer = this.#script.answer(command) ?? {};
    return this.#track(
      new MockProcess(answer, { stdin: command.stdin, onKill: () => this.#script.record("kill", command.argv) }),
    );
  }

  async openShell(command: ShellCommand): Promise<ShellProcess> {
    this.#requireStarted();
    this.#script.record("shell", command.argv);
    const answer = (text: string): MockAnswer => {
      this.#script.record("session-command", [text]);
      const asCommand: BoxCommand = { ...command, argv: [command.argv[0], "-c", text], stdin: false };
      return this.#script.answer(asCommand) ?? {};
    };
    return this.#track(new MockShell(answer));
  }

  async openTerminal(command: TerminalCommand): Promise<TerminalProcess> {
    this.#requireStarted();
    this.#script.record("terminal", command.argv);
    const acted = new MockProcess(this.#script.answer({ ...command, stdin: true }) ?? {}, {
      stdin: true,
      onKill: () => this.#script.record("kill", command.argv),
    });
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
    throw new SandboxError("RUNTIME_UNAVAILABLE", "the mock runs nothing that could listen at a port");
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
    this.#script.record("pause");
  }

  async resume(): Promise<void> {
    this.#requireStarted();
    this.isPaused = false;
    this.#script.record("resume");
  }

  async destroy(): Promise<void> {
    this.#started = false;
    const running = [...this.#running];
    for (const acted of running) acted.kill();
    await Promise.allSettled(running.map((acted) => acted.exit));
    this.#script.record("destroy");
    this.#script.onDestroyed();
  }

  #track<T extends { kill(): void; readonly exit: Promise<unknown> }>(acted: T): T {
    this.#running.add(acted);
    const forget = (): boolean => this.#running.delete(acted);
    acted.exit.then(forget, forget);
    return acted;
  }

  #requireStarted(): void {
    if (!this.#started) throw new SandboxError("SANDBOX_NOT_RUNNING", "the box is not started");
  }
}
