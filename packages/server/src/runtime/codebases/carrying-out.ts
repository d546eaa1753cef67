import type { Step } from "../../isolation/codebase/steps.ts";
import { filesIn } from "../store/growth.ts";
import type { VersionChangeRecord } from "../store/store.ts";
import type { PathChange } from "./content.ts";

/** A change as the journal has it. */
export interface CarriedChange {
  readonly changes: readonly VersionChangeRecord[];
  readonly steps: readonly Step[];
  /** Files and links among them, a moved one once; directories come and go with them. */
  readonly filesChanged: number;
}

/** How the disk gets there, when all content is staged: `staged` names it by path. */
export function stepsFor(
  changes: readonly PathChange[],
  version: number,
  staged: (change: PathChange) => string,
): CarriedChange {
  const { records, keptName } = recorded(changes, version);
  const leaving: Step[] = [];
  const shutting: Step[] = [];
  const opening: Step[] = [];
  const arriving: Step[] = [];
  for (const change of changes) {
    const { path, before, after } = change;
    // A file or link takes a file's or link's place at once; all else must leave first.
    const replaces =
      before !== undefined && before.kind !== "directory" && after !== undefined && after.kind !== "directory";
    if (before?.kind === "file") {
      if (replaces) arriving.push({ do: "keep", path, as: keptName(path) });
      else leaving.push({ do: "retire", path, as: keptName(path) });
    } else if (before?.kind === "symlink" && !replaces) leaving.push({ do: "unlink", path });
    if (before?.kind === "directory" && after?.kind !== "directory") shutting.push({ do: "removeDirectory", path });
    if (after?.kind === "directory") {
      opening.push({ do: before?.kind === "directory" ? "setMode" : "makeDirectory", path, mode: after.mode });
    } else if (after?.kind === "file") {
      arriving.push({ do: "place", path, staged: staged(change), mode: after.mode });
    } else if (after?.kind === "symlink") arriving.push({ do: "link", path, target: after.target });
  }
  const steps = [...leaving, ...shutting.reverse(), ...opening, ...arriving];
  return { changes: records, steps, filesChanged: changes.filter(concernsFile).length };
}

/** The same for a rename: `moved` says where each path comes from. Nothing is at the new paths but new directories. */
export function stepsForMove(
  changes: readonly PathChange[],
  version: number,
  moved: ReadonlyMap<string, string>,
): CarriedChange {
  const { records, keptName } = recorded(changes, version);
  const opening: Step[] = [];
  const moving: Step[] = [];
  const shutting: Step[] = [];
  for (const { path, before, after } of changes) {
    if (after?.kind === "directory") opening.push({ do: "makeDirectory", path, mode: after.mode });
    if (before?.kind === "directory") shutting.push({ do: "removeDirectory", path });
    if (after?.kind === "symlink") moving.push({ do: "link", path, target: after.target });
    if (before?.kind === "symlink") moving.push({ do: "unlink", path });
    if (after?.kind !== "file") continue;
    const from = moved.get(path)!;
    moving.push({ do: "keep", path: from, as: keptName(from) }, { do: "move", path: from, to: path });
  }
  const steps = [...opening, ...moving, ...shutting.reverse()];
  return { changes: records, steps, filesChanged: changes.filter(({ after }) => filesIn(after) > 0).length };
}

/** The changes as they are recorded, with names for the content that they replace: kept/<version>/0, 1 … */
function recorded(changes: readonly PathChange[], version: number) {
  const names = new Map<string, string>();
  const records = changes.map(({ path, before, after }): VersionChangeRecord => {
    const isFile = before?.kind === "file";
    if (isFile) names.set(path, String(names.size));
    return { version, path, before, after, keptAs: isFile ? `${version}/${names.get(path)}` : "" };
  });
  return { records, keptName: (path: string): string => names.get(path)! };
}

function concernsFile({ before, after }: PathChange): boolean {
  return filesIn(before) + filesIn(after) > 0;
}
