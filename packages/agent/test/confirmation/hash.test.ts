import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import type { ConfirmationRequest } from "../../src/confirmation/confirmation.ts";
import { isApproval, requestHash } from "../../src/confirmation/hash.ts";
import { request } from "./support.ts";

const asked = request({ expiresAt: new Date("2030-01-01T00:00:00.000Z") });
const detected = asked.risk.detected[0]!;

test("the hash is of the documented text", () => {
  const text =
    '["agentfense.confirmation.v1","session-1","run_code","import subprocess\\nsubprocess.run([\'make\'])\\n","HIGH",' +
    '[["python.subprocess","starts a process",2]],"it starts a process",1893456000000]';
  expect(requestHash(asked)).toBe(createHash("sha256").update(text).digest("hex"));
});

test("every part that is shown changes the hash", () => {
  const variants: ConfirmationRequest[] = [
    asked,
    { ...asked, sessionId: "session-2" },
    { ...asked, action: "shell" },
    { ...asked, code: `${asked.code} ` },
    { ...asked, risk: { ...asked.risk, level: "MEDIUM" } },
    { ...asked, risk: { ...asked.risk, detected: [] } },
    { ...asked, risk: { ...asked.risk, detected: [detected, detected] } },
    { ...asked, risk: { ...asked.risk, detected: [{ ...detected, pattern: "x" }] } },
    { ...asked, risk: { ...asked.risk, detected: [{ ...detected, reason: "x" }] } },
    { ...asked, risk: { ...asked.risk, detected: [{ ...detected, line: 3 }] } },
    { ...asked, reason: "another" },
    { ...asked, expiresAt: new Date(asked.expiresAt.getTime() + 1) },
    // Text that tries to look like the end of one field and the beginning of the next.
    { ...asked, sessionId: 'session-1","run_code', action: "" },
    { ...asked, sessionId: "session-1run_code", action: "" },
    // Halves of pairs that UTF-8 cannot tell apart.
    { ...asked, code: "\ud800" },
    { ...asked, code: "\udfff" },
    { ...asked, code: "\ufffd" },
  ];
  expect(new Set(variants.map(requestHash)).size).toBe(variants.length);
});

test("only a yes to exactly this, in time, is an approval", () => {
  const hash = requestHash(asked);
  const before = (): number => asked.expiresAt.getTime() - 1;
  const at = (): number => asked.expiresAt.getTime();
  expect(isApproval({ decision: "approved", hash }, asked, before)).toBe(true);
  expect(isApproval({ decision: "approved", hash }, asked, at)).toBe(false);
  expect(isApproval({ decision: "denied", hash }, asked, before)).toBe(false);
  expect(isApproval({ decision: "timed_out", hash }, asked, before)).toBe(false);
  expect(isApproval({ decision: "approved", hash: "" }, asked, before)).toBe(false);
  expect(isApproval({ decision: "approved", hash: hash.toUpperCase() }, asked, before)).toBe(false);
  expect(isApproval({ decision: "approved", hash }, { ...asked, code: "rm -rf /" }, before)).toBe(false);
});

test("a request without a valid expiry cannot be approved", () => {
  const endless = request({ expiresAt: new Date(Number.NaN) });
  expect(isApproval({ decision: "approved", hash: requestHash(endless) }, endless)).toBe(false);
});
