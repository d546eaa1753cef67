// A mirror of a directory: node packages/fuse/examples/loopback.ts DIRECTORY MOUNTPOINT
import { resolve } from "node:path";
import { LoopbackFileSystem } from "./loopback/file-system.ts";
import { runExample } from "./run.ts";

await runExample({
  name: "loopback",
  script: import.meta.filename,
  usage: "DIRECTORY MOUNTPOINT",
  create: (args) => new LoopbackFileSystem(resolve(args[0]!)),
});
