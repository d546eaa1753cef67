import { once } from "node:events";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { createClient } from "@connectrpc/connect";
import { EmbeddedEngine } from "agentfense";
import { WRITE_ALL } from "./workshop.ts";

// A program with sandboxes of its own that never cleans up. It works on the directory of its first argument, tells its
// sandbox's id, and ends as its second argument says.

const [directory = "", ending = ""] = process.argv.slice(2);

const engine = await EmbeddedEngine.open();
const sandboxes = createClient(SandboxService, engine.transport);
const codebaseId = await engine.openDirectory(directory);
const { id: sandboxId } = await sandboxes.createSandbox({ codebaseId, permissions: WRITE_ALL });
await sandboxes.startSandbox({ sandboxId });
await sandboxes.exec({ sandboxId, command: "echo new > written" });
const { id: sessionId } = await sandboxes.createSession({ sandboxId });
await sandboxes.sessionExec({ sessionId, command: "sleep 1000 &" });
// Nobody reads the rest.
const endless = sandboxes.execStream({ sandboxId, command: "yes" })[Symbol.asyncIterator]();
await endless.next();
console.log(sandboxId);
await once(process.stdin, "data"); // until the test has looked around
process.stdin.destroy();

const ENDINGS: Readonly<Record<string, () => void>> = {
  /** The program is over, and forgot everything. */
  forgets: () => {},
  exits: () => process.exit(7),
  throws: () => {
    setImmediate(() => {
      throw new Error("a mistake of the program's");
    });
  },
  /** A call is under way when somebody kills it. */
  waits: () => void sandboxes.exec({ sandboxId, command: "sleep 1000" }).catch(() => {}),
};
ENDINGS[ending]?.();
