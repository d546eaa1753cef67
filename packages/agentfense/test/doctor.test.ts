import { expect, test } from "vitest";
import { identityOf } from "../../../test/support/identity.ts";
import { agentfense } from "./run-cli.ts";
import { describeForBoth } from "./sandbox-places.ts";

interface Report {
  readonly working: readonly string[];
  readonly findings: readonly {
    readonly check: string;
    readonly verdict: "ok" | "warning" | "failure";
    readonly summary: string;
    readonly fix?: string;
    readonly concerns: readonly string[];
    readonly blocks: readonly string[];
  }[];
}

const CHECKS = [
  "node",
  "kernel",
  "fuse-device",
  "fusermount3",
  "fuse-passthrough",
  "bwrap",
  "user-namespaces",
  "max-user-namespaces",
  "apparmor",
  "seccomp",
  "limits",
  "perl",
  "setpriv",
  "network-helper",
  "docker",
  "toolchains",
];

describeForBoth("agentfense doctor", (as) => {
  // The machine that runs the tests runs sandboxes too, so here the doctor must be content with it.
  const surroundings = { cwd: "/", identity: identityOf(as), env: { DOCKER_HOST: "unix:///nowhere/docker.sock" } };

  test("says one line for each check, how to fix what is not well, and what works", async () => {
    const { code, stdout, stderr } = await agentfense(["doctor"], surroundings);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const lines = stdout.trimEnd().split("\n");
    expect(lines).toHaveLength(CHECKS.length + 1);
    for (const line of lines.slice(0, -1)) expect(line).toMatch(/^(✓ [^→]+|[!✗] .+ {2}→ .+)$/);
    expect(lines.at(-1)).toBe("works here: bwrap");
  });

  test("--json has the same for programs", async () => {
    const { code, stdout } = await agentfense(["doctor", "--json"], surroundings);
    const report = JSON.parse(stdout) as Report;
    expect(code).toBe(0);
    expect(report.working).toEqual(["bwrap"]);
    expect(report.findings.map(({ check }) => check)).toEqual(CHECKS);
    for (const { verdict, fix, check } of report.findings) {
      expect({ check, hasFix: fix !== undefined }).toEqual({ check, hasFix: verdict !== "ok" });
    }
    expect(report.findings.find(({ check }) => check === "user-namespaces")?.verdict).toBe("ok");
    expect(report.findings.filter(({ verdict }) => verdict === "failure")).toEqual([]);
  });

  test("--runtime speaks of one runtime only, and ends with 1 when that does not work", async () => {
    const { code, stdout } = await agentfense(["doctor", "--runtime", "docker"], surroundings);
    expect(code).toBe(1);
    expect(stdout).toContain("! no Docker engine answers at /nowhere/docker.sock (ENOENT)");
    expect(stdout).not.toContain("bwrap");
    expect(stdout).toMatch(/no runtime works here\n$/);
    expect((await agentfense(["doctor", "--runtime", "bwrap"], surroundings)).code).toBe(0);
  });
});
