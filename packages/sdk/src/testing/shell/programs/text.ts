import {
  asBytes,
  Complaint,
  each,
  linesOf,
  type Program,
  type ProgramRun,
  parseOptions,
  pathOf,
  print,
  printBytes,
  readInputs,
} from "../program.ts";

const cannotOpen = (path: string, reason: string) => `cannot open '${path}' for reading: ${reason}`;
const cannotRead = (path: string, reason: string) => `cannot read: ${path}: ${reason}`;
const plainly = (path: string, reason: string) => `${path}: ${reason}`;

/** What prints and sifts text. */
export const TEXT_PROGRAMS = {
  async echo(run) {
    const [first, ...rest] = run.args;
    await print(run, first === "-n" ? rest.join(" ") : `${run.args.join(" ")}\n`);
    return 0;
  },

  async printf(run) {
    const [format, ...values] = run.args.map(asBytes);
    if (format === undefined) throw new Complaint("usage: printf [-v var] format [arguments]", 2);
    // The format is used again until no argument is left.
    do await printBytes(run, formatted(format, values));
    while (values.length > 0 && /%[sdi]/.test(format));
    return 0;
  },

  async cat(run) {
    const { operands } = parseOptions(run.args, { letters: "u" });
    const { stdin, stdout } = run.stdio;
    const isFine = await each(run, operands.length === 0 ? ["-"] : operands, plainly, async (path) => {
      if (path !== "-") return await stdout.write(run.files.read(pathOf(run, path)));
      for (let data = await stdin.read(); data !== undefined; data = await stdin.read()) await stdout.write(data);
    });
    return isFine ? 0 : 1;
  },

  async head(run) {
    const { values, operands } = lineCount(run.args);
    const count = countOf(values.get("n") ?? "10");
    if (operands.length === 0) return await headOfStream(run, count);
    const { inputs, isFine } = await readInputs(run, operands, cannotOpen);
    for (const [at, { name, text }] of inputs.entries()) {
      if (operands.length > 1) await printBytes(run, `${at > 0 ? "\n" : ""}==> ${name} <==\n`);
      await printBytes(run, firstLines(text, count));
    }
    return isFine ? 0 : 1;
  },

  async tail(run) {
    const { values, operands } = lineCount(run.args);
    const count = countOf(values.get("n") ?? "10");
    const { inputs, isFine } = await readInputs(run, operands, cannotOpen);
    for (const { text } of inputs) await printBytes(run, lastLines(text, count));
    return isFine ? 0 : 1;
  },

  async wc(run) {
    const { flags, operands } = parseOptions(run.args, { letters: "lcw" });
    const { inputs, isFine } = await readInputs(run, operands, plainly);
    const counts = inputs.map(({ text, name }) => ({
      name,
      l: text.split("\n").length - 1,
      w: text.split(/\s+/).filter((word) => word !== "").length,
      c: text.length,
    }));
    const kinds = (["l", "w", "c"] as const).filter((kind) => flags.size === 0 || flags.has(kind));
    const total = { name: "total", l: 0, w: 0, c: 0 };
    for (const one of counts) for (const kind of kinds) total[kind] += one[kind];
    for (const one of counts.length > 1 ? [...counts, total] : counts) {
      const name = operands.length === 0 ? "" : ` ${one.name}`;
      await print(run, `${kinds.map((kind) => one[kind]).join(" ")}${name}\n`);
    }
    return isFine ? 0 : 1;
  },

  async sort(run) {
    const { flags, operands } = parseOptions(run.args, { letters: "rnu" });
    const { inputs, isFine } = await readInputs(run, operands, cannotRead);
    if (!isFine) return 2;
    const numerically = (one: string, other: string) => Number.parseFloat(one) - Number.parseFloat(other);
    const lines = inputs.flatMap(({ text }) => linesOf(text)).sort();
    if (flags.has("n")) lines.sort(numerically);
    if (flags.has("r")) lines.reverse();
    const shown = flags.has("u") ? [...new Set(lines)] : lines;
    await printBytes(run, shown.map((line) => `${line}\n`).join(""));
    return 0;
  },

  async seq(run) {
    const numbers = run.args.map(Number);
    const wrong = numbers.findIndex(Number.isNaN);
    if (wrong >= 0) throw new Complaint(`invalid floating point argument: ‘${run.args[wrong]}’`);
    if (numbers.length === 0) throw new Complaint("missing operand");
    const [first, step, last] =
      numbers.length === 1 ? [1, 1, numbers[0]!] : numbers.length === 2 ? [numbers[0]!, 1, numbers[1]!] : numbers;
    let piece = "";
    for (let at = first!; step! > 0 ? at <= last! : at >= last!; at += step!) {
      piece += `${at}\n`;
      if (piece.length < PIECE_BYTES) continue;
      await print(run, piece);
      piece = "";
    }
    await print(run, piece);
    return 0;
  },

  /** Until somebody ends it. */
  async yes(run) {
    const line = `${run.args.length === 0 ? "y" : run.args.join(" ")}\n`;
    const piece = Buffer.from(line.repeat(Math.ceil(PIECE_BYTES / line.length)));
    for (;;) await run.stdio.stdout.write(piece);
  },

  async tee(run) {
    const { flags, operands } = parseOptions(run.args, { letters: "a" });
    const { stdin, stdout } = run.stdio;
    const opened: string[] = [];
    const isFine = await each(run, operands, plainly, (operand) => {
      const path = pathOf(run, operand);
      run.files.open(path, { append: flags.has("a") });
      opened.push(path);
    });
    for (let data = await stdin.read(); data !== undefined; data = await stdin.read()) {
      await stdout.write(data);
      for (const path of opened) run.files.write(path, data, { append: true });
    }
    return isFine ? 0 : 1;
  },
} as const satisfies Record<string, Program>;

const PIECE_BYTES = 32 * 1024;

/** `-5` is short for `-n 5`. */
function lineCount(args: readonly string[]): ReturnType<typeof parseOptions> {
  const long = args.map((arg) => (/^-\d+$/.test(arg) ? `-n${arg.slice(1)}` : arg));
  return parseOptions(long, { letters: "q", withValue: "n" });
}

function countOf(text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  throw new Complaint(`invalid number of lines: ‘${text}’`);
}

function firstLines(text: string, count: number): string {
  return (text.match(LINES) ?? []).slice(0, count).join("");
}

function lastLines(text: string, count: number): string {
  const lines = text.match(LINES) ?? [];
  return lines.slice(Math.max(0, lines.length - count)).join("");
}

const LINES = /[^\n]*\n|[^\n]+$/g;

/** Goes as soon as it has its lines, so that whoever writes for ever is told. */
async function headOfStream(run: ProgramRun, count: number): Promise<number> {
  const { stdin, stdout } = run.stdio;
  for (let left = count; left > 0; ) {
    const data = await stdin.read();
    if (data === undefined) break;
    const kept = firstLines(Buffer.from(data).toString("latin1"), left);
    left -= kept.split("\n").length - 1;
    await stdout.write(Buffer.from(kept, "latin1"));
  }
  stdin.close();
  return 0;
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", "\\": "\\" };

/** Takes its values from the front of the list. */
function formatted(format: string, values: string[]): string {
  return format.replace(/%[%sdi]|\\(?:[ntr\\]|[0-7]{1,3})/g, (sign) => {
    if (sign.startsWith("\\"))
      return ESCAPES[sign[1]!] ?? String.fromCharCode(Number.parseInt(sign.slice(1), 8) & 0xff);
    if (sign === "%%") return "%";
    const value = values.shift();
    return sign === "%s" ? (value ?? "") : String(Math.trunc(Number(value ?? 0)) || 0);
  });
}
