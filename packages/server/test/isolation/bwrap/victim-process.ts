import { openBoxFixture } from "./fixture.ts";

// A server that runs something and waits to be killed. It never cleans up: that is the point.

const place = await openBoxFixture({ instance: process.argv[2] ?? "victim" });
const line = "setsid sleep 1000 & sleep 1000";
await place.box.run({ argv: ["/bin/bash", "-c", line], env: {}, workdir: "/workspace", stdin: false });
console.log(JSON.stringify({ launcher: place.backend.launcherPid, directory: place.directory }));
setInterval(() => {}, 1000);
