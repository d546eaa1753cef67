import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { processes, syscalls } from "@agentfense/fuse";
import { IsolationError } from "../backend/isolation-error.ts";
import type { Owner } from "../filesystem/presentation.ts";
import type { LogLine } from "../log.ts";
import { DescriptorSet } from "./descriptors.ts";
import { sendOrder } from "./orders.ts";
import { scriptFile } from "./scripts.ts";

const SIGKILL = 9;

export interface Launch {
  /** Files of control groups that the program enters, in this order. */
  readonly entrances: readonly string[];
  /** Whom the program runs as, with no capabilities; default: whoever the server is. */
  readonly owner?: Owner | undefined;
  readonly argv: readonly string[];
  /** The program's descriptors, from 0 on. */
  readonly descriptors: readonly number[];
}

/**
 * The process that starts every box of a backend (perl/launcher.pl). It is small, so that its forks are cheap. When it dies the
 * boxes die with it; the next one to be started gets a new launcher.
 */
export class Launcher {
  readonly #perl: string;
  readonly #log: (line: LogLine) => void;
  #process: ChildProcess | undefined;
  #orders = -1;
  #isClosed = false;

  constructor(options: { perl: string; log: (line: LogLine) => void }) {
    this.#perl = options.perl;
    this.#log = options.log;
  }

  /** For tests and for whoever looks at the process table. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Starting early keeps the fork of the server small and out of the first sandbox's way. */
  start(): void {
    if (this.#process !== undefined || this.#isClosed) return;
    using lent = new DescriptorSet();
    const script = lent.add(scriptFile("launcher"));
    const [ours, theirs] = lent.pair(processes.messageSockets());
    const child = spawn(this.#perl, ["-"], {
      cwd: "/",
      env: { PATH: "/usr/bin:/bin" },
      detached: true, // a session and process group of its own: no signal of the server's terminal reaches a box
      stdio: [script, "ignore", "pipe", theirs],
    });
    this.#process = child;
    this.#orders = lent.release(ours);
    child.on("error", (error) => this.#lost(child, error.message));
    child.on("exit", (code, signal) => this.#lost(child, signal ?? `exit code ${code}`));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      for (const line of text.split("\n").filter((part) => part !== "")) this.#error(`launcher: ${line}`);
    });
    child.unref();
    (child.stderr as unknown as { unref?(): void } | null)?.unref?.();
  }

  /** Whether it runs shows at the descriptors it was given: they are closed when it ends, or was never started. */
  launch({ entrances, owner, argv, descriptors }: Launch): void {
    this.start();
    const fields = [entrances.length, ...entrances, owner?.uid ?? "", owner?.gid ?? "", ...argv];
    let sending = sendOrder(this.#orders, "l", fields, descriptors);
    if (sending === "gone") {
      if (this.#process !== undefined) this.#lost(this.#process, "it takes no more orders"); // we have not been told yet
      this.start();
      sending = sendOrder(this.#orders, "l", fields, descriptors);
    }
    if (sending !== "sent") {
      throw new IsolationError("RESOURCES_EXHAUSTED", "too many sandboxes are being started at once");
    }
  }

  /** Ends the launcher; no box may be left. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.ref();
    sendOrder(this.#orders, "q", [], []);
    await gone;
  }

  #lost(child: ChildProcess, reason: string): void {
    if (this.#process !== child) return;
    this.#abandon();
    if (this.#isClosed) return;
    this.#error(`the launcher died (${reason}); the sandboxes' processes end with it`);
    if (child.pid !== undefined) processes.kill(-child.pid, SIGKILL);
  }

  #abandon(): void {
    this.#process = undefined;
    if (this.#orders >= 0) syscalls.close(this.#orders);
    this.#orders = -1;
  }

  #error(message: string): void {
    this.#log({ level: "error", message });
  }
}
