import type { FileInfo } from "@agentfense/sdk";
import { tableText } from "../table.ts";
import { showSize, showTime } from "../wording.ts";

/** Files of a codebase or of a sandbox's view, one a line. */
export function filesTable(files: readonly FileInfo[]): string {
  const hasLevels = files.some(({ permission }) => permission !== undefined);
  return tableText(
    ["MODE", ...(hasLevels ? ["LEVEL"] : []), "SIZE", "MODIFIED", "PATH"],
    files.map(({ mode, permission = "", kind, size, modifiedAt, path, target }) => [
      mode.toString(8).padStart(4, "0"),
      ...(hasLevels ? [permission] : []),
      kind === "directory" ? "-" : showSize(size),
      showTime(modifiedAt),
      `${path}${kind === "directory" ? "/" : ""}${target === "" ? "" : ` -> ${target}`}`,
    ]),
    { right: ["SIZE"] },
  );
}
