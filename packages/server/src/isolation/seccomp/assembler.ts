import { strict as assert } from "node:assert";

// Classic BPF, as far as a seccomp filter needs it. A program is a list of lines; labels stand for places in it.
//
// struct sock_filter (linux/filter.h), 8 bytes, little endian: u16 code, u8 jump if true, u8 jump if false, u32 k.
// Jumps count instructions from the next one on, and only go forward.

export type Line =
  | { readonly kind: "label"; readonly name: string }
  | { readonly kind: "load"; readonly offset: number }
  | { readonly kind: "and"; readonly mask: number }
  | { readonly kind: "branch"; readonly test: Comparison; readonly value: number; readonly to: string }
  | { readonly kind: "return"; readonly value: number };

/** How the accumulator is compared with the value, both unsigned. */
export type Comparison = "equal" | "different" | "atLeast";

const MAXIMUM_INSTRUCTIONS = 4096; // BPF_MAXINSNS
const LONGEST_BRANCH = 255;
const INSTRUCTION_BYTES = 8;

const Code = {
  load: 0x20, // BPF_LD | BPF_W | BPF_ABS
  and: 0x54, // BPF_ALU | BPF_AND | BPF_K
  jump: 0x05, // BPF_JMP | BPF_JA
  jumpEqual: 0x15, // BPF_JMP | BPF_JEQ | BPF_K
  jumpAtLeast: 0x35, // BPF_JMP | BPF_JGE | BPF_K
  return: 0x06, // BPF_RET | BPF_K
} as const;

/** The bytes of a program. Refuses one that the kernel would refuse, with the reason. */
export function assemble(lines: readonly Line[]): Buffer {
  assert(lines.at(-1)?.kind === "return", "a program ends with a return");
  const { places, far, length } = layOut(lines);
  assert(length <= MAXIMUM_INSTRUCTIONS, `${length} instructions are more than the kernel takes`);
  const program = Buffer.alloc(length * INSTRUCTION_BYTES);
  let at = 0;
  const emit = (code: number, k: number, ifTrue = 0, ifFalse = 0) => {
    program.writeUInt16LE(code, at * INSTRUCTION_BYTES);
    program.writeUInt8(ifTrue, at * INSTRUCTION_BYTES + 2);
    program.writeUInt8(ifFalse, at * INSTRUCTION_BYTES + 3);
    program.writeUInt32LE(k >>> 0, at * INSTRUCTION_BYTES + 4);
    at += 1;
  };
  for (const line of lines) {
    if (line.kind === "load") emit(Code.load, line.offset);
    if (line.kind === "and") emit(Code.and, line.mask);
    if (line.kind === "return") emit(Code.return, line.value);
    if (line.kind !== "branch") continue;
    const code = line.test === "atLeast" ? Code.jumpAtLeast : Code.jumpEqual;
    const target = places.get(line.to)!;
    // A branch too long for its eight bits steps over an unconditional jump, which has 32.
    const taken = far.has(line) ? 0 : target - (at + 1);
    const passed = far.has(line) ? 1 : 0;
    if (line.test === "different") emit(code, line.value, passed, taken);
    else emit(code, line.value, taken, passed);
    if (far.has(line)) emit(Code.jump, target - (at + 1));
  }
  return program;
}

interface Layout {
  /** Where each label is, in instructions. */
  readonly places: ReadonlyMap<string, number>;
  /** The branches that need a jump of their own. */
  readonly far: ReadonlySet<Line>;
  readonly length: number;
}

/** Lengthening a branch may push the target of another one out of reach, so this goes on until nothing changes. */
function layOut(lines: readonly Line[]): Layout {
  const far = new Set<Line>();
  for (;;) {
    const places = new Map<string, number>();
    const branches: { line: Line & { kind: "branch" }; next: number }[] = [];
    let at = 0;
    for (const line of lines) {
      if (line.kind === "label") {
        assert(!places.has(line.name), `two labels are called ${line.name}`);
        places.set(line.name, at);
        continue;
      }
      at += far.has(line) ? 2 : 1;
      if (line.kind === "branch") branches.push({ line, next: at });
    }
    const lengthened = far.size;
    for (const { line, next } of branches) {
      const place = places.get(line.to);
      assert(place !== undefined, `there is no label ${line.to}`);
      assert(place >= next, `the branch to ${line.to} goes backward`);
      if (place - next > LONGEST_BRANCH) far.add(line);
    }
    if (far.size === lengthened) return { places, far, length: at };
  }
}
