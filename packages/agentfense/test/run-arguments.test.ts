import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { agentfense, scratch } from "./run-cli.ts";

/** What is wrong, the arguments (in a directory with `project/`), and what must be said. */
const WRONG: readonly (readonly [what: string, args: readonly string[], reason: string])[] = [
  ["no command", ["run", "project"], "run takes a command after --"],
  ["nothing after --", ["run", "project", "--"], "there is no command after --"],
  ["an empty command", ["run", "project", "--", ""], "there is no command after --"],
  ["two directories", ["run", "project", "more", "--", "true"], "run takes one directory"],
  ["an absent directory", ["run", "absent", "--", "true"], "DIR does not exist: absent"],
  ["an unknown option", ["run", "--frobnicate", "--", "true"], "Unknown option '--frobnicate'"],
  ["an unknown preset", ["run", "--preset", "agent-sfae", "project", "--", "true"], "agent-sfae"],
  ["an unknown runtime", ["run", "--runtime", "podman", "project", "--", "true"], "--runtime is one of bwrap, docker"],
  [
    "an image without docker",
    ["run", "--image", "x", "project", "--", "true"],
    "--image belongs to the runtime docker",
  ],
  ["--pull without docker", ["run", "--pull", "project", "--", "true"], "--pull belongs to the runtime docker"],
  ["--root with docker", ["run", "--runtime", "docker", "--root", "project", "--", "true"], "--root belongs to"],
  ["an absent root", ["run", "--root", "absent", "project", "--", "true"], "--root does not exist: absent"],
  ["an unreadable memory limit", ["run", "--memory", "lots", "project", "--", "true"], "--memory takes a size"],
  ["an unreadable CPU limit", ["run", "--cpus", "half", "project", "--", "true"], "--cpus takes a number of CPUs"],
  ["no CPU at all", ["run", "--cpus", "0", "project", "--", "true"], "--cpus takes a number of CPUs"],
  [
    "a limit that looks like an option",
    ["run", "--pids", "-1", "project", "--", "true"],
    "--pids takes a value; one that begins with a dash is written --pids=-…\nhint",
  ],
  ["an option without its value", ["run", "project", "--pids", "--", "true"], "--pids takes a value; one"],
  ["an unreadable timeout", ["run", "--timeout", "soon", "project", "--", "true"], "--timeout takes a time"],
  ["a timeout of nothing", ["run", "--timeout", "0", "project", "--", "true"], "--timeout takes a time"],
  [
    "an unknown network",
    ["run", "--network=mine", "project", "--", "true"],
    "--network is one of none, filtered, private, host",
  ],
  ["an address among hosts", ["run", "--allow", "10.0.0.1", "project", "--", "true"], '"10.0.0.1" is no full name'],
  ["a secret without a host", ["run", "--secret", "KEY", "project", "--", "true"], "--secret is NAME@HOST"],
  ["a secret for an address", ["run", "--secret", "KEY@10.0.0.1", "project", "--", "true"], "is no full name"],
  ["a secret in no place", ["run", "--secret", "KEY@a.test=cookie", "project", "--", "true"], "cannot be put in"],
  [
    "a secret without a value",
    ["run", "--secret", "KEY@a.test", "project", "--", "true"],
    "the variable KEY is not set",
  ],
  [
    "a source for no secret",
    ["run", "--secret-from", "KEY=file:/x", "project", "--", "true"],
    "--secret-from names KEY, and no --secret does",
  ],
  [
    "a secret whose command fails",
    ["run", "--secret", "KEY@a.test", "--secret-from", "KEY=command:echo geheim12; false", "project", "--", "true"],
    "the command that prints the secret KEY failed",
  ],
  [
    "a secret for another network",
    ["run", "--network=host", "--secret", "PATH@a.test", "project", "--", "true"],
    "--secret goes with the network filtered, not with host",
  ],
  [
    "a secret twice",
    ["run", "--secret", "PATH@a.test", "--secret", "PATH@b.test", "project", "--", "true"],
    "--secret names PATH twice",
  ],
  ["an unknown list", ["run", "--allow-preset", "npm,pipy", "project", "--", "true"], 'no network preset "pipy"'],
  [
    "hosts for another network",
    ["run", "--network=host", "--allow", "pypi.org", "project", "--", "true"],
    "--allow goes with the network filtered, not with host",
  ],
  [
    "learning for another network",
    ["run", "--network=host", "--learn", "project", "--", "true"],
    "--learn goes with the network filtered, not with host",
  ],
  ["a network without =", ["run", "--network", "host", "project", "--", "true"], "write --network=host"],
  [
    "an unknown moment to apply",
    ["run", "--apply=never", "project", "--", "true"],
    "--apply is one of success, always",
  ],
  ["a variable without a name", ["run", "--env", "=x", "project", "--", "true"], "--env takes NAME=VALUE"],
  ["a variable that is not here", ["run", "--env", "NOT_SET_HERE", "project", "--", "true"], "--env NOT_SET_HERE"],
  ["a delta inside the directory", ["run", "--delta", "project/d", "project", "--", "true"], "the delta"],
  ["a shell without a terminal", ["shell", "project"], "shell needs a terminal"],
  ["a shell with a command", ["shell", "project", "ls"], "shell takes one directory"],
  ["a doctor with arguments", ["doctor", "project"], "doctor takes no arguments"],
  ["a doctor for an unknown runtime", ["doctor", "--runtime", "podman"], "--runtime is one of bwrap, docker"],
];

test.each(WRONG)("%s: ends with 2 and leaves nothing", async (_what, args, reason) => {
  const cwd = await scratch();
  const temporary = await scratch();
  await mkdir(join(cwd, "project"));
  await writeFile(join(cwd, "project/README.md"), "hello\n");

  const { code, stdout, stderr } = await agentfense(args, { cwd, env: { TMPDIR: temporary } });

  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain(reason);
  expect(stderr).toMatch(new RegExp(`\nhint: (agentfense ${args[0]} --help|did you mean agent-safe\\?)\n$`));
  expect(await readdir(cwd, { recursive: true })).toEqual(["project", "project/README.md"]);
  expect(await readdir(temporary)).toEqual([]);
});

test("hosts are those of --allow and --allow-preset, or of the project's policy when the command line agrees", async () => {
  const cwd = await scratch();
  await mkdir(join(cwd, "project"));
  const explained = async (...options: string[]) => {
    const { code, stdout, stderr } = await agentfense(
      ["run", "--explain", "--json", ...options, "project", "--", "true"],
      { cwd },
    );
    return code === 0 ? JSON.parse(stdout) : stderr;
  };
  const listed = await explained("--allow", "GitHub.com:22,443", "--allow", "*.example.com", "--allow-preset", "pypi");
  expect(listed).toMatchObject({
    network: "filtered",
    hosts: ["pypi.org:443", "files.pythonhosted.org:443", "github.com:22,443", "*.example.com:443,80"],
  });
  await writeFile(join(cwd, "project/.agentfense.yaml"), "version: 1\nnetwork: { allow: [example.org:8443] }\n");
  expect(await explained()).toContain("asks for the network filtered, which a file cannot allow itself");
  expect(await explained()).toContain("add --network=filtered if you agree");
  expect(await explained("--network=filtered")).toMatchObject({ network: "filtered", hosts: ["example.org:8443"] });
  expect(await explained("--network=none")).toMatchObject({ network: "none", hosts: [] });
  expect(await explained("--allow", "other.org:1")).toMatchObject({ hosts: ["other.org:1"] });
});
