/** One argument, written so that a shell reads it as one word. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./~\uFFFC-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
