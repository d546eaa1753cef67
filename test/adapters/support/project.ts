import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type EmbeddedEngine, type Rule, Sandbox } from "agentfense";
import { onTestFinished } from "vitest";

const FILES: Readonly<Record<string, string>> = {
  "README.md": "# Greeter\n",
  ".env": "TOKEN=s3cret\n",
  "src/greet.sh": 'name="world"\necho "hello $name"\n',
};

/** The secret is hidden, the source may be written, the rest may be read. */
const RULES: readonly Rule[] = [
  { pattern: "**/*", permission: "read" },
  { pattern: "/src/**", permission: "write" },
  { pattern: ".env*", permission: "none", priority: 100 },
];

/** A running sandbox on a small project, gone with the test. */
export async function openProject(engine: EmbeddedEngine, files = FILES): Promise<Sandbox> {
  const directory = mkdtempSync(join(tmpdir(), "agentfense-adapters-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), content);
  }
  const sandbox = await Sandbox.fromLocal(directory, { engine, permissions: RULES });
  onTestFinished(() => sandbox[Symbol.asyncDispose]());
  return sandbox;
}

/** Takes a lock, and keeps it for as long as it lives. */
export const HOLD_LOCK = "exec 9> src/lock; flock 9; echo > src/held; sleep 300";

/** Until somebody runs HOLD_LOCK. */
export async function lockIsHeld(sandbox: Sandbox): Promise<void> {
  await sandbox.run("until [ -e src/held ]; do sleep 0.02; done", { check: true });
}

/** Waits for the lock: whoever held it is no more. */
export async function lockIsFree(sandbox: Sandbox): Promise<boolean> {
  return (await sandbox.run("flock --timeout 50 src/lock true")).success;
}
