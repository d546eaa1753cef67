/** The beginning and the end of a text that is too long: a command's last lines say how it went. */
export function keepEnds(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const head = text.slice(0, boundary(text, Math.ceil(limit / 2)));
  const tail = text.slice(boundary(text, text.length - Math.floor(limit / 2)));
  return `${head}\n[${text.length - head.length - tail.length} characters left out]\n${tail}`;
}

/** The first of several lines, and how many more there are. */
export function keepLines(lines: readonly string[], limit: number, advice: string): string {
  let length = 0;
  const fitting = lines.findIndex((line) => {
    length += line.length + 1;
    return length > limit;
  });
  if (fitting === -1) return lines.join("\n");
  return [...lines.slice(0, fitting), `[${lines.length - fitting} more left out: ${advice}]`].join("\n");
}

/** The beginning of a line. */
export function clip(line: string, limit: number): string {
  return line.length <= limit ? line : `${line.slice(0, boundary(line, limit))}…`;
}

/** Where to cut so that no character is halved. */
export function boundary(text: string, index: number): number {
  const unit = text.charCodeAt(index);
  return unit >= 0xdc00 && unit <= 0xdfff ? index - 1 : index;
}
