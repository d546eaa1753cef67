import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The codebase as an ordinary directory, in which hard links of the codebase are separate files, as on the mount. */
export function plainCopyOf(lower: string): AsyncDisposable & { readonly path: string } {
  const base = mkdtempSync(join(tmpdir(), "agentfense-plain-"));
  chmodSync(base, 0o755);
  const path = join(base, "tree");
  execFileSync("cp", ["-R", "--no-dereference", "--preserve=mode,ownership,timestamps,xattr", lower, path]);
  return {
    path,
    async [Symbol.asyncDispose]() {
      rmSync(base, { recursive: true, force: true });
    },
  };
}
