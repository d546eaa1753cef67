import type { ChannelState } from "../backend/backend.ts";
import { SandboxError } from "../backend/errors.ts";
import type { ProcessHome } from "./container.ts";
import type { Root } from "./warden.ts";

/** What the shell would say of a command that was killed; ours for one whose end nobody saw. */
export const KILLED = 137;
/** How long a script may take to say that its command has ended, once everything below it was killed. */
const FAREWELL_MS = 300;

/** What is known of a command from outside. */
interface CommandState {
  readonly exit: Promise<unknown>;
  readonly isOver: () => boolean;
  /** Fetches what is on its way, whether somebody reads it or not. */
  readonly drain: () => void;
}

/** The processes of one command: a docker-init, the script below it, and below that whatever the command started. */
export class CommandTree {
  readonly #home: ProcessHome;
  readonly #root: Root;
  readonly #oomKillsBefore: number;

  /** From the fields of the frame `started`. */
  constructor(home: ProcessHome, fields: readonly string[]) {
    const [root = 0, wrapper = 0, oomKills = 0] = fields.map(Number);
    this.#home = home;
    this.#root = { root, wrapper };
    this.#oomKillsBefore = oomKills;
  }

  /**
   * Kills whatever the command started; the script then reports its end. If something survives, or the warden does not
   * answer, the whole container is restarted: every command and session in it dies and /tmp is empty, but the box lives on.
   */
  async kill(command: CommandState): Promise<void> {
    if (command.isOver()) return;
    const left = await this.#home.warden.clear(this.#root).catch(() => undefined);
    if (left !== 0 && !command.isOver()) await this.#home.restart();
    // Nothing writes any more, so what is left to fetch is bounded; and the end comes behind it.
    command.drain();
    if (await endsSoon(command)) return;
    await this.#home.warden.release(this.#root).catch(() => {});
    // A warden that was tampered with says what the command wants; the engine cannot be.
    if (!(await endsSoon(command))) await this.#home.restart();
  }

  /**
   * After a command that reported its end. An honest script has left nothing but itself and docker-init; whoever forged the
   * report gets what it says. A warden that was stopped is replaced once, since a box that is short of CPU time is not
   * worth a restart.
   */
  async end(): Promise<void> {
    const end = () => this.#home.warden.end(this.#root);
    const left = await end()
      .catch(end)
      .catch(() => undefined);
    if (left !== 0) await this.#home.restart();
  }

  /** After a command that ended without a report, because somebody killed the script: ends what it left behind. */
  async clearUp(): Promise<{ readonly outOfMemory: boolean }> {
    try {
      await this.#home.warden.killOrphans();
      return { outOfMemory: this.killedForMemory(await this.#home.warden.oomKills()) };
    } catch {
      return { outOfMemory: await this.#home.ranOutOfMemory() };
    }
  }

  /** Who has the channels of this command, a session's shell, besides it. */
  channels(shell: number): Promise<ChannelState> {
    return this.#home.warden.channels(shell, this.#root);
  }

  /** Whether the kernel killed since the command started, given how often it did so far. */
  killedForMemory(oomKills: number): boolean {
    return oomKills > this.#oomKillsBefore;
  }
}

async function endsSoon(command: CommandState): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, FAREWELL_MS);
  });
  await Promise.race([command.exit.catch(() => {}), late]);
  clearTimeout(timer);
  return command.isOver();
}

/** The error behind a frame that says why nothing was started; undefined for any other frame. */
export function startFailure(verb: string | undefined): SandboxError | undefined {
  if (verb === "workdir") {
    return new SandboxError("WORKDIR_UNUSABLE", "the working directory does not exist in the sandbox, or is none");
  }
  if (verb === "program") return new SandboxError("PROGRAM_NOT_FOUND", "the program does not exist in the sandbox");
  return undefined;
}
