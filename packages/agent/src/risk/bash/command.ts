import { posix } from "node:path";
import { type Findings, maxRisk, type Rule, rule } from "../findings.ts";
import { isEverything, pathRule, UNKNOWN } from "../places.ts";
import { DECODED, REMOTE } from "../program/assess.ts";
import type { SyntaxNode } from "../syntax/node.ts";
import {
  COMMAND_RULES,
  DELETES_FOUND,
  FIRST_IS_TEXT,
  INTERPRETERS,
  PATH_ARGUMENTS,
  PATH_OPTIONS,
  REVERSE_SHELL,
  TELLING,
  WRAPPERS,
} from "./commands.ts";
import { assessCode, assessInput } from "./input.ts";
import type { Word, Words } from "./words.ts";

/** What the parts that look at commands share. */
export interface Shell {
  readonly words: Words;
  /** Functions that the script defines; their bodies are looked at where they stand. */
  readonly functions: ReadonlySet<string>;
  readonly findings: Findings;
  readonly found: (rule: Rule, line: number) => void;
}

const MAX_WRAPPERS = 16;
/** How much text the arguments of one command may have when they are looked at together. */
const MAX_TEXT = 4096;

/** A command with its arguments, after expansion. `node` is the command in the tree, for what is piped into it. */
export function assessWords(all: readonly Word[], node: SyntaxNode, shell: Shell, depth = 0): void {
  const [first, ...given] = all;
  const { line } = node;
  if (first === undefined) return;
  if (depth > MAX_WRAPPERS) {
    shell.found(rule("HIGH", "too-nested", "wraps a command too often to be looked at"), line);
    return;
  }
  if (first.text.includes(UNKNOWN) || /[?*]|\[.+\]/.test(first.text)) {
    assessUnknown(first, shell);
    return;
  }
  if (shell.functions.has(first.text) && first.node.type === "word") return;
  const name = first.text.includes("/") ? posix.basename(posix.normalize(first.text)) : first.text;
  const rated = assessNamed(name, given, node, shell, depth);
  if (first.isHidden) {
    const level = rated === "LOW" ? "HIGH" : "CRITICAL";
    shell.found(rule(level, "hidden-command", `writes the command ${name} so that it is not seen`), line);
  }
}

/** `$x file`, `/bin/ba?h`: what is run is not known before. */
function assessUnknown({ node }: Word, { found, words }: Shell): void {
  if (words.isDecoded(node)) found(DECODED, node.line);
  else if (words.isRemote(node)) found(REMOTE, node.line);
  else found(rule("HIGH", "hidden-command", "runs a command that is not known before"), node.line);
}

/** Returns the level of what is said of the command itself. */
function assessNamed(
  name: string,
  given: readonly Word[],
  node: SyntaxNode,
  shell: Shell,
  depth: number,
): Rule["level"] {
  const levels: Rule["level"][] = [];
  const found = (rated: Rule): void => {
    levels.push(rated.level);
    shell.found(rated, node.line);
  };
  const key = name
    .replace(/^mkfs\..*/, "mkfs")
    .replace(/^(?:ncat|netcat)$/, "nc")
    .replace(/^\.$/, "source");
  const own = Object.hasOwn(COMMAND_RULES, key) ? COMMAND_RULES[key] : undefined;
  const wrapped = wrappedCommand(name, given);
  if (wrapped !== undefined) {
    if (own !== undefined && name !== "env") found(own);
    found(rule("LOW", "wrapper", `runs a command through ${name}`));
    assessWords(wrapped, node, shell, depth + 1);
    return maxRisk(levels);
  }
  const interpreter = Object.hasOwn(INTERPRETERS, name) ? INTERPRETERS[name] : undefined;
  if (interpreter !== undefined) {
    found(rule("LOW", "interpreter", `runs ${name}`));
    assessInput(interpreter, given, node, shell);
  }
  found(own ?? rule("LOW", "command", `runs ${name.slice(0, 64)}`));
  const texts = given.map((word) => word.text);
  const lines = texts.join("\n").slice(0, MAX_TEXT);
  for (const [command, telling, rated] of TELLING) if (command.test(name) && telling.test(lines)) found(rated);
  for (const [command, option, use] of PATH_OPTIONS) {
    if (command.test(name)) for (const [, path] of lines.matchAll(option)) found(pathRule(path!, use));
  }
  for (const path of paths(name, texts)) found(path);
  const special = Object.hasOwn(SPECIAL, key) ? SPECIAL[key] : undefined;
  special?.({ given, texts, node, shell, found, depth });
  return maxRisk(levels);
}

/** The command that `sudo -u x env A=b command …` comes to, without the first wrapper; undefined if there is none. */
function wrappedCommand(name: string, given: readonly Word[]): readonly Word[] | undefined {
  const wrapper = WRAPPERS.get(name);
  if (wrapper === undefined) return undefined;
  let { words } = wrapper;
  for (let at = 0; at < given.length; at++) {
    const { text } = given[at]!;
    const isAssignment = /^[A-Za-z_]\w*=/.test(text) && /^(?:env|sudo|doas)$/.test(name);
    if (text.startsWith("-") && text !== "-") at += text.length === 2 && wrapper.valued.includes(text[1]!) ? 1 : 0;
    else if (!isAssignment && words-- <= 0) return given.slice(at);
  }
  return undefined;
}

/** What the arguments that are paths are used for. */
function* paths(name: string, texts: readonly string[]): Generator<Rule> {
  const use = Object.hasOwn(PATH_ARGUMENTS, name) ? PATH_ARGUMENTS[name] : undefined;
  const plain = texts.filter((text) => !text.startsWith("-") && !/\s/.test(text));
  const candidates = FIRST_IS_TEXT.has(name) ? plain.slice(1) : plain;
  for (const [index, text] of candidates.entries()) {
    const isUsed = use !== undefined && (use.which === "all" || (index === candidates.length - 1 && index > 0));
    const rated = pathRule(text, isUsed ? use.use : "read");
    // Reading in the workspace is what the command's own rule says.
    if (isUsed || rated.level !== "LOW") yield rated;
  }
}

interface Invocation {
  readonly given: readonly Word[];
  readonly texts: readonly string[];
  readonly node: SyntaxNode;
  readonly shell: Shell;
  readonly found: (rule: Rule) => void;
  readonly depth: number;
}

/** Commands whose arguments are commands, or decide together. */
const SPECIAL: Readonly<Record<string, (invocation: Invocation) => void>> = {
  rm({ texts, found }) {
    if (texts.some((text) => !text.startsWith("-") && isEverything(text)))
      found(rule("CRITICAL", "recursive-deletion", "deletes everything"));
  },
  find({ given, texts, found, shell, node, depth }) {
    const runs = [...texts.keys()].filter((index) => /^-(?:exec|execdir|ok|okdir)$/.test(texts[index]!));
    if (runs.length > MAX_WRAPPERS) found(rule("HIGH", "too-nested", "runs more commands than are looked at"));
    for (const index of runs.slice(0, MAX_WRAPPERS)) {
      const end = texts.findIndex((other, at) => at > index && /^[;+]$|^\\;$/.test(other));
      const inner = given.slice(index + 1, end === -1 ? undefined : end);
      if (/^(?:.*\/)?(?:rm|unlink|shred)$/.test(inner[0]?.text ?? "")) found(DELETES_FOUND);
      assessWords(inner, node, shell, depth + 1);
    }
  },
  eval({ given, node, shell, found }) {
    found(rule("HIGH", "dynamic-code", "runs text as a command"));
    assessCode(
      given.map((word) => word.node),
      given.map((word) => word.text).join(" "),
      "bash",
      node,
      shell,
    );
  },
  source({ given: [file], node, shell, found }) {
    if (file?.node.type === "process_substitution") assessCode([file.node], file.text, "bash", node, shell);
    else if (file !== undefined) found(pathRule(file.text, "read"));
  },
  trap({ texts, node, shell }) {
    const code = texts.find((text) => !text.startsWith("-"));
    if (code !== undefined) shell.findings.nested.push({ code, language: "bash", line: node.line });
  },
  alias({ texts, node, shell }) {
    for (const text of texts.filter((one) => one.includes("="))) {
      shell.findings.nested.push({ code: text.slice(text.indexOf("=") + 1), language: "bash", line: node.line });
    }
  },
  nc({ node, found }) {
    const pipeline = node.around("pipeline")?.text.slice(0, 4096) ?? "";
    if (/\b(?:ba|z|k|da)?sh\b/.test(pipeline)) found(REVERSE_SHELL);
  },
};
