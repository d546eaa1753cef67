import { mkdirSync, realpathSync, statSync } from "node:fs";
import module from "node:module";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";

const WRITABLE_BY_OTHERS = 0o022;

/**
 * From here on modules that this process loads are kept as they were compiled, in the user's directory for caches, and the
 * next process has only to read them. Whoever can write there decides what we run, so there is none where that could be
 * somebody else, and none where its user has said so (NODE_DISABLE_COMPILE_CACHE) or has chosen a place.
 */
export function keepCompiledCode(environment: NodeJS.ProcessEnv): void {
  // What came out of a cache is not counted function by function.
  if (environment.NODE_V8_COVERAGE) return;
  try {
    if (module.getCompileCacheDir() === undefined) module.enableCompileCache(placeFor(environment));
  } catch {
    // Without a home, on a full disk, or where this runtime has no such cache, it only takes longer.
  }
}

/** Throws where there is no place that is ours alone. */
function placeFor({ XDG_CACHE_HOME: chosen = "" }: NodeJS.ProcessEnv): string {
  const caches = isAbsolute(chosen) ? chosen : join(homedir(), ".cache");
  const ours = join(caches, "agentfense");
  const place = join(ours, "compiled");
  // One by one: a home that is not there is not made.
  for (const each of [caches, ours, place]) makeDirectory(each);
  return requireOurs(place);
}

function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/** Returns where it really is: this user's, and nobody but this user and root can change it or rename what leads to it. */
function requireOurs(directory: string): string {
  const place = realpathSync(directory);
  const user = process.geteuid?.();
  for (let each = place; ; each = dirname(each)) {
    const { uid, mode } = statSync(each);
    const isTrusted = uid === user || (uid === 0 && each !== place);
    // A sticky directory, as /tmp is, keeps its entries for their owners.
    const isOpen = (mode & WRITABLE_BY_OTHERS) !== 0 && ((mode & 0o1000) === 0 || each === place);
    if (!isTrusted || isOpen) throw new Error(`${each} is not this user's alone`);
    if (each === "/") return place;
  }
}
