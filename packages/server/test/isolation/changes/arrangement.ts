import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Rule } from "@agentfense/permission";
import { type ApplyReport, type ApplySpec, applyChanges } from "@agentfense/server/isolation";
import { onTestFinished } from "vitest";
import { mountHostOfProcess } from "../../../../../test/support/mount-host.ts";
import { decodeName, joinBytes } from "../../../../../test/support/names.ts";
import { type Tree, writeTree } from "../../../../../test/support/tree.ts";

export const WRITE_ALL: readonly Rule[] = [{ pattern: "**/*", permission: "write" }];

export interface Arrangement {
  readonly root: string;
  /** The codebase. */
  readonly lower: string;
  readonly delta: string;
  /** Works in a real mount of both, then unmounts. */
  inMount(work: (at: (path: string) => string) => void | Promise<void>, rules?: readonly Rule[]): Promise<void>;
  apply(options?: Partial<ApplySpec>): Promise<ApplyReport>;
}

/** A codebase and a place for a delta that last as long as the test; `tree` is a delta written by hand. */
export function arrange(codebase: Tree, options: { tree?: Tree; rules?: readonly Rule[] } = {}): Arrangement {
  const root = mkdtempSync(join(tmpdir(), "agentfense-changes-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const [lower, delta, mountPoint] = ["lower", "delta", "mnt"].map((name) => join(root, name)) as [
    string,
    string,
    string,
  ];
  for (const path of [lower, delta, mountPoint]) mkdirSync(path);
  writeTree(lower, codebase);
  if (options.tree !== undefined) {
    mkdirSync(join(delta, "tree"));
    writeTree(join(delta, "tree"), options.tree);
  }
  const usual = options.rules ?? WRITE_ALL;
  return {
    root,
    lower,
    delta,
    async inMount(work, rules = usual) {
      const host = await mountHostOfProcess();
      await using mount = await host.mount({ mountPoint, lowers: [lower], delta, rules });
      await work((path) => mount.mountPoint + path);
    },
    apply: (more) => applyChanges({ delta, lower, rules: usual, ...more }),
  };
}

/** A directory as a value: content, mode and links, without times and owners. */
export function shape(root: string): Record<string, string> {
  const found: Record<string, string> = {};
  const visit = (path: Buffer, shown: string): void => {
    const status = lstatSync(path);
    const mode = (status.mode & 0o7777).toString(8);
    if (status.isDirectory()) {
      if (shown !== "") found[`${shown}/`] = mode;
      for (const name of readdirSync(path, { encoding: "buffer" })) {
        visit(joinBytes(path, name), `${shown}/${decodeName(name)}`);
      }
    } else if (status.isSymbolicLink()) found[shown] = `-> ${readlinkSync(path)}`;
    else if (status.isFile()) found[shown] = `${mode} ${contentOf(path)}`;
    else found[shown] = "special";
  };
  visit(Buffer.from(root), "");
  return found;
}

/** Of a file that may only be listed: nothing. */
function contentOf(path: Buffer): string {
  try {
    const content = readFileSync(path);
    if (content.length <= 100) return content.toString("latin1");
    return `sha256 ${createHash("sha256").update(content).digest("hex")}`;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EACCES") return "unreadable";
    throw error;
  }
}

/** "applied modified /a" for each change, reasons left out. */
export function outcomes(report: ApplyReport): string[] {
  return report.changes.map(({ outcome, kind, path }) => `${outcome} ${kind} ${path}`);
}
