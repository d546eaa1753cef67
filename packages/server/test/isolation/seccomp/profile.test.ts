import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Action } from "../../../src/isolation/seccomp/filter.ts";
import type { Architecture } from "../../../src/isolation/seccomp/numbers.ts";
import { POLICY } from "../../../src/isolation/seccomp/policy.ts";
import { dockerSeccompProfile } from "../../../src/isolation/seccomp/profile.ts";
import { anyCall, nameOf, verdictOf } from "./calls.ts";
import { type Call, runNative } from "./interpreter.ts";

const [EPERM, ENOSYS] = [1, 38];
const profile = dockerSeccompProfile();

/** What the profile comes to for a call: the first rule that matches, for there are no contradictions. */
function profileVerdict({ number, args }: Call, architecture: Architecture): "allow" | number {
  const name = nameOf(number, architecture);
  const rule = profile.syscalls.find(
    ({ names, args: conditions = [] }) =>
      names.includes(name ?? "") &&
      conditions.every(({ index, value, valueTwo }) => (args[index]! & BigInt(value)) === BigInt(valueTwo)),
  );
  if (rule === undefined) return profile.defaultErrnoRet;
  return rule.action === "SCMP_ACT_ALLOW" ? "allow" : rule.errnoRet!;
}

/** The policy as far as a profile can say it: one errno for refusals by argument and unknown numbers. */
function expected(call: Call, architecture: Architecture): "allow" | number {
  const verdict = verdictOf(call, architecture);
  const name = nameOf(call.number, architecture);
  if (verdict === "allow") return "allow";
  return name !== undefined && POLICY.get(name) === ENOSYS ? ENOSYS : EPERM;
}

describe("the Docker profile", () => {
  test("has the shape the engine takes", () => {
    const { syscalls, ...rest } = profile;
    expect(rest).toEqual({
      defaultAction: "SCMP_ACT_ERRNO",
      defaultErrnoRet: 1,
      archMap: [
        { architecture: "SCMP_ARCH_X86_64", subArchitectures: [] },
        { architecture: "SCMP_ARCH_AARCH64", subArchitectures: [] },
      ],
    });
    const absent = syscalls.filter(({ action }) => action === "SCMP_ACT_ERRNO");
    expect(absent).toEqual([expect.objectContaining({ names: expect.arrayContaining(["clone3"]), errnoRet: 38 })]);
    expect(JSON.parse(JSON.stringify(profile))).toEqual(profile);
  });

  test("says clone as Docker's own does, with the time namespace besides", () => {
    expect(profile.syscalls.filter(({ names }) => names.includes("clone"))).toEqual([
      {
        names: ["clone"],
        action: "SCMP_ACT_ALLOW",
        args: [{ index: 0, op: "SCMP_CMP_MASKED_EQ", value: 0x7e02_0080, valueTwo: 0 }],
      },
    ]);
  });

  test("never asks for one argument twice in a rule, which would make alternatives of the two", () => {
    for (const { args = [] } of profile.syscalls) {
      expect(new Set(args.map(({ index }) => index)).size).toBe(args.length);
    }
  });

  test.each<Architecture>(["x64", "arm64"])("decides as the policy does on %s", (architecture) => {
    fc.assert(
      fc.property(anyCall(architecture), (call) => {
        expect(profileVerdict(call, architecture)).toBe(expected(call, architecture));
      }),
      { numRuns: 3000 },
    );
  });
});

const reason = reasonAgainstLibseccomp();

test.skipIf(reason !== "")(`libseccomp makes of the profile what the policy says${reason}`, () => {
  const architecture = process.arch as Architecture;
  const place = mkdtempSync(join(tmpdir(), "agentfense-profile-"));
  try {
    writeFileSync(join(place, "profile.json"), JSON.stringify(profile));
    const script = join(import.meta.dirname, "libseccomp.py");
    const paths = [join(place, "profile.json"), join(place, "filter")];
    const unknown = new Set(JSON.parse(execFileSync("python3", [script, ...paths], { encoding: "utf8" })) as string[]);
    const program = readFileSync(join(place, "filter"));
    fc.assert(
      fc.property(anyCall(architecture), (call) => {
        fc.pre(call.number < 0x4000_0000); // x32, another architecture to libseccomp
        const verdict = unknown.has(nameOf(call.number, architecture) ?? "") ? EPERM : expected(call, architecture);
        const value = verdict === "allow" ? Action.allow : Action.errno | verdict;
        expect(runNative(program, call, architecture).value).toBe(value);
      }),
      { numRuns: 3000 },
    );
  } finally {
    rmSync(place, { recursive: true });
  }
});

function reasonAgainstLibseccomp(): string {
  if (process.arch !== "x64" && process.arch !== "arm64") return ` (skipped: no policy for ${process.arch})`;
  try {
    execFileSync("python3", ["-c", 'import ctypes; ctypes.CDLL("libseccomp.so.2")'], { stdio: "pipe" });
    return "";
  } catch {
    return " (skipped: python3 or libseccomp.so.2 is not installed)";
  }
}
