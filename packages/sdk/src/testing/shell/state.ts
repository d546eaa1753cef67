import { literally } from "./glob.ts";
import type { Word } from "./tokenise.ts";

export interface ExpandedWord {
  readonly text: string;
  /** The same for whoever looks for files, quoted parts taken literally. */
  readonly pattern: string;
}

const ENVIRONMENT: Readonly<Record<string, string>> = {
  EMAIL: "agent@sandbox",
  HOME: "/home/agent",
  LANG: "C.UTF-8",
  LOGNAME: "agent",
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  SHELL: "/bin/bash",
  TERM: "xterm-256color",
  USER: "agent",
};

/** What lives from command to command in one shell. */
export class ShellState {
  /** Absolute. */
  cwd: string;
  /** Of the command before. */
  status = 0;
  readonly variables: Map<string, string>;
  readonly exported: Set<string>;

  constructor(cwd: string, env: Readonly<Record<string, string>>) {
    this.cwd = cwd;
    this.variables = new Map(Object.entries({ ...ENVIRONMENT, ...env }));
    this.exported = new Set(this.variables.keys());
  }

  /** For what runs beside: changes in it stay there. */
  copy(): ShellState {
    const copy = new ShellState(this.cwd, {});
    copy.status = this.status;
    copy.variables.clear();
    copy.exported.clear();
    for (const [name, value] of this.variables) copy.variables.set(name, value);
    for (const name of this.exported) copy.exported.add(name);
    return copy;
  }

  environment(): Record<string, string> {
    const exported = [...this.variables].filter(([name]) => this.exported.has(name));
    return { PWD: this.cwd, ...Object.fromEntries(exported) };
  }

  /**
   * The words that a word stands for, each with the pattern it may be: what is not quoted is split at blanks, and may
   * be none at all.
   */
  expand(word: Word): ExpandedWord[] {
    const words: ExpandedWord[] = [];
    let current: ExpandedWord | undefined;
    const add = (text: string, pattern: string): void => {
      current = { text: (current?.text ?? "") + text, pattern: (current?.pattern ?? "") + pattern };
    };
    for (const [index, part] of word.entries()) {
      const isVariable = "variable" in part;
      const value = isVariable ? this.#valueOf(part.variable) : part.text;
      if (part.quoted) add(value, literally(value));
      else if (!isVariable) {
        const text = index === 0 ? value.replace(/^~(?=$|\/)/, () => this.#valueOf("HOME")) : value;
        add(text, text);
      } else {
        for (const [at, piece] of value.split(/[ \t\n]+/).entries()) {
          if (at > 0 && current !== undefined) words.push(current);
          if (at > 0) current = undefined;
          if (piece !== "") add(piece, piece);
        }
      }
    }
    return current === undefined ? words : [...words, current];
  }

  /** Without splitting: for assignments and names of files. */
  expandText(word: Word): string {
    return word.map((part) => ("text" in part ? part.text : this.#valueOf(part.variable))).join("");
  }

  #valueOf(name: string): string {
    if (name === "?") return String(this.status);
    return name === "PWD" ? this.cwd : (this.variables.get(name) ?? "");
  }
}
