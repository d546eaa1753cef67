import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { type Architecture, SYSCALL_NUMBERS } from "../../../src/isolation/seccomp/numbers.ts";

const X64_HEADER = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h";
const GENERIC_HEADER = "/usr/include/asm-generic/unistd.h";

// What arch/arm64 asks of the generic table.
const ARM64_CHOICES = ["NEW_STAT", "RENAMEAT", "SET_GET_RLIMIT", "TIME32_SYSCALLS", "SYS_CLONE3", "MEMFD_SECRET"];

const NOT_CALLS = new Set(["syscalls", "arch_specific_syscall"]);

function x64FromHeader(): Map<string, number> {
  return definitions(readFileSync(X64_HEADER, "utf8"));
}

function arm64FromHeader(): Map<string, number> {
  const choices = ARM64_CHOICES.map((choice) => `-D__ARCH_WANT_${choice}`);
  const input = "#include <asm-generic/unistd.h>\n";
  return definitions(execFileSync("cc", ["-E", "-dM", ...choices, "-"], { input, encoding: "utf8" }));
}

/** Calls whose name differs between 32 and 64 bits are defined by way of a third name. */
function definitions(header: string): Map<string, number> {
  const found = [...header.matchAll(/^#define __NR_(\w+) (\w+)$/gm)].map(([, name, value]) => [name!, value!] as const);
  const aliases = new Map([...header.matchAll(/^#define (__NR3264_\w+) (\d+)$/gm)].map((one) => [one[1]!, one[2]!]));
  return new Map(
    found.filter(([name]) => !NOT_CALLS.has(name)).map(([name, value]) => [name, Number(aliases.get(value) ?? value)]),
  );
}

/** Both tables up to the last number both know, in order. */
function common(ours: ReadonlyMap<string, number>, theirs: ReadonlyMap<string, number>) {
  const last = Math.min(Math.max(...ours.values()), Math.max(...theirs.values()));
  return [ours, theirs].map((table) =>
    [...table].filter(([, number]) => number <= last).sort(([a, x], [b, y]) => x - y || a.localeCompare(b)),
  );
}

const SOURCES: readonly { architecture: Architecture; path: string; read: () => Map<string, number> }[] = [
  { architecture: "x64", path: X64_HEADER, read: x64FromHeader },
  { architecture: "arm64", path: GENERIC_HEADER, read: arm64FromHeader },
];

describe.each(SOURCES)("the numbers of $architecture", ({ architecture, path, read }) => {
  const reason = existsSync(path) ? "" : ` (skipped: ${path} is not installed)`;

  test.skipIf(reason !== "")(`are those of the kernel's header${reason}`, () => {
    const theirs = read();
    expect(theirs.size).toBeGreaterThan(300);
    // Two calls that came to x86-64 later, in a gap below numbers that were taken already.
    const ours = new Map(SYSCALL_NUMBERS[architecture]);
    for (const late of ["uretprobe", "uprobe"]) if (!theirs.has(late)) ours.delete(late);
    const [mine, header] = common(ours, theirs);
    expect(mine).toEqual(header);
  });

  test("are each given once", () => {
    const numbers = SYSCALL_NUMBERS[architecture];
    expect(new Set(numbers.values()).size).toBe(numbers.size);
  });
});

test("the calls since 424 have one number everywhere, the last one listns", () => {
  const late = (architecture: Architecture) => [...SYSCALL_NUMBERS[architecture]].filter(([, number]) => number >= 424);
  expect(late("x64")).toEqual(late("arm64"));
  expect(late("x64").at(-1)).toEqual(["listns", 470]);
});
