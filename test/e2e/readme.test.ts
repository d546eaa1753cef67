import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const repository = join(import.meta.dirname, "../..");
const reason = process.geteuid?.() === 0 ? "" : " (skipped: a network and a /var/lib of its own need root)";

/** The commands below a heading of the README, as they are printed. */
function commandsOf(heading: string): string {
  const readme = readFileSync(join(repository, "README.md"), "utf8");
  const section = readme.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  const block = section.match(/```sh\n(.*?)```/s)?.[1];
  if (block === undefined) throw new Error(`no commands below ${heading}`);
  return block;
}

// The commands use the ports and directories they name, so they get a network and a /var/lib of their own.
const APART = 'ip link set lo up && mount -t tmpfs tmpfs /var/lib && exec bash -eumo pipefail -c "$0"';

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function runApart(script: string): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(
      "unshare",
      ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", APART, script],
      { cwd: repository, timeout: 100_000, env: { PATH: process.env.PATH ?? "", HOME: "/root" } },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : 1, stdout, stderr }),
    );
  });
}

describe.skipIf(reason !== "")(`the README${reason}`, () => {
  test("its walk through the server with curl works as printed", async () => {
    const { code, stdout, stderr } = await runApart(`${commandsOf("A server")}\nwait\n`);
    expect({ code, stdout, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toContain("SANDBOX_STATUS_RUNNING");
    expect(stdout).toMatch(/README\.md\n(?:.*\n)*src\n/);
    expect(stdout).toContain("cat: .env: No such file or directory");
    expect(stdout).toContain("total"); // of wc, from the codebase
    expect(stdout).toMatch(/"path":"\/workspace\/\.env"/);
    expect(stdout).not.toContain("signing.key");
  }, 120_000);
});
