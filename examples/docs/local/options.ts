import { Sandbox } from "agentfense";

// #region options
await using sandbox = await Sandbox.fromLocal("./project", {
  preset: "read-only",
  runtime: "bwrap", // or "docker", with `image`
  network: "none", // or { allow: ["pypi.org"] }, "private", "host"
  resources: { memoryBytes: 512 * 1024 ** 2, pidsLimit: 100, diskBytes: 100 * 1024 ** 2 },
  env: { CI: "1" },
  labels: { team: "parcels" },
});
console.log((await sandbox.run("echo $CI")).stdout, sandbox.status, sandbox.info.labels);
// #endregion
