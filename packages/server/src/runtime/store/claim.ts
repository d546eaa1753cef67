import { mkdir, readdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { isCodebaseName } from "../../isolation/codebase/layout.ts";
import { lockPlace } from "../../isolation/instance/home-directory.ts";
import { isSandboxId } from "../ids.ts";

export interface StoragePlaces {
  /** The database's file. */
  readonly database: string;
  /** The directory of the codebases, which takes care of its own lock. */
  readonly codebases: string;
  readonly deltas: string;
}

/**
 * Makes sure that what is stored at these places is this server's alone and belongs together: a start removes what the
 * database does not know.
 */
export async function claimStorage({ database, codebases, deltas }: StoragePlaces): Promise<Disposable> {
  await mkdir(dirname(database), { recursive: true, mode: 0o700 });
  await mkdir(deltas, { recursive: true, mode: 0o700 });
  using undo = new DisposableStack();
  undo.use(lockPlace(`${database}.lock`, "file", `the database ${database}`));
  undo.use(lockPlace(deltas, "directory", `the directory ${deltas}`));
  if (await isNew(database)) {
    refuseUnknown(codebases, "codebase", (await namesIn(codebases)).filter(isCodebaseName), database);
    refuseUnknown(deltas, "sandbox", (await namesIn(deltas)).filter(isSandboxId), database);
  }
  return undo.move();
}

function refuseUnknown(directory: string, what: string, names: readonly string[], database: string): void {
  if (names.length === 0) return;
  const found = `${directory} holds ${names.length} ${what}(s) that a new database does not know`;
  throw new Error(`${found}: is ${database} the right one? If it is, move the directory away first`);
}

/** SQLite takes an empty file for a new database. */
async function isNew(database: string): Promise<boolean> {
  const size = await stat(database).then(
    (entry) => entry.size,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return 0;
      throw error;
    },
  );
  return size === 0;
}

/** None where there is no such directory. */
export async function namesIn(directory: string): Promise<string[]> {
  return await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
}
