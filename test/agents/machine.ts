import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ModelRequest, Wanted } from "./model-server.ts";

const cli = join(import.meta.dirname, "../../packages/agentfense/src/cli.ts");
const here = (name: string): string => join(import.meta.dirname, name);
const AGENT_DIRECTORIES = ["node_modules/.bin", "node_modules/opencode-linux-x64/bin"].map(here);

/** A machine with an internet of its own, where a model wants something; agentfense and coding agents are installed on it. Needs root. */
export class Machine {
  readonly #directory: string;

  /** `directory` is for what machine.sh and the internet tell each other, of one command after the other. */
  constructor(directory: string, wanted: Wanted) {
    this.#directory = directory;
    mkdirSync(join(directory, "bin"), { recursive: true });
    symlinkSync(cli, join(directory, "bin/agentfense"));
    writeFileSync(join(directory, "wanted.json"), JSON.stringify(wanted));
  }

  /** What has to be run for a command to run there. */
  argv(command: readonly string[]): readonly [string, ...string[]] {
    const start = ["sh", here("machine.sh"), this.#directory, process.execPath, here("internet-process.ts"), "--"];
    return ["unshare", "--net", "--mount", "--", ...start, ...command];
  }

  /** Whether a coding agent is installed here. */
  static has(agent: string): boolean {
    return AGENT_DIRECTORIES.some((directory) => existsSync(join(directory, agent)));
  }

  /** What programs there need to find each other, and to trust the internet. */
  env() {
    const programs = [join(this.#directory, "bin"), ...AGENT_DIRECTORIES, join(process.execPath, "..")];
    return {
      PATH: [...programs, "/usr/sbin", "/usr/bin", "/sbin", "/bin"].join(":"),
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      NODE_EXTRA_CA_CERTS: join(this.#directory, "ca.pem"),
    };
  }

  /** What the model was asked. */
  requests(): ModelRequest[] {
    const lines = readFileSync(join(this.#directory, "requests"), "utf8").trim().split("\n");
    return lines.map((line) => JSON.parse(line) as ModelRequest);
  }
}
