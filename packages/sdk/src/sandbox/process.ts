import type { SandboxClient } from "../client/client.ts";
import type { CallOptions } from "../model/options.ts";
import type { ProcessEnd, ProcessEvent, ProcessInfo } from "../model/records.ts";
import type { AttachOptions, TerminalSize } from "../model/requests.ts";

/** A process of a sandbox. It lives on without this object, until it ends or the sandbox is stopped. */
export class SandboxProcess {
  readonly number: number;
  readonly tag: string;
  /** As the server last said. */
  readonly info: ProcessInfo;
  readonly #client: SandboxClient;

  /** `Sandbox.spawn`, `Sandbox.processes` and `Sandbox.process` make one. */
  constructor(client: SandboxClient, info: ProcessInfo) {
    this.#client = client;
    this.info = info;
    this.number = info.number;
    this.tag = info.tag;
  }

  /** What is kept of its output, then what comes, then its end. Attaches with the first read; leaving the loop detaches. */
  async *output(options: CallOptions = {}): AsyncGenerator<ProcessEvent, void, undefined> {
    yield* await this.attach(options);
  }

  /** The same, attached when it resolves: from then on nothing is lost, and a slow reader slows the process down. */
  async attach(options: AttachOptions = {}): Promise<AsyncGenerator<ProcessEvent, void, undefined>> {
    return await this.#client.attachProcess(this.info.sandboxId, this.number, options);
  }

  /** Resolves when the process has room for it. */
  async write(data: string | Uint8Array, options: CallOptions = {}): Promise<void> {
    await this.#client.sendInput(this.info.sandboxId, this.number, data, options);
  }

  /** The process reads the end of its input. */
  async end(options: CallOptions = {}): Promise<void> {
    await this.#client.closeInput(this.info.sandboxId, this.number, options);
  }

  /** To the process and all that it started: "SIGTERM", "TERM" or 15. */
  async signal(signal: string | number, options: CallOptions = {}): Promise<void> {
    await this.#client.signalProcess(this.info.sandboxId, this.number, signal, options);
  }

  /** Ends the process and all that it started, however it hid. */
  async kill(options: CallOptions = {}): Promise<void> {
    await this.signal("SIGKILL", options);
  }

  async resize(size: TerminalSize, options: CallOptions = {}): Promise<void> {
    await this.#client.resizeProcess(this.info.sandboxId, this.number, size, options);
  }

  /** How it ended, when it has. */
  async wait(options: CallOptions = {}): Promise<ProcessEnd> {
    const { end } = await this.#client.waitProcess(this.info.sandboxId, this.number, options);
    return end!;
  }
}
