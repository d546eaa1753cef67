import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { COMMANDS } from "../src/commands.ts";
import { agentfense } from "./run-cli.ts";

describe("help and version", () => {
  test.each([[["--help"]], [["-h"]], [["help"]], [[]]])("agentfense %j lists the commands", async (args) => {
    const { code, stdout, stderr } = await agentfense(args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    for (const command of ["mount", "policy explain", "policy lint", "policy tree", "serve", "sandbox exec"])
      expect(stdout).toContain(`  ${command} `);
  });

  test("a family lists its own commands", async () => {
    const { code, stdout, stderr } = await agentfense(["policy", "--help"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.match(/^ {2}\w+ \w+/gm)).toEqual(["  policy explain", "  policy lint", "  policy tree"]);
  });

  test.each(Object.keys(COMMANDS).map((name) => [name]))("%s has a help of its own", async (name) => {
    const { help } = await COMMANDS[name]!.load();
    expect(help.split("\n")[0]).toMatch(new RegExp(`^Usage: agentfense ${name} `));
    expect(help).toContain("-h, --help        this text\n");
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
    [["moutn"], "unknown command moutn", "agentfense --help"],
    [["--frobnicate"], "unknown option --frobnicate", "agentfense --help"],
    [["policy"], "policy needs a subcommand", "agentfense --help"],
    [["policy", "expalin"], "unknown command policy expalin", "agentfense --help"],
    [["mount", "--frobnicate", "a", "b"], "Unknown option '--frobnicate'", "agentfense mount --help"],
    [["policy", "tree"], "policy tree takes one directory", "agentfense policy tree --help"],
    [["\u001b[31mred"], "unknown command \\x1b[31mred", "agentfense --help"],
  ])("agentfense %j", async (args, reason, hint) => {
    const { code, stdout, stderr } = await agentfense(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(`agentfense: ${reason}`);
    expect(stderr).toContain(`Try: ${hint}\n`);
  });
});
