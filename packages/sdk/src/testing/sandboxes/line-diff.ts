/** Lines of agreement around each difference. */
const CONTEXT = 3;
/** Beyond this the differing stretch counts as replaced as a whole: correct still, only not minimal. */
const LARGEST_TABLE = 4_000_000;

type Line = { readonly sign: " " | "-" | "+"; readonly text: string };

/** What differs between two texts, as `@@` hunks; "" when nothing does. */
export function unifiedDiff(old: string, now: string): string {
  const script = editScript(linesOf(old), linesOf(now));
  const shown = script.map(({ sign }) => sign !== " ");
  const near = script.map((_, at) => shown.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).includes(true));
  let text = "";
  let [oldLine, newLine] = [1, 1];
  for (let at = 0; at < script.length; ) {
    const start = at;
    while (at < script.length && near[at] === near[start]) at += 1;
    const hunk = script.slice(start, at);
    const oldCount = hunk.filter(({ sign }) => sign !== "+").length;
    const newCount = hunk.filter(({ sign }) => sign !== "-").length;
    if (near[start])
      text += `@@ -${range(oldLine, oldCount)} +${range(newLine, newCount)} @@\n${hunk.map(shownLine).join("")}`;
    oldLine += oldCount;
    newLine += newCount;
  }
  return text;
}

/** Lines with their line feeds: one that lacks it at the end is another line. */
function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function shownLine({ sign, text }: Line): string {
  return `${sign}${text}${text.endsWith("\n") ? "" : "\n\\ No newline at end of file\n"}`;
}

/** An empty range names the line before it. */
function range(first: number, count: number): string {
  if (count === 1) return String(first);
  return `${count === 0 ? first - 1 : first},${count}`;
}

/** Every line of both texts in order, by the longest common subsequence of what differs in the middle. */
function editScript(old: readonly string[], now: readonly string[]): Line[] {
  let start = 0;
  while (start < Math.min(old.length, now.length) && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < Math.min(old.length, now.length) - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  const [a, b] = [old.slice(start, old.length - end), now.slice(start, now.length - end)];
  const same = (lines: readonly string[]): Line[] => lines.map((text) => ({ sign: " ", text }));
  return [...same(old.slice(0, start)), ...middle(a, b), ...same(old.slice(old.length - end))];
}

function middle(a: readonly string[], b: readonly string[]): Line[] {
  const removed = (lines: readonly string[]): Line[] => lines.map((text) => ({ sign: "-", text }));
  const added = (lines: readonly string[]): Line[] => lines.map((text) => ({ sign: "+", text }));
  if (a.length * b.length > LARGEST_TABLE) return [...removed(a), ...added(b)];
  const width = b.length + 1;
  // common[i, j]: the longest common subsequence of a from i and b from j.
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const [down, right] = [common[(i + 1) * width + j]!, common[i * width + j + 1]!];
      common[i * width + j] = a[i] === b[j] ? common[(i + 1) * width + j + 1]! + 1 : Math.max(down, right);
    }
  }
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      lines.push({ sign: " ", text: a[i]! });
      i += 1;
      j += 1;
    } else if (common[(i + 1) * width + j]! >= common[i * width + j + 1]!) {
      lines.push({ sign: "-", text: a[i]! });
      i += 1;
    } else {
      lines.push({ sign: "+", text: b[j]! });
      j += 1;
    }
  }
  return [...lines, ...removed(a.slice(i)), ...added(b.slice(j))];
}
