import { type Paint, printableSentence, type Style } from "../terminal.ts";

const LETTER_STYLES: Readonly<Record<string, Style>> = {
  A: "good",
  M: "doubtful",
  D: "bad",
  R: "notable",
};

/** The letter of a change and the mark behind it: "M!". */
export function paintMark(letter: string, mark: string, paint: Paint): string {
  const style = LETTER_STYLES[letter];
  return `${style === undefined ? letter : paint(style, letter)}${mark === "!" ? paint("bad", mark) : mark}`;
}

/** How the lines of a unified diff begin, and their colours; the first that fits counts. */
const LINE_STYLES: readonly (readonly [begin: RegExp, style: Style])[] = [
  [/^(diff |index |old mode |new mode |new file |deleted file |similarity |rename |Binary )/, "heading"],
  [/^@@ /, "notable"],
  [/^\+/, "good"],
  [/^-/, "bad"],
];

/**
 * A unified diff for a terminal. Lines stay lines and tabs tabs; everything else that would move the cursor or hide text
 * is escaped.
 */
export function paintDiff(text: string, paint: Paint): string {
  return text.replace(/[^\n]+/g, (line) => {
    const shown = line.replace(/[^\t]+/g, printableSentence);
    const style = LINE_STYLES.find(([begin]) => begin.test(line))?.[1];
    return style === undefined ? shown : paint(style, shown);
  });
}
