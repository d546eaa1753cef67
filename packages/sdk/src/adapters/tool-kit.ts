// For whoever makes tools for models; not for who uses them.

export { boundary, clip, keepEnds, keepLines } from "./tools/bounds.ts";
export { Turns } from "./tools/turns.ts";
