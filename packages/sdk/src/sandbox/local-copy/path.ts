/** The names of a path that a server told of, "src/a.ts"; undefined when it is none, or could lead out of its directory. */
export function namesOf(path: string): readonly string[] | undefined {
  const names = path.split("/");
  return names.every(isName) ? names : undefined;
}

function isName(name: string): boolean {
  if (name === "" || name === "." || name === ".." || name.includes("\0")) return false;
  // There, these are no names: they separate, and name drives and streams.
  return process.platform !== "win32" || !/[\\:]/.test(name);
}
