#!/usr/bin/env node
// Imports nothing before the version is known: an older Node stops at the first import with a syntax error that helps
// nobody.

const OLDEST_NODE = 24;

if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) {
  process.stderr.write(`agentfense: needs Node ${OLDEST_NODE} or newer; this is Node ${process.versions.node}\n`);
  process.exitCode = 1;
} else {
  // Before everything that is worth keeping is loaded.
  (await import("./compiled-code.ts")).keepCompiledCode(process.env);
  await import("./main.ts");
}
