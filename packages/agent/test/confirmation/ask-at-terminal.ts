// Asks at the terminal it runs at, and says what was decided.
import { TerminalConfirmationService } from "../../src/confirmation/terminal/terminal.ts";

const service = new TerminalConfirmationService();
for (const action of ["first", "second"]) {
  const { decision } = await service.request({
    sessionId: "s",
    action,
    code: "echo \u001b[2J\u202e",
    risk: { level: "HIGH", detected: [] },
    reason: "a test",
    expiresAt: new Date(Date.now() + 60_000),
  });
  console.log(`decided: ${decision}`);
}
