// #region start
import { fensePool, SandboxManager } from "agentfense/agent";

await using pool = fensePool({ min: 2, max: 10 });
await pool.start();

await using manager = new SandboxManager({ sessionId: "session_123", pool });
await manager.execute({ code: "echo hello > note.txt", language: "bash" });
console.log((await manager.workspace.readFile("note.txt")).trim(), pool.state("session_123"));

await manager.cleanup(); // the instance goes back, and is replaced: nobody else sees note.txt
console.log(pool.state("session_123"), pool.metrics().released);
// #endregion
