import {
  compileRules,
  getPreset,
  namesIn,
  PresetError,
  parseRules,
  type Rule,
  RuleError,
} from "@agentfense/permission";
import { checkStartTerms as checkShape, type StartTerms } from "../../isolation/exec/request.ts";
import { invalid, RuntimeError } from "../runtime-error.ts";
import { toRuntimeError } from "./refusals.ts";

export type { Rule };

const LARGEST = { labels: 64, labelName: 128, labelValue: 1024 };

export function checkLabels(labels: Readonly<Record<string, string>>): void {
  const entries = Object.entries(labels);
  if (entries.length > LARGEST.labels) throw invalid(`a sandbox has at most ${LARGEST.labels} labels`);
  for (const [name, value] of entries) {
    if (name === "") throw invalid("a label needs a name");
    if (Buffer.byteLength(name) > LARGEST.labelName) {
      throw invalid(`the name of a label has at most ${LARGEST.labelName} bytes`);
    }
    if (Buffer.byteLength(value) > LARGEST.labelValue) {
      throw invalid(`the value of the label ${JSON.stringify(name)} has more than ${LARGEST.labelValue} bytes`);
    }
    if (name.includes("\0") || value.includes("\0")) {
      throw invalid(`the label ${JSON.stringify(name)} contains a NUL character`);
    }
  }
}

/** Refuses what cannot be right before the sandbox is looked at, let alone resumed. */
export function checkTerms(wish: StartTerms): void {
  try {
    checkShape(wish);
  } catch (error) {
    throw toRuntimeError(error);
  }
}

/** Absent, 0, less and NaN mean the default; the isolation layer bounds the rest. */
export function timeoutOf(timeoutMs: number | undefined): { readonly timeoutMs?: number } {
  return timeoutMs !== undefined && timeoutMs > 0 ? { timeoutMs } : {};
}

/**
 * The rules of a sandbox as they are stored: those of the preset first, each with its type. Refused when one is malformed,
 * with its index among the rules of the request.
 */
export function storedRules(request: { readonly rules: readonly Rule[]; readonly preset: string }): readonly Rule[] {
  const preset = presetRules(request.preset);
  const rules = [...preset, ...request.rules];
  try {
    const { types } = compileRules(rules);
    return rules.map((rule, index) => withType(rule, types[index]!));
  } catch (error) {
    if (!(error instanceof RuleError)) throw error;
    throw refused(error, preset.length);
  }
}

/** Rules that nobody has checked, as a file has them; throws when they, or the preset beside them, cannot be a sandbox's. */
export function rulesOfData(data: unknown, preset: string): readonly Rule[] {
  const rules = parseRules(data);
  storedRules({ rules, preset });
  return rules;
}

function presetRules(name: string): readonly Rule[] {
  if (name === "") return [];
  try {
    return getPreset(name);
  } catch (error) {
    if (error instanceof PresetError) throw invalid(error.message);
    throw error;
  }
}

/** An explicit `directory` takes no wildcards; the inferred one does, and stays to be inferred. */
function withType(rule: Rule, type: NonNullable<Rule["type"]>): Rule {
  if (rule.type === type || rule.type === "file" || rule.type === "directory") return rule;
  const typed = { ...rule, type };
  try {
    compileRules([typed]);
    return typed;
  } catch {
    return { ...rule, type: "glob" };
  }
}

function refused(error: RuleError, presetLength: number): RuntimeError {
  const index = error.index < presetLength ? error.index : error.index - presetLength;
  const own = new RuleError(index, error.pattern, error.reason);
  return new RuntimeError("INVALID_ARGUMENT", `permissions: ${own.message}`, {
    details: { rule: String(index), reason: error.reason },
    cause: error,
  });
}

const WORKSPACE = "/workspace";
/** PATH_MAX of the kernel, with its NUL. */
const LONGEST_PATH_BYTES = 4095;

/**
 * A path of the workspace in its one normal form, "/src/a.ts", "/" for the root. Callers write "/src/a.ts", "src/a.ts" or
 * what a process inside would, "/workspace/src/a.ts".
 */
export function workspacePath(path: string, field = "path"): string {
  if (path === "") throw invalid(`${field} is required`);
  if (path.includes("\0")) throw invalid(`${field} contains a NUL character`);
  if (Buffer.byteLength(path) > LONGEST_PATH_BYTES)
    throw invalid(`${field} is longer than ${LONGEST_PATH_BYTES} bytes`);
  const inside = path === WORKSPACE || path.startsWith(`${WORKSPACE}/`) ? path.slice(WORKSPACE.length) : path;
  const names = namesIn(inside);
  if (names.includes("..")) throw invalid(`${field} has a .. in it; name the file from the root of the workspace`);
  return `/${names.join("/")}`;
}

/** None given: everything. */
export function workspacePaths(paths: readonly string[]): readonly string[] | undefined {
  return paths.length === 0 ? undefined : paths.map((path) => workspacePath(path, "paths"));
}

/** As the view takes it, which would read a leading "/workspace" as its own root. */
export function viewPath(normal: string): string {
  return normal === "/" ? "/" : normal.slice(1);
}
