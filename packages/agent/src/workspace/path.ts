import { namesIn } from "@agentfense/permission";
import { PathTraversalError } from "../errors.ts";

const PATH_BYTES = 4096;
const NAME_BYTES = 255;

/** The names of a path of a workspace: "a//b" and "./a/b/" are a and b, "" is the workspace itself and has none. */
export function namesOf(path: string): string[] {
  if (typeof path !== "string") throw new PathTraversalError("a path is a string");
  const refuse = (why: string): never => {
    throw new PathTraversalError(`${shown(path)} ${why}`);
  };
  if (path.includes("\0")) refuse("has a NUL character");
  if (path.startsWith("/")) refuse("is absolute; paths are relative to the workspace");
  // Half of a pair would be written as another character: two paths for one file.
  if (!path.isWellFormed()) refuse("is not well-formed text");
  if (Buffer.byteLength(path) > PATH_BYTES) refuse(`is longer than ${PATH_BYTES} bytes`);
  const names = namesIn(path);
  if (names.includes("..")) refuse('has ".." in it; no path leads up');
  if (names.some((name) => Buffer.byteLength(name) > NAME_BYTES)) refuse(`has a name longer than ${NAME_BYTES} bytes`);
  return names;
}

/** Whether something that was found can be asked for. */
export function isUsablePath(path: string): boolean {
  return Buffer.byteLength(path) <= PATH_BYTES;
}

/** For messages: whatever somebody put into a path, it stays on one line and short. */
export function shown(path: string): string {
  if (path === "") return "the workspace";
  return JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
}
