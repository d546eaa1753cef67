#!/usr/bin/env node
// Imports nothing before the version is known: an older Node stops at the first import with a syntax error that helps
// nobody.

const OLDEST_NODE = 24;

if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) {
  // The packages of these names bring a Node that npx and npm scripts of this project take before the machine's.
  const own = `node-${process.platform}-${process.arch}@${OLDEST_NODE}`;
  process.stderr.write(
    `agentfense: needs Node ${OLDEST_NODE} or newer; this is Node ${process.versions.node}\n` +
      `hint: install one for this machine, or for npx in this project alone: npm install ${own}\n`,
  );
  process.exitCode = 1;
} else {
  // Before everything that is worth keeping is loaded.
  (await import("./compiled-code.ts")).keepCompiledCode(process.env);
  await import("./main.ts");
}
