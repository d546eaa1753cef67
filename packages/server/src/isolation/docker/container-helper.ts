import type { Socket } from "node:net";
import type { ChannelState } from "../backend/backend.ts";
import { countStrangers, type Suspect } from "../backend/holders.ts";
import { IsolationError } from "../backend/isolation-error.ts";
import { Queue } from "../waiting.ts";
import type { ProcessHome } from "./container.ts";
import { compact, HELPER_SCRIPT } from "./scripts.ts";
import { Demultiplexer } from "./streams.ts";

/** Longer than any answer takes in a box that is in order; the last resort is to restart the whole box. */
const ANSWER_TIMEOUT_MS = 2_500;
/** An answer is a line of some numbers; whoever replaced the helper by something that talks more is cut off. */
const LONGEST_ANSWER = 65_536;
/** The kernel counts start times in hundredths of a second. */
const TICKS_PER_SECOND = 100;

/** The two processes that are not the command's own: docker-init above it, and the script in between. */
export interface Root {
  readonly root: number;
  readonly wrapper: number;
}

/**
 * Our hand inside a container (see WARDEN_SCRIPT). It runs as the box's user, so a command can end or stop it: then a
 * question fails, and the next one starts another.
 */
export class ContainerHelper {
  readonly #connect: (commandLine: readonly string[]) => Promise<Socket>;
  /** A question is asked of a container that runs. */
  readonly #awake: ProcessHome["awake"];
  readonly #questions = new Queue();
  #connection: Promise<Socket> | undefined;
  #nextId = 1;
  #answer: ((line: string | undefined) => void) | undefined;
  #closed = false;
  /** Milliseconds of performance.now() at the kernel's zero of time; an answer on the way makes it later, never earlier. */
  #bootMs: number | undefined;

  constructor(connect: (commandLine: readonly string[]) => Promise<Socket>, awake: ProcessHome["awake"]) {
    this.#connect = connect;
    this.#awake = awake;
  }

  async shells(): Promise<string[]> {
    return (await this.#askTwice("shells")).split(" ").filter((path) => path !== "");
  }

  /** Kills everything below a root; 0 when nothing is left. */
  async clear({ root, wrapper }: Root): Promise<number> {
    return Number(await this.#askTwice(`clear ${root} ${wrapper}`));
  }

  async release({ root, wrapper }: Root): Promise<void> {
    await this.#ask(`release ${root} ${wrapper}`);
  }

  /** Ends those of the roots, whose commands have ended, below which nothing lives any more; the pids of the others. */
  async settle(roots: readonly Root[]): Promise<number[]> {
    const pairs = roots.map(({ root, wrapper }) => `${root}:${wrapper}`);
    return (await this.#askTwice(`settle ${pairs.join(" ")}`)).split(" ").map(Number);
  }

  /** 0 when nothing is left. */
  async killOrphans(): Promise<number> {
    return Number(await this.#askTwice("orphans"));
  }

  async oomKills(): Promise<number> {
    return Number(await this.#ask("ooms"));
  }

  async signal(signalNumber: number, pid: number): Promise<void> {
    await this.#ask(`signal ${signalNumber} ${pid}`);
  }

  /** Signals everything below a root, but the wrapper; how many got it. */
  async signalTree(signalNumber: number, { root, wrapper }: Root): Promise<number> {
    return Number(await this.#ask(`tree ${signalNumber} ${root} ${wrapper}`));
  }

  /** Signals the children of a shell that started since a time of performance.now(), and all their descendants. */
  async signalChildren(signal: string, shell: number, sinceMs: number): Promise<number> {
    this.#bootMs ??= await this.#measureBoot();
    const since = Math.max(0, Math.floor(((sinceMs - this.#bootMs) * TICKS_PER_SECOND) / 1000));
    return Number(await this.#ask(`foreground ${signal.replace(/^SIG/, "")} ${shell} ${since}`));
  }

  async channels(shell: number, { root, wrapper }: Root): Promise<ChannelState> {
    let bytesRead: number | undefined;
    const strangers = await countStrangers(async () => {
      const answer = await this.#askTwice(`channels ${shell} ${root} ${wrapper}`);
      const [count = "", read = "-", ...suspects] = answer.trim().split(/ +/);
      bytesRead = read === "-" ? undefined : Number(read);
      return { strangers: Number(count), suspects: suspects.map(suspectOf) };
    });
    // What is on its way to the shell the daemon does not tell.
    return { strangers, bytesRead, bytesUnread: 0 };
  }

  close(): void {
    this.#closed = true;
    this.#drop();
  }

  /** The smallest of several, since whatever delays an answer makes the zero seem later. */
  async #measureBoot(): Promise<number> {
    const zeros: number[] = [];
    for (let i = 0; i < 5; i++) {
      const uptime = Number(await this.#askTwice("uptime"));
      // The kernel cuts the uptime off at hundredths.
      zeros.push(performance.now() - uptime * 1000);
    }
    return Math.min(...zeros);
  }

  /** For what has no other way: the kernel may have ended the first helper for want of memory, or given it no CPU time. */
  async #askTwice(text: string): Promise<string> {
    return await this.#ask(text).catch(() => this.#ask(text));
  }

  // One question at a time: the limit on an answer is then about that answer.
  #ask(text: string): Promise<string> {
    return this.#questions.run(() => this.#awake(() => this.#askOne(text)));
  }

  async #askOne(text: string): Promise<string> {
    if (this.#closed) throw new IsolationError("SANDBOX_NOT_RUNNING", "the sandbox was stopped");
    this.#connection ??= this.#open();
    const connection = await this.#connection.catch((error: unknown) => {
      this.#connection = undefined;
      throw error;
    });
    const id = String(this.#nextId++);
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    const timer = setTimeout(() => resolve(undefined), ANSWER_TIMEOUT_MS);
    this.#answer = (line) => {
      if (line === undefined) resolve(undefined);
      else if (line.startsWith(`${id} `)) resolve(line.slice(id.length + 1).trim());
    };
    connection.write(`${id} ${text}\n`);
    const answer = await promise;
    clearTimeout(timer);
    this.#answer = undefined;
    if (answer !== undefined) return answer;
    this.#drop();
    throw new IsolationError("INTERNAL", "the sandbox's helper does not answer");
  }

  async #open(): Promise<Socket> {
    const connection = await this.#connect(["/bin/sh", "-c", compact(HELPER_SCRIPT), "helper"]);
    let line = "";
    const demultiplexer = new Demultiplexer((_name, bytes) => {
      line += bytes.toString("latin1");
      for (let end = line.indexOf("\n"); end >= 0; end = line.indexOf("\n")) {
        this.#answer?.(line.slice(0, end));
        line = line.slice(end + 1);
      }
      if (line.length > LONGEST_ANSWER) connection.destroy();
    });
    connection.on("data", (chunk: Buffer) => demultiplexer.feed(chunk));
    connection.on("error", () => {});
    connection.on("close", () => {
      this.#answer?.(undefined);
      this.#connection = undefined;
    });
    return connection;
  }

  #drop(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    connection?.then(
      (socket) => socket.destroy(),
      () => {},
    );
  }
}

function suspectOf(text: string): Suspect {
  const [thread = "", start = "", state = "", ticks = ""] = text.split(",");
  return { id: `${thread} ${start}`, isAsleep: !"RD".includes(state), cpuTicks: Number(ticks) };
}
