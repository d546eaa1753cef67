import { lstatSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { AgentError, WorkspaceError } from "../errors.ts";
import { errnoOf } from "./workspace-failure.ts";

const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const WRITABLE_BY_OTHERS = 0o022;

/** A session's name is also the name of a directory. */
export function checkSessionId(sessionId: string): void {
  if (typeof sessionId === "string" && SESSION_ID.test(sessionId)) return;
  throw new AgentError(`${JSON.stringify(String(sessionId).slice(0, 130))} cannot be the name of a session`, {
    hint: "1 to 128 letters, digits, dots, underscores and hyphens; a letter or digit first",
  });
}

/** The directory of a session below the one for temporary files, where others may have been before us. */
export function sessionDirectory(sessionId: string): string {
  const workspaces = join(ownDirectory(), "workspaces");
  for (const directory of [workspaces, join(workspaces, sessionId)]) {
    makePrivate(directory);
    if (!isOurs(directory)) {
      throw new WorkspaceError("NOT_PERMITTED", "the directory of the workspace is a link, or others can write to it");
    }
  }
  return join(workspaces, sessionId);
}

/**
 * This user's directory for temporary files: the first that is ours, so that all processes find the same one. Nobody can foresee
 * the name of a new one, and so take it before us.
 */
function ownDirectory(): string {
  const parent = realpathSync(tmpdir());
  const prefix = `agentfense-${process.getuid?.()}-`;
  const names = readdirSync(parent).filter((name) => name.startsWith(prefix));
  const ours = names.sort().find((name) => isOurs(join(parent, name)));
  return ours === undefined ? mkdtempSync(join(parent, prefix)) : join(parent, ours);
}

function isOurs(directory: string): boolean {
  const entry = lstatSync(directory, { throwIfNoEntry: false });
  if (!entry?.isDirectory()) return false;
  return entry.uid === process.getuid?.() && (entry.mode & WRITABLE_BY_OTHERS) === 0;
}

/** A directory that the caller has chosen, made if it is not there. No part of what this gives is a link. */
export function givenDirectory(directory: string): string {
  const path = resolve(directory);
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const real = realpathSync(path);
    if (statSync(real).isDirectory()) return real;
  } catch (error) {
    throw new WorkspaceError("IO", `the directory of the workspace cannot be opened (${errnoOf(error) ?? error})`);
  }
  throw new WorkspaceError("WRONG_KIND", "what was given for the workspace is no directory");
}

function makePrivate(directory: string): void {
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") {
      throw new WorkspaceError("IO", `the directory of the workspace cannot be made (${errnoOf(error) ?? error})`);
    }
  }
}
