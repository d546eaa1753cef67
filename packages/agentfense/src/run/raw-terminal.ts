import { spawnSync } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import type { Terminal } from "@agentfense/server/isolation";

/** What programs switch on and a killed one leaves on: other screen, mouse, pasting, hidden cursor, colours, line drawing. */
const SENSIBLE_MODES =
  "\u001b[?1047l\u001b[?1000l\u001b[?1002l\u001b[?1003l\u001b[?1006l\u001b[?2004l\u001b[?25h\u001b[0m\u001b(B";

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
    process.stdin.setRawMode(false);
    process.stdin.pause();
    if (process.stdout.writable) process.stdout.write(SENSIBLE_MODES);
  };

  constructor() {
    process.stdin.setRawMode(true);
    // Node's raw mode still turns \n into \r\n, which the terminal inside has done already and full-screen programs do
    // without. Leaving raw mode restores this too.
    spawnSync("stty", ["-opost"], { stdio: ["inherit", "ignore", "ignore"] });
    process.on("exit", this.#restore);
  }

  /** Connects both until the other one ends. */
  async connect(terminal: OtherTerminal): Promise<void> {
    const onResize = (): void => void terminal.resize(terminalSize()).catch(() => {});
    const ended = endOf(terminal.output);
    terminal.input.on("error", () => {}); // the shell is gone; its exit tells
    process.stdout.on("resize", onResize);
    process.stdin.pipe(terminal.input);
    terminal.output.pipe(process.stdout as Writable, { end: false });
    try {
      await terminal.exit;
      await ended;
    } finally {
      process.stdout.off("resize", onResize);
      process.stdin.unpipe(terminal.input);
      terminal.output.unpipe(process.stdout);
    }
  }

  [Symbol.dispose](): void {
    this.#restore();
  }
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
