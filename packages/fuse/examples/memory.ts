// A file system that lives in memory: node packages/fuse/examples/memory.ts MOUNTPOINT
import { MemoryFileSystem } from "./memory/file-system.ts";
import { runExample } from "./run.ts";

await runExample({
  name: "memory",
  script: import.meta.filename,
  usage: "MOUNTPOINT",
  create: () => new MemoryFileSystem(),
});
