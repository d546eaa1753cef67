import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { agentfense, scratch } from "./run-cli.ts";

const RULES = '- { pattern: "/src/**", permission: read }\n- { pattern: "/dist/**", permission: write }\n';

async function simulate(audit: string, ...options: string[]) {
  const cwd = await scratch();
  await writeFile(join(cwd, "rules.yaml"), RULES);
  await writeFile(join(cwd, "audit"), audit);
  return await agentfense(["policy", "simulate", ...options, "rules.yaml", "--against", "audit"], { cwd });
}

describe("agentfense policy simulate", () => {
  test("says what rules would have refused of a record, each path by the most that was done with it", async () => {
    const record = [
      { path: "/src/a.ts", level: "view" },
      { path: "/src/a.ts", level: "write" },
      { path: "/dist/a.js", level: "write" },
      { path: "/README.md", level: "read" },
      { path: "/dist", level: "view" },
      { path: "/packages", level: "view" },
    ];
    const { code, stdout } = await simulate(record.map((line) => JSON.stringify(line)).join("\n"));
    expect({ code, stdout }).toEqual({
      code: 1,
      stdout: [
        "refused  /src/a.ts  needs write, has read (rule 0: /src/**)",
        "refused  /README.md  needs read, has none (no rule matches)",
        "refused  /packages  needs view, has none (no rule matches)",
        "3 of 5 paths refused",
        "",
      ].join("\n"),
    });
  });

  test("takes the refusals of an audit log, and events about something else", async () => {
    const events = [
      { type: "exec_started", data: { command: "ls" } },
      { type: "permission_denied", data: { path: "/workspace/src/a.ts", operation: "open", permission: "view" } },
      { type: "permission_denied", data: { path: "/workspace/.env", operation: "lookup", permission: "none" } },
    ];
    const { code, stdout } = await simulate(JSON.stringify(events), "--json");
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toEqual({
      operations: 2,
      refused: [{ path: "/.env", needs: "view", has: "none", rule: -1, pattern: "" }],
    });
    const allowed = await simulate('{"path":"/dist/x","level":"write"}\n');
    expect(allowed).toMatchObject({ code: 0, stdout: "0 of 1 path refused\n" });
  });

  test.each([
    ["no JSON", "audit:1 is no JSON"],
    ["5", "audit:1 is neither a record nor an event"],
  ])("refuses an audit that is none: %s", async (audit, message) => {
    const { code, stderr } = await simulate(audit);
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
  });
});
