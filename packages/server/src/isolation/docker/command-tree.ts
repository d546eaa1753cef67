import type { Socket } from "node:net";
import type { ChannelState } from "../backend/backend.ts";
import { SandboxError } from "../backend/errors.ts";
import type { ProcessHome } from "./container.ts";
import { settledWithin } from "./exec.ts";
import type { Root, Warden } from "./warden.ts";

/** What the shell would say of a command that was killed; ours for one whose end nobody saw. */
export const KILLED = 137;
/** How long a script may take to say that its command has ended, once everything below it was killed. */
const FAREWELL_MS = 300;
/** How long the engine may take to tell that a process was killed: two seconds where others hold the streams, and some. */
const RELEASE_MS = 4_000;

/** What is known of a command from outside. */
interface CommandState {
  readonly exit: Promise<unknown>;
  /** Fetches what is on its way, whether somebody reads it or not. */
  readonly drain: () => void;
}

/** The processes of one command: a docker-init, the script below it, and below that whatever the command started. */
export class CommandTree {
  readonly #home: ProcessHome;
  /** That of the container as it was: after a restart the numbers of processes mean others. */
  readonly #warden: Warden;
  readonly #root: Root;
  readonly #oomKillsBefore: number;

  /** From the fields of the frame `started`. */
  constructor(home: ProcessHome, fields: readonly string[]) {
    const [root = 0, wrapper = 0, oomKills = 0] = fields.map(Number);
    this.#home = home;
    this.#warden = home.warden;
    this.#root = { root, wrapper };
    this.#oomKillsBefore = oomKills;
  }

  /**
   * Kills whatever the command started; the script then reports its end. Only if something survives, or a second warden does
   * not answer either, the whole container is restarted: every process in it dies, also those that earlier commands left in
   * the background, and /tmp is empty, but the box lives on.
   */
  async kill(command: CommandState): Promise<void> {
    await this.#home.awake(() => this.#kill(command));
  }

  async #kill(command: CommandState): Promise<void> {
    const left = await this.#warden.clear(this.#root).catch(() => undefined);
    if (left !== 0) await this.#home.restart(this.#warden);
    // Nothing writes any more, so what is left to fetch is bounded; and the end comes behind it.
    command.drain();
    if (await settledWithin(FAREWELL_MS, command.exit)) return;
    await this.#warden.release(this.#root).catch(() => {});
    // A warden that was tampered with says what the command wants; the engine cannot be.
    if (!(await settledWithin(RELEASE_MS, command.exit))) await this.#home.restart(this.#warden);
  }

  /** Signals whatever the command started. */
  async signal(signalNumber: number): Promise<void> {
    await this.#warden.signalTree(signalNumber, this.#root);
  }

  /**
   * After a command that ended without a report, because somebody killed the script: ends what it left behind, which cannot be
   * told from what earlier commands lost in the same way.
   */
  async clearUp(): Promise<{ readonly outOfMemory: boolean }> {
    const left = await this.#warden.killOrphans().catch(() => undefined);
    if (left !== 0) await this.#home.restart(this.#warden);
    try {
      return { outOfMemory: this.killedForMemory(await this.#warden.oomKills()) };
    } catch {
      return { outOfMemory: await this.#home.ranOutOfMemory() };
    }
  }

  /** After a command that reported its end. */
  leave(connection: Socket): void {
    this.#home.leave(this.#root, connection, this.#warden);
  }

  /** Who has the channels of this command, a session's shell, besides it. */
  channels(shell: number): Promise<ChannelState> {
    return this.#warden.channels(shell, this.#root);
  }

  /** Whether the kernel killed since the command started, given how often it did so far. */
  killedForMemory(oomKills: number): boolean {
    return oomKills > this.#oomKillsBefore;
  }
}

/** The error behind a frame that says why nothing was started; undefined for any other frame. */
export function startFailure(verb: string | undefined): SandboxError | undefined {
  if (verb === "workdir") {
    return new SandboxError("WORKDIR_UNUSABLE", "the working directory does not exist in the sandbox, or is none");
  }
  if (verb === "program") return new SandboxError("PROGRAM_NOT_FOUND", "the program does not exist in the sandbox");
  return undefined;
}
