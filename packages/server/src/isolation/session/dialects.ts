import { IsolationError, invalid } from "../backend/isolation-error.ts";

const QUOTE = 0x27;
const ESCAPED_QUOTE = Buffer.from("'\\''");

/**
 * The protocol with a shell
 *
 * The shell reads lines from descriptor 0, `commands`, and answers on `status`, which the start-up line moves from 3 to a
 * number of its own. One command is one logical line:
 *
 *     eval 'TEXT' </dev/null STATUS>&-; { printf 'agentfense-status SERIAL %s %s\n' "$?" "$-" >&STATUS; set +xv; } 2>/dev/null
 *
 * While `eval` runs, the shell itself has put both channels away at numbers above 9 that close on exec; what it starts sees
 * 0 (/dev/null), 1 and 2. `eval` makes a syntax error the failure of the command. The answer has the serial number of the
 * command, its exit status and the shell's option letters. Tracing (`set -x`, `set -v`) is off outside of TEXT; the next
 * command begins with a prefix that turns it on again and makes `$?` what the last command left.
 *
 * Signal 16 (SIGSTKFLT, which nothing sends) ends the running command: loops, functions and waiting builtins included.
 * One that comes late, after the command's end, is spent on a line made by `settle`.
 *
 * Subshells inherit the two channels, and in bash they can name them by number. So before a command and at its answer the session
 * looks from outside whether somebody else has a channel in hand, and whether the shell itself has read the command (see
 * ChannelState). The shell is still the agent's own: its functions, traps and aliases decide what a command does and answers.
 *
 * What differs from a script or a terminal, and cannot be helped:
 * - `exec <FILE` lasts for one command; so does what a command opens as descriptor 8.
 * - With `set -e` the status of the whole command counts, as it does for a function: `false && true` ends the shell.
 * - bash: `set -u` with an unset variable, and `${x?}`, end the shell, as in a script. An interruption removes a DEBUG
 *   trap; a DEBUG or ERR trap also sees the protocol's commands. PIPESTATUS does not outlive the command.
 * - dash: `kill %1` needs job control, which there is not. After `return` the positional parameters are the old ones.
 * - zsh: a syntax error turns tracing off. A program that stops itself is left behind, with exit code 128 + 19. PS1 and
 *   PS2 are emptied after each command, for it would print them.
 * - A bash that is called sh is not in its POSIX mode, in which any such error ends it.
 * - An empty command leaves `$?`, and so its own exit code, as it was.
 * - `set -n` is the end: nothing reads the next line.
 */
export interface Dialect {
  readonly name: "bash" | "posix" | "zsh";
  /** The first lines, up to an answer with this serial number. */
  startUp(serial: string): string;
  command(text: Buffer, serial: string, last: CommandState): SpokenCommand;
  /** Lines that do nothing but swallow a late signal and answer. */
  settle(serial: string): string;
}

export interface SpokenCommand {
  readonly bytes: Buffer;
  /** So many of them the shell has read when it answers, at the least. */
  readonly readBytes: number;
}

/** A command that is read to its end before it runs; `more` is read later, or never. */
function spoken(line: Buffer, more = ""): SpokenCommand {
  return { bytes: join(line, more), readBytes: line.length };
}

/** What a command left behind that the next one must find. */
export interface CommandState {
  readonly exitStatus: number;
  /** The letters of `$-`. */
  readonly options: string;
}

export const FRESH_STATE: CommandState = { exitStatus: 0, options: "" };

/** Ends the running command of any shell below. */
export const UNWIND_SIGNAL = 16;

/** The word every answer begins with. */
export const ANSWER_WORD = "agentfense-status";

/** Asks a shell of unknown kind for its name; the answer comes on descriptor 3. */
export function identify(serial: string): string {
  return `\\command printf '${ANSWER_WORD} %s 0 %s\\n' ${serial} "\${BASH_VERSION:+bash}" >&3\n`;
}

// In bash a trap cannot leave a loop or a function for good, but a DEBUG trap can, with extdebug: from then on it skips
// every command, leaves every loop and returns from every function, until the protocol's own printf comes by.
// The second answer is for errors that make bash drop the rest of the line (`exit 1 2`); usually it is one too many. The
// empty line between them is for bash as well: after a text that ends too early it loses the next character.
// SIGINT has the same trap: bash sends it to itself when a $(command) died of it.
const BASH: Dialect = {
  name: "bash",
  startUp: (serial) =>
    `exec 8>&3 3>&-; set +o posix; unset BASH_ENV; shopt -s expand_aliases; trap ${quoteText(BASH_UNWIND)} ${UNWIND_SIGNAL} INT\n` +
    bashAnswer(serial),
  command(text, serial, last) {
    const eval_ = join("\\command eval ", quote(join(prefix(last), text)), " </dev/null 8>&-; ");
    return spoken(join(eval_, bashAnswer(serial)), `\n${bashAnswer(serial)}`);
  },
  settle: (serial) => bashAnswer(serial),
};

const BASH_SKIP = `case $BASH_COMMAND in
*${ANSWER_WORD}*) trap - DEBUG; shopt -u extdebug;;
*) command break 999; command return 2; false;;
esac 2>/dev/null`;
const BASH_UNWIND = `shopt -s extdebug; trap ${quoteText(BASH_SKIP)} DEBUG`;

function bashAnswer(serial: string): string {
  return `{ ${printAnswer("\\builtin", serial, 8)}; \\builtin set +xv; } 2>/dev/null\n`;
}

// In dash and its relatives an error unwinds everything up to the next `command eval`, so the trap makes one, if a command
// runs: the outer `command eval` is there for a signal between the end of the inner one and the disarming. The function
// confines `return`, which would end the shell; what it would confine as well, `set -- a b`, is carried out of it.
const POSIX: Dialect = {
  name: "posix",
  startUp: (serial) => `exec 8>&3 3>&-; trap ${quoteText(POSIX_UNWIND)} ${UNWIND_SIGNAL}\n${posixAnswer(serial)}\n`,
  command: (text, serial, last) =>
    spoken(
      join(
        "__agentfense(){ __agentfense_runs=1; \\command eval ",
        quote(join(prefix(last), text)),
        ` </dev/null 8>&-; { __agentfense_status=$? __agentfense_runs=; ${POSIX_KEEP_WORDS}; return $__agentfense_status; } 2>/dev/null; }; `,
        `\\command eval '__agentfense "$@"'; ${posixAnswer(serial)}\n`,
      ),
    ),
  settle: (serial) => `${posixAnswer(serial)}\n`,
};

const POSIX_UNWIND = `case \${__agentfense_runs-} in 1) __agentfense_runs=; { : "\${__agentfense_runs:?}"; } 2>/dev/null;; esac`;

// The words get variables of their own, so that none needs quoting.
const POSIX_KEEP_WORDS =
  "__agentfense_words= __agentfense_count=0; for __agentfense_word do __agentfense_count=$((__agentfense_count+1)); " +
  '\\command eval "__agentfense_$__agentfense_count=\\$__agentfense_word"; ' +
  '__agentfense_words="$__agentfense_words \\"\\$__agentfense_$__agentfense_count\\""; done';

function posixAnswer(serial: string): string {
  return (
    `{ ${printAnswer("\\command", serial, 8)}; \\command set +xv; __agentfense_runs=; ` +
    `\\command eval "\${__agentfense_words+set -- $__agentfense_words}"; \\command unset __agentfense_words; } 2>/dev/null`
  );
}

// zsh knows both: a trap function that fails interrupts whatever runs, and `always` runs after whatever happened.
const ZSH: Dialect = {
  name: "zsh",
  startUp: (serial) =>
    "exec 8>&3 3>&-; PS1= PS2= HISTSIZE=0 SAVEHIST=0; unset HISTFILE; TRAPSTKFLT() { return 130 }; setopt " +
    "interactivecomments rmstarsilent nobanghist nocheckjobs nohup nonotify nopromptcr nopromptsp nobeep\n" +
    zshAnswer(serial),
  command: (text, serial, last) =>
    spoken(
      join(
        "{ \\builtin eval ",
        quote(join(prefix(last), text)),
        ` </dev/null 8>&- } always { { ${printAnswer("\\builtin", serial, 8)}; \\builtin set +xv; PS1= PS2= } 2>/dev/null; `,
        "TRY_BLOCK_ERROR=0 TRY_BLOCK_INTERRUPT=0 }\n",
      ),
    ),
  // The interruption may take a whole line with it.
  settle: (serial) => `:\n${zshAnswer(serial)}${zshAnswer(serial)}`,
};

function zshAnswer(serial: string): string {
  return `{ ${printAnswer("\\builtin", serial, 8)} } 2>/dev/null\n`;
}

function printAnswer(builtin: string, serial: string, descriptor: number): string {
  return `${builtin} printf '${ANSWER_WORD} %s %s %s\\n' ${serial} "$?" "$-" >&${descriptor}`;
}

/**
 * Makes `$?` and tracing what the last command left; nothing when that is what they are. The function removes itself. `&&:`
 * keeps `set -e` and ERR traps from taking the old status for a new failure. Tracing comes with a line of its own, for
 * a syntax error in the first line of the command must not lose it.
 */
function prefix({ exitStatus, options }: CommandState): string {
  const tracing = (options.includes("x") ? "x" : "") + (options.includes("v") ? "v" : "");
  const status = `__agentfense_last(){ unset -f __agentfense_last; return ${exitStatus}; };`;
  if (tracing !== "") {
    const keep = exitStatus === 0 ? "" : "&&:";
    return `${status}{ set -${tracing}; __agentfense_last; } 2>/dev/null${keep}\n`;
  }
  return exitStatus === 0 ? "" : `${status}__agentfense_last&&:;`;
}

function quoteText(text: string): string {
  return quote(Buffer.from(text)).toString();
}

/** The bytes as one word for any shell, in single quotes. */
function quote(text: Buffer): Buffer {
  const parts: Buffer[] = [Buffer.of(QUOTE)];
  let start = 0;
  for (let at = text.indexOf(QUOTE); at >= 0; at = text.indexOf(QUOTE, start)) {
    parts.push(text.subarray(start, at), ESCAPED_QUOTE);
    start = at + 1;
  }
  parts.push(text.subarray(start), Buffer.of(QUOTE));
  return Buffer.concat(parts);
}

function join(...parts: readonly (string | Buffer)[]): Buffer {
  return Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part)));
}

/** How one shell is started, and how it is spoken to. */
export interface Shell {
  readonly path: string;
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  /** Undefined when only the running program can tell which shell it is. */
  readonly dialect: Dialect | undefined;
}

// Every shell reads its commands from descriptor 0 (-s) and no start-up file: bash is kept from $BASH_ENV by an empty
// value, zsh from its files by -f. zsh is interactive, without editor and job control, because only then an error, a
// `return` or an interruption ends the command and not the shell.
const SHELLS: Readonly<Record<string, Omit<Shell, "path" | "argv"> & { readonly options: readonly string[] }>> = {
  bash: { options: ["--norc", "--noprofile", "-s"], env: { BASH_ENV: "" }, dialect: BASH },
  sh: { options: ["-s"], env: { BASH_ENV: "" }, dialect: undefined },
  dash: { options: ["-s"], env: {}, dialect: POSIX },
  zsh: { options: ["-f", "-i", "+m", "+Z", "-s"], env: {}, dialect: ZSH },
};

const NAMES = Object.keys(SHELLS).join(", ");

/** The dialect of a `sh`, by its own answer to `IDENTIFY`. */
export function dialectOf(answer: string): Dialect {
  return answer === "bash" ? BASH : POSIX;
}

/**
 * Finds the asked shell among those the box has (absolute paths). `NAME`, `/bin/NAME` and `/usr/bin/NAME` are the same
 * shell; nothing asked is the box's first one.
 */
export function findShell(asked: string | undefined, available: readonly string[]): Shell {
  const name = asked === undefined ? undefined : shellName(asked);
  const path = name === undefined ? available[0] : pick(name, asked!, available);
  if (path === undefined) {
    throw new IsolationError("PROGRAM_NOT_FOUND", `the sandbox has no ${name ?? "shell"}`, {
      hint: available.length > 0 ? `it has ${available.join(", ")}` : "use an image or a root directory with a shell",
    });
  }
  const { options, env, dialect } = SHELLS[baseName(path)] ?? SHELLS.sh!;
  return { path, argv: [path, ...options], env, dialect };
}

function shellName(asked: string): string {
  const name = /^(?:\/bin\/|\/usr\/bin\/)?([a-z]+)$/.exec(asked)?.[1];
  if (name !== undefined && Object.hasOwn(SHELLS, name)) return name;
  throw invalid(`not a shell for sessions: ${JSON.stringify(asked)}`, `use one of ${NAMES}`);
}

function pick(name: string, asked: string, available: readonly string[]): string | undefined {
  return available.includes(asked) ? asked : available.find((path) => baseName(path) === name);
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
