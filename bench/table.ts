/** A Markdown table whose columns are aligned, to be legible on a terminal too. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, i) => Math.max(title.length, 3, ...rows.map((row) => row[i]?.length ?? 0)));
  // Text to the left; numbers, which is every column whose cells all begin like one, to the right.
  const numeric = head.map((_, i) => i > 0 && rows.every((row) => /^$|^[\d.,-]|^error/.test(row[i] ?? "")));
  const line = (cells: readonly string[]) =>
    `| ${widths.map((w, i) => (numeric[i] ? (cells[i] ?? "").padStart(w) : (cells[i] ?? "").padEnd(w))).join(" | ")} |`;
  const rule = `| ${widths.map((w, i) => (numeric[i] ? `${"-".repeat(w - 1)}:` : "-".repeat(w))).join(" | ")} |`;
  return [line(head), rule, ...rows.map(line)].join("\n");
}

export function factor(value: number): string {
  return value < 10 ? value.toFixed(2) : value.toFixed(1);
}

export function whole(value: number): string {
  return Math.round(value).toLocaleString("en");
}
