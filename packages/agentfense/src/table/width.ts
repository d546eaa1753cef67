/** Code points that terminals give two columns: East Asian wide and full-width forms, by first and last. */
const WIDE: readonly (readonly [first: number, last: number])[] = [
  [0x1100, 0x115f],
  [0x2329, 0x232a],
  [0x2e80, 0x303e],
  [0x3041, 0x33ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xa000, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x18d08],
  [0x1aff0, 0x1b2fb],
  [0x20000, 0x3fffd],
];

/** Made for the first text that needs it: that takes ten milliseconds, which few commands have a use for. */
let characters: Intl.Segmenter | undefined;

/** How many columns of a terminal a printable text takes. */
export function columnsOf(text: string): number {
  if (/^[\u0020-\u007e]*$/.test(text)) return text.length;
  characters ??= new Intl.Segmenter("en", { granularity: "grapheme" });
  let columns = 0;
  for (const { segment } of characters.segment(text)) columns += columnsOfCharacter(segment);
  return columns;
}

function columnsOfCharacter(character: string): number {
  if (/^\p{Mark}+$/u.test(character)) return 0;
  // U+FE0F asks for the picture of what is otherwise a sign, such as ✔️.
  if (/\p{Emoji_Presentation}|\ufe0f/u.test(character)) return 2;
  const code = character.codePointAt(0)!;
  return WIDE.some(([first, last]) => code >= first && code <= last) ? 2 : 1;
}
