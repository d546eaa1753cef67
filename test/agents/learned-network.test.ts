import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { reasonAgainst } from "../support/identity.ts";
import { Machine } from "./machine.ts";

const reason = reasonAgainst("root");

test.skipIf(reason !== undefined)(
  `--learn lets a command reach what nobody listed, and prints a list with which it does so again${reason ? `: skipped, ${reason}` : ""}`,
  async () => {
    const top = mkdtempSync(join(tmpdir(), "agentfense-learned-"));
    onTestFinished(() => rmSync(top, { recursive: true, force: true }));
    const project = join(top, "project");
    mkdirSync(project);
    const run = async (...options: string[]) => {
      const line = [
        "for host in example.com api.openai.com; do",
        "curl -sk -o /dev/null --max-time 20 https://$host/ && echo $host; done; true",
      ].join(" ");
      const machine = new Machine(mkdtempSync(join(top, "machine-")), { edit: { path: "", content: "" }, says: "" });
      const [program, ...args] = machine.argv(["agentfense", "run", ...options, project, "--", line]);
      return await promisify(execFile)(program, args, { env: machine.env() });
    };
    const learned = await run("--learn");
    expect(learned.stdout).toBe("example.com\napi.openai.com\n");
    expect(learned.stderr).toContain('network:\n  allow:\n    - "api.openai.com:443"\n    - "example.com:443"\n');
    const options = /^--allow .*$/m.exec(learned.stderr)![0];
    expect(options).toBe("--allow api.openai.com:443 --allow example.com:443");
    expect((await run(...options.split(" "))).stdout).toBe(learned.stdout);
  },
);
