import { FileFault } from "../files/file-fault.ts";
import { nameOf } from "../files/paths.ts";
import type { MountedFiles } from "./mounted-files.ts";

// In a pattern a backslash takes its meaning from what follows: that is how quoted text stands in it.

const WILDCARD = /(?<!\\)(?:\\\\)*[*?[]/;

/** Quoted text, for a pattern. */
export function literally(text: string): string {
  return text.replace(/[\\*?[\]]/g, "\\$&");
}

/** The paths that a pattern stands for, in order; undefined when it is none, or nothing matches. */
export function expandPattern(pattern: string, cwd: string, files: MountedFiles): string[] | undefined {
  if (!WILDCARD.test(pattern)) return undefined;
  const isAbsolute = pattern.startsWith("/");
  let found = [isAbsolute ? "/" : ""];
  for (const segment of pattern.split("/").slice(isAbsolute ? 1 : 0)) {
    found = found.flatMap((at) => step(at, segment, cwd, files));
  }
  const there = found.filter((path) => files.exists(files.resolve(cwd, path)));
  return there.length === 0 ? undefined : there.sort();
}

function step(at: string, segment: string, cwd: string, files: MountedFiles): string[] {
  const prefix = at === "" || at.endsWith("/") ? at : `${at}/`;
  if (!WILDCARD.test(segment)) return [prefix + segment.replace(/\\(.)/g, "$1")];
  const expression = expressionFor(segment);
  try {
    const names = files.list(files.resolve(cwd, at === "" ? "." : at)).map(({ path }) => nameOf(path));
    const shown = names.filter((name) => !name.startsWith(".") || segment.startsWith("."));
    return shown.filter((name) => expression.test(name)).map((name) => prefix + name);
  } catch (error) {
    if (error instanceof FileFault) return [];
    throw error;
  }
}

function expressionFor(segment: string): RegExp {
  const source = segment.replace(/\\.|\[!?[^\]]*\]|[*?.+^${}()|[\]]/g, (sign) => {
    if (sign === "*") return ".*";
    if (sign === "?") return ".";
    if (sign.length > 2 && sign.startsWith("[")) return sign.replace(/^\[!/, "[^");
    return sign.length === 2 && sign.startsWith("\\") ? `\\${sign[1]}` : `\\${sign}`;
  });
  return new RegExp(`^${source}$`, "s");
}
