/**
 * The names on the way from the root of the workspace to a path: `/` has none, `/a/b` has two.
 * A path that is not written in its one normal form is a mistake of the caller, and guessing could answer for another.
 */
export function pathNames(path: string): string[] {
  if (path === "/") return [];
  const names = path.split("/");
  if (names.shift() !== "" || names.length === 0) throw notAPath(path);
  for (const name of names) {
    if (name === "" || name === "." || name === ".." || name.includes("\0")) throw notAPath(path);
  }
  return names;
}

function notAPath(path: string): TypeError {
  return new TypeError(
    `${JSON.stringify(path)} is not a path of the workspace: it starts with a slash, has no empty, . or .. segment, ` +
      "and does not end in a slash",
  );
}
