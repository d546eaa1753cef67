import { Sandbox, SandboxClient } from "@agentfense/sdk";

// #region codebase
await using client = new SandboxClient();
const codebase = await client.createCodebase({ name: "parcels", ownerId: "team-7" });
const upload = await client.uploadDirectory(codebase.id, "./project");
console.log(upload.filesSent, upload.leftOut);
const second = await client.uploadDirectory(codebase.id, "./project");
console.log(second.filesSent); // 0: the server has the content already
// #endregion

// #region agents
// Two agents at work on one codebase, each with its own rules; what one syncs, the other sees.
await using writer = await Sandbox.fromCodebase(codebase.id, { client, preset: "development", sync: "on-exec" });
await using reader = await Sandbox.fromCodebase(codebase.id, { client, preset: "read-only" });
const { syncedVersion } = await writer.run("echo '# Parcels' > README.md");
console.log((await reader.run("cat README.md")).stdout);
// #endregion

// #region versions
for await (const { version, origin } of client.listVersions(codebase.id)) console.log(version, origin);
await client.rollback(codebase.id, syncedVersion - 1);
console.log(
  Buffer.from(await client.downloadFile(codebase.id, "README.md"))
    .toString()
    .split("\n")[0],
);
// #endregion

await writer.destroy();
await reader.destroy();
await client.deleteCodebase(codebase.id);
