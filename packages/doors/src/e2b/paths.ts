import { E2bFailure } from "./failure.ts";

/** Where E2B's programs are at home. The workspace is there. */
export const HOME = "/home/user";
const WORKSPACE = "/workspace";

/** root is told apart in words alone: it is the same user of the box, with the same rights. */
const USERS: ReadonlySet<string> = new Set(["user", "root"]);

/** A path as its client means it: absolute, from its home, or relative to that; without dots. */
export function absolutePath(given: string): string {
  if (given.includes("\0") || !given.isWellFormed()) {
    throw new E2bFailure("invalid_argument", "a path is text without NUL");
  }
  const fromHome = given === "~" || given.startsWith("~/") ? `${HOME}/${given.slice(2)}` : given;
  const names: string[] = [];
  for (const name of (fromHome.startsWith("/") ? fromHome : `${HOME}/${fromHome}`).split("/")) {
    if (name === "..") names.pop();
    else if (name !== "" && name !== ".") names.push(name);
  }
  return `/${names.join("/")}`;
}

/** "/a" for "/home/user/a" and "/workspace/a"; undefined for what lies elsewhere in the box. */
export function inWorkspace(path: string): string | undefined {
  const root = [HOME, WORKSPACE].find((each) => path === each || path.startsWith(`${each}/`));
  return root === undefined ? undefined : path.slice(root.length) || "/";
}

export function checkUser(name: string): void {
  if (name !== "" && !USERS.has(name)) {
    throw new E2bFailure("unauthenticated", `there is no user ${JSON.stringify(name.slice(0, 64))} in the sandbox`);
  }
}
