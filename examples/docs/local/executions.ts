import { Sandbox } from "agentfense";

await using sandbox = await Sandbox.fromLocal("./project");

// #region events
const counting = await sandbox.exec("for n in 1 2 3; do echo $n; done; exit 4");
for await (const event of counting) {
  if (event.kind === "exit") console.log("exit", event.end.exitCode);
  else process.stdout.write(event.data); // event.kind is "stdout" or "stderr"
}
// #endregion

// #region streams
const listing = await sandbox.exec("ls src");
for await (const text of listing.stdout.pipeThrough(new TextDecoderStream())) process.stdout.write(text);
console.log((await listing.wait()).exitCode);
// #endregion

// #region stdin
const sorting = await sandbox.exec("sort");
await sorting.sendStdin("pear\n");
await sorting.sendStdin("apple\n");
await sorting.endStdin();
console.log((await sorting.wait()).stdout);
// #endregion

// #region kill
const sleeping = await sandbox.exec("sleep 600 & sleep 600");
await sleeping.kill(); // all of it, and it is over when this returns
console.log((await sleeping.wait()).signal);
// #endregion
