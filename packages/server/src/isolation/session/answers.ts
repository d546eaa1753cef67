import type { Readable } from "node:stream";
import { ANSWER_WORD } from "./dialects.ts";

export interface Answer {
  readonly exitStatus: number;
  readonly options: string;
}

/** Longer lines are nobody's answer. */
const LONGEST_LINE = 256;

const LINE = new RegExp(`^${ANSWER_WORD} (\\S+) (\\d{1,3}) (\\S*)$`);

/**
 * Reads the status channel. Serial numbers cannot be guessed, so that a late answer, or what a program in the sandbox
 * writes to the channel, is never taken for the answer that is awaited. Keeps at most one line.
 */
export class AnswerReader {
  #line = "";
  #awaited: { serial: string; arrived: (answer: Answer) => void } | undefined;

  constructor(status: Readable) {
    status.setEncoding("latin1");
    status.on("data", (text: string) => this.#read(text));
    status.on("error", () => {}); // the shell's end tells more
  }

  /** Resolves when the answer arrives. Awaiting another one forgets the former. */
  awaitAnswer(serial: string): Promise<Answer> {
    return new Promise((arrived) => {
      this.#awaited = { serial, arrived };
    });
  }

  #read(text: string): void {
    const lines = text.split("\n");
    for (const [index, part] of lines.entries()) {
      const line = this.#line + part;
      const complete = index < lines.length - 1;
      if (complete) this.#take(line);
      this.#line = complete ? "" : line.slice(0, LONGEST_LINE + 1);
    }
  }

  #take(line: string): void {
    const [, serial, exitStatus, options] = line.length > LONGEST_LINE ? [] : (LINE.exec(line) ?? []);
    if (serial === undefined || serial !== this.#awaited?.serial) return;
    const { arrived } = this.#awaited;
    this.#awaited = undefined;
    arrived({ exitStatus: Number(exitStatus) & 0xff, options: options ?? "" });
  }
}
