import { randomBytes } from "node:crypto";
import type { ShellProcess } from "../backend/backend.ts";
import { type Answer, AnswerReader } from "./answers.ts";
import { type CommandState, type Dialect, FRESH_STATE, identify, type SpokenCommand } from "./dialects.ts";
import { dialectOf, type Shell } from "./shells.ts";

/** Says commands to a shell and hears their answers; knows nothing of time or output. */
export class Conversation {
  readonly #commands: ShellProcess["commands"];
  readonly #answers: AnswerReader;
  #dialect: Dialect | undefined;
  #last: CommandState = FRESH_STATE;
  #count = 0;
  #serial = "";
  #saidBytes = 0;
  #answeredBytes = 0;

  constructor(process: ShellProcess) {
    this.#commands = process.commands;
    this.#commands.on("error", () => {}); // a shell that is gone is noticed by its exit
    this.#answers = new AnswerReader(process.status);
  }

  /** Makes the shell ready for commands. */
  async start(shell: Shell): Promise<void> {
    this.#dialect = shell.dialect ?? dialectOf((await this.#say((serial) => identify(serial))).options);
    const dialect = this.#dialect;
    await this.#say((serial) => dialect.startUp(serial));
  }

  run(text: Buffer): Promise<Answer> {
    return this.#say((serial) => this.#spoken.command(text, serial, this.#last));
  }

  /** How much was said so far. */
  get saidBytes(): number {
    return this.#saidBytes;
  }

  /** How much of it the shell had read when it last answered: it reads in the order in which things are said. */
  get answeredBytes(): number {
    return this.#answeredBytes;
  }

  /** Resolves when no earlier signal can hit a later command. */
  async settle(): Promise<void> {
    await this.#say((serial) => this.#spoken.settle(serial));
  }

  /**
   * Asks for the awaited answer again: a signal that comes just when a command ends may have eaten it. A shell that is
   * still busy reads this when it is done, and nobody minds an answer too many.
   */
  remind(): void {
    this.#write(Buffer.from(this.#spoken.settle(this.#serial)));
  }

  /** What the next command shall find in `$?` and as options. */
  remember(state: CommandState): void {
    this.#last = state;
  }

  get #spoken(): Dialect {
    if (this.#dialect === undefined) throw new Error("the shell was not started");
    return this.#dialect;
  }

  async #say(line: (serial: string) => string | SpokenCommand): Promise<Answer> {
    this.#serial = `${++this.#count}.${randomBytes(8).toString("hex")}`;
    const answer = this.#answers.awaitAnswer(this.#serial);
    const said = line(this.#serial);
    // Of lines that only ask for an answer the first may be enough.
    const { bytes, readBytes } = typeof said === "string" ? { bytes: Buffer.from(said), readBytes: 0 } : said;
    const answeredBytes = this.#saidBytes + readBytes;
    this.#write(bytes);
    const heard = await answer;
    this.#answeredBytes = answeredBytes;
    return heard;
  }

  #write(bytes: Buffer): void {
    this.#saidBytes += bytes.length;
    this.#commands.write(bytes);
  }
}
