import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
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
  using undo = new DisposableStack();
  undo.use(lockPlace(`${database}.lock`, "file", `the database ${database}`));
  undo.use(await lockDeltas(deltas));
  if (await isNew(database)) {
    refuseUnknown(codebases, "codebase", (await namesIn(codebases)).filter(isCodebaseName), database);
    refuseUnknown(deltas, "sandbox", (await namesIn(deltas)).filter(isSandboxId), database);
  }
  return undo.move();
}

/** Nobody else on this machine has the directory then, which is made if absent. */
export async function lockDeltas(deltas: string): Promise<Disposable> {
  await mkdir(deltas, { recursive: true, mode: 0o700 });
  return lockPlace(deltas, "directory", `the directory ${deltas}`);
}

// A database elsewhere cannot be told from another by its place, so it and the directories have a name in common: a UUID, in
// the database and in a file of each directory.
const NAME_FILE = ".database";

interface Directories {
  readonly codebases: string;
  readonly deltas: string;
  /** What is around the deltas. */
  readonly mounts: string;
}

/**
 * Makes sure that the directories are those of a database that has this name for them; "": it is new, and gets the name that
 * is given back. A start removes what the database does not know.
 */
export async function claimDirectories({ codebases, deltas, mounts }: Directories, known: string) {
  const directories = [codebases, mounts];
  const here = await placeOnMachine(deltas);
  if (known !== "") {
    for (const directory of directories) {
      const name = await readName(directory);
      if (name === known) continue;
      const has = name === "" ? "no files of a database" : "files of another database";
      throw Object.assign(new Error(`${directory} has ${has}`), {
        hint: `give the server the directories that it had with this database; if these are they, write ${known} into ${join(directory, NAME_FILE)}`,
      });
    }
    return { place: known, here };
  }
  refuseUnknown(codebases, "codebase", (await namesIn(codebases)).filter(isCodebaseName), "that of storage.database");
  refuseUnknown(deltas, "sandbox", (await namesIn(deltas)).filter(isSandboxId), "that of storage.database");
  const name = randomUUID();
  for (const directory of directories) await writeName(directory, name);
  return { place: name, here };
}

/** Another for each start of the machine, for each machine, and for each directory. */
async function placeOnMachine(directory: string): Promise<string> {
  const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8");
  const { dev, ino } = await stat(directory, { bigint: true });
  return `${boot.trim()}/${dev}/${ino}`;
}

async function readName(directory: string): Promise<string> {
  const text = await readFile(join(directory, NAME_FILE), "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw error;
  });
  return text.trim();
}

async function writeName(directory: string, name: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, NAME_FILE);
  await writeFile(`${path}.new`, `${name}\n`, { mode: 0o600, flush: true });
  await rename(`${path}.new`, path);
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
