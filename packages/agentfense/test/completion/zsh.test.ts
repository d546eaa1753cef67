import { spawn, spawnSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { agentfense, scratch } from "../run-cli.ts";

const driver = join(import.meta.dirname, "../fixtures/at-a-terminal.py");
const missing =
  spawnSync("zsh", ["--version"]).status !== 0
    ? "zsh is not installed"
    : process.getuid?.() !== 0
      ? "a terminal with a user of its own takes root"
      : undefined;

/** What is typed (Tab is \t), and the arguments that agentfense is then called with. */
const LINES: readonly (readonly [typed: string, args: string])[] = [
  ["poli\t", "policy"],
  ["policy tr\t", "policy tree"],
  ["help polic\tli\t", "help policy lint"],
  ["run --pres\tdeve\t", "run --preset=development"],
  ["run --runtime doc\t", "run --runtime docker"],
  ["run --network=pri\t", "run --network=private"],
  ["policy tree --dep\t2", "policy tree --depth=2"],
  ["sandbox list --status=ru\t", "sandbox list --status=running"],
  ["completion fi\t", "completion fish"],
  ["run proj\t", "run project/?"],
];

/** The lines of .zshrc that load the script, by the two ways there are. */
const LOADED: readonly (readonly [how: string, file: string, lines: string])[] = [
  ["sourced", "completion.zsh", "autoload -Uz compinit && compinit -u -D\nsource ~/completion.zsh"],
  ["found in $fpath", "functions/_agentfense", "fpath=(~/functions $fpath)\nautoload -Uz compinit && compinit -u -D"],
];

describe(`zsh completes${missing === undefined ? "" : ` (skipped: ${missing})`}`, () => {
  test.skipIf(missing !== undefined).each(LOADED)("with the script %s", async (_how, file, lines) => {
    const home = await scratch();
    for (const directory of ["project", "functions"]) await mkdir(join(home, directory));
    const { stdout: script } = await agentfense(["completion", "zsh"]);
    await writeFile(join(home, file), script);
    await writeFile(join(home, ".zshrc"), `${lines}\nagentfense() { print -r -- "GOT:$*:" }\nPROMPT='READY> '\n`);
    const steps = LINES.flatMap(([typed, args]) => [
      { wait: "READY> ", type: `agentfense ${typed}\r` },
      { wait: `GOT:${args} ?:` },
    ]);
    const child = spawn("python3", [driver], { stdio: ["pipe", "pipe", "inherit"] });
    child.stdin.end(
      JSON.stringify({
        argv: ["/usr/bin/env", "zsh", "-d", "-i"],
        env: { PATH: process.env.PATH, HOME: home, ZDOTDIR: home, TERM: "xterm", LC_ALL: "C" },
        ...{ uid: 0, gid: 0, cwd: home, size: [200, 50] },
        steps: [...steps, { wait: "READY> ", type: "exit\r" }],
      }),
    );
    expect(await json(child.stdout)).toMatchObject({ code: 0 });
  });
});

describe("fish", () => {
  const noFish = spawnSync("fish", ["--version"]).status !== 0 ? "fish is not installed" : undefined;

  test.skipIf(noFish !== undefined)(`completes${noFish === undefined ? "" : ` (skipped: ${noFish})`}`, async () => {
    const { stdout: script } = await agentfense(["completion", "fish"]);
    const offered = (line: string): string[] =>
      spawnSync("fish", ["--no-config", "-c", `${script}\ncomplete -C '${line}'`], { encoding: "utf8" })
        .stdout.split("\n")
        .filter((row) => row !== "")
        .map((row) => row.split("\t")[0]!);
    expect(offered("agentfense policy ")).toEqual(["explain", "learn", "lint", "simulate", "tree"]);
    expect(offered("agentfense run --preset ").sort()).toEqual([
      "agent-safe",
      "development",
      "full-access",
      "read-only",
      "view-only",
    ]);
  });
});
