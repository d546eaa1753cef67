import { exitCodeOf } from "../commands/execution.ts";
import { pause, type Stdio } from "../commands/stdio.ts";
import { FileFault } from "../files/file-fault.ts";
import type { GuardedView } from "../files/guarded-view.ts";
import { nameOf, parentOf, workspacePath } from "../files/paths.ts";
import type { MockAnswer, MockCommand, MockFiles, MockResponse } from "../mock-command.ts";

/** Carries a prepared answer out, as if a program had done it. */
export async function giveAnswer(
  response: MockResponse,
  command: MockCommand,
  view: GuardedView,
  { stdout, stderr, signal }: Stdio,
): Promise<number> {
  const given = typeof response === "function" ? await response(command, filesOf(view)) : response;
  const answer: MockAnswer = typeof given === "string" ? { stdout: given } : given;
  if (answer.delayMs !== undefined) await pause(answer.delayMs, signal);
  const refusals = leaveFiles(view, answer.files ?? {});
  await stdout.write(Buffer.from(answer.stdout ?? ""));
  await stderr.write(Buffer.from(`${answer.stderr ?? ""}${refusals.join("")}`));
  const natural = answer.signal === undefined ? Number(refusals.length > 0) : exitCodeOf(answer.signal);
  return answer.exitCode ?? natural;
}

/** Gives a line for each that is refused. */
function leaveFiles(view: GuardedView, files: Readonly<Record<string, string | null>>): string[] {
  const { write, remove } = filesOf(view);
  return Object.entries(files).flatMap(([path, content]) => {
    try {
      if (content === null) remove(path);
      else write(path, content);
      return [];
    } catch (error) {
      if (error instanceof FileFault) return [`/bin/bash: line 1: ${path}: ${error.message}\n`];
      throw error;
    }
  });
}

function filesOf(view: GuardedView): MockFiles {
  const readBytes = (path: string) => view.read(workspacePath(path));
  return {
    readBytes,
    read: (path) => Buffer.from(readBytes(path)).toString("utf8"),
    write(path, content) {
      const at = workspacePath(path);
      if (parentOf(at) !== "/") view.makeDirectory(parentOf(at), { recursive: true });
      view.write(at, typeof content === "string" ? Buffer.from(content) : content);
    },
    remove: (path) => view.remove(workspacePath(path), { recursive: true }),
    exists: (path) => view.shows(workspacePath(path)),
    list: (path = "/") => view.list(workspacePath(path)).map((entry) => nameOf(entry.path)),
  };
}
