import type { ApplyOutcome, ApplyResult, Change, ProcessInfo } from "@agentfense/sdk";
import { paintDiff, paintMark } from "../changes/colours.ts";
import { UsageError } from "../command-failure.ts";
import { option } from "../option.ts";
import { print, printJsonLine } from "../output.ts";
import { serverCommand } from "../remote/command.ts";
import { filesTable, OUTPUT_FILE, writeTo } from "../remote/files.ts";
import { NOT_RUN } from "../run/command-output.ts";
import { environment, timeout, WORKDIR } from "../shared-options.ts";
import { tableText } from "../table.ts";
import { paintFor, printable } from "../terminal.ts";
import { counted, countsText, KIND_LETTERS, numberIn, shownPath, showSize, showTime } from "../wording.ts";

// What runs in a sandbox, its files, and what it changed.

const VARIABLE = environment("a variable");

/** A line for the shell, or a program with its arguments. */
function asCommand([first = "", ...rest]: readonly string[]): string | readonly [string, ...string[]] {
  return rest.length === 0 ? first : [first, ...rest];
}

/** A tag begins with a letter. */
function whichProcess(which: string): number | string {
  return /^[0-9]{1,9}$/.test(which) ? Number(which) : which;
}

const exec = serverCommand({
  name: "sandbox exec",
  summary: "run a command in a sandbox",
  about: `Runs COMMAND in a running sandbox. With arguments it is run as it stands; COMMAND alone is a line for the shell. Its output
is passed on as it comes, input from a pipe or a file (3 MiB at most) is passed in. Ctrl-C ends it.`,
  options: { "": [timeout("kill it after 30s, 10m … (default and maximum: the server's)"), VARIABLE, WORKDIR] },
  takes: ["SANDBOX"],
  passes: "-- COMMAND [ARGUMENT…]",
  notes: `With --json, one object at the end: { exitCode, signal, timedOut, outOfMemory, durationMs, syncedVersion, syncProblems,
stdout, stderr }.

Exit codes: that of the command; 128 + n when signal n killed it; 124 when its time was up; 125 when it could not be run;
2 when this command was given wrongly; 130 after Ctrl-C.`,
  handlesClosedOutput: true,
  failureCode: NOT_RUN,
  jsonForm: "own",
  async run({ client, values: { env = [], workdir, timeout: timeoutMs }, given: [id], command, json }) {
    const { followCommand, readInput } = await import("../remote/exec.ts");
    const options = { env: Object.fromEntries(env), workdir, timeoutMs, stdin: await readInput() };
    return await followCommand((signal) => client.execStream(id, asCommand(command), { ...options, signal }), json);
  },
});

const spawn = serverCommand({
  name: "sandbox spawn",
  summary: "start a process in a sandbox that stays",
  about: `Starts COMMAND in a running sandbox, prints its number, and leaves it running: until it ends, the sandbox is stopped, or its
time is up. With arguments it is run as it stands; COMMAND alone is a line for the shell.`,
  options: {
    "": [
      option({ name: "tag", value: "NAME", about: "another name for it, for attach and kill" }),
      option({
        name: "input",
        about: 'keep an input open for "sandbox attach --input"; otherwise it reads an end of file',
      }),
      option({ name: "terminal", about: 'run it on a terminal of its own, for "sandbox attach --terminal"' }),
      timeout("kill it with all that it started after 30s, 10m … (default: never)"),
      VARIABLE,
      WORKDIR,
    ],
  },
  takes: ["SANDBOX"],
  passes: "-- COMMAND [ARGUMENT…]",
  async run({ client, values, given: [id], command }) {
    const { tag, input: stdin, env = [], workdir, timeout: timeoutMs } = values;
    const { terminalSize } = await import("../run/raw-terminal.ts");
    const terminal = values.terminal ? terminalSize() : undefined;
    const options = { tag, stdin, terminal, env: Object.fromEntries(env), workdir, timeoutMs };
    return `${(await client.startProcess(id, asCommand(command), options)).number}\n`;
  },
});

const ps = serverCommand({
  name: "sandbox ps",
  summary: "what runs in a sandbox",
  about: `What runs in a sandbox, by number: started processes, commands, sessions and terminals. Behind them started processes that
ended lately, with how they ended.`,
  takes: ["SANDBOX"],
  jsonForm: { list: "processes" },
  run: async ({ client, given: [id] }) => processesTable(await client.listProcesses(id)),
});

const attach = serverCommand({
  name: "sandbox attach",
  summary: "the output of a process in a sandbox, as it comes",
  about:
    "The last output of a started process, then what comes, until it has ended. Ctrl-C detaches, and leaves the process running.",
  options: {
    "": [
      option({ name: "input", about: "pass on the input from here; its end is that of the process's input" }),
      option({
        name: "terminal",
        about: `for a process on a terminal of its own: every key goes to it, Ctrl-C too, and it follows the size of the
terminal here, which this needs; Ctrl-] detaches, with exit code 0`,
      }),
    ],
  },
  takes: ["SANDBOX", "NUMBER|TAG"],
  notes: `Exit codes: that of the process; 128 + n when signal n killed it; 124 when its time was up; 125 when it cannot be attached to;
2 when this command was given wrongly; 130 after Ctrl-C.`,
  handlesClosedOutput: true,
  failureCode: NOT_RUN,
  jsonForm: "own",
  async run({ client, values: { input, terminal }, given: [id, which], json }) {
    const { attachOutput, attachTerminal } = await import("../remote/exec.ts");
    const process = { client, sandboxId: id, process: whichProcess(which) };
    if (!terminal) return await attachOutput(process, { input: input === true, json });
    if (input || json) throw new UsageError("--terminal goes with neither --input nor --json");
    return await attachTerminal(process);
  },
});

const kill = serverCommand({
  name: "sandbox kill",
  summary: "send a signal to a process in a sandbox",
  about: "Sends a signal to a process of a sandbox and all that it started.",
  options: {
    "": [
      option({
        name: "signal",
        value: "NAME",
        about: "TERM, SIGINT, 9 … (default KILL, which nothing of it survives)",
      }),
    ],
  },
  takes: ["SANDBOX", "NUMBER|TAG"],
  async run({ client, values: { signal = "KILL" }, given: [id, which] }) {
    await client.signalProcess(id, whichProcess(which), signal);
    return "";
  },
});

const forward = serverCommand({
  name: "sandbox forward",
  summary: "reach a port of a sandbox at one of this machine",
  usage: "[OPTIONS] SANDBOX PORT[:LOCAL]",
  about: `Makes what listens at PORT of a running sandbox reachable at a port of this machine, on loopback alone: at LOCAL, or else at the
same number; 0 takes any that is free. Any number of connections, any protocol over TCP, until interrupted. Prints where it is.`,
  takes: ["SANDBOX", "PORT"],
  jsonForm: "own",
  run: async ({ client, given: [id, ports], json }) =>
    await (await import("../remote/forward.ts")).forward(client, id, ports, json),
});

const ls = serverCommand({
  name: "sandbox ls",
  summary: "a directory as the sandbox sees it",
  about: "A directory as the sandbox sees it, with the level of each path. The sandbox must be running.",
  options: { "": [option({ name: "recursive", short: "r", about: "with all that is below" })] },
  takes: ["SANDBOX", "[DIRECTORY]"],
  jsonForm: { list: "files" },
  run: async ({ client, values: { recursive }, given: [id, path = "/"] }) =>
    filesTable(await client.listDirectory(id, path, { recursive })),
});

const read = serverCommand({
  name: "sandbox read",
  summary: "a file as the sandbox sees it",
  about: "A file as the sandbox sees it: its rules apply. The sandbox must be running.",
  options: { "": [OUTPUT_FILE] },
  takes: ["SANDBOX", "PATH"],
  jsonForm: "own",
  run: async ({ client, values: { output }, given: [id, path] }) => await writeTo(output, client.readFile(id, path)),
});

const write = serverCommand({
  name: "sandbox write",
  summary: "write a file of a sandbox, as far as its rules allow",
  about:
    "Writes FILE, or what comes on stdin, to a file of the sandbox, as far as its rules allow. The sandbox must be running.",
  options: {
    "": [
      option({ name: "append", about: "after what is there" }),
      option({
        name: "mode",
        value: "MODE",
        about: "permission bits of a new file, in octal (default 644)",
        parse: fileMode,
      }),
    ],
  },
  takes: ["SANDBOX", "PATH", "[FILE]"],
  async run({ client, values: { append, mode }, given: [id, path, file] }) {
    const info = await client.writeFile(id, path, await contentOf(file), { append, mode });
    return `${printable(info.path)}  ${showSize(info.size)}\n`;
  },
});

function fileMode(text: string, spelling: string): number {
  if (/^0?[0-7]{3}$/.test(text)) return Number.parseInt(text, 8);
  throw new UsageError(`${spelling} takes three octal digits, not ${JSON.stringify(text)}`);
}

/** Opened before anything is sent, so that a name that is wrong costs nothing. */
async function contentOf(file: string | undefined): Promise<AsyncIterable<Uint8Array>> {
  if (file === undefined || file === "-") return process.stdin;
  const { open } = await import("node:fs/promises");
  const handle = await open(file, "r").catch((error: Error) => {
    throw new UsageError(`cannot read FILE: ${printable(error.message)}`);
  });
  return handle.createReadStream();
}

const changes = serverCommand({
  name: "sandbox changes",
  summary: "what a sandbox changed",
  about: `What the sandbox changed and has not written to its codebase: A added, M modified, D deleted, R renamed, directory by
directory, with ! for what a machine may run or trust unasked; then, counted for each directory, I what the codebase's
.gitignore files name.`,
  options: { "": [option({ name: "all", about: "every change, in path order; so does --json" })] },
  takes: ["SANDBOX"],
  jsonForm: { list: "changes" },
  async run({ client, values, given: [id], json }) {
    const all = await client.listChanges(id, { fold: !json && values.all !== true }).toArray();
    const lines = all.map((change) => {
      const facts = change.folded === undefined ? "" : `  (${countsText(change.folded)})`;
      return `${changeLine(change)}${facts}  ${showSize(change.size)}\n`;
    });
    const total = all.reduce((sum, change) => sum + numberIn(change), 0);
    return `${lines.join("")}${total === 0 ? "no changes" : counted(total, "change")}\n`;
  },
});

const diff = serverCommand({
  name: "sandbox diff",
  summary: "what a sandbox changed, as a unified diff",
  about: `What the sandbox changed and has not written to its codebase, as a unified diff; with PATHs, only there and below. Control
characters in names and content are escaped. With --json, one object a line.`,
  options: {
    "": [option({ name: "raw", about: "a patch, as git diff --binary has it, for git apply; not to a terminal" })],
  },
  takes: ["SANDBOX", "[PATH…]"],
  async run({ client, values: { raw = false }, given: [id], more, json, answers }) {
    if (raw && process.stdout.isTTY) throw new UsageError("--raw goes to a file or a pipe, not to a terminal");
    const paint = paintFor(process.stdout, process.env);
    for await (const { unified, change } of client.diffChanges(id, { ...pathsOf(more), patch: raw })) {
      if (json) for (const answer of answers.splice(0)) await printJsonLine(answer);
      else if (raw) await print(unified);
      else await print(unified === "" ? `${changeLine(change)}\n` : paintDiff(unified, paint));
    }
    return 0;
  },
});

const apply = serverCommand({
  name: "sandbox apply",
  summary: "write a sandbox's changes into its codebase",
  about: `Writes what the sandbox changed into its codebase as a new version, as far as its rules allow; with PATHs, only there and
below. ! marks what a machine may run or trust unasked. Exits 1 if something was left out.`,
  options: {
    "": [
      option({ name: "hold-executables", about: "leave what ! marks in the sandbox" }),
      option({ name: "dry-run", about: "say what would happen, and change nothing" }),
    ],
  },
  takes: ["SANDBOX", "[PATH…]"],
  async run({ client, values, given: [id], more }) {
    const { "dry-run": dryRun = false, "hold-executables": holdExecutables } = values;
    const result = await client.applyChanges(id, { ...pathsOf(more), dryRun, holdExecutables });
    return { text: appliedText(result, dryRun), code: result.outcomes.every(({ applied }) => applied) ? 0 : 1 };
  },
});

const discard = serverCommand({
  name: "sandbox discard",
  summary: "throw away changes of a sandbox",
  usage: ["[OPTIONS] SANDBOX PATH…", "--all [OPTIONS] SANDBOX"],
  about: "Throws away what the sandbox changed at the PATHs and below them, and has not written to its codebase.",
  options: { "": [option({ name: "all", about: "everything it changed" })] },
  takes: ["SANDBOX", "[PATH…]"],
  async run({ client, values, given: [id], more }) {
    if ((values.all === true) === more.length > 0) throw new UsageError("sandbox discard takes paths, or --all");
    const discarded = await client.discardChanges(id, pathsOf(more));
    const lines = discarded.map((change) => `${changeLine(change)}\n`);
    return `${lines.join("")}${counted(discarded.length, "change")} discarded\n`;
  },
});

export const INSIDE = [exec, spawn, ps, attach, kill, forward, ls, read, write, changes, diff, apply, discard];

/** None that is named means all of them. */
function pathsOf(paths: readonly string[]): { readonly paths?: readonly string[] } {
  return paths.length === 0 ? {} : { paths };
}

function processesTable(processes: readonly ProcessInfo[]): string {
  return tableText(
    ["NUMBER", "TAG", "KIND", "STATE", "STARTED", "ENDED", "COMMAND"],
    processes.map((process) => [
      String(process.number),
      process.tag,
      process.kind,
      processState(process),
      showTime(process.startedAt),
      showTime(process.endedAt),
      process.command,
    ]),
    { right: ["NUMBER"] },
  );
}

function processState({ state, end }: ProcessInfo): string {
  if (end === undefined) return state;
  const why = end.timedOut ? "time was up" : end.outOfMemory ? "out of memory" : end.signal;
  return `exit ${end.exitCode}${why === undefined ? "" : ` (${why})`}`;
}

/** "M  /src/a.ts": A, M, D or R, a mark for what deserves a look, and the path; for a rename where it was, too. */
function changeLine(change: Change): string {
  const letter = change.folded ? "I" : KIND_LETTERS[change.kind];
  const mark = paintMark(letter, change.sensitive ? "!" : " ", paintFor(process.stdout, process.env));
  return `${mark} ${change.oldPath === "" ? "" : `${printable(change.oldPath)} -> `}${shownPath(change)}`;
}

function appliedText({ version, outcomes }: ApplyResult, dryRun: boolean): string {
  if (outcomes.length === 0) return "no changes\n";
  const applied = outcomes.filter((outcome) => outcome.applied).length;
  const total = [
    `${counted(applied, "change")} ${dryRun ? "would be applied" : "applied"}`,
    ...(applied < outcomes.length ? [`${outcomes.length - applied} left out`] : []),
    ...(version === 0 ? [] : [`version ${version}`]),
  ];
  return `${outcomes.map(outcomeLine).join("")}${total.join(", ")}\n`;
}

function outcomeLine({ change, applied, reason, sensitive, conflict }: ApplyOutcome): string {
  const remarks = [
    ...(applied ? [] : ["left out"]),
    ...(reason === "" ? [] : [printable(reason)]),
    ...(conflict ? ["replaces newer work of somebody else"] : []),
    ...(sensitive ? ["a machine may run or trust this unasked"] : []),
  ];
  return `${changeLine(change)}${remarks.length > 0 ? `  (${remarks.join("; ")})` : ""}\n`;
}
