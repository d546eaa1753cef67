import { Fault, invalid } from "../faults.ts";

// Clients name files of a codebase "src/a.ts", with or without a slash in front; here they are "/src/a.ts".

const FORBIDDEN = /[\u0000-\u001f\u007f-\u009f\\]/;
const LONGEST_PATH = 4095;
const LONGEST_NAME = 255;

export function filePath(path: string): string {
  const relative = path.startsWith("/") ? path.slice(1) : path;
  const problem = problemOf(relative);
  if (problem !== undefined) throw invalid(`invalid path ${shown(path)}: ${problem}`);
  return `/${relative}`;
}

/** The root is "" or "/", and one slash at the end is tolerated. */
export function directoryPath(path: string): string {
  if (path === "" || path === "/") return "/";
  return filePath(path.endsWith("/") ? path.slice(0, -1) : path);
}

function problemOf(path: string): string | undefined {
  if (path === "") return "it is empty";
  if (FORBIDDEN.test(path)) return "it has a control character or a backslash";
  if (Buffer.byteLength(path) > LONGEST_PATH) return `it is longer than ${LONGEST_PATH} bytes`;
  for (const name of path.split("/")) {
    if (name === "") return "a name in it is empty";
    if (name === "." || name === "..") return `it has ${name} for a name`;
    if (Buffer.byteLength(name) > LONGEST_NAME) return `a name in it is longer than ${LONGEST_NAME} bytes`;
  }
  return undefined;
}

/** For error texts: as clients write it, on one line. */
export function shown(path: string): string {
  const relative = path.startsWith("/") ? path.slice(1) : path;
  return JSON.stringify(relative.length > 200 ? `${relative.slice(0, 200)}…` : relative);
}

export function fileNotFound(path: string): Fault {
  const relative = path.slice(1);
  return new Fault("FILE_NOT_FOUND", `file not found: ${relative}`, { details: { path: relative } });
}

export function wrongKind(path: string, message: string, hint?: string): Fault {
  const details = { path: path.slice(1) };
  return new Fault("FILE_WRONG_KIND", message, hint === undefined ? { details } : { details, hint });
}
