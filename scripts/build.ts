// Makes what is published from the source: in .cache/build a folder for each package, with JavaScript, declarations and
// a package.json that names them. Nothing in the repository itself needs it.

import { rmSync } from "node:fs";
import { join, relative } from "node:path";
import { build } from "./build/build.ts";
import { repository } from "./build/packages.ts";

const directory = join(repository, ".cache/build");
rmSync(directory, { recursive: true, force: true });
for (const folder of await build(directory)) process.stdout.write(`${relative(repository, folder)}\n`);
