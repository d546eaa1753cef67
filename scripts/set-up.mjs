// Brings a machine from a plain clone to one that can run `npm start`, `npm test` or `npm run bench`: the Node packages of
// the lock file, then the Debian packages that are missing. Plain JavaScript for an old Node, because the Node that runs
// TypeScript is itself one of the packages to install. Does nothing, quickly, when all is there.
//
//   node scripts/set-up.mjs [--test] [--bench] [--build]
//
// It asks npm, apt and PyPI for packages and uses the network for nothing else.

import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  accessSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const repository = fileURLToPath(new URL("..", import.meta.url));
const TEST_USER = "agentfense-test";

/** What each purpose needs: a command on the PATH or a file, and the Debian package that brings it. */
const NEEDS = [
  { for: "start", command: "fusermount3", package: "fuse3" },
  { for: "start", command: "bwrap", package: "bubblewrap" },
  { for: "start", command: "perl", package: "perl" },
  { for: "start", command: "setpriv", package: "util-linux" },
  { for: "test", command: "pasta", package: "passt" },
  { for: "test", command: "ip", package: "iproute2" },
  { for: "test", command: "javac", package: "default-jdk-headless" },
  { for: "test", command: "iptables-restore", package: "iptables" },
  { for: "test", command: "dockerd", package: "docker.io" },
  { for: "test", command: "chromium", package: "chromium" },
  { for: "test", command: "zsh", package: "zsh" },
  { for: "test", command: "fish", package: "fish" },
  { for: "test", command: "gdb", package: "gdb" },
  { for: "test", command: "git", package: "git" },
  { for: "test", command: "python3", package: "python3" },
  { for: "test", file: "/usr/share/doc/python3-venv", package: "python3-venv" },
  { for: "test", command: "openssl", package: "openssl" },
  { for: "test", command: "curl", package: "curl" },
  { for: "test", command: "wget", package: "wget" },
  { for: "test", command: "ssh", package: "openssh-client" },
  { for: "test", command: "sshd", package: "openssh-server" },
  { for: "test", command: "tmux", package: "tmux" },
  { for: "test", command: "jq", package: "jq" },
  { for: "test", command: "rsync", package: "rsync" },
  { for: "test", command: "gcc", package: "gcc" },
  { for: "test", file: "/usr/include/stdio.h", package: "libc6-dev" },
  { for: "test", command: "make", package: "make" },
  { for: "test", command: "sqlite3", package: "sqlite3" },
  { for: "test", file: "/usr/share/doc/postgresql", package: "postgresql" },
  { for: "test", command: "getfattr", package: "attr" },
  { for: "test", command: "ps", package: "procps" },
  { for: "test", command: "strace", package: "strace" },
  { for: "test", command: "useradd", package: "passwd" },
  { for: "bench", command: "fuse-overlayfs", package: "fuse-overlayfs" },
  { for: "bench", command: "bindfs", package: "bindfs" },
];

class SetUpError extends Error {}

try {
  const { values } = parseArgs({
    options: { test: { type: "boolean" }, bench: { type: "boolean" }, build: { type: "boolean" } },
  });
  const purposes = ["start", ...(values.test ? ["test"] : []), ...(values.bench ? ["bench"] : [])];
  installNodePackages();
  installDebianPackages(NEEDS.filter((need) => purposes.includes(need.for)));
  if (values.test) {
    openDevice("/dev/fuse");
    openDevice("/dev/net/tun");
    createTestUser();
  }
  // Each waits for the network most of its time.
  await all([
    ...(values.test
      ? [
          installPythonPackages("python/requirements-dev.lock", ".cache/python-sdk"),
          installPythonPackages("test/python/requirements.txt", ".cache/python"),
          installRuntimes(),
          installAgents(),
          installBeside("test/e2b", "clients of E2B"),
          installPythonPackages("test/e2b/requirements.txt", ".cache/python-e2b"),
          installPythonPackages("test/e2b/requirements-2.49.txt", ".cache/python-e2b-2.49"),
          installPythonPackages("test/e2b/requirements-2.20.txt", ".cache/python-e2b-2.20"),
        ]
      : []),
    // The compiler wants the types of the frameworks that the adapters are for.
    ...(values.test || values.build ? [installFrameworks()] : []),
  ]);
  requireFuseDevice();
} catch (error) {
  if (!(error instanceof SetUpError || error.code?.startsWith("ERR_PARSE_ARGS"))) throw error;
  process.stderr.write(`set-up: ${error.message}\n`);
  process.exitCode = 1;
}

/** node_modules carries the hash of the lock file it was installed from; another hash, or none, means `npm ci`. */
function installNodePackages() {
  const stamp = join(repository, "node_modules/.installed-from");
  const lock = createHash("sha256")
    .update(readFileSync(join(repository, "package-lock.json")))
    .digest("hex");
  if (!existsSync(stamp) || readFileSync(stamp, "utf8").trim() !== lock) {
    say("installing the Node packages of package-lock.json (npm ci)");
    const npm = run("npm", ["ci", "--include=dev", "--include=optional", "--loglevel=error"], { show: true });
    if (npm.status !== 0) {
      throw new SetUpError("npm ci failed (see above). It needs the network once; then run this again.");
    }
    writeFileSync(stamp, `${lock}\n`);
  }
  const pinned = join(repository, "node_modules/.bin/node");
  if (!existsSync(pinned) && Number.parseInt(process.versions.node, 10) < 24) {
    throw new SetUpError(
      `no Node for ${process.platform}-${process.arch} comes with the packages, and this one (${process.version}) is too old.\n` +
        "Install Node 24 or newer and run this again.",
    );
  }
}

/** A Python environment of the repository's own, with the packages of a list. */
async function installPythonPackages(listFile, folder) {
  const list = join(repository, listFile);
  const environment = join(repository, folder);
  const stamp = join(environment, ".installed-from");
  const packages = readFileSync(list, "utf8");
  const wanted = createHash("sha256").update(packages).digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8").trim() === wanted) return;
  say(`installing Python packages (${folder})`);
  const python = existsSync("/usr/bin/python3") ? "/usr/bin/python3" : "python3";
  must(await runBeside(python, ["-m", "venv", "--clear", environment]), "python3 -m venv");
  // uv takes a fifth of pip's time for a long list. It does not know pip's settings, such as a mirror; then pip does it all.
  const uv = /^uv==[^\\]*(?:\\\n[^\\\n]*)*/m.exec(packages)?.[0];
  if (!(uv && (await installByUv(environment, uv, list)))) must(await pipInstall(environment, list), "pip install");
  writeFileSync(stamp, `${wanted}\n`);
}

async function installByUv(environment, uvItself, list) {
  const listOfUv = join(environment, "uv.txt");
  writeFileSync(listOfUv, uvItself);
  if ((await pipInstall(environment, listOfUv)).status !== 0) return false;
  // A Python that is told not to write what it compiled would compile everything for every process of the tests.
  const how = ["--quiet", "--no-cache", "--only-binary", ":all:", "--compile-bytecode"];
  const python = join(environment, "bin/python");
  const uv = await runBeside(join(environment, "bin/uv"), ["pip", "install", ...how, "--python", python, "-r", list]);
  return uv.status === 0;
}

function pipInstall(environment, list) {
  const how = ["--quiet", "--disable-pip-version-check", "--only-binary", ":all:"];
  return runBeside(join(environment, "bin/python"), ["-m", "pip", "install", ...how, "-r", list]);
}

/** Other versions of Node, Bun and Deno, for the test that the packages run where they promise to. */
async function installRuntimes() {
  const project = join(repository, "test/packaging/runtimes");
  const place = join(repository, ".cache/runtimes");
  const stamp = join(place, "node_modules/.installed-from");
  const wanted = createHash("sha256")
    .update(readFileSync(join(project, "package-lock.json")))
    .digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8").trim() === wanted) return;
  say("installing Node 20 and 24, Bun and Deno (.cache/runtimes)");
  mkdirSync(place, { recursive: true });
  for (const file of ["package.json", "package-lock.json"]) copyFileSync(join(project, file), join(place, file));
  const install = ["ci", "--prefix", place, "--include=optional", "--ignore-scripts", "--loglevel=error"];
  must(await runBeside("npm", install), "npm ci (.cache/runtimes)");
  // They are optional because each is for one processor; npm says nothing when one for this processor fails to come.
  const ours = { x64: /x64/, arm64: /arm64|aarch64/ }[process.arch];
  const names = Object.keys(JSON.parse(readFileSync(join(project, "package.json"), "utf8")).optionalDependencies);
  const missing = names.filter((name) => ours?.test(name) && !existsSync(join(place, "node_modules", name)));
  if (missing.length > 0) throw new SetUpError(`npm did not install ${missing.join(", ")}; run this again.`);
  writeFileSync(stamp, `${wanted}\n`);
}

/** The agent frameworks that have adapters. They are large, so they are beside those tests and not among the other packages. */
async function installFrameworks() {
  await installBeside("test/adapters", "agent frameworks");
}

/** The coding agents that `agentfense agent` is tested with: as large, and beside their tests. */
async function installAgents() {
  await installBeside("test/agents", "coding agents", async (packages) => {
    // No package's script runs by itself here. This one unpacks the program.
    const unpack = join(packages, "@anthropic-ai/claude-code/install.cjs");
    must(await runBeside(process.execPath, [unpack]), "unpacking claude");
  });
}

/** A directory of tests with packages of its own, which carry the hash of the lock file they were installed from. */
async function installBeside(directory, what, finish = async () => {}) {
  const project = join(repository, directory);
  const packages = join(project, "node_modules");
  const stamp = join(packages, ".installed-from");
  const wanted = createHash("sha256")
    .update(readFileSync(join(project, "package-lock.json")))
    .digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8").trim() === wanted) return;
  say(`installing ${what} (${directory}/node_modules)`);
  const install = ["ci", "--prefix", project, "--include=dev", "--ignore-scripts", "--loglevel=error"];
  must(await runBeside("npm", install), `npm ci (${directory})`);
  await finish(packages);
  writeFileSync(stamp, `${wanted}\n`);
}

function installDebianPackages(needs) {
  const missing = needs.filter((need) => !(need.command ? findCommand(need.command) : existsSync(need.file)));
  if (missing.length === 0) return;
  const packages = [...new Set(missing.map((need) => need.package))];
  const byHand = `Install by hand what gives you: ${missing.map((need) => need.command ?? need.file).join(", ")}\n  on Debian: apt-get install ${packages.join(" ")}`;

  if (!findCommand("apt-get")) throw new SetUpError(`this is not a Debian system (no apt-get).\n${byHand}`);
  const asRoot = rootPrefix();
  if (!asRoot) throw new SetUpError(`Debian packages are missing, and there is neither root nor sudo.\n${byHand}`);

  say(`installing Debian packages: ${packages.join(", ")}`);
  const apt = (args) => run(...asRoot("apt-get", ["-y", "-o", "DPkg::Lock::Timeout=120", ...args]));
  const install = ["install", "--no-install-recommends", ...packages];
  if (apt(install).status === 0) return;
  // The package lists are absent or older than the mirror: the usual reason, and the only one worth a second try.
  say("refreshing the package lists (apt-get update)");
  const update = apt(["update"]);
  const second = apt(install);
  if (second.status !== 0) {
    process.stderr.write(update.status === 0 ? second.output : update.output + second.output);
    throw new SetUpError(`apt-get could not install ${packages.join(", ")} (see above).\n${byHand}`);
  }
}

/** Tests mount and make networks as an ordinary user too; in a container such a device often belongs to root alone. */
function openDevice(path) {
  if (!existsSync(path) || (statSync(path).mode & 0o666) === 0o666) return;
  const asRoot = rootPrefix();
  if (!asRoot) throw new SetUpError(`${path} is not open to ordinary users. As root: chmod 0666 ${path}`);
  say(`opening ${path} to ordinary users, for the tests (chmod 0666)`);
  must(run(...asRoot("chmod", ["0666", path])), `chmod 0666 ${path}`);
}

function createTestUser() {
  if (readFileSync("/etc/passwd", "utf8").includes(`\n${TEST_USER}:`)) return;
  const asRoot = rootPrefix();
  if (!asRoot) throw new SetUpError(`the tests need the user ${TEST_USER}, and there is neither root nor sudo.`);
  say(`creating the ordinary user ${TEST_USER}, for the tests`);
  const args = ["--system", "--user-group", "--create-home", "--shell", "/bin/sh", TEST_USER];
  must(run(...asRoot(findCommand("useradd"), args)), `useradd ${TEST_USER}`);
}

function requireFuseDevice() {
  if (!existsSync("/dev/fuse")) {
    throw new SetUpError(
      "there is no /dev/fuse. Load the module (modprobe fuse), or give the container the device (--device /dev/fuse).",
    );
  }
  try {
    accessSync("/dev/fuse", constants.R_OK | constants.W_OK);
  } catch {
    throw new SetUpError("/dev/fuse is not open to this user. Run as root, or once: sudo chmod 0666 /dev/fuse");
  }
}

/** How to run a command as root: directly, through sudo, or not at all. */
function rootPrefix() {
  if (process.getuid() === 0) return (command, args) => [command, args];
  if (findCommand("sudo"))
    return (command, args) => ["sudo", ["--", "env", "DEBIAN_FRONTEND=noninteractive", command, ...args]];
  return undefined;
}

/** System directories count even when they are not on an ordinary user's PATH. */
function findCommand(name) {
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/sbin", "/usr/bin", "/bin"];
  return folders
    .filter((folder) => folder !== "")
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
}

function run(command, args, { show = false } = {}) {
  const result = spawnSync(command, args, {
    cwd: repository,
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    stdio: show ? ["ignore", "inherit", "inherit"] : ["ignore", "pipe", "pipe"],
    maxBuffer: 64 * 1024 * 1024,
    encoding: "utf8",
  });
  if (result.error) throw new SetUpError(`cannot run ${command}: ${result.error.message}`);
  return { status: result.status, output: `${result.stdout ?? ""}${result.stderr ?? ""}` };
}

/** The same, while others go on. */
async function runBeside(command, args) {
  const child = spawn(command, args, { cwd: repository, stdio: ["ignore", "pipe", "pipe"] });
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => output.push(chunk));
  const status = await new Promise((resolve, reject) => {
    child.once("error", (error) => reject(new SetUpError(`cannot run ${command}: ${error.message}`)));
    child.once("close", resolve);
  });
  return { status, output: Buffer.concat(output).toString() };
}

/** Waits for every one, so that none goes on behind the first failure; that is what is thrown. */
async function all(installations) {
  const failed = (await Promise.allSettled(installations)).find(({ status }) => status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

function must(result, what) {
  if (result.status !== 0) throw new SetUpError(`${what} failed:\n${result.output}`);
}

function say(line) {
  process.stdout.write(`set-up: ${line}\n`);
}
