import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { agentfense, scratch } from "./run-cli.ts";

/** What is wrong, the arguments (in a directory with `project/`, `view/` and a few files), and what must be said. */
const WRONG: readonly (readonly [what: string, args: readonly string[], reason: string])[] = [
  ["no arguments", [], "mount takes DIR and MOUNTPOINT"],
  ["no mount point", ["project"], "mount takes DIR and MOUNTPOINT"],
  ["three places", ["project", "view", "more"], "mount takes DIR and MOUNTPOINT"],
  ["an unknown preset", ["--preset", "agent-sfae", "project", "view"], "agent-sfae"],
  ["preset and rules", ["--preset", "read-only", "--rules", "good.json", "project", "view"], "--preset or --rules"],
  ["rules that are not there", ["--rules", "absent.yaml", "project", "view"], "absent.yaml"],
  ["rules that are not YAML", ["--rules", "broken.yaml", "project", "view"], "broken.yaml"],
  ["an unquoted pattern", ["--rules", "unquoted.yaml", "project", "view"], "needs quotes"],
  ["rules that are not a list", ["--rules", "object.json", "project", "view"], "rules must be a list"],
  ["a misspelt field", ["--rules", "field.json", "project", "view"], 'unknown field "permision"'],
  ["a malformed rule", ["--rules", "malformed.json", "project", "view"], "rule 1"],
  ["an unknown level", ["--rules", "level.json", "project", "view"], "rule 0"],
  ["an unreadable quota", ["--quota", "lots", "project", "view"], "--quota takes a size"],
  ["a negative quota", ["--quota=-1", "project", "view"], "--quota takes a size"],
  ["an unreadable file quota", ["--quota-files", "1.5", "project", "view"], "--quota-files takes a number"],
  ["an unreadable owner", ["--owner", "root", "project", "view"], "--owner takes UID:GID"],
  ["an absent directory", ["absent", "view"], "DIR does not exist: absent"],
  ["a file as directory", ["good.json", "view"], "DIR is not a directory"],
  ["an absent mount point", ["project", "absent"], "MOUNTPOINT does not exist: absent"],
  ["a mount point in an absent directory", ["project", "absent/absent"], "MOUNTPOINT does not exist: absent/absent"],
  ["a file as mount point", ["project", "good.json"], "MOUNTPOINT is not a directory"],
  ["the same place twice", ["project", "project"], "same directory"],
  ["a mount point inside", ["project", "project/src"], "MOUNTPOINT"],
  ["a mount point inside by a link", ["project", "link-to-src"], "MOUNTPOINT"],
  ["a directory inside the mount point", ["project/src", "project"], "DIR"],
  ["a delta inside the directory", ["--delta", "project/delta", "project", "view"], "the delta"],
  ["a delta inside the directory by a link", ["--delta", "link-to-src/x/y", "project", "view"], "the delta"],
  ["a delta inside the mount point", ["--delta", "view/delta", "project", "view"], "the delta"],
  ["a directory inside the delta", ["--delta", ".", "project", "view"], "inside the delta"],
  ["a delta below a file", ["--delta", "good.json/delta", "project", "view"], "the delta cannot be"],
];

test.each(WRONG)("%s: mount ends with 2 and leaves nothing", async (_what, args, reason) => {
  const place = await scratch();
  const temporary = await scratch();
  await mkdir(join(place, "project/src"), { recursive: true });
  await mkdir(join(place, "view"));
  await symlink("project/src", join(place, "link-to-src"));
  const files = {
    "good.json": [{ pattern: "**/*", permission: "read" }],
    "object.json": { rules: [] },
    "field.json": [
      { pattern: "**/*", permission: "read" },
      { pattern: "/secrets/**", permision: "none" },
    ],
    "malformed.json": [
      { pattern: "**/*", permission: "read" },
      { pattern: "/a/[b", permission: "none" },
    ],
    "level.json": [{ pattern: "**/*", permission: "raed" }],
  };
  for (const [name, content] of Object.entries(files)) await writeFile(join(place, name), JSON.stringify(content));
  await writeFile(join(place, "broken.yaml"), "- { pattern: [\n");
  await writeFile(join(place, "unquoted.yaml"), "- pattern: **/*\n  permission: read\n");
  const before = await readdir(place, { recursive: true });

  const { code, stdout, stderr } = await agentfense(["mount", ...args], { cwd: place, env: { TMPDIR: temporary } });

  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain(reason);
  expect(stderr).toMatch(/\nhint: (agentfense mount --help|did you mean agent-safe\?)\n$/);
  expect(await readdir(place, { recursive: true })).toEqual(before);
  expect(await readdir(temporary)).toEqual([]);
});
