import { ShellSyntaxError, type Token, tokenise, type Word } from "./tokenise.ts";

export interface Redirection {
  readonly fd: number;
  readonly operator: "<" | ">" | ">>" | ">&";
  readonly target: Word;
}

export interface SimpleCommand {
  readonly line: number;
  readonly assignments: readonly { readonly name: string; readonly value: Word }[];
  readonly words: readonly Word[];
  readonly redirections: readonly Redirection[];
}

/** One pipeline of a list, and when it is run. */
export interface Step {
  readonly when: "always" | "after success" | "after failure";
  readonly pipeline: readonly SimpleCommand[];
}

const WHEN = { ";": "always", "&&": "after success", "||": "after failure" } as const;
/** Words that begin what the little shell has none of. */
const RESERVED = new Set(["if", "for", "while", "until", "case", "function", "select", "{", "[[", "!"]);
const ASSIGNMENT = /^([A-Za-z_][A-Za-z0-9_]*)=/;

/** A script as the list of what is to be done. */
export function parse(source: string): Step[] {
  const steps: Step[] = [];
  let when: Step["when"] = "always";
  let pipeline: SimpleCommand[] = [];
  let tokens: Token[] = [];
  const finishCommand = (operator: string, line: number): void => {
    if (tokens.length === 0) throw unexpected(operator, line);
    pipeline.push(commandOf(tokens));
    tokens = [];
  };
  const all = tokenise(source);
  for (const token of [...all, { kind: "operator", operator: ";", line: all.at(-1)?.line ?? 1 } as const]) {
    if (token.kind !== "operator") {
      tokens.push(token);
      continue;
    }
    if (token.operator === "|") {
      finishCommand("|", token.line);
      continue;
    }
    if (tokens.length > 0 || pipeline.length > 0 || token.operator !== ";") finishCommand(token.operator, token.line);
    if (pipeline.length > 0) steps.push({ when, pipeline });
    // A line that ends with && goes on in the next one.
    if (pipeline.length > 0 || token.operator !== ";") when = WHEN[token.operator];
    pipeline = [];
  }
  if (when !== "always") throw new ShellSyntaxError(all.at(-1)?.line ?? 1, "syntax error: unexpected end of file");
  return steps;
}

function commandOf(tokens: readonly Token[]): SimpleCommand {
  const assignments: { name: string; value: Word }[] = [];
  const words: Word[] = [];
  const redirections: Redirection[] = [];
  const { line } = tokens[0]!;
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at]!;
    if (token.kind === "redirection") {
      at += 1;
      const target = tokens[at];
      if (target?.kind !== "word") throw unexpected("newline", token.line);
      redirections.push({ fd: token.fd, operator: token.operator, target: target.word });
    } else if (token.kind === "word") {
      const assignment = words.length === 0 ? assignmentOf(token.word) : undefined;
      if (assignment === undefined) words.push(token.word);
      else assignments.push(assignment);
    }
  }
  const first = words[0]?.length === 1 ? words[0][0] : undefined;
  if (first !== undefined && "text" in first && !first.quoted && RESERVED.has(first.text)) {
    throw new ShellSyntaxError(
      line,
      `the mock engine's shell does not know \`${first.text}'; answer the command with onCommand`,
    );
  }
  return { line, assignments, words, redirections };
}

function assignmentOf(word: Word): { readonly name: string; readonly value: Word } | undefined {
  const [first, ...rest] = word;
  if (first === undefined || !("text" in first) || first.quoted) return undefined;
  const match = ASSIGNMENT.exec(first.text);
  if (match === null) return undefined;
  return { name: match[1]!, value: [{ text: first.text.slice(match[0].length), quoted: true }, ...rest] };
}

function unexpected(operator: string, line: number): ShellSyntaxError {
  return new ShellSyntaxError(line, `syntax error near unexpected token \`${operator}'`);
}
