import { expect, test } from "vitest";
import { countStrangers, type Suspect } from "../../../src/isolation/backend/holders.ts";

const young = { isAsleep: false, cpuTicks: 0 };

test.each<[string, (look: number) => Partial<Suspect> | undefined, number]>([
  ["lets go when it gets its turn", (look) => (look < 100 ? { id: "a" } : undefined), 0],
  ["sleeps for a moment on its way", (look) => (look < 5 ? { id: "a", isAsleep: true } : undefined), 0],
  ["sleeps whenever it is looked at", () => ({ id: "a", isAsleep: true }), 1],
  ["computes instead of letting go", (look) => ({ id: "a", cpuTicks: 7 + look }), 1],
  ["hands what it has to one after the other", (look) => ({ id: `${look}` }), 1],
])("who %s is judged by that", async (_, suspectAt, strangers) => {
  let look = 0;
  const count = countStrangers(async () => {
    const suspect = suspectAt(look++);
    return { strangers: 0, suspects: suspect === undefined ? [] : [{ id: "", ...young, ...suspect }] };
  });
  expect(await count).toBe(strangers);
});

test("a stranger beside a suspect is told at once", async () => {
  let looks = 0;
  const count = countStrangers(async () => {
    looks += 1;
    return { strangers: 2, suspects: [{ id: "a", ...young }] };
  });
  expect([await count, looks]).toEqual([2, 1]);
});
