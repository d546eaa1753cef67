import { invalid, RuntimeError } from "../runtime-error.ts";

/** What the kernel takes in one piece. */
const LONGEST_PATH = 4095;
/** Each file may bring so many directories along that nobody named, so there is a limit to them. */
const DEEPEST_PATH = 256;
const LONGEST_NAME = 255;
const LONGEST_TARGET = 4095;
const LONGEST_LABEL = 256;
const SHOWN = 200;

// Control characters, C1 included, and the backslash, which some clients take for a separator.
const FORBIDDEN = /[\u0000-\u001f\u007f-\u009f\\]/;
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
const CODEBASE_ID = /^cb_[0-9a-f]{16,64}$/;
const SHA256 = /^[0-9a-f]{64}$/;

/** A path as the manifest has it: "src/a.ts". One slash in front is tolerated. */
export function checkPath(path: string): string {
  const relative = path.startsWith("/") ? path.slice(1) : path;
  const problem = problemOf(relative);
  if (problem !== undefined) throw invalid(`invalid path ${shown(path)}: ${problem}`);
  return relative;
}

/** The same for a directory, where the root is "" or "/", and one slash at the end is tolerated too. */
export function checkDirectory(path: string): string {
  if (path === "" || path === "/") return "";
  return checkPath(path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path);
}

/** True for a path that `checkPath` takes as it is. */
export function isPath(path: string): boolean {
  return problemOf(path) === undefined;
}

function problemOf(path: string): string | undefined {
  if (path === "") return "it is empty";
  if (!path.isWellFormed()) return "it is not valid Unicode";
  if (FORBIDDEN.test(path)) return "it has a control character or a backslash";
  if (Buffer.byteLength(path) > LONGEST_PATH) return `it is longer than ${LONGEST_PATH} bytes`;
  const names = path.split("/");
  if (names.length > DEEPEST_PATH) return `it is more than ${DEEPEST_PATH} names deep`;
  for (const name of names) {
    if (name === "") return "a name in it is empty";
    if (name === "." || name === "..") return `it has ${name} for a name`;
    if (Buffer.byteLength(name) > LONGEST_NAME) return `a name in it is longer than ${LONGEST_NAME} bytes`;
  }
  return undefined;
}

/** Where a symbolic link leads is data: it may be anywhere, and nobody here follows it. */
export function checkTarget(path: string, target: string): string {
  const problem = targetProblem(target);
  if (problem === undefined) return target;
  throw invalid(`invalid symlink target of ${shown(path)}: ${problem}`);
}

export function targetProblem(target: string): string | undefined {
  if (target === "") return "it is empty";
  if (!target.isWellFormed()) return "it is not valid Unicode";
  if (target.includes("\0")) return "it has a NUL";
  return Buffer.byteLength(target) > LONGEST_TARGET ? `it is longer than ${LONGEST_TARGET} bytes` : undefined;
}

/** Permission bits: setuid, setgid and sticky are dropped, what else is no mode is refused. */
export function checkMode(path: string, mode: number): number {
  if (Number.isInteger(mode) && mode >= 0 && mode <= 0o7777) return mode & 0o777;
  throw invalid(`invalid mode of ${shown(path)}: ${mode}`);
}

/** "" stays "": not given. */
export function checkHash(path: string, sha256: string): string {
  const lower = sha256.toLowerCase();
  if (lower === "" || SHA256.test(lower)) return lower;
  throw invalid(`invalid checksum of ${shown(path)}: SHA-256 in hexadecimal is 64 digits`);
}

export function checkSize(path: string, size: number): number {
  if (Number.isSafeInteger(size) && size >= 0) return size;
  throw invalid(`invalid size of ${shown(path)}: ${size}`);
}

export function checkCodebaseId(id: string): string {
  if (id === "") throw invalid("codebase_id is required");
  if (CODEBASE_ID.test(id)) return id;
  throw invalid("codebase_id is not of the form cb_ and 16 to 64 hexadecimal digits");
}

/** A name or an owner, as a client gives it. */
export function checkLabel(field: string, text: string): string {
  if (text === "") throw invalid(`${field} is required`);
  if (text.length > LONGEST_LABEL) {
    throw invalid(`${field} is longer than ${LONGEST_LABEL} characters`);
  }
  if (CONTROL.test(text) || !text.isWellFormed()) {
    throw invalid(`${field} has control characters or is not valid Unicode`);
  }
  return text;
}

/** A path for an error text: on one line, and not as long as it may be. */
export function shown(path: string): string {
  return JSON.stringify(path.length > SHOWN ? `${path.slice(0, SHOWN)}…` : path);
}

export function parentOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash < 0 ? "" : path.slice(0, slash);
}

/** "a", "a/b" for "a/b/c". */
export function ancestorsOf(path: string): string[] {
  const found: string[] = [];
  for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1)) found.push(path.slice(0, at));
  return found;
}

/** The order of the manifest: that of the bytes, so that a directory comes before what is in it. */
export function comparePaths(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    const [x, y] = [a.charCodeAt(at), b.charCodeAt(at)];
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** In UTF-8 what takes two surrogates comes after all that takes none. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

export function fileNotFound(path: string): RuntimeError {
  return new RuntimeError("FILE_NOT_FOUND", `file not found: ${path}`, { details: { path } });
}
