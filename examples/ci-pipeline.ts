// A pipeline step that builds what strangers sent: the sources are readable, the build directories writable, nothing else;
// no network, bounded memory and time. What it made is taken out by name.
//
//   node examples/ci-pipeline.ts

import { join } from "node:path";
import { registerPreset, Sandbox } from "agentfense";

registerPreset("ci-pipeline", [
  { pattern: "**/*", permission: "read" },
  { pattern: "/build/**", permission: "write" },
  { pattern: "/dist/**", permission: "write" },
  { pattern: "**/node_modules/**", permission: "none" },
  { pattern: "**/.env*", permission: "none" },
  { pattern: "/secrets/**", permission: "none" },
]);

await using sandbox = await Sandbox.fromLocal(join(import.meta.dirname, "project"), {
  preset: "ci-pipeline",
  resources: { memoryBytes: 512 * 1024 * 1024, pidsLimit: 64 },
  env: { CI: "true" },
});

await using session = await sandbox.session();
const STEPS = [
  "mkdir -p build dist",
  "cat src/*.js > build/bundle.js",
  "wc -l < build/bundle.js > dist/lines.txt",
  "tar -C build -cf dist/bundle.tar bundle.js",
  "curl --max-time 2 https://example.com || echo 'no network, as it should be'",
];
for (const step of STEPS) {
  const { exitCode, stdout } = await session.exec(step, { timeoutMs: 60_000 });
  console.log(`${exitCode === 0 ? "ok  " : "FAIL"} ${step}${stdout === "" ? "" : `\n     ${stdout.trim()}`}`);
  if (exitCode !== 0) {
    process.exitCode = 1;
    break;
  }
}

for await (const { kind, path, size } of sandbox.changes()) {
  if (path.startsWith("/dist/")) console.log(`artifact: ${kind} ${path} (${size > 0 ? "not empty" : "empty"})`);
}
console.log("lines:", (await sandbox.files.readFile("dist/lines.txt", "utf8")).trim());
