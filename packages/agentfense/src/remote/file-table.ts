import { type FileInfo, FileInfoSchema } from "@agentfense/protocol/codebase";
import { printTable } from "../table/table.ts";
import { jsonOf, printJson, showSize, showTime } from "./show.ts";
import { PERMISSIONS, wordFor } from "./words.ts";

/** Files of a codebase or of a sandbox's view, one a line. */
export async function showFiles(files: readonly FileInfo[], json: boolean): Promise<void> {
  if (json) return printJson(files.map((file) => jsonOf(FileInfoSchema, file)));
  const levels = files.some(({ permission }) => permission !== 0);
  await printTable(
    ["MODE", ...(levels ? ["LEVEL"] : []), "SIZE", "MODIFIED", "PATH"],
    files.map((file) => [
      file.mode.toString(8).padStart(4, "0"),
      ...(levels ? [wordFor(PERMISSIONS, file.permission)] : []),
      file.isDir ? "-" : showSize(file.size),
      showTime(file.modifiedAt),
      `${file.path}${file.isDir ? "/" : ""}${file.symlinkTarget === "" ? "" : ` -> ${file.symlinkTarget}`}`,
    ]),
    { right: ["SIZE"] },
  );
}
