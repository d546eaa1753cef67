// Builds every package (.cache/build) and makes the tarballs that npm publishes and installs (.cache/pack).

import { rmSync } from "node:fs";
import { join, relative } from "node:path";
import { build } from "./build/build.ts";
import { pack } from "./build/pack.ts";
import { repository } from "./build/packages.ts";

const staging = join(repository, ".cache/build");
const directory = join(repository, ".cache/pack");
for (const old of [staging, directory]) rmSync(old, { recursive: true, force: true });

for (const { path, bytes } of pack(await build(staging), directory)) {
  process.stdout.write(`${relative(repository, path)}  ${Math.ceil(bytes / 1024)} KiB\n`);
}
