import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { rewrite } from "./markdown.ts";
import { REPOSITORY, sourceOf } from "./source.ts";
import { tableOf } from "./tables.ts";

/** Every Markdown file whose blocks are kept true, by its path in the repository. */
export function documents(): readonly string[] {
  const below = readdirSync(join(REPOSITORY, "docs"), { recursive: true, encoding: "utf8" });
  const docs = below.filter((path) => path.endsWith(".md")).map((path) => `docs/${path}`);
  const packages = ["packages/agentfense/README.md", "packages/sdk/README.md", "python/README.md"];
  return ["README.md", "README.zh-CN.md", "SECURITY.md", ...packages, ...docs].toSorted();
}

export function readDocument(path: string): string {
  return readFileSync(join(REPOSITORY, path), "utf8");
}

/** What the file should say, by what its blocks and tables are made from. */
export async function upToDate(path: string): Promise<string> {
  const tables = await tableOf();
  try {
    return rewrite(readDocument(path), { block: sourceOf, table: tables });
  } catch (error) {
    throw new Error(`${path}: ${(error as Error).message}`, { cause: error });
  }
}
