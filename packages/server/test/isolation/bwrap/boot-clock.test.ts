import { expect, test } from "vitest";
import { BootClock } from "../../../src/isolation/bwrap/host-processes.ts";

/** A machine that was up for 100 s when performance.now() was 0; /proc/uptime is cut to a tick. */
function machine() {
  const state = { nowMs: 0, sleptMs: 0, heldUpMs: 0 };
  const clock = new BootClock(() => {
    const uptimeMs = Math.floor((100_000 + state.nowMs + state.sleptMs) / 10) * 10;
    state.nowMs += state.heldUpMs;
    return { uptimeMs, nowMs: state.nowMs };
  });
  return { state, clock };
}

test("a look that is held up makes nothing later", () => {
  const { state, clock } = machine();
  state.heldUpMs = 700;
  for (let look = 0; look < 5; look += 1) clock.look();
  expect(clock.ticksAt(5_000)).toBeLessThanOrEqual((100_000 + 5_000) / 10);
  state.heldUpMs = 0;
  for (let ms = 0; ms < 10; ms += 1) {
    state.nowMs += 1;
    clock.look();
  }
  expect(clock.ticksAt(5_000)).toBeGreaterThanOrEqual((100_000 + 5_000) / 10 - 1);
  expect(clock.ticksAt(5_000)).toBeLessThanOrEqual((100_000 + 5_000) / 10);
});

test("what began before the machine slept is not taken for later", () => {
  const { state, clock } = machine();
  clock.look();
  state.nowMs = 1_000;
  const began = state.nowMs;
  state.nowMs = 2_000;
  state.sleptMs = 60_000;
  expect(clock.ticksAt(began)).toBeLessThanOrEqual((100_000 + 1_000) / 10);
  state.nowMs = 3_000;
  expect(clock.ticksAt(3_000)).toBeGreaterThanOrEqual((100_000 + 3_000 + 60_000) / 10 - 1);
  expect(clock.ticksAt(began)).toBeLessThanOrEqual((100_000 + 1_000) / 10);
});

test("the real clocks agree with the start of this process", async () => {
  const clock = new BootClock();
  await clock.settle();
  expect(clock.ticksAt(performance.now())).toBeGreaterThan(clock.ticksAt(0));
});
