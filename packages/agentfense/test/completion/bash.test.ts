import { execFileSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { agentfense, scratch } from "../run-cli.ts";

let script: string;

beforeAll(async () => {
  const { code, stdout, stderr } = await agentfense(["completion", "bash"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  script = stdout;
});

/** What a fresh bash offers when Tab is pressed behind this line. */
function offered(line: string, cwd = "/"): string[] {
  // As readline does it: "=" is a word of its own.
  const words = line.split(/(=)| /).filter((word) => word !== undefined && word !== "");
  if (/[ =]$/.test(line)) words.push("");
  if (line.endsWith("=")) words.pop();
  const ask = `
    ${script}
    COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")})
    COMP_CWORD=${words.length - 1}
    _agentfense agentfense "\${COMP_WORDS[COMP_CWORD]}"
    printf '%s\\n' "\${COMPREPLY[@]}"
  `;
  const output = execFileSync("bash", ["--noprofile", "--norc", "-c", ask], { cwd, encoding: "utf8" });
  return output.split("\n").filter((word) => word !== "");
}

describe("bash completes", () => {
  test.each([
    ["agentfense ", expect.arrayContaining(["run", "init", "policy", "sandbox", "completion", "help", "--help"])],
    ["agentfense se", ["serve", "session", "secret"]],
    ["agentfense policy ", ["explain", "learn", "lint", "simulate", "tree"]],
    ["agentfense codebase ver", ["versions"]],
    ["agentfense help po", ["policy"]],
    ["agentfense help policy l", ["learn", "lint"]],
    ["agentfense run --pre", ["--preset"]],
    ["agentfense run --preset ", ["agent-safe", "read-only", "full-access", "development", "view-only"]],
    ["agentfense run --preset dev", ["development"]],
    ["agentfense run --preset=dev", ["development"]],
    ["agentfense run --runtime ", ["bwrap", "docker"]],
    ["agentfense run --network=", ["none", "filtered", "private", "host"]],
    ["agentfense run --network=p", ["private"]],
    ["agentfense run --apply=", ["success", "always"]],
    ["agentfense policy tree --d", ["--depth"]],
    ["agentfense policy tree --depth ", []],
    ["agentfense sandbox create --sync ", ["on-exec", "manual", "never"]],
    ["agentfense sandbox list --status r", ["running"]],
    ["agentfense completion ", ["bash", "zsh", "fish"]],
    ["agentfense frobnicate --", []],
    ["agentfense run -- np", []],
  ])("%j", (line, words) => {
    expect(offered(line)).toEqual(words);
  });

  test("directories where a directory is meant, files where a file is, names with blanks whole", async () => {
    const cwd = await scratch();
    await mkdir(join(cwd, "a directory"));
    await writeFile(join(cwd, "a file"), "");
    expect(offered("agentfense run a", cwd)).toEqual(["a directory"]);
    expect(offered("agentfense run --delta a", cwd)).toEqual(["a directory"]);
    expect(offered("agentfense run --rules a", cwd).sort()).toEqual(["a directory", "a file"]);
    // The value of --network has to be joined, so a directory is meant here.
    expect(offered("agentfense run --network a", cwd)).toEqual(["a directory"]);
  });

  test("the script registers itself", () => {
    const output = execFileSync("bash", ["--noprofile", "--norc", "-c", `${script}\ncomplete -p agentfense`], {
      encoding: "utf8",
    });
    expect(output).toContain("-F _agentfense agentfense");
  });
});
