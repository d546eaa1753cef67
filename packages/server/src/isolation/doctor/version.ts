/** Whether a version is at least another; one that cannot be read is not. */
export function isAtLeast(version: string, floor: string): boolean {
  const have = versionNumbers(version);
  if (have.length === 0) return false;
  for (const [index, wanted] of versionNumbers(floor).entries()) {
    const number = have[index] ?? 0;
    if (number !== wanted) return number > wanted;
  }
  return true;
}

/** The leading numbers of a version: "6.18.44-rc1" is 6, 18, 44. Empty when it begins otherwise. */
function versionNumbers(text: string): readonly number[] {
  const [numbers = ""] = /^v?\d+(?:\.\d+)*/.exec(text) ?? [];
  return numbers === "" ? [] : numbers.replace(/^v/, "").split(".").map(Number);
}
