import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Rule } from "@agentfense/permission";
import type { MountHost, WorkspaceMount, WorkspaceSpec } from "@agentfense/server/isolation";
import { mountHostOfProcess } from "../../support/mount-host.ts";

export const WRITE_ALL: readonly Rule[] = [{ pattern: "**/*", permission: "write" }];

/** A mount whose codebase others change: the host, under the mount, and then says so. */
export interface LivePlace extends AsyncDisposable {
  readonly lower: string;
  readonly delta: string;
  readonly staging: string;
  readonly mount: WorkspaceMount;
  /** A path of the mount. */
  at(path: string): string;
  read(path: string): string;
  names(path?: string): string[];
  /** As the store does: complete elsewhere, then moved to its name. */
  replace(path: string, content: string): void;
  below(path: string): string;
  /** Mounts the same layers anew; gives the mount point. */
  remount(): Promise<string>;
}

/** The codebase is files by path: { "/src/a": "content" }. */
export async function livePlace(
  codebase: Readonly<Record<string, string>>,
  { host: given, ...options }: Partial<WorkspaceSpec> & { readonly host?: MountHost } = {},
): Promise<LivePlace> {
  const root = mkdtempSync(join(tmpdir(), "agentfense-layers-"));
  const [lower, delta, mountPoint, staging] = ["lower", "delta", "mnt", "staging"].map((name) => join(root, name)) as [
    string,
    string,
    string,
    string,
  ];
  for (const path of [lower, delta, mountPoint, staging]) mkdirSync(path);
  for (const [path, content] of Object.entries(codebase)) {
    mkdirSync(dirname(lower + path), { recursive: true });
    writeFileSync(lower + path, content);
  }
  const host = given ?? (await mountHostOfProcess());
  const mount = await host.mount({ mountPoint, lowers: [lower], delta, rules: WRITE_ALL, ...options });
  const at = (path: string): string => mount.mountPoint + path;
  let current = mount;
  let files = 0;
  return {
    lower,
    delta,
    staging,
    mount,
    at,
    read: (path) => readFileSync(at(path), "utf8"),
    names: (path = "/") => readdirSync(at(path)).sort(),
    below: (path) => lower + path,
    async remount() {
      await mount.unmount();
      const again = await host.mount({ mountPoint, lowers: [lower], delta, rules: WRITE_ALL, ...options });
      current = again;
      return again.mountPoint;
    },
    replace(path, content) {
      const temporary = join(root, `new-${files++}`);
      writeFileSync(temporary, content);
      mkdirSync(dirname(lower + path), { recursive: true });
      renameSync(temporary, lower + path);
    },
    async [Symbol.asyncDispose]() {
      await current.unmount();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** Runs with a descriptor and closes it. */
export function withFile<T>(path: string, flags: string, run: (fd: number) => T): T {
  const fd = openSync(path, flags);
  try {
    return run(fd);
  } finally {
    closeSync(fd);
  }
}
