import { lstatSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { AuditEntry } from "../../../src/runtime/audit/api.ts";
import { type Caller, SERVER } from "../../../src/runtime/caller.ts";
import type { Codebases } from "../../../src/runtime/codebases/api.ts";
import type { CodebasesOptions } from "../../../src/runtime/codebases/parts.ts";
import type { LogLine } from "../../../src/runtime/log.ts";
import { RuntimeError } from "../../../src/runtime/runtime-error.ts";
import type { MetadataStore } from "../../../src/runtime/store/store.ts";
import { jobsOfProcess } from "../../isolation/jobs/jobs-of-process.ts";
import { collected, openPlace, type Store } from "./opening.ts";

export interface CodebaseFixture {
  readonly root: string;
  readonly codebases: Store;
  readonly metadata: MetadataStore;
  readonly audited: AuditEntry[];
  readonly logged: LogLine[];
  /** The id of a codebase of "alice". */
  readonly id: string;
  tree(id?: string): Record<string, string>;
}

/** One codebase in a place of its own, for as long as the test lasts. */
export async function arrange(options: Partial<CodebasesOptions> = {}): Promise<CodebaseFixture> {
  const root = temporary();
  const audited: AuditEntry[] = [];
  const logged: LogLine[] = [];
  const opened = await openPlace(root, {
    audit: { record: (entry) => void audited.push(entry) },
    log: (line) => void logged.push(line),
    jobs: jobsOfProcess,
    ...options,
  });
  onTestFinished(() => opened[Symbol.asyncDispose]());
  const { codebases, metadata } = opened;
  const { id } = await codebases.create(SERVER, { name: "project", ownerId: "alice" });
  const tree = (of = id): Record<string, string> => shapeOf(join(root, "codebases", of, "tree"));
  return { root, codebases, metadata, audited, logged, id, tree };
}

export function temporary(): string {
  const root = mkdtempSync(join(tmpdir(), "agentfense-codebases-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  return root;
}

export const ALICE: Caller = { ownerId: "alice", role: "user", keyId: "key_a" };
export const BOB: Caller = { ownerId: "bob", role: "user", keyId: "key_b" };

/** A directory as a value: "644 content", "-> target", "755/" by path. */
export function shapeOf(root: string): Record<string, string> {
  const shape: Record<string, string> = {};
  const visit = (directory: string, prefix: string): void => {
    for (const name of readdirSync(directory)) {
      const [path, shown] = [join(directory, name), prefix + name];
      const stat = lstatSync(path);
      const mode = (stat.mode & 0o7777).toString(8);
      if (stat.isSymbolicLink()) shape[shown] = `-> ${readlinkSync(path)}`;
      else if (stat.isFile()) shape[shown] = `${mode} ${readFileSync(path, "utf8")}`;
      else if (stat.isDirectory()) {
        shape[shown] = `${mode}/`;
        visit(path, `${shown}/`);
      } else shape[shown] = "special";
    }
  };
  visit(root, "");
  return shape;
}

export async function textOf(store: Codebases, id: string, path: string, version = 0): Promise<string> {
  const { content } = await store.download(SERVER, id, path, { version });
  return (await collected(content)).toString("utf8");
}

/** "CODE: message" of what the call throws. */
export async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    if (error instanceof RuntimeError) return `${error.code}: ${error.message}`;
    throw error;
  }
  return "it succeeded";
}
