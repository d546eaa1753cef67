import { readFileSync } from "node:fs";
import { basename, extname, join } from "node:path";
import type { Origin } from "./markdown.ts";

export const REPOSITORY = join(import.meta.dirname, "../..");

/** How a block of such a file is announced to whoever colours it; a file without an ending goes by its name. */
const LANGUAGES: Readonly<Record<string, string>> = {
  ".ts": "ts",
  ".sh": "sh",
  ".py": "python",
  ".yaml": "yaml",
  ".json": "json",
  ".service": "ini",
  ".out": "text",
  Dockerfile: "dockerfile",
};

/** What a file says, or a region of it: between `#region NAME` and `#endregion` in comments. */
export function sourceOf({ file, region }: Origin): { readonly info: string; readonly text: string } {
  const info = LANGUAGES[extname(file)] ?? LANGUAGES[basename(file)];
  if (info === undefined) throw new Error(`${file}: blocks cannot come from this kind of file`);
  const lines = readFileSync(join(REPOSITORY, file), "utf8").trimEnd().split("\n");
  const chosen = region === undefined ? lines : regionOf(lines, region, file);
  return { info, text: withoutIndentation(chosen.filter((line) => !MARKER.test(line))).join("\n") };
}

const MARKER = /^\s*(?:\/\/|#) #(?:region \S+|endregion)$/;

function regionOf(lines: readonly string[], region: string, file: string): readonly string[] {
  const starts = lines.flatMap((line, at) => (MARKER.test(line) && line.endsWith(`#region ${region}`) ? [at] : []));
  if (starts.length !== 1) throw new Error(`${file} has ${starts.length} regions ${region}`);
  const start = starts[0]!;
  const end = lines.findIndex((line, at) => at > start && MARKER.test(line));
  if (end === -1 || !lines[end]!.endsWith("#endregion")) throw new Error(`${file}: the region ${region} does not end`);
  return lines.slice(start + 1, end);
}

function withoutIndentation(lines: readonly string[]): readonly string[] {
  const depths = lines.filter((line) => line.trim() !== "").map((line) => line.length - line.trimStart().length);
  const depth = Math.min(...depths);
  return lines.map((line) => line.slice(Math.min(depth, line.length)));
}
