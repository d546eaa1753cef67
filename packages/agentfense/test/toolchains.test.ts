import { chown, cp, mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { type As, identityOf } from "../../../test/support/identity.ts";
import { EmbeddedEngine, Sandbox } from "../src/index.ts";
import { agentfense, scratch } from "./run-cli.ts";
import { describeForBoth } from "./sandbox-places.ts";

const SYSTEM = "/usr/local/bin:/usr/bin:/bin";

/** Says who it is, from a file of its own installation where it has one. */
function program(name: string): string {
  return `#!/bin/sh\nhere=$(dirname "$(readlink -f "$0")")\necho ${name} "$(cat "$here/../lib/${name}" 2>/dev/null)"\n`;
}

/** A home as its user has it: tools of several managers, a project, and what is nobody's business. */
const FILES: Readonly<Record<string, string>> = {
  ".nvm/versions/node/v1/bin/tool": program("tool"),
  ".nvm/versions/node/v1/lib/tool": "of nvm",
  ".nvm/versions/node/v1/lib/credentials.py": "a program's part",
  ".nvm/versions/node/v1/.npmrc": "token",
  ".nvm/versions/node/v1/lib/.npmrc": "token",
  ".nvm/versions/node/v1/lib/.aws/credentials": "token",
  ".pyenv/shims/snake": `#!/bin/sh\nexec "$PYENV_ROOT/versions/3/bin/snake"\n`,
  ".pyenv/versions/3/bin/snake": program("snake"),
  ".cargo/bin/rusty": program("rusty"),
  ".cargo/credentials.toml": "token",
  ".rustup/toolchains/stable/bin/rustc": program("rustc"),
  ".local/share/uv/python/cpython-3/bin/python3.9": program("python"),
  ".local/share/uv/python/cpython-3/lib/python3.9/os.py": "of uv",
  ".local/share/agent/versions/1.0": program("agent"),
  ".local/share/agent/token": "token",
  ".local/bin/plain": program("plain"),
  ".ssh/id_rsa": "key",
  "notes.txt": "private",
  "work/bin/helper": program("helper"),
  "work/.git/config": "private",
  "work/lib/plans": "private",
  "other/lib/plans": "private",
  "project/README.md": "a project",
  "project/.env": "SECRET=1",
  "project/node_modules/.bin/nearby": program("nearby"),
};

const LINKS: Readonly<Record<string, string>> = {
  ".local/bin/agent": "../share/agent/versions/1.0",
  ".local/bin/leak": "../../.ssh/id_rsa",
  ".local/bin/gone": "/nowhere/at/all",
  "project/.venv/bin/python": "HOME/.local/share/uv/python/cpython-3/bin/python3.9",
  // Whoever made the project would like to see this.
  "project/venv/bin/python": "HOME/other/bin/python",
  "other/bin/python": "../lib/plans",
};

async function home(as: As): Promise<string> {
  const { uid, gid } = identityOf(as);
  const place = await scratch();
  for (const [path, content] of Object.entries(FILES)) {
    await mkdir(dirname(join(place, path)), { recursive: true });
    await writeFile(join(place, path), content, { mode: 0o755 });
  }
  for (const [path, target] of Object.entries(LINKS)) {
    await mkdir(dirname(join(place, path)), { recursive: true });
    await symlink(target.replace("HOME", place), join(place, path));
  }
  for (const entry of [".", ...(await readdir(place, { recursive: true }))]) {
    const path = join(place, entry);
    await chown(path, uid, gid).catch(() => {}); // a link to nothing has nobody
  }
  return place;
}

async function inHome(as: As, options: { readonly path: readonly string[]; readonly args: readonly string[] }) {
  const place = await home(as);
  const runtime = await scratch();
  const { uid, gid } = identityOf(as);
  await chown(runtime, uid, gid);
  const path = options.path.map((entry) => join(place, entry));
  const result = await agentfense(options.args, {
    cwd: join(place, "project"),
    identity: identityOf(as),
    env: { HOME: place, XDG_RUNTIME_DIR: runtime, PATH: [...path, SYSTEM].join(":"), RUSTUP_HOME: "", PYENV_ROOT: "" },
  });
  return { ...result, home: place };
}

describeForBoth("the user's toolchains", (as) => {
  test("a command finds what the user's shell finds, in that order, with what it needs to run", async () => {
    const { code, stdout, stderr } = await inHome(as, {
      path: [".nvm/versions/node/v1/bin", ".pyenv/shims", ".cargo/bin", ".local/bin", "project/node_modules/.bin"],
      args: [
        "run",
        "--",
        "tool; snake; rusty; agent; plain; nearby; .venv/bin/python; $RUSTUP_HOME/toolchains/*/bin/rustc",
      ],
    });
    expect({ code, lines: stdout.split("\n") }).toEqual({
      code: 0,
      lines: ["tool of nvm", "snake ", "rusty ", "agent ", "plain ", "nearby ", "python ", "rustc ", ""],
    });
    expect(stderr).toContain("id_rsa (it looks like a place for secrets)");
  });

  test("LIVE-12 shows nothing else, and lets nothing be written", async () => {
    const { stdout, home: place } = await inHome(as, {
      path: [".nvm/versions/node/v1/bin", ".cargo/bin", ".local/bin", "work/bin"],
      args: [
        "run",
        "--",
        `cd "$(dirname "$(dirname "$(command -v rusty)")")/.."; pwd; find . | sort; cat .local/bin/leak; touch .cargo/bin/mine new; helper`,
      ],
    });
    const [top, ...lines] = stdout.trimEnd().split("\n");
    expect(top).toBe(place);
    expect(lines).toEqual([
      ".",
      "./.cargo",
      "./.cargo/bin",
      "./.cargo/bin/rusty",
      "./.local",
      "./.local/bin",
      "./.local/bin/agent",
      "./.local/bin/gone",
      "./.local/bin/leak",
      "./.local/bin/plain",
      "./.local/share",
      "./.local/share/agent",
      "./.local/share/agent/versions",
      "./.local/share/agent/versions/1.0",
      "./.local/share/uv",
      "./.local/share/uv/python",
      "./.local/share/uv/python/cpython-3",
      "./.local/share/uv/python/cpython-3/bin",
      "./.local/share/uv/python/cpython-3/bin/python3.9",
      "./.local/share/uv/python/cpython-3/lib",
      "./.local/share/uv/python/cpython-3/lib/python3.9",
      "./.local/share/uv/python/cpython-3/lib/python3.9/os.py",
      "./.nvm",
      "./.nvm/versions",
      "./.nvm/versions/node",
      "./.nvm/versions/node/v1",
      "./.nvm/versions/node/v1/bin",
      "./.nvm/versions/node/v1/bin/tool",
      "./.nvm/versions/node/v1/lib",
      "./.nvm/versions/node/v1/lib/credentials.py",
      "./.nvm/versions/node/v1/lib/tool",
      "./.rustup",
      "./.rustup/toolchains",
      "./.rustup/toolchains/stable",
      "./.rustup/toolchains/stable/bin",
      "./.rustup/toolchains/stable/bin/rustc",
      "./work",
      "./work/bin",
      "./work/bin/helper",
      "helper",
    ]);
  });

  test.each([
    ["a directory of keys", ".ssh", "it looks like a place for secrets"],
    ["the home itself", ".", "it holds more than programs"],
    ["where every program keeps its own", ".local/share", "it holds more than programs"],
    ["the root directory", "../../../../..", "it holds more than programs"],
    ["what the kernel tells", "../../../../../proc/self", "it is not a place for programs"],
  ])("leaves out %s in PATH, says so once, and runs", async (_what, entry, reason) => {
    const {
      code,
      stdout,
      stderr,
      home: place,
    } = await inHome(as, {
      path: [entry],
      args: ["run", "--", 'echo "$PATH"; ls "$HOME"/../*'],
    });
    expect(code).toBe(0);
    expect(stdout).not.toContain(place);
    expect(stderr.split(reason)).toHaveLength(2);
  });

  test("run --explain tells it without running, and doctor too", async () => {
    const args = ["run", "--explain", "--", "touch ran"];
    const { code, stdout, home: place } = await inHome(as, { path: [".cargo/bin", ".ssh"], args });
    expect(code).toBe(0);
    expect(stdout).toContain(`shown     ${place}/.cargo/bin, read-only\n`);
    expect(stdout).toContain(`left out  ${place}/.ssh: it looks like a place for secrets\n`);
    expect(stdout).toContain(`variable  RUSTUP_HOME=${place}/.rustup\n`);
    expect(await readdir(join(place, "project"))).not.toContain("ran");
    const checked = await inHome(as, { path: [".cargo/bin", ".ssh"], args: ["doctor", "--json"] });
    const { findings } = JSON.parse(checked.stdout) as { findings: { check: string; summary: string }[] };
    const { summary } = findings.find(({ check }) => check === "toolchains")!;
    expect(summary).toContain(`${checked.home}/.cargo/bin`);
    expect(summary).toContain(`${checked.home}/.ssh (it looks like a place for secrets)`);
  });

  test("--toolchains off shows none", async () => {
    const args = ["run", "--toolchains", "off", "--", "rusty"];
    expect(await inHome(as, { path: [".cargo/bin"], args })).toMatchObject({ code: 127 });
  });
});

test("a name that is none, and a runtime that has programs of its own, are refused", async () => {
  expect(await agentfense(["run", "--toolchains", "some", "--", "true"])).toMatchObject({ code: 2 });
  const docker = await agentfense(["run", "--runtime", "docker", "--toolchains", "auto", "--", "true"]);
  expect(docker).toMatchObject({ code: 2 });
  expect(docker.stderr).toContain("--toolchains belongs to the runtime bwrap");
});

test("an engine shows them where it is asked to", async () => {
  const project = await scratch();
  const directory = await scratch();
  await cp("/bin/true", join(directory, "only-here"));
  const before = process.env.PATH;
  process.env.PATH = `${directory}:${before}`;
  try {
    for (const [toolchains, exitCode] of [
      ["auto", 0],
      ["off", 127],
    ] as const) {
      await using engine = await EmbeddedEngine.open({ toolchains });
      await using sandbox = await Sandbox.fromLocal(project, { engine, policy: false });
      expect((await sandbox.run("only-here", { check: false })).exitCode).toBe(exitCode);
    }
  } finally {
    process.env.PATH = before;
  }
});
