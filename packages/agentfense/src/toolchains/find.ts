import type { Stats } from "node:fs";
import { lstat, readdir, readlink, realpath, stat } from "node:fs/promises";
import { basename, delimiter, dirname, isAbsolute, join, resolve } from "node:path";
import { compileRules, getPreset, LEVEL } from "@agentfense/permission";

/** What a box has to show so that its commands find the programs that the user's shell finds. */
export interface Toolchains {
  /** Directories with all below them, and files, by their real paths; none lies in another. */
  readonly shown: readonly string[];
  /** PATH, and the variables by which tools find the directories they were installed in. */
  readonly env: Readonly<Record<string, string>>;
  readonly leftOut: readonly LeftOut[];
}

export interface LeftOut {
  readonly path: string;
  readonly reason: string;
}

export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The real path of the user's home; `workspace` is a real path, too. */
  readonly home: string;
  /** The directory that the box shows at /workspace: the rules decide about it, and nothing else does. */
  readonly workspace: string;
}

/** Places that the box has itself, whatever PATH says. */
const SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/** Places of the kernel, of other users and of running programs: a tool does not live there. */
const NEVER_BELOW = ["/proc", "/sys", "/dev", "/etc", "/boot", "/run", "/var/run", "/var/lib/docker"];
/** Too much to show for the sake of a tool, also where PATH names it. */
const TOO_WIDE = [
  "/",
  "/home",
  "/root",
  "/opt",
  "/var",
  "/var/lib",
  "/srv",
  "/mnt",
  "/media",
  "/tmp",
  "/var/tmp",
  "/nix",
];
/** The same below the home: many programs keep what is theirs in there. */
const TOO_WIDE_AT_HOME = ["", ".local", ".local/share", ".local/state", ".config", ".cache", "Documents", "Desktop"];

/**
 * Tools that put programs into PATH which live elsewhere, by the variable that says where. The variable goes into the box
 * when something of the tool is shown, since the home that it would be looked for in is another one there.
 */
const MANAGERS = [
  { variable: "PYENV_ROOT", place: ".pyenv" },
  { variable: "RBENV_ROOT", place: ".rbenv" },
  { variable: "NODENV_ROOT", place: ".nodenv" },
  { variable: "ASDF_DATA_DIR", place: ".asdf" },
  { variable: "MISE_DATA_DIR", place: ".local/share/mise" },
  { variable: "VOLTA_HOME", place: ".volta" },
  { variable: "SDKMAN_DIR", place: ".sdkman" },
  { variable: "HOMEBREW_PREFIX", place: "/home/linuxbrew/.linuxbrew" },
  { variable: "JAVA_HOME", place: undefined },
  { variable: "GOROOT", place: undefined },
  { variable: "DOTNET_ROOT", place: ".dotnet" },
  // Its programs are in cargo's directory, which also has the user's credentials.
  { variable: "RUSTUP_HOME", place: ".rustup", programs: ".cargo/bin" },
] as const satisfies readonly { variable: string; place: string | undefined; programs?: string }[];

/** What makes the directory above a `bin` one that a program was installed into. */
const INSTALLED = ["lib", "lib64", "libexec", "share", "include", "pkg", "pyvenv.cfg"];
const VIRTUAL_ENVIRONMENTS = [".venv", "venv", "env"];

/** Bounds for what somebody may have in PATH. */
const MOST_ENTRIES = 100;
const MOST_LINKS = 2000;

export async function findToolchains(surroundings: Surroundings): Promise<Toolchains> {
  return await new Search(surroundings).run(surroundings.env);
}

class Search {
  readonly #home: string;
  readonly #workspace: string;
  readonly #shown = new Set<string>();
  readonly #leftOut = new Map<string, string>();
  readonly #searched = new Set<string>();
  readonly #secrets = compileRules([{ pattern: "**/*", permission: "read" }, ...secretRules()]);
  #links = 0;

  constructor({ home, workspace }: Surroundings) {
    this.#home = home;
    this.#workspace = workspace;
  }

  async run(env: Surroundings["env"]): Promise<Toolchains> {
    const managers = await this.#managers(env);
    const path: string[] = [];
    const variables: Record<string, string> = {};
    for (const entry of (env.PATH ?? "").split(delimiter).slice(0, MOST_ENTRIES)) {
      const place = isAbsolute(entry) ? await this.#pathEntry(resolve(entry), managers) : undefined;
      if (place !== undefined && !path.includes(place)) path.push(place);
    }
    for (const { variable, root, programs } of managers) {
      if (programs !== undefined && path.includes(programs)) await this.#show(root);
      if (this.#isShown(root)) variables[variable] = root;
    }
    for (const name of VIRTUAL_ENVIRONMENTS) await this.#interpreter(join(this.#workspace, name, "bin", "python"));
    return {
      shown: this.#outermost(),
      env: { PATH: [...path, ...BOX_PATH.filter((place) => !path.includes(place))].join(delimiter), ...variables },
      leftOut: [...this.#leftOut].map(([place, reason]) => ({ path: place, reason })),
    };
  }

  /** Where the box finds an entry of PATH; shows what it takes. */
  async #pathEntry(entry: string, managers: readonly Manager[]): Promise<string | undefined> {
    if (isSystem(entry)) return entry;
    const directory = await realDirectory(entry);
    if (directory === undefined || isSystem(directory)) return directory;
    if (isAtOrBelow(directory, this.#workspace)) return join("/workspace", directory.slice(this.#workspace.length));
    const manager = managers.find(({ root }) => isAtOrBelow(directory, root));
    const root = manager?.root ?? (await this.#installation(directory));
    const isThere = (await this.#show(root)) || (root !== directory && (await this.#show(directory)));
    if (isThere) await this.#followAll(directory);
    return isThere ? directory : undefined;
  }

  /** The directory that a program's own directory belongs to, if it is plain that it is one; else that directory itself. */
  async #installation(directory: string): Promise<string> {
    const above = dirname(directory);
    if (basename(directory) === ".bin" && basename(above) === "node_modules") return above;
    if (!["bin", "sbin"].includes(basename(directory)) || this.#refusal(above) !== undefined) return directory;
    const names = new Set(await readdir(above).catch(() => []));
    return INSTALLED.some((name) => names.has(name)) && !names.has(".git") ? above : directory;
  }

  /** What the links in a directory of programs point to: the installation it belongs to, or the one file. */
  async #followAll(directory: string): Promise<void> {
    if (this.#searched.has(directory)) return;
    this.#searched.add(directory);
    const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
    const links = entries.filter((entry) => entry.isSymbolicLink());
    await Promise.all(links.map(({ name }) => this.#follow(join(directory, name))));
  }

  async #follow(link: string): Promise<void> {
    if (++this.#links > MOST_LINKS) return;
    const target = await realpath(link).catch(() => undefined);
    if (target === undefined || isSystem(target) || isAtOrBelow(target, this.#workspace)) return;
    await this.#showSteps(link);
    if (this.#isShown(target)) return;
    const inPackage = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(target)?.[0];
    const root = inPackage ?? (await this.#installation(dirname(target)));
    const whole = root !== dirname(target);
    if (await this.#show(whole ? root : target)) await this.#followAll(join(root, "bin"));
  }

  /**
   * The interpreter of a virtual environment in the workspace. Whoever wrote the workspace may not be the user: a link there
   * shows an installation of Python and nothing else.
   */
  async #interpreter(link: string): Promise<void> {
    const target = (await realpath(link).catch(() => undefined)) ?? "";
    const directory = dirname(target);
    if (!/^(python|pypy)[0-9.]*$/.test(basename(target)) || basename(directory) !== "bin") return;
    const libraries = await readdir(join(dirname(directory), "lib")).catch(() => []);
    if (libraries.some((name) => /^(python|pypy)[0-9.]+$/.test(name))) await this.#follow(link);
  }

  /** A link to a link: each on the way has to be there. */
  async #showSteps(link: string): Promise<void> {
    let at = link;
    for (let steps = 0; steps < 8; steps++) {
      const next = await readlink(at).catch(() => undefined);
      if (next === undefined) return;
      const written = resolve(dirname(at), next);
      const directory = await realpath(dirname(written)).catch(() => undefined);
      if (directory === undefined) return;
      at = join(directory, basename(written));
      const isOurs = isSystem(at) || isAtOrBelow(at, this.#workspace) || this.#isShown(at);
      if (!isOurs && (await entryAt(at))?.isSymbolicLink()) await this.#show(at);
    }
  }

  async #show(path: string): Promise<boolean> {
    if (this.#isShown(path)) return true;
    const refusal = this.#refusal(path);
    if (refusal === undefined) this.#shown.add(path);
    else this.#leftOut.set(path, refusal);
    return refusal === undefined;
  }

  #refusal(path: string): string | undefined {
    if (TOO_WIDE.includes(path) || TOO_WIDE_AT_HOME.some((place) => join(this.#home, place) === path)) {
      return "it holds more than programs";
    }
    if (NEVER_BELOW.some((place) => isAtOrBelow(path, place))) return "it is not a place for programs";
    if (isAtOrBelow(this.#workspace, path)) return "the workspace lies in it";
    if (isAtOrBelow(path, this.#workspace)) return "the rules of the workspace decide about it";
    if (/[*?[\]{}\\\n]/.test(path)) return "its name has characters that mean something in a rule";
    if (this.#secrets.decide(path).level === LEVEL.none) return "it looks like a place for secrets";
    return undefined;
  }

  #isShown(path: string): boolean {
    for (let at = path; ; at = dirname(at)) {
      if (this.#shown.has(at)) return true;
      if (at === "/") return false;
    }
  }

  #outermost(): string[] {
    return [...this.#shown].filter((path) => !this.#isShown(dirname(path))).sort();
  }

  async #managers(env: Surroundings["env"]): Promise<Manager[]> {
    const found: Manager[] = [];
    for (const { variable, place, ...rest } of MANAGERS) {
      const said = env[variable] || (place === undefined ? undefined : resolve(this.#home, place));
      const root = said !== undefined && isAbsolute(said) ? await realDirectory(said) : undefined;
      const programs = "programs" in rest ? join(this.#home, rest.programs) : undefined;
      if (root !== undefined && !isSystem(root)) found.push({ variable, root, programs });
    }
    return found;
  }
}

interface Manager {
  readonly variable: string;
  readonly root: string;
  /** Where its programs are, if that is elsewhere. */
  readonly programs: string | undefined;
}

const BOX_PATH = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** What `agent-safe` hides, apart from histories of repositories: many tools are installed by cloning one. */
export function secretRules() {
  return getPreset("agent-safe").filter(({ permission, pattern }) => permission === "none" && pattern !== "**/.git/**");
}

/** Both absolute and without dots. */
export function isAtOrBelow(path: string, place: string): boolean {
  return path === place || path.startsWith(`${place}/`);
}

function isSystem(path: string): boolean {
  return SYSTEM.some((place) => isAtOrBelow(path, place));
}

async function realDirectory(path: string): Promise<string | undefined> {
  const real = await realpath(path).catch(() => undefined);
  return real !== undefined && (await stat(real).catch(() => undefined))?.isDirectory() ? real : undefined;
}

function entryAt(path: string): Promise<Stats | undefined> {
  return lstat(path).catch(() => undefined);
}
