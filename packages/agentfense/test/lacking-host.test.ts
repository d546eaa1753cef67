import { execFile } from "node:child_process";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scratch } from "./run-cli.ts";

// What a machine lacks is a sentence and what to do about it, on the real machine with that taken away in a mount namespace.

const CLI = join(import.meta.dirname, "../src/cli.ts");
const isRoot = process.getuid?.() === 0;
if (!isRoot) process.stdout.write("skipped (a lacking host): only root can take something away from a machine\n");

/** A new /dev without the device. */
const WITHOUT_FUSE = `
  mkdir "$1/dev"; for name in null zero full random urandom; do cp -a /dev/$name "$1/dev/"; done
  mount -t tmpfs none /dev; cp -a "$1"/dev/* /dev/; ln -s /proc/self/fd /dev/fd`;
const WITHOUT_FUSE_BEHIND_THE_NODE = "mount --bind /dev/null /dev/fuse";
const FULL_TMPDIR = `
  mkdir "$1/tmp"; mount -t tmpfs -o size=64k none "$1/tmp"; export TMPDIR="$1/tmp"
  cat /dev/zero > "$TMPDIR/fill" 2>/dev/null || true`;

async function places() {
  const top = await scratch();
  await mkdir(join(top, "project"));
  await writeFile(join(top, "project/a"), "");
  return top;
}

/** Runs the command line where `preparation` was done first. */
async function lacking(preparation: string, args: (top: string) => readonly string[]) {
  const top = await places();
  const script = `set -e; ${preparation}\nshift; exec "$@" < /dev/null`;
  const command = [process.execPath, CLI, ...args(top)];
  return await new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
    execFile("unshare", ["--mount", "sh", "-c", script, "sh", top, ...command], (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr: stderr.replaceAll(top, "TOP") }),
    );
  });
}

const FULL_DELTA = `
  mkdir "$1/kept"; mount -t tmpfs -o size=64k none "$1/kept"; cat /dev/zero > "$1/kept/fill" 2>/dev/null || true`;
const DOCTOR = "hint: see what is missing: agentfense doctor\n";
const run = (top: string) => ["run", join(top, "project"), "--", "ls"];

test.skipIf(!isRoot).each([
  [
    "no /dev/fuse",
    WITHOUT_FUSE,
    "agentfense: there is no /dev/fuse\n" +
      `hint: load it with: modprobe fuse; in a container, start that with: --device /dev/fuse\n${DOCTOR}`,
  ],
  [
    "a /dev/fuse that is another device",
    WITHOUT_FUSE_BEHIND_THE_NODE,
    `agentfense: the workspace cannot be mounted (mount: EINVAL)\n${DOCTOR}`,
  ],
  [
    "a full disk for temporary files",
    FULL_TMPDIR,
    "agentfense: no space is left on a disk\nhint: if it is that of TOP/tmp: free some there, or set TMPDIR\n",
  ],
  [
    "an absent place for temporary files",
    'export TMPDIR="$1/absent"',
    "agentfense: there is no place for temporary files in TOP/absent (ENOENT)\n" +
      "hint: set TMPDIR to a directory in which you may write\n",
  ],
  [
    "a place for temporary files where nothing can be made",
    "export TMPDIR=/proc",
    "agentfense: there is no place for temporary files in /proc (ENOENT)\n" +
      "hint: set TMPDIR to a directory in which you may write\n",
  ],
])("%s is a sentence with a hint, and exit code 125", async (_what, preparation, stderr) => {
  expect(await lacking(preparation, run)).toEqual({ code: 125, stdout: "", stderr });
});

test.skipIf(!isRoot)("a kept delta on a full disk is a sentence, and exit code 125", async () => {
  const kept = (top: string) => ["run", "--delta", join(top, "kept/delta"), join(top, "project"), "--", "ls"];
  expect(await lacking(FULL_DELTA, kept)).toEqual({
    code: 125,
    stdout: "",
    stderr: expect.stringMatching(/^agentfense: the delta cannot be written: ENOSPC[^\n]*\n$/),
  });
});

test.skipIf(!isRoot)("a mount says what run says about a missing device", async () => {
  const mount = (top: string) => ["mount", join(top, "project"), join(top, "mountpoint")];
  expect(await lacking(`mkdir "$1/mountpoint"; ${WITHOUT_FUSE}`, mount)).toMatchObject({
    code: 1,
    stderr:
      "agentfense: cannot mount at TOP/mountpoint: there is no /dev/fuse\n" +
      "hint: load it with: modprobe fuse; in a container, start that with: --device /dev/fuse\n",
  });
});

test("output that cannot be written is a sentence, and nothing is left", async () => {
  const top = await places();
  const temporary = join(top, "tmp");
  await mkdir(temporary);
  const line = (args: string, { to = "> /dev/full" } = {}) =>
    new Promise<{ code: unknown; stderr: string }>((resolve) => {
      const env = { ...process.env, TMPDIR: temporary, PATH: "/usr/bin:/bin" };
      const script = `"$0" "$1" ${args} < /dev/null ${to}`;
      execFile("sh", ["-c", script, process.execPath, CLI], { cwd: top, env }, (error, _stdout, stderr) =>
        resolve({ code: error?.code ?? 0, stderr }),
      );
    });
  const sentence = "agentfense: what is printed here cannot be written (ENOSPC)\n";
  expect(await line("policy tree project")).toEqual({ code: 1, stderr: sentence });
  expect(await line("run project -- 'echo hello; sleep 1000'")).toEqual({ code: 125, stderr: sentence });
  expect(await line("run --json project -- 'echo hello'")).toEqual({ code: 125, stderr: sentence });
  expect(await line("run project -- 'echo hello >&2; sleep 1000'", { to: "2> /dev/full" })).toMatchObject({
    code: 125,
  });
  expect(await readdir(temporary)).toEqual([]);
});

test.skipIf(!isRoot).each([
  [WITHOUT_FUSE, "there is no /dev/fuse"],
  [FULL_TMPDIR, "no space is left where sandboxes keep their files"],
])("programs are told the same as an error with a code", async (preparation, sentence) => {
  const { code, stderr } = await lacking(preparation, (top) => ["mcp", join(top, "project")]);
  expect({ code, stderr }).toEqual({ code: 125, stderr: expect.stringContaining(sentence) });
  expect(stderr).not.toMatch(/internal error|^ +at /m);
});

test.skipIf(!isRoot)("a read-only path below a directory of root alone says what to do", async () => {
  const withPath = (top: string) => [
    "run",
    "--read-only-path",
    join(top, "own/tool"),
    join(top, "project"),
    "--",
    "ls",
  ];
  const preparation = 'mkdir -p "$1/own/tool"; chmod 755 "$1"; chmod 700 "$1/own"';
  const { code, stderr } = await lacking(preparation, withPath);
  expect({ code, stderr }).toEqual({
    code: 125,
    stderr:
      "agentfense: a read-only path is below a directory that the box's user may not enter\n" +
      "hint: let others pass through every directory above it, with: chmod o+x; or give a copy that is elsewhere\n" +
      DOCTOR,
  });
  expect(await lacking('mkdir -p "$1/own/tool"; chmod 755 "$1" "$1/own"', withPath)).toMatchObject({ code: 0 });
});
