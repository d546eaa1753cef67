// The same tests with many more rounds, for a night or a spare machine: `npm run test:soak [-- vitest arguments]`.
// A test that repeats itself reads these variables; a value from outside wins.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

const repository = join(import.meta.dirname, "..");

const SOAK = {
  /** Tests that are too slow for every change run too. */
  AGENTFENSE_SOAK: "1",
  /** How many times the usual number of rounds a repeated test takes. */
  AGENTFENSE_ROUNDS: "50",
} as const;

const child = spawn(
  join(repository, "node_modules/.bin/vitest"),
  ["run", "--testTimeout=36000000", ...process.argv.slice(2)],
  { cwd: repository, stdio: "inherit", env: { ...SOAK, ...process.env } },
);
const [code] = (await once(child, "exit")) as [number | null];
process.exitCode = code ?? 1;
