import { describe, expect, test } from "vitest";
import { assemble, type Line } from "../../../src/isolation/seccomp/assembler.ts";
import { runNative } from "./interpreter.ts";

const FILLER: Line = { kind: "load", offset: 0 };

function branchOver(distance: number): Line[] {
  return [
    { kind: "load", offset: 0 },
    { kind: "branch", test: "equal", value: 7, to: "seven" },
    ...new Array<Line>(distance - 1).fill(FILLER),
    { kind: "return", value: 1 },
    { kind: "label", name: "seven" },
    { kind: "return", value: 2 },
  ];
}

function valueFor(program: Buffer, number: number): number {
  return runNative(program, { number, args: [] }, "x64").value;
}

describe("the assembler", () => {
  test.each([1, 255, 256, 1000])("branches over %i instructions", (distance) => {
    const program = assemble(branchOver(distance));
    expect(program.length / 8).toBe(distance + 3 + (distance > 255 ? 1 : 0));
    expect([valueFor(program, 7), valueFor(program, 8)]).toEqual([2, 1]);
  });

  test("lengthens a branch that another lengthened branch pushed out of reach", () => {
    const program = assemble([
      { kind: "load", offset: 0 },
      { kind: "branch", test: "equal", value: 1, to: "near" },
      { kind: "branch", test: "different", value: 2, to: "far" },
      ...new Array<Line>(253).fill(FILLER),
      { kind: "return", value: 10 },
      { kind: "label", name: "near" },
      { kind: "return", value: 11 },
      ...new Array<Line>(20).fill(FILLER),
      { kind: "label", name: "far" },
      { kind: "return", value: 12 },
    ]);
    expect([1, 2, 3].map((number) => valueFor(program, number))).toEqual([11, 10, 12]);
  });

  test("compares without a sign", () => {
    const program = assemble([
      { kind: "load", offset: 0 },
      { kind: "branch", test: "atLeast", value: 0x8000_0000, to: "high" },
      { kind: "return", value: 1 },
      { kind: "label", name: "high" },
      { kind: "return", value: 0x8000_0000 },
    ]);
    expect([valueFor(program, 0x7fff_ffff), valueFor(program, -1)]).toEqual([1, 0x8000_0000]);
  });

  const END: Line = { kind: "return", value: 0 };
  test.each<[string, Line[]]>([
    ["a program ends with a return", [FILLER]],
    ["no label nowhere", [{ kind: "branch", test: "equal", value: 0, to: "nowhere" }, END]],
    ["two labels are called a", [{ kind: "label", name: "a" }, { kind: "label", name: "a" }, END]],
    ["goes backward", [{ kind: "label", name: "a" }, { kind: "branch", test: "equal", value: 0, to: "a" }, END]],
    ["4097 instructions", [...new Array<Line>(4096).fill(FILLER), END]],
  ])("refuses what the kernel would: %s", (reason, lines) => {
    expect(() => assemble(lines)).toThrow(reason);
  });

  test("takes as many instructions as the kernel does", () => {
    expect(assemble([...new Array<Line>(4095).fill(FILLER), END]).length).toBe(4096 * 8);
  });
});
