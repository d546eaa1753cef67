import { FileFault } from "../../files/file-fault.ts";
import type { ViewEntry } from "../../files/guarded-view.ts";
import { Complaint, type Program, type ProgramRun, pathOf } from "../program.ts";

type Check = (run: ProgramRun, value: string) => boolean;

const CHECKS: Readonly<Record<string, Check>> = {
  "-e": (run, path) => entryAt(run, path) !== undefined,
  "-f": (run, path) => entryAt(run, path)?.kind === "file",
  "-d": (run, path) => entryAt(run, path)?.kind === "directory",
  "-s": (run, path) => (entryAt(run, path)?.size ?? 0) > 0,
  "-L": (run, path) => entryAt(run, path, false)?.kind === "symlink",
  "-r": (run, path) => ["read", "write"].includes(entryAt(run, path)?.permission ?? ""),
  "-w": (run, path) => entryAt(run, path)?.permission === "write",
  "-z": (_run, text) => text === "",
  "-n": (_run, text) => text !== "",
};

const COMPARISONS: Readonly<Record<string, (one: string, other: string) => boolean>> = {
  "=": (one, other) => one === other,
  "==": (one, other) => one === other,
  "!=": (one, other) => one !== other,
  "-eq": (one, other) => Number(one) === Number(other),
  "-ne": (one, other) => Number(one) !== Number(other),
  "-lt": (one, other) => Number(one) < Number(other),
  "-le": (one, other) => Number(one) <= Number(other),
  "-gt": (one, other) => Number(one) > Number(other),
  "-ge": (one, other) => Number(one) >= Number(other),
};

/** `test` and `[`: one condition, perhaps negated. */
export const test: Program = async (run) => {
  const args = [...run.args];
  if (run.name === "[" && args.pop() !== "]") throw new Complaint("missing `]'", 2);
  const isNegated = args[0] === "!";
  if (isNegated) args.shift();
  return holds(run, args) === isNegated ? 1 : 0;
};

function holds(run: ProgramRun, args: readonly string[]): boolean {
  const [first = "", second = "", third = ""] = args;
  if (args.length <= 1) return first !== "";
  const check = CHECKS[first];
  if (args.length === 2 && check !== undefined) return check(run, second);
  const comparison = COMPARISONS[second];
  if (args.length === 3 && comparison !== undefined) return comparison(first, third);
  throw new Complaint(args.length > 3 ? "too many arguments" : `${first}: unary operator expected`, 2);
}

function entryAt(run: ProgramRun, path: string, follow = true): ViewEntry | undefined {
  try {
    return run.files.stat(pathOf(run, path), { follow });
  } catch (error) {
    if (error instanceof FileFault) return undefined;
    throw error;
  }
}
