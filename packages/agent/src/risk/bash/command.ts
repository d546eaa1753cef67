import { posix } from "node:path";
import type { Findings, Rule } from "../findings.ts";
import { isEverything, pathRule, UNKNOWN } from "../places.ts";
import type { SyntaxNode } from "../syntax/node.ts";
import {
  COMMAND_RULES,
  FIRST_IS_TEXT,
  INSTALLS,
  INTERPRETERS,
  PATH_ARGUMENTS,
  UNREAD_INTERPRETERS,
  WRAPPERS,
} from "./commands.ts";
import { assessInput } from "./input.ts";
import { isPureCommand } from "./purity.ts";
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

/** A command with its arguments, after expansion. `node` is the command in the tree, for what is piped into it. */
export function assessWords(all: readonly Word[], node: SyntaxNode, shell: Shell, depth = 0): void {
  const [first, ...given] = all;
  const { line } = node;
  if (first === undefined) return;
  if (depth > MAX_WRAPPERS) {
    shell.found({ pattern: "too-nested", level: "HIGH", reason: "wraps a command too often to be looked at" }, line);
    return;
  }
  const name = commandName(first.text);
  if (first.text.includes(UNKNOWN) || /[?*]|\[.+\]/.test(first.text)) {
    assessUnknown(first, shell);
    return;
  }
  const texts = given.map((word) => word.text);
  if (shell.functions.has(first.text) && first.node.type === "word") return;
  const rated = assessNamed(name, first, given, texts, node, shell, depth);
  if (first.isHidden) {
    const level = rated === "LOW" || rated === "SAFE" ? "HIGH" : "CRITICAL";
    shell.found(
      { pattern: "hidden-command", level, reason: `writes the command ${name} so that it is not seen` },
      line,
    );
  }
}

function commandName(text: string): string {
  return text.includes("/") ? posix.basename(posix.normalize(text)) : text;
}

/** `$x file`, `/bin/ba?h`: what is run is not known before. */
function assessUnknown(first: Word, shell: Shell): void {
  const { line } = first.node;
  if (shell.words.isDecoded(first.node)) {
    shell.found(
      { pattern: "obfuscated-code", level: "CRITICAL", reason: "runs a command that is hidden by an encoding" },
      line,
    );
  } else if (shell.words.isRemote(first.node)) {
    shell.found(
      { pattern: "remote-code", level: "CRITICAL", reason: "runs a command that comes over the network" },
      line,
    );
  } else {
    shell.found({ pattern: "hidden-command", level: "HIGH", reason: "runs a command that is not known before" }, line);
  }
}

/** Returns the level of the command's own rule. */
function assessNamed(
  name: string,
  first: Word,
  given: readonly Word[],
  texts: readonly string[],
  node: SyntaxNode,
  shell: Shell,
  depth: number,
): Rule["level"] {
  const { line } = node;
  const levels: Rule["level"][] = [];
  const found = (rule: Rule): void => {
    levels.push(rule.level);
    shell.found(rule, line);
  };
  const wrapped = wrappedCommand(name, given);
  if (wrapped !== undefined) {
    const rule = name === "env" ? undefined : ownRule(name);
    if (rule !== undefined) found(rule);
    found({ pattern: "wrapper", level: "LOW", reason: `runs a command through ${name}` });
    assessWords(wrapped, node, shell, depth + 1);
    return levels.includes("HIGH") ? "HIGH" : "LOW";
  }
  // ./echo is a file of the workspace.
  const isSystems = !first.text.includes("/") || /^\/(?:usr\/)?bin\/\w+$/.test(first.text);
  if (isSystems && isPureCommand(name, texts) && !given.some((word) => word.node.type === "process_substitution"))
    return "SAFE";
  const special = Object.hasOwn(SPECIAL, name) ? SPECIAL[name] : undefined;
  const interpreter = Object.hasOwn(INTERPRETERS, name) ? INTERPRETERS[name] : undefined;
  if (interpreter !== undefined) {
    found({ pattern: "interpreter", level: "LOW", reason: `runs ${name}` });
    assessInput(interpreter.language, interpreter.codeOption, given, node, shell);
  }
  const rule = ownRule(name) ?? (/^mkfs\./.test(name) ? COMMAND_RULES.mkfs : undefined);
  found(rule ?? { pattern: "command", level: "LOW", reason: `runs ${name.slice(0, 64)}` });
  special?.({ name, given, texts, node, shell, found, depth });
  const unread = Object.hasOwn(UNREAD_INTERPRETERS, name) ? UNREAD_INTERPRETERS[name] : undefined;
  if (unread !== undefined && texts.some((text) => unread.test(text))) {
    found({ pattern: "dynamic-code", level: "HIGH", reason: `runs ${name} code, which is not looked at` });
  }
  const install = Object.hasOwn(INSTALLS, name) ? INSTALLS[name] : undefined;
  const subcommand = texts.find((text) => install?.source.startsWith("^-") || !text.startsWith("-"));
  if (install !== undefined && subcommand !== undefined && install.test(subcommand)) {
    found({ pattern: "package-install", level: "MEDIUM", reason: "brings packages of others onto the machine" });
  }
  for (const path of paths(name, texts)) found(path);
  return levels.reduce((highest, level) => (LEVELS.indexOf(level) > LEVELS.indexOf(highest) ? level : highest), "SAFE");
}

const LEVELS: readonly Rule["level"][] = ["SAFE", "LOW", "MEDIUM", "HIGH", "CRITICAL"];

function ownRule(name: string): Rule | undefined {
  return Object.hasOwn(COMMAND_RULES, name) ? COMMAND_RULES[name] : undefined;
}

/** The command that `sudo -u x env A=b command …` comes to, without the first wrapper; undefined if there is none. */
function wrappedCommand(name: string, given: readonly Word[]): readonly Word[] | undefined {
  const wrapper = Object.hasOwn(WRAPPERS, name) ? WRAPPERS[name] : undefined;
  if (wrapper === undefined) return undefined;
  let at = 0;
  let words = wrapper.words;
  while (at < given.length) {
    const text = given[at]!.text;
    const isAssignment = /^[A-Za-z_]\w*=/.test(text) && (name === "env" || name === "sudo" || name === "doas");
    if (text.startsWith("-") && text !== "-") {
      const isValued = text.length === 2 && wrapper.valued.includes(text[1]!);
      at += isValued ? 2 : 1;
    } else if (isAssignment) {
      at++;
    } else if (words > 0) {
      words--;
      at++;
    } else {
      return given.slice(at);
    }
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
    if (isUsed) {
      yield pathRule(text, use.use);
    } else {
      const rule = pathRule(text, "read");
      // Reading in the workspace is what the command's own rule says.
      if (rule.level !== "LOW") yield rule;
    }
  }
}

interface Invocation {
  readonly name: string;
  readonly given: readonly Word[];
  readonly texts: readonly string[];
  readonly node: SyntaxNode;
  readonly shell: Shell;
  readonly found: (rule: Rule) => void;
  readonly depth: number;
}

/** Commands whose arguments make the difference. */
const SPECIAL: Readonly<Record<string, (invocation: Invocation) => void>> = {
  rm({ texts, found }) {
    const isRecursive = texts.some((text) => /^-[a-zA-Z]*[rR]|^--recursive$/.test(text));
    if (isRecursive) {
      found({ pattern: "recursive-deletion", level: "HIGH", reason: "deletes directories with everything in them" });
    }
    if (texts.some((text) => !text.startsWith("-") && isEverything(text))) {
      found({ pattern: "recursive-deletion", level: "CRITICAL", reason: "deletes everything" });
    }
  },
  find(invocation) {
    const { given, texts, found, shell, node, depth } = invocation;
    if (texts.includes("-delete")) {
      found({ pattern: "recursive-deletion", level: "HIGH", reason: "deletes whatever is found" });
    }
    const runs = [...texts.keys()].filter((index) => /^-(?:exec|execdir|ok|okdir)$/.test(texts[index]!));
    if (runs.length > MAX_WRAPPERS) {
      found({ pattern: "too-nested", level: "HIGH", reason: "runs more commands than are looked at" });
    }
    for (const index of runs.slice(0, MAX_WRAPPERS)) {
      const end = texts.findIndex((other, at) => at > index && /^[;+]$|^\\;$/.test(other));
      const inner = given.slice(index + 1, end === -1 ? undefined : end);
      if (/^(?:.*\/)?(?:rm|unlink|shred)$/.test(inner[0]?.text ?? "")) {
        found({ pattern: "recursive-deletion", level: "HIGH", reason: "deletes whatever is found" });
      }
      assessWords(inner, node, shell, depth + 1);
    }
  },
  eval({ given, node, shell, found }) {
    found({ pattern: "dynamic-code", level: "HIGH", reason: "runs text as a command" });
    assessCodeWords(given, node, shell);
  },
  source: assessSource,
  ".": assessSource,
  trap({ texts, node, shell }) {
    const code = texts.find((text) => !text.startsWith("-"));
    if (code !== undefined) shell.findings.nested.push({ code, language: "bash", line: node.line });
  },
  alias({ texts, node, shell }) {
    for (const text of texts) {
      const code = text.slice(text.indexOf("=") + 1);
      if (text.includes("=")) shell.findings.nested.push({ code, language: "bash", line: node.line });
    }
  },
  env({ texts, found }) {
    if (texts.every((text) => text.startsWith("-"))) {
      found({ pattern: "environment", level: "MEDIUM", reason: "shows the environment variables" });
    }
  },
  set({ texts, found }) {
    if (texts.length === 0) found({ pattern: "environment", level: "MEDIUM", reason: "shows all variables" });
  },
  dd({ texts, found }) {
    for (const text of texts) {
      if (text.startsWith("of=")) found(pathRule(text.slice(3), "write"));
      if (text.startsWith("if=")) found(pathRule(text.slice(3), "read"));
    }
  },
  chmod({ texts, found }) {
    if (texts.some((text) => /^[ugoa]*\+[rwx]*s|^[2467]\d{3}$|^0[2467]\d{3}$/.test(text))) {
      found({ pattern: "privilege", level: "HIGH", reason: "lets a program run as its owner" });
    }
    if (texts.some((text) => /^[ugoa]*\+[rwx]*x|^0?[0-7]*[1357][0-7]{0,2}$/.test(text))) {
      found({ pattern: "makes-executable", level: "LOW", reason: "makes a file a program" });
    }
  },
  git({ texts, found }) {
    const subcommand = texts.find(
      (text, index) => !text.startsWith("-") && texts[index - 1] !== "-c" && texts[index - 1] !== "-C",
    );
    if (/^(?:push|pull|fetch|clone|remote|submodule|ls-remote|send-email|request-pull)$/.test(subcommand ?? "")) {
      found({ pattern: "network", level: "MEDIUM", reason: "exchanges commits over the network" });
    }
    if (subcommand === "clean" && texts.some((text) => /^-\w*[fdxX]/.test(text))) {
      found({ pattern: "recursive-deletion", level: "HIGH", reason: "deletes all files that git does not know" });
    }
    if (subcommand === "reset" && texts.includes("--hard")) {
      found({ pattern: "deletion", level: "MEDIUM", reason: "discards changes that are not committed" });
    }
    if (subcommand === "config") found({ pattern: "configuration", level: "MEDIUM", reason: "changes what git does" });
    const isProgram = texts.some((text) => /^(?:--upload-pack|--receive-pack|--exec|--exec-path|-u)(?:=|$)/.test(text));
    if (
      texts.includes("-c") ||
      texts.includes("--config-env") ||
      (isProgram && subcommand !== "add" && subcommand !== "push")
    ) {
      found({ pattern: "dynamic-code", level: "HIGH", reason: "sets options of git that can name programs to run" });
    }
  },
  nc: assessNetcat,
  ncat: assessNetcat,
  netcat: assessNetcat,
  socat({ texts, found }) {
    if (texts.some((text) => /EXEC:|SYSTEM:/i.test(text))) found(REVERSE_SHELL);
  },
  ssh({ texts, found }) {
    if (texts.some((text) => /(?:Proxy|Local|Permit)\w*Command/i.test(text))) {
      found({ pattern: "dynamic-code", level: "HIGH", reason: "makes ssh run a command on this machine" });
    }
  },
  tar({ texts, found }) {
    if (
      texts.some((text) => /^--(?:checkpoint-action|to-command|use-compress-program|rsh-command)|^-\w*[IF]$/.test(text))
    ) {
      found({ pattern: "dynamic-code", level: "HIGH", reason: "makes tar run a command" });
    }
    const into = texts[texts.findIndex((text) => text === "-C" || text === "--directory") + 1];
    if (texts.includes("-C") && into !== undefined) found(pathRule(into, "write"));
  },
  awk: assessAwk,
  gawk: assessAwk,
  mawk: assessAwk,
  sed({ texts, found }) {
    const scripts = texts.map((text) => text.slice(0, 1024));
    const isRun = scripts.some((text) => SED_RUNS.test(text) || /^s(.).*\1[gimIMp0-9]*e/.test(text));
    if (isRun) found({ pattern: "dynamic-code", level: "HIGH", reason: "makes sed run a command" });
  },
  curl({ texts, found }) {
    for (const [index, text] of texts.entries()) {
      if (/^(?:-o|--output|-D|-c)$/.test(texts[index - 1] ?? "")) found(pathRule(text, "write"));
    }
  },
  wget({ texts, found }) {
    for (const [index, text] of texts.entries()) {
      if (/^(?:-O|--output-document|-P)$/.test(texts[index - 1] ?? "") && text !== "-") found(pathRule(text, "write"));
    }
  },
  python: assessModule,
  python3: assessModule,
};

const SED_RUNS = /(?:^|[;\n{}])\s*(?:\d+|\$|\/[^/]*\/)?(?:,(?:\d+|\$|\/[^/]*\/))?\s*!?e(?:\s|$)/;
const REVERSE_SHELL: Rule = { pattern: "reverse-shell", level: "CRITICAL", reason: "gives a shell to another machine" };

function assessNetcat({ texts, node, found }: Invocation): void {
  const hasProgram = texts.some((text) => /^-\w*[ec]$|^--(?:sh-)?exec/.test(text));
  const pipeline = node.around("pipeline")?.text.slice(0, 4096) ?? "";
  if (hasProgram || /\b(?:ba|z|k|da)?sh\b/.test(pipeline)) found(REVERSE_SHELL);
}

function assessAwk({ texts, found }: Invocation): void {
  if (texts.some((text) => /\bsystem\s*\(|\|\s*(?:getline|")|"\s*\|&?|@load/.test(text))) {
    found({ pattern: "dynamic-code", level: "HIGH", reason: "makes awk run a command" });
  }
}

function assessModule({ texts, found }: Invocation): void {
  const module = texts[texts.indexOf("-m") + 1];
  if (!texts.includes("-m") || module === undefined) return;
  if (/^(?:pip|ensurepip|venv)$/.test(module) && texts.some((text) => /^(?:install|download)$/.test(text))) {
    found({ pattern: "package-install", level: "MEDIUM", reason: "brings packages of others onto the machine" });
  }
  if (/^(?:http\.server|smtpd|ftplib|socketserver)$/.test(module)) {
    found({ pattern: "network", level: "MEDIUM", reason: "serves files over the network" });
  }
}

function assessSource({ given, node, shell, found }: Invocation): void {
  const [file] = given;
  if (file === undefined) return;
  if (file.node.type === "process_substitution") assessCodeWords([file], node, shell);
  else found(pathRule(file.text, "read"));
}

/** Text that is run as a command. */
function assessCodeWords(given: readonly Word[], node: SyntaxNode, shell: Shell): void {
  const { line } = node;
  if (given.some((word) => shell.words.isDecoded(word.node))) {
    shell.found(
      { pattern: "obfuscated-code", level: "CRITICAL", reason: "runs code that is hidden by an encoding" },
      line,
    );
  }
  if (given.some((word) => shell.words.isRemote(word.node))) {
    shell.found({ pattern: "remote-code", level: "CRITICAL", reason: "runs code that comes over the network" }, line);
  }
  const code = given.map((word) => word.text).join(" ");
  if (code.replaceAll(UNKNOWN, "").trim() !== "") shell.findings.nested.push({ code, language: "bash", line });
}
