import { execFileSync } from "node:child_process";
import { existsSync, globSync, readdirSync, readlinkSync, realpathSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";

// What the tests run inside; whatever this machine lacks is left out.
const PROGRAMS = [
  ..."bash sh dash zsh python3 perl git ps kill setsid mount umount unshare".split(" "),
  ..."awk sed grep find xargs tar gzip diff curl".split(" "),
  ..."cat ls cp mv rm mkdir rmdir mkfifo mknod chmod chown ln touch stat id sleep head tail tee tr wc sort seq".split(
    " ",
  ),
  ..."basename dirname cut dd env printenv test true false echo printf uname date yes sync timeout nohup stty tty readlink df du nproc".split(
    " ",
  ),
];

/** Directories of whole trees the programs need at run time. */
const TREES = ["/usr/lib/python3.11", "/usr/lib/python3.12", "/usr/lib/python3.13", "/usr/lib/git-core"];
const LEFT_OUT = ["__pycache__", "test", "idlelib", "ensurepip", "config-3.*", "lib2to3"];

const FILES = {
  "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
  "etc/group": "root:x:0:\n",
  "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
};

/** Writes a tar of a small root directory, made of this machine's own programs, for `docker import`. */
export async function writeImage(tarPath: string): Promise<void> {
  const staging = `${tarPath}.root`;
  await mkdir(staging, { recursive: true });
  for (const [path, content] of Object.entries(FILES)) {
    await mkdir(dirname(join(staging, path)), { recursive: true });
    await writeFile(join(staging, path), content);
  }
  for (const directory of ["proc", "sys", "dev", "tmp", "run", "var/tmp", "root", "home", "usr/sbin"]) {
    await mkdir(join(staging, directory), { recursive: true });
  }
  const list = `${tarPath}.list`;
  await writeFile(
    list,
    contents()
      .map((path) => path.slice(1))
      .join("\n"),
  );
  const excludes = LEFT_OUT.map((name) => `--exclude=${name}`);
  execFileSync("tar", ["-cf", tarPath, ...excludes, "-C", "/", "-T", list], { stdio: "pipe" });
  execFileSync("tar", ["-rf", tarPath, "-C", staging, "."], { stdio: "pipe" });
  await rm(staging, { recursive: true });
  await rm(list);
}

/** Absolute paths: the links at the root, the programs, the libraries they load. */
function contents(): string[] {
  const programs = PROGRAMS.map((name) => `/usr/bin/${name}`).filter((path) => existsSync(path));
  const paths = new Set(programs.flatMap(linkChain));
  const modules = globSync("/usr/lib/python3.*/lib-dynload/*.so"); // ctypes needs libffi
  const libraries = execFileSync("/bin/sh", ["-c", 'ldd "$@" 2>/dev/null; :', "sh", ...paths, ...modules], {
    encoding: "utf8",
  });
  for (const [, library] of libraries.matchAll(/(?:=>\s+|^\s+)(\/\S+) \(0x/gm)) {
    for (const path of linkChain(library!)) paths.add(path);
  }
  const links = readdirSync("/", { withFileTypes: true }).filter(
    (entry) => entry.isSymbolicLink() && /^(bin|sbin|lib\w*)$/.test(entry.name),
  );
  const trees = TREES.filter((path) => existsSync(path));
  return [...links.map((entry) => `/${entry.name}`), ...paths, ...trees];
}

/** The path, and what it leads to through links; all with their directories resolved, as the tar has them. */
function linkChain(path: string): string[] {
  const here = join(realpathSync(dirname(path)), basename(path));
  try {
    return [here, ...linkChain(resolve(dirname(here), readlinkSync(here)))];
  } catch {
    return [here];
  }
}
