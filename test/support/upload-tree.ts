import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";

/** Paths and what is there: a text is a file, a path that ends in a slash a directory, `-> x` a link. */
export async function makeTree(entries: Readonly<Record<string, string>>): Promise<string> {
  const top = await mkdtemp(join(tmpdir(), "agentfense-upload-"));
  onTestFinished(() => rm(top, { recursive: true, force: true }));
  for (const [path, content] of Object.entries(entries)) {
    const full = join(top, path);
    await mkdir(path.endsWith("/") ? full : dirname(full), { recursive: true });
    if (path.endsWith("/")) continue;
    if (content.startsWith("-> ")) await symlink(content.slice(3), full);
    else await writeFile(full, content);
  }
  return top;
}
