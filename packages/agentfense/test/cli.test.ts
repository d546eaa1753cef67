import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { allCommands } from "../src/command.ts";
import { FAMILIES } from "../src/commands.ts";
import { commandHelp } from "../src/help.ts";
import { agentfense, scratch } from "./run-cli.ts";

describe("help and version", () => {
  test.each([[["--help"]], [["-h"]], [["help"]], [[]]])("agentfense %j lists the commands", async (args) => {
    const { code, stdout, stderr } = await agentfense(args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    for (const word of Object.keys(FAMILIES)) expect(stdout).toMatch(new RegExp(`^(\\w+)? +${word} +\\S`, "m"));
  });

  test("the list of commands fits on a screen of 24 lines and 100 columns", async () => {
    const lines = (await agentfense(["--help"])).stdout.trimEnd().split("\n");
    expect(lines.length).toBeLessThanOrEqual(24);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100);
  });

  test("every command is where its first word says, and every member of a family has its line", async () => {
    for (const [word, { load }] of Object.entries(FAMILIES)) {
      const commands = await load();
      const [first] = commands;
      if (commands.length === 1 && first!.name === word) continue;
      expect(commands.filter(({ name, summary }) => !name.startsWith(`${word} `) || !summary)).toEqual([]);
    }
  });

  test("help COMMAND is what COMMAND --help is", async () => {
    for (const name of ["run", "policy tree", "policy"]) {
      const asked = await agentfense(["help", ...name.split(" ")]);
      expect(asked).toEqual(await agentfense([...name.split(" "), "--help"]));
      expect(asked).toMatchObject({ code: 0, stderr: "" });
      expect(asked.stdout).toContain(`Usage: agentfense ${name} `);
    }
  });

  test("help and completion load nothing of the engine, the server or the network", async () => {
    for (const args of [["--help"], ["--version"], ["completion", "bash"], ["policy", "--help"], ["help", "init"]]) {
      const { loaded, code } = await modulesLoadedBy(args);
      expect({ code, args }).toEqual({ code: 0, args });
      expect(
        loaded.filter((url) =>
          /packages\/(server|fuse|protocol\/src\/generated)\/|koffi|@connectrpc|@bufbuild/.test(url),
        ),
      ).toEqual([]);
      expect(loaded.some((url) => url.endsWith("/main.ts"))).toBe(true);
    }
  });

  test("what runs here loads nothing of the service or the network", async () => {
    for (const args of [
      ["run", "--explain", "--", "true"],
      ["mount", "/nowhere", "/nowhere"],
      ["diff", "--delta", "/nowhere"],
      ["doctor"],
    ]) {
      const { loaded } = await modulesLoadedBy(args);
      expect(
        loaded.filter((url) =>
          /server\/src\/(service|runtime)\/|packages\/protocol\/src\/generated\/|@connectrpc|@bufbuild/.test(url),
        ),
      ).toEqual([]);
      expect(loaded.some((url) => url.includes("/server/src/isolation/"))).toBe(true);
    }
  });

  test("a family lists its own commands", async () => {
    const { code, stdout, stderr } = await agentfense(["policy", "--help"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const names = ["explain", "learn", "lint", "simulate", "tree"].map((name) => `  policy ${name}`);
    expect(stdout.match(/^ {2}\w+ \w+/gm)?.sort()).toEqual(names);
  });

  test("every command has a help of its own, with each of its options, in lines of a terminal", async () => {
    for (const command of await allCommands(FAMILIES)) {
      const help = commandHelp(command);
      expect(help.split("\n")[0]).toMatch(new RegExp(`^Usage: agentfense ${command.name} `));
      expect(help).toContain("\n  -h, --help        this text\n");
      for (const { name } of Object.values(command.options).flat())
        expect(help).toMatch(new RegExp(`--(no-)?${name}\\b`));
      expect(help.split("\n").filter((line) => line.length > 132)).toEqual([]);
    }
  });

  test("--version prints the version of the package", async () => {
    const { version } = JSON.parse(await readFile(join(import.meta.dirname, "../package.json"), "utf8")) as {
      version: string;
    };
    expect(await agentfense(["--version"])).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  });
});

describe("a command given wrongly ends with 2, a reason and a hint", () => {
  test.each([
    [["moutn"], "unknown command moutn", "did you mean mount?"],
    [["frobnicate"], "unknown command frobnicate; there are: agent, run, shell,", "agentfense --help"],
    [
      ["--frobnicate=x"],
      "unknown option --frobnicate=x",
      "options stand behind their command: agentfense COMMAND --frobnicate …",
    ],
    [["--hlep"], "unknown option --hlep", "did you mean --help?"],
    [["policy"], "policy needs a subcommand", "agentfense policy --help"],
    [["policy", "expalin"], "unknown command policy expalin", "did you mean policy explain?"],
    [["help", "moutn"], "unknown command moutn", "did you mean mount?"],
    [["mount", "--frobnicate", "a", "b"], "Unknown option '--frobnicate'", "agentfense mount --help"],
    [["mount", "--no-xattr", "a", "b"], "Unknown option '--no-xattr'", "did you mean --no-xattrs?"],
    [["run", "--presett", "x", "--", "true"], "Unknown option '--presett'", "did you mean --preset?"],
    [["policy", "tree", "--preset", "agent-sfae", "/"], 'no preset "agent-sfae"', "did you mean agent-safe?"],
    [["policy", "tree", "a", "b"], "policy tree takes one directory", "agentfense policy tree --help"],
    [["completion"], "completion takes a shell: bash, zsh, fish", "agentfense completion --help"],
    [["completion", "zhs"], "no completion for zhs", "did you mean zsh?"],
    [["\u001b[31mred"], "unknown command \\x1b[31mred", "agentfense --help"],
  ])("agentfense %j", async (args, reason, hint) => {
    const { code, stdout, stderr } = await agentfense(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/^agentfense: .*\nhint: .*\n$/s);
    expect(stderr).toContain(`agentfense: ${reason}`.replace("agentfense: no preset", "no preset"));
    expect(stderr).toContain(`\nhint: ${hint}\n`);
  });
});

/** The URLs of the modules that a command line loads. */
async function modulesLoadedBy(args: readonly string[]) {
  const place = await scratch();
  const record = join(place, "loaded");
  const hook = join(place, "hook.mjs");
  await writeFile(
    hook,
    `import { appendFileSync } from "node:fs";
import { registerHooks } from "node:module";
registerHooks({ load(url, context, next) { appendFileSync(${JSON.stringify(record)}, url + "\\n"); return next(url, context); } });
`,
  );
  const { code } = await agentfense(args, { env: { NODE_OPTIONS: `--import=${hook}` } });
  return { code, loaded: (await readFile(record, "utf8")).split("\n") };
}
