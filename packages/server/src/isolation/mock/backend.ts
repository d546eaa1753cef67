import type { Backend, Box, BoxCommand, BoxSpec } from "../backend/backend.ts";
import { MockBox } from "./box.ts";
import type { MockAnswer } from "./plan.ts";

export interface MockOptions {
  /** What a command does; without an answer it prints nothing and ends with 0. */
  readonly answer?: (command: BoxCommand, spec: BoxSpec) => MockAnswer | undefined;
  /** Every call, in order, is added here. */
  readonly calls?: MockCall[];
}

export interface MockCall {
  readonly call:
    | "create"
    | "start"
    | "run"
    | "shell"
    | "session-command"
    | "terminal"
    | "kill"
    | "pause"
    | "resume"
    | "destroy";
  readonly sandbox: string;
  /** Of a command: its argv; of a session's command: its text. */
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
    const box = new MockBox(spec, {
      answer: (command) => this.#options.answer?.(command, spec),
      record: (call, command) =>
        this.#options.calls?.push({ call, sandbox: spec.id, ...(command === undefined ? {} : { command }) }),
      onDestroyed: () => this.#boxes.delete(box),
    });
    this.#boxes.add(box);
    return box;
  }

  async removeOrphans(): Promise<void> {}

  async close(): Promise<void> {
    for (const box of this.#boxes) await box.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
