interface PictureOptions {
  /** Of the terminal: what is longer goes on in the next line. */
  readonly columns: number;
  readonly title: string;
}

/** What a terminal shows as an SVG: the text as text, in the colours of the reader's own scheme. */
export function terminalPicture(output: string, { columns, title }: PictureOptions): string {
  const lines = screenOf(output, columns);
  const width = 2 * MARGIN + Math.max(...lines.map((line) => line.length)) * CHARACTER;
  const height = 2 * MARGIN + lines.length * LINE;
  const texts = lines.map((line, index) => {
    const y = MARGIN + (index + 0.7) * LINE;
    const user = line[0]?.text === "$" ? ' class="user"' : "";
    return line.length === 0 ? [] : `  <text${user} x="${MARGIN}" y="${y}">${runsOf(line).map(markup).join("")}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title">
  <title id="title">${escaped(title)}</title>
  <style>
    rect { fill: #f6f8fa; stroke: #d0d7de; }
    text { font-family: ui-monospace, monospace; font-size: 13px; fill: #1f2328; white-space: pre; }
    .user, .bold { font-weight: 600; }
    .faint { fill: #656d76; }
    .red { fill: #cf222e; }
    .green { fill: #1a7f37; }
    .yellow { fill: #9a6700; }
    .cyan { fill: #1b7c83; }
    @media (prefers-color-scheme: dark) {
      rect { fill: #0d1117; stroke: #30363d; }
      text { fill: #e6edf3; }
      .faint { fill: #8d96a0; }
      .red { fill: #ff7b72; }
      .green { fill: #3fb950; }
      .yellow { fill: #d29922; }
      .cyan { fill: #39c5cf; }
    }
  </style>
  <rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="6"/>
${texts.flat().join("\n")}
</svg>
`;
}

const MARGIN = 16;
const LINE = 20;
/** Of a monospaced font of 13 pixels. */
const CHARACTER = 8;

interface Cell {
  readonly text: string;
  readonly style: string;
}

const STYLES: Readonly<Record<string, string>> = {
  "": "",
  0: "",
  1: "bold",
  2: "faint",
  31: "red",
  32: "green",
  33: "yellow",
  36: "cyan",
};

/** One thing that a terminal does: a sequence for it, a line's end or beginning, or a character. */
const STEP = /\x1b\[(?<parameters>[?\d;]*)(?<final>[@-~])|\x1b\([A-Z]|(?<text>[^\x1b])/gu;

/** Lines of cells, after all was written; what a picture cannot show is an error. */
function screenOf(output: string, columns: number): readonly (readonly Cell[])[] {
  const lines: Cell[][] = [[]];
  let column = 0;
  let style = "";
  for (const { groups: { parameters = "", final, text } = {} } of output.trimEnd().matchAll(STEP)) {
    if (text === "\n") lines.push([]);
    else if (text === "\r") column = 0;
    else if (text !== undefined) {
      if (column === columns) {
        lines.push([]);
        column = 0;
      }
      lines.at(-1)![column++] = { text, style };
    } else if (final === "m" && parameters in STYLES) style = STYLES[parameters]!;
    else if (final === "K" && parameters === "") lines.at(-1)!.length = column;
    else if (final !== undefined && !parameters.startsWith("?")) {
      throw new Error(`the picture has nothing for the sequence ${parameters}${final}`);
    }
  }
  return lines;
}

/** Neighbours of one style together. */
function runsOf(line: readonly Cell[]): readonly Cell[] {
  const runs: Cell[] = [];
  for (const { text, style } of line) {
    const last = runs.at(-1);
    if (last?.style === style) runs[runs.length - 1] = { text: last.text + text, style };
    else runs.push({ text, style });
  }
  return runs;
}

function markup({ text, style }: Cell): string {
  return style === "" ? escaped(text) : `<tspan class="${style}">${escaped(text)}</tspan>`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
