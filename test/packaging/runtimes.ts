import { existsSync } from "node:fs";
import { join } from "node:path";

const installed = join(import.meta.dirname, "../../.cache/runtimes/node_modules");

/** Something that runs JavaScript: a program, and the arguments that come before the file. */
export interface Runtime {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
}

/** The runtimes beside the one that runs the tests, by processor; see runtimes/package.json. */
const PROGRAMS: Readonly<Record<string, Readonly<Record<"node20" | "node24" | "bun" | "deno", string>>>> = {
  x64: {
    node20: "node-20-x64/bin/node",
    node24: "node-24-x64/bin/node",
    bun: "@oven/bun-linux-x64-baseline/bin/bun",
    deno: "@deno/linux-x64-glibc/deno",
  },
  arm64: {
    node20: "node-20-arm64/bin/node",
    node24: "node-24-arm64/bin/node",
    bun: "@oven/bun-linux-aarch64/bin/bun",
    deno: "@deno/linux-arm64-glibc/deno",
  },
};

const programs = PROGRAMS[process.arch];
if (programs === undefined) throw new Error(`no other runtimes are known for ${process.arch}`);

export const node20: Runtime = { name: "Node 20", program: find(programs.node20), args: [] };
export const node24: Runtime = { name: "Node 24", program: find(programs.node24), args: [] };
export const bun: Runtime = { name: "Bun", program: find(programs.bun), args: [] };
export const deno: Runtime = { name: "Deno", program: find(programs.deno), args: ["run", "--allow-all"] };
/** The one of the repository: Node 26. */
export const thisNode: Runtime = { name: `Node ${process.versions.node}`, program: process.execPath, args: [] };

function find(path: string): string {
  const program = join(installed, path);
  if (!existsSync(program)) throw new Error(`${program} is missing: node scripts/set-up.mjs --test installs it`);
  return program;
}
