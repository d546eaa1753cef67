import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import {
  AutoApproveConfirmationService,
  AutoDenyConfirmationService,
  CallbackConfirmationService,
  type ConfirmationVerdict,
} from "../../src/confirmation/callback.ts";
import { isApproval, requestHash } from "../../src/confirmation/hash.ts";
import { expiringIn, request } from "./support.ts";

test("the automatic services answer for exactly what was asked", async () => {
  const asked = request();
  const approved = await new AutoApproveConfirmationService().request(asked);
  expect(isApproval(approved, asked)).toBe(true);
  expect(isApproval(approved, { ...asked, code: "other" })).toBe(false);
  expect(await new AutoDenyConfirmationService().request(asked)).toMatchObject({
    decision: "denied",
    hash: requestHash(asked),
  });
});

test("what has expired is approved by nobody", async () => {
  const late = expiringIn(-1);
  let called = false;
  const callback = new CallbackConfirmationService(() => {
    called = true;
    return true;
  });
  expect((await new AutoApproveConfirmationService().request(late)).decision).toBe("timed_out");
  expect((await callback.request(late)).decision).toBe("timed_out");
  expect(called).toBe(false);
});

test("a callback approves with true, and with nothing else", async () => {
  const asked = request();
  const decide = async (verdict: unknown): Promise<string> => {
    const service = new CallbackConfirmationService(() => verdict as ConfirmationVerdict);
    return (await service.request(asked)).decision;
  };
  expect(await decide(true)).toBe("approved");
  expect(await decide(Promise.resolve(true))).toBe("approved");
  expect(await decide({ approved: true, comment: "fine" })).toBe("approved");
  for (const verdict of [
    false,
    undefined,
    null,
    "yes",
    1,
    {},
    { approved: "yes" },
    [true],
    Promise.reject(new Error("no")),
  ]) {
    expect(await decide(verdict)).toBe("denied");
  }
});

test("a callback sees what is asked, and its comment is passed on", async () => {
  const asked = request();
  const service = new CallbackConfirmationService((seen) => ({ approved: false, comment: `not ${seen.action}` }));
  expect(await service.request(asked)).toEqual({
    decision: "denied",
    hash: requestHash(asked),
    comment: "not run_code",
  });
});

test("a callback that throws denies", async () => {
  const service = new CallbackConfirmationService(() => {
    throw new Error("no dialog");
  });
  expect(await service.request(request())).toMatchObject({ decision: "denied", comment: "asking failed: no dialog" });
});

test("a callback that does not answer in time is told so, and its answer does not count", async () => {
  let signal: AbortSignal | undefined;
  const service = new CallbackConfirmationService((_, options) => {
    signal = options.signal;
    return new Promise(() => {});
  });
  expect((await service.request(expiringIn(50))).decision).toBe("timed_out");
  expect(signal?.aborted).toBe(true);
});

test("a request that is changed while it is asked does not match its answer", async () => {
  const asked = { ...request() };
  const service = new CallbackConfirmationService(() => {
    asked.code = "rm -rf /";
    return true;
  });
  expect(isApproval(await service.request(asked), asked)).toBe(false);
});

test("who asks may stop waiting; nothing is left on his signal", async () => {
  const controller = new AbortController();
  const service = new CallbackConfirmationService(() => new Promise(() => {}));
  const asking = service.request(request(), { signal: controller.signal });
  controller.abort(new Error("gone"));
  await expect(asking).rejects.toThrow("gone");
  await expect(service.request(request(), { signal: controller.signal })).rejects.toThrow("gone");

  const { signal } = new AbortController();
  await new CallbackConfirmationService(() => true).request(request(), { signal });
  expect(getEventListeners(signal, "abort")).toEqual([]);
});
