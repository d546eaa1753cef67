import { expect, test } from "vitest";
import { chainHash, GENESIS } from "../../../src/runtime/store/event-chain.ts";
import { event } from "./records.ts";

test("the hash of an event is what another implementation of the format computes", () => {
  const draft = event({
    timeMs: 1770113730123,
    type: "permission_denied",
    level: "warn",
    sandboxId: "sb_1",
    codebaseId: "cb_1",
    data: { z: 1.5, a: { c: [1, null, true], b: "ü\n\u2028" }, é: -0.001 },
  });
  // By Python: sha256(b"0" * 64 + b"\n" + json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())
  expect(chainHash(GENESIS.hash, 7, draft)).toBe("1adb8e9a895e86d2dc05cd058a1e1becd407d638d822199698d6c432034b4b79");
});

test("the order of members does not count, every value does", () => {
  const hash = (values: Parameters<typeof event>[0], sequence = 1): string =>
    chainHash(GENESIS.hash, sequence, event(values));
  const plain = hash({ data: { a: 1, b: 2 } });
  expect(hash({ data: { b: 2, a: 1 } })).toBe(plain);
  const others = [
    hash({ data: { a: 1, b: "2" } }),
    hash({ data: { a: 1, b: 2 }, sessionId: "se_1" }),
    hash({ data: { a: 1, b: 2 }, timeMs: 1001 }),
    hash({ data: { a: 1, b: 2 } }, 2),
  ];
  expect(new Set([plain, ...others]).size).toBe(5);
});
