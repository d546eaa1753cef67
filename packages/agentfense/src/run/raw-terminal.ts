import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { type Readable, Transform, type Writable } from "node:stream";
import type { BoxedWorkspace, ExecOutcome, Terminal } from "@agentfense/server/isolation";
import type { SandboxRequest } from "./sandbox-request.ts";

/** What programs switch on and a killed one leaves on: other screen, mouse, pasting, hidden cursor, colours, line drawing. */
const SENSIBLE_MODES =
  "\u001b[?1047l\u001b[?1000l\u001b[?1002l\u001b[?1003l\u001b[?1006l\u001b[?2004l\u001b[?25h\u001b[0m\u001b(B";

/** Ctrl-Z alone, as terminals send it: as ever, and in the way of kitty, which programs can switch on. */
const SUSPEND: ReadonlySet<string> = new Set(["\u001a", "\u001b[122;5u"]);

/** What the user's terminal can be connected to. */
export type OtherTerminal = Pick<Terminal, "input" | "output" | "resize"> & { readonly exit: Promise<unknown> };

/** That of the user's terminal. */
export function terminalSize(): { columns: number; rows: number } {
  const { columns, rows } = process.stdout;
  // A terminal that does not know its size says 0, which no program inside could work with.
  return { columns: columns || 80, rows: rows || 24 };
}

/** The user's terminal in raw mode: every key goes to the sandbox, Ctrl-C too. Whatever ends the process, it is restored. */
export class RawTerminal implements Disposable {
  readonly #restore = (): void => {
    process.off("exit", this.#restore);
    process.stdin.pause();
    this.#leave();
  };

  constructor() {
    this.#enter();
    process.on("exit", this.#restore);
  }

  #enter(): void {
    process.stdin.setRawMode(true);
    // Node's raw mode still turns \n into \r\n, which the terminal inside has done already and full-screen programs do
    // without. Leaving raw mode restores this too.
    spawnSync("stty", ["-opost"], { stdio: ["inherit", "ignore", "ignore"] });
  }

  #leave(): void {
    process.stdin.setRawMode(false);
    if (process.stdout.writable) process.stdout.write(SENSIBLE_MODES);
  }

  /**
   * Connects both until the other one ends. Ctrl-Z is a key like any other; where what runs there has no shell that could continue it,
   * it stops us, with the sandbox that is named, and the user's own shell continues both.
   */
  async connect(terminal: OtherTerminal, stopped?: Pick<BoxedWorkspace, "pause" | "resume">): Promise<void> {
    const onResize = (): void => void terminal.resize(terminalSize()).catch(() => {});
    const ended = endOf(terminal.output);
    const keys = stopped === undefined ? process.stdin : withoutSuspension(() => this.#suspend(terminal, stopped));
    terminal.input.on("error", () => {}); // the shell is gone; its exit tells
    process.stdout.on("resize", onResize);
    if (keys !== process.stdin) process.stdin.pipe(keys as Transform);
    keys.pipe(terminal.input);
    terminal.output.pipe(process.stdout as Writable, { end: false });
    try {
      await terminal.exit;
      await ended;
    } finally {
      process.stdout.off("resize", onResize);
      process.stdin.unpipe();
      terminal.output.unpipe(process.stdout);
    }
  }

  async #suspend(terminal: OtherTerminal, sandbox: Pick<BoxedWorkspace, "pause" | "resume">): Promise<void> {
    await sandbox.pause();
    this.#leave();
    // It comes back when the user's shell says so, at once where nobody could: then the kernel stops nobody.
    process.kill(0, "SIGTSTP");
    this.#enter();
    await sandbox.resume();
    // Its size may be another one now, of which only those were told who had it.
    const known = once(process, "SIGWINCH");
    process.kill(process.pid, "SIGWINCH");
    await known;
    // A screen is drawn anew when its size changes.
    const { columns, rows } = terminalSize();
    await terminal.resize({ columns, rows: rows + 1 });
    await terminal.resize({ columns, rows });
  }

  [Symbol.dispose](): void {
    this.#restore();
  }
}

/** What is typed, without Ctrl-Z; what is typed behind it waits. */
function withoutSuspension(suspend: () => Promise<void>): Transform {
  return new Transform({
    transform(typed: Buffer, _encoding, done) {
      if (!SUSPEND.has(typed.toString("latin1"))) done(null, typed);
      // A sandbox that is ending meanwhile has nobody who waits for a key.
      else
        suspend().then(
          () => done(),
          () => done(),
        );
    },
  });
}

/** What kind of terminal this is, the programs inside have to know; nothing else of our environment is their business. */
const OF_THE_TERMINAL = ["TERM", "COLORTERM"];

/** Connects the user's terminal with a program in the sandbox, by default a shell, until that ends. */
export async function converse(
  sandbox: BoxedWorkspace,
  { spec, workdir }: SandboxRequest,
  { argv, signal }: { readonly argv?: readonly [string, ...string[]]; readonly signal: AbortSignal },
): Promise<ExecOutcome> {
  using user = new RawTerminal();
  const known = OF_THE_TERMINAL.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  await using terminal = await sandbox.terminal(
    {
      size: terminalSize(),
      env: { ...Object.fromEntries(known), ...spec.env },
      ...(argv === undefined ? {} : { argv }),
      ...(workdir === undefined ? {} : { workdir }),
    },
    { signal },
  );
  // A shell in the sandbox takes Ctrl-Z itself; an agent there has none above it.
  await user.connect(terminal, argv === undefined ? undefined : sandbox);
  return await terminal.exit;
}

/** The end of a terminal's output is often an error (EIO: the other side is gone). */
async function endOf(output: Readable): Promise<void> {
  await new Promise<void>((resolve) => {
    output
      .once("close", resolve)
      .once("end", resolve)
      .on("error", () => resolve());
  });
}
