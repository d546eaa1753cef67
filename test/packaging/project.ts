import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import type { Tarball } from "../../scripts/build/pack.ts";
import type { Runtime } from "./runtimes.ts";

const repository = join(import.meta.dirname, "../..");

/** Below the time of a test, so that what the program printed until then is in the report. */
const RUN_MS = 50_000;
const INSTALL_MS = 240_000;

export interface RunOptions {
  /** Whose `node` is on the PATH; absent: that of the tests. */
  readonly runtime?: Runtime;
  readonly timeoutMs?: number;
}

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly overrides?: Readonly<Record<string, string>>;
}

/** How a program ended. */
export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Somebody's project: a directory into which npm installs our tarballs, as from the registry. */
export class Project implements Disposable {
  readonly directory: string;

  private constructor(directory: string) {
    this.directory = directory;
  }

  /** A project in an empty directory, into which nothing is installed yet. */
  static begin(directory: string, manifest: Manifest = {}): Project {
    const project = new Project(directory);
    const whole = {
      name: "a-project",
      private: true,
      type: "module",
      ...(manifest.dependencies === undefined ? {} : { dependencies: manifest.dependencies }),
      devDependencies: { "@types/node": lockedVersions()["@types/node"] },
      // What is not ours is what the repository was tested with, so that this is a test of our packages and not of what
      // others published today.
      overrides: { ...lockedVersions(), ...manifest.overrides },
    };
    project.write("package.json", JSON.stringify(whole, undefined, 2));
    return project;
  }

  /** Installs some of the tarballs; the others are there for the installed ones that depend on them. */
  static async install(wanted: readonly string[], tarballs: readonly Tarball[]): Promise<Project> {
    const fileOf = new Map(tarballs.map(({ name, path }) => [name, `file:${path}`]));
    const project = Project.begin(mkdtempSync(join(tmpdir(), "agentfense-project-")), {
      dependencies: Object.fromEntries(wanted.map((name) => [name, fileOf.get(name)!])),
      // Our own are not on the registry yet.
      overrides: Object.fromEntries(fileOf),
    });
    // No package of ours may need an install script.
    const args = ["install", "--prefix", project.directory, "--prefer-offline", "--ignore-scripts", "--no-audit"];
    const { code, stdout, stderr } = await project.run("npm", [...args, "--no-fund", "--loglevel=error"], {
      timeoutMs: INSTALL_MS,
    });
    if (code !== 0) throw new Error(`npm install failed:\n${stdout}${stderr}`);
    return project;
  }

  /** The names of the installed packages, without those for development alone; one that is there twice is named twice. */
  installed(): string[] {
    const lock = readFileSync(join(this.directory, "node_modules/.package-lock.json"), "utf8");
    return Object.entries((JSON.parse(lock) as { packages: Record<string, { readonly dev?: boolean }> }).packages)
      .filter(([, { dev }]) => !dev)
      .map(([path]) => path.split("node_modules/").pop()!);
  }

  /** Runs a program in the project. Its PATH is that of an npm script, with the given runtime's `node` on it. */
  run(program: string, args: readonly string[], { runtime, timeoutMs = RUN_MS }: RunOptions = {}): Promise<Outcome> {
    const folders = [...(runtime ? [dirname(runtime.program)] : []), process.env.PATH ?? ""];
    const env = {
      ...outsideNpm(),
      PATH: [join(this.directory, "node_modules/.bin"), ...folders].join(delimiter),
      DENO_DIR: join(this.directory, ".deno"),
      DENO_NO_UPDATE_CHECK: "1",
      NO_COLOR: "1",
    };
    return new Promise((resolve, reject) => {
      execFile(
        program,
        args,
        { cwd: this.directory, env, timeout: timeoutMs, killSignal: "SIGKILL" },
        (error, stdout, stderr) => {
          const code = error === null ? 0 : error.code;
          if (typeof code === "number") resolve({ code, stdout, stderr });
          else reject(error);
        },
      );
    });
  }

  /** Runs a JavaScript file of the project. */
  runFile(runtime: Runtime, file: string, args: readonly string[] = []): Promise<Outcome> {
    return this.run(runtime.program, [...runtime.args, file, ...args], { runtime });
  }

  /** Checks (and compiles) the project with the repository's compiler, which reads every declaration it reaches. */
  compile(options: Readonly<Record<string, unknown>>): Promise<Outcome> {
    const strictest = {
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
      checkers: 1,
      types: ["node"],
    };
    this.write("tsconfig.json", JSON.stringify({ compilerOptions: { ...strictest, ...options }, include: ["*.ts"] }));
    return this.run(join(repository, "node_modules/.bin/tsc"), ["-p", this.directory]);
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(join(this.directory, path)), { recursive: true });
    writeFileSync(join(this.directory, path), text);
  }

  [Symbol.dispose](): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** This process's environment without what `npm test` tells its scripts about its own call; where npm finds things stays. */
function outsideNpm(): NodeJS.ProcessEnv {
  const kept = /^npm_config_(?:registry|cache|userconfig|globalconfig)$/;
  return Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith("npm_") || kept.test(key)));
}

/** The third-party packages at the top of the repository's node_modules. */
function lockedVersions(): Record<string, string> {
  const lock = JSON.parse(readFileSync(join(repository, "package-lock.json"), "utf8")) as {
    packages: Record<string, { version?: string; link?: boolean }>;
  };
  return Object.fromEntries(
    Object.entries(lock.packages).flatMap(([path, { version, link }]) => {
      const [, name] = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path) ?? [];
      return name === undefined || version === undefined || link ? [] : [[name, version]];
    }),
  );
}
