import { expect, test } from "vitest";
import { Spin } from "../src/spin.ts";

/** A thread whose clock is moved by its looks, four in the time of a Spin. */
function thread({ cpus = 2, runnable = 2, awake = new Int32Array(1) } = {}) {
  const state = { runnable, nowMs: 1024, looks: 0, asked: 0 };
  const spin = new Spin(awake, {
    cpus,
    nowMs: () => state.nowMs,
    runnable() {
      state.asked += 1;
      return state.runnable;
    },
  });
  spin.wakes();
  /** How often the thread looks before it finds something or sleeps. */
  const looksUntil = (found: number): number => {
    state.looks = 0;
    spin.look(() => {
      state.looks += 1;
      state.nowMs += 1 / 64;
      return state.looks === found ? 1 : 0;
    });
    return state.looks;
  };
  return { spin, state, looksUntil };
}

const NEVER = 0;

test("a thread looks out for 50 µs, or until it has found something", () => {
  const { looksUntil } = thread();
  expect([looksUntil(3), looksUntil(NEVER), looksUntil(1)]).toEqual([3, 4, 1]);
});

test("after four looks in vain it sleeps at once, longer and longer, until a look finds something", () => {
  const { looksUntil } = thread();
  const sleepsUntilItLooks = (): number => {
    let sleeps = 0;
    while (looksUntil(NEVER) === 0) sleeps += 1;
    return sleeps;
  };
  const breaks: number[] = [];
  for (let i = 0; i < 9; i++) {
    // The look that ended the break before was the first of four.
    for (let misses = i === 0 ? 0 : 1; misses < 4; misses++) expect(looksUntil(NEVER)).toBe(4);
    breaks.push(sleepsUntilItLooks());
  }
  expect(breaks).toEqual([16, 32, 64, 128, 256, 512, 1024, 1024, 1024]);
  expect(looksUntil(1)).toBe(1);
  for (let misses = 0; misses < 4; misses++) looksUntil(NEVER);
  expect(sleepsUntilItLooks()).toBe(16);
});

test("it does not look while more threads than CPUs want to run, and asks so every 10 ms", () => {
  const { state, looksUntil } = thread({ runnable: 3 });
  expect([looksUntil(1), looksUntil(1)]).toEqual([0, 0]);
  state.runnable = 2;
  expect([looksUntil(1), state.asked]).toEqual([0, 1]);
  state.nowMs += 10;
  expect([looksUntil(1), state.asked]).toEqual([1, 2]);
});

test("no more threads look than half the CPUs, since each has a client", () => {
  const awake = new Int32Array(1);
  const [first, second] = [thread({ awake }), thread({ awake })];
  expect([first.looksUntil(1), second.looksUntil(1)]).toEqual([0, 0]);
  second.spin.sleeps();
  expect(first.looksUntil(1)).toBe(1);
  second.spin.wakes();
  expect(first.looksUntil(1)).toBe(0);
});

test("a thread with one CPU, which its clients share, never looks", () => {
  expect(thread({ cpus: 1, runnable: 1 }).looksUntil(1)).toBe(0);
});
